/* SPDX-License-Identifier: Apache-2.0 */
#include "inject.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "../erlang/etf_write.h"
#include "../erlang/term_print.h"
#include "../ground/mem.h"
#include "rex.h"

#define BOOT_FRAME 4096 /* bytes that the distribution protocol and TLS add to the boot message */

/* ---- the boot message ---- */

static void inject_put_number(struct buf *b, size_t *pairs, const char *key, uint64_t value)
{
    if (!value)
        return;
    etf_atomz(b, key);
    etf_int(b, (int64_t)MIN(value, (uint64_t)INT64_MAX));
    ++*pairs;
}

/*
 * Appends the options as a binary that contains an encoded term: the node checks that its atom table has room before it
 * decodes the term's atoms.
 */
static void put_options(struct buf *to, const struct session_options *o)
{
    struct buf pairs = {0}, term = {0}, *b = &term;
    size_t n = 0;

    inject_put_number(&pairs, &n, "size", o->size);
    inject_put_number(&pairs, &n, "depth", o->depth);
    inject_put_number(&pairs, &n, "items", o->items);
    inject_put_number(&pairs, &n, "limit", o->limit);
    inject_put_number(&pairs, &n, "rate", o->rate);
    inject_put_number(&pairs, &n, "buffer", o->ring_bytes);
    inject_put_number(&pairs, &n, "count", o->rings);
    if (o->memory == UINT64_MAX) {
        etf_atomz(&pairs, "memory");
        etf_atomz(&pairs, "infinity");
        n++;
    } else {
        inject_put_number(&pairs, &n, "memory", o->memory);
    }
    if (o->overwrites) {
        etf_atomz(&pairs, "ring");
        etf_int(&pairs, o->most_ms);
        etf_atomz(&pairs, "after");
        etf_int(&pairs, o->after_ms);
        n += 2;
    }
    if (o->triggers) {
        etf_atomz(&pairs, "trigger");
        etf_tuple(&pairs, 2);
        etf_int(&pairs, o->interval_ms);
        etf_atomz(&pairs, o->system_triggers ? "true" : "false");
        n++;
    }
    if (o->leftover) {
        etf_atomz(&pairs, "leftover");
        etf_bin(&pairs, o->leftover, strlen(o->leftover));
        n++;
    }
    if (o->fallback) {
        etf_atomz(&pairs, "fallback");
        etf_atomz(&pairs, "true");
        n++;
    }
    if (o->nredact) {
        etf_atomz(&pairs, "redact");
        etf_list(&pairs, o->nredact);
        for (size_t i = 0; i < o->nredact; i++)
            etf_bin(&pairs, o->redact[i].at, o->redact[i].len);
        etf_nil(&pairs);
        n++;
    }
    etf_version(b);
    etf_map(b, n);
    buf_str(b, buf_view(&pairs));
    etf_bin(to, term.data, term.len);
    buf_release(&pairs);
    buf_release(&term);
}

/*
 * Appends all elements of {Client, Beam, Libraries, Md5, Hash, Nonce, Options} except Client, which rex_begin() writes.
 */
static void put_boot(struct buf *b, const void *nonce, const struct session_options *o)
{
    const struct companion_module *m = &companion.modules[o->variant];

    etf_bin(b, m->beam, m->beam_len);
    if (m->loads_nif)
        buf_add(b, companion.libraries + 1, companion.libraries_len - 1); /* without the version byte 131 */
    else
        etf_nil(b);
    etf_bin(b, m->md5, sizeof m->md5);
    etf_bin(b, companion.hash, strlen(companion.hash));
    etf_bin(b, nonce, NONCE_BYTES);
    put_options(b, o);
}

/*
 * Asks rex for a short answer before etrace sends the companion. The companion may take long to arrive, and if a port
 * forwarder is on the way, etrace cannot see how much of it has arrived. The message is {'$gen_cast', {cast, erlang,
 * send, [Client, <<$W, companion>>, Options], user}}.
 */
