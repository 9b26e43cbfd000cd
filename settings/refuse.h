/*
 * Messages about a setting, with the place where it was given.
 */
#ifndef SETTINGS_REFUSE_H
#define SETTINGS_REFUSE_H

#include <stddef.h>
#include <stdint.h>

/* Where an error is reported: at a flag, or at a line of a file. */
struct settings_place {
        const char *file; /* NULL: the command line */
        uint32_t line;
        char *why;
        size_t why_bytes;
};

/* Writes a message about this place to *why.  Returns -EINVAL. */
int settings_refuse(const struct settings_place *at, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* The name as written at this place: kv_bytes in a file, --kv-bytes as a flag. */
const char *settings_shown(const struct settings_place *at, const char *name, char *to,
                           size_t bytes);

#endif
