#include "daemon/edge/buffer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define ROOM_MIN 1024u

void buffer_init(struct buffer *buffer, size_t max)
{
        *buffer = (struct buffer){ .max = max };
}

void buffer_deinit(struct buffer *buffer)
{
        if (!buffer)
                return;
        free(buffer->bytes);
        *buffer = (struct buffer){ .max = buffer->max };
}

static void move_to_front(struct buffer *buffer)
{
        size_t held = buffer_count(buffer);

        memmove(buffer->bytes, buffer->bytes + buffer->start, held);
        buffer->start = 0;
        buffer->end = held;
}

static int grow(struct buffer *buffer, size_t need)
{
        size_t held = buffer_count(buffer);
        size_t room = buffer->room ? buffer->room : ROOM_MIN;
        uint8_t *bytes;

        while (room < need)
                room = room > buffer->max / 2 ? buffer->max : room * 2;
        if (room > buffer->max)
                room = buffer->max;

        bytes = malloc(room);
        if (!bytes)
                return error_raise(-ENOMEM);
        if (held)
                memcpy(bytes, buffer->bytes + buffer->start, held);
        free(buffer->bytes);
        buffer->bytes = bytes;
        buffer->room = room;
        buffer->start = 0;
        buffer->end = held;
        return 0;
}

/*
 * Bytes are moved to the front only if at least as many were taken as are left, or if the buffer
 * may not grow.  So each byte moves only a few times, even if the front is taken in small pieces.
 */
int buffer_reserve(struct buffer *buffer, size_t count)
{
        size_t held = buffer_count(buffer);

        assert(held <= buffer->max);
        if (count > buffer->max - held)
                return BUFFER_E_FULL;
        if (count <= buffer->room - buffer->end)
                return 0;
        if (held + count <= buffer->room &&
            (buffer->start >= held || buffer->room == buffer->max)) {
                move_to_front(buffer);
                return 0;
        }
        return error_pass(grow(buffer, held + count));
}

int buffer_append(struct buffer *buffer, const void *bytes, size_t count)
{
        int r;

        r = buffer_reserve(buffer, count);
        if (r)
                return error_pass(r);
        if (count)
                memcpy(buffer->bytes + buffer->end, bytes, count);
        buffer->end += count;
        return 0;
}

int buffer_reserve_both(struct buffer *buffer, size_t front, size_t count)
{
        assert(!buffer->bytes && front + count <= buffer->max);
        buffer->bytes = malloc(front + count);
        if (!buffer->bytes)
                return error_raise(-ENOMEM);
        buffer->room = front + count;
        buffer->start = buffer->end = front;
        return 0;
}

bool buffer_prepend(struct buffer *buffer, const void *bytes, size_t count)
{
        if (count > buffer->start)
                return false;
        buffer->start -= count;
        if (count)
                memcpy(buffer->bytes + buffer->start, bytes, count);
        return true;
}

void buffer_take(struct buffer *buffer, size_t count)
{
        assert(count <= buffer_count(buffer));
        buffer->start += count;
        if (buffer->start == buffer->end)
                buffer_deinit(buffer);
}
