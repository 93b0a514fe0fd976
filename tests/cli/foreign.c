/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign: writes a recording to standard output. Every field of every block and frame that carries text has text that
 * would steer a terminal, forge a line, or leave its quotes. All checksums are right. The program does not depend on
 * any view or filter.
 */
#include "framewriter.h"

#include "events/event.h"
#include "events/recfile.h"

#define LEAVES                                                                                                         \
    "PWN\x1b]0;PWNED\a\x1b[2J\r\nPWNED\t\b\xe2\x80\xae\xe2\x80\x8b\xe2\x80\xa8\xef\xbb\xbf\xc2\x9b"                    \
    "31m\xff\xc0\x80\"'`,;<>&\\$(x){}]]></script><script>owned=1</script>"

static const char evil[] = LEAVES;
static const char *const modules[] = {LEAVES, "Elixir." LEAVES, "shop"};

static struct fw w;
static uint64_t now = 1000;

static void block(unsigned type, unsigned node, struct str bytes)
{
    struct buf b = {0};

    recfile_block(&b, type, node, bytes);
    fwrite(b.data, 1, b.len, stdout);
    buf_release(&b);
}

static void put_batch(unsigned node, uint32_t flags)
{
    block(ETW_BLOCK_BATCH, node, fw_batch(&w, now, (int64_t)now, now, flags));
}

/* A fixed part, and text after it. */
static void put_with_text(unsigned type, unsigned node, const void *bytes, size_t len)
{
    struct buf b = {0};

    buf_add(&b, bytes, len);
    buf_puts(&b, evil);
    block(type, node, buf_view(&b));
    buf_release(&b);
}

static void put_note(unsigned node, uint32_t what)
{
    struct etw_note note = {.what = what, .value = INT64_C(1763663210000000000) + (int64_t)now};

    put_with_text(ETW_BLOCK_NOTE, node, &note, sizeof(note));
}

static void specs(void)
{
    static const char *const entries[][2] = {
        {"node", evil},
        {"option", evil},
        {evil, evil},
        {"let", "X=\"" LEAVES "\""},
        {"let", evil},
        {"hrl", evil},
        {"hrl", "-record('" LEAVES "', {'" LEAVES "'})."},
        {"number", evil},
        {"expr", evil},
        {"label", evil},
        {"expr", "_:_/1 -> return, caller, stack, msg(x)"},
        {"label", evil},
        {"expr", "'" LEAVES "':_ -> return"},
        {"label", evil},
        {"expr", "send(_, _)"},
        {"label", evil},
        {"expr", "recv(_)"},
    };
    struct buf file = {0}, text = {0};

    recfile_header(&file);
    fwrite(file.data, 1, file.len, stdout);
    for (size_t i = 0; i < ARRAY_LEN(entries); i++)
        recfile_spec_add(&text, entries[i][0], (struct str){entries[i][1], strlen(entries[i][1])});
    block(ETW_BLOCK_SPECS, 0, buf_view(&text));
    buf_release(&file);
    buf_release(&text);
}

/* ---- terms ---- */

static void location(void (*text)(struct fw *w, const char *text))
{
    fw_tag(&w, ETW_T_LIST);
    fw_tuple(&w, 2), fw_atom(&w, "file"), text(&w, evil);
    fw_tuple(&w, 2), fw_atom(&w, "line"), fw_int(&w, 3);
    fw_tag(&w, ETW_T_END);
}

static void place(bool arguments)
{
    fw_tuple(&w, 4), fw_atom(&w, evil), fw_atom(&w, evil);
    if (arguments)
        fw_tag(&w, ETW_T_LIST), fw_bin(&w, evil), fw_tag(&w, ETW_T_END);
    else
        fw_int(&w, 1);
    location(arguments ? fw_bin : fw_string);
}

static void struct_of(const char *name, const char *const *fields)
{
    unsigned n = 0;

    while (fields[n])
        n++;
    fw_map(&w, n + 1);
    fw_atom(&w, "__struct__"), fw_atom(&w, name);
    for (unsigned i = 0; i < n; i++) {
        fw_atom(&w, fields[i]);
        if (strstr(fields[i], "zone") || strstr(fields[i], "calendar") || strstr(fields[i], "source") ||
            strstr(fields[i], "opts"))
            fw_bin(&w, evil);
        else
            fw_int(&w, 1);
    }
}

enum { SHAPES = 24 };

