/*
 * What travels from a traced node to etrace, and what a recording holds: the only header both sides include.
 *
 * A *frame* is one event as bytes. A *batch* is what the owner process sends at once: sections of frames, one section
 * for each ring that has something, in front of them perhaps one made by the owner itself. A recording is a file header
 * and then batches, each in a block with a checksum. All integers are little-endian and may stand unaligned.
 *
 * Decoding needs the state of a ring (last tick, last tracee, the names defined so far), so the sections of a ring must
 * be read in the order of the batches, none left out. A reader trusts nothing: every length is checked against what is
 * left, every id against what was defined.
 */
#ifndef ETRACE_WIRE_H
#define ETRACE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define ETW_VERSION 1

/* ---- messages of the owner: one binary each; the first byte says what it is ------------------------------------- */

enum {
    ETW_MSG_BATCH = 'B', /* a batch */
    ETW_MSG_REPLY = 'R', /* u32 id of the request, then one term in the external term format */
    ETW_MSG_WAITS = 'W', /* before the first answer: the name of the process of the node that is now asked, as one term */
    ETW_MSG_PROGRESS = 'P', /* the request that is worked on goes on; then one term: {Done, All} functions */
    ETW_MSG_GONE = 'G',  /* the last message: session, module and files are gone; then one term: the reason */
};

#define ETW_MAX_BATCH (1u << 20) /* with its header; larger ones are refused */
/* What may be on its way to a client: the largest batch while the one before it is shown. */
#define ETW_MAX_CREDIT (2u << 20)

/* ---- the most that a session is asked for ------------------------------------------------------------------------ */

#define ETW_MAX_SIZE (256u << 10) /* bytes of an event's terms: a batch has room for two */
#define ETW_MAX_DEPTH 64u         /* containers within each other */
#define ETW_MAX_ITEMS (1u << 20)  /* of a container */
#define ETW_MAX_KEYS 64           /* names of what is redacted */
#define ETW_MAX_KEY_BYTES 31

/* ---- a batch ---------------------------------------------------------------------------------------------------- */

#define ETW_BATCH_MAGIC 0x42575445u /* "ETWB" */

/* Why an event that the VM offered was not sent. Counted for each ring, exactly. */
enum etw_loss {
    ETW_LOST_RING,  /* the ring was full: the client reads too slowly */
    ETW_LOST_RATE,  /* over --rate; of a call with its result, if it has one */
    ETW_LOST_GUARD, /* a guard had closed the gate (time budget, memory, outstanding returns) */
    ETW_LOST_NORING, /* no ring was left for this thread */
    ETW_LOST_QUEUE, /* the fallback tracer's mailbox was over its cap */
    ETW_LOST_HALF,  /* over --rate, which was asked for call and result apart: perhaps the one came without the other */
    ETW_LOST_SPARE2,
    ETW_LOST_SPARE3,
    ETW_LOSSES
};

enum {
    ETW_BATCH_MORE = 1, /* the rings hold more than fitted */
    ETW_BATCH_LAST = 2, /* the session is destroyed and every ring is empty */
};

/*
 * A frame's tick becomes nanoseconds by interpolation between this batch's pair (tick, mono_ns) and the previous one's.
 * Every frame whose tick is at most `watermark` is in this batch or an earlier one, so what is held back until the
 * watermark has passed it comes out in time order, and the events of one process in their own order whatever happens.
 */
struct etw_batch {
    uint32_t magic, bytes; /* bytes of the whole batch with this header */
    uint64_t seq;          /* 1, 2, 3, … */
    uint64_t tick;
    int64_t mono_ns; /* erlang:monotonic_time(nanosecond), which may be negative */
    int64_t wall_ns; /* the wall clock at mono_ns, since 1970 */
    uint64_t watermark;
    uint32_t sections, flags;
};

#define ETW_META_RING 0xffffffffu /* the section that the owner made: of itself, and names */
#define ETW_SYSTEM_RING 4095u     /* the section of the process that hears the node's system events */

