/*
 * The reader of GGUF headers: from bytes to pairs and tensors, one after another.
 *
 * files/gguf.c drives it and makes the table; nobody else calls it.
 */
#ifndef DAEMON_FILES_GGUF_READER_H
#define DAEMON_FILES_GGUF_READER_H

#include <errno.h>
#include <stdint.h>

#include "daemon/files/gguf.h"
#include "daemon/error.h"

/* The bytes that are here end in the middle: read more of the file and begin again. */
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
        const uint8_t *
                value; /* a string: its bytes; an array: its type u32, its count u64, its elements */
        uint32_t type;
};

struct reader {
        uint8_t *bytes;
        uint64_t at, have, limit; /* at <= have <= limit */
        uint64_t file_bytes;
        const char *what; /* what is being read, for the message: "metadata", "tensor" ... */
        uint64_t index;
        const char *name; /* ... once it is known */
        char *why;
        size_t why_bytes;
};

/* Writes the sentence, with what is being read in front. */
__attribute__((format(printf, 2, 3))) void reader_fault(const struct reader *r, const char *format,
                                                        ...);
/* -EINVAL; written out at the end, so that a compiler sees that it is not 0. */
#define reader_refuse(r, ...) (reader_fault((r), __VA_ARGS__), (void)error_raise(-EINVAL), -EINVAL)

/* In the order of the file.  0, GGUF_E_MORE, or -EINVAL and *r->why. */
int reader_take_preamble(struct reader *r, uint64_t *ret_tensors, uint64_t *ret_pairs);
int reader_take_pair(struct reader *r, struct pair *ret_pair);
int reader_take_tensor(struct reader *r, struct tensor *ret_tensor); /* offset: in the data */

#endif
