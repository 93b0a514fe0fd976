/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that each property has the same value in --format, `where` and JSON. A row of properties.def without a line in
 * `wanted` fails, and so does a property that no event of the scene has.
 */
#include "compiled.h"

#include "lang/properties.h"

/*
 * The scene, one letter for each event: a call with everything that is collected, its result, a call and its exception,
 * a call and its exception without the reason, a call without arguments, send, receive, spawn, a time slice, the end of
 * a collection, a sequential trace, an exit.
 */
static const char scene[] = "crCxYXZsRpogqe";

/* `letter=value|` for each event that has it. Without a bar at the end, only the beginning is compared. */
static const struct {
    const char *name, *values;
} wanted[] = {
    {"time", "c="},
    {"ts", "c=2025-11-20T18:26:50.001000Z"},
    {"mono_ns", "c=1000000|r=2000000|C=3000000|x=3500000|Y=3600000|X=3700000|Z=3800000|s=4000000|R=5000000|p=6000000|o="
                "7000000|g=8000000|q=9000000|e=9500000|"},
    {"node", "c=shop@h1|r=shop@h1|C=shop@h1|x=shop@h1|Y=shop@h1|X=shop@h1|Z=shop@h1|s=shop@h1|R=shop@h1|p=shop@h1|o="
             "shop@h1|g=shop@h1|q=shop@h1|e=shop@h1|"},
    {"pid", "c=<0.1.0>|r=<0.1.0>|C=<0.1.0>|x=<0.1.0>|Y=<0.1.0>|X=<0.1.0>|Z=<0.1.0>|s=<0.1.0>|R=<0.1.0>|p=<0.1.0>|o=<0."
            "2.0>|g=<0.2.0>|q=<0.2.0>|e=<0.2.0>|"},
    {"name", "c=cart|r=cart|C=cart|x=cart|Y=cart|X=cart|Z=cart|s=cart|R=cart|p=cart|"},
    {"who", "c=<0.1.0>(cart)"},
    {"type", "c=call|r=return|C=call|x=exception|Y=call|X=exception|Z=call|s=send|R=receive|p=spawn|o=out|g=gc_minor_"
             "end|q=seq_trace|e=exit|"},
    {"m", "c=m|r=m|C=m|x=m|Y=m|X=m|Z=m|p=w|o=w|"},
    {"f", "c=f|r=f|C=f|x=f|Y=f|X=f|Z=f|p=run|o=loop|"},
    {"a", "c=1|r=1|C=1|x=1|Y=1|X=1|Z=1|p=2|o=3|"},
    {"mfa", "c=m:f/1|r=m:f/1|C=m:f/1|x=m:f/1|Y=m:f/1|X=m:f/1|Z=m:f/1|p=w:run/2|o=w:loop/3|"},
    {"call", "c=m:f(7)|r=m:f(7)|C=m:f(8)|x=m:f(8)|Y=m:f(9)|X=m:f(9)|Z=m:f/1|"},
    {"args", "c=7|r=7|C=8|x=8|Y=9|X=9|"},
    {"ret", "r=70|"},
    {"value", "r=70|"},
    {"class", "x=error|X=error|"},
    {"reason", "x=badkey|X={error,…+1}|e=normal|"},
    {"to", "s=<0.2.0>|R=<0.1.0>|q=<0.3.0>|"},
    {"from", "s=<0.1.0>|R=<0.2.0>|q=<0.2.0>|"},
    {"from_node", "R=shop@h1|"},
    {"msg", "s=hi|R=hi|q=ho|"},
    {"reclaimed", "g=42|"},
    {"dur", "r=1ms|x=500us|X=100us|"},
    {"dur_us", "r=1000.000|x=500.000|X=100.000|"},
    {"dur_ns", "r=1000000|x=500000|X=100000|"},
    {"caller", "c=w:go/0|r=w:go/0|"},
    {"stack", "c=w:go/0 < w:run/2|r=w:go/0 < w:run/2|"},
    {"dump", "c=<<\"d\">>|r=<<\"d\">>|"},
    {"message", "c=note|r=note|"},
    {"depth", "c=0"},
    {"size", "c="},
    {"count", ""},
    {"text", "c=call m:f(7)"},
};

static void mfa(struct fw *w, const char *m, const char *f, int arity)
{
    fw_tuple(w, 3), fw_atom(w, m), fw_atom(w, f), fw_int(w, arity);
}

static void collected(struct fw *w)
{
    w->flags |= ETW_F_MS;
    fw_tuple(w, 4);
    mfa(w, "w", "go", 0);
    fw_tag(w, ETW_T_LIST);
    mfa(w, "w", "go", 0), mfa(w, "w", "run", 2);
    fw_tag(w, ETW_T_END);
    fw_bin(w, "d");
    fw_atom(w, "note");
}

