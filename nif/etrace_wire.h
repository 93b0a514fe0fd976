/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the bytes that a traced node sends to etrace and the bytes of a recording. Node and client both include this
 * header; they share no other.
 *
 * A *frame* is one event as bytes. A *batch* is one message of the owner process. It holds sections of frames: first
 * the owner's own section, if it has one, then one section for each ring that has news. A recording is a file header
 * followed by blocks; a block holds one batch and a checksum. All integers are little-endian and may be unaligned.
 *
 * A reader keeps state for each ring: the last tick, the last tracee, the names defined so far. It must read all
 * sections of a ring, in the order of the batches. It checks every length against the bytes that are left, and every id
 * against the ids defined so far.
 */
#ifndef ETRACE_WIRE_H
#define ETRACE_WIRE_H

#include <stddef.h>
#include <stdint.h>

/* ---- messages of the owner: one binary each; the first byte is the type ----------------------------------------- */

enum etw_message {
    ETW_MSG_BATCH = 'B', /* a batch */
    ETW_MSG_REPLY = 'R', /* u32 id of the request, then one term in the external term format */
    /*
     * The janitor, which loads the tracer, waits for a process of the node. One term: the name of that process. Sent
     * only before the first reply.
     */
    ETW_MSG_WAITS = 'W',
    ETW_MSG_PROGRESS = 'P', /* the worker is still busy with a request; then one term: {Done, All} functions */
    ETW_MSG_GONE = 'G',     /* the last message: session, module and files are gone; then one term: the reason */
};

#define ETW_MAX_BATCH (1u << 20) /* bytes including the header; a reader rejects larger batches */
/* The most bytes in flight to a client: two batches of the largest size, one that it shows and one that arrives. */
#define ETW_MAX_CREDIT (2u << 20)

/* ---- limits of a session's options ------------------------------------------------------------------------------- */

#define ETW_MAX_SIZE (256u << 10) /* bytes of an event's terms; two such events fit a batch */
#define ETW_MAX_DEPTH 64u         /* nested containers */
#define ETW_MAX_ITEMS (1u << 20)  /* elements of one container */
#define ETW_MAX_ROOTS 64          /* probes that are roots of `inside` */
#define ETW_MAX_KEYS 64           /* names of keys whose values are redacted */
#define ETW_MAX_KEY_BYTES 31

/* ---- a batch ---------------------------------------------------------------------------------------------------- */

#define ETW_BATCH_MAGIC 0x42575445u /* "ETWB" */

/* Why the node did not send an event that the VM offered. Each ring has an exact counter for each reason. */
enum etw_loss {
    ETW_LOST_RING,   /* the ring was full: the client reads too slowly */
    ETW_LOST_RATE,   /* over --rate; a call that is lost loses its result too */
    ETW_LOST_GUARD,  /* a guard stopped new events: a thread's time, memory, or too many owed results */
    ETW_LOST_NORING, /* the thread has no ring: all were taken */
    ETW_LOST_QUEUE,  /* the fallback tracer's mailbox was over its cap */
    ETW_LOST_HALF,   /* over --rate, checked for call and result separately: one may be sent without the other */
    /*
     * Not a loss: a ring of the flight recorder has overwritten the event. Section headers count these events, ETW_LOST
     * frames do not. The client also counts here the events of a snapshot that it ignores, because they are older than
     * what another ring still has (ETW_NOTICE `snapshot`).
     */
    ETW_LOST_OVERWRITTEN,
    /*
     * The event belongs to a request that is left out as a whole, because of the rate or a crowded ring (gate.h), or to
     * a root for which there is no room (inside.h).
     */
    ETW_LOST_REQUEST,
    ETW_LOSSES
};

enum {
    ETW_BATCH_MORE = 1, /* the rings still hold frames that did not fit */
    ETW_BATCH_LAST = 2, /* the session is destroyed and every ring is empty */
};

/*
 * The client converts a frame's tick to nanoseconds: it interpolates between the pairs (tick, mono_ns) of the previous
 * batch and this one. Every frame whose tick is at most `watermark` is in this batch or an earlier one. A client that
 * holds each frame back until the watermark passes its tick therefore sees all frames in time order. The events of one
 * process keep their order in any case.
 */
