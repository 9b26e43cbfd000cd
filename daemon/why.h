/*
 * Why a model file is refused: one sentence, said where the fault is seen.
 *
 * A name that comes out of the file is somebody else's text on its way into a
 * log: it passes through shown() first.
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

/* Puts where it was in front of what was wrong; returns r. */
static inline int why_in(char *why, size_t why_bytes, int r, const char *where)
{
        char what[256];

        snprintf(what, sizeof(what), "%s", why);
        return why_say(why, why_bytes, r, "%s: %s", where, what);
}

/* A sentence that others had a part in: as it is, but for what no line should have. */
static inline void why_line(char *why)
{
        for (char *c = why; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = ' ';
}

struct shown {
        char text[80];
};

/* The first of `text`, with anything that is not plain printable ASCII as '?'. */
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