struct etw_section {
    uint32_t ring, bytes; /* bytes of the frames behind this header */
    uint64_t seen;        /* events offered by the VM to this ring's thread since the session began: sent, to be sent, or lost */
    uint64_t lost[ETW_LOSSES]; /* of these, since the session began */
};

/* ---- a frame ---------------------------------------------------------------------------------------------------- */

/*
 * u32 head: bytes of the whole frame (20 bits), kind (6 bits), flags (6 bits)
 * u32 ticks since the previous frame of this ring (0 with ETW_F_TICK)
 * u64 tick           only with ETW_F_TICK
 * u64 tracee         only with ETW_F_TRACEE; else the same as in the ring's previous frame
 * u64 tick           only with ETW_F_BEGAN: of a call that waited for its result, which comes next; the frame's own tick is later
 * function           only for kinds that have one (event_kinds.def)
 * terms              as many as fit the kind (event_kinds.def), then the match specification's result with ETW_F_MS
 */
#define ETW_BYTES_BITS 20
#define ETW_KIND_BITS 6
#define ETW_HEAD(bytes, kind, flags) \
    ((uint32_t)(bytes) | (uint32_t)(kind) << ETW_BYTES_BITS | (uint32_t)(flags) << (ETW_BYTES_BITS + ETW_KIND_BITS))
#define ETW_HEAD_BYTES(head) ((head) & ((1u << ETW_BYTES_BITS) - 1))
#define ETW_HEAD_KIND(head) ((head) >> ETW_BYTES_BITS & ((1u << ETW_KIND_BITS) - 1))
#define ETW_HEAD_FLAGS(head) ((head) >> (ETW_BYTES_BITS + ETW_KIND_BITS))

enum {
    ETW_F_TICK = 1,
    ETW_F_TRACEE = 2,
    ETW_F_MS = 4,
    ETW_F_CUT = 8,    /* something of a term was left out */
    ETW_F_ARITY = 16, /* a call without its arguments */
    ETW_F_BEGAN = 32, /* a call that was sent when its result had decided that it is shown */
    ETW_F_DOUBT = 32, /* of what is no call: something was lost before it that is told later; in what the client keeps (alone.h) */
};

/* A tracee, and a local pid or port as a term: the number in the low 28 bits (pids) and the serial above; ports: the number. */
#define ETW_TRACEE_PORT (UINT64_C(1) << 63)
#define ETW_PID_NUMBER(data) ((uint32_t)((data) & 0x0fffffff))
#define ETW_PID_SERIAL(data) ((uint32_t)((data) >> 28))

/*
 * A function: u16 id of the pair (module, function), u8 arity. With ETW_DEF in the id the pair is defined here (anew):
 * u16 bytes of the module's name, u16 bytes of the function's, both names in UTF-8. ETW_NO_FUNCTION: none (return_to undefined).
 */
#define ETW_DEF 0x8000u
#define ETW_NO_FUNCTION 0x7fffu
#define ETW_FUNCTIONS 1024 /* ids per ring */
#define ETW_ATOMS 4096

/* Kinds: numbers are for ever, they stand in recordings. The table with layouts is cli/events/event_kinds.def. */
enum etw_kind {
    ETW_CALL = 1,
    ETW_RETURN_FROM = 2,
    ETW_EXCEPTION_FROM = 3,
    ETW_RETURN_TO = 4,
    ETW_SEND = 5,
    ETW_SEND_NOPROC = 6, /* send_to_non_existing_process */
    ETW_RECEIVE = 7,
    ETW_SPAWN = 8,
    ETW_SPAWNED = 9,
    ETW_EXIT = 10,
    ETW_REGISTER = 11,
    ETW_UNREGISTER = 12,
    ETW_LINK = 13,
    ETW_UNLINK = 14,
    ETW_GETTING_LINKED = 15,
    ETW_GETTING_UNLINKED = 16,
    ETW_OPEN = 17,
    ETW_CLOSED = 18,
    ETW_IN = 19,
    ETW_OUT = 20,
    ETW_IN_EXITING = 21,
    ETW_OUT_EXITING = 22,
    ETW_OUT_EXITED = 23,
    ETW_GC_MINOR_START = 24,
    ETW_GC_MINOR_END = 25,
    ETW_GC_MAJOR_START = 26,
    ETW_GC_MAJOR_END = 27,
    ETW_GC_MAX_HEAP_SIZE = 28,
    ETW_SEQ_TRACE = 29,
    ETW_SYSTEM = 30, /* terms: the tag (an atom), the info */

