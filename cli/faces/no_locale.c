/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the functions of the C library with which libedit reads and prints characters, in a static program. Those of
 * the C library need locale files of the system, which a container may lack. The replacements always use UTF-8.
 */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "../ground/utf8.h"

size_t __wrap___ctype_get_mb_cur_max(void);
int __wrap_wctomb(char *to, wchar_t c);
size_t __wrap_mbstowcs(wchar_t *to, const char *from, size_t room);
size_t __wrap_wcstombs(char *to, const wchar_t *from, size_t room);
int __wrap_wcwidth(wchar_t c);
int __wrap_iswprint(wint_t c);
int __wrap_iswgraph(wint_t c);
int __wrap_iswalnum(wint_t c);
int __real_iswalnum(wint_t c);

size_t __wrap___ctype_get_mb_cur_max(void)
{
    return 4;
}

int __wrap_wctomb(char *to, wchar_t c)
{
    if (!to)
        return 0; /* UTF-8 has no shift states */
    if (c < 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return -1;
    return (int)utf8_put(to, (uint32_t)c);
}

size_t __wrap_mbstowcs(wchar_t *to, const char *from, size_t room)
{
    const char *end = from + strlen(from);
    size_t n = 0;

    while (from < end && (!to || n < room)) {
        uint32_t c = utf8_next(&from, end);
        if (c == UTF8_BAD)
            return (size_t)-1;
        if (to)
            to[n] = (wchar_t)c;
        n++;
    }
    if (to && n < room)
        to[n] = L'\0';
    return n;
}

size_t __wrap_wcstombs(char *to, const wchar_t *from, size_t room)
{
    char bytes[4];
    size_t n = 0;

    for (; *from; from++) {
        int len = __wrap_wctomb(bytes, *from);
        if (len < 0)
            return (size_t)-1;
        if (to && n + (size_t)len > room)
            return n;
        if (to)
            memcpy(to + n, bytes, (size_t)len);
        n += (size_t)len;
    }
    if (to && n < room)
        to[n] = '\0';
    return n;
}

int __wrap_wcwidth(wchar_t c)
{
    char bytes[4];
    int len = __wrap_wctomb(bytes, c);

    if (!c)
        return 0;
    return len < 0 || !utf8_shows((uint32_t)c) ? -1 : (int)utf8_width(bytes, (size_t)len);
}

int __wrap_iswprint(wint_t c)
{
    return utf8_shows(c);
}

int __wrap_iswgraph(wint_t c)
{
    return c != ' ' && utf8_shows(c);
}

int __wrap_iswalnum(wint_t c)
{
    return c < 128 ? __real_iswalnum(c) : utf8_shows(c);
}
