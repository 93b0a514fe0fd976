/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which received messages are those that were sent, with the view sequence. */
#include "compiled.h"

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
    return tap_end();
}
