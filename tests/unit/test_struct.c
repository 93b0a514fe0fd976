/* SPDX-License-Identifier: Apache-2.0 */
/* Tests structs of Elixir that the oracle does not have: those of libraries, and malformed ones. */
#include "printed.h"

#define EX(expected, name) is_text(printed(&printer_elixir), expected, name)

static void begin(const char *name, unsigned fields)
{
    fw_map(&w, fields + 1);
    fw_atom(&w, "__struct__"), fw_atom(&w, name);
}

static void decimal(int sign, int64_t coef, int64_t exp)
{
    begin("Elixir.Decimal", 3);
    fw_atom(&w, "coef"), fw_int(&w, coef);
    fw_atom(&w, "exp"), fw_int(&w, exp);
    fw_atom(&w, "sign"), fw_int(&w, sign);
}

static void date(int64_t year, int64_t month, const char *calendar)
{
    begin("Elixir.Date", 4);
    fw_atom(&w, "year"), fw_int(&w, year);
    fw_atom(&w, "month"), fw_int(&w, month);
    fw_atom(&w, "day"), fw_int(&w, 3);
    fw_atom(&w, "calendar"), fw_atom(&w, calendar);
}

static void time_of(const char *name, unsigned fields, int64_t hour, int64_t micro, int64_t digits)
{
    begin(name, 5 + fields);
    fw_atom(&w, "calendar"), fw_atom(&w, "Elixir.Calendar.ISO");
    fw_atom(&w, "hour"), fw_int(&w, hour);
    fw_atom(&w, "minute"), fw_int(&w, 2);
    fw_atom(&w, "second"), fw_int(&w, 3);
    fw_atom(&w, "microsecond"), fw_tuple(&w, 2), fw_int(&w, micro), fw_int(&w, digits);
}

static void day(int64_t year)
{
    fw_atom(&w, "year"), fw_int(&w, year), fw_atom(&w, "month"), fw_int(&w, 2), fw_atom(&w, "day"), fw_int(&w, 3);
}

static void zone(int64_t utc, int64_t std, const char *name, const char *abbr)
{
    time_of("Elixir.DateTime", 7, 1, 0, 0);
    day(2024);
    fw_atom(&w, "utc_offset"), fw_int(&w, utc), fw_atom(&w, "std_offset"), fw_int(&w, std);
    fw_atom(&w, "time_zone"), fw_bin(&w, name), fw_atom(&w, "zone_abbr"), fw_bin(&w, abbr);
}

static void times(void)
{
    time_of("Elixir.Time", 0, 1, 120000, 3);
    EX("~T[01:02:03.120]", "a time of day");
    time_of("Elixir.Time", 0, 23, 0, 0);
    EX("~T[23:02:03]", "a time of day without a fraction");
    time_of("Elixir.Time", 0, 24, 0, 0);
    EX("%Time{calendar: Calendar.ISO, hour: 24, minute: 2, second: 3, microsecond: {0, 0}}", "an invalid hour");
    time_of("Elixir.Time", 0, 1, 0, 7);
    EX("%Time{calendar: Calendar.ISO, hour: 1, minute: 2, second: 3, microsecond: {0, 7}}",
       "an invalid number of digits");
    time_of("Elixir.NaiveDateTime", 3, 1, 5, 6);
    day(-44);
    EX("~N[-0044-02-03 01:02:03.000005]", "a day and a time");
    zone(0, 0, "Etc/UTC", "UTC");
    EX("~U[2024-02-03 01:02:03Z]", "a time in UTC");
    zone(3600, 3600, "Europe/Paris", "CEST");
    EX("#DateTime<2024-02-03 01:02:03+02:00 CEST Europe/Paris>", "a time in a zone");
    zone(-12600, 0, "America/St_Johns", "NST");
    EX("#DateTime<2024-02-03 01:02:03-03:30 NST America/St_Johns>", "a time in a zone west of Greenwich");
}

static void range(int64_t first, int64_t last, int64_t step)
{
    begin("Elixir.Range", 3);
    fw_atom(&w, "first"), fw_int(&w, first), fw_atom(&w, "last"), fw_int(&w, last), fw_atom(&w, "step"),
        fw_int(&w, step);
}

static void date_range(int64_t step)
{
    begin("Elixir.Date.Range", 3);
    fw_atom(&w, "first"), date(2024, 1, "Elixir.Calendar.ISO"), fw_atom(&w, "last"),
        date(2024, 2, "Elixir.Calendar.ISO");
    fw_atom(&w, "step"), fw_int(&w, step);
}

static void collections(void)
{
    range(1, 3, 1);
    EX("1..3", "a range");
    range(1, 9, 2);
    EX("1..9//2", "a range with a step");
    range(3, 1, 1);
    EX("3..1//1", "an empty range");
    begin("Elixir.Range", 2);
    fw_atom(&w, "first"), fw_int(&w, 1), fw_atom(&w, "last"), fw_atom(&w, "x");
    EX("%Range{first: 1, last: :x}", "an invalid range");
    date_range(1);
    EX("Date.range(~D[2024-01-03], ~D[2024-02-03])", "a range of days");
    date_range(7);
    EX("Date.range(~D[2024-01-03], ~D[2024-02-03], 7)", "a range of days with a step");
    begin("Elixir.MapSet", 1);
    fw_atom(&w, "map"), fw_map(&w, 1), fw_tuple(&w, 2), fw_atom(&w, "a"), fw_int(&w, 1), fw_tag(&w, ETW_T_NIL);
    EX("MapSet.new([a: 1])", "a set of pairs");
}

