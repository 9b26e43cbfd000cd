/*
 * The head of a GGUF file, as far as `samovar pull` needs it: how long it is, and its keys and
 * tensors as bytes.  samovard reads what they mean (daemon/files/gguf.h).
 */
#ifndef STORE_GGUF_HEAD_H
#define STORE_GGUF_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GGUF_HEAD_MAX (256u << 20)

/* Places in the bytes that were read. */
struct gguf_span {
        size_t at, bytes;
};

struct gguf_head {
        uint32_t version, alignment;
        uint64_t key_count, tensor_count;
        struct gguf_span keys, tensors;
        uint64_t data_at;            /* where the weights begin */
        uint32_t piece, piece_count; /* split.no and split.count; 0 and 0: it is whole */
};

/*
 * Reads the head at the beginning of `bytes`.  0; -EAGAIN: it is longer than that; -EINVAL: this is
 * no GGUF file of version 2 or 3.
 */
int gguf_head_read(const void *bytes, size_t count, struct gguf_head *ret_head);

/*
 * The entry at *at, and moves *at behind it; *at begins as `at` of keys or tensors.  The entries of
 * a head that was read are never broken.
 */
struct gguf_entry {
        const char *name;
        size_t name_bytes;
        struct gguf_span whole;
        uint64_t offset; /* of a tensor: from data_at */
};
struct gguf_entry gguf_head_key(const void *bytes, size_t *at);
struct gguf_entry gguf_head_tensor(const void *bytes, size_t *at);

#endif
