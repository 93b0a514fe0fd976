/* SPDX-License-Identifier: Apache-2.0 */
/* Tests MD5 with the sums of RFC 1321, and with lengths at which the last block is full. */
#include <stdio.h>
#include <string.h>

#include "node/md5.h"
#include "tap.h"

static void sums_to(const char *text, size_t len, const char *expected)
{
    unsigned char sum[MD5_BYTES];
    char hex[2 * MD5_BYTES + 1];

    md5((struct str){text, len}, sum);
    for (size_t i = 0; i < MD5_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    ok(!strcmp(hex, expected), "%zu bytes", len);
}

int main(void)
{
    char x[200];

    memset(x, 'x', sizeof x);
    sums_to("", 0, "d41d8cd98f00b204e9800998ecf8427e");
    sums_to("abc", 3, "900150983cd24fb0d6963f7d28e17f72");
    sums_to("message digest", 14, "f96b697d7cb7938d525a2f31aaf161d0");
    sums_to(x, 55, "04364420e25c512fd958a70738aa8f72");
    sums_to(x, 56, "668a72d5ba17f08e62dabcafad6db14b");
    sums_to(x, 63, "7dc2ca208106a2f703567bdff99d8981");
    sums_to(x, 64, "c1bb4f81d892b2d57947682aeb252456");
    sums_to(x, 65, "1bc932052302d074bdec39795fe00cf6");
    sums_to(x, 119, "ab347a5f68c8a443cfcddc633f12c24f");
    sums_to(x, 120, "fb98667f98096de92620b64f46e1c5b5");
    sums_to(x, 200, "30a83621ce5422fbdfdd539777458c78");
    return tap_end();
}
