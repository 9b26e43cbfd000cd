/*
 * Text from outside, made safe for an error message.
 */
#ifndef JSON_SHOWN_H
#define JSON_SHOWN_H

#include <string.h>

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
