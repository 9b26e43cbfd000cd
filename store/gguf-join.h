/*
 * Joins the pieces of a GGUF file, as llama-gguf-split makes them: FILE-00001-of-00003.gguf and so
 * on.  The first piece has the keys; each has some tensors.
 */
#ifndef STORE_GGUF_JOIN_H
#define STORE_GGUF_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/sha256.h"

#define GGUF_PIECES_MAX 1000u

struct gguf_joining {
        const char *const *pieces; /* paths, in order */
        size_t piece_count;
        const char *to; /* the path of the whole file, which is replaced */
        bool head_only; /* only the head is written, and the size is set: to look at the model */
        /* Called after some bytes were written; false: stop.  NULL: none. */
        bool (*on_progress)(void *arg, uint64_t bytes, uint64_t total);
        void *arg;
};

/*
 * 0, and the size and SHA-256 of the whole file; or a negative errno and `why`.  -EINVAL: the
 * pieces do not fit together; -ECANCELED: on_progress() said so.
 */
int gguf_join(const struct gguf_joining *joining, uint64_t *ret_bytes,
              char ret_sha256[SHA256_HEX_BYTES], char *why, size_t why_bytes);

#endif
