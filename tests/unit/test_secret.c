/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares secret_named() with tests/secrets.names, and tests that cookies in texts are hidden. cli/320 uses the same
 * names to test the tracer without the library.
 */
#include "tap.h"

#include "../../nif/secret.h"

static void add(const char *name)
{
    if (!secret_add((const uint8_t *)name, strlen(name)))
        ok(false, "%s is a name", name);
}

static bool named(const char *name)
{
    return secret_named((const uint8_t *)name, strlen(name));
}

/* Reads the file: first the names of secrets, then examples of hidden and of visible keys. */
static void names(FILE *file)
{
    char line[256], *name;
    int cases = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "# The secrets of these cases are: ", 34))
            for (name = strtok(line + 34, " "); name; name = strtok(NULL, " "))
                add(name);
        if (*line == '#' || !(name = strchr(line, ' ')))
            continue;
        *name++ = 0;
        ok(named(name) == !strcmp(line, "yes"), "%s: %s", name, line);
        cases++;
    }
    ok(cases > 30, "the file has more than 30 cases");
}

static void limits(void)
{
    char longest[SECRET_NAME_BYTES + 2] = "", more[ETW_MAX_KEY_BYTES + 2] = "";
    secret_none();
    ok(!named("password"), "no key is a secret without names");
    add("password"), add("-_-");
    memset(longest, '_', SECRET_NAME_BYTES), memcpy(longest + SECRET_NAME_BYTES - 8, "password", 8);
    ok(named(longest), "a key of the maximum length is compared to its end");
    memset(longest, '_', SECRET_NAME_BYTES + 1), memcpy(longest + SECRET_NAME_BYTES - 7, "password", 8);
    ok(!named(longest), "a longer key is not a secret");
    ok(!named("") && !named("---"), "a key without letters is not a secret");
    memset(more, 'm', ETW_MAX_KEY_BYTES + 1);
    ok(!secret_add((const uint8_t *)more, ETW_MAX_KEY_BYTES + 1), "a secret's name that is too long is refused");
    memset(longest, 'A', SECRET_NAME_BYTES), longest[SECRET_NAME_BYTES] = 0;
    ok(!named(longest), "a key of 64 capitals is not a secret");
    for (unsigned i = secret_names; i < ETW_MAX_KEYS; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        add(name);
    }
    ok(!secret_add((const uint8_t *)"more", 4) && named("N63") && named("password"),
       "more than 64 names are refused, and the others still match");
}

static void cookie(const char *cookie, const char *text, const char *want)
{
    char got[256];
    size_t bytes = strlen(text);
    memcpy(got, text, bytes + 1);
    secret_set_cookie((const uint8_t *)cookie, strlen(cookie));
    secret_hide((uint8_t *)got, (uint8_t *)got + bytes);
    secret_hide_text((uint8_t *)got, (uint8_t *)got + bytes);
    is_text(got, want, text);
}

static void begun(const char *text, const char *want)
{
    char got[64];
    strcpy(got, text);
    secret_hide_begun((uint8_t *)got, (uint8_t *)got + strlen(got));
    is_text(got, want, text);
}

int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    secret_none();
    if (!file) {
        ok(false, "the file of cases can be opened");
        return tap_end();
    }
    names(file);
    fclose(file);
    limits();
    cookie("ABCABDABCABC", "ABCABDABCABC", "************");
    cookie("ABCABDABCABC", "-setcookie ABCABDABCABC -x", "-setcookie ************ -x");
    cookie("ABCABDABCABC", "ABCABDABCABCABCABDABCABC", "************************");
    cookie("ABCABDABCABC", "xABCABCABDABCABC", "xABC************");
    cookie("ABCABDABCABC", "ABCABDABCAB", "ABCABDABCAB");
    cookie("AAAAAAAA", "AAAAAAAAAAAA", "********AAAA");
    cookie("shop", "shop", "****");
    cookie("shop", "workshop", "workshop");
    cookie("ok", "ok", "ok");
    cookie("", "", "");
    secret_set_cookie((const uint8_t *)"ABCABDABCABC", 12);
    begun("text ABCABDABC", "text *********");
    begun("text ABC", "text ABC");
    begun("ABCABDABCAB", "***********");
    begun("", "");
    return tap_end();
}