static void play(struct fw *w)
{
    fw_begin(w);
    fw_hello(w, 1, "shop@h1");
    fw_name(w, 1, PID(1), "cart");
    fw_ring(w, 1);
    fw_call(w, 1000000, PID(1), "m", "f", 1);
    fw_int(w, 7), collected(w), fw_frame_end(w);
    fw_return(w, 2000000, PID(1), "m", "f", 1);
    fw_int(w, 70), fw_frame_end(w);
    fw_call(w, 3000000, PID(1), "m", "f", 1);
    fw_int(w, 8), fw_frame_end(w);
    fw_frame(w, ETW_EXCEPTION_FROM, 3500000, PID(1));
    fw_fun(w, "m", "f", 1);
    fw_tuple(w, 2), fw_atom(w, "error"), fw_atom(w, "badkey"), fw_frame_end(w);
    fw_call(w, 3600000, PID(1), "m", "f", 1);
    fw_int(w, 9), fw_frame_end(w);
    fw_frame(w, ETW_EXCEPTION_FROM, 3700000, PID(1));
    fw_fun(w, "m", "f", 1);
    fw_tuple(w, 2), fw_atom(w, "error"), fw_tag(w, ETW_T_CUT), fw_frame_end(w);
    fw_call(w, 3800000, PID(1), "m", "f", 1);
    w->flags |= ETW_F_ARITY, fw_frame_end(w);
    fw_frame(w, ETW_SEND, 4000000, PID(1));
    fw_pid(w, PID(2)), fw_atom(w, "hi"), fw_frame_end(w);
    fw_frame(w, ETW_RECEIVE, 5000000, PID(1));
    fw_atom(w, "hi"), w->flags |= ETW_F_MS, fw_pid(w, PID(2)), fw_frame_end(w);
    fw_frame(w, ETW_SPAWN, 6000000, PID(1));
    fw_pid(w, PID(3)), fw_tuple(w, 3), fw_atom(w, "w"), fw_atom(w, "run");
    fw_tag(w, ETW_T_LIST), fw_int(w, 1), fw_int(w, 2), fw_tag(w, ETW_T_END), fw_frame_end(w);
    fw_frame(w, ETW_OUT, 7000000, PID(2));
    mfa(w, "w", "loop", 3), fw_frame_end(w);
    fw_frame(w, ETW_GC_MINOR_END, 8000000, PID(2));
    fw_tag(w, ETW_T_LIST), fw_tuple(w, 2), fw_atom(w, "wordsize"), fw_int(w, 42), fw_tag(w, ETW_T_END), fw_frame_end(w);
    fw_frame(w, ETW_SEQ_TRACE, 9000000, PID(2));
    fw_int(w, 17), fw_tuple(w, 5), fw_atom(w, "send"), fw_tuple(w, 2), fw_int(w, 0), fw_int(w, 1);
    fw_pid(w, PID(2)), fw_pid(w, PID(3)), fw_atom(w, "ho"), fw_frame_end(w);
    fw_frame(w, ETW_EXIT, 9500000, PID(2));
    fw_atom(w, "normal"), fw_frame_end(w);
}

/* Returns a line for each shown event: its letter and what the format says, or the view json. */
static const char *shown(const char *format, const char *filter, bool json)
{
    static const char probes[] = "m:f(_) -> return, caller, stack, dump, msg(note)\nrecv(_)\n";
    static struct buf got;
    const struct look look = {.time = TIME_RELATIVE, .format = format};
    struct fw w = {0};

    play(&w);
    shown_by(&w, probes, filter, json ? "json" : "text", &look, &got);
    return got.data;
}

/* Writes `letter=value|` for each event that has the field. */
static void field_values(const char *name, struct buf *ret)
{
    char format[64];
    const char *letter = scene;

    snprintf(format, sizeof(format), "{%s}", name);
    for (const char *line = shown(format, NULL, false), *end; (end = strchr(line, '\n')); line = end + 1, letter++)
        if (end > line)
            buf_printf(ret, "%c=%.*s|", *letter, (int)(end - line), line);
    buf_cstr(ret);
}

/* The letters of the events that a filter shows. */
static void letters(const char *filter, char *ret)
{
    size_t n = 0;

    for (const char *line = shown("{mono_ns}", filter, false), *end; (end = strchr(line, '\n')); line = end + 1) {
        static const long times[] = {1000000, 2000000, 3000000, 3500000, 3600000, 3700000, 3800000,
                                     4000000, 5000000, 6000000, 7000000, 8000000, 9000000, 9500000};
        for (size_t i = 0; i < ARRAY_LEN(times); i++)
            if (strtol(line, NULL, 10) == times[i])
                ret[n++] = scene[i];
    }
    ret[n] = 0;
}

#ifndef SCHEMA
#error "the build defines the path of schema.json"
#endif

