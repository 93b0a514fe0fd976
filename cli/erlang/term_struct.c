/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the structs that inspect/2 does not print by their fields: dates and times, ranges, sets, regular expressions,
 * versions, and structs of Decimal and Ecto. It reimplements the Inspect implementations because they exist only on the
 * node. A struct with unexpected fields is left to term_elixir.c, which prints its fields.
 */
#include "term_elixir.h"

#include "../ground/utf8.h"

const uint8_t *elixir_field(const struct elixir_struct *s, const char *name)
{
    const uint8_t *at = s->first;

    for (int64_t i = 0; i < s->pairs; i++) {
        const uint8_t *value = wire_skip(at);
        if (wire_is_atom(s->env, at, name))
            return value;
        at = wire_skip(value);
    }
    return NULL;
}

static bool term_struct_number(const struct elixir_struct *s, const char *name, int64_t least, int64_t most,
                               int64_t *ret)
{
    const uint8_t *at = elixir_field(s, name);

    return at && wire_int(at, ret) && *ret >= least && *ret <= most;
}

/* Returns true for a binary that was captured completely and is UTF-8. */
static bool captured_text(const uint8_t *at, struct raw *ret)
{
    uint64_t size;

    return at && wire_bin(at, ret, &size) && size == ret->len && utf8_valid(raw_view(*ret).at, ret->len);
}

static bool term_struct_is_nil(const struct elixir_struct *s, const uint8_t *at)
{
    return wire_is_atom(s->env, at, "nil");
}

/* ---- dates and times ---- */

struct moment {
    int64_t year, month, day, hour, minute, second, micro, digits;
};

static bool is_iso(const struct elixir_struct *s)
{
    const uint8_t *at = elixir_field(s, "calendar");

    return at && wire_is_atom(s->env, at, "Elixir.Calendar.ISO");
}

static bool read_date(const struct elixir_struct *s, struct moment *m)
{
    return is_iso(s) && term_struct_number(s, "year", -9999, 9999, &m->year) &&
           term_struct_number(s, "month", 1, 12, &m->month) && term_struct_number(s, "day", 1, 31, &m->day);
}

static bool read_time(const struct elixir_struct *s, struct moment *m)
{
    const uint8_t *at = elixir_field(s, "microsecond"), *first;
    uint32_t arity;

    return is_iso(s) && term_struct_number(s, "hour", 0, 23, &m->hour) &&
           term_struct_number(s, "minute", 0, 59, &m->minute) && term_struct_number(s, "second", 0, 59, &m->second) &&
           at && wire_tuple(at, &arity, &first) == 2 && arity == 2 && wire_int(first, &m->micro) && m->micro >= 0 &&
           m->micro <= 999999 && wire_int(wire_skip(first), &m->digits) && m->digits >= 0 && m->digits <= 6;
}

static void put_date(struct buf *to, const struct moment *m)
{
    buf_printf(to, "%s%04lld-%02lld-%02lld", m->year < 0 ? "-" : "", (long long)(m->year < 0 ? -m->year : m->year),
               (long long)m->month, (long long)m->day);
}

static void put_time(struct buf *to, const struct moment *m)
{
    buf_printf(to, "%02lld:%02lld:%02lld", (long long)m->hour, (long long)m->minute, (long long)m->second);
    if (m->digits) {
        buf_printf(to, ".%06lld", (long long)m->micro);
        to->len -= (size_t)(6 - m->digits);
    }
}

static bool put_datetime(struct buf *to, const struct elixir_struct *s, const struct moment *m)
{
    int64_t utc, std;
    struct raw zone, abbr;

    if (!term_struct_number(s, "utc_offset", -86400, 86400, &utc) ||
        !term_struct_number(s, "std_offset", -86400, 86400, &std) ||
        !captured_text(elixir_field(s, "time_zone"), &zone) || !captured_text(elixir_field(s, "zone_abbr"), &abbr))
        return false;
    bool plain = !utc && !std && raw_is(zone, "Etc/UTC");
    int64_t off = utc + std, size = off < 0 ? -off : off;
    buf_puts(to, plain ? "~U[" : "#DateTime<");
    put_date(to, m);
    buf_char(to, ' ');
    put_time(to, m);
    if (plain) {
        buf_puts(to, "Z]");
        return true;
    }
    buf_printf(to, "%c%02lld:%02lld ", off < 0 ? '-' : '+', (long long)(size / 3600), (long long)(size % 3600 / 60));
    print_safe(to, abbr);
    buf_char(to, ' ');
    print_safe(to, zone);
    buf_char(to, '>');
    return true;
}

static bool print_date(struct buf *to, const struct elixir_struct *s)
{
    struct moment m;

    if (!read_date(s, &m))
        return false;
    buf_puts(to, "~D[");
    put_date(to, &m);
    buf_char(to, ']');
    return true;
}

static bool print_time(struct buf *to, const struct elixir_struct *s)
{
    struct moment m;

    if (!read_time(s, &m))
        return false;
    buf_puts(to, "~T[");
    put_time(to, &m);
    buf_char(to, ']');
    return true;
}

