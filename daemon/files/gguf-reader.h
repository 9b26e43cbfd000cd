/*
 * The parser of GGUF headers: reads pairs and tensors from bytes, one after another.
 *
 * Only files/gguf.c calls it; that file makes the table.
 */
#ifndef DAEMON_FILES_GGUF_READER_H
#define DAEMON_FILES_GGUF_READER_H

#include <errno.h>
#include <stdint.h>

#include "daemon/files/gguf.h"
#include "daemon/error.h"

/* The bytes read so far end in the middle: read more of the file and parse from the start. */
enum { GGUF_E_MORE = 1 };

enum value_type {
        VALUE_U8,
        VALUE_I8,
        VALUE_U16,
        VALUE_I16,
        VALUE_U32,
        VALUE_I32,
        VALUE_F32,
        VALUE_BOOL,
        VALUE_STRING,
        VALUE_ARRAY,
        VALUE_U64,
        VALUE_I64,
        VALUE_F64,
        VALUE_TYPE_N,
};

struct pair {
        const char *key;
        const uint8_t *value; /* string: its bytes; array: type u32, count u64, elements */
        uint32_t type;
};

struct reader {
        uint8_t *bytes;
        uint64_t at, have, limit; /* at <= have <= limit */
        uint64_t file_bytes;
        const char *what; /* what is being read, for messages: "metadata", "tensor" ... */
        uint64_t index;
        const char *name; /* its name, once it is known */
        char *why;
        size_t why_bytes;
};

/* Writes the error sentence, with what is being read in front. */
__attribute__((format(printf, 2, 3))) void reader_fault(const struct reader *r, const char *format,
                                                        ...);
/* -EINVAL; written literally at the end, so that a compiler sees that it is not 0. */
#define reader_refuse(r, ...) (reader_fault((r), __VA_ARGS__), (void)error_raise(-EINVAL), -EINVAL)

/* Call these in the order of the file.  Each returns 0, GGUF_E_MORE, or -EINVAL and *r->why. */
int reader_take_preamble(struct reader *r, uint64_t *ret_tensors, uint64_t *ret_pairs);
int reader_take_pair(struct reader *r, struct pair *ret_pair);
/* its offset is relative to the data */
int reader_take_tensor(struct reader *r, struct tensor *ret_tensor);

#endif
