/*
 * What drafts gain, in a simulation of one stream without a clock: the drafter guesses, rows are
 * dealt, and a step takes as long as a table says.  The control of the daemon is compared with
 * drafts of a fixed length that are always made, of which the best is chosen afterwards, and with
 * no drafts at all.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/draft/deal.h"
#include "daemon/draft/drafter.h"
#include "daemon/draft/prediction.h"
#include "daemon/draft/step-costs.h"

enum {
        SPARE = 8,        /* rows of a step for drafts */
        ROWS = 1 + SPARE, /* of a step, at most */
        VOCABULARY = 400, /* tokens of most texts */
        UNIQUE = 1000,    /* and from here on each token comes once */
        TEXT_MAX = 2048,  /* tokens of prompt and answer */
        TEXTS = 40,       /* that a mean is of */
        SHORT = 96,       /* tokens of answers */
        LONG = 480,
        TABLES = 3,
};

/* Milliseconds of a step by its rows. */
struct table {
        const char *name;
        double ms[ROWS + 1];
};

static const struct table tables[TABLES] = {
        /* Four rows take hardly longer than one. */
        { "flat and then steep", { 0, 26.0, 26.3, 26.8, 28, 34, 38, 43, 47, 52 } },
        /* Two rows take less time than one, and five less than four. */
        { "uneven", { 0, 37.96, 31.79, 37.12, 46.10, 42.51, 44.45, 50.73, 52.36, 58.42 } },
        { "steep", { 0, 10, 13, 16, 19, 22, 25, 28, 31, 34 } },
};

/* Lengths of drafts that are always made; 0: there are none. */
static const uint32_t fixed[] = { 0, 1, 2, 3, 4, 6, 8 };
enum { FIXED = sizeof(fixed) / sizeof(*fixed) };

struct text {
        uint32_t prompt_count, count, prediction_count;
        uint32_t tokens[TEXT_MAX], prediction[TEXT_MAX];
        uint32_t from; /* the time is taken from here on */
};

static uint64_t dice;
static uint32_t next_unique;
static struct drafter *drafter;

static uint32_t below(uint32_t limit)
{
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(dice >> 33) % limit;
}

static bool happens(double chance)
{
        return below(10000) < 10000 * chance;
}

/* ---- a stream ---- */

static struct prediction *begin(const struct text *text, uint32_t draft_max)
{
        struct prediction *prediction = NULL;

        if (text->prediction_count)
                assert_int_equal(
                        prediction_new(text->prediction, text->prediction_count, &prediction), 0);
        drafter_begin(drafter, &(struct drafter_text){ .prompt_count = text->prompt_count,
                                                       .tokens_max = text->count,
                                                       .draft_max = draft_max,
                                                       .prediction = prediction });
        return prediction;
}