struct etw_batch {
    uint32_t magic, bytes; /* bytes: of the whole batch including this header */
    uint64_t seq;          /* 1, 2, 3, … */
    uint64_t tick;
    int64_t mono_ns; /* erlang:monotonic_time(nanosecond), which may be negative */
    int64_t wall_ns; /* the wall clock at mono_ns, since 1970 */
    uint64_t watermark;
    uint32_t sections, flags;
};

#define ETW_META_RING 0xffffffffu /* the owner's own section: names, notices, tallies */
#define ETW_SYSTEM_RING 4095u     /* the section of the process that receives the node's system events */

struct etw_section {
    uint32_t ring, bytes; /* bytes: of the frames that follow this header */
    /* Events that the VM reported to this ring's thread since the session began: sent, waiting in the ring, or lost. */
    uint64_t seen;
    uint64_t lost[ETW_LOSSES]; /* how many of `seen` were lost, by reason */
};

/* ---- a frame ---------------------------------------------------------------------------------------------------- */

/*
 * A frame:
 * u32 head: bytes of the whole frame (20 bits), kind (6 bits), flags (6 bits)
 * u32 ticks since the previous frame of this ring (0 with ETW_F_TICK)
 * u64 tick: only with ETW_F_TICK
 * u64 tracee: only with ETW_F_TRACEE; without it, the tracee of the ring's previous frame
 * u64 tick: only with ETW_F_BEGAN and ETW_F_KEPT: when the event happened; the first tick is when it was sent
 * the function: only in layouts that have one (enum etw_layout)
 * the terms of the kind (event_kinds.def), then the result of the match specification with ETW_F_MS
 */
#define ETW_BYTES_BITS 20
#define ETW_KIND_BITS 6
#define ETW_HEAD(bytes, kind, flags)                                                                                   \
    ((uint32_t)(bytes) | (uint32_t)(kind) << ETW_BYTES_BITS | (uint32_t)(flags) << (ETW_BYTES_BITS + ETW_KIND_BITS))
#define ETW_HEAD_BYTES(head) ((head) & ((1u << ETW_BYTES_BITS) - 1))
#define ETW_HEAD_KIND(head) ((head) >> ETW_BYTES_BITS & ((1u << ETW_KIND_BITS) - 1))
#define ETW_HEAD_FLAGS(head) ((head) >> (ETW_BYTES_BITS + ETW_KIND_BITS))

enum {
    ETW_F_TICK = 1,
    ETW_F_TRACEE = 2,
    ETW_F_MS = 4,
    ETW_F_CUT = 8,    /* part of a term was left out */
    ETW_F_ARITY = 16, /* a call without its arguments */
    ETW_F_KEPT = 16,  /* on other kinds: the event was kept until a later one decided to send it */
    ETW_F_BEGAN = 32, /* a call that was held until its result decided to send it */
    /*
     * On other kinds: events before this one were lost, and a later frame counts them. Only the client sets this flag
     * (rebatch.h).
     */
    ETW_F_DOUBT = 32,
};

/*
 * The bits of a tracee, and of a local pid or port as a term. A pid has its number in the low 28 bits and its serial
 * above them.
 */
#define ETW_TRACEE_PORT (UINT64_C(1) << 63)
#define ETW_PID_NUMBER(data) ((uint32_t)((data)&0x0fffffff))
#define ETW_PID_SERIAL(data) ((uint32_t)((data) >> 28))

/*
 * A function: u16 id of the pair (module, function), u8 arity. If ETW_DEF is set in the id, the frame defines or
 * redefines the pair: u16 bytes of the module's name, u16 bytes of the function's name, both names in UTF-8.
 * ETW_NO_FUNCTION: none (return_to undefined).
 */
#define ETW_DEF 0x8000u
#define ETW_NO_FUNCTION 0x7fffu
#define ETW_FUNCTIONS 1024 /* ids per ring */
#define ETW_ATOMS 4096

/*
 * The part of a frame after its head. For an event of the VM, the term is argv[3] of trace/5, and extra is its option
 * `extra`.
 */
