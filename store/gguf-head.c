/* All supported machines are little-endian, as GGUF is. */
#include "store/gguf-head.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define DIMENSIONS_MAX 8u
#define ALIGNMENT      32u

enum { TYPE_UINT32 = 4, TYPE_UINT16 = 2, TYPE_STRING = 8, TYPE_ARRAY = 9, TYPES = 13 };

static const uint8_t type_bytes[TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

/* Reads forward; after the first failure everything is 0. */
struct cursor {
        const uint8_t *bytes;
        size_t at, count;
        int result; /* 0, -EAGAIN or -EINVAL */
};

static void skip(struct cursor *cursor, uint64_t bytes)
{
        if (cursor->result)
                return;
        if (bytes > GGUF_HEAD_MAX || cursor->at + bytes > GGUF_HEAD_MAX)
                cursor->result = -EINVAL;
        else if (bytes > cursor->count - cursor->at)
                cursor->result = -EAGAIN;
        else
                cursor->at += (size_t)bytes;
}

static uint64_t read_number(struct cursor *cursor, size_t bytes)
{
        size_t at = cursor->at;
        uint64_t number = 0;

        skip(cursor, bytes);
        if (!cursor->result)
                memcpy(&number, cursor->bytes + at, bytes);
        return number;
}

static struct gguf_span read_text(struct cursor *cursor)
{
        uint64_t bytes = read_number(cursor, 8);
        struct gguf_span span = { cursor->at, (size_t)bytes };

        skip(cursor, bytes);
        return span;
}

static void skip_value(struct cursor *cursor, uint64_t type)
{
        uint64_t element, count;

        if (type == TYPE_STRING) {
                read_text(cursor);
        } else if (type == TYPE_ARRAY) {
                element = read_number(cursor, 4);
                count = read_number(cursor, 8);
                if (element >= TYPES || element == TYPE_ARRAY || count > GGUF_HEAD_MAX)
                        cursor->result = cursor->result ? cursor->result : -EINVAL;
                else if (element != TYPE_STRING)
                        skip(cursor, count * type_bytes[element]);
                for (; element == TYPE_STRING && count && !cursor->result; count--)
                        read_text(cursor);
        } else if (type < TYPES) {
                skip(cursor, type_bytes[type]);
        } else if (!cursor->result) {
                cursor->result = -EINVAL;
        }
}

static bool is_name(const struct cursor *cursor, struct gguf_span name, const char *wanted)
{
        return name.bytes == strlen(wanted) && !memcmp(cursor->bytes + name.at, wanted, name.bytes);
}

static void read_key(struct cursor *cursor, struct gguf_head *head)
{
        struct gguf_span name = read_text(cursor);
        uint64_t type = read_number(cursor, 4), number = 0;
        size_t value = cursor->at;

        skip_value(cursor, type);
        if (cursor->result || (type != TYPE_UINT32 && type != TYPE_UINT16))
                return;
        memcpy(&number, cursor->bytes + value, type_bytes[type]);
        if (is_name(cursor, name, "general.alignment"))
                head->alignment = (uint32_t)number;
        else if (is_name(cursor, name, "split.no"))
                head->piece = (uint32_t)number;
        else if (is_name(cursor, name, "split.count"))
                head->piece_count = (uint32_t)number;
}

static void read_tensor(struct cursor *cursor)
{
        uint64_t dimensions;

        read_text(cursor);
        dimensions = read_number(cursor, 4);
        if (dimensions > DIMENSIONS_MAX && !cursor->result)
                cursor->result = -EINVAL;
        skip(cursor, 8 * dimensions + 4 + 8);
}

int gguf_head_read(const void *bytes, size_t count, struct gguf_head *ret_head)
{
        struct cursor cursor = { .bytes = bytes, .count = count };
        struct gguf_head *head = ret_head;
        uint64_t magic = read_number(&cursor, 4);

        *head = (struct gguf_head){ .alignment = ALIGNMENT };
        head->version = (uint32_t)read_number(&cursor, 4);
        head->tensor_count = read_number(&cursor, 8);
        head->key_count = read_number(&cursor, 8);
        if (cursor.result)
                return cursor.result;
        if (magic != 0x46554747 || head->version < 2 || head->version > 3)
                return -EINVAL;
        head->keys.at = cursor.at;
        for (uint64_t i = 0; i < head->key_count && !cursor.result; i++)
                read_key(&cursor, head);
        head->keys.bytes = cursor.at - head->keys.at;
        head->tensors.at = cursor.at;
        for (uint64_t i = 0; i < head->tensor_count && !cursor.result; i++)
                read_tensor(&cursor);
        head->tensors.bytes = cursor.at - head->tensors.at;
        if (!cursor.result && (!head->alignment || head->alignment > 1u << 20))
                return -EINVAL;
        head->data_at = (cursor.at + head->alignment - 1) / head->alignment * head->alignment;
        return cursor.result;
}

static struct gguf_entry take_entry(struct cursor *cursor, size_t begin, struct gguf_span name)
{
        assert(!cursor->result);
        return (struct gguf_entry){ .name = (const char *)cursor->bytes + name.at,
                                    .name_bytes = name.bytes,
                                    .whole = { begin, cursor->at - begin } };
}

struct gguf_entry gguf_head_key(const void *bytes, size_t *at)
{
        struct cursor cursor = { .bytes = bytes, .at = *at, .count = GGUF_HEAD_MAX };
        struct gguf_span name = read_text(&cursor);
        struct gguf_entry entry;

        skip_value(&cursor, read_number(&cursor, 4));
        entry = take_entry(&cursor, *at, name);
        *at = cursor.at;
        return entry;
}

struct gguf_entry gguf_head_tensor(const void *bytes, size_t *at)
{
        struct cursor cursor = { .bytes = bytes, .at = *at, .count = GGUF_HEAD_MAX };
        struct gguf_span name = read_text(&cursor);
        struct gguf_entry entry;

        skip(&cursor, 8 * read_number(&cursor, 4) + 4);
        entry = take_entry(&cursor, *at, name);
        entry.offset = read_number(&cursor, 8);
        entry.whole.bytes = cursor.at - *at;
        *at = cursor.at;
        return entry;
}
