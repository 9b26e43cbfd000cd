/*
 * Each chunk can be in one slot only.  The hash is a fast one without a secret.  A client that
 * makes chunks collide only slows down its own text, to the speed that it has without a cache.
 */
#include "daemon/text/chunk-cache.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define TEXT_BYTES_MIN 512u
#define SLOTS_MAX      4096u

int chunk_cache_init(struct chunk_cache *cache, size_t text_bytes)
{
        uint32_t slots = 64;

        *cache = (struct chunk_cache){ 0 };
        if (text_bytes < TEXT_BYTES_MIN)
                return 0;
        while (slots < SLOTS_MAX && slots < text_bytes / 8)
                slots *= 2;
        cache->slots = calloc(slots, sizeof(*cache->slots));
        if (!cache->slots)
                return error_raise(-ENOMEM);
        cache->mask = slots - 1;
        return 0;
}

void chunk_cache_deinit(struct chunk_cache *cache)
{
        free(cache->slots);
        *cache = (struct chunk_cache){ 0 };
}

static uint64_t eight(const char *bytes)
{
        uint64_t word;

        memcpy(&word, bytes, sizeof(word));
        return word;
}

static uint32_t four(const char *bytes)
{
        uint32_t word;

        memcpy(&word, bytes, sizeof(word));
        return word;
}

/* Reads all bytes of the chunk, some of them twice, and none outside of it. */
static uint64_t hash(const char *bytes, size_t count)
{
        uint64_t a, b, h;

        if (count >= 8) {
                a = eight(bytes) ^ (count > 16 ? eight(bytes + 8) * 0x9e3779b97f4a7c15u : 0);
                b = eight(bytes + count - 8);
        } else if (count >= 4) {
                a = four(bytes);
                b = four(bytes + count - 4);
        } else {
                a = (uint8_t)bytes[0] | (uint64_t)(uint8_t)bytes[count / 2] << 8;
                b = (uint8_t)bytes[count - 1];
        }
        h = (a + count) * 0x9e3779b97f4a7c15u;
        h = (h ^ h >> 29 ^ b) * 0xbf58476d1ce4e5b9u;
        return h ^ h >> 32;
}

static struct cached_chunk *slot_of(const struct chunk_cache *cache, const char *bytes,
                                    size_t count)
{
        return &cache->slots[hash(bytes, count) & cache->mask];
}

const struct cached_chunk *chunk_cache_find(const struct chunk_cache *cache, const char *bytes,
                                            size_t count)
{
        const struct cached_chunk *slot;

        assert(count);
        if (!cache->slots || count > CHUNK_BYTES_MAX)
                return NULL;
        slot = slot_of(cache, bytes, count);
        return slot->byte_count == count && !memcmp(slot->bytes, bytes, count) ? slot : NULL;
}

void chunk_cache_put(struct chunk_cache *cache, const char *bytes, size_t count,
                     const uint32_t *ids, size_t id_count)
{
        struct cached_chunk *slot;

        assert(count);
        if (!cache->slots || count > CHUNK_BYTES_MAX || id_count > CHUNK_IDS_MAX)
                return;
        slot = slot_of(cache, bytes, count);
        slot->byte_count = (uint8_t)count;
        slot->id_count = (uint8_t)id_count;
        memcpy(slot->bytes, bytes, count);
        memcpy(slot->ids, ids, id_count * sizeof(*ids));
}