enum etw_layout {
    ETW_LAYOUT_CALL, /* {M, F, Args | Arity}: the function, then as many terms as its arity, or none with ETW_F_ARITY */
    ETW_LAYOUT_RETURN,     /* {M, F, Arity}: the function, then extra */
    ETW_LAYOUT_RETURN_TO,  /* {M, F, Arity} | undefined: the function */
    ETW_LAYOUT_TERM,       /* the term */
    ETW_LAYOUT_EXTRA_TERM, /* extra, then the term */
    ETW_LAYOUT_TERM_EXTRA, /* the term, then extra */
    ETW_LAYOUT_TAG_TERM,   /* the trace tag, then the term */
    ETW_LAYOUT_LABEL,      /* argv[2], a label instead of a tracee, then the term: {What, Serial, From, To, Message} */
    ETW_LAYOUT_OWN,        /* the owner's terms */
    ETW_LAYOUT_LOST,       /* u64 lost[ETW_LOSSES], the ring's counters at this point */
    ETW_LAYOUT_TALLY,      /* the function, then struct etw_tally and its buckets */
    ETW_LAYOUT_NO_FRAME,   /* the client makes the event itself */
};

#define ETW_HAS_FUNCTION(layout)                                                                                       \
    ((layout) == ETW_LAYOUT_CALL || (layout) == ETW_LAYOUT_RETURN || (layout) == ETW_LAYOUT_RETURN_TO ||               \
     (layout) == ETW_LAYOUT_TALLY)

enum etw_kind {
#define KIND(name, number, tag, json, layout, first, second) ETW_##name = number,
#include "event_kinds.def"
};

#define ETW_KINDS 64

/*
 * How much the figures of a function grew since its last tally: its calls, their results and their durations, counted
 * on the node. The buckets that grew follow, each as a struct etw_bucket with the growth.
 */
struct etw_tally {
    uint64_t events;                  /* calls, and results whose call the node did not see */
    uint64_t seen;                    /* calls and results; without counting, each would have been a frame */
    uint64_t errors;                  /* results that are exceptions */
    uint64_t timed, total_ns, max_ns; /* max_ns: of all calls so far, not only since the last tally */
    int64_t open;                     /* calls whose return is traced and that have not returned */
    /*
     * Calls and results that the filter hides. If the result decides whether a call is shown, the call counts as hidden
     * until then. So the number in a tally may be negative.
     */
    int64_t filtered;
    uint32_t buckets;
    /*
     * 0: the NIF has counted the calls. Otherwise a counter of the VM has counted them; then only `events` and `seen`
     * are set, and `events` includes the calls that other tallies report. 1: the function is traced, too. 2, 3: the
     * function is only counted, and the number is an estimate (2) or exact (3).
     */
    uint32_t counted;
    uint64_t min_ns; /* like max_ns; missing in old recordings */
};
#define ETW_TALLY_OLD offsetof(struct etw_tally, min_ns)

struct etw_bucket {
    uint32_t bucket, count;
};

/*
 * How much the figures of one key grew since the last frame of this key (rows.h). The extremes are not a growth but the
 * current extremes. The buckets that grew follow: the buckets of the first value, then those of the next value.
 */
#define ETW_ROW_COUNTS 5
#define ETW_ROW_VALUES 3

struct etw_row_sum {
    uint64_t count;
    int64_t sum, least, most; /* least and most: 0 if no value was counted */
};

struct etw_row {
    int64_t counts[ETW_ROW_COUNTS];
    struct etw_row_sum values[ETW_ROW_VALUES];
    uint32_t buckets[ETW_ROW_VALUES]; /* the number of buckets of each value, which follow this struct */
    uint32_t spare;
};

/* Buckets of numbers, eight for each power of two: the error of a percentile is at most a sixteenth. */
#define ETW_STEPS 8

static inline uint32_t etw_any_bucket_of(uint64_t n)
{
    if (n < ETW_STEPS)
        return (uint32_t)n;
    uint32_t power = 63u - (uint32_t)__builtin_clzll(n);
    return (power - 2) * ETW_STEPS + (uint32_t)(n >> (power - 3) & (ETW_STEPS - 1));
}

