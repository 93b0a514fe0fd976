#include "answer.h"

#include <stdio.h>
#include <string.h>

#include "session.h"

/* ---- terms as text ---- */

static const char *opening(const struct etf_head *h)
{
    return h->type == ETF_MAP ? "#{" : h->type == ETF_LIST ? "[" : "{";
}

/* Flat: the elements of a container follow its head, and only the head is bracketed by how many there are. */
void answer_text(struct etf *term, struct buf *ret, size_t most)
{
    size_t open[16], depth = 0, left = ret->len + most;
    char closing[16];
    struct etf_head h;

    while (ret->len < left && etf_next(term, &h)) {
        bool container = false;
        switch (h.type) {
        case ETF_ATOM:
        case ETF_STRING:
        case ETF_BIN:
            buf_add(ret, h.text.at, MIN(h.text.len, left - ret->len));
            break;
        case ETF_INT:
            buf_printf(ret, "%lld", (long long)h.integer);
            break;
        case ETF_NIL:
            buf_puts(ret, "[]");
            break;
        case ETF_LIST:
        case ETF_TUPLE:
        case ETF_MAP:
            container = h.count > 0 && depth < ARRAY_LEN(open);
            buf_puts(ret, opening(&h));
            break;
        case ETF_PID:
            buf_printf(ret, "<0.%u.%u>", (unsigned)h.id, (unsigned)h.serial);
            break;
        default:
            buf_puts(ret, "…");
            break;
        }
        if (container) {
            open[depth] = h.count * (h.type == ETF_MAP ? 2 : 1) + (h.type == ETF_LIST);
            closing[depth++] = h.type == ETF_LIST ? ']' : '}';
            continue;
        }
        while (depth && --open[depth - 1] == 0)
            buf_char(ret, closing[--depth]);
        if (!depth)
            return;
        /* the tail of a list is not an element */
        if (closing[depth - 1] == ']' && open[depth - 1] == 1 && etf_peek(term, &h) && h.type == ETF_NIL) {
            etf_next(term, &h);
            buf_char(ret, closing[--depth]);
            while (depth && --open[depth - 1] == 0)
                buf_char(ret, closing[--depth]);
            if (!depth)
                return;
        }
        buf_puts(ret, ",");
    }
    buf_puts(ret, "…");
}

void answer_gone(struct etf reason, const char *node, struct err *e)
{
    struct buf b = {0};

    if (etf_is_atom(&reason, "lease")) {
        err_set(e, ERR_GUARD, "%s ended the tracing: it had heard nothing from here for 10 seconds", node);
    } else if (etf_is_atom(&reason, "killed") || etf_is_atom(&reason, "janitor")) {
        err_set(e, ERR_RUN, "%s: the tracer was killed, by somebody or for its memory", node);
    } else {
        answer_text(&reason, &b, 300);
        err_set(e, ERR_RUN, "%s: the tracer has ended: %s", node, buf_cstr(&b));
    }
    buf_release(&b);
}

/* ---- {error, Reason} ---- */

/* One reason in words: each %s is the next thing that stands behind it; a list of names at the end becomes the hint. */
struct sentence {
    const char *reason;
    size_t arity; /* of the tuple; 0: an atom */
    enum err_status status;
    const char *text;
};

static const struct sentence sentences[] = {
    {"otp", 2, ERR_NODE, "the node runs OTP %s; etrace needs OTP 27 or newer there"},
    {"system_limit", 0, ERR_NODE, "sixteen etrace of this build trace the node already"},
    {"not_loaded", 2, ERR_NODE, "the node does not load the companion: %s"},
    {"no_module", 3, ERR_EMPTY, "there is no module %s on the node"},
    {"no_app", 3, ERR_EMPTY, "no application %s is loaded on the node"},
    {"noproc", 2, ERR_EMPTY, "there is no process %s on the node"},
    {"noproc", 3, ERR_EMPTY, "no process is registered as %s on the node"},
    {"no_atom", 2, ERR_EMPTY, "the node does not know the atom %s, so nothing can match it"},
    {"dangerous", 2, ERR_GUARD, "the tracing itself goes through %s: only its name, or --force, takes it"},
    {"empty", 2, ERR_EMPTY, "expression %s matches no function on the node"},
    {"bad_pattern", 4, ERR_USAGE, "the pattern %s is wrong: %s"},
    {"bad_spec", 2, ERR_NODE, "the node refuses the match specification for %s"},
    {"bad_spec", 0, ERR_NODE, "the node cannot read the match specification"},
    {"bad_request", 0, ERR_RUN, "the node does not understand the request"},
    {"busy", 0, ERR_RUN, "the node is still at an earlier request"},
    {"stopping", 0, ERR_RUN, "the tracing is being ended"},
    {"too_many_modules", 3, ERR_USAGE, "%s modules are too many to look for a record (%s at most): name one, as in mod#rec{}"},
    {"max_heap_size", 0, ERR_GUARD, "the expression matches more functions than the companion's memory allows"},
    {"notsup", 2, ERR_NODE, "%s"},
};

