/* The table of `etrace top`: as text, as wide as a terminal or as long as it is, and as JSON. */
#ifndef ETRACE_TOP_TABLE_H
#define ETRACE_TOP_TABLE_H

#include "../views/paint.h"
#include "top_rows.h"

struct top_table {
    const struct top_node *nodes;
    const char *const *names; /* of the nodes */
    size_t count;
    enum top_sort sort;
    bool by_process;
    struct paint paint;
    unsigned columns; /* 0: as long as it takes */
    size_t most;      /* rows; 0: all */
};

/* The head and the rows, each a line with `end` behind it, and what the rows leave out. */
void top_table_text(const struct top_table *t, const char *end, struct buf *to);
/* `etrace top · NODE · …`: what is counted, and for how long. Without a line's end. */
void top_table_title(const struct top_table *t, struct buf *to);
void top_table_json(const struct top_table *t, struct buf *to);

/* Text in at most so many columns. */
void top_cut(struct buf *to, struct str text, unsigned columns);

#endif