static bool print_naive(struct buf *to, const struct elixir_struct *s)
{
    struct moment m;

    if (!read_date(s, &m) || !read_time(s, &m))
        return false;
    buf_puts(to, "~N[");
    put_date(to, &m);
    buf_char(to, ' ');
    put_time(to, &m);
    buf_char(to, ']');
    return true;
}

static bool print_datetime(struct buf *to, const struct elixir_struct *s)
{
    struct moment m;

    return read_date(s, &m) && read_time(s, &m) && put_datetime(to, s, &m);
}

/* ---- ranges and sets ---- */

static bool print_range(struct buf *to, const struct elixir_struct *s)
{
    const uint8_t *step = elixir_field(s, "step");
    int64_t first, last, by = 1;

    if (!term_struct_number(s, "first", INT64_MIN, INT64_MAX, &first) ||
        !term_struct_number(s, "last", INT64_MIN, INT64_MAX, &last) || (step && !wire_int(step, &by)))
        return false;
    print_i64(to, first);
    buf_puts(to, "..");
    print_i64(to, last);
    if (step && (by != 1 || first > last)) {
        buf_puts(to, "//");
        print_i64(to, by);
    }
    return true;
}

static bool print_date_range(struct buf *to, const struct elixir_struct *s)
{
    const uint8_t *first = elixir_field(s, "first"), *last = elixir_field(s, "last"), *step = elixir_field(s, "step");
    int64_t by;

    if (!first || !last || !step || !wire_int(step, &by))
        return false;
    buf_puts(to, "Date.range(");
    elixir_print(to, s->env, first);
    buf_puts(to, ", ");
    elixir_print(to, s->env, last);
    if (by != 1) {
        buf_puts(to, ", ");
        print_i64(to, by);
    }
    buf_char(to, ')');
    return true;
}

static bool print_set(struct buf *to, const struct elixir_struct *s)
{
    const uint8_t *map = elixir_field(s, "map"), *at, *value;
    uint32_t pairs;
    int64_t n = map ? wire_map(map, &pairs, &at) : -1;
    struct raw key;
    bool keywords = n > 0;

    if (n < 0)
        return false;
    const uint8_t *first = at;
    for (int64_t i = 0; i < n; i++, at = wire_skip(wire_skip(at)))
        keywords &= elixir_is_pair(s->env, at, &key, &value);
    buf_puts(to, "MapSet.new([");
    at = first;
    for (int64_t i = 0; i < n; i++, at = wire_skip(wire_skip(at))) {
        buf_puts(to, i ? ", " : "");
        if (keywords) {
            elixir_is_pair(s->env, at, &key, &value);
            elixir_print_key(to, key);
            elixir_print(to, s->env, value);
        } else {
            elixir_print(to, s->env, at);
        }
    }
    if (n < (int64_t)pairs) {
        buf_puts(to, n ? ", " : "");
        elixir_print_missing(to, pairs - (uint64_t)n, "");
    }
    buf_puts(to, "])");
    return true;
}

/* ---- regular expressions and versions ---- */

/*
 * Prints the modifiers of a regular expression, beginning with the last option. Returns false if an option is unknown.
 */
static bool put_modifiers(struct buf *to, const struct elixir_struct *s, const uint8_t *opts)
{
    static const struct {
        const char *name;
        char letter;
    } known[] = {
        {"caseless", 'i'}, {"unicode", 'u'},   {"dotall", 's'},   {"multiline", 'm'},
        {"extended", 'x'}, {"firstline", 'f'}, {"ungreedy", 'U'}, {"export", 'E'},
    };
    char found[16];
    struct raw letters;
    size_t n = 0, k;

    if (captured_text(opts, &letters)) {
        print_safe(to, letters);
        return true;
    }
    if (!wire_list(&opts))
        return false;
    for (const uint8_t *el; (el = wire_list_next(&opts));) {
        if (wire_is_atom(s->env, el, "ucp") || *el == ETW_T_TUPLE0 + 2) /* {newline, anycrlf} comes with dotall */
            continue;
        for (k = 0; k < ARRAY_LEN(known) && !wire_is_atom(s->env, el, known[k].name);)
            k++;
        if (k == ARRAY_LEN(known) || n == sizeof(found))
            return false;
        found[n++] = known[k].letter;
    }
    while (n)
        buf_char(to, found[--n]);
    return true;
}

static bool print_regex(struct buf *to, const struct elixir_struct *s)
{
    const uint8_t *opts = elixir_field(s, "opts");
    struct raw source;
    size_t start = to->len;

    if (!opts || !captured_text(elixir_field(s, "source"), &source))
        return false;
    buf_puts(to, "~r/");
    const char *at = raw_view(source).at, *end = at + source.len;
    while (at < end) {
        uint32_t c = utf8_next(&at, end);
        if (c == '\\' && at < end && *at >= ' ' && *at < 127) {
            buf_char(to, '\\');
            buf_char(to, *at++);
        } else if (c == '\\') {
            buf_char(to, '\\');
        } else {
            elixir_print_char(to, c, '/');
        }
    }
    buf_char(to, '/');
    if (put_modifiers(to, s, opts))
        return true;
    to->len = start;
    return false;
}

