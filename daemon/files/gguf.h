/*
 * A model file, checked once.
 *
 * The file is hostile.  gguf_open() reads its header into a table of tensors
 * and a table of metadata, and checks everything there is to check: counts and
 * lengths against the bytes that are left, before anything is allocated; every
 * product for overflow; every tensor's bytes inside the file, aligned, and
 * apart from every other's.  Nobody computes a size from the file again: later
 * code takes `offset` and `bytes` from the table.
 *
 * A tensor that no backend takes (a block format, a third dimension) stands in
 * the table too: a file is refused for it only by who needs it.
 */
#ifndef DAEMON_FILES_GGUF_H
#define DAEMON_FILES_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/traits.h"
#include "kernels/kernels.h"

#define GGUF_TENSORS_MAX 65536u
#define GGUF_PAIRS_MAX   65536u
#define GGUF_NAME_MAX    256u
#define GGUF_HEADER_MAX  (256u << 20)

struct tensor {
        const char *name;
        const char
                *unserved; /* NULL, or why no backend takes it; then what follows is not for use */
        enum row_type type;
        uint32_t rows; /* of `columns` numbers each; a vector is one row */
        uint32_t columns;
        uint64_t offset; /* in the file */
        uint64_t bytes;
};

struct gguf;

/* On failure *why names the fault and where it is.  0, -EINVAL, -ENOMEM or what reading met. */
int gguf_open(const char *path, struct gguf **ret_gguf, char *why, size_t why_bytes);
struct gguf *gguf_close(struct gguf *gguf); /* takes NULL */

/* The same from memory, for tests and fuzzing: `bytes` are the header, the file has file_bytes. */
int gguf_parse(const uint8_t *bytes, size_t count, uint64_t file_bytes, struct gguf **ret_gguf,
               char *why, size_t why_bytes);

int gguf_fd(const struct gguf *gguf);
const struct tensor *gguf_tensor(const struct gguf *gguf, const char *name); /* or NULL */
uint32_t gguf_tensor_count(const struct gguf *gguf);
const struct tensor *gguf_tensor_at(const struct gguf *gguf, uint32_t index); /* one array */

/*
 * Metadata, typed: false if absent or of another type.  A u32 is any whole number
 * that fits, whatever its width in the file; an f32 may be written as f64.
 */
bool gguf_has(const struct gguf *gguf, const char *key);
bool gguf_u32(const struct gguf *gguf, const char *key, uint32_t *ret_value);
bool gguf_f32(const struct gguf *gguf, const char *key, float *ret_value);
bool gguf_bool(const struct gguf *gguf, const char *key, bool *ret_value);
const char *gguf_string(const struct gguf *gguf, const char *key); /* NUL-ended, or NULL */

/* What the model is, every value checked against limits.  0 or -EINVAL and *why. */
int gguf_traits(const struct gguf *gguf, struct traits *ret_traits, char *why, size_t why_bytes);

#endif
