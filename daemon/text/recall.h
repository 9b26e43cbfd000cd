/*
 * Recall: a cache from chunks of a text to their token ids.
 *
 * Texts repeat the same words, and most of the time of an encoding goes into merging.  A cache
 * lives for one encoding only, so that timing tells a client nothing about the texts of others.
 * Its size is fixed and a new chunk replaces the old one in its slot, so no text makes it slow.
 */
#ifndef DAEMON_TEXT_RECALL_H
#define DAEMON_TEXT_RECALL_H

#include <stddef.h>
#include <stdint.h>

/* The longest chunk that is stored, in bytes and in ids. */
#define RECALL_BYTES 22
#define RECALL_IDS   10

struct recalled { /* as large as one cache line of the processor */
        uint32_t ids[RECALL_IDS];
        uint8_t id_count, byte_count; /* byte_count 0: the slot is empty */
        char bytes[RECALL_BYTES];
};

struct recall {
        struct recalled *slots; /* NULL: the text is too short for a cache to pay */
        uint32_t mask;
};

/* For a text of `text_bytes` bytes.  0 or -ENOMEM. */
int recall_init(struct recall *recall, size_t text_bytes);
void recall_deinit(struct recall *recall); /* all zero is fine */

/* For a chunk of at least one byte.  NULL: not stored.  Else valid until the next recall_keep(). */
const struct recalled *recall_find(const struct recall *recall, const char *bytes, size_t count);
/* Stores a chunk.  Does nothing if it has more than RECALL_BYTES bytes or RECALL_IDS ids. */
void recall_keep(struct recall *recall, const char *bytes, size_t count, const uint32_t *ids,
                 size_t id_count);

#endif
