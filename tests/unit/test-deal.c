/* The dealing of rows to drafts, against a search of all ways to deal them. */
#include <math.h>
#include <stdbool.h>

#include "daemon/draft/deal.h"
#include "tests/unit/deal-rig.h"

#define STREAMS 4u
#define ROWS    12u

/* ---- deals ---- */

#define TIMES (ROWS + STREAMS + 1)

/* Steps that cost more for each row than for the one before, in one of several ways. */
static void draw_times(uint64_t *times)
{
        uint32_t kind = below(3), base = 1000 + below(100000), slope = below(base),
                 knee = 1 + below(ROWS + STREAMS);

        for (uint32_t rows = 1; rows <= TIMES; rows++) {
                times[rows] = base;
                if (kind == 0)
                        times[rows] += (uint64_t)slope * rows;
                else if (kind == 1)
                        times[rows] += (uint64_t)slope / 4 * rows * rows;
                else if (rows > knee)
                        times[rows] += (uint64_t)slope * (rows - knee);
        }
}

/* One or two rows are dearer here and there, and at least one between them is not. */
static void add_humps(uint64_t *times)
{
        uint32_t rows = 1 + below(3);

        while (rows <= TIMES) {
                for (uint32_t width = 1 + below(2); width && rows <= TIMES; width--, rows++)
                        times[rows] += below(2 * (uint32_t)times[rows]);
                rows += 1 + below(4);
        }
}

static void draw_costs(struct step_costs *costs, bool has_humps)
{
        uint64_t times[TIMES + 1];

        draw_times(times);
        if (has_humps)
                add_humps(times);
        *costs = (struct step_costs){ 0 };
        for (uint32_t rows = 1; rows <= TIMES; rows++)
                measure(costs, rows, times[rows]);
}

struct table {
        struct draft drafts[STREAMS];
        struct deal deals[STREAMS];
        uint32_t count, rows, tokens, spare;
        struct step_costs costs;
};

/* Each stream has a row in any case; a part of them brings no token. */
static void draw_table(struct table *table, bool has_humps)
{
        *table = (struct table){ .count = 1 + below(STREAMS), .spare = below(ROWS + 1) };
        table->tokens = 1 + below(table->count);
        table->rows = table->count;
        for (uint32_t i = 0; i < table->count; i++) {
                struct draft *draft = &table->drafts[i];
                float survival = 1;

                draft->source = DRAFT_REPEAT;
                draft->count = below(ROWS + 1);
                for (uint32_t j = 0; j < draft->count; j++) {
                        if (below(4))
                                survival *= (float)(1 + below(1000)) / 1000;
                        draft->survival[j] = survival;
                }
                table->deals[i] = (struct deal){ .draft = draft,
                                                 .most = below(draft->count + 1),
                                                 .rows = 77 };
        }
        draw_costs(&table->costs, has_humps);
}

static uint32_t deal(struct table *table)
{
        return deal_rows(&table->costs, table->rows, table->tokens, table->spare, table->deals,
                         table->count);
}

/* Tokens in a second, if the drafts have so many rows each. */
static double speed(const struct table *table, const uint32_t *rows)
{
        double expected = table->tokens;
        uint32_t dealt = 0;

        for (uint32_t i = 0; i < table->count; i++) {
                for (uint32_t j = 0; j < rows[i]; j++)
                        expected += (double)table->drafts[i].survival[j];
                dealt += rows[i];
        }
        return expected / (double)step_costs_ns(&table->costs, table->rows + dealt);
}

/* The next way to deal; false: it was the last. */
static bool next_way(const struct table *table, uint32_t *rows)
{
        for (uint32_t i = 0; i < table->count; i++) {
                if (rows[i]++ < table->deals[i].most)
                        return true;
                rows[i] = 0;
        }
        return false;
}

static double best_speed(const struct table *table)
{
        uint32_t rows[STREAMS] = { 0 };
        double best = 0;

        do {
                uint32_t dealt = 0;

                for (uint32_t i = 0; i < table->count; i++)
                        dealt += rows[i];
                if (dealt <= table->spare)
                        best = fmax(best, speed(table, rows));
        } while (next_way(table, rows));
        return best;
}

