/*
 * msgpack items, read one at a time from hostile bytes, without a tree.
 *
 * A cursor walks a frame's body.  An item is what the cursor points at: a scalar with its value, a
 * text with its bytes, or the head of an array or a map, whose elements follow.  Reading an item
 * checks that its bytes are there, and that a container does not declare more elements than bytes
 * are left.  Items borrow from the frame; nothing is allocated, nothing recurses.
 */
#ifndef DAEMON_EDGE_MSGPACK_READER_H
#define DAEMON_EDGE_MSGPACK_READER_H

#include <stddef.h>
#include <stdint.h>

enum item_kind {
        ITEM_NIL,
        ITEM_BOOL,
        ITEM_UINT, /* an integer of any width, 0 or more */
        ITEM_NEGATIVE,
        ITEM_FLOAT,
        ITEM_TEXT,
        ITEM_BIN,
        ITEM_ARRAY,
        ITEM_MAP,
};

struct item {
        enum item_kind kind;
        uint32_t count; /* bytes of a text, elements of an array, pairs of a map */
        union {
                uint64_t u; /* a bool's too */
                int64_t negative;
                double number;
                const char *bytes;
        };
};

struct cursor {
        const uint8_t *at, *end;
};

/* Reads one item and moves the cursor past it.  NULL, or what is wrong with the bytes. */
const char *item_next(struct cursor *cursor, struct item *ret_item);

/*
 * The same for one whole value that is inside `depth` containers; checks depth and number of keys.
 */
const char *item_skip(struct cursor *cursor, uint32_t depth);

#endif
