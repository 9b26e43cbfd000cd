/*
 * A file without a name, for what is too much for memory.  It goes when its descriptor is closed,
 * however the program ends.
 */
#ifndef BRIDGE_OFFLINE_NAMELESS_FILE_H
#define BRIDGE_OFFLINE_NAMELESS_FILE_H

#include <stddef.h>
#include <stdint.h>

/* A descriptor, or a negative errno. */
int nameless_file_make(const char *folder);
/* Writes all of it.  0, or a negative errno. */
int nameless_file_write(int fd, const void *bytes, size_t count, uint64_t at);

#endif
