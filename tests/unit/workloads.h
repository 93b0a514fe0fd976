/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the events of busy programs, for benchmarks and for the tests that count allocations and instructions. A
 * workload writes one frame at a time into one ring.
 *
 *     w1  calls of one process: w:f(N, {some,tuple,[1,2,3]})
 *     w3  two processes send {ping,N} to each other and receive it
 *     w4  alternating calls and results of a server, each with a large state and a binary that are cut at 1 kB
 *     whole  a call with a map of 50 keys, each with a tuple and a float in it
 */
#ifndef ETRACE_WORKLOADS_H
#define ETRACE_WORKLOADS_H

#include "framewriter.h"

static void workload_calls(struct fw *w, uint64_t tick, int i)
{
    fw_call(w, tick, 84, "w", "f", 2);
    fw_int(w, 1000000 + i);
    fw_tuple(w, 3);
    fw_atom(w, "some");
    fw_atom(w, "tuple");
    fw_tag(w, ETW_T_LIST);
    fw_int(w, 1);
    fw_int(w, 2);
    fw_int(w, 3);
    fw_tag(w, ETW_T_END);
    fw_frame_end(w);
}

static void workload_messages(struct fw *w, uint64_t tick, int i)
{
    fw_frame(w, i & 1 ? ETW_RECEIVE : ETW_SEND, tick, 84 + (uint64_t)(i >> 1 & 1));
    if (!(i & 1))
        fw_pid(w, 84 + (uint64_t)(~i >> 1 & 1));
    fw_tuple(w, 2);
    fw_atom(w, "ping");
    fw_int(w, i);
    fw_frame_end(w);
}

/* A state of 200 keys that is cut after 50. */
static void workload_state(struct fw *w, int i)
{
    fw_map(w, 200);
    for (int key = 0; key < 50; key++) {
        fw_int(w, key);
        fw_tuple(w, 2);
        fw_atom(w, "item");
        fw_int(w, 100000 + i);
    }
    fw_tag(w, ETW_T_CUT);
}

static void workload_server(struct fw *w, uint64_t tick, int i)
{
    static const char bytes[64] = "a binary of a thousand bytes, of which sixty-four are to be seen";

    if (i & 1)
        fw_return(w, tick, 84, "w", "handle_call", 3);
    else
        fw_call(w, tick, 84, "w", "handle_call", 3);
    fw_tuple(w, i & 1 ? 3 : 2);
    fw_atom(w, i & 1 ? "reply" : "put");
    fw_bin_n(w, bytes, sizeof(bytes), 1000);
    if (!(i & 1)) {
        fw_tuple(w, 2);
        fw_pid(w, 85);
        fw_int(w, i);
    }
    workload_state(w, i);
    fw_frame_end(w);
}

/* A state like the one in the bench, but with 50 keys. */
static void workload_whole(struct fw *w, uint64_t tick, int i)
{
    fw_call(w, tick, 84, "w", "state", 1);
    fw_map(w, 50);
    for (int key = 1; key <= 50; key++) {
        fw_int(w, key);
        fw_tuple(w, 3);
        fw_atom(w, "item");
        fw_int(w, key + i);
        fw_float(w, 1.5 * key);
    }
    fw_frame_end(w);
}

struct workload {
    const char *name;
    void (*event)(struct fw *w, uint64_t tick, int i);
};

static const struct workload workloads[] = {{"w1", workload_calls},
                                            {"w3", workload_messages},
                                            {"w4", workload_server},
                                            {"whole", workload_whole}};

/* Makes a complete batch of ring 1. The next call reuses the memory. */
static struct str workload_batch(struct fw *w, const struct workload *what, uint64_t *tick, int events, uint32_t flags)
{
    fw_ring(w, 1);
    for (int i = 0; i < events; i++, *tick += 200)
        what->event(w, *tick, i);
    return fw_batch(w, *tick, (int64_t)*tick, *tick, flags);
}

#endif
