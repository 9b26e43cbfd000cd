/*
 * A bounded run of bytes that is filled at the end and taken from the front.  It grows by doubling
 * up to its maximum, and frees its memory when it is empty.
 */
#ifndef DAEMON_EDGE_BUFFER_H
#define DAEMON_EDGE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
        uint8_t *bytes;
        size_t start, end; /* bytes[start .. end) is the content */
        size_t room;       /* allocated */
        size_t max;        /* the content never has more bytes */
};

enum buffer_outcome { BUFFER_E_FULL = 1 };

void buffer_init(struct buffer *buffer, size_t max);
void buffer_deinit(struct buffer *buffer);

static inline size_t buffer_count(const struct buffer *buffer)
{
        return buffer->end - buffer->start;
}

/* Makes `count` more bytes writable at the end: 0, BUFFER_E_FULL or -ENOMEM. */
int buffer_reserve(struct buffer *buffer, size_t count);
int buffer_append(struct buffer *buffer, const void *bytes, size_t count);
/*
 * Allocates an empty buffer that has no memory yet.  It has `count` bytes for the end, and `front`
 * bytes in front, so that buffer_prepend() of as many bytes moves nothing.  0 or -ENOMEM.
 */
int buffer_reserve_both(struct buffer *buffer, size_t front, size_t count);
/* Puts bytes in front of the content; false: there is no room for them in front. */
bool buffer_prepend(struct buffer *buffer, const void *bytes, size_t count);
void buffer_take(struct buffer *buffer, size_t count); /* from the front */

#endif
