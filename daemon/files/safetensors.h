/*
 * A safetensors file, checked once.
 *
 *      length u64 | header: JSON of that many bytes | data
 *
 *      header   { "__metadata__": { "format": "pt", ... },
 *                 NAME: { "dtype": "BF16", "shape": [ROWS, COLUMNS],
 *                         "data_offsets": [BEGIN, END] },  ... }
 *
 * The file is hostile.  Its header is read only after its length was checked against the file and a
 * limit.  Each tensor's range must be as long as its dtype and shape require.  The ranges must tile
 * the data: no overlap, no gap, and nothing after the last.  The names are the file's own.
 *
 * The format's own library accepts some files that are refused here: with a size of 0, with other
 * members in a tensor, with blanks before the header.
 */
#ifndef DAEMON_FILES_SAFETENSORS_H
#define DAEMON_FILES_SAFETENSORS_H

#include "daemon/files/tensor.h"
#include "json/reader.h"

#define SAFETENSORS_HEADER_MAX (16u << 20)

struct safetensors {
        struct tensor_table tensors;  /* sorted by name */
        struct json_document *header; /* owns the names */
};

/*
 * The caller keeps the descriptor.  Returns 0 or negative errno; on failure *why names the fault.
 */
int safetensors_read(int fd, uint64_t file_bytes, struct safetensors *ret_safetensors, char *why,
                     size_t why_bytes);
void safetensors_deinit(struct safetensors *safetensors); /* takes a zeroed one */

/* The same from memory, for tests and fuzzing: the first bytes of a file of file_bytes. */
int safetensors_parse(const uint8_t *bytes, size_t count, uint64_t file_bytes,
                      struct safetensors *ret_safetensors, char *why, size_t why_bytes);

#endif
