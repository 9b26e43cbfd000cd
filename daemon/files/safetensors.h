/*
 * A safetensors file, checked once.
 *
 *      length u64 | header: JSON of that many bytes | data
 *
 *      header   { "__metadata__": { "format": "pt", ... },
 *                 NAME: { "dtype": "BF16", "shape": [ROWS, COLUMNS],
 *                         "data_offsets": [BEGIN, END] },  ... }
 *
 * The file is hostile.  Its header is read only once its length is known to be
 * inside the file and within a limit; each tensor's range is as long as dtype and
 * shape say, and the ranges tile the data: none upon another, nothing between them,
 * nothing behind.  Names are the file's own.
 *
 * The format's own library takes some files that are refused here: with a size of
 * 0, with other members in a tensor, with blanks before the header.
 */
#ifndef DAEMON_FILES_SAFETENSORS_H
#define DAEMON_FILES_SAFETENSORS_H

#include "daemon/files/tensor.h"
#include "daemon/json.h"

#define SAFETENSORS_HEADER_MAX (16u << 20)

struct safetensors {
        struct tensor_table tensors; /* by name */
        struct json *header;         /* the names are in it */
};

/* The descriptor stays the caller's.  On failure *why names the fault.  0 or negative errno. */
int safetensors_read(int fd, uint64_t file_bytes, struct safetensors *ret_safetensors, char *why,
                     size_t why_bytes);
void safetensors_deinit(struct safetensors *safetensors); /* takes a zeroed one */

/* The same from memory, for tests and fuzzing: the file's first bytes, of file_bytes. */
int safetensors_parse(const uint8_t *bytes, size_t count, uint64_t file_bytes,
                      struct safetensors *ret_safetensors, char *why, size_t why_bytes);

#endif
