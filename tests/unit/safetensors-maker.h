/*
 * Makes small safetensors files in memory, valid and invalid ones: the length of the header,
 * the header as it is given, and data whose bytes count up from a number.
 */
#ifndef TESTS_UNIT_SAFETENSORS_MAKER_H
#define TESTS_UNIT_SAFETENSORS_MAKER_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* One member of the header: MEMBER("a", "F32", "[3,4]", "[0,48]") */
#define MEMBER(name, dtype, shape, offsets)                                                        \
        "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

struct made {
        uint8_t bytes[4096];
        size_t count;
};

static inline void make_safetensors(struct made *made, const char *header, uint64_t length,
                                    size_t data_bytes, unsigned data_from)
{
        size_t n = strlen(header);

        assert(8 + n + data_bytes <= sizeof(made->bytes));
        for (unsigned i = 0; i < 8; i++)
                made->bytes[i] = (uint8_t)(length >> (8 * i));
        memcpy(made->bytes + 8, header, n);
        for (size_t i = 0; i < data_bytes; i++)
                made->bytes[8 + n + i] = (uint8_t)(data_from + i);
        made->count = 8 + n + data_bytes;
}

#endif
