/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which texts are cookies, in files and in arguments. The results for files are those of auth.erl in OTP 29. */
#include "node/cookie.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

/* Reads the bytes as a file. `want` is the cookie, or the message if it is none. */
static void file_is(struct str bytes, const char *want)
{
    struct cookie c = {0};
    struct err e = {0};
    const int fd = memfd_create("cookie", MFD_CLOEXEC);

    ok(write(fd, bytes.at, bytes.len) == (ssize_t)bytes.len && !lseek(fd, 0, SEEK_SET), "the file is written");
    const int got = cookie_read_fd(fd, "it", &c, &e);
    close(fd);
    is_text(got > 0 ? c.text : e.text, want, "the cookie of a file");
}

#define FILE_IS(bytes, want) file_is((struct str){bytes, sizeof(bytes) - 1}, want)

/* Takes the text as an argument. `want` is the cookie of a node with a locale in UTF-8. */
static void narrow_is(const char *text, const char *want)
{
    struct cookie c = {0};
    struct err e;

    ok(cookie_take(text, "it", &c, &e) == 1 && !strcmp(c.text, text), "an argument is a cookie as it is");
    ok(cookie_narrow(&c) == (strcmp(text, want) != 0), "it is known whether the bytes are another cookie");
    is_text(c.text, want, "the cookie of an argument");
}

int main(void)
{
    FILE_IS("abc", "abc");
    FILE_IS("abc\n", "abc");
    FILE_IS("abc\r\n\n  ", "abc");
    FILE_IS("abc\n \n", "abc");
    FILE_IS("a b\n", "a b");
    FILE_IS("abc \n", "abc ");
    FILE_IS(" a", " a");
    FILE_IS(" ", " ");
    FILE_IS("caf\303\251\n", "caf\303\251"); /* auth.erl rejects it, but the start script of a release does not */
    FILE_IS("", "the cookie in it is empty");
    FILE_IS("\n \n", "the cookie in it is empty");
    FILE_IS("a\nb", "the cookie in it has a control character in it");
    FILE_IS("a\n\303\251", "the cookie in it has a control character in it");
    FILE_IS("a\tb", "the cookie in it has a control character in it");
    FILE_IS("a\177", "the cookie in it has a control character in it");
    FILE_IS("a\0b", "the cookie in it has a NUL character in it");

    narrow_is("", "");
    narrow_is("a b", "a b");
    narrow_is("a\tb\n", "a\tb\n");
    narrow_is("caf\303\251!", "caf\351!");
    narrow_is("\303\277", "\377");
    narrow_is("\316\273", "\316\273"); /* a character that no cookie can have */
    narrow_is("a\377", "a\377");       /* no UTF-8 */
    narrow_is("\303\251\377", "\303\251\377");
    return tap_end();
}
