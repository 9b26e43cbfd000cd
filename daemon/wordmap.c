/*
 * Open addressing, at most half full.  A slot keeps 32 bits of the hash, so that strings are
 * compared only if they are very probably equal.
 */
#include "daemon/wordmap.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/error.h"
#include "daemon/sys.h"

struct slot {
        const char *bytes; /* NULL: empty */
        uint32_t count, hash, number;
};

struct wordmap {
        uint64_t key[2];
        uint32_t mask, left;
        struct slot slots[];
};

int wordmap_new(uint32_t strings_max, struct wordmap **ret_map)
{
        struct wordmap *map;
        uint64_t slots = 8;
        int r;

        while (slots < 2 * (uint64_t)strings_max)
                slots *= 2;
        assert(slots <= (uint64_t)UINT32_MAX + 1);
        map = calloc(1, sizeof(*map) + slots * sizeof(*map->slots));
        if (!map)
                return error_raise(-ENOMEM);
        map->mask = (uint32_t)(slots - 1);
        map->left = strings_max;
        r = sys_random(map->key, sizeof(map->key));
        if (r) {
                free(map);
                return error_raise(r);
        }
        *ret_map = map;
        return 0;
}

struct wordmap *wordmap_free(struct wordmap *map)
{
        free(map);
        return NULL;
}

static uint64_t turn(uint64_t x, unsigned by)
{
        return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
        v[0] += v[1];
        v[1] = turn(v[1], 13) ^ v[0];
        v[0] = turn(v[0], 32);
        v[2] += v[3];
        v[3] = turn(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = turn(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = turn(v[1], 17) ^ v[2];
        v[2] = turn(v[2], 32);
}

/* SipHash with one round a word and three at the end. */
static uint64_t sip(const uint64_t key[2], const char *bytes, size_t count)
{
        uint64_t v[4] = { key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                          key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u };
        uint64_t word;
        size_t at = 0;

        for (; count - at >= 8; at += 8) {
                memcpy(&word, bytes + at, 8);
                word = le64toh(word);
                v[3] ^= word;
                sip_round(v);
                v[0] ^= word;
        }
        word = (uint64_t)count << 56;
        for (unsigned i = 0; at + i < count; i++)
                word |= (uint64_t)(uint8_t)bytes[at + i] << 8 * i;
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
        v[2] ^= 0xff;
        for (unsigned i = 0; i < 3; i++)
                sip_round(v);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The slot of the string, or the empty slot where it belongs. */
static struct slot *find(const struct wordmap *map, const char *bytes, size_t count,
                         uint32_t *ret_hash)
{
        uint64_t hash = sip(map->key, bytes, count);
        uint32_t at = (uint32_t)hash & map->mask;

        *ret_hash = (uint32_t)(hash >> 32);
        for (;; at = (at + 1) & map->mask) {
                const struct slot *slot = &map->slots[at];

                if (!slot->bytes || (slot->hash == *ret_hash && slot->count == count &&
                                     !memcmp(slot->bytes, bytes, count)))
                        return (struct slot *)slot;
        }
}

uint32_t wordmap_put(struct wordmap *map, const char *bytes, size_t count, uint32_t number)
{
        uint32_t hash;
        struct slot *slot = find(map, bytes, count, &hash);

        assert(bytes && count <= UINT32_MAX);
        if (slot->bytes)
                return slot->number;
        assert(map->left);
        map->left--;
        *slot = (struct slot){ bytes, (uint32_t)count, hash, number };
        return number;
}

uint32_t wordmap_get(const struct wordmap *map, const char *bytes, size_t count)
{
        uint32_t hash;
        const struct slot *slot = find(map, bytes, count, &hash);

        return slot->bytes ? slot->number : WORDMAP_NONE;
}
