/*
 * Structures, for tests: macros that write them, and the verdict of a matcher on a text, which is
 * read byte by byte, with a mask before each.
 */
#ifndef TESTS_STRUCTURE_RIG_H
#define TESTS_STRUCTURE_RIG_H

#include <errno.h>

#include "daemon/constraint/matcher.h"
#include "daemon/constraint/structure.h"

/* The vocabulary: a token for each byte, and control tokens behind them. */
#define BYTES    256
#define CONTROLS 12

#define TEXT(literal)                                                                              \
        {                                                                                          \
                literal, sizeof(literal) - 1                                                       \
        }
#define LITERAL(string)                                                                            \
        {                                                                                          \
                .kind = STRUCTURE_LITERAL, .text = TEXT(string)                                    \
        }
#define SCHEMA(string)                                                                             \
        {                                                                                          \
                .kind = STRUCTURE_SCHEMA, .text = TEXT(string)                                     \
        }
#define REGEX(string)                                                                              \
        {                                                                                          \
                .kind = STRUCTURE_REGEX, .text = TEXT(string)                                      \
        }
#define PARTS(array) .parts = (array), .count = sizeof(array) / sizeof(*(array))
#define SEQUENCE(array)                                                                            \
        {                                                                                          \
                .kind = STRUCTURE_SEQUENCE, PARTS(array)                                           \
        }
#define CHOICE(array)                                                                              \
        {                                                                                          \
                .kind = STRUCTURE_CHOICE, PARTS(array)                                             \
        }
/* Control token 256 + n, where `low` is the byte 0x80 + n. */
#define TOKEN(low) "\xff" low "\x84\x80\x80\x80"

#define T0 TOKEN("\x80")
#define T1 TOKEN("\x81")
#define T2 TOKEN("\x82")
#define T3 TOKEN("\x83")
#define T4 TOKEN("\x84")
#define T5 TOKEN("\x85")

struct rig {
        struct grammar *grammar;
        struct token_trie *trie;
        struct matcher *matcher;
};

static inline void rig_init(struct rig *rig, const struct structure *structure)
{
        static char bytes[BYTES];
        struct token_text texts[BYTES + CONTROLS] = { 0 };
        uint32_t controls[CONTROLS];
        char why[400];

        for (uint32_t i = 0; i < BYTES; i++) {
                bytes[i] = (char)i;
                texts[i] = (struct token_text){ &bytes[i], 1 };
        }
        for (uint32_t i = 0; i < CONTROLS; i++)
                controls[i] = BYTES + i;
        if (structure_compile(structure, &grammar_limits_default, &rig->grammar, why, sizeof(why)))
                fail_msg("%s", why);
        rig->trie = token_trie_new(texts, BYTES + CONTROLS, controls, CONTROLS);
        rig->matcher = matcher_new(rig->grammar, rig->trie, &matcher_limits_default);
        assert_non_null(rig->matcher);
        matcher_reset(rig->matcher);
}

static inline void rig_deinit(struct rig *rig)
{
        matcher_free(rig->matcher);
        token_trie_free(rig->trie);
        grammar_free(rig->grammar);
}

enum verdict {
        ILLEGAL, /* no text begins so */
        BEGUN,   /* it may go on, but not end */
        WHOLE,   /* it may end */
        FINAL,   /* it must end */
};

/* Takes the text byte by byte, and checks that masks say the same. */
static inline enum verdict judge(struct rig *rig, const char *text, size_t count)
{
        uint32_t bits[(BYTES + CONTROLS + 31) / 32];

        matcher_reset(rig->matcher);
        for (size_t at = 0; at < count;) {
                unsigned char byte = text[at];
                uint32_t token = byte;
                bool legal;

                if (byte == TOKEN_LEAD)
                        token = (text[at + 1] & 63) | (uint32_t)(text[at + 2] & 63) << 6;
                at += byte == TOKEN_LEAD ? TOKEN_BYTES : 1;
                assert_int_equal(matcher_mask(rig->matcher, bits), MATCHER_FINE);
                legal = bits[token / 32] >> (token % 32) & 1;
                assert_int_equal(matcher_take(rig->matcher, token),
                                 legal ? MATCHER_FINE : MATCHER_ILLEGAL);
                if (!legal)
                        return ILLEGAL;
        }
        assert_int_equal(matcher_mask(rig->matcher, bits), MATCHER_FINE);
        if (!matcher_can_end(rig->matcher))
                return BEGUN;
        return matcher_must_end(rig->matcher) ? FINAL : WHOLE;
}

struct example {
        enum verdict verdict;
        struct regex_text text;
};

static inline void check(const struct structure *structure, const struct example *examples,
                         size_t count)
{
        struct rig rig;

        rig_init(&rig, structure);
        for (size_t i = 0; i < count; i++) {
                enum verdict verdict = judge(&rig, examples[i].text.bytes, examples[i].text.count);

                if (verdict != examples[i].verdict)
                        fail_msg("'%s': %d, not %d", examples[i].text.bytes, verdict,
                                 examples[i].verdict);
        }
        rig_deinit(&rig);
}

#define CHECK(structure, ...)                                                                      \
        check((structure), (const struct example[]){ __VA_ARGS__ },                                \
              sizeof((const struct example[]){ __VA_ARGS__ }) / sizeof(struct example))

static inline void check_refused(const struct structure *structure, const char *sentence)
{
        struct grammar *grammar;
        char why[400] = "";

        assert_int_equal(
                structure_compile(structure, &grammar_limits_default, &grammar, why, sizeof(why)),
                -EINVAL);
        assert_string_equal(why, sentence);
}

#endif
