/*
 * Texts for tests of tokenizers, and random texts that no person would write.
 */
#ifndef TESTS_UNIT_TEXTS_H
#define TESTS_UNIT_TEXTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/text/tokenizer.h"

/* SplitMix64. */
static inline uint64_t texts_random(uint64_t *seed)
{
        uint64_t x = *seed += 0x9E3779B97F4A7C15u;

        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
        x = (x ^ x >> 27) * 0x94D049BB133111EBu;
        return x ^ x >> 31;
}

/* Token ids, in memory that ends exactly where the promised room ends.  The caller frees them. */
static inline uint32_t *texts_encode(const struct tokenizer *tokenizer, const char *text,
                                     size_t bytes, struct encoding *how, size_t *ret_count)
{
        uint32_t *ids = calloc(tokenizer_ids_max(tokenizer, bytes) + 1, sizeof(*ids));

        assert_non_null(ids);
        assert_int_equal(tokenizer_encode(tokenizer, text, bytes, how, ids, ret_count), 0);
        assert_true(*ret_count <= tokenizer_ids_max(tokenizer, bytes));
        return ids;
}

/* The concatenated pieces, without the blank that was put in front.  The caller frees them. */
static inline char *texts_decode(const struct tokenizer *tokenizer, const uint32_t *ids,
                                 size_t count, size_t *ret_bytes)
{
        size_t used = 0, bytes, room = count * tokenizer_piece_max(tokenizer) + 1;
        char *text = malloc(room);

        assert_non_null(text);
        for (size_t i = 0; i < count; i++) {
                const char *piece = tokenizer_piece(tokenizer, ids[i], &bytes);

                assert_true(bytes <= tokenizer_piece_max(tokenizer));
                memcpy(text + used, piece, bytes);
                used += bytes;
        }
        if (tokenizer_adds_blank(tokenizer) && used) {
                assert_int_equal(text[0], ' ');
                memmove(text, text + 1, --used);
        }
        *ret_bytes = used;
        return text;
}

static inline void texts_come_back(const struct tokenizer *tokenizer, const char *text,
                                   size_t bytes)
{
        size_t count, back_bytes;
        uint32_t *ids = texts_encode(tokenizer, text, bytes, NULL, &count);
        char *back = texts_decode(tokenizer, ids, count, &back_bytes);

        if (back_bytes != bytes || memcmp(back, text, bytes)) {
                for (size_t i = 0; i < bytes && i < 200; i++)
                        print_error("%02x", (uint8_t)text[i]);
                fail_msg(" does not come back: %zu bytes became %zu", bytes, back_bytes);
        }
        free(ids);
        free(back);
}

/*
 * Random bytes, or parts, or both mixed.  The parts are characters of all kinds, and the blanks and
 * signs that splitters look at.
 */
static inline size_t texts_any(char *to, size_t room, uint64_t *seed)
{
        static const char *const parts[] = {
                " ",
                "  ",
                "\n",
                "\r\n",
                "\t",
                "'",
                "'s",
                "'LL",
                "a",
                "B",
                "word",
                "7",
                "42",
                "...",
                "!",
                "\xC2\xA0",
                "\xC2\x85",
                "\xE3\x80\x80",
                "\xC3\xA9",
                "e\xCC\x81",
                "\xD0\x96",
                "\xE6\x88\x91",
                "\xE0\xA5\xAB",
                "\xC2\xBD",
                "\xE2\x85\xA7",
                "\xF0\x9F\x98\x80",
                "\xE2\x80\x8D",
                "\xC5\xBF",
                "\xEF\xBF\xBD",
                "\xF0\x9D\x9F\x98",
                "_",
                "<",
                "|>",
                "\x01",
        };
        size_t used = 0, wanted = texts_random(seed) % room;
        uint64_t mood = texts_random(seed) % 3;

        while (used < wanted) {
                const char *part = parts[texts_random(seed) % (sizeof(parts) / sizeof(*parts))];

                if (mood == 0 || (mood == 1 && texts_random(seed) % 8 == 0)) {
                        to[used++] = (char)texts_random(seed);
                } else {
                        size_t n = strlen(part);

                        if (used + n > wanted)
                                break;
                        memcpy(to + used, part, n);
                        used += n;
                }
        }
        /* SentencePiece reads its bar as a blank, so it cannot be restored. */
        for (size_t i = 0; i + 3 <= used; i++)
                if (!memcmp(to + i, "\xE2\x96\x81", 3))
                        to[i] = '_';
        return used;
}

#endif
