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
 * The start of `text` (with "..." if it is cut).  Messages put it between quotes ('), so each quote
 * and each backslash in it gets a backslash.  Every byte that is not printable ASCII becomes '?'.
 */
static inline struct shown shown(const char *text)
{
        struct shown s;
        size_t n = 0, cut = 0; /* cut: how much is kept if the text is too long */

        for (; *text; text++) {
                size_t bytes = *text == '\'' || *text == '\\' ? 2 : 1;

                if (n + bytes >= sizeof(s.text)) {
                        memcpy(s.text + cut, "...", 3);
                        n = cut + 3;
                        break;
                }
                if (bytes == 2)
                        s.text[n++] = '\\';
                s.text[n++] = (char)(*text < ' ' || *text > '~' ? '?' : *text);
                if (n < sizeof(s.text) - 3)
                        cut = n;
        }
        s.text[n] = 0;
        return s;
}

#endif
