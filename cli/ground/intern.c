#include "intern.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

void intern_init(struct intern *t)
{
    *t = (struct intern){.nbuckets = 256};
    t->buckets = mem_zalloc(t->nbuckets * sizeof(*t->buckets));
}

void intern_release(struct intern *t)
{
    for (size_t i = 0; i < t->nbuckets; i++) {
        while (t->buckets[i]) {
            struct sym *next = t->buckets[i]->next;
            free(t->buckets[i]);
            t->buckets[i] = next;
        }
    }
    free(t->buckets);
    *t = (struct intern){0};
}

static uint32_t hash_of(const char *text, size_t len)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

static void widen(struct intern *t)
{
    size_t n = t->nbuckets * 2;
    struct sym **buckets = mem_zalloc(n * sizeof(*buckets));

    for (size_t i = 0; i < t->nbuckets; i++) {
        for (struct sym *s = t->buckets[i], *next; s; s = next) {
            next = s->next;
            s->next = buckets[s->hash & (n - 1)];
            buckets[s->hash & (n - 1)] = s;
        }
    }
    free(t->buckets);
    t->buckets = buckets;
    t->nbuckets = n;
}

const struct sym *intern(struct intern *t, const char *text, size_t len)
{
    uint32_t h = hash_of(text, len);

    for (struct sym *s = t->buckets[h & (t->nbuckets - 1)]; s; s = s->next)
        if (s->hash == h && s->len == len && !memcmp(s->text, text, len))
            return s;
    if (++t->count > t->nbuckets)
        widen(t);

    struct sym *s = mem_alloc(sizeof(*s) + len + 1);
    *s = (struct sym){.next = t->buckets[h & (t->nbuckets - 1)], .hash = h, .len = (uint32_t)len};
    if (len)
        memcpy(s->text, text, len);
    s->text[len] = 0;
    t->buckets[h & (t->nbuckets - 1)] = s;
    return s;
}
