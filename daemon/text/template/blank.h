/*
 * Blanks: the characters that Python's str.strip() and \s match.  Pure functions.
 */
#ifndef DAEMON_TEXT_TEMPLATE_BLANK_H
#define DAEMON_TEXT_TEMPLATE_BLANK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/text/unicode.h"

/* The blanks of Unicode, and the four separators of ASCII. */
static inline bool blank_is(uint32_t code)
{
        return unicode_kind(code) == UNICODE_BLANK || (code >= 0x1C && code <= 0x1F);
}

/* How many bytes of blanks the text begins with. */
static inline uint32_t blank_leading(const char *text, uint32_t count)
{
        uint32_t at = 0, code;

        while (at < count) {
                unsigned n = unicode_next(text + at, count - at, &code);

                if (!blank_is(code))
                        break;
                at += n;
        }
        return at;
}

/* The start of the character that ends at `end`; end is not 0. */
static inline uint32_t text_before(const char *text, uint32_t end)
{
        uint32_t start = end - 1, code;

        while (start && end - start < 4 && ((unsigned char)text[start] & 0xC0) == 0x80)
                start--;
        return unicode_next(text + start, end - start, &code) == end - start ? start : end - 1;
}

static inline uint32_t blank_trailing(const char *text, uint32_t count)
{
        uint32_t end = count, code;

        while (end) {
                uint32_t start = text_before(text, end);

                unicode_next(text + start, end - start, &code);
                if (!blank_is(code))
                        break;
                end = start;
        }
        return count - end;
}

#endif
