/* SPDX-License-Identifier: Apache-2.0 */
#include "event_again.h"

#include "../ground/command_line.h"
#include "../ground/number.h"
#include "event_page.h"
#include "line.h"

/* Begins a command for the node of the event. */
static void again_begin(struct command_line *c, const struct event *e)
{
    struct buf node = {0};

    buf_safe(&node, e->node->name);
    command_line_begin(c, NULL, NULL, node.len ? buf_cstr(&node) : NULL);
    buf_release(&node);
}

/* Adds the expression: the function with its results, or messages if the event has no function. */
static void again_what(struct command_line *c, const struct event *e)
{
    struct buf function = {0};

    if (!e->fun) {
        command_line_word(c, "send(_, _)");
        command_line_word(c, "recv(_)");
        return;
    }
    line_fun_name(&function, e, TERMS_AUTO);
    buf_printf(&function, "/%u -> return", e->arity);
    command_line_word(c, buf_cstr(&function));
    buf_release(&function);
}

static void again_line(struct sink *s, const char *label, struct command_line *c)
{
    buf_printf(s->out, "%-*s%s\n", EVENT_AGAIN_LABEL, label, command_line_text(c));
}

static void again_process(struct command_line *c, const struct event *e)
{
    struct buf who = {0};

    buf_safe(&who, tracee_safe_text(e->who));
    command_line_add(c, " -P");
    command_line_word(c, buf_cstr(&who));
    buf_release(&who);
}

static void again_slower(struct command_line *c, int64_t dur_ns)
{
    struct buf slower = {0};

    buf_puts(&slower, "dur > ");
    print_duration(&slower, dur_ns);
    command_line_add(c, " -e");
    command_line_word(c, buf_cstr(&slower));
    buf_release(&slower);
}

static void event_again_event(struct sink *s, const struct event *e)
{
    const struct event_sought *sought = s->look.sought;
    struct command_line c = {0};

    if (s->done || !event_is_traced(e) || e->number != sought->number)
        return;
    s->done = true;
    if (e->fun) {
        again_begin(&c, e);
        again_what(&c, e);
        again_line(s, "this function", &c);
    }
    again_begin(&c, e);
    again_process(&c, e);
    again_what(&c, e);
    again_line(s, "in this process", &c);
    if (e->fun && sought->dur_ns >= 0) {
        again_begin(&c, e);
        again_slower(&c, sought->dur_ns);
        again_what(&c, e);
        again_line(s, "slower than this", &c);
    }
    command_line_release(&c);
}

const struct sink_type event_again = {
    .name = "again",
    .about = "the commands that trace more events like one",
    .size = sizeof(struct sink),
    .event = event_again_event,
};
