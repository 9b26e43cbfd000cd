/*
 * Every feed searches the held bytes and the new piece as one text, so it finds a stop
 * string wherever the token borders lie:
 *
 *      0            cut                  old              n
 *      |  released  |   the next held    .                |
 *                                        |  the new piece |
 *
 * A stop string can only end inside the new piece: if it had ended before, the stream would be
 * over.  It can only begin in this text, because every possible beginning was held back.  Ends are
 * tried in order, so the result depends on the bytes only, not on the tokens.
 *
 * The text always begins at the border of a character, because the previous text was cut at one.
 * So a walk from its beginning finds the characters.
 */
#include "daemon/text/detok.h"
#include "json/utf8.h"

#include <assert.h>
#include <string.h>

void detok_begin(struct detok *detok, const struct tokenizer *tokenizer, const char *const *stops,
                 const uint16_t *stop_bytes, uint32_t stop_count, bool control_text)
{
        for (uint32_t i = 0; i < stop_count; i++)
                assert(stop_bytes[i] && stop_bytes[i] <= SMV_STOP_BYTES_MAX);

        detok->tokenizer = tokenizer;
        detok->stops = stops;
        detok->stop_bytes = stop_bytes;
        detok->stop_count = stop_count;
        detok->control_text = control_text;
        detok->held_count = 0;
}

void detok_follow(struct detok *detok, const struct detok *other)
{
        assert(detok->tokenizer == other->tokenizer && detok->stop_count == other->stop_count);
        detok->held_count = other->held_count;
        memcpy(detok->held, other->held, other->held_count);
}

/*
 * Finds the stop string that ends first after `old`; of equal ones, the first.  True: *ret_start is
 * where it begins, and `stop` is its index.
 */
static bool find_stop(struct detok *detok, const char *text, size_t old, size_t n,
                      size_t *ret_start)
{
        for (size_t end = old + 1; end <= n; end++) {
                size_t start = end;

                for (uint32_t i = 0; i < detok->stop_count; i++) {
                        size_t bytes = detok->stop_bytes[i];

                        if (bytes <= end && end - bytes < start &&
                            !memcmp(text + end - bytes, detok->stops[i], bytes)) {
                                start = end - bytes;
                                detok->stop = i;
                        }
                }
                if (start < end) {
                        *ret_start = start;
                        return true;
                }
        }
        return false;
}

/* The first place from which the rest of the text is the beginning of a stop string; n if none. */
static size_t find_beginning(const struct detok *detok, const char *text, size_t n)
{
        size_t at = n < SMV_STOP_BYTES_MAX ? 0 : n - (SMV_STOP_BYTES_MAX - 1);

        for (; at < n; at++)
                for (uint32_t i = 0; i < detok->stop_count; i++)
                        if (n - at < detok->stop_bytes[i] &&
                            !memcmp(text + at, detok->stops[i], n - at))
                                return at;
        return n;
}

/* The last border of a character at or before `most`. */
static size_t find_border(const char *text, size_t most, size_t n)
{
        size_t at = 0;

        while (at < most) {
                int length = utf8_character(text + at, n - at);
                size_t next = at + (length < 0 ? 1 : (size_t)length);

                if (!length || next > most)
                        break;
                at = next;
        }
        return at;
}

static const char *text_of(const struct detok *detok, uint32_t id, size_t *ret_bytes)
{
        if (detok->control_text && tokenizer_kind(detok->tokenizer, id) == ENTRY_CONTROL)
                return tokenizer_spelling(detok->tokenizer, id, ret_bytes);
        return tokenizer_piece(detok->tokenizer, id, ret_bytes);
}

int detok_feed(struct detok *detok, uint32_t id, char *ret_text, size_t *ret_bytes)
{
        size_t old = detok->held_count, bytes, n, cut;
        const char *piece = text_of(detok, id, &bytes);

        memcpy(ret_text, detok->held, old);
        memcpy(ret_text + old, piece, bytes);
        n = old + bytes;

        if (find_stop(detok, ret_text, old, n, &cut)) {
                detok->held_count = 0;
                *ret_bytes = cut;
                return DETOK_E_STOP;
        }

        cut = find_border(ret_text, find_beginning(detok, ret_text, n), n);
        assert(n - cut <= DETOK_HELD_MAX);
        memcpy(detok->held, ret_text + cut, n - cut);
        detok->held_count = (uint32_t)(n - cut);
        *ret_bytes = cut;
        return 0;
}

size_t detok_flush(struct detok *detok, char *ret_text)
{
        size_t bytes = detok->held_count;

        memcpy(ret_text, detok->held, bytes);
        detok->held_count = 0;
        return bytes;
}
