/* How the blanks of a fragment are written. */
#include "daemon/text/encoder.h"

#include <string.h>

#include "daemon/text/unicode.h"

#define BAR 0x2581u /* the character by which SentencePiece writes a blank */

static bool begins_blank(const char *text, size_t bytes)
{
        uint32_t code;

        if (!bytes)
                return false;
        unicode_next(text, bytes, &code);
        return code == ' ' || code == BAR;
}

size_t blanks_begin(const char *text, size_t low, size_t at)
{
        while (at > low) {
                size_t begin = at - 1;
                uint32_t code;

                while (begin > low && at - begin < 4 && ((uint8_t)text[begin] & 0xC0) == 0x80)
                        begin--;
                if (unicode_next(text + begin, at - begin, &code) != at - begin ||
                    unicode_kind(code) != UNICODE_BLANK)
                        break;
                at = begin;
        }
        return at;
}

size_t blanks_end(const char *text, size_t at, size_t bytes)
{
        while (at < bytes) {
                uint32_t code;
                size_t n = unicode_next(text + at, bytes - at, &code);

                if (unicode_kind(code) != UNICODE_BLANK)
                        break;
                at += n;
        }
        return at;
}

/* A blank that is taken away where there is one already. */
static bool is_extra(const struct tokenizer *t, uint32_t code)
{
        return t->squeezes_all ? unicode_blank(code) : t->squeezes && code == ' ';
}

/* Writes the text without extra blanks, and with blanks for bars.  Returns the bytes written. */
static size_t write_text(const struct tokenizer *t, const char *text, size_t bytes, char *to)
{
        size_t count = 0;
        bool was_blank = false;

        for (size_t at = 0, n; at < bytes; at += n) {
                uint32_t code;

                n = unicode_next(text + at, bytes - at, &code);
                if (is_extra(t, code)) {
                        if (!was_blank)
                                to[count++] = ' ';
                        was_blank = true;
                } else if (code == BAR && has_bars(t)) {
                        if (!was_blank || !t->squeezes_all)
                                to[count++] = ' ';
                        was_blank = false;
                } else {
                        memcpy(to + count, text + at, n);
                        count += n;
                        was_blank = false;
                }
        }
        return count;
}

size_t tokenizer_write_blanks(const struct tokenizer *t, const char *text, size_t bytes, bool lead,
                              char *to)
{
        size_t count = 0, begin = 0, n;
        uint32_t code;

        while (begin < bytes) {
                n = unicode_next(text + begin, bytes - begin, &code);
                if (!is_extra(t, code))
                        break;
                begin += n;
        }
        lead = lead && (begin < bytes || t->blank_alone);
        if (lead && leads_with_blank(t) &&
            !(t->blank_once && begins_blank(text + begin, bytes - begin)))
                to[count++] = ' ';
        count += write_text(t, text + begin, bytes - begin, to + count);
        /*
         * SentencePiece strips the end last of all, so blanks that were bars, and the one in front,
         * are stripped, too.
         */
        while (t->squeezes && count && to[count - 1] == ' ')
                count--;
        if (t->squeezes_all && bytes && blanks_begin(text, begin, bytes) < bytes && count &&
            to[count - 1] == ' ')
                count--;
        if (lead && t->blank == BLANK_LAST)
                to[count++] = ' ';
        return count;
}