static uint32_t least(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

/* How many of these tokens are those of the text. */
static uint32_t count_right(const struct text *text, uint32_t at, const struct draft *draft,
                            uint32_t rows)
{
        uint32_t right = 0;

        while (right < rows && draft->tokens[right] == text->tokens[at + right])
                right++;
        return right;
}

/* Counts steps by their rows, if each draft has all its rows.  Nothing is learnt. */
static void serve_always(const struct text *text, uint32_t draft_max, uint32_t *steps)
{
        struct prediction *prediction = draft_max ? begin(text, draft_max) : NULL;
        uint32_t at = text->prompt_count + 1; /* the prompt brings the first token */

        while (at < text->count) {
                struct draft draft = { .count = 0 };
                uint32_t rows;

                if (draft_max)
                        drafter_propose(drafter, text->tokens, at, &draft);
                rows = least(draft.count, text->count - at - 1);
                steps[1 + rows] += at >= text->from;
                at += 1 + count_right(text, at, &draft, rows);
        }
        prediction_unref(prediction);
}

/* As the engine does: how many rows the last tokens of *draft have. */
static uint32_t deal_to(const struct step_costs *costs, const struct text *text, uint32_t at,
                        struct draft *draft)
{
        struct deal deal = { .draft = draft };

        if (!step_costs_known(costs, 1) || !deal_pays(costs, 1, 1))
                return 0;
        drafter_propose(drafter, text->tokens, at, draft);
        deal.most = least(draft->count, text->count - at - 1);
        if (!deal_rows(costs, 1, 1, SPARE, &deal, 1) && draft->count)
                drafter_pass(drafter);
        return deal.rows;
}

struct control {
        const struct table *table;
        struct step_costs costs; /* all texts teach them */
        double ms;
};

static void serve(const struct text *text, struct control *control)
{
        struct prediction *prediction = begin(text, SPARE);
        uint32_t at = text->prompt_count + 1;

        while (at < text->count) {
                struct draft draft = { .count = 0 };
                uint32_t rows = deal_to(&control->costs, text, at, &draft);
                uint32_t right = count_right(text, at, &draft, rows);
                double ms = control->table->ms[1 + rows];

                control->ms += at >= text->from ? ms : 0;
                step_costs_note(&control->costs, 1 + rows, (uint64_t)(ms * 1e6));
                at += 1 + right;
                if (rows && at < text->count)
                        drafter_learn(drafter, rows, right);
        }
        prediction_unref(prediction);
}

/* ---- texts ---- */

struct scenario {
        const char *name;
        void (*draw)(struct text *text, uint32_t length, double chance);
        double chance;   /* that a token is right */
        uint32_t length; /* of an answer */
};

static uint32_t unique(void)
{
        return UNIQUE + next_unique++;
}

static void draw_random(struct text *text, uint32_t prompt, uint32_t length, uint32_t vocabulary)
{
        text->prompt_count = prompt;
        text->count = prompt + length;
        for (uint32_t i = 0; i < text->count; i++)
                text->tokens[i] = below(vocabulary);
}

static void draw_predicted(struct text *text, uint32_t length, double chance)
{
        draw_random(text, 64, length, VOCABULARY);
        text->prediction_count = length;
        for (uint32_t i = 0; i < length; i++)
                text->prediction[i] = happens(chance) ? text->tokens[64 + i] : below(VOCABULARY);
}

/* The answer is the prompt, but for some tokens. */
static void draw_repeated(struct text *text, uint32_t length, double chance)
{
        draw_random(text, length, length, VOCABULARY);
        for (uint32_t i = 0; i < length; i++)
                if (happens(chance))
                        text->tokens[length + i] = text->tokens[i];
}

/* Single tokens occur again, by chance. */
static void draw_new(struct text *text, uint32_t length, double chance)
{
        (void)chance;
        draw_random(text, 64, length, VOCABULARY);
}

/* So do two and three tokens, and what follows is another one. */
static void draw_misleading(struct text *text, uint32_t length, double chance)
{
        (void)chance;
        draw_random(text, 64, length, 30);
}

/* Half of the answer is new, and the other half is the prompt.  The time is that of the second. */
static void draw_late_repeat(struct text *text, uint32_t length, double chance)
{
        uint32_t half = length / 2;

        (void)chance;
        draw_random(text, half, length, VOCABULARY);
        for (uint32_t i = 0; i < half; i++)
                text->tokens[2 * half + i] = text->tokens[i];
        text->from = 2 * half;
}

/* No token of the prediction is right, but in the second half all are. */
static void draw_late_prediction(struct text *text, uint32_t length, double chance)
{
        draw_predicted(text, length, chance);
        for (uint32_t i = length / 2; i < length; i++)
                text->prediction[i] = text->tokens[64 + i];
        text->from = 64 + length / 2;
}

/*
 * The prediction has triples of tokens, an even number.  The answer has their first two, which show
 * the place, and then another token; and the next triple is near, but not the one that follows.
 */
static void draw_hostile(struct text *text, uint32_t length, double chance)
{
        uint32_t triples = length / 3;

        (void)chance;
        text->prompt_count = 64;
        text->count = 64 + 3 * triples;
        text->prediction_count = 3 * triples;
        for (uint32_t i = 0; i < 64; i++)
                text->tokens[i] = unique();
        for (uint32_t i = 0; i < 3 * triples; i++)
                text->prediction[i] = unique();
        for (uint32_t i = 0; i < triples; i++) {
                const uint32_t *triple = text->prediction + 3 * (i ^ 1);
                uint32_t *answer = text->tokens + 64 + 3 * i;

                answer[0] = triple[0];
                answer[1] = triple[1];
                answer[2] = unique();
        }
}

/* As the hostile one, but from the middle on only the last token of a triple is wrong. */
static void draw_late_pattern(struct text *text, uint32_t length, double chance)
{
        draw_hostile(text, length, chance);
        text->from = 64 + length / 2;
        for (uint32_t i = length / 2; i < length; i++)
                if (i % 3 < 2)
                        text->tokens[64 + i] = text->prediction[i];
}

/* ---- gains ---- */

struct times {
        double off, best; /* of the fixed lengths, of which off is one */
        struct control control;
};

/* The same ones, whoever serves them. */
static void begin_texts(void)
{
        dice = 1;
        next_unique = 0;
}

static void measure_fixed(const struct scenario *scenario, uint32_t steps[FIXED][ROWS + 1])
{
        static struct text text;

        begin_texts();
        for (uint32_t i = 0; i < TEXTS; i++) {
                text = (struct text){ 0 };
                scenario->draw(&text, scenario->length, scenario->chance);
                for (uint32_t j = 0; j < FIXED; j++)
                        serve_always(&text, fixed[j], steps[j]);
        }
}

static void measure_control(const struct scenario *scenario, struct control *control)
{
        static struct text text;

        begin_texts();
        for (uint32_t i = 0; i < TEXTS; i++) {
                text = (struct text){ 0 };
                scenario->draw(&text, scenario->length, scenario->chance);
                serve(&text, control);
        }
}

static double time_of(const struct table *table, const uint32_t *steps)
{
        double ms = 0;

        for (uint32_t rows = 1; rows <= ROWS; rows++)
                ms += steps[rows] * table->ms[rows];
        return ms;
}

/* With each table. */
static void measure(const struct scenario *scenario, struct times *times)
{
        uint32_t steps[FIXED][ROWS + 1] = { 0 };

        measure_fixed(scenario, steps);
        for (uint32_t i = 0; i < TABLES; i++) {
                times[i] = (struct times){ .control = { .table = &tables[i] } };
                times[i].off = times[i].best = time_of(&tables[i], steps[0]);
                for (uint32_t j = 1; j < FIXED; j++)
                        times[i].best = fmin(times[i].best, time_of(&tables[i], steps[j]));
                measure_control(scenario, &times[i].control);
        }
}

static void assert_gain(const struct scenario *scenario, const struct times *times, double other,
                        const char *whose, double bound)
{
        double gain = other / times->control.ms;

        if (!(gain >= bound))
                fail_msg("%s, %.2f right, %u tokens, %s: %.3f times as fast as %s, not %.2f",
                         scenario->name, scenario->chance, scenario->length,
                         times->control.table->name, gain, whose, bound);
}

static void assert_gains(const struct scenario *scenario, double of_best, double of_off)
{
        struct times times[TABLES];

        measure(scenario, times);
        for (uint32_t i = 0; i < TABLES; i++) {
                assert_gain(scenario, &times[i], times[i].best, "the best", of_best);
                assert_gain(scenario, &times[i], times[i].off, "none", of_off);
        }
}

/*
 * A long answer gets nearly all that the best length would bring.  A short one may end before the
 * drafter is as sure of nearly perfect guesses as it should be.
 */
static void assert_nearly_best(const char *name, void (*draw)(struct text *, uint32_t, double),
                               double chance)
{
        assert_gains(&(struct scenario){ name, draw, chance, LONG }, 0.95, 0.98);
        assert_gains(&(struct scenario){ name, draw, chance, SHORT }, chance > 0.9 ? 0.93 : 0.95,
                     0.98);
}

static void predictions_gain_what_the_best_length_gains(void **state)
{
        static const double chances[] = { 0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1 };

        (void)state;
        for (uint32_t i = 0; i < sizeof(chances) / sizeof(*chances); i++)
                assert_nearly_best("predicted", draw_predicted, chances[i]);
}

static void repeats_gain_what_the_best_length_gains(void **state)
{
        (void)state;
        assert_nearly_best("repeated", draw_repeated, 0.7);
        assert_nearly_best("repeated", draw_repeated, 0.95);
}

/* The bound of wrong predictions holds here, too. */
static void what_cannot_be_guessed_costs_next_to_nothing(void **state)
{
        (void)state;
        assert_nearly_best("new", draw_new, 0);
        assert_nearly_best("misleading", draw_misleading, 0);
}

/* Guesses that were wrong for a long time do not keep a drafter from those that are right. */
static void what_can_be_guessed_late_is_found(void **state)
{
        (void)state;
        assert_gains(&(struct scenario){ "late repeat", draw_late_repeat, 0, 800 }, 0.9, 1);
        assert_gains(&(struct scenario){ "late prediction", draw_late_prediction, 0, 800 }, 0.9, 1);
        /*
         * Guesses that look like those that were wrong are tried again soon, as their chance
         * returns, but for longer one at a time.
         */
        assert_gains(&(struct scenario){ "late pattern", draw_late_pattern, 0, 960 }, 0.55, 1.4);
}

/* Most steps have a guess, and none is right. */
static void assert_misleads(const struct scenario *scenario)
{
        uint32_t steps[FIXED][ROWS + 1] = { 0 };

        measure_fixed(scenario, steps);
        assert_int_equal(steps[1][1] + steps[1][2], steps[0][1]);
        assert_true(steps[1][2] > steps[0][1] * 6 / 10);
}

/* A short answer pays for what is learnt in it. */
static void a_hostile_prediction_costs_little(void **state)
{
        const struct scenario answer = { "hostile", draw_hostile, 0, LONG };
        const struct scenario little = { "hostile", draw_hostile, 0, SHORT };

        (void)state;
        assert_misleads(&answer);
        assert_misleads(&little);
        assert_gains(&answer, 0.97, 0.97);
        assert_gains(&little, 0.93, 0.93);
}

static int open_drafter(void **state)
{
        (void)state;
        return drafter_new(TEXT_MAX, &drafter);
}

static int close_drafter(void **state)
{
        (void)state;
        drafter = drafter_free(drafter);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(predictions_gain_what_the_best_length_gains),
                cmocka_unit_test(repeats_gain_what_the_best_length_gains),
                cmocka_unit_test(what_cannot_be_guessed_costs_next_to_nothing),
                cmocka_unit_test(what_can_be_guessed_late_is_found),
                cmocka_unit_test(a_hostile_prediction_costs_little),
        };

        return cmocka_run_group_tests_name("draft-gain", tests, open_drafter, close_drafter);
}