static bool print_requirement(struct buf *to, const struct elixir_struct *s)
{
    const uint8_t *source = elixir_field(s, "source");
    struct raw ignored;

    if (!captured_text(source, &ignored))
        return false;
    buf_puts(to, "Version.parse_requirement!(");
    elixir_print(to, s->env, source);
    buf_char(to, ')');
    return true;
}

/* ---- structs of common libraries ---- */

/* Prints a coefficient with a point or an exponent, as the General Decimal Arithmetic specification defines. */
static void put_decimal(struct buf *to, struct str digits, int64_t exp)
{
    int64_t len = (int64_t)digits.len, adjusted = exp + len - 1;

    if (exp == 0) {
        buf_str(to, digits);
    } else if (exp < 0 && adjusted >= -6) {
        int64_t whole = len + exp;
        buf_add(to, digits.at, (size_t)MAX(whole, 0));
        buf_puts(to, whole > 0 ? "." : "0.");
        for (; whole < 0; whole++)
            buf_char(to, '0');
        buf_add(to, digits.at + MAX(len + exp, 0), (size_t)(len - MAX(len + exp, 0)));
    } else {
        buf_char(to, *digits.at);
        if (len > 1)
            buf_char(to, '.');
        buf_add(to, digits.at + 1, (size_t)len - 1);
        buf_printf(to, "E%s%lld", adjusted >= 0 ? "+" : "", (long long)adjusted);
    }
}

static bool print_decimal(struct buf *to, const struct elixir_struct *s)
{
    const uint8_t *coef = elixir_field(s, "coef");
    int64_t sign, exp;
    struct buf digits = {0};
    struct raw word;

    if (!coef || !term_struct_number(s, "sign", -1, 1, &sign) || !term_struct_number(s, "exp", -1000000, 1000000, &exp))
        return false;
    bool named = wire_atom(s->env, coef, &word);
    if (named)
        buf_puts(&digits, wire_is_atom(s->env, coef, "inf")   ? "Infinity"
                          : wire_is_atom(s->env, coef, "NaN") ? "NaN"
                                                              : "");
    else
        elixir_print(&digits, s->env, coef);
    bool good = digits.len && (named || (*digits.data >= '0' && *digits.data <= '9'));
    if (good) {
        buf_puts(to, sign < 0 ? "Decimal.new(\"-" : "Decimal.new(\"");
        if (named)
            buf_str(to, buf_view(&digits));
        else
            put_decimal(to, buf_view(&digits), exp);
        buf_puts(to, "\")");
    }
    buf_release(&digits);
    return good;
}

static bool print_metadata(struct buf *to, const struct elixir_struct *s)
{
    static const char *const shown[] = {"state", "prefix", "source", "context"};
    bool any = false;

    for (size_t i = 0; i < ARRAY_LEN(shown); i++)
        if (!elixir_field(s, shown[i]))
            return false;
    buf_puts(to, "#Ecto.Schema.Metadata<");
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        const uint8_t *at = elixir_field(s, shown[i]);
        if (term_struct_is_nil(s, at))
            continue;
        buf_puts(to, any ? ", " : "");
        elixir_print(to, s->env, at);
        any = true;
    }
    buf_char(to, '>');
    return true;
}

static bool print_not_loaded(struct buf *to, const struct elixir_struct *s)
{
    const uint8_t *field = elixir_field(s, "__field__");

    if (!field)
        return false;
    buf_puts(to, "#Ecto.Association.NotLoaded<association ");
    elixir_print(to, s->env, field);
    buf_puts(to, " is not loaded>");
    return true;
}

/* ---- the table of known structs ---- */

static const struct {
    const char *name;
    bool (*print)(struct buf *to, const struct elixir_struct *s);
} forms[] = {
    {"Date", print_date},
    {"Time", print_time},
    {"NaiveDateTime", print_naive},
    {"DateTime", print_datetime},
    {"Range", print_range},
    {"Date.Range", print_date_range},
    {"MapSet", print_set},
    {"Regex", print_regex},
    {"Version.Requirement", print_requirement},
    {"Decimal", print_decimal},
    {"Ecto.Schema.Metadata", print_metadata},
    {"Ecto.Association.NotLoaded", print_not_loaded},
};

static const struct {
    const char *name, *fields;
} orders[] = {
    {"Version", "major minor patch pre? build? "},
    {"URI", "scheme authority? userinfo host port path query fragment "},
    {"KeyError", "key term message "},
    {"Task", "mfa owner pid ref "},
    {"File.Stat", "size type access atime mtime ctime mode links major_device minor_device inode uid gid "},
    {"Protocol.UndefinedError", "protocol value description "},
    {"UndefinedFunctionError", "module function arity reason message "},
    {"FunctionClauseError", "module function arity kind args clauses "},
    {"File.Error", "reason path action "},
};

bool elixir_print_struct(struct buf *to, const struct elixir_struct *s)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (str_is(s->name, forms[i].name))
            return forms[i].print(to, s);
    return false;
}

const char *elixir_field_order(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(orders); i++)
        if (str_is(name, orders[i].name))
            return orders[i].fields;
    return NULL;
}
