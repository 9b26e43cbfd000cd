/*
 * Open addressing, at most half full.  A slot keeps 32 bits of the hash, so that strings are
 * compared only if they are very probably equal.
 */
#include "base/wordmap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/siphash.h"
#include "base/sys.h"

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

/* The slot of the string, or the empty slot where it belongs. */
static struct slot *find_slot(const struct wordmap *map, const char *bytes, size_t count,
                              uint32_t *ret_hash)
{
        uint64_t hash = siphash_short(map->key, bytes, count);
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
        struct slot *slot = find_slot(map, bytes, count, &hash);

        assert(bytes && count <= UINT32_MAX);
        if (slot->bytes)
                return slot->number;
        assert(map->left);
        map->left--;
        *slot = (struct slot){ bytes, (uint32_t)count, hash, number };
        return number;
}

void wordmap_replace(struct wordmap *map, const char *bytes, size_t count, uint32_t number)
{
        uint32_t hash;
        struct slot *slot = find_slot(map, bytes, count, &hash);

        assert(slot->bytes);
        slot->number = number;
}

uint32_t wordmap_get(const struct wordmap *map, const char *bytes, size_t count)
{
        uint32_t hash;
        const struct slot *slot = find_slot(map, bytes, count, &hash);

        return slot->bytes ? slot->number : WORDMAP_NONE;
}
