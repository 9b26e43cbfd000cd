/*
 * Makes small GGUF files in memory, valid and invalid ones.
 *
 * make_gguf() writes one file: some metadata and two tensors.  A recipe names the differences
 * from a valid file.  A field left 0 keeps the valid value, and ZERO stands for a real 0.
 */
#ifndef TESTS_UNIT_GGUF_MAKER_H
#define TESTS_UNIT_GGUF_MAKER_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define ZERO (UINT64_MAX - 12345)

struct file {
        uint8_t bytes[4096];
        size_t count;
};

struct raw {
        const char *bytes;
        size_t count;
};
#define RAW(literal)                                                                               \
        {                                                                                          \
                (literal), sizeof(literal) - 1                                                     \
        }

struct recipe {
        const char *magic;
        uint64_t version, tensor_count, pair_count, alignment;
        struct raw pair; /* one more pair, as the raw bytes of the file */
        struct {
                const char *name;
                struct raw name_raw; /* length field included */
                uint64_t rank, size[5], type, offset;
        } tensor[2];
        uint64_t data_bytes;
};

static inline void file_put(struct file *f, const void *bytes, size_t count)
{
        assert(count <= sizeof(f->bytes) - f->count);
        memcpy(f->bytes + f->count, bytes, count);
        f->count += count;
}

static inline void file_int(struct file *f, uint64_t value, unsigned bytes)
{
        uint8_t le[8];

        for (unsigned i = 0; i < 8; i++)
                le[i] = (uint8_t)(value >> (8 * i));
        file_put(f, le, bytes);
}

static inline void file_string(struct file *f, const char *text)
{
        file_int(f, strlen(text), 8);
        file_put(f, text, strlen(text));
}

static inline void file_number(struct file *f, const char *key, uint32_t type, uint64_t value,
                               unsigned bytes)
{
        file_string(f, key);
        file_int(f, type, 4);
        file_int(f, value, bytes);
}

static inline uint64_t or_usual(uint64_t value, uint64_t usual)
{
        return value == ZERO ? 0 : value ? value : usual;
}

/* 8 pairs, one of them the recipe's own or a pair like it; a: 4 x 3 F32 at 0, b: 8 F16 at 64. */
static inline void make_gguf(const struct recipe *r, struct file *ret_file)
{
        static const struct {
                const char *name;
                uint64_t rank, size[5], type, offset;
        } usual[2] = { { "a", 2, { 4, 3 }, 0, 0 }, { "b", 1, { 8 }, 1, 64 } };
        struct file f = { .count = 0 };

        file_put(&f, r->magic ? r->magic : "GGUF", 4);
        file_int(&f, or_usual(r->version, 3), 4);
        file_int(&f, or_usual(r->tensor_count, 2), 8);
        file_int(&f, or_usual(r->pair_count, 8), 8);
        file_number(&f, "general.alignment", 4, or_usual(r->alignment, 32), 4);
        file_number(&f, "small", 0, 200, 1);
        file_number(&f, "negative", 5, (uint32_t)-1, 4);
        file_number(&f, "wide", 10, UINT64_C(1) << 32, 8);
        file_number(&f, "half", 6, 0x3f000000, 4);
        file_number(&f, "yes", 7, 1, 1);
        file_string(&f, "text");
        file_int(&f, 8, 4);
        file_string(&f, "hello");
        if (r->pair.bytes)
                file_put(&f, r->pair.bytes, r->pair.count);
        else
                file_number(&f, "extra", 12, 0x3fd0000000000000, 8);
        for (unsigned i = 0; i < 2; i++) {
                uint64_t rank = or_usual(r->tensor[i].rank, usual[i].rank);

                if (r->tensor[i].name_raw.bytes)
                        file_put(&f, r->tensor[i].name_raw.bytes, r->tensor[i].name_raw.count);
                else
                        file_string(&f, r->tensor[i].name ? r->tensor[i].name : usual[i].name);
                file_int(&f, rank, 4);
                for (unsigned s = 0; s < rank && s < 5; s++)
                        file_int(&f, or_usual(r->tensor[i].size[s], usual[i].size[s]), 8);
                file_int(&f, or_usual(r->tensor[i].type, usual[i].type), 4);
                file_int(&f, or_usual(r->tensor[i].offset, usual[i].offset), 8);
        }
        while (f.count % 32)
                file_int(&f, 0, 1);
        for (uint64_t i = 0; i < or_usual(r->data_bytes, 80); i++)
                file_int(&f, i, 1);
        *ret_file = f;
}

#endif