static void decimals(void)
{
    static const struct {
        int64_t coef, exp;
        const char *text;
    } cases[] = {
        {0, 0, "0"},          {123, 0, "123"},           {123, -2, "1.23"},    {123, -3, "0.123"},
        {123, -5, "0.00123"}, {5, -7, "5E-7"},           {123, -9, "1.23E-7"}, {12, 3, "1.2E+4"},
        {1, 2, "1E+2"},       {1000000, -6, "1.000000"}, {0, -2, "0.00"},      {0, 3, "0E+3"},
    };
    char want[64];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        decimal(1, cases[i].coef, cases[i].exp);
        snprintf(want, sizeof(want), "Decimal.new(\"%s\")", cases[i].text);
        EX(want, cases[i].text);
    }
    decimal(-1, 15, -1);
    EX("Decimal.new(\"-1.5\")", "a negative decimal");
    begin("Elixir.Decimal", 3);
    fw_atom(&w, "coef"), fw_atom(&w, "inf"), fw_atom(&w, "exp"), fw_int(&w, 0), fw_atom(&w, "sign"), fw_int(&w, -1);
    EX("Decimal.new(\"-Infinity\")", "an infinite decimal");
    decimal(1, -5, 0);
    EX("%Decimal{coef: -5, exp: 0, sign: 1}", "an invalid coefficient");
}

static void ecto(void)
{
    begin("Elixir.Ecto.Schema.Metadata", 4);
    fw_atom(&w, "state"), fw_atom(&w, "loaded"), fw_atom(&w, "source"), fw_bin(&w, "users");
    fw_atom(&w, "prefix"), fw_atom(&w, "nil"), fw_atom(&w, "context"), fw_atom(&w, "nil");
    EX("#Ecto.Schema.Metadata<:loaded, \"users\">", "the metadata of a schema");
    begin("Elixir.Ecto.Association.NotLoaded", 1);
    fw_atom(&w, "__field__"), fw_atom(&w, "posts");
    EX("#Ecto.Association.NotLoaded<association :posts is not loaded>", "an association that is not loaded");
}

static void broken(void)
{
    date(2024, 2, "Elixir.Calendar.ISO");
    EX("~D[2024-02-03]", "a date");
    date(2024, 13, "Elixir.Calendar.ISO");
    EX("%Date{year: 2024, month: 13, day: 3, calendar: Calendar.ISO}", "an invalid month");
    date(12024, 1, "Elixir.Calendar.ISO");
    EX("%Date{year: 12024, month: 1, day: 3, calendar: Calendar.ISO}", "a year of five digits");
    date(2024, 1, "Elixir.Other");
    EX("%Date{year: 2024, month: 1, day: 3, calendar: Other}", "another calendar");
    begin("Elixir.Date", 1);
    fw_atom(&w, "year"), fw_int(&w, 1);
    EX("%Date{year: 1}", "a date without most of its fields");
    begin("Elixir.Date", 0);
    EX("%Date{}", "a date without fields");
    begin("Elixir.Date", 4);
    fw_atom(&w, "year"), fw_int(&w, 1), fw_tag(&w, ETW_T_CUT);
    EX("%Date{year: 1, …+3}", "a date whose capture ended within");
    begin("Elixir.MapSet", 1);
    fw_atom(&w, "map"), fw_map(&w, 3), fw_int(&w, 1), fw_tag(&w, ETW_T_NIL), fw_tag(&w, ETW_T_CUT);
    EX("MapSet.new([1, …+2])", "a set whose capture ended within");
    begin("Elixir.MapSet", 1);
    fw_atom(&w, "map"), fw_int(&w, 1);
    EX("%MapSet{map: 1}", "an invalid set");
    begin("Elixir.Regex", 2);
    fw_atom(&w, "source"), fw_bin(&w, "a\x1b[/"), fw_atom(&w, "opts"), fw_bin(&w, "i");
    EX("~r/a\\e[\\//i", "a pattern with an escape");
    begin("Elixir.URI", 1);
    fw_atom(&w, "host"), fw_bin(&w, "h");
    EX("%URI{host: \"h\"}", "a URI with some of its fields");
    begin("Elixir.URI", 2);
    fw_atom(&w, "host"), fw_bin(&w, "h"), fw_atom(&w, "more"), fw_int(&w, 1);
    EX("%URI{host: \"h\", more: 1}", "a URI with an unknown field");
}

int main(void)
{
    fw_ring(&w, 1);
    times();
    collections();
    decimals();
    ecto();
    broken();
    fw_release(&w);
    return tap_end();
}
