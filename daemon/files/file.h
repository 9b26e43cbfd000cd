/*
 * Files of a model: opened, measured, read.
 *
 * Each is named relative to a folder that is open, or AT_FDCWD.  Whoever calls
 * passes names that it has checked; *why says what failed, without the name.
 */
#ifndef DAEMON_FILES_FILE_H
#define DAEMON_FILES_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/json.h"
#include "daemon/sys.h"

enum { FILE_E_ABSENT = 1 }; /* no such file; *why says so */

/* A regular file, for reading: 0, FILE_E_ABSENT or negative errno. */
int file_open(int folder, const char *name, int *ret_fd, struct sys_mark *ret_mark, char *why,
              size_t why_bytes);

/* The file is still what it was when this mark was taken.  0, -EIO or another negative errno. */
int file_check(int fd, const struct sys_mark *mark, char *why, size_t why_bytes);

/* All of `bytes` from `offset` on.  -EIO: it has become shorter than it was. */
int file_read(int fd, uint64_t offset, void *ret_bytes, size_t bytes, char *why, size_t why_bytes);

/* The whole file, of at most so many bytes, and a NUL; the caller's to free.  As file_open(). */
int file_whole(int folder, const char *name, uint64_t bytes_max, char **ret_text, size_t *ret_bytes,
               char *why, size_t why_bytes);

/* Of at most so many bytes and values.  The same, and *why has the name in it. */
int file_json(int folder, const char *name, uint64_t bytes_max, uint32_t nodes_max,
              struct json **ret_json, char *why, size_t why_bytes);

#endif