/* One of the ways in which a term carries text. */
static void shape(unsigned n)
{
    static const char *const date_time[] = {"calendar",   "year",       "month",       "day",       "hour",
                                            "minute",     "second",     "microsecond", "time_zone", "zone_abbr",
                                            "utc_offset", "std_offset", NULL};
    static const char *const regex[] = {"source", "opts", "re_pattern", NULL};

    switch (n) {
    case 0:
        fw_atom(&w, evil);
        break;
    case 1:
        fw_atom_text(&w, modules[1]);
        break;
    case 2:
        fw_bin(&w, evil);
        break;
    case 3:
        fw_string(&w, evil);
        break;
    case 4:
        fw_bin_n(&w, evil, strlen(evil), 5000);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
        fw_text(&w, (enum etw_text)(n - 5), evil);
        break;
    case 11:
        fw_tag(&w, ETW_T_LIST), fw_atom(&w, evil), fw_bin(&w, evil), fw_tag(&w, ETW_T_TAIL), fw_bin(&w, evil);
        break;
    case 12:
        fw_map(&w, 2), fw_atom(&w, evil), fw_bin(&w, evil), fw_bin(&w, evil), fw_atom(&w, evil);
        break;
    case 13:
        fw_tuple(&w, 3), fw_atom(&w, evil), fw_atom(&w, evil), fw_tag(&w, ETW_T_LIST), fw_bin(&w, evil),
            fw_tag(&w, ETW_T_END);
        break;
    case 14:
        place(false);
        break;
    case 15:
        place(true);
        break;
    case 16:
        fw_tuple(&w, 2), fw_atom(&w, evil), fw_atom(&w, evil);
        break;
    case 17:
        fw_tag(&w, ETW_T_LIST), fw_tuple(&w, 2), fw_atom(&w, evil), place(false), fw_tag(&w, ETW_T_END);
        break;
    case 18:
        fw_tuple(&w, 5), fw_atom(&w, evil), fw_tuple(&w, 2), fw_int(&w, 1), fw_int(&w, 2);
        fw_atom(&w, evil), fw_atom(&w, evil), fw_bin(&w, evil);
        break;
    case 19: /* code points that hide, reorder and steer */
        fw_tag(&w, ETW_T_LIST), fw_int(&w, 'P'), fw_int(&w, 27), fw_int(&w, 0x202e), fw_int(&w, 0x9b),
            fw_int(&w, 0xfeff);
        fw_tag(&w, ETW_T_END);
        break;
    case 20:
        struct_of("Elixir.DateTime", date_time);
        break;
    case 21:
        struct_of("Elixir.Regex", regex);
        break;
    case 22:
        struct_of(modules[1], regex);
        break;
    default:
        fw_tag(&w, ETW_T_LIST), place(false), place(true), fw_tag(&w, ETW_T_END);
        break;
    }
}

/* ---- frames ---- */

/* A call here has one argument. */
static unsigned terms_of(unsigned kind)
{
    const struct event_kind *k = &event_kinds[kind];

    return k->terms[1].len ? 2 : k->terms[0].len || k->layout == ETW_LAYOUT_CALL;
}

/* Caller, stack and message, as the recorded expressions ask for them; or something else. */
static void collected(unsigned n)
{
    w.flags |= ETW_F_MS;
    if (n % 3 == 0) {
        shape(n);
        return;
    }
    fw_tuple(&w, 1), fw_tuple(&w, 3);
    place(false);
    fw_tag(&w, ETW_T_LIST), place(false), place(true), fw_tag(&w, ETW_T_END);
    shape(n);
}

static void frame(unsigned kind, unsigned n)
{
    fw_frame(&w, kind, now += 100, 1 + n % 3);
    if (ETW_HAS_FUNCTION(event_kinds[kind].layout))
        fw_fun(&w, modules[n % ARRAY_LEN(modules)], n % 5 ? evil : "f", 1);
    for (unsigned i = 0; i < terms_of(kind); i++) {
        if (event_kinds[kind].terms[i].type == EVENT_PROCESS && n % 2)
            fw_pid(&w, 2);
        else
            shape(n);
    }
    if (kind == ETW_CALL)
        collected(n);
    if (n % 4 == 0)
        w.flags |= ETW_F_CUT;
    fw_frame_end(&w);
}

