/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how many calls of a process pass while nobody answers the question about its loop,
 * and until the answer has an effect. */
#include "owed.h"

#include "tap.h"

enum { LOOPER = 16, OTHER = 32, CALLS = 4000 };

static const struct stack_function loop = {.module = 11, .name = 75, .arity = 1};

static bool lives(void *env, uint64_t process)
{
    (void)env, (void)process;
    return true;
}

/* Makes a call of the loop as the callbacks do. True: it left a frame. */
static bool turn(uint64_t process)
{
    if (owed_halts(process) != OWED_FINE)
        return false;
    if (owed_more(NULL, process, &loop) != OWED_FINE)
        owed_pause(process, &loop, 0);
    return true;
}

/* Makes calls until the loop must not leave frames any more, and returns how many it left. */
static unsigned exhaust(uint64_t process)
{
    unsigned frames = 0;
    for (unsigned i = 0; i < CALLS; i++)
        frames += turn(process);
    return frames;
}

/* How many calls of other functions pass. */
static unsigned passes(uint64_t process)
{
    unsigned passed = 0;
    for (unsigned i = 0; i < CALLS; i++)
        passed += owed_halts(process) == OWED_FINE;
    return passed;
}

static void take_questions(void)
{
    struct stack_function f;
    uint64_t process;
    for (uint32_t at = 0; owed_question(&at, &process, &f); at++)
        ;
}

int main(void)
{
    owed_begin(lives);
    for (unsigned i = 0; i < OWED_ASK + OWED_WAITING - 2; i++)
        turn(LOOPER);
    ok(!owed_is_halted(LOOPER), "a process in question makes some calls before it is halted");
    turn(LOOPER);
    ok(owed_is_halted(LOOPER) && !owed_is_halted(OTHER), "then it is halted, and no other process");

    unsigned passed = passes(LOOPER);
    ok(passed > CALLS / (OWED_REJECTS + 1) / 2 && passed < CALLS / (OWED_REJECTS + 1) * 2,
       "some calls of other functions pass");
    ok(passes(OTHER) == CALLS, "all calls of other processes pass");

    ok(exhaust(LOOPER) == OWED_PASSED && passes(LOOPER) == 0,
       "no call passes after some calls of the loop have passed");

    owed_less(LOOPER, &loop);
    ok(!owed_is_halted(LOOPER) && passes(LOOPER) == CALLS, "all calls pass once the function has returned");
    ok(exhaust(LOOPER) == 1 && passes(LOOPER) == 0, "each return makes room for one call");

    take_questions();
    owed_answer(LOOPER, &loop, 32, false);
    ok(!owed_is_halted(LOOPER) && passes(LOOPER) == CALLS, "the answer ends the halt");
    unsigned frames = OWED_ASK + OWED_WAITING + OWED_PASSED - 1 + exhaust(LOOPER);
    ok(frames < 100 && passes(LOOPER) == 0, "a process leaves less than a hundred frames without a second answer");

    owed_halt(LOOPER, &loop);
    owed_end(&loop);
    frames += exhaust(LOOPER);
    ok(frames <= 100 && passes(LOOPER) == 0, "the verdict adds no more");
    ok(exhaust(OTHER) < 100 && owed_is_halted(OTHER),
       "another process in the loop is halted, too, until the worker has done its work");

    owed_release(&loop);
    ok(passes(LOOPER) == CALLS && passes(OTHER) == CALLS, "then all calls pass");
    ok(exhaust(LOOPER) == CALLS && !owed_is_halted(LOOPER) && !owed_is_halted(OTHER),
       "and the loop is not asked about again");
    owed_halt(OTHER, &loop);
    ok(passes(OTHER) == CALLS, "a halt that comes after the release rejects nothing");

    struct owed_count before, after;
    owed_begin(lives);
    exhaust(OTHER);
    owed_read(OTHER, &loop, &before);
    for (unsigned i = 0; i < 3; i++)
        owed_less(OTHER, &loop);
    owed_more(NULL, OTHER, &loop);
    ok(owed_read(OTHER, &loop, &after) && after.count == before.count - 2 && after.lowest == before.count - 3,
       "a look learns the lowest count since the look before");
    ok(owed_read(OTHER, &loop, &after) && after.lowest == after.count, "the next look does not learn it again");

    owed_begin(lives);
    for (unsigned i = 0; i < OWED_ASK + 1; i++)
        turn(LOOPER);
    owed_end(&loop);
    owed_clear();
    ok(exhaust(LOOPER) == CALLS && !owed_is_halted(LOOPER), "a new session does not wait for a worker that was killed");

    /* Beyond what the table can hold, the caller answers the questions. */
    owed_begin(lives);
    struct stack_function f = {.module = 11, .arity = 1};
    unsigned noted = 0, known = 0;
    while (noted < 5000 && (f.name = 1000 + 64 * noted, owed_end(&f)))
        noted++;
    for (unsigned i = 0; i < noted; i++) {
        f.name = 1000 + 64 * i;
        known += owed_ended(&f);
    }
    ok(noted >= 1000 && noted < 5000 && known == noted && !owed_ended(&loop), "a thousand functions may loop");
    for (unsigned i = 0; i < CALLS && !owed_is_halted(LOOPER); i++)
        turn(LOOPER);
    owed_halt(LOOPER, &loop);
    if (!owed_end(&loop))
        owed_answer(LOOPER, &loop, UINT32_MAX, true);
    ok(passes(LOOPER) == CALLS && exhaust(LOOPER) == CALLS, "a process in one more loop goes on");
    return tap_end();
}