    ETW_LOST = 48,   /* u64 lost[ETW_LOSSES], the ring's counters at this place */
    ETW_HELLO = 49,  /* owner: one map with binaries and atoms as keys' values, see etrace_tracer.erl */
    ETW_NAME = 50,   /* owner: the tracee of this frame is called: atom (registered) or binary (label, initial call) */
    ETW_NOTICE = 51, /* owner: a tag (atom) and details: rearmed, guard, limit, fallback, … */
    ETW_TALLY = 52,  /* owner: a function, then struct etw_tally and its buckets: events that were counted and not sent */
    ETW_TICK = 56,   /* owner: nothing; it makes a batch, so that its watermark comes */
    ETW_DOWN = 57,   /* in no frame: a node is traced no longer, and it is again */
    ETW_UP = 58,
    ETW_KINDS = 64
};

/*
 * What was added to a function's figures since its last tally: calls, their results and their durations, counted on the node.
 * Behind it stand the buckets that grew, as (bucket, by how much).
 */
struct etw_tally {
    uint64_t events; /* calls, and results whose call was not seen */
    uint64_t seen;   /* calls and results: what would have been frames */
    uint64_t errors; /* results that are exceptions */
    uint64_t timed, total_ns, max_ns; /* max: of all so far */
    int64_t open;    /* calls that have not returned, of those that report it */
    int64_t filtered; /* calls and results that the filter hides, and calls whose result will decide: may grow less */
    uint32_t buckets, spare;
};

struct etw_bucket {
    uint32_t bucket, count;
};

/* Durations in buckets, eight to each doubling: a percentile is right within six percent. */
#define ETW_STEPS 8
#define ETW_BUCKETS (44 * ETW_STEPS)

static inline uint32_t etw_bucket_of(uint64_t ns)
{
    if (ns < ETW_STEPS)
        return (uint32_t)ns;
    uint32_t power = 63u - (uint32_t)__builtin_clzll(ns);
    uint32_t bucket = (power - 2) * ETW_STEPS + (uint32_t)(ns >> (power - 3) & (ETW_STEPS - 1));
    return bucket < ETW_BUCKETS ? bucket : ETW_BUCKETS - 1;
}

/* ---- a filter that the node applies to what it counts, or sends ------------------------------------------------------------ */

/*
 * A condition on calls in postfix order, from the client: a test adds its value, an operator takes its operands' and adds its
 * own, one is left. It has the meaning of `where`: what a call's result will decide is not known before it comes; of a result
 * without a duration or a class the test of it fails, and the whole with it, as a guard does.
 */
enum etw_filter_what {
    ETW_FILTER_DUR, ETW_FILTER_SIZE, ETW_FILTER_CLASS, ETW_FILTER_NOT, ETW_FILTER_AND, ETW_FILTER_OR, ETW_FILTER_XOR, ETW_FILTER_WHATS
};
enum etw_filter_compare { ETW_FILTER_GT, ETW_FILTER_GE, ETW_FILTER_LT, ETW_FILTER_LE, ETW_FILTER_EQ, ETW_FILTER_NE, ETW_FILTER_COMPARES };
enum etw_class { ETW_CLASS_ERROR, ETW_CLASS_EXIT, ETW_CLASS_THROW, ETW_CLASSES };

struct etw_filter_step {
    uint8_t what, compare;
    uint16_t spare1;
    uint32_t spare2;
    int64_t value; /* of a test: nanoseconds, bytes of the frame, enum etw_class */
};