static void assert_deals_best(bool has_humps)
{
        uint32_t some = 0, all = 0;

        for (uint32_t i = 0; i < 3000; i++) {
                struct table table;
                uint32_t rows[STREAMS] = { 0 }, dealt;

                draw_table(&table, has_humps);
                dealt = deal(&table);
                for (uint32_t j = 0; j < table.count; j++)
                        rows[j] = table.deals[j].rows;
                assert_near(speed(&table, rows) / best_speed(&table), 1);
                some += dealt > 0 && dealt < table.spare;
                all += dealt && dealt == table.spare;
        }
        assert_true(some > 300 && all > 300);
}

static void deals_so_that_most_tokens_come_in_a_second(void **state)
{
        (void)state;
        dice = 2;
        assert_deals_best(false);
}

/*
 * Between humps the speed rises up to one number of rows and falls from there on.  As long as it
 * rises, one of three rows is not dearer and better than all before, so no hump ends the search.
 */
static void one_or_two_dear_rows_are_passed(void **state)
{
        (void)state;
        dice = 5;
        assert_deals_best(true);
}

/* All tokens are sure, and all steps take as long, but those with rows of a hump. */
static void assert_hump(uint32_t from, uint32_t width, uint32_t expected)
{
        struct draft draft = { .count = 10 };
        struct deal one = { .draft = &draft, .most = 10 };
        struct step_costs costs = { 0 };

        for (uint32_t i = 0; i < 10; i++)
                draft.survival[i] = 1;
        for (uint32_t rows = 1; rows <= 11; rows++)
                measure(&costs, rows, rows >= from && rows < from + width ? 90000 : 1000);
        assert_int_equal(deal_rows(&costs, 1, 1, 10, &one, 1), expected);
        assert_int_equal(one.rows, expected);
        assert_int_equal(deal_worth(&costs, 1, 1, 0, &draft, 10), expected);
        assert_int_equal(deal_worth(&costs, 1, 1, 0, NULL, 10), expected);
        assert_int_equal(deal_pays(&costs, 1, 1), expected > 0);
}

/* The search ends three rows behind the best number, so what follows is not found. */
static void three_dear_rows_end_the_search(void **state)
{
        (void)state;
        for (uint32_t from = 2; from <= 8; from++) {
                assert_hump(from, 1, 10);
                assert_hump(from, 2, 10);
                assert_hump(from, 3, from - 2);
                assert_hump(from, 4, from - 2);
        }
        /* No row is behind these. */
        assert_hump(10, 2, 8);
        assert_hump(11, 1, 9);
}

static void no_limit_is_exceeded(void **state)
{
        (void)state;
        dice = 3;
        for (uint32_t i = 0; i < 3000; i++) {
                struct table table;
                uint32_t dealt, sum = 0;

                draw_table(&table, i % 2);
                dealt = deal(&table);
                assert_true(dealt <= table.spare);
                for (uint32_t j = 0; j < table.count; j++) {
                        assert_true(table.deals[j].rows <= table.deals[j].most);
                        sum += table.deals[j].rows;
                }
                assert_int_equal(sum, dealt);
        }
}

/* No row is dealt while a likelier one has none. */
static void likelier_tokens_come_first(void **state)
{
        (void)state;
        dice = 4;
        for (uint32_t i = 0; i < 3000; i++) {
                struct table table;
                float least = 2;

                draw_table(&table, i % 2);
                deal(&table);
                for (uint32_t j = 0; j < table.count; j++)
                        if (table.deals[j].rows)
                                least = fminf(least,
                                              table.drafts[j].survival[table.deals[j].rows - 1]);
                for (uint32_t j = 0; j < table.count; j++)
                        if (table.deals[j].rows < table.deals[j].most)
                                assert_true(table.drafts[j].survival[table.deals[j].rows] <= least);
        }
}

