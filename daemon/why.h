/*
 * Error sentences: why a model file is refused, written where the fault is found.
 *
 * A name from the file is untrusted text that may reach a log, so it must pass through shown()
 * first.
 */
#ifndef DAEMON_WHY_H
#define DAEMON_WHY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Returns r, for `return error_raise(why_say(...))`. */
__attribute__((format(printf, 4, 5))) static inline int why_say(char *why, size_t why_bytes, int r,
                                                                const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(why, why_bytes, format, args);
        va_end(args);
        return r;
}

/* Puts the place in front of the error sentence; returns r. */
static inline int why_in(char *why, size_t why_bytes, int r, const char *where)
{
        char what[256];

        snprintf(what, sizeof(what), "%s", why);
        return why_say(why, why_bytes, r, "%s: %s", where, what);
}

/* Replaces control characters in a sentence that contains text from outside. */
static inline void why_line(char *why)
{
        for (char *c = why; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = ' ';
}

struct shown {
        char text[80];
};

/*
 * The start of `text` (with "..." if it is cut).  Every byte that is not printable ASCII, and every
 * quote ('), becomes '?'.
 */
static inline struct shown shown(const char *text)
{
        struct shown s;
        size_t n = strnlen(text, sizeof(s.text));

        if (n == sizeof(s.text)) {
                n = sizeof(s.text) - 1;
                memcpy(s.text + n - 3, "...", 3);
                memcpy(s.text, text, n - 3);
        } else {
                memcpy(s.text, text, n);
        }
        for (size_t i = 0; i < n; i++)
                if (s.text[i] < ' ' || s.text[i] > '~' || s.text[i] == '\'')
                        s.text[i] = '?';
        s.text[n] = 0;
        return s;
}

#endif
