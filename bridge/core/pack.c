#include "bridge/core/pack.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put(struct pack *pack, const void *bytes, size_t count)
{
        if (!pack->result)
                pack->result = bytes_add(&pack->to, bytes, count);
}

static void put_byte(struct pack *pack, unsigned byte)
{
        unsigned char one = (unsigned char)byte;

        put(pack, &one, 1);
}

/* A kind with a 32 bit count behind it: always legal, if not always the shortest. */
static void put_counted(struct pack *pack, unsigned kind, uint32_t count)
{
        uint32_t big = htobe32(count);

        put_byte(pack, kind);
        put(pack, &big, sizeof(big));
}

void pack_map(struct pack *pack, uint32_t pairs)
{
        if (pairs < 16)
                put_byte(pack, 0x80 | pairs);
        else
                put_counted(pack, 0xdf, pairs);
}

void pack_array(struct pack *pack, uint32_t elements)
{
        if (elements < 16)
                put_byte(pack, 0x90 | elements);
        else
                put_counted(pack, 0xdd, elements);
}

void pack_text(struct pack *pack, const char *text, size_t bytes)
{
        if (bytes > UINT32_MAX) {
                pack->result = pack->result ? pack->result : -ENOMEM;
                return;
        }
        if (bytes < 32)
                put_byte(pack, 0xa0 | (unsigned)bytes);
        else
                put_counted(pack, 0xdb, (uint32_t)bytes);
        put(pack, text, bytes);
}

void pack_word(struct pack *pack, const char *text)
{
        pack_text(pack, text, strlen(text));
}

void pack_bool(struct pack *pack, bool value)
{
        put_byte(pack, value ? 0xc3 : 0xc2);
}

static void put_wide(struct pack *pack, unsigned kind, uint64_t value)
{
        uint64_t big = htobe64(value);

        put_byte(pack, kind);
        put(pack, &big, sizeof(big));
}

/* An integer stays one: templates print 1 and 1.0 differently. */
static void pack_number(struct pack *pack, const struct json_document *json, uint32_t node)
{
        const char *text = json_number(json, node);
        uint64_t whole = 0, bits;
        double real = 0;
        long long negative;

        if (json_whole(json, node, &whole)) {
                put_wide(pack, 0xcf, whole);
                return;
        }
        if (!strpbrk(text, ".eE")) {
                errno = 0;
                negative = strtoll(text, NULL, 10);
                if (!errno) {
                        put_wide(pack, 0xd3, (uint64_t)negative);
                        return;
                }
        }
        json_real(json, node, &real);
        memcpy(&bits, &real, sizeof(bits));
        put_wide(pack, 0xcb, bits);
}

static void pack_one(struct pack *pack, const struct json_document *json, uint32_t node)
{
        const char *text;
        size_t bytes = 0;
        bool value = false;

        switch (json_kind(json, node)) {
        case JSON_STRING:
                text = json_string(json, node, &bytes);
                pack_text(pack, text, bytes);
                break;
        case JSON_NUMBER:
                pack_number(pack, json, node);
                break;
        case JSON_BOOL:
                json_bool(json, node, &value);
                pack_bool(pack, value);
                break;
        case JSON_ARRAY:
                pack_array(pack, json_count(json, node));
                break;
        case JSON_OBJECT:
                pack_map(pack, json_count(json, node));
                break;
        default:
                put_byte(pack, 0xc0);
        }
}

/* The nodes of a value stand in the order of the text, which is the order of msgpack, too. */
void pack_node(struct pack *pack, const struct json_document *json, uint32_t root)
{
        uint32_t left = 1; /* nodes whose text has not been packed */
        const char *key;
        size_t bytes = 0;

        if (root == JSON_NONE) {
                put_byte(pack, 0xc0);
                return;
        }
        for (uint32_t node = root; left; node++, left--) {
                key = node == root ? NULL : json_key(json, node, &bytes);
                if (key)
                        pack_text(pack, key, bytes);
                pack_one(pack, json, node);
                left += json_count(json, node);
        }
}
