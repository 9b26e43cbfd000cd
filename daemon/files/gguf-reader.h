/*
 * The parser of GGUF headers: reads pairs and tensors from bytes, one after another.
 *
 * Only files/gguf.c calls it; that file makes the table.
 */
#ifndef DAEMON_FILES_GGUF_READER_H
#define DAEMON_FILES_GGUF_READER_H

#include <errno.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/files/tensor.h"

/* The bytes read so far end in the middle: read more of the file and parse from the start. */
enum { GGUF_E_MORE = 1 };

enum gguf_type {
        GGUF_U8,
        GGUF_I8,
        GGUF_U16,
        GGUF_I16,
        GGUF_U32,
        GGUF_I32,
        GGUF_F32,
        GGUF_BOOL,
        GGUF_STRING,
        GGUF_ARRAY,
        GGUF_U64,
        GGUF_I64,
        GGUF_F64,
        GGUF_TYPE_N,
};

struct gguf_pair {
        const char *key;
        const uint8_t *value; /* string: its bytes; array: type u32, count u64, elements */
        uint32_t type;
};

struct gguf_reader {
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
__attribute__((format(printf, 2, 3))) void gguf_reader_fault(const struct gguf_reader *r,
                                                             const char *format, ...);
/* -EINVAL; written literally at the end, so that a compiler sees that it is not 0. */
#define gguf_reader_refuse(r, ...)                                                                 \
        (gguf_reader_fault((r), __VA_ARGS__), (void)error_raise(-EINVAL), -EINVAL)

/* Call these in the order of the file.  Each returns 0, GGUF_E_MORE, or -EINVAL and *r->why. */
int gguf_reader_take_preamble(struct gguf_reader *r, uint32_t pairs_max, uint64_t *ret_tensors,
                              uint64_t *ret_pairs);
int gguf_reader_take_pair(struct gguf_reader *r, struct gguf_pair *ret_pair);
/* its offset is relative to the data */
int gguf_reader_take_tensor(struct gguf_reader *r, struct tensor *ret_tensor);

#endif
