#include "filter.h"

enum value { NO, YES, LATER, FAILED };

uint32_t filter_steps;
static struct etw_filter_step steps[ETW_FILTER_MOST];

bool filter_set(const uint8_t *bytes, size_t n)
{
    struct etw_filter_step given[ETW_FILTER_MOST];
    size_t count = n / sizeof *given;
    if (n % sizeof *given || count > ETW_FILTER_MOST)
        return false;
    if (count) {
        __builtin_memcpy(given, bytes, n);
        if (!etw_filter_valid(given, count))
            return false;
        __builtin_memcpy(steps, given, n);
    }
    filter_steps = (uint32_t)count;
    return true;
}

bool filter_measures(void)
{
    return etw_filter_measures(steps, filter_steps);
}

static enum value compared(const struct etw_filter_step *s, int64_t with)
{
    switch ((enum etw_filter_compare)s->compare) {
    case ETW_FILTER_GT: return with > s->value;
    case ETW_FILTER_GE: return with >= s->value;
    case ETW_FILTER_LT: return with < s->value;
    case ETW_FILTER_LE: return with <= s->value;
    case ETW_FILTER_EQ: return with == s->value;
    default: return with != s->value;
    }
}

/*
 * In the order written: what decides, decides whatever comes behind; what fails, fails unless something before it decided. There
 * is no later and failed side by side: tests of the same event lack what they ask for in the same way.
 */
static enum value both(enum value a, enum value b, enum value decides)
{
    if (a == decides || a == FAILED)
        return a;
    return b == decides || b >= LATER ? b : a;
}

static enum value either(enum value a, enum value b)
{
    if (a >= LATER || b >= LATER)
        return a >= LATER ? a : b;
    return a != b;
}

/* Absent: the value of what the event does not have. */
static enum value value_of(uint64_t bytes, int64_t ns, enum etw_class class, enum value absent)
{
    enum value values[ETW_FILTER_DEEP] = {NO};
    unsigned n = 0; /* the places are taken modulo ETW_FILTER_DEEP: a filter that is being replaced may not be one */
#define TOP(k) values[(n - (k)) % ETW_FILTER_DEEP]
    for (uint32_t i = 0; i < filter_steps && i < ETW_FILTER_MOST; i++) {
        const struct etw_filter_step *s = &steps[i];
        switch ((enum etw_filter_what)s->what) {
        case ETW_FILTER_DUR: TOP(0) = ns < 0 ? absent : compared(s, ns); n++; break;
        case ETW_FILTER_SIZE: TOP(0) = compared(s, (int64_t)bytes); n++; break;
        case ETW_FILTER_CLASS: TOP(0) = class == ETW_CLASSES ? absent : compared(s, class); n++; break;
        case ETW_FILTER_NOT: TOP(1) = TOP(1) == NO ? YES : TOP(1) == YES ? NO : TOP(1); break;
        case ETW_FILTER_AND: n--; TOP(1) = both(TOP(1), TOP(0), NO); break;
        case ETW_FILTER_OR: n--; TOP(1) = both(TOP(1), TOP(0), YES); break;
        default: n--; TOP(1) = either(TOP(1), TOP(0)); break;
        }
    }
    return TOP(1);
#undef TOP
}

enum filter_verdict filter_call_slowly(uint64_t bytes, bool returns)
{
    enum value v = value_of(bytes, -1, ETW_CLASSES, returns ? LATER : FAILED);
    return v == LATER ? FILTER_WAITS : v == YES ? FILTER_SHOWS : FILTER_HIDES;
}

bool filter_result(uint64_t bytes, uint64_t ns, enum etw_class class)
{
    return value_of(bytes, ns < INT64_MAX ? (int64_t)ns : INT64_MAX, class, FAILED) == YES;
}
