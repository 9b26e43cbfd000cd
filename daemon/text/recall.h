/*
 * Recall: which ids a chunk of a text came to, for when the text says it again.
 *
 * Texts say the same words over and over, and merging is most of what encoding takes.  One
 * lives as long as one encoding: no clock tells what somebody else's text has said.  Its room is
 * fixed, and who comes takes the place of who is there: no text makes it slow.
 */
#ifndef DAEMON_TEXT_RECALL_H
#define DAEMON_TEXT_RECALL_H

#include <stddef.h>
#include <stdint.h>

#define RECALL_BYTES 22 /* of a chunk at most */
#define RECALL_IDS   10

struct recalled { /* one line of a cache */
        uint32_t ids[RECALL_IDS];
        uint8_t id_count, byte_count; /* 0: nobody is here */
        char bytes[RECALL_BYTES];
};

struct recall {
        struct recalled *slots; /* NULL: too short a text to say anything twice */
        uint32_t mask;
};

/* For a text of so many bytes.  0 or -ENOMEM. */
int recall_init(struct recall *recall, size_t text_bytes);
void recall_deinit(struct recall *recall); /* all zero is fine */

/* A chunk of at least one byte.  NULL: it is not known; else until the next keep. */
const struct recalled *recall_find(const struct recall *recall, const char *bytes, size_t count);
/* Does nothing if there is no room for so many of either. */
void recall_keep(struct recall *recall, const char *bytes, size_t count, const uint32_t *ids,
                 size_t id_count);

#endif
