/*
 * The limit of reasoning, over dialects with marks of one token and of several.  A writer makes
 * tokens by chance, and takes those that are forced.  What must come is told from the text alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/draw/reasoning-limit.h"
#include "daemon/text/parts.h"

#define TOKENS_MAX   4096u
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Control tokens of the vocabulary that has some: the marks of two dialects. */
static const char *const controls[] = { "<think>",     "</think>", "<|start|>", "<|channel|>",
                                        "<|message|>", "<|end|>",  "<|call|>",  "<|constrain|>" };

static const char hermes[] = "<think> and <tool_call>";
static const char harmony[] = "<|channel|> <|message|>";

struct model {
        struct tokenizer *tokenizer;
        struct dialect dialect;
};

static void open_model(struct model *model, const char *signs, bool has_controls)
{
        static struct entry entries[256 + COUNT(controls)];
        static char bytes[256];
        const struct vocabulary vocabulary = { .kind = VOCABULARY_BYTE_LEVEL,
                                               .bos = VOCABULARY_NONE,
                                               .eos = VOCABULARY_NONE,
                                               .unknown = VOCABULARY_NONE,
                                               .entry_count = has_controls ? COUNT(entries) : 256,
                                               .entries = entries };
        struct dialect_conf conf = { .templates = { signs, NULL } };
        char why[256] = "";

        for (unsigned i = 0; i < 256; i++) {
                bytes[i] = (char)i;
                entries[i] = (struct entry){ .bytes = &bytes[i], .count = 1 };
        }
        for (size_t i = 0; i < COUNT(controls); i++)
                entries[256 + i] = (struct entry){ .bytes = controls[i],
                                                   .count = (uint32_t)strlen(controls[i]),
                                                   .kind = ENTRY_CONTROL };
        assert_int_equal(tokenizer_open(&vocabulary, vocabulary.entry_count, &model->tokenizer, why,
                                        sizeof(why)),
                         0);
        conf.tokenizer = model->tokenizer;
        dialect_open(&conf, &model->dialect);
        assert_true(dialect_has_reasoning(&model->dialect));
}

static void close_model(struct model *model)
{
        tokenizer_close(model->tokenizer);
}

/* ---- a stream ---- */

struct stream {
        const struct model *model;
        struct reasoning_limit *limit;
        uint32_t tokens[TOKENS_MAX], count, answer, forced;
        char text[4 * TOKENS_MAX]; /* of the answer, with control tokens as they are written */
};

static void add_text(struct stream *s, const char *text)
{
        struct encoding how = { .controls = &text_whole, .control_count = 1 };
        size_t count;

        assert_int_equal(tokenizer_encode(s->model->tokenizer, text, strlen(text), &how,
                                          s->tokens + s->count, &count),
                         0);
        s->count += (uint32_t)count;
}

static struct stream *begin(const struct model *model, const char *prompt, uint32_t most,
                            const char *message)
{
        const struct reasoning_limit_conf conf = { .dialect = &model->dialect,
                                                   .tokenizer = model->tokenizer,
                                                   .tokens_max = most,
                                                   .message = message,
                                                   .message_bytes = strlen(message) };
        struct stream *s = calloc(1, sizeof(*s));

        assert_non_null(s);
        s->model = model;
        add_text(s, prompt);
        s->answer = s->count;
        assert_int_equal(reasoning_limit_new(&conf, &s->limit), 0);
        return s;
}

static void end(struct stream *s)
{
        reasoning_limit_free(s->limit);
        free(s);
}

static void add_token(struct stream *s, uint32_t token)
{
        size_t bytes;
        const char *spelling = tokenizer_spelling(s->model->tokenizer, token, &bytes);

        assert_true(s->count < TOKENS_MAX);
        s->tokens[s->count++] = token;
        strncat(s->text, spelling, bytes);
}

static uint32_t next(struct stream *s)
{
        return reasoning_limit_next(s->limit, s->tokens, s->count, s->answer);
}

static bool is_used(struct stream *s)
{
        return reasoning_limit_is_used(s->limit, s->tokens, s->count);
}

