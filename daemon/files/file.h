/*
 * Opens, measures and reads files of a model.
 *
 * A name is relative to an open folder, or to AT_FDCWD.  The caller has checked the name.  *why
 * says what failed, without the name.
 */
#ifndef DAEMON_FILES_FILE_H
#define DAEMON_FILES_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "json/reader.h"

enum { FILE_E_ABSENT = 1 }; /* the file does not exist; *why says so */

/*
 * Opens a regular file for reading: 0, FILE_E_ABSENT or negative errno.  A pointer of Git LFS,
 * which stands for a file that was not fetched, is -EINVAL, and *why says what to do.
 */
int file_open(int folder, const char *name, int *ret_fd, struct sys_mark *ret_mark, char *why,
              size_t why_bytes);

/*
 * Checks that the file is unchanged since the mark was taken.  0, -EIO or another negative errno.
 */
int file_check_unchanged(int fd, const struct sys_mark *mark, char *why, size_t why_bytes);

/* Reads exactly `bytes` bytes from `offset` on.  -EIO: the file became shorter. */
int file_read(int fd, uint64_t offset, void *ret_bytes, size_t bytes, char *why, size_t why_bytes);

/*
 * Reads the whole file, at most bytes_max, and adds a NUL.  The caller frees it.  Returns the same
 * as file_open().
 */
int file_read_all(int folder, const char *name, uint64_t bytes_max, char **ret_text,
                  size_t *ret_bytes, char *why, size_t why_bytes);

/*
 * The same for JSON of at most nodes_max values, as Python writes it (json_parse_python()); *why
 * has the name in it.
 */
int file_read_json(int folder, const char *name, uint64_t bytes_max, uint32_t nodes_max,
                   struct json_document **ret_json, char *why, size_t why_bytes);

#endif
