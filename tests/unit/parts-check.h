/*
 * Opens dialects by the signs in a template, and divides texts that were cut in many ways.
 *
 * A random number depends on `seed` only.
 */
#ifndef TESTS_UNIT_PARTS_CHECK_H
#define TESTS_UNIT_PARTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/parts-rig.h"

static uint64_t seed = 1;

static inline uint32_t random_below(uint32_t n)
{
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(seed >> 33) % n;
}

/* Marks are text: a tokenizer of bytes has no tokens for them. */
static inline struct dialect open_dialect(const char *const templates[2])
{
        struct dialect_conf conf = { .templates = { templates[0], templates[1] } };
        struct tokenizer *tokenizer;
        struct dialect dialect;

        assert_int_equal(tokenizer_open_bytes(300, &tokenizer), 0);
        conf.tokenizer = tokenizer;
        dialect_open(&conf, &dialect);
        tokenizer_close(tokenizer);
        return dialect;
}

/* The same dialect with a vocabulary in which the marks are control tokens; a fence never is. */
static inline struct dialect with_tokens(struct dialect dialect)
{
        for (uint32_t mark = 0; mark < MARK_N; mark++) {
                dialect.marks[mark].is_token =
                        dialect.marks[mark].bytes && dialect.marks[mark].spelling.text[0] != '`';
                dialect.marks[mark].token = 1000 + mark;
        }
        return dialect;
}

enum way { WHOLE, BYTES, PIECES, WAYS = 20 };

static inline void divide(struct parts_rig *rig, const char *text, size_t bytes, unsigned way)
{
        for (size_t at = 0; at < bytes;) {
                size_t piece = way == WHOLE ? bytes : way == BYTES ? 1 : 1 + random_below(9);

                piece = piece > bytes - at ? bytes - at : piece;
                rig_feed(rig, text + at, piece);
                at += piece;
        }
        rig_end(rig);
}

static inline void check_typed(const struct dialect *dialect, const struct argument_types *types,
                               bool calls, bool in_reasoning, const char *text, const char *wanted)
{
        for (unsigned way = 0; way < WAYS; way++) {
                struct parts_rig rig;

                rig_begin_typed(&rig, dialect, types, calls, in_reasoning);
                divide(&rig, text, strlen(text), way);
                assert_string_equal(rig.shown, wanted);
                rig_free(&rig);
        }
}

static inline void check_with(const struct dialect *dialect, bool calls, bool in_reasoning,
                              const char *text, const char *wanted)
{
        check_typed(dialect, NULL, calls, in_reasoning, text, wanted);
}

#endif