/* The model writes this text, but takes each token that is forced before its own. */
static const char *write(struct stream *s, const char *text)
{
        struct encoding how = { .controls = &text_whole, .control_count = 1 };
        uint32_t ids[TOKENS_MAX], token;
        size_t count;

        assert_int_equal(
                tokenizer_encode(s->model->tokenizer, text, strlen(text), &how, ids, &count), 0);
        for (size_t i = 0; i < count; i++) {
                for (; (token = next(s)) != REASONING_LIMIT_NONE; s->forced++)
                        add_token(s, token);
                add_token(s, ids[i]);
        }
        for (; (token = next(s)) != REASONING_LIMIT_NONE; s->forced++)
                add_token(s, token);
        return s->text;
}

static void check(const char *signs, bool has_controls, const char *prompt, uint32_t most,
                  const char *message, const char *text, const char *wanted)
{
        struct model model;
        struct stream *s;

        open_model(&model, signs, has_controls);
        s = begin(&model, prompt, most, message);
        assert_string_equal(write(s, text), wanted);
        assert_int_equal(is_used(s), strcmp(text, wanted) != 0);
        end(s);
        close_model(&model);
}

/* ---- where it ends ---- */

static void ends_reasoning_that_the_prompt_opened(void **state)
{
        (void)state;
        check(hermes, false, "Hi <think>\n", 5, "", "abcdefgh", "abcde</think>fgh");
        check(hermes, true, "Hi <think>\n", 5, " Enough.\n", "abcdefgh",
              "abcde Enough.\n</think>fgh");
        check(hermes, true, "Hi <think>\n", 0, "", "ab", "</think>ab");
}

static void ends_reasoning_that_the_model_opens(void **state)
{
        (void)state;
        /* the mark counts: one token, or seven */
        check(hermes, true, "Hi", 3, "", "<think>abcd", "<think>ab</think>cd");
        check(hermes, false, "Hi", 9, "", "<think>abcd", "<think>ab</think>cd");
        check(hermes, true, "Hi", 0, "", "<think>ab", "<think></think>ab");
        check(hermes, false, "Hi", 0, "!", "<think>ab", "<think>!</think>ab");
}

static void leaves_an_answer_alone_that_keeps_within_it(void **state)
{
        (void)state;
        check(hermes, true, "Hi", 0, "", "no thought at all", "no thought at all");
        check(hermes, true, "Hi <think>", 4, "", "abc</think>defghijk", "abc</think>defghijk");
        check(hermes, true, "Hi", 5, "", "<think>abc</think>defghijk",
              "<think>abc</think>defghijk");
}

static void ends_reasoning_that_is_opened_again(void **state)
{
        (void)state;
        check(hermes, true, "Hi <think>", 2, "", "abc", "ab</think>c");
        /* "c" would not let it open: reasoning follows only reasoning, or blanks */
        check(hermes, true, "Hi <think>", 2, "-", "ab\n<think>c", "ab-</think>\n<think>-</think>c");
        check(hermes, true, "Hi", 4, "", "<think>a</think><think>bc",
              "<think>a</think><think></think>bc");
}

static void waits_for_the_end_of_a_character(void **state)
{
        (void)state;
        check(hermes, true, "<think>", 1, "", "\u00e9a", "\u00e9</think>a");
        check(hermes, true, "<think>", 2, "", "\U0001F600b", "\U0001F600</think>b");
        check(hermes, true, "<think>", 2, "", "\u00e9\u00e9", "\u00e9</think>\u00e9");
        /* a model that completes no character gets three tokens more */
        check(hermes, true, "<think>", 1, "", "\xf0\xf0\xf0\xf0\xf0",
              "\xf0\xf0\xf0\xf0</think>\xf0");
}

static void ends_the_analysis_of_harmony(void **state)
{
        static const char opened[] = "<|channel|>analysis<|message|>";
        char text[256], wanted[256];

        (void)state;
        for (int has_controls = 0; has_controls < 2; has_controls++) {
                /* Of the header, only the token with its last byte counts. */
                snprintf(text, sizeof(text), "%sabcdef", opened);
                snprintf(wanted, sizeof(wanted),
                         "%sabcd!<|end|><|start|>assistant<|channel|>final<|message|>ef", opened);
                check(harmony, has_controls, "<|start|>assistant", 5, "!", text, wanted);
        }
}

/* A mark that the model has begun is text of its reasoning. */
static void a_mark_that_was_begun_is_no_end(void **state)
{
        (void)state;
        check(hermes, false, "<think>", 4, "", "a</tx", "a</t</think>x");
}

/* ---- what it depends on ---- */

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)((random_state >> 33) % n);
}

