/*
 * Between wire.c and fields.c only: msgpack items, and the table of fields.
 *
 * A cursor walks a frame's body.  An item is what stands at it: a scalar with
 * its value, a text with its bytes, or the head of an array or a map, whose
 * elements then follow.  Reading an item checks that its bytes are there and
 * that a container does not declare more elements than bytes are left.
 */
#ifndef DAEMON_EDGE_FIELDS_H
#define DAEMON_EDGE_FIELDS_H

#include "daemon/edge/wire.h"

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
                uint64_t u; /* also a bool's */
                int64_t negative;
                double number;
                const char *bytes;
        };
};

struct cursor {
        const uint8_t *at, *end;
};

/* NULL, or what is wrong with the bytes; the cursor is past the item then. */
const char *item_next(struct cursor *cursor, struct item *ret_item);

/* What a field is read with. */
struct reading {
        struct cursor at; /* behind the head of the value */
        struct wire_request *request;
        struct wire_problem *problem;
};

struct field {
        struct wire_row row;
        int (*read)(struct reading *in, const struct field *field, const struct item *item);
        size_t offset; /* in struct wire_request */
};

const struct field *field_at(enum wire_field number);
const struct field *field_find(const char *name, size_t bytes); /* NULL: there is none */
bool field_reserved(const char *name, size_t bytes);

/* A client's own words, fit to be shown: cut, and no control byte and no half character in it. */
void field_shown(char ret_shown[32], const char *name, size_t bytes);

#endif
