/*
 * Rows of weights, as stored in a file and as a backend takes them.
 *
 * Mostly the bytes are the same in both.  For weights with separate scales (files/scales.h) the
 * file's rows are shorter.  They are read into the end of the space for the complete rows.  Then
 * rows_finish() reads their scales, which are few, and combines the two in place.  Rows that do not
 * follow each other are read with what is between them, and rows_finish() moves them together.  It
 * also divides rows by their lengths or multiplies them, if the tensor says so; these are read into
 * the end, too.
 */
#ifndef DAEMON_ENGINE_WEIGHTS_ROWS_H
#define DAEMON_ENGINE_WEIGHTS_ROWS_H

#include "daemon/files/checkpoint.h"

/* Rows of one tensor. */
struct rows {
        const struct tensor *tensor;
        uint32_t first, count;
};

/* Bytes of the rows in the file, and bytes as the backend takes them, never fewer. */
size_t rows_stored(const struct rows *rows);
size_t rows_taken(const struct rows *rows);

/*
 * The reader reads the bytes of this span for them.  It is more than rows_stored() if the rows do
 * not follow each other (struct tensor: group).
 */
uint64_t rows_offset(const struct rows *rows);
size_t rows_span(const struct rows *rows);
/* Bytes of the buffer for rows_finish(), in which what was read is at the end. */
size_t rows_buffer(const struct rows *rows);

/* Bytes of work space that rows_finish() needs; mostly 0. */
size_t rows_scratch(const struct rows *rows);

/*
 * Makes of the buffer's content the rows as the backend takes them, from its beginning on.
 * `scratch` is aligned for a float.  Returns 0 or negative errno, and *why names the tensor and the
 * file.
 */
int rows_finish(const struct checkpoint *checkpoint, const struct rows *rows, void *io_rows,
                void *scratch, char *why, size_t why_bytes);

/* Reads a small tensor of one row (a norm, a bias) as floats, into ret_floats[0 .. columns). */
int rows_read_floats(const struct checkpoint *checkpoint, const struct tensor *tensor,
                     float *ret_floats, char *why, size_t why_bytes);

#endif
