/* SPDX-License-Identifier: Apache-2.0 */
#include "event_again.h"

#include "../ground/command_line.h"
#include "../ground/number.h"
#include "event_page.h"
#include "line.h"

bool again_has(const struct again *a, enum again_probe probe)
{
    return a->found && (probe == AGAIN_PROCESS || (a->function.len && (probe != AGAIN_SLOWER || a->slower.len)));
}

void again_expressions(struct again *a, struct texts *to)
{
    if (a->function.len) {
        texts_add(to, buf_cstr(&a->function));
        return;
    }
    texts_add(to, "send(_, _)");
    texts_add(to, "recv(_)");
}

void again_clear(struct again *a)
{
    a->found = false;
    buf_clear(&a->node);
    buf_clear(&a->process);
    buf_clear(&a->function);
    buf_clear(&a->slower);
}

void again_release(struct again *a)
{
    buf_release(&a->node);
    buf_release(&a->process);
    buf_release(&a->function);
    buf_release(&a->slower);
}

static void again_fill(struct again *a, const struct event *e, int64_t dur_ns)
{
    a->found = true;
    buf_safe(&a->node, e->node->name);
    buf_safe(&a->process, tracee_safe_text(e->who));
    if (!e->fun)
        return;
    line_fun_name(&a->function, e, TERMS_AUTO);
    buf_printf(&a->function, "/%u -> return", e->arity);
    if (dur_ns >= 0) {
        buf_puts(&a->slower, "dur > ");
        print_duration(&a->slower, dur_ns);
    }
}

static void again_option(struct command_line *c, const char *option, struct buf *value)
{
    command_line_word(c, option);
    command_line_word(c, buf_cstr(value));
}

/* Shows the label and the command of a probe. */
static void again_put(struct buf *to, struct again *a, enum again_probe probe)
{
    static const char *const labels[AGAIN_PROBES] = {"this function", "in this process", "slower than this"};
    struct texts words = {0};
    struct command_line c = {0};

    command_line_begin(&c, NULL, NULL, a->node.len ? buf_cstr(&a->node) : NULL);
    if (probe == AGAIN_PROCESS)
        again_option(&c, "-P", &a->process);
    if (probe == AGAIN_SLOWER)
        again_option(&c, "-e", &a->slower);
    again_expressions(a, &words);
    for (size_t i = 0; i < words.count; i++)
        command_line_word(&c, words.items[i]);
    buf_printf(to, "%d %-*s%s\n", probe + 1, EVENT_AGAIN_LABEL - 2, labels[probe], command_line_text(&c));
    texts_release(&words);
    command_line_release(&c);
}

static void event_again_event(struct sink *s, const struct event *e)
{
    const struct event_sought *sought = s->look.sought;

    if (s->done || !event_is_traced(e) || e->number != sought->number)
        return;
    s->done = true;
    again_fill(sought->again, e, sought->dur_ns);
    for (enum again_probe i = 0; i < AGAIN_PROBES; i++)
        if (again_has(sought->again, i))
            again_put(s->out, sought->again, i);
}

const struct sink_type event_again = {
    .name = "again",
    .about = "the commands that trace more events like one",
    .size = sizeof(struct sink),
    .event = event_again_event,
};
