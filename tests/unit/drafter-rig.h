/* A text of prompt and answer, and the drafter of it. */
#ifndef TESTS_UNIT_DRAFTER_RIG_H
#define TESTS_UNIT_DRAFTER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/draft/drafter.h"

#define TEXT_MAX 80000u
#define LETTERS  1000u /* tokens of predictions; others come once each */
#define OTHERS   1000000u

static struct drafter *drafter;
static uint32_t tokens[TEXT_MAX], count, prompt_count;
static struct draft draft;
static struct prediction *expected;

static inline int close_drafter(void **state)
{
        (void)state;
        drafter = drafter_free(drafter);
        expected = prediction_unref(expected);
        return 0;
}

static inline void open_drafter(uint32_t context)
{
        close_drafter(NULL);
        assert_int_equal(drafter_new(context, &drafter), 0);
        count = 0;
}

/* A token that occurs nowhere else. */
static inline void add_new(void)
{
        static uint32_t next;

        assert_true(count < TEXT_MAX);
        tokens[count++] = OTHERS + next++;
}

static inline void add(uint32_t token)
{
        assert_true(count < TEXT_MAX);
        tokens[count++] = token;
}

/* The tokens so far are the prompt. */
static inline void begin(uint32_t draft_max, const uint32_t *prediction, uint32_t prediction_count)
{
        expected = prediction_unref(expected);
        if (prediction_count)
                assert_int_equal(prediction_new(prediction, prediction_count, &expected), 0);
        drafter_begin(drafter, &(struct drafter_text){ .prompt_count = count,
                                                       .tokens_max = TEXT_MAX,
                                                       .draft_max = draft_max,
                                                       .prediction = expected });
        prompt_count = count;
}

static inline void propose(void)
{
        drafter_propose(drafter, tokens, count, &draft);
        assert_true(draft.count <= DRAFT_MAX);
        assert_int_equal(draft.count == 0, draft.source == DRAFT_NONE);
        for (uint32_t i = 0; i < draft.count; i++) {
                assert_true(draft.survival[i] >= 0 && draft.survival[i] <= 1);
                assert_true(!i || draft.survival[i] <= draft.survival[i - 1]);
        }
}

static inline void assert_no_draft(void)
{
        propose();
        assert_int_equal(draft.source, DRAFT_NONE);
}

#define PREDICTED 60u

static inline const uint32_t *letters(void)
{
        static uint32_t all[LETTERS];

        for (uint32_t i = 0; i < LETTERS; i++)
                all[i] = i;
        return all;
}

/* The draft is the prediction from this token on, which is its own number. */
static inline void assert_predicts(uint32_t from, uint32_t prediction_count, uint32_t draft_max)
{
        uint32_t left = prediction_count - from;

        propose();
        assert_int_equal(draft.source, DRAFT_PREDICTION);
        assert_int_equal(draft.count, left < draft_max ? left : draft_max);
        for (uint32_t i = 0; i < draft.count; i++)
                assert_int_equal(draft.tokens[i], from + i);
}

static inline void begin_predicted(uint32_t prediction_count, uint32_t draft_max)
{
        open_drafter(TEXT_MAX);
        add_new();
        add_new();
        begin(draft_max, letters(), prediction_count);
}

/* The answer brings these tokens of the prediction. */
static inline void answer(uint32_t from, uint32_t to)
{
        while (from < to)
                add(from++);
}

/* ---- texts whose guess is known ---- */

/* A text that always repeats, and whose guesses are wrong or right as we like. */
static inline void begin_repeating(uint32_t draft_max)
{
        open_drafter(TEXT_MAX);
        for (uint32_t i = 0; i < 50; i++)
                add(7);
        begin(draft_max, NULL, 0);
}

/* The text is read over several calls. */
static inline void read_all(void)
{
        for (uint32_t i = 0; i < count; i += 16)
                propose();
}

static inline void assert_repeats(void)
{
        propose();
        assert_int_equal(draft.source, DRAFT_REPEAT);
}

static inline void be_wrong(void)
{
        assert_repeats();
        drafter_learn(drafter, draft.count, 0);
        add(7);
}

static inline void be_right(void)
{
        assert_repeats();
        drafter_learn(drafter, draft.count, draft.count);
        add(7);
}

static inline float chance_of_first(void)
{
        assert_repeats();
        return draft.survival[0];
}

/* The last `match` tokens, and no more, occur earlier. */
static inline void begin_match(uint32_t match, uint32_t draft_max)
{
        open_drafter(TEXT_MAX);
        answer(0, 80);
        add_new();
        answer(20, 20 + match);
        begin(draft_max, NULL, 0);
        for (uint32_t i = 0; i < 3; i++)
                propose();
        assert_int_equal(draft.source, DRAFT_REPEAT);
        assert_int_equal(draft.tokens[0], 20 + match);
}

/* The last `match` tokens, and no more, are those before the cursor in the prediction. */
static inline void begin_predicted_match(uint32_t match)
{
        begin_predicted(PREDICTED, 1);
        propose();
        add_new();
        if (match == 1) {
                assert_predicts(1, PREDICTED, 1); /* behind a token that was replaced */
                return;
        }
        add_new();
        add_new();
        answer(20, 20 + match);
        assert_predicts(20 + match, PREDICTED, 1);
}

#endif