static void an_order_is_kept_in_a_small_example(void **state)
{
        struct draft sure = { .count = 3, .survival = { 0.9f, 0.8f, 0.3f } };
        struct draft vague = { .count = 3, .survival = { 0.5f, 0.4f, 0.1f } };
        struct step_costs costs = { 0 };
        static const uint32_t expected[7][2] = { { 0, 0 }, { 1, 0 }, { 2, 0 }, { 2, 1 },
                                                 { 2, 2 }, { 3, 2 }, { 3, 3 } };

        (void)state;
        for (uint32_t spare = 0; spare <= 6; spare++) {
                struct deal deals[] = { { .draft = &vague, .most = 3 },
                                        { .draft = &sure, .most = 3 } };

                assert_int_equal(deal_rows(&costs, 2, 2, spare, deals, 2), spare);
                assert_int_equal(deals[1].rows, expected[spare][0]);
                assert_int_equal(deals[0].rows, expected[spare][1]);
        }
}

/* A number of rows that was never measured is tried. */
static void rows_that_were_not_measured_are_dealt(void **state)
{
        struct draft draft = { .count = 8 };
        struct deal one = { .draft = &draft, .most = 8 };
        struct step_costs costs = { 0 };

        (void)state;
        for (uint32_t i = 0; i < 8; i++)
                draft.survival[i] = 0.01f;
        assert_int_equal(deal_rows(&costs, 1, 1, 20, &one, 1), 8);
        measure(&costs, 1, 1000);
        assert_int_equal(deal_rows(&costs, 1, 1, 20, &one, 1), 8);
        measure(&costs, 5, 1000);
        assert_int_equal(deal_rows(&costs, 1, 1, 20, &one, 1), 8);
        measure(&costs, 9, 100000);
        assert_int_equal(deal_rows(&costs, 1, 1, 20, &one, 1), 4);
        for (uint32_t i = 0; i < 8; i++)
                draft.survival[i] = 0;
        assert_int_equal(deal_rows(&costs, 1, 1, 20, &one, 1), 0);
}

static void nobody_gets_rows_without_a_draft(void **state)
{
        struct step_costs costs = { 0 };

        (void)state;
        assert_int_equal(deal_rows(&costs, 5, 5, 20, NULL, 0), 0);
}

/* ---- one draft ---- */

/* Tokens in a second with the first `count` of a draft; NULL: they are sure. */
static double speed_of_one(const struct table *table, float extra_ns, const struct draft *draft,
                           uint32_t count)
{
        double tokens = table->tokens;

        for (uint32_t i = 0; i < count; i++)
                tokens += draft ? (double)draft->survival[i] : 1;
        return tokens / ((double)step_costs_ns(&table->costs, table->rows + count) +
                         (double)count * (double)extra_ns);
}

static double best_speed_of_one(const struct table *table, float extra_ns,
                                const struct draft *draft, uint32_t most)
{
        double best = 0;

        for (uint32_t i = 0; i <= most; i++)
                best = fmax(best, speed_of_one(table, extra_ns, draft, i));
        return best;
}

static void a_draft_is_as_long_as_is_worth_its_time(void **state)
{
        uint32_t none = 0, some = 0, all = 0;

        (void)state;
        dice = 6;
        for (uint32_t i = 0; i < 20000; i++) {
                struct table table;
                const struct draft *draft;
                uint32_t most, worth;
                float extra_ns;

                draw_table(&table, i % 2);
                draft = below(4) ? &table.drafts[0] : NULL;
                most = draft ? table.deals[0].most : table.spare;
                extra_ns = below(3) ? (float)below(40000) : 0;
                worth = deal_worth(&table.costs, table.rows, table.tokens, extra_ns, draft, most);
                assert_true(worth <= most);
                assert_near(speed_of_one(&table, extra_ns, draft, worth) /
                                    best_speed_of_one(&table, extra_ns, draft, most),
                            1);
                none += most && !worth;
                some += worth && worth < most;
                all += worth && worth == most;
        }
        assert_true(none > 1000 && some > 1000 && all > 1000);
}

