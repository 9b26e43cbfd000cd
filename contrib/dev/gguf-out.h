/*
 * Writes a GGUF file.  The caller announces all tensors before their first byte, so it must know
 * their sizes beforehand; the caller also aligns the data.
 */
#ifndef CONTRIB_DEV_GGUF_OUT_H
#define CONTRIB_DEV_GGUF_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OUT_ALIGNMENT 32u

struct out {
        FILE *file;
        uint64_t at;   /* bytes written */
        uint64_t data; /* bytes of tensors announced so far */
        bool failed;   /* a part of it was not written */
};

/* Writes "GGUF", version 3, and how many tensors and pairs follow. */
void out_begin(struct out *o, uint64_t tensors, uint64_t pairs);
void out_bytes(struct out *o, const void *bytes, size_t count);
void out_int(struct out *o, uint64_t value, unsigned bytes);
void out_string(struct out *o, const char *text);
void out_align(struct out *o);

void out_pair_u32(struct out *o, const char *key, uint32_t value);
void out_pair_f32(struct out *o, const char *key, float value);
void out_pair_bool(struct out *o, const char *key, bool value);
void out_pair_string(struct out *o, const char *key, const char *value);
/* The caller then writes the elements. */
void out_pair_strings(struct out *o, const char *key, uint64_t count);
void out_pair_ints(struct out *o, const char *key, uint64_t count);

/* Announces a tensor; rows 1: it has one dimension.  `type` is GGUF's number. */
void out_tensor(struct out *o, const char *name, uint32_t rows, uint32_t columns, uint32_t type,
                uint64_t bytes);

#endif
