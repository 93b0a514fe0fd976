#include "where.h"
struct wheres { int x; };
struct wheres *wheres_new(enum terms_style style){ (void)style; static struct wheres w; return &w; }
void wheres_free(struct wheres *w){ (void)w; }
enum filter_verdict where_holds(struct wheres *w, const struct where *expr, const struct event *e){ (void)w;(void)expr;(void)e; return FILTER_PASS; }
uint64_t wheres_errors(const struct wheres *w){ (void)w; return 0; }