#define ETW_FILTER_MOST 64 /* of a filter */
#define ETW_FILTER_DEEP 16 /* values that wait for their operator */

/* Whether steps from anywhere are a filter: operands for every operator, and one value in the end. */
static inline int etw_filter_valid(const struct etw_filter_step *steps, size_t n)
{
    size_t deep = 0;
    if (n > ETW_FILTER_MOST)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const struct etw_filter_step *s = &steps[i];
        int is_test = s->what < ETW_FILTER_NOT, is_class = s->what == ETW_FILTER_CLASS;
        size_t takes = is_test ? 0 : s->what == ETW_FILTER_NOT ? 1 : 2;
        if (s->what >= ETW_FILTER_WHATS || s->spare1 || s->spare2 || takes > deep)
            return 0;
        if (is_test ? s->compare >= ETW_FILTER_COMPARES : s->compare || s->value)
            return 0;
        if (is_class && (s->value < 0 || s->value >= ETW_CLASSES || s->compare < ETW_FILTER_EQ))
            return 0;
        deep += 1 - takes;
        if (deep > ETW_FILTER_DEEP)
            return 0;
    }
    return deep == 1;
}

static inline int etw_filter_measures(const struct etw_filter_step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (steps[i].what == ETW_FILTER_SIZE)
            return 1;
    return 0;
}

/* ---- a program that decides about calls --------------------------------------------------------------------------- */

/*
 * Which calls of a function are shown, where a few tests of their arguments say it: it means what the probe's match
 * specification means. The client ships it beside that as the term {Least, Most, [Step]}: for functions of that many
 * arguments. A step is {What, Value, N, Into, Yes, No, Term}: a test of a value; the arguments are the values from 0 on, and
 * what a test finds inside of one becomes the values from Into on. Where to go on when it holds, and when not: to a later
 * step, counted from 0; the step behind the last one is "shown", the one behind that "not". The first is where it begins.
 */
enum etw_step {
    ETW_STEP_SAME,  /* =:= Term */
    ETW_STEP_EQUAL, /* == Term */
    ETW_STEP_LESS,  /* < Term */
    ETW_STEP_MOST,  /* =< Term */
    ETW_STEP_IS,    /* N: enum etw_is */
    ETW_STEP_TUPLE, /* of N elements */
    ETW_STEP_CELL,  /* a list that is not empty: its head and its tail */
    ETW_STEP_FIELD, /* a map that has the key Term: its value */
    ETW_STEP_KINDS
};
enum etw_is {
    ETW_IS_ATOM, ETW_IS_BINARY, ETW_IS_BOOLEAN, ETW_IS_FLOAT, ETW_IS_FUNCTION, ETW_IS_INTEGER, ETW_IS_LIST, ETW_IS_MAP, ETW_IS_NUMBER,
    ETW_IS_PID, ETW_IS_PORT, ETW_IS_REFERENCE, ETW_IS_TUPLE, ETW_IS_KINDS
};

#define ETW_PROGRAM_STEPS 128
#define ETW_PROGRAM_VALUES 64
#define ETW_PROGRAM_ARITY 16   /* with more arguments a function has none */
#define ETW_PROGRAM_BYTES 8192 /* encoded: as bounded are the terms that arguments are compared with */

/* ---- a term ----------------------------------------------------------------------------------------------------- */

/*
 * One byte says what it is. A container that was not captured whole ends with ETW_T_CUT in the place of its next
 * element; a term that was not looked at is ETW_T_ELIDED. Nothing is longer than its frame.
 */