/* The buckets of a node hold the numbers below ETW_BUCKETS_MOST. The last one also counts all larger durations. */
#define ETW_BUCKETS (44 * ETW_STEPS)
#define ETW_BUCKETS_MOST (UINT64_C(1) << 46)

static inline uint32_t etw_bucket_of(uint64_t n)
{
    uint32_t bucket = etw_any_bucket_of(n);
    return bucket < ETW_BUCKETS ? bucket : ETW_BUCKETS - 1;
}

/* Returns the least number in a bucket. */
static inline uint64_t etw_bucket_floor(uint64_t bucket)
{
    if (bucket < ETW_STEPS)
        return bucket;
    return (ETW_STEPS + bucket % ETW_STEPS) << (bucket / ETW_STEPS - 1);
}

/* ---- a filter for the calls that the node counts or sends -------------------------------------------------------- */

/*
 * The client sends a condition on calls in postfix order. A test pushes its value, an operator pops its operands and
 * pushes its own value, and exactly one value remains. The condition means the same as `where` in the client: a test of
 * the result is undecided until the result comes. If the result has no duration, no class or no value, the test of it
 * fails, and with it the whole condition, as in a guard; `or` fails only if both operands do.
 *
 * ETW_FILTER_RET tests the value that a call returned with a program (enum etw_step) that has it as its only argument.
 * An atom in these programs is {etrace_atom, Name}, with Name as a binary: the node may not have it yet, and then it
 * equals nothing.
 */
enum etw_filter_what {
    ETW_FILTER_DUR,
    ETW_FILTER_SIZE,
    ETW_FILTER_CLASS,
    ETW_FILTER_RET,
    ETW_FILTER_NOT,
    ETW_FILTER_AND,
    ETW_FILTER_OR,
    ETW_FILTER_XOR,
    ETW_FILTER_WHATS
};
enum etw_filter_compare {
    ETW_FILTER_GT,
    ETW_FILTER_GE,
    ETW_FILTER_LT,
    ETW_FILTER_LE,
    ETW_FILTER_EQ,
    ETW_FILTER_NE,
    ETW_FILTER_COMPARES
};
/* Flags: how the node encodes the events of `etrace requests`. */
enum etw_requests {
    ETW_REQUESTS = 1,        /* encode only what the views of requests read */
    ETW_REQUESTS_SHAPES = 2, /* encode requests without their data */
    ETW_REQUESTS_HASHES = 4, /* encode references by their hash, because they are compared only on this node */
    ETW_REQUESTS_SENT = 8,   /* all processes are traced, so every request is seen when it is sent */
};

/* The notice `asked` counts the calls that come to the patterns and guards, up to this number. */
#define ETW_ASKED_MOST 1000

/*
 * A part of a key, if the node counts events by keys (by.h): [What, Place, Element, ...], a term, or an element in
 * that term. The place is the number of an argument, counted from 1, or an enum etw_by_place. A value is the same with
 * ETW_BY_TERM, or with ETW_BY_BUCKETS for a histogram. The keys that come with the result of a call follow the other
 * keys.
 *
 * The frame of a row has the terms {ETW_ROW_BY, Part, ...} with a part for each key: {Term}, or {} if the event has no
 * such term. A frame without parts is the row of all other keys. The counts of a row are: the events; for each value,
 * the events without an integer; the calls whose key waits for a result.
 *
 * A result that no row can hold is a frame of its own: {ETW_ROW_BY_ONE, Part, ...} and {Calls, Value, ...}. Calls is 1
 * if the frame also counts the call, else 0. A value is {Term}, or {} if it is not counted with the result.
 */