static bool ask_rex(struct dist *d, struct err *e)
{
    struct buf b = {0}, word = {0};

    buf_char(&word, ETW_MSG_WAITS);
    etf_version(&word);
    etf_atomz(&word, "companion");
    etf_version(&b);
    etf_tuple(&b, 2);
    etf_atomz(&b, "$gen_cast");
    etf_tuple(&b, 5);
    etf_atomz(&b, "cast");
    etf_atomz(&b, "erlang");
    etf_atomz(&b, "send");
    etf_list(&b, 3);
    etf_pid(&b, (struct str){d->self.node, strlen(d->self.node)}, d->self.id, d->self.serial, d->self.creation);
    etf_bin(&b, word.data, word.len);
    etf_list(&b, 2);
    etf_atomz(&b, "noconnect");
    etf_atomz(&b, "nosuspend");
    etf_nil(&b);
    etf_nil(&b);
    etf_atomz(&b, "user");
    bool ok = dist_send_named(d, "rex", buf_view(&b), e);
    buf_release(&word);
    buf_release(&b);
    return ok;
}

bool inject_boot(struct dist *d, const struct session_options *o, unsigned char ret_nonce[static NONCE_BYTES],
                 struct err *e)
{
    struct buf b = {0};

    if (getrandom(ret_nonce, NONCE_BYTES, 0) != NONCE_BYTES)
        return err_set(e, ERR_RUN, "cannot get random numbers from the system");
    if (!ask_rex(d, e))
        return false;
    bool ok = rex_begin(&b, companion.janitor, companion.janitor_len, &d->self, 7, e);
    if (ok) {
        put_boot(&b, ret_nonce, o);
        rex_end(&b);
        net_make_room(d->stream.fd, b.len + BOOT_FRAME); /* a slow line may need far longer than DIST_SEND_MS for it */
        ok = dist_send_named(d, "rex", buf_view(&b), e);
    }
    buf_release(&b);
    return ok;
}

/* Makes the node remove what killed clients of this build have left (nif/sweep.eval). */
void inject_sweep(struct dist *d)
{
    struct buf b = {0};
    struct err e;

    if (rex_begin(&b, companion.sweep, companion.sweep_len, &d->self, 2, &e)) {
        etf_bin(&b, companion.hash, strlen(companion.hash));
        rex_end(&b);
        dist_send_named(d, "rex", buf_view(&b), &e);
    }
    buf_release(&b);
}

/* ---- cleaning up after a node that has ended ---- */

/* Uses an OpenSSL context of its own, so that MD5 works even if the system allows only FIPS algorithms. */
static bool digest_md5(struct str text, unsigned char ret[static 16])
{
    OSSL_LIB_CTX *ctx = OSSL_LIB_CTX_new();
    OSSL_PROVIDER *provider = ctx ? OSSL_PROVIDER_load(ctx, "default") : NULL;
    EVP_MD *md = provider ? EVP_MD_fetch(ctx, "MD5", NULL) : NULL;
    bool ok = md && EVP_Digest(text.at, text.len, ret, NULL, md, NULL);

    EVP_MD_free(md);
    if (provider)
        OSSL_PROVIDER_unload(provider);
    OSSL_LIB_CTX_free(ctx);
    return ok;
}

/*
 * Removes the directory that tracer_files.hrl makes below `base`, with the NIF in it. The directory's name is an MD5
 * digest of the nonce and `base`; its safety does not depend on MD5. Does not follow a symbolic link, because another
 * user may have put one there.
 */
static void remove_nif_dir(const unsigned char *nonce, const char *base)
{
    unsigned char name[16];
    struct buf b = {0}, dir = {0};
    int fd = -1;

    buf_add(&b, nonce, NONCE_BYTES);
    buf_puts(&b, base);
    buf_printf(&dir, "%s/etrace-", base);
    bool named = digest_md5(buf_view(&b), name);
    for (size_t i = 0; i < sizeof name && named; i++)
        buf_printf(&dir, "%02x", name[i]);
    if (named)
        fd = open(buf_cstr(&dir), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        unlinkat(fd, "etrace.so", 0);
        close(fd);
        rmdir(buf_cstr(&dir));
    }
    buf_release(&b);
    buf_release(&dir);
}

