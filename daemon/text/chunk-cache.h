/*
 * Chunk cache: from chunks of a text to their token ids.
 *
 * Texts repeat the same words, and most of the time of an encoding goes into merging.  A cache
 * lives for one encoding only, so that timing tells a client nothing about the texts of others.
 * Its size is fixed and a new chunk replaces the old one in its slot, so no text makes it slow.
 */
#ifndef DAEMON_TEXT_CHUNK_CACHE_H
#define DAEMON_TEXT_CHUNK_CACHE_H

#include <stddef.h>
#include <stdint.h>

/* The longest chunk that is stored, in bytes and in ids. */
#define CHUNK_BYTES_MAX 22
#define CHUNK_IDS_MAX   10

struct cached_chunk { /* as large as one cache line of the processor */
        uint32_t ids[CHUNK_IDS_MAX];
        uint8_t id_count, byte_count; /* byte_count 0: the slot is empty */
        char bytes[CHUNK_BYTES_MAX];
};

struct chunk_cache {
        struct cached_chunk *slots; /* NULL: the text is too short for a cache to pay */
        uint32_t mask;
};

/* For a text of `text_bytes` bytes.  0 or -ENOMEM. */
int chunk_cache_init(struct chunk_cache *cache, size_t text_bytes);
void chunk_cache_deinit(struct chunk_cache *cache); /* all zero is fine */

/*
 * For a chunk of at least one byte.  NULL: not stored.  Else valid until the next
 * chunk_cache_put().
 */
const struct cached_chunk *chunk_cache_find(const struct chunk_cache *cache, const char *bytes,
                                            size_t count);
/* Stores a chunk.  Does nothing if it has more than CHUNK_BYTES_MAX bytes or CHUNK_IDS_MAX ids. */
void chunk_cache_put(struct chunk_cache *cache, const char *bytes, size_t count,
                     const uint32_t *ids, size_t id_count);

#endif