enum etw_tag {
    /* 0x00–0x7f: the integers 0 to 127 */
    ETW_T_INT16 = 0x80,
    ETW_T_INT32,
    ETW_T_INT64,
    ETW_T_BIGPOS, /* u16 n, n bytes of magnitude, the lowest first */
    ETW_T_BIGNEG,
    ETW_T_FLOAT,   /* a double */
    ETW_T_ATOM,    /* u16 id of this ring */
    ETW_T_ATOMDEF, /* u16 id, u16 bytes, name in UTF-8: defines (anew) and is the atom */
    ETW_T_ATOMTEXT, /* u16 bytes, name in UTF-8: an atom without an id */
    ETW_T_PID,     /* u64, local */
    ETW_T_PORT,    /* u64, local */
    ETW_T_TEXT,    /* u8 what (enum etw_text), u16 bytes: printed as it is (made safe): references, funs, remote pids, … */
    ETW_T_NIL,     /* [] */
    ETW_T_LIST,    /* elements, then ETW_T_END; or ETW_T_TAIL and one term; or ETW_T_CUT */
    ETW_T_END,
    ETW_T_TAIL,
    ETW_T_TUPLE,   /* u32 arity, elements (or some and ETW_T_CUT) */
    ETW_T_MAP,     /* u32 pairs, key value key value … (or some and ETW_T_CUT) */
    ETW_T_BIN,     /* u64 bytes of the binary, u32 bytes captured, these */
    ETW_T_BITS,    /* u8 bits used of the last byte (1–7, from the top), then as ETW_T_BIN */
    ETW_T_CUT,
    ETW_T_ELIDED,  /* some term */
    ETW_T_REDACTED, /* some term under a redacted key */
    ETW_T_STRING,  /* u16 n, n bytes: a proper list of n small integers 0–255 */
    ETW_T_TUPLE0 = 0xc0, /* 0xc0–0xdf: a tuple of 0–31 elements */
};

enum etw_text {
    ETW_TEXT_REF,
    ETW_TEXT_FUN,
    ETW_TEXT_PID,
    ETW_TEXT_PORT,
    ETW_TEXT_OTHER, /* what cannot be looked into: native records, long bit strings */
    ETW_TEXT_BIG,   /* an integer too large to capture */
};

/* ---- a recording ------------------------------------------------------------------------------------------------ */

#define ETW_FILE_MAGIC "\x89" "ETR\r\n\x1a\n"

struct etw_file {
    char magic[8];
    uint32_t version, bytes; /* bytes of this header */
    uint32_t flags, crc;     /* crc32c of this header with crc = 0 */
};

enum {
    ETW_BLOCK_BATCH = 1,
    ETW_BLOCK_FOOTER = 2, /* struct etw_footer */
    ETW_BLOCK_SPECS = 3,  /* what was asked for */
    ETW_BLOCK_NOTE = 4,   /* struct etw_note */
};

struct etw_block {
    uint32_t bytes; /* behind this header */
    uint16_t type, node; /* node: 0, 1, … when several were recorded into one file; a batch with seq 1 begins it anew */
    uint32_t crc, spare;   /* crc32c of type, node and the bytes */
};

/* Where several nodes are traced: what was known here of a node, between its batches. */
enum {
    ETW_NOTE_CLOCK = 1, /* from here on this host's wall clock is the node's monotonic time and value ns, give or take error */
    ETW_NOTE_MARK = 2,  /* its batches up to number value have waited long enough for those of other nodes */
    ETW_NOTE_DOWN = 3,  /* it is traced no longer: wall clock of this host; then text: why */
    ETW_NOTE_UP = 4,    /* it is again, soon: wall clock of this host; then its name */
};

struct etw_note {
    uint32_t what, spare;
    int64_t value, error;
};

struct etw_footer {
    uint64_t seen, shown, filtered, lost[ETW_LOSSES], truncated, incomplete;
};

#define ETW_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)
ETW_SIZE(struct etw_batch, 56);
ETW_SIZE(struct etw_section, 80);
ETW_SIZE(struct etw_tally, 72);
ETW_SIZE(struct etw_bucket, 8);
ETW_SIZE(struct etw_filter_step, 16);
ETW_SIZE(struct etw_file, 24);
ETW_SIZE(struct etw_block, 16);
ETW_SIZE(struct etw_note, 24);
ETW_SIZE(struct etw_footer, 104);

#endif