/* The frames of the owner: about itself, processes and functions. */
static void own_frames(unsigned shapes)
{
    static const char *const keys[] = {"node", "otp", "erts", "arch", "encoding", "load_nif", evil};
    static const char *const tags[] = {"rearmed", "guard", "fallback", "lost", evil};
    struct etw_tally tally = {.events = 3, .seen = 3};

    fw_ring(&w, ETW_META_RING);
    fw_frame(&w, ETW_HELLO, now, 0);
    fw_map(&w, ARRAY_LEN(keys));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        fw_atom_text(&w, keys[i]), i % 2 ? fw_bin(&w, evil) : fw_atom_text(&w, evil);
    fw_frame_end(&w);
    for (unsigned i = 0; i < shapes; i++) {
        fw_frame(&w, ETW_NAME, now, 1 + i % 3);
        shape(i);
        fw_frame_end(&w);
    }
    for (size_t i = 0; i < ARRAY_LEN(tags) * shapes; i++) {
        fw_frame(&w, ETW_NOTICE, now, 0);
        fw_atom_text(&w, tags[i % ARRAY_LEN(tags)]);
        shape((unsigned)(i / ARRAY_LEN(tags)));
        fw_frame_end(&w);
    }
    fw_frame(&w, ETW_TALLY, now, 0);
    fw_fun(&w, evil, evil, 1);
    fw_raw(&w, &tally, sizeof(tally));
    fw_frame_end(&w);
    for (unsigned i = 0; i < 3; i++) {
        fw_frame(&w, ETW_NAME, now, 1 + i);
        fw_atom_text(&w, evil);
        fw_frame_end(&w);
    }
}

static void put_from(const char *ref)
{
    fw_tuple(&w, 2), fw_pid(&w, 2), fw_text(&w, ETW_TEXT_REF, ref);
}

/* A request to a server that runs a hostile module. All its processes have hostile names. */
static void request(unsigned n, bool answered)
{
    char ref[24];

    snprintf(ref, sizeof(ref), "#Ref<0.1.2.%u>", n);
    fw_frame(&w, ETW_RECEIVE, now += 100, 1);
    fw_tuple(&w, 3), fw_atom(&w, "$gen_call"), put_from(ref), fw_tuple(&w, 2), fw_atom(&w, evil), shape(n);
    fw_frame_end(&w);
    fw_call(&w, now += 100, 1, "gen_server", "try_handle_call", 4);
    fw_tuple(&w, 2), fw_tag(&w, ETW_T_ELIDED), fw_atom(&w, evil);
    fw_tuple(&w, 2), fw_atom(&w, evil), shape(n), put_from(ref), fw_tag(&w, ETW_T_ELIDED);
    fw_frame_end(&w);
    if (!answered)
        return;
    fw_frame(&w, ETW_SEND, now += 1000, 1);
    fw_pid(&w, 2), fw_tuple(&w, 2), fw_text(&w, ETW_TEXT_REF, ref), shape(n);
    fw_frame_end(&w);
}

static void requests(void)
{
    fw_ring(&w, 1);
    for (unsigned n = 0; n < SHAPES; n++)
        request(n, n % 4 < 3);
}

/* With every kind, or with calls alone. */
static void run_of(unsigned node, bool all)
{
    const unsigned last_kind = all ? ETW_LOST - 1 : ETW_CALL;

    fw_begin(&w);
    own_frames(all ? SHAPES : 1);
    put_batch(node, 0);
    requests();
    put_batch(node, 0);
    for (unsigned kind = ETW_CALL; kind <= last_kind; kind++) {
        if (!event_kinds[kind].tag)
            continue;
        fw_ring(&w, 1);
        for (unsigned n = 0; n < SHAPES; n++) {
            frame(kind, n);
            if (kind == ETW_RETURN_FROM || kind == ETW_EXCEPTION_FROM) /* each result has a call */
                frame(ETW_CALL, n), frame(kind, n);
        }
        if (kind == ETW_SEND)
            fw_lost(&w, now += 10, ETW_LOST_RING, 3);
        put_batch(node, 0);
    }
    put_batch(node, ETW_BATCH_LAST);
    fw_release(&w);
    w = (struct fw){0};
}

/* The types of JSON lines that are events. Names, counters of the node and ticks never become lines. */
static void put_types(void)
{
    for (unsigned kind = 0; kind < ETW_KINDS; kind++)
        if (event_kinds[kind].tag && kind != ETW_NAME && kind != ETW_TALLY && kind != ETW_ROW && kind != ETW_TICK)
            puts(event_kinds[kind].json);
}

/* foreign: writes the recording. foreign --types: prints the types of JSON lines. */
int main(int argc, char **argv)
{
    struct etw_footer footer = {0};

    if (argc > 1 && !strcmp(argv[1], "--types")) {
        put_types();
        return 0;
    }
    specs();
    for (unsigned node = 0; node < 2; node++) {
        put_note(node, ETW_NOTE_CLOCK);
        run_of(node, node == 0);
        put_note(node, ETW_NOTE_MARK);
        put_note(node, ETW_NOTE_DOWN);
        put_note(node, ETW_NOTE_UP);
        put_note(node, 99);
        run_of(node, false);
        put_note(node, ETW_NOTE_DOWN);
    }
    block(ETW_BLOCK_SPECS, 0, (struct str){evil, strlen(evil)});
    block(99, 0, (struct str){evil, strlen(evil)});
    block(ETW_BLOCK_FOOTER, 0, (struct str){(const char *)&footer, sizeof(footer)});
    return 0;
}
