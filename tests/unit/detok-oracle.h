/*
 * The expected results of detok, computed the slow way.  It keeps all bytes of the stream, and
 * examines them all from the beginning after every byte.  It shares no line with detok.c.  It
 * also stands in for the tokenizer, with the pieces into which a test cuts its text, so the
 * test must not link daemon/text/tokenizer.c.
 */
#ifndef TESTS_UNIT_DETOK_ORACLE_H
#define TESTS_UNIT_DETOK_ORACLE_H

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/text/detok.h"
#include "json/utf8.h"

struct tokenizer {
        const char *piece;
        size_t bytes;
        bool is_control;
};

const char *tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id, size_t *ret_bytes)
{
        (void)id;
        *ret_bytes = tokenizer->is_control ? 0 : tokenizer->bytes;
        return tokenizer->piece;
}

const char *tokenizer_spelling(const struct tokenizer *tokenizer, uint32_t id, size_t *ret_bytes)
{
        (void)id;
        *ret_bytes = tokenizer->bytes;
        return tokenizer->piece;
}

enum entry_kind tokenizer_kind(const struct tokenizer *tokenizer, uint32_t id)
{
        (void)id;
        return tokenizer->is_control ? ENTRY_CONTROL : ENTRY_NORMAL;
}

enum oracle_character { ORACLE_WHOLE, ORACLE_BEGUN, ORACLE_BAD };

/* Decides by arithmetic whether these bytes, continued, can be the encoding of a scalar value. */
static inline enum oracle_character oracle_character(const uint8_t *at, size_t n, size_t *ret_bytes)
{
        size_t bytes = at[0] < 0x80             ? 1
                       : (at[0] & 0xE0) == 0xC0 ? 2
                       : (at[0] & 0xF0) == 0xE0 ? 3
                       : (at[0] & 0xF8) == 0xF0 ? 4
                                                : 0;
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        uint32_t low, high;
        size_t have = n < bytes ? n : bytes;

        if (!bytes)
                return ORACLE_BAD;
        low = bytes == 1 ? at[0] : at[0] & (0xFFu >> (bytes + 1));
        for (size_t i = 1; i < have; i++) {
                if ((at[i] & 0xC0) != 0x80)
                        return ORACLE_BAD;
                low = low << 6 | (at[i] & 0x3F);
        }
        /* every value from low to high begins with these bytes */
        high = (low + 1) << (6 * (bytes - have));
        low <<= 6 * (bytes - have);
        high--;
        if (low < least[bytes])
                low = least[bytes];
        if (high > 0x10FFFF)
                high = 0x10FFFF;
        if (low > high || (low >= 0xD800 && high <= 0xDFFF))
                return ORACLE_BAD;
        *ret_bytes = bytes;
        return have == bytes ? ORACLE_WHOLE : ORACLE_BEGUN;
}

struct oracle {
        const char *const *stops;
        const uint16_t *stop_bytes;
        uint32_t stop_count;
        uint8_t *all;
        size_t n;      /* bytes received so far */
        bool stopped;  /* ... the last of them ends a stop string, ... */
        size_t cut;    /* ... which begins here, ... */
        uint32_t stop; /* ... and has this index */
};

static inline void oracle_byte(struct oracle *o, uint8_t byte)
{
        if (o->stopped)
                return;
        o->all[o->n++] = byte;
        o->cut = o->n;
        for (uint32_t i = 0; i < o->stop_count; i++) {
                size_t bytes = o->stop_bytes[i];

                if (bytes <= o->n && !memcmp(o->all + o->n - bytes, o->stops[i], bytes) &&
                    o->n - bytes < o->cut) {
                        o->cut = o->n - bytes;
                        o->stop = i;
                        o->stopped = true;
                }
        }
}

/* How many bytes of the stream must have been released so far. */
static inline size_t oracle_released(const struct oracle *o)
{
        size_t most = o->n, at = 0;

        if (o->stopped)
                return o->cut;
        for (size_t start = o->n; start-- > 0 && o->n - start < SMV_STOP_BYTES_MAX;)
                for (uint32_t i = 0; i < o->stop_count; i++)
                        if (o->n - start < o->stop_bytes[i] &&
                            !memcmp(o->all + start, o->stops[i], o->n - start))
                                most = start;
        while (at < most) {
                size_t bytes = 1;

                if (oracle_character(o->all + at, o->n - at, &bytes) == ORACLE_BEGUN)
                        break;
                if (at + bytes > most)
                        break;
                at += bytes;
        }
        return at;
}

/* The length of the longest prefix that consists of whole characters. */
static inline size_t oracle_valid(const uint8_t *text, size_t n)
{
        size_t bytes, at = 0;

        while (at < n && oracle_character(text + at, n - at, &bytes) == ORACLE_WHOLE)
                at += bytes;
        return at;
}

/*
 * Feeds text in pieces of the given sizes and checks every answer.  The rest of the text is fed
 * as one piece if the sizes do not cover it.  Returns true if a stop string ended it.
 */
static inline bool oracle_check(const char *text, size_t text_bytes, const uint8_t *cuts,
                                size_t cut_count, const char *const *stops,
                                const uint16_t *stop_bytes, uint32_t stop_count)
{
        struct oracle oracle = { stops, stop_bytes, stop_count };
        struct tokenizer tokenizer = { 0 };
        struct detok detok;
        char *out = malloc(text_bytes + DETOK_HELD_MAX + 1), *room;
        size_t released = 0, at = 0, bytes;

        oracle.all = malloc(text_bytes + 1);
        assert(out && oracle.all);
        detok_begin(&detok, &tokenizer, stops, stop_bytes, stop_count, false);
        for (size_t i = 0; at < text_bytes && !oracle.stopped; i++) {
                int r;

                tokenizer.piece = text + at;
                tokenizer.bytes = i < cut_count ? cuts[i] : text_bytes - at;
                if (tokenizer.bytes > text_bytes - at)
                        tokenizer.bytes = text_bytes - at;
                for (size_t k = 0; k < tokenizer.bytes; k++)
                        oracle_byte(&oracle, (uint8_t)text[at + k]);
                at += tokenizer.bytes;

                room = malloc(DETOK_HELD_MAX + tokenizer.bytes); /* exactly the promised room */
                assert(room);
                r = detok_feed(&detok, 0, room, &bytes);
                assert(r == (oracle.stopped ? DETOK_E_STOP : 0));
                assert(!oracle.stopped || detok.stop == oracle.stop);
                memcpy(out + released, room, bytes);
                free(room);
                released += bytes;
                assert(released == oracle_released(&oracle));
                assert(!memcmp(out, text, released));
                assert(detok.held_count <= DETOK_HELD_MAX);
                assert(detok.held_count == (oracle.stopped ? 0 : at - released));
        }
        if (!oracle.stopped) {
                released += detok_flush(&detok, out + released);
                assert(released == text_bytes && !memcmp(out, text, released));
                assert(!detok_flush(&detok, out));
        }
        assert(utf8_valid(out, released) == oracle_valid((const uint8_t *)out, released));
        free(oracle.all);
        free(out);
        return oracle.stopped;
}

#endif
