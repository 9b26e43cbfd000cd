/*
 * A model file, checked once.
 *
 * The file is hostile.  gguf_open() reads its header into a table of tensors
 * and a table of metadata, and checks everything there is to check: counts and
 * lengths against the bytes that are left, before anything is allocated; every
 * product for overflow; every tensor's bytes inside the file, aligned, and
 * apart from every other's.
 */
#ifndef DAEMON_FILES_GGUF_H
#define DAEMON_FILES_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/files/tensor.h"
#include "daemon/sys.h"
#include "daemon/traits.h"

#define GGUF_PAIRS_MAX  65536u
#define GGUF_HEADER_MAX (256u << 20)

struct gguf;

/* On failure *why names the fault and where it is.  0, -EINVAL, -ENOMEM or what reading met. */
int gguf_open(const char *path, struct gguf **ret_gguf, char *why, size_t why_bytes);
struct gguf *gguf_close(struct gguf *gguf); /* takes NULL */

/* The same from memory, for tests and fuzzing: `bytes` are the header, the file has file_bytes. */
int gguf_parse(const uint8_t *bytes, size_t count, uint64_t file_bytes, struct gguf **ret_gguf,
               char *why, size_t why_bytes);

int gguf_fd(const struct gguf *gguf);
const struct sys_mark *gguf_mark(const struct gguf *gguf); /* from before its header was read */
const struct tensor_table *gguf_tensors(const struct gguf *gguf);
const struct tensor *gguf_tensor(const struct gguf *gguf, const char *name); /* or NULL */

/*
 * Metadata, typed: false if absent or of another type.  A u32 is any whole number
 * that fits, whatever its width in the file; an f32 may be written as f64.
 */
bool gguf_has(const struct gguf *gguf, const char *key);
bool gguf_u32(const struct gguf *gguf, const char *key, uint32_t *ret_value);
bool gguf_f32(const struct gguf *gguf, const char *key, float *ret_value);
bool gguf_bool(const struct gguf *gguf, const char *key, bool *ret_value);
const char *gguf_string(const struct gguf *gguf, const char *key); /* NUL-ended, or NULL */

/*
 * An array of metadata, walked from its first element on: nothing is copied.  Each
 * step gives the next element; false: there is none, or it is of another type.
 * Whole numbers may have any width, strings any bytes.
 */
struct gguf_array {
        const uint8_t *at;
        uint64_t left; /* elements */
        uint32_t type;
};
bool gguf_array(const struct gguf *gguf, const char *key, struct gguf_array *ret_array);
bool gguf_next_string(struct gguf_array *array, const char **ret_text, size_t *ret_bytes);
bool gguf_next_u32(struct gguf_array *array, uint32_t *ret_value);
bool gguf_next_f32(struct gguf_array *array, float *ret_value);

/* What the model is, every value checked against limits.  0 or -EINVAL and *why. */
int gguf_traits(const struct gguf *gguf, struct traits *ret_traits, char *why, size_t why_bytes);

#endif