void inject_forget(const unsigned char nonce[static NONCE_BYTES])
{
    static const char *const fixed[] = {"/dev/shm", "/tmp", "/var/tmp"};
    const char *run = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");
    struct buf cache = {0};

    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        remove_nif_dir(nonce, fixed[i]);
    if (run)
        remove_nif_dir(nonce, run);
    buf_printf(&cache, "%s/.cache", home ? home : "");
    if (home)
        remove_nif_dir(nonce, buf_cstr(&cache));
    buf_release(&cache);
}

/* ---- the owner's answer ---- */

static bool take_pid(const struct etf_head *h, struct node_pid *ret)
{
    struct node_pid p = {.id = (uint32_t)h->id, .serial = h->serial, .creation = h->creation};

    if (h->type != ETF_PID || h->text.len > NODE_NAME_MAX)
        return false;
    memcpy(p.node, h->text.at, h->text.len);
    *ret = p;
    return true;
}

static bool take_text(struct etf *r, char *to, size_t size)
{
    struct raw text;

    if (!etf_get_bin(r, &text))
        return false;
    safe_copy(to, size, text);
    return true;
}

static bool take_number(struct etf *r, int64_t *ret)
{
    char digits[24];
    struct etf_head h;

    if (!etf_peek(r, &h) || h.type != ETF_BIN)
        return etf_get_int(r, ret);
    if (!take_text(r, digits, sizeof digits)) /* fails if the bitstring is not a binary */
        return false;
    *ret = strtoll(digits, NULL, 10);
    return true;
}

static bool take_pair(struct etf *r, struct session_node *n, struct node_pid *owner)
{
    struct raw key;
    struct etf_head h;
    int64_t number;

    if (!etf_get_atom(r, &key))
        return false;
    if (raw_is(key, "pid"))
        return etf_get_pid(r, &h) && take_pid(&h, owner);
    if (raw_is(key, "otp"))
        return take_text(r, n->otp_version, sizeof n->otp_version);
    if (raw_is(key, "version"))
        return take_text(r, n->erts, sizeof n->erts);
    if (raw_is(key, "system_architecture"))
        return take_text(r, n->arch, sizeof n->arch);
    if (raw_is(key, "reason"))
        return take_text(r, n->fallback_why, sizeof n->fallback_why);
    if (raw_is(key, "load_nif")) {
        n->fallback = !etf_is_atom(r, "true");
        return etf_skip(r);
    }
    if (raw_is(key, "elixir")) {
        n->elixir = etf_is_atom(r, "true");
        return etf_skip(r);
    }
    static const char *const numbers[] = {"otp_release", "schedulers", "wordsize", "process_count",
                                          "uptime",      "os_pid",     "creation"};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (!raw_is(key, numbers[i]))
            continue;
        if (!take_number(r, &number))
            return false;
        switch (i) {
        case 0:
            n->otp = (int)number;
            break;
        case 1:
            n->schedulers = (int)number;
            break;
        case 2:
            n->wordsize = (int)number;
            break;
        case 3:
            n->processes = (uint64_t)number;
            break;
        case 4:
            n->uptime_ms = (uint64_t)number;
            break;
        case 5:
            n->ospid = number;
            break;
        default:
            n->creation = (uint32_t)number;
            break;
        }
        return true;
    }
    return etf_skip(r); /* an unknown key is harmless */
}

bool inject_hello(struct etf r, struct session_node *ret, struct node_pid *ret_owner)
{
    struct session_node n = {0};
    struct node_pid owner = {0};
    size_t pairs;

    memcpy(n.name, ret->name, sizeof n.name); /* keep the name from the handshake */
    if (!etf_get_map(&r, &pairs))
        return false;
    while (pairs--)
        if (!take_pair(&r, &n, &owner))
            return false;
    if (!owner.node[0] || !etf_done(&r))
        return false;
    *ret = n;
    *ret_owner = owner;
    return true;
}