/* Tokens by chance, with marks among them. */
static uint32_t random_token(const struct model *model)
{
        uint32_t vocab = tokenizer_vocab(model->tokenizer);

        if (!random_below(8) && vocab > 256)
                return 256 + random_below(vocab - 256);
        return random_below(3) ? 'a' + random_below(26) : random_below(256);
}

/* A fork, or a request that was preempted: it has only the tokens. */
static void a_new_one_goes_on_from_the_tokens(void **state)
{
        struct model model;

        (void)state;
        for (unsigned round = 0; round < 60; round++) {
                struct stream *s;

                open_model(&model, round % 3 ? hermes : harmony, round % 2);
                s = begin(&model, round % 4 ? "<think>" : "Hi", random_below(12), "so.");
                for (unsigned i = 0; i < 100; i++) {
                        struct reasoning_limit *other;
                        uint32_t token = next(s);

                        assert_int_equal(reasoning_limit_like(s->limit, &other), 0);
                        assert_int_equal(
                                reasoning_limit_next(other, s->tokens, s->count, s->answer), token);
                        assert_int_equal(reasoning_limit_is_used(other, s->tokens, s->count),
                                         is_used(s));
                        reasoning_limit_free(other);
                        /* sometimes a guide does not let it */
                        add_token(s, token != REASONING_LIMIT_NONE && random_below(8)
                                             ? token
                                             : random_token(&model));
                }
                end(s);
                close_model(&model);
        }
}

/* The parts of the whole answer have no more tokens of reasoning than this, and its end. */
static void parts_count_no_more_than_the_limit(void **state)
{
        struct model model;

        (void)state;
        for (unsigned round = 0; round < 200; round++) {
                const uint32_t most = random_below(12);
                struct stream *s;
                char text[64] = "";

                open_model(&model, round % 3 ? hermes : harmony, true);
                s = begin(&model, "Hi", most, "");
                write(s, round % 3 ? "<think>" : "<|channel|>analysis<|message|>");
                for (unsigned i = 0; i < 40; i++)
                        text[i] = (char)('a' + random_below(26));
                write(s, text);
                assert_true(s->forced > 0);
                assert_non_null(strstr(s->text, round % 3 ? "</think>" : "final<|message|>"));
                /* the mark that opens it is one of `most` */
                assert_int_equal(strcspn(s->text + (round % 3 ? 7 : 30), "<"), most ? most - 1 : 0);
                end(s);
                close_model(&model);
        }
}

static void a_token_that_a_guide_refuses_is_tried_again(void **state)
{
        struct model model;
        struct stream *s;

        (void)state;
        open_model(&model, hermes, true);
        s = begin(&model, "<think>", 1, "no");
        assert_int_equal(next(s), REASONING_LIMIT_NONE);
        add_token(s, 'a');
        assert_int_equal(next(s), 'n');
        assert_int_equal(next(s), 'n');
        add_token(s, 'x');
        assert_int_equal(next(s), 'n');
        assert_false(is_used(s));
        add_token(s, 'n');
        assert_true(is_used(s));
        assert_int_equal(next(s), 'o');
        assert_true(is_used(s));
        add_token(s, 'y');
        assert_int_equal(next(s), 'n');
        end(s);
        close_model(&model);
}

/* Control tokens in a message are text of the message. */
static void a_message_has_no_control_tokens(void **state)
{
        struct model model;
        struct stream *s;

        (void)state;
        open_model(&model, harmony, true);
        s = begin(&model, "<|start|>assistant", 0, "<|end|>");
        write(s, "<|channel|>analysis<|message|>");
        assert_int_equal(s->forced, 7 + 4 + strlen("assistant") + strlen("final"));
        end(s);
        close_model(&model);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ends_reasoning_that_the_prompt_opened),
                cmocka_unit_test(ends_reasoning_that_the_model_opens),
                cmocka_unit_test(leaves_an_answer_alone_that_keeps_within_it),
                cmocka_unit_test(ends_reasoning_that_is_opened_again),
                cmocka_unit_test(waits_for_the_end_of_a_character),
                cmocka_unit_test(ends_the_analysis_of_harmony),
                cmocka_unit_test(a_mark_that_was_begun_is_no_end),
                cmocka_unit_test(a_new_one_goes_on_from_the_tokens),
                cmocka_unit_test(parts_count_no_more_than_the_limit),
                cmocka_unit_test(a_token_that_a_guide_refuses_is_tried_again),
                cmocka_unit_test(a_message_has_no_control_tokens),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
