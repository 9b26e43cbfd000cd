/*
 * A GGUF model file, checked once.
 *
 * The file is hostile.  gguf_open() reads its header into a table of tensors and a table of
 * metadata, and checks everything that can be checked.  Counts and lengths are compared with the
 * bytes left before anything is allocated.  Every product is checked for overflow.  Every tensor's
 * bytes must be inside the file, aligned, and must not overlap another tensor's.
 */
#ifndef DAEMON_FILES_GGUF_H
#define DAEMON_FILES_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "daemon/files/tensor.h"
#include "daemon/model/traits.h"

#define GGUF_PAIRS_MAX  65536u
#define GGUF_HEADER_MAX (256u << 20)

struct gguf;

/* Returns 0, -EINVAL, -ENOMEM or a read error.  On failure *why names the fault and its place. */
int gguf_open(const char *path, struct gguf **ret_gguf, char *why, size_t why_bytes);
struct gguf *gguf_close(struct gguf *gguf); /* takes NULL */

/* The same from memory, for tests and fuzzing: `bytes` is the header of a file of file_bytes. */
int gguf_parse(const uint8_t *bytes, size_t count, uint64_t file_bytes, struct gguf **ret_gguf,
               char *why, size_t why_bytes);

int gguf_fd(const struct gguf *gguf);
const struct sys_mark *gguf_mark(const struct gguf *gguf); /* taken before the header was read */
const struct tensor_table *gguf_tensors(const struct gguf *gguf);
const struct tensor *gguf_tensor(const struct gguf *gguf, const char *name); /* or NULL */

/*
 * Typed metadata: false if absent or of another type.  A u32 is any integer that fits, of any width
 * in the file.  An f32 may be stored as f64.
 */
bool gguf_has(const struct gguf *gguf, const char *key);
bool gguf_u32(const struct gguf *gguf, const char *key, uint32_t *ret_value);
bool gguf_f32(const struct gguf *gguf, const char *key, float *ret_value);
/* Any number, whole or not, also a negative one. */
bool gguf_number(const struct gguf *gguf, const char *key, double *ret_value);
bool gguf_bool(const struct gguf *gguf, const char *key, bool *ret_value);
const char *gguf_string(const struct gguf *gguf, const char *key); /* NUL-ended, or NULL */

/*
 * An array of metadata, read from its first element on; nothing is copied.  Each call returns the
 * next element; false: no more elements, or another type.  Integers may have any width, strings any
 * bytes.
 */
struct gguf_array {
        const uint8_t *at;
        uint64_t left; /* elements left */
        uint32_t type;
};
bool gguf_array(const struct gguf *gguf, const char *key, struct gguf_array *ret_array);
bool gguf_next_string(struct gguf_array *array, const char **ret_text, size_t *ret_bytes);
bool gguf_next_u32(struct gguf_array *array, uint32_t *ret_value);
bool gguf_next_f32(struct gguf_array *array, float *ret_value);
/* Array elements of one byte each, all that are left. */
bool gguf_bytes(const struct gguf_array *array, const char **ret_bytes);

/* Reads the traits; every value is checked against limits.  Returns 0, or -EINVAL and *why. */
int gguf_traits(const struct gguf *gguf, struct traits *ret_traits, char *why, size_t why_bytes);

#endif
