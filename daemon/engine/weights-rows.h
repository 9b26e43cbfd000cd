/*
 * Rows on their way from a file to where they are taken.
 *
 * Mostly they are the same bytes in both.  Of weights whose scales lie elsewhere (files/scales.h) the
 * file's rows are shorter: they are read to the end of where the whole ones will be, and rows_finish()
 * reads their scales, which are few, and puts the two together in place.
 */
#ifndef DAEMON_ENGINE_WEIGHTS_ROWS_H
#define DAEMON_ENGINE_WEIGHTS_ROWS_H

#include "daemon/files/checkpoint.h"

/* Rows of one tensor. */
struct rows {
        const struct tensor *tensor;
        uint32_t first, count;
};

/* Bytes of them in the file, where they begin there, and as they are taken: never fewer. */
size_t rows_stored(const struct rows *rows);
uint64_t rows_offset(const struct rows *rows);
size_t rows_taken(const struct rows *rows);

/* Bytes that rows_finish() wants to work in; mostly 0. */
size_t rows_scratch(const struct rows *rows);

/*
 * `io_rows` has room for rows_taken() bytes, and the file's at its end.  At a float's alignment:
 * `scratch`.  0 or negative errno, and *why names the tensor and the file.
 */
int rows_finish(const struct checkpoint *checkpoint, const struct rows *rows, void *io_rows,
                void *scratch, char *why, size_t why_bytes);

/* A small tensor of one row (a norm, a bias) as floats on the host, at ret_floats[0 .. columns). */
int rows_read_floats(const struct checkpoint *checkpoint, const struct tensor *tensor,
                     float *ret_floats, char *why, size_t why_bytes);

#endif