enum etw_by {
    ETW_BY_TERM,
    ETW_BY_BUCKETS,
    ETW_BY_TAG, /* a simple term with the same tag */
    ETW_BY_ARITY,
    ETW_BY_MFA,
    ETW_BY_RESULT, /* the result of the match specification */
    ETW_BY_TRACEE, /* the part is {}, and the tracee of the frame is the process */
    ETW_BY_NOTHING,
    ETW_BY_KIND, /* the number of the event's kind; {}: a call */
    ETW_BY_WHATS
};
enum etw_by_place {
    ETW_BY_NO_PLACE,
    ETW_BY_RET = 256, /* this place and those up to ETW_BY_DUR come with the result of a call */
    ETW_BY_CLASS,
    ETW_BY_REASON,
    ETW_BY_DUR, /* the duration in nanoseconds; only for a value, not for a key */
    ETW_BY_MODULE,
    ETW_BY_FUNCTION,
    ETW_BY_MSG,
    ETW_BY_TO, /* the receiver of a message that is sent */
    ETW_BY_PLACES
};
static inline int etw_by_is_late(unsigned place)
{
    return place >= ETW_BY_RET && place <= ETW_BY_DUR;
}
#define ETW_BY_OPEN (1 + ETW_BY_VALUES) /* index of the count of calls whose key waits for a result */
/*
 * The default and the largest number of keys on a node. The figures of further keys are in the row of all other keys.
 */
#define ETW_BY_ROWS 4095
#define ETW_BY_ROWS_MOST 65535
#define ETW_BY_KEYS 8
#define ETW_BY_DEEP 6
#define ETW_BY_VALUES ETW_ROW_VALUES
#define ETW_ROW_BY 10
#define ETW_ROW_BY_ONE 11

enum etw_class { ETW_CLASS_ERROR, ETW_CLASS_EXIT, ETW_CLASS_THROW, ETW_CLASSES };

struct etw_filter_step {
    uint8_t what, compare;
    uint16_t spare1;
    uint32_t spare2;
    int64_t
        value; /* of a step that tests: nanoseconds, bytes of the frame, enum etw_class, or the number of a program */
};

#define ETW_FILTER_MOST 64 /* steps */
#define ETW_FILTER_DEEP 16 /* values on the stack */
#define ETW_FILTER_PROGRAMS 8

/*
 * Returns 1 if untrusted steps are a valid filter with `programs` programs: every operator has its operands, and one
 * value remains.
 */
