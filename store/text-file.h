/* Small files, read and written as a whole. */
#ifndef STORE_TEXT_FILE_H
#define STORE_TEXT_FILE_H

#include "json/bytes.h"

/* Appends the file and a NUL that does not count.  0 or a negative errno; -EFBIG: more than max. */
int text_file_read(const char *path, size_t max, struct bytes *text);
/*
 * Replaces the file: readers see the old one or the new one.  It is on the disk when this returns.
 */
int text_file_write(const char *path, const char *text, size_t bytes);

#endif
