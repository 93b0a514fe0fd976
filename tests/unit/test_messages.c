/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which received messages are those that were sent, with the view sequence. */
#include "compiled.h"
#include "fold/message_match.h"

static struct fw w;

static void begin(const char *name)
{
    fw_begin(&w);
    fw_hello(&w, 1, "shop@h1");
    fw_name(&w, 1, PID(2), name);
    fw_ring(&w, 1);
}

/* The caller appends the message and ends the frame. */
static void send_to_pid(uint64_t tick)
{
    fw_frame(&w, ETW_SEND, tick, PID(1)), fw_pid(&w, PID(2));
}

static void send_to_name(uint64_t tick, const char *name)
{
    fw_frame(&w, ETW_SEND, tick, PID(1)), fw_atom(&w, name);
}

static void receive(uint64_t tick)
{
    fw_frame(&w, ETW_RECEIVE, tick, PID(2));
}

/* The arrows of the diagram, one a line. */
static const char *arrows(void)
{
    static struct buf got;
    static const struct look look = {0};

    shown_by(&w, "send(_, _)\nrecv(_)\n", NULL, "sequence", &look, &got);
    w = (struct fw){0};
    const char *at = strstr(buf_cstr(&got), "    p");
    while (at && !strncmp(at, "    participant", 15))
        at = strchr(at, '\n') + 1;
    return at ? at : "";
}

/* Returns how many messages of the diagram were seen on both sides. */
static unsigned matches(void)
{
    unsigned n = 0;

    for (const char *at = arrows(); (at = strstr(at, "->>")); at++)
        n++;
    return n;
}

/* Many equal messages are received in the reverse order, so that the search would look at all others first. */
static void test_equal_messages(bool name, bool sender)
{
    const unsigned all = 3000;
    char to[16];

    fw_begin(&w);
    fw_hello(&w, 1, "shop@h1");
    for (unsigned i = 0; i < all && name; i++) {
        snprintf(to, sizeof(to), "store%u", i);
        fw_name(&w, 1, PID(10 + i), to);
    }
    fw_ring(&w, 1);
    for (unsigned i = 0; i < all; i++) {
        snprintf(to, sizeof(to), "store%u", i);
        fw_frame(&w, ETW_SEND, 2 + i, PID(sender ? 10000 + i : 1));
        if (name)
            fw_atom_text(&w, to);
        else
            fw_pid(&w, PID(sender ? 2 : 10 + i));
        fw_int(&w, 1), fw_frame_end(&w);
    }
    for (unsigned i = all; i-- > 0;) {
        fw_frame(&w, ETW_RECEIVE, 2 + 2 * all - i, PID(sender ? 2 : 10 + i));
        fw_int(&w, 1);
        if (sender)
            w.flags |= ETW_F_MS, fw_pid(&w, PID(10000 + i));
        fw_frame_end(&w);
    }
    is_number(matches(), all,
              name     ? "equal messages to many names"
              : sender ? "equal messages from many processes"
                       : "equal messages to many processes");
}

/* The oldest messages are dropped, and the view tells it. */
static void test_dropped(void)
{
    const unsigned more = 10;
    struct pt t = {0};

    begin("store");
    pt_open(&t, (const char *const[]){"perfetto", NULL}, &(struct look){0}, (struct pipeline_options){0});
    for (unsigned i = 0; i < MESSAGE_MATCH_MAX + more; i++) {
        send_to_pid(2), fw_int(&w, i), fw_frame_end(&w);
        if (i % 10000 == 0)
            pt_feed(&t, 0, fw_batch(&w, 2, 2, 2, 0)), fw_ring(&w, 1);
    }
    for (unsigned i = 0; i < 2 * more; i++)
        receive(3), fw_int(&w, i), fw_frame_end(&w);
    pt_feed(&t, 0, fw_batch(&w, 4, 4, 4, ETW_BATCH_LAST));
    pt_close(&t);
    ok(strstr(buf_cstr(&t.out[0]),
              "10 received messages may lack the arrow: more than 262144 messages were unreceived"),
       "the view tells that messages were dropped before they were received");
    pt_free(&t);
    fw_release(&w);
    w = (struct fw){0};
}

int main(void)
{
    char name[101], text[400];

    begin("store");
    send_to_pid(2), fw_tuple(&w, 2), fw_atom(&w, "put"), fw_int(&w, 1), fw_frame_end(&w);
    send_to_pid(3), fw_tuple(&w, 2), fw_atom(&w, "put"), fw_int(&w, 2), fw_frame_end(&w);
    receive(4), fw_tuple(&w, 2), fw_atom(&w, "put"), fw_int(&w, 2), fw_frame_end(&w);
    receive(5), fw_tuple(&w, 2), fw_atom(&w, "put"), fw_int(&w, 3), fw_frame_end(&w);
    is_text(arrows(), "    p1-)p2: {put,1}\n    p1->>p2: {put,2}\n    other-)p2: {put,3}\n",
            "an equal message was received");

    begin("store");
    send_to_pid(2), fw_tuple(&w, 3), fw_atom(&w, "put"), fw_bin_n(&w, "abc", 3, 9), fw_tag(&w, ETW_T_CUT),
        fw_frame_end(&w);
    receive(3), fw_tuple(&w, 3), fw_atom(&w, "put"), fw_bin(&w, "abcdefgh"), fw_int(&w, 1), fw_frame_end(&w);
    receive(4), fw_tuple(&w, 3), fw_atom(&w, "put"), fw_bin(&w, "abcdefghi"), fw_int(&w, 1), fw_frame_end(&w);
    is_text(arrows(),
            "    p1->>p2: {put,#lt;#lt;\"abc\"…+6 B#gt;#gt;,…+1}\n    other-)p2: "
            "{put,#lt;#lt;\"abcdefgh\"#gt;#gt;,1}\n",
            "a message that was cut earlier in the send is compared up to there");

    begin("store");
    send_to_pid(2), fw_tag(&w, ETW_T_LIST), fw_int(&w, 1), fw_int(&w, 200), fw_tag(&w, ETW_T_CUT), fw_frame_end(&w);
    receive(3), fw_string(&w, "\1\307\2"), fw_frame_end(&w);
    receive(4), fw_string(&w, "\1\310\2"), fw_frame_end(&w);
    is_text(arrows(), "    p1->>p2: [1,200,…]\n    other-)p2: [1,199,2]\n",
            "so is a list of bytes, in either encoding");

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    begin("store");
    send_to_pid(2), fw_bin_n(&w, text, 300, 399), fw_frame_end(&w);
    receive(3), fw_bin(&w, text), fw_frame_end(&w);
    ok(!strncmp(arrows(), "    p1->>p2: ", 13), "a cut after the compared beginning makes no difference");

    begin("Elixir.Shop");
    send_to_name(2, "shop"), fw_int(&w, 1), fw_frame_end(&w);
    send_to_name(3, "Elixir.Shop"), fw_int(&w, 1), fw_frame_end(&w);
    receive(4), fw_int(&w, 1), fw_frame_end(&w);
    is_text(arrows(), "    p1-)other: to shop: 1\n    p1->>p2: 1\n", "a message to a name went to the process with it");

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    begin(name);
    send_to_name(2, name), fw_int(&w, 1), fw_frame_end(&w);
    receive(3), fw_int(&w, 1), fw_frame_end(&w);
    ok(!strncmp(arrows(), "    p1->>p2: ", 13), "a long name, too");
    test_equal_messages(false, false);
    test_equal_messages(true, false);
    test_equal_messages(false, true);
    test_dropped();
    return tap_end();
}
