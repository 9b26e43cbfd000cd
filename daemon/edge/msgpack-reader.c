#include "daemon/edge/msgpack-reader.h"

#include <stdbool.h>
#include <string.h>

#include <samovar/protocol.h>

static bool number(struct cursor *cursor, uint32_t bytes, uint64_t *ret_number)
{
        uint64_t n = 0;

        if ((size_t)(cursor->end - cursor->at) < bytes)
                return false;
        for (uint32_t i = 0; i < bytes; i++)
                n = n << 8 | cursor->at[i];
        cursor->at += bytes;
        *ret_number = n;
        return true;
}

static void set_signed(struct item *item, int64_t value)
{
        if (value < 0) {
                item->kind = ITEM_NEGATIVE;
                item->negative = value;
        } else {
                item->kind = ITEM_UINT;
                item->u = (uint64_t)value;
        }
}

static void set_scalar(struct item *item, uint8_t type, uint64_t n)
{
        uint32_t low_bits, unused;
        float single;

        if (type >= 0xd0) { /* int 8, 16, 32, 64 */
                unused = 64 - (8u << (type & 3));
                set_signed(item, (int64_t)(n << unused) >> unused);
        } else if (type >= 0xcc) { /* uint 8, 16, 32, 64 */
                item->kind = ITEM_UINT;
                item->u = n;
        } else if (type == 0xcb) {
                item->kind = ITEM_FLOAT;
                memcpy(&item->number, &n, sizeof(n));
        } else {
                item->kind = ITEM_FLOAT;
                low_bits = (uint32_t)n;
                memcpy(&single, &low_bits, sizeof(single));
                item->number = single;
        }
}

/* How many bytes of number follow the first byte, from 0xc0 on; NONE: this type is refused. */
#define NONE 0xff
static const uint8_t follows[32] = {
        [0x00] = 0,    NONE, 0,    0,          /* nil, never used, false, true */
        [0x04] = 1,    2,    4,                /* bin */
        [0x07] = NONE, NONE, NONE,             /* ext */
        [0x0a] = 4,    8,                      /* float */
        [0x0c] = 1,    2,    4,    8,          /* uint */
        [0x10] = 1,    2,    4,    8,          /* int */
        [0x14] = NONE, NONE, NONE, NONE, NONE, /* fixext */
        [0x19] = 1,    2,    4,                /* str */
        [0x1c] = 2,    4,                      /* array */
        [0x1e] = 2,    4,                      /* map */
};

static const char *item_sized(struct cursor *cursor, struct item *item)
{
        size_t left = (size_t)(cursor->end - cursor->at);
        uint64_t need = item->kind == ITEM_MAP ? 2 * (uint64_t)item->count : item->count;

        if (need > left)
                return item->kind >= ITEM_ARRAY ? "more elements are declared than bytes are left"
                                                : "a text or binary is cut off";
        if (item->kind < ITEM_ARRAY) {
                item->bytes = (const char *)cursor->at;
                cursor->at += need;
        }
        return NULL;
}

const char *item_next(struct cursor *cursor, struct item *ret_item)
{
        struct item *item = ret_item;
        uint64_t n;
        uint8_t type;

        if (cursor->at == cursor->end)
                return "the map is cut off";
        type = *cursor->at++;
        *item = (struct item){ .count = 0 };

        if (type < 0x80 || type >= 0xe0) {
                set_signed(item, (int8_t)type);
                return NULL;
        }
        if (type < 0xc0) {
                item->kind = type < 0x90 ? ITEM_MAP : type < 0xa0 ? ITEM_ARRAY : ITEM_TEXT;
                item->count = type & (type < 0xa0 ? 0x0f : 0x1f);
                return item_sized(cursor, item);
        }
        if (follows[type - 0xc0] == NONE)
                return "the frame has an extension type, or the byte c1";
        if (!number(cursor, follows[type - 0xc0], &n))
                return "a number is cut off";
        if (type < 0xc4) {
                item->kind = type == 0xc0 ? ITEM_NIL : ITEM_BOOL;
                item->u = type == 0xc3;
                return NULL;
        }
        if (type >= 0xca && type < 0xd4) {
                set_scalar(item, type, n);
                return NULL;
        }
        item->kind = type < 0xd0   ? ITEM_BIN
                     : type < 0xdc ? ITEM_TEXT
                     : type < 0xde ? ITEM_ARRAY
                                   : ITEM_MAP;
        item->count = (uint32_t)n;
        return item_sized(cursor, item);
}

/*
 * Steps over one value, which is inside `depth` containers.  Instead of recursion it has a stack:
 * how many elements each open container still needs.
 */
const char *item_skip(struct cursor *cursor, uint32_t depth)
{
        uint64_t wanted[SMV_NESTING_MAX + 1] = { 1 };
        uint32_t open = 0;

        for (;;) {
                struct item item;
                const char *wrong;

                while (!wanted[open]) {
                        if (!open)
                                return NULL;
                        open--;
                }
                wanted[open]--;
                wrong = item_next(cursor, &item);
                if (wrong)
                        return wrong;
                if (item.kind < ITEM_ARRAY)
                        continue;
                if (depth + open >= SMV_NESTING_MAX)
                        return "arrays and maps are nested deeper than 32";
                if (item.kind == ITEM_MAP && item.count > SMV_KEYS_MAX)
                        return "a map has more than 64 keys";
                wanted[++open] = item.kind == ITEM_MAP ? 2 * (uint64_t)item.count : item.count;
        }
}