/* What each token costs on top, in numbers that are easy to see. */
static void each_token_costs_extra(void **state)
{
        struct draft draft = { .count = 3, .survival = { 0.5f, 0.25f, 0.125f } };
        struct step_costs costs = { 0 };

        (void)state;
        measure(&costs, 1, 1000);
        measure(&costs, 4, 1000);
        assert_int_equal(deal_worth(&costs, 1, 1, 0, &draft, 3), 3);
        assert_int_equal(deal_worth(&costs, 1, 1, 0, &draft, 2), 2);
        assert_int_equal(deal_worth(&costs, 1, 1, 0, &draft, 0), 0);
        /* 1.5, 1.75 and 1.875 tokens: the third row pays up to 83 ns. */
        assert_int_equal(deal_worth(&costs, 1, 1, 83, &draft, 3), 3);
        assert_int_equal(deal_worth(&costs, 1, 1, 84, &draft, 3), 2);
        /* The second pays up to 200 ns, and the first up to 500 ns. */
        assert_int_equal(deal_worth(&costs, 1, 1, 199, &draft, 3), 2);
        assert_int_equal(deal_worth(&costs, 1, 1, 201, &draft, 3), 1);
        assert_int_equal(deal_worth(&costs, 1, 1, 499, &draft, 3), 1);
        assert_int_equal(deal_worth(&costs, 1, 1, 501, &draft, 3), 0);
        /* A sure token pays up to 1000 ns, wherever it is. */
        assert_int_equal(deal_worth(&costs, 1, 1, 999, NULL, 3), 3);
        assert_int_equal(deal_worth(&costs, 1, 1, 1001, NULL, 3), 0);
}

static bool pays(uint64_t one, uint64_t two, uint64_t three, uint64_t four)
{
        const uint64_t times[] = { one, two, three, four, 1 }; /* five rows are too many */
        struct step_costs costs = { 0 };

        for (uint32_t i = 0; i < 5; i++)
                measure(&costs, 1 + i, times[i]);
        return deal_pays(&costs, 1, 1);
}

static void up_to_three_sure_tokens_may_pay(void **state)
{
        struct step_costs costs = { 0 };

        (void)state;
        assert_true(deal_pays(&costs, 1, 1)); /* it costs nothing to try */
        assert_true(pays(1000, 1999, 9000, 9000));
        assert_true(pays(1000, 2001, 2999, 9000));
        assert_true(pays(1000, 2001, 3001, 3999));
        assert_false(pays(1000, 2001, 3001, 4001));
        assert_true(pays(1000, 800, 9000, 9000));
        /* With two streams a step brings two tokens, of which one row more is a half. */
        measure(&costs, 2, 1000);
        measure(&costs, 3, 1499);
        measure(&costs, 5, 9000);
        assert_true(deal_pays(&costs, 2, 2));
        assert_false(deal_pays(&costs, 2, 3));
}

static void rows_pay_if_sure_tokens_would_come_sooner(void **state)
{
        uint32_t yes = 0, no = 0;

        (void)state;
        dice = 7;
        for (uint32_t i = 0; i < 5000; i++) {
                struct table table;
                double now, best = 0;

                draw_table(&table, i % 2);
                now = speed_of_one(&table, 0, NULL, 0);
                for (uint32_t j = 1; j <= 3; j++)
                        best = fmax(best, speed_of_one(&table, 0, NULL, j));
                if (fabs(best / now - 1) < 1e-5)
                        continue; /* either is right */
                assert_int_equal(deal_pays(&table.costs, table.rows, table.tokens), best > now);
                yes += best > now;
                no += best < now;
        }
        assert_true(yes > 2000 && no > 200);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(deals_so_that_most_tokens_come_in_a_second),
                cmocka_unit_test(one_or_two_dear_rows_are_passed),
                cmocka_unit_test(three_dear_rows_end_the_search),
                cmocka_unit_test(no_limit_is_exceeded),
                cmocka_unit_test(likelier_tokens_come_first),
                cmocka_unit_test(an_order_is_kept_in_a_small_example),
                cmocka_unit_test(rows_that_were_not_measured_are_dealt),
                cmocka_unit_test(nobody_gets_rows_without_a_draft),
                cmocka_unit_test(a_draft_is_as_long_as_is_worth_its_time),
                cmocka_unit_test(each_token_costs_extra),
                cmocka_unit_test(up_to_three_sure_tokens_may_pay),
                cmocka_unit_test(rows_pay_if_sure_tokens_would_come_sooner),
        };

        return cmocka_run_group_tests_name("deal", tests, NULL, NULL);
}
