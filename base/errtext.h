/*
 * Error sentences: why a model file is refused, written where the fault is found.
 *
 * A name from the file is untrusted text that may reach a log, so it must pass through shown()
 * first.
 */
#ifndef BASE_ERRTEXT_H
#define BASE_ERRTEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "json/shown.h"

/* Returns r, for `return error_raise(errtext_set(...))`. */
__attribute__((format(printf, 4, 5))) static inline int errtext_set(char *why, size_t why_bytes,
                                                                    int r, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(why, why_bytes, format, args);
        va_end(args);
        return r;
}

/* Puts the place in front of the error sentence; returns r. */
static inline int errtext_prefix(char *why, size_t why_bytes, int r, const char *where)
{
        char what[256];

        snprintf(what, sizeof(what), "%s", why);
        return errtext_set(why, why_bytes, r, "%s: %s", where, what);
}

/* Replaces control characters in a sentence that contains text from outside. */
static inline void errtext_one_line(char *why)
{
        for (char *c = why; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = ' ';
}

#endif
