/* Elixir's structs: those of libraries, which the oracle does not have, and those whose fields are not as they should be. */
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

static void decimals(void)
{
    static const struct {
        int64_t coef, exp;
        const char *text;
    } cases[] = {
        {0, 0, "0"}, {123, 0, "123"}, {123, -2, "1.23"}, {123, -3, "0.123"}, {123, -5, "0.00123"}, {5, -7, "5E-7"},
        {123, -9, "1.23E-7"}, {12, 3, "1.2E+4"}, {1, 2, "1E+2"}, {1000000, -6, "1.000000"}, {0, -2, "0.00"}, {0, 3, "0E+3"},
    };
    char want[64];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        decimal(1, cases[i].coef, cases[i].exp);
        snprintf(want, sizeof(want), "Decimal.new(\"%s\")", cases[i].text);
        EX(want, cases[i].text);
    }
    decimal(-1, 15, -1);
    EX("Decimal.new(\"-1.5\")", "a negative one");
    begin("Elixir.Decimal", 3);
    fw_atom(&w, "coef"), fw_atom(&w, "inf"), fw_atom(&w, "exp"), fw_int(&w, 0), fw_atom(&w, "sign"), fw_int(&w, -1);
    EX("Decimal.new(\"-Infinity\")", "infinity");
    decimal(1, -5, 0);
    EX("%Decimal{coef: -5, exp: 0, sign: 1}", "a coefficient that is none");
}

static void ecto(void)
{
    begin("Elixir.Ecto.Schema.Metadata", 4);
    fw_atom(&w, "state"), fw_atom(&w, "loaded"), fw_atom(&w, "source"), fw_bin(&w, "users");
    fw_atom(&w, "prefix"), fw_atom(&w, "nil"), fw_atom(&w, "context"), fw_atom(&w, "nil");
    EX("#Ecto.Schema.Metadata<:loaded, \"users\">", "the metadata of a schema");
    begin("Elixir.Ecto.Association.NotLoaded", 1);
    fw_atom(&w, "__field__"), fw_atom(&w, "posts");
    EX("#Ecto.Association.NotLoaded<association :posts is not loaded>", "an association");
}

static void broken(void)
{
    date(2024, 2, "Elixir.Calendar.ISO");
    EX("~D[2024-02-03]", "a date");
    date(2024, 13, "Elixir.Calendar.ISO");
    EX("%Date{year: 2024, month: 13, day: 3, calendar: Calendar.ISO}", "a month that is none");
    date(12024, 1, "Elixir.Calendar.ISO");
    EX("%Date{year: 12024, month: 1, day: 3, calendar: Calendar.ISO}", "a year of five digits");
    date(2024, 1, "Elixir.Other");
    EX("%Date{year: 2024, month: 1, day: 3, calendar: Other}", "another calendar");
    begin("Elixir.Date", 1);
    fw_atom(&w, "year"), fw_int(&w, 1);
    EX("%Date{year: 1}", "fields are missing");
    begin("Elixir.Date", 0);
    EX("%Date{}", "all are");
    begin("Elixir.Date", 4);
    fw_atom(&w, "year"), fw_int(&w, 1), fw_tag(&w, ETW_T_CUT);
    EX("%Date{year: 1, …+3}", "the capture ended within");
    begin("Elixir.MapSet", 1);
    fw_atom(&w, "map"), fw_map(&w, 3), fw_int(&w, 1), fw_tag(&w, ETW_T_NIL), fw_tag(&w, ETW_T_CUT);
    EX("MapSet.new([1, …+2])", "it ended within the set");
    begin("Elixir.MapSet", 1);
    fw_atom(&w, "map"), fw_int(&w, 1);
    EX("%MapSet{map: 1}", "a set that is none");
    begin("Elixir.Regex", 2);
    fw_atom(&w, "source"), fw_bin(&w, "a\x1b[/"), fw_atom(&w, "opts"), fw_bin(&w, "i");
    EX("~r/a\\e[\\//i", "a pattern with an escape");
    begin("Elixir.URI", 1);
    fw_atom(&w, "host"), fw_bin(&w, "h");
    EX("%URI{host: \"h\"}", "some of the fields");
    begin("Elixir.URI", 2);
    fw_atom(&w, "host"), fw_bin(&w, "h"), fw_atom(&w, "more"), fw_int(&w, 1);
    EX("%URI{host: \"h\", more: 1}", "one that it does not have");
}

int main(void)
{
    fw_ring(&w, 1);
    decimals();
    ecto();
    broken();
    fw_release(&w);
    return tap_end();
}