static inline int etw_filter_valid(const struct etw_filter_step *steps, size_t n, unsigned programs)
{
    size_t deep = 0;
    if (n > ETW_FILTER_MOST)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const struct etw_filter_step *s = &steps[i];
        int is_test = s->what < ETW_FILTER_NOT, is_class = s->what == ETW_FILTER_CLASS,
            is_ret = s->what == ETW_FILTER_RET;
        size_t takes = is_test ? 0 : s->what == ETW_FILTER_NOT ? 1 : 2;
        if (s->what >= ETW_FILTER_WHATS || s->spare1 || s->spare2 || takes > deep)
            return 0;
        if (is_ret && (s->compare || s->value < 0 || s->value >= programs))
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

/* ---- a program that decides about calls -------------------------------------------------------------------------- */

/*
 * A program decides by a few tests of the arguments which calls of a function are shown. It has the meaning of the
 * probe's match specification. The client sends both; the program is the term {Least, Most, [Step]}, for functions with
 * Least to Most arguments.
 *
 * A step is {What, Value, N, Into, Yes, No, Term} and tests the value with the number Value. The arguments are the
 * values from 0 on. The parts that a test finds inside a value become the values from Into on. Yes and No are the next
 * step if the test holds or fails: always a later one, counted from 0. With S steps, the number S means "shown" and S +
 * 1 "not shown". The program starts at step 0.
 */
enum etw_step {
    ETW_STEP_SAME,  /* =:= Term */
    ETW_STEP_EQUAL, /* == Term */
    ETW_STEP_LESS,  /* < Term */
    ETW_STEP_MOST,  /* =< Term */
    ETW_STEP_IS,    /* N: enum etw_is */
    ETW_STEP_TUPLE, /* a tuple of N elements */
    ETW_STEP_CELL,  /* a nonempty list; finds its head and its tail */
    ETW_STEP_FIELD, /* a map with the key Term; finds its value */
    ETW_STEP_KINDS
};
enum etw_is {
    ETW_IS_ATOM,
    ETW_IS_BINARY,
    ETW_IS_BOOLEAN,
    ETW_IS_FLOAT,
    ETW_IS_FUNCTION,
    ETW_IS_INTEGER,
    ETW_IS_LIST,
    ETW_IS_MAP,
    ETW_IS_NUMBER,
    ETW_IS_PID,
    ETW_IS_PORT,
    ETW_IS_REFERENCE,
    ETW_IS_TUPLE,
    ETW_IS_KINDS
};

#define ETW_PROGRAM_STEPS 128
#define ETW_PROGRAM_VALUES 64
#define ETW_PROGRAM_ARITY 16   /* a function with more arguments gets no program */
#define ETW_PROGRAM_BYTES 8192 /* the most bytes of an encoded program, and so of the terms that it compares with */

/* ---- a term ----------------------------------------------------------------------------------------------------- */

/*
 * A term starts with one byte, its tag. A container that is not captured completely ends with ETW_T_CUT in the place of
 * its next element. ETW_T_ELIDED replaces a term that the encoder skipped. No term is longer than its frame.
 */
enum etw_tag {
    /* 0x00–0x7f: the integers 0 to 127 */
    ETW_T_INT16 = 0x80,
    ETW_T_INT32,
    ETW_T_INT64,
    ETW_T_BIGPOS, /* u16 n, n bytes of magnitude, lowest byte first */
    ETW_T_BIGNEG,
    ETW_T_FLOAT,    /* a double */
    ETW_T_ATOM,     /* u16 id of this ring */
    ETW_T_ATOMDEF,  /* u16 id, u16 bytes, name in UTF-8: an atom that also defines or redefines its id */
    ETW_T_ATOMTEXT, /* u16 bytes, name in UTF-8: an atom without an id */
    ETW_T_PID,      /* u64, local */
    ETW_T_PORT,     /* u64, local */
    /*
     * u8 what (enum etw_text), u16 bytes: shown as it is, control characters escaped: references, funs, remote pids, …
     */
    ETW_T_TEXT,
    ETW_T_NIL,  /* [] */
    ETW_T_LIST, /* elements, then ETW_T_END, or ETW_T_TAIL and one term, or ETW_T_CUT */
    ETW_T_END,
    ETW_T_TAIL,
    ETW_T_TUPLE, /* u32 arity, elements (or some and ETW_T_CUT) */
    ETW_T_MAP,   /* u32 pairs, key value key value … (or some and ETW_T_CUT) */
    ETW_T_BIN,   /* u64 bytes of the binary, u32 bytes captured, the captured bytes */
    ETW_T_BITS,  /* u8 bits used of the last byte (1–7, from the top), then as ETW_T_BIN */
    ETW_T_CUT,
    ETW_T_ELIDED,        /* replaces a term that is left out */
    ETW_T_REDACTED,      /* replaces the term of a redacted key */
    ETW_T_STRING,        /* u16 n, n bytes: a proper list of n small integers 0–255 */
    ETW_T_TUPLE0 = 0xc0, /* 0xc0–0xdf: a tuple of 0–31 elements */
};

enum etw_text {
    ETW_TEXT_REF,
    ETW_TEXT_FUN,
    ETW_TEXT_PID,
    ETW_TEXT_PORT,
    ETW_TEXT_OTHER, /* terms that no interface of the VM opens: native records, long bit strings and binaries */
    ETW_TEXT_BIG,   /* an integer too large to capture */
};

#define ETW_TEXT_BITS_END "/bits>>" /* the end of an ETW_TEXT_OTHER that begins with <<: it is no binary */

/* ---- a recording ------------------------------------------------------------------------------------------------ */

#define ETW_FILE_MAGIC                                                                                                 \
    "\x89"                                                                                                             \
    "ETR\r\n\x1a\n"

/* Version 1 has no compressed blocks. A file with a header of version 2 may contain blocks of both kinds. */
#define ETW_FILE_VERSION 2
#define ETW_MAX_BLOCK ETW_MAX_BATCH /* bytes, of `bytes` and of `whole`; a reader rejects larger blocks */

struct etw_file {
    char magic[8];
    uint32_t version, bytes; /* bytes of this header */
    uint32_t flags, crc;     /* crc32c of this header with crc = 0 */
};

enum etw_block_type {
    ETW_BLOCK_BATCH = 1,
    ETW_BLOCK_FOOTER = 2, /* struct etw_footer */
    ETW_BLOCK_SPECS = 3,  /* the probes */
    ETW_BLOCK_NOTE = 4,   /* struct etw_note */
    /* A reader that does not seek skips these. */
    ETW_BLOCK_CHECKPOINT = 5, /* struct etw_checkpoint; a reader can begin here instead of at the begin of the file */
    ETW_BLOCK_STATE = 6,      /* the state of one node; belongs to the checkpoint before it */
    ETW_BLOCK_INDEX = 7,      /* struct etw_index for each checkpoint, then struct etw_index_end; before the footer */
};

struct etw_block {
    uint32_t bytes;      /* that follow this header */
    uint16_t type, node; /* node: 0, 1, … in a recording of several nodes; a batch with seq 1 begins a new session */
    uint32_t crc;        /* crc32c of type, node, `whole` unless it is 0, and the bytes */
    uint32_t whole;      /* size of the block before compression with zstd; 0: the block is not compressed */
};

/* A note in a recording of several nodes: what the client knew about a node between its batches. */
enum etw_note_what {
    ETW_NOTE_CLOCK = 1, /* from here on the client's wall clock is the node's monotonic time + value, ± error (ns) */
    ETW_NOTE_MARK = 2, /* the node's batches up to number `value` need not wait for batches of other nodes any longer */
    ETW_NOTE_DOWN = 3, /* the client lost the node. value: the client's wall clock; then text: why */
    /* The client is about to trace the node again. value: the client's wall clock; then the node's name */
    ETW_NOTE_UP = 4,
};

struct etw_note {
    uint32_t what, spare;
    int64_t value, error;
};

/*
 * A checkpoint is this header, `nodes` times struct etw_resume, the request, and the names of functions. As many
 * blocks ETW_BLOCK_STATE follow. The state of a node is its state after its first `items` batches and notes (marks do
 * not count). With several nodes, a checkpoint may follow batches that are not in the state of their node. So a reader
 * begins `back` bytes before the checkpoint and skips the first `skip` items of each node.
 *
 * The states are in the form that events/state.h describes. Their layout may change: a reader uses only the layout
 * that it knows, and otherwise reads the recording from its beginning.
 */
#define ETW_CHECKPOINT_LAYOUT 1

struct etw_checkpoint {
    uint32_t layout, nodes;
    uint64_t run, back;          /* bytes to this block: from the begin of the run; from the place to resume */
    int64_t newest;              /* no event before the checkpoint has a later wall clock */
    int64_t first_key, first_ns; /* wall clock of the first event, as sent and as shown; INT64_MIN: none */
    uint32_t request_bytes, spare;
};

struct etw_resume {
    uint64_t items;
    uint32_t node, skip;
};

struct etw_index {
    uint64_t back; /* bytes between the checkpoint and the index block */
    int64_t newest;
};

#define ETW_INDEX_MAGIC 0x58525445u /* "ETRX" */

/* A footer that is not compressed follows, so a reader finds the footer and the index from the end of the file. */
struct etw_index_end {
    uint64_t run;          /* bytes between the begin of the run and the index block */
    uint32_t bytes, magic; /* bytes: of the contents of the block */
};

struct etw_footer {
    uint64_t seen, shown, filtered, lost[ETW_LOSSES], truncated, incomplete;
};

#define ETW_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)
ETW_SIZE(struct etw_batch, 56);
ETW_SIZE(struct etw_section, 80);
ETW_SIZE(struct etw_tally, 80);
ETW_SIZE(struct etw_bucket, 8);
ETW_SIZE(struct etw_row, 152);
ETW_SIZE(struct etw_filter_step, 16);
ETW_SIZE(struct etw_file, 24);
ETW_SIZE(struct etw_block, 16);
ETW_SIZE(struct etw_note, 24);
ETW_SIZE(struct etw_checkpoint, 56);
ETW_SIZE(struct etw_resume, 16);
ETW_SIZE(struct etw_index, 16);
ETW_SIZE(struct etw_index_end, 16);
ETW_SIZE(struct etw_footer, 104);

#endif