/* The schema has each member. */
static void check_schema(const struct property_row *row)
{
    char member[40], line[1000];
    bool found = false;
    FILE *f = fopen(SCHEMA, "r");

    snprintf(member, sizeof(member), "\"%s\": {", row->name);
    while (f && !found && fgets(line, sizeof(line), f))
        found = strstr(line, member);
    if (f)
        fclose(f);
    ok(found, "schema.json has %s", row->name);
}

/* `NAME == NAME` holds for the events that have the property, and shows the calls of results that have it. */
static void check_where(const struct property_row *row, const char *values)
{
    char filter[200], got[16], want[16];
    size_t n = 0;

    for (const char *l = scene; *l; l++) {
        char key[] = {'|', *l, '=', 0};
        bool has = values[0] == *l || strstr(values, key);
        key[1] = *l == 'c' ? 'r' : *l == 'C' ? 'x' : *l == 'Y' ? 'X' : '-';
        bool later = row->uses & PROPERTY_NEEDS_RETURN && strstr(values, key);
        bool part = !strcmp(row->name, "args") && strchr("Zpogqe", *l); /* undecided; the parts of an event */
        if (has || later || part || (row->uses & PROPERTY_NEEDS_RETURN && values[0] == key[1]))
            want[n++] = *l;
    }
    want[n] = 0;
    snprintf(filter, sizeof(filter), "%s == %s", row->name, row->name);
    letters(filter, got);
    is_text(got, want, row->name);
    if (row->type != WT_ANY && row->type != WT_INT)
        return;
    snprintf(filter, sizeof(filter), !strcmp(row->name, "args") ? "%s == [%.*s]" : "%s == %.*s", row->name,
             (int)strcspn(values + 2, "|"), values + 2);
    letters(filter, got);
    ok(strchr(got, *values) != NULL, "%s shows %c", filter, *values);
}

static void check_json(const struct property_row *row, const char *values)
{
    static const uint8_t kinds[] = {ETW_CALL,           ETW_RETURN_FROM, ETW_CALL,
                                    ETW_EXCEPTION_FROM, ETW_CALL,        ETW_EXCEPTION_FROM,
                                    ETW_CALL,           ETW_SEND,        ETW_RECEIVE,
                                    ETW_SPAWN,          ETW_OUT,         ETW_GC_MINOR_END,
                                    ETW_SEQ_TRACE,      ETW_EXIT};
    const char *line = strchr(shown(NULL, NULL, true), '\n') + 1, *end; /* the first line says "attached" */
    char member[40];

    snprintf(member, sizeof(member), "\"%s\":", row->name);
    for (size_t i = 0; i < ARRAY_LEN(kinds) && (end = strchr(line, '\n')); i++, line = end + 1) {
        char key[] = {'|', scene[i], '=', 0};
        bool has = values[0] == scene[i] || strstr(values, key);
        const char *found = strstr(line, member);
        if (has && !(row->events >> kinds[i] & 1))
            ok(false, "%s: properties.def lists the kind of %c", row->name, scene[i]);
        bool in_args = scene[i] == 'p' && !strcmp(row->name, "a"); /* JSON has the arguments of a spawn instead */
        if (has && !in_args && (row->json >> kinds[i] & 1 || row->uses & PROPERTY_HEAD) && !(found && found < end))
            ok(false, "%s is a member of %c in JSON", row->name, scene[i]);
    }
}

int main(void)
{
    for (size_t i = 0; i < PROPERTIES; i++) {
        const struct property_row *row = &property_rows[i];
        const char *want = NULL;
        struct buf got = {0};
        for (size_t k = 0; k < ARRAY_LEN(wanted); k++)
            if (!strcmp(wanted[k].name, row->name))
                want = wanted[k].values;
        if (!want) {
            ok(false, "this test has a line for the property %s", row->name);
            continue;
        }
        ok(row->uses & PROPERTY_FIELD && *row->doc, "%s is a field and has a description", row->name);
        field_values(row->name, &got);
        size_t len = strlen(want);
        if (len && want[len - 1] != '|' && strlen(got.data) > len)
            got.data[len] = 0; /* the rest is not compared */
        is_text(got.data, want, row->name);
        buf_clear(&got);
        field_values(row->name, &got);
        if (row->uses & PROPERTY_WHERE)
            check_where(row, got.data);
        check_json(row, got.data);
        if (row->json || row->uses & PROPERTY_HEAD)
            check_schema(row);
        buf_release(&got);
    }
    is_text(shown("{args[1]}", "args[1] == 7", false), "7\n7\n\n",
            "args[1] is a field, and undecided if it was not captured");
    is_text(shown("{args[0]}", NULL, false), "unknown field 'args[0]'", "arguments count from 1");
    is_text(shown("{msg[1]}", NULL, false), "unknown field 'msg[1]'", "only args has elements");
    return tap_end();
}