#define PARTS 3

static void part(struct etf *r, char to[200])
{
    struct buf b = {0};

    answer_text(r, &b, 180);
    strncpy(to, buf_cstr(&b), 199);
    to[199] = 0;
    buf_release(&b);
}

/* The last element: a list of names that resemble. */
static void hint_near(struct etf r, struct err *e)
{
    struct buf b = {0};
    struct str name;
    size_t n;

    if (!etf_get_list(&r, &n) || !n)
        return;
    for (size_t i = 0; i < n && etf_get_bin(&r, &name); i++)
        buf_printf(&b, "%s%.*s", i == 0 ? "" : i + 1 < n ? ", " : " or ", (int)MIN(name.len, 120), name.at);
    err_hint(e, "did you mean %s?", buf_cstr(&b));
    buf_release(&b);
}

/* {no_function, Module, Function, Low, High, [Near], Hidden} */
static bool no_function(struct etf *r, struct err *e)
{
    char module[200], function[200], arity[32] = "";
    int64_t low, high;
    struct etf near;
    bool hidden;

    part(r, module);
    part(r, function);
    if (!etf_get_int(r, &low) || !etf_get_int(r, &high) || !etf_take(r, &near))
        return false;
    hidden = etf_is_atom(r, "true");
    if (low == high)
        snprintf(arity, sizeof arity, "/%lld", (long long)low);
    if (hidden) {
        err_set(e, ERR_EMPTY, "%s:%s%s is not exported, so `global` sees no call of it", module, function, arity);
    } else {
        err_set(e, ERR_EMPTY, "%s has no function %s%s", module, function, arity);
        hint_near(near, e);
    }
    return true;
}

/* The sentence with each %s replaced by the next part. */
static void say(const struct sentence *s, char parts[PARTS][200], struct err *e)
{
    struct buf b = {0};
    size_t next = 0;

    for (const char *c = s->text; *c; c++) {
        if (c[0] != '%' || next == PARTS) {
            buf_char(&b, *c);
        } else {
            buf_puts(&b, parts[next++]);
            c++;
        }
    }
    err_set(e, s->status, "%s", buf_cstr(&b));
    buf_release(&b);
}

static bool listed(struct str reason, size_t arity, struct etf r, struct err *e)
{
    char parts[PARTS][200] = {{0}};
    struct etf_head h;

    for (size_t i = 0; i < ARRAY_LEN(sentences); i++) {
        const struct sentence *s = &sentences[i];
        if (s->arity != arity || strlen(s->reason) != reason.len || memcmp(s->reason, reason.at, reason.len))
            continue;
        size_t n = arity ? arity - 1 : 0;
        for (size_t j = 0; j < n && j < PARTS; j++) {
            bool near = j > 0 && etf_peek(&r, &h) && (h.type == ETF_LIST || h.type == ETF_NIL);
            if (near)
                break;
            part(&r, parts[j]);
        }
        say(s, parts, e);
        hint_near(r, e);
        return true;
    }
    return false;
}

bool session_error(const struct session_reply *reply, struct err *e)
{
    struct etf r = reply->term, whole = reply->term;
    struct etf_head h = {0};
    size_t arity = 0;
    struct buf b = {0};

    if (etf_next(&r, &h) && h.type == ETF_TUPLE && h.count) {
        arity = h.count;
        etf_next(&r, &h);
    }
    if (!r.failed && h.type == ETF_ATOM) {
        struct etf rest = r;
        if (h.text.len == 11 && !memcmp(h.text.at, "no_function", 11) && no_function(&rest, e))
            return false;
        if (listed(h.text, arity, r, e))
            return false;
    }
    answer_text(&whole, &b, 300);
    err_set(e, ERR_RUN, "the node answers: %s", buf_cstr(&b));
    buf_release(&b);
    return false;
}
