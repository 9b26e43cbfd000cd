/*
 * What rules make of the tokens before a draw.  A program in Python has computed the logits of the
 * same cases from the definitions (contrib/reference/penalties.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/draw/history.h"
#include "kernels/cuts.h"
#include "tests/unit/history-golden.h"

#define VOCAB      16u
#define CASES      (sizeof(history_golden) / sizeof(*history_golden))
#define TOKENS_MAX 5000u

/* A tokenizer of given pieces: the modules need no more of it. */
static const char *const pieces[VOCAB] = { "a",   "b",  "ab", "ba", "bab", "\n", "x:", "c",
                                           "abc", "ca", "",   "cb", "b\n", "aa", "*",  "d" };

const char *tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id, size_t *ret_bytes)
{
        (void)tokenizer;
        *ret_bytes = strlen(pieces[id]);
        return pieces[id];
}

uint32_t tokenizer_vocab(const struct tokenizer *tokenizer)
{
        (void)tokenizer;
        return VOCAB;
}

static uint64_t state_of_random;

static uint32_t random_below(uint32_t n)
{
        state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)((state_of_random >> 32) * n >> 32);
}

static bool by_chance(void)
{
        return !random_below(3);
}

#define ONE_OF(type, ...)                                                                          \
        ((const type[]){                                                                           \
                __VA_ARGS__ }[random_below(sizeof((const type[]){ __VA_ARGS__ }) / sizeof(type))])

/* ---- the cases of the other program ---- */

struct one {
        uint32_t tokens[TOKENS_MAX], count, answer;
        struct rules_conf conf;
        const char *breakers[8], *texts[8];
        float biases[VOCAB]; /* NAN: none */
        bool allowed[VOCAB], banned[VOCAB];
        float row[VOCAB];
};

static void make_tokens(struct one *o)
{
        bool is_long = !random_below(40);
        uint32_t kinds = ONE_OF(uint32_t, 2, 3, 5, 16);

        o->count = is_long ? 3000 + random_below(2000) : 1 + random_below(60);
        for (uint32_t i = 0; i < o->count; i++)
                o->tokens[i] = random_below(kinds);
        o->answer = random_below(o->count + 1);
}

static void make_penalties(struct one *o)
{
        static const char *const breakers[] = { "\n", ":", "*", "aa" };
        struct penalties *p = &o->conf.penalties;

        p->presence = by_chance() ? ONE_OF(float, 0.5f, -0.25f, 1.5f) : 0;
        p->frequency = by_chance() ? ONE_OF(float, 0.125f, -0.5f, 2) : 0;
        p->repetition = by_chance() ? ONE_OF(float, 1.25f, 0.5f, 1.75f) : 1;
        p->repeat_window = ONE_OF(uint32_t, 1, 3, 20, SMV_WINDOW_MAX);
        p->dry_multiplier = by_chance() ? ONE_OF(float, 0.75f, 2) : 0;
        p->dry_base = ONE_OF(float, 1.75f, 1, 3);
        p->dry_allowed = ONE_OF(uint32_t, 1, 2, 4);
        p->dry_window = ONE_OF(uint32_t, 2, 12, SMV_WINDOW_MAX);
        for (int i = 0; i < 4; i++)
                if (by_chance()) {
                        o->breakers[o->conf.breaker_count++] = breakers[i];
                        o->conf.text_bytes += strlen(breakers[i]);
                }
        p->no_repeat_ngram = by_chance() ? 1 + random_below(4) : 0;
        p->min_tokens = by_chance() ? random_below(12) : 0;
}

static void make_lists(struct one *o)
{
        static const char *const texts[] = {
                "ab", "bc", "abca", "aab", "c\n", "babab", "x:d", "dd"
        };

        for (uint32_t v = 0; v < VOCAB; v++) {
                bool has = !random_below(6);

                o->biases[v] = has ? ((float)random_below(64) - 32) / 8 : NAN;
                o->conf.bias_count += has;
        }
        o->conf.allows = by_chance();
        for (uint32_t v = 0; o->conf.allows && v < VOCAB; v++)
                o->allowed[v] = random_below(5);
        o->conf.bans = by_chance();
        for (uint32_t v = 0; o->conf.bans && v < VOCAB; v++)
                o->banned[v] = !random_below(8);
        if (!by_chance())
                return;
        for (int i = 0; i < 8; i++)
                if (by_chance()) {
                        o->texts[o->conf.text_count++] = texts[i];
                        o->conf.text_bytes += strlen(texts[i]);
                }
}

static void make_one(struct one *o, const struct piece_order *order)
{
        memset(o, 0, sizeof(*o));
        o->conf.order = order;
        make_tokens(o);
        make_penalties(o);
        make_lists(o);
        for (uint32_t v = 0; v < VOCAB; v++)
                o->row[v] = ((float)random_below(256) - 128) / 16;
}

/* Returns what rules_seal() does; tokens 14 and 15 end an answer. */
static int make_rules(const struct one *o, struct rules **ret_rules)
{
        struct rules *rules;

        assert_int_equal(rules_new(&o->conf, &rules), 0);
        for (uint32_t v = VOCAB; v--;) {
                if (!isnan(o->biases[v]))
                        rules_bias(rules, v, o->biases[v]);
                if (o->allowed[v])
                        rules_allow(rules, v);
        }
        for (uint32_t v = 0; v < VOCAB; v++)
                if (o->banned[v])
                        rules_ban(rules, v);
        for (uint32_t i = 0; i < o->conf.text_count; i++)
                rules_ban_text(rules, o->texts[i], (uint32_t)strlen(o->texts[i]));
        for (uint32_t i = 0; i < o->conf.breaker_count; i++)
                rules_break(rules, o->breakers[i], (uint32_t)strlen(o->breakers[i]));
        if (o->conf.penalties.min_tokens) {
                rules_end(rules, 14);
                rules_end(rules, 15);
        }
        *ret_rules = rules;
        return rules_seal(rules);
}

/* ---- the tests ---- */

static void expect_golden(const struct pick *pick, const struct one *o, size_t number)
{
        float edited[VOCAB];

        logits_edit(pick, o->row, VOCAB, edited);
        for (uint32_t v = 0; v < VOCAB; v++) {
                double is = edited[v], wanted = history_golden[number][v];

                if (isinf(wanted) ? is != wanted
                                  : !(fabs(is - wanted) <= 1e-5 * fmax(1, fabs(wanted))))
                        fail_msg("case %zu, token %u: %.9g instead of %.9g", number, v, is, wanted);
        }
}

static void expect_same(const struct pick *a, const struct pick *b)
{
        assert_int_equal(a->edit_count, b->edit_count);
        assert_int_equal(!a->mask, !b->mask);
        if (a->mask)
                assert_int_equal(a->mask[0] & 0xffff, b->mask[0] & 0xffff);
        if (a->edit_count)
                assert_memory_equal(a->edits, b->edits, a->edit_count * sizeof(*a->edits));
}

/* A new history, as a fork has it, makes the same pick as one that has seen each token come. */
static void follow(const struct rules *rules, const struct one *o, size_t number)
{
        struct history *old, *new;
        struct pick pick = { 0 }, again = { 0 };

        assert_int_equal(history_new(rules, o->count, &old), 0);
        for (uint32_t count = o->answer; count <= o->count; count++) {
                pick.mask = again.mask = NULL;
                history_pick(old, NULL, o->tokens, count, o->answer, &pick);
                if (count < o->count && random_below(8))
                        continue;
                assert_int_equal(history_new(rules, o->count, &new), 0);
                history_pick(new, NULL, o->tokens, count, o->answer, &again);
                expect_same(&pick, &again);
                history_free(new);
                assert_true(pick.edit_count <= RULES_EDITS_MAX);
        }
        expect_golden(&pick, o, number);
        history_free(old);
}

static void edits_logits_as_the_definitions_say_however_the_tokens_came(void **state)
{
        static struct one o;
        struct piece_order *order;
        uint32_t empty = 0;

        (void)state;
        assert_int_equal(piece_order_new(NULL, &order), 0);
        state_of_random = 37;
        for (size_t i = 0; i < CASES; i++) {
                uint64_t next;
                struct rules *rules;

                make_one(&o, order);
                next = state_of_random;
                if (make_rules(&o, &rules)) {
                        empty++;
                } else if (rules_need_history(rules)) {
                        follow(rules, &o, i);
                } else {
                        struct pick pick = { 0 };

                        rules_pick(rules, o.count - o.answer, &pick);
                        expect_golden(&pick, &o, i);
                }
                rules_unref(rules);
                state_of_random = next;
        }
        assert_true(empty < CASES / 20);
        piece_order_free(order);
}

static void a_token_must_be_legal_by_a_second_mask_too(void **state)
{
        struct rules_conf conf = { .guided = true, .bans = true, .penalties.repetition = 1 };
        const uint32_t guide = 0xff, tokens[] = { 1, 2 };
        struct pick pick = { .mask = &guide };
        struct piece_order *order;
        struct history *history;
        struct rules *rules;

        (void)state;
        assert_int_equal(piece_order_new(NULL, &order), 0);
        conf.order = order;
        assert_int_equal(rules_new(&conf, &rules), 0);
        rules_ban(rules, 3);
        assert_int_equal(rules_seal(rules), 0);
        assert_true(rules_need_history(rules));
        assert_int_equal(history_new(rules, 9, &history), 0);
        history_pick(history, NULL, tokens, 2, 1, &pick);
        assert_int_equal(pick.mask[0] & 0xffff, 0xf7);
        history_free(history);
        rules_unref(rules);
        piece_order_free(order);
}

static void a_second_mask_counts_beside_biases_alone(void **state)
{
        struct rules_conf conf = { .guided = true, .bias_count = 1, .penalties.repetition = 1 };
        const uint32_t guide = 0xff;
        struct pick pick = { .mask = &guide };
        struct piece_order *order;
        struct rules *rules;

        (void)state;
        assert_int_equal(piece_order_new(NULL, &order), 0);
        conf.order = order;
        assert_int_equal(rules_new(&conf, &rules), 0);
        rules_bias(rules, 3, 2);
        assert_int_equal(rules_seal(rules), 0);
        assert_false(rules_need_history(rules));
        rules_pick(rules, 0, &pick);
        assert_ptr_equal(pick.mask, &guide);
        assert_int_equal(pick.edit_count, 1);
        rules_unref(rules);
        piece_order_free(order);
}

/* 158 is the largest power of 1.75 that a float has. */
static void the_power_of_dry_is_bounded(void **state)
{
        struct rules_conf conf = { .penalties = { .repetition = 1,
                                                  .dry_multiplier = 0x1p-40f,
                                                  .dry_base = 1.75f,
                                                  .dry_allowed = 2,
                                                  .dry_window = SMV_WINDOW_MAX } };
        static uint32_t tokens[400];
        struct pick pick = { 0 };
        struct piece_order *order;
        struct history *history;
        struct rules *rules;

        (void)state;
        assert_int_equal(piece_order_new(NULL, &order), 0);
        conf.order = order;
        assert_int_equal(rules_new(&conf, &rules), 0);
        assert_int_equal(rules_seal(rules), 0);
        assert_int_equal(history_new(rules, 400, &history), 0);
        history_pick(history, NULL, tokens, 400, 0, &pick);
        assert_int_equal(pick.edit_count, 1);
        assert_true(fabs(pick.edits[0].after / (0x1p-40 * pow(1.75, 158)) - 1) < 1e-6);
        history_free(history);
        rules_unref(rules);
        piece_order_free(order);
}

static void rules_that_leave_no_token_or_name_one_twice_are_refused(void **state)
{
        struct rules_conf conf = { .allows = true, .bans = true, .penalties.repetition = 1 };
        struct piece_order *order;
        struct rules *rules;

        (void)state;
        assert_int_equal(piece_order_new(NULL, &order), 0);
        conf.order = order;
        assert_int_equal(rules_new(&conf, &rules), 0);
        rules_allow(rules, 7);
        rules_ban(rules, 7);
        assert_int_equal(rules_seal(rules), RULES_E_EMPTY);
        rules_unref(rules);

        conf = (struct rules_conf){ .order = order, .bias_count = 2, .penalties.repetition = 1 };
        assert_int_equal(rules_new(&conf, &rules), 0);
        rules_bias(rules, 7, 1);
        rules_bias(rules, 7, 2);
        assert_int_equal(rules_seal(rules), RULES_E_TWICE);
        rules_unref(rules);
        piece_order_free(order);
}

static void finds_the_tokens_that_begin_with_a_text(void **state)
{
        struct piece_order *order;

        (void)state;
        assert_int_equal(piece_order_new(NULL, &order), 0);
        for (uint32_t v = 0; v < VOCAB; v++) {
                uint32_t bytes = (uint32_t)strlen(pieces[v]), first, behind, found = 0;

                if (!bytes)
                        continue;
                piece_order_find(order, pieces[v], bytes, &first, &behind);
                for (uint32_t i = 0; i < VOCAB; i++)
                        found += !strncmp(pieces[i], pieces[v], bytes);
                assert_int_equal(behind - first, found);
                while (first < behind)
                        assert_int_equal(strncmp(pieces[order->ids[first++]], pieces[v], bytes), 0);
        }
        piece_order_free(order);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(edits_logits_as_the_definitions_say_however_the_tokens_came),
                cmocka_unit_test(a_token_must_be_legal_by_a_second_mask_too),
                cmocka_unit_test(a_second_mask_counts_beside_biases_alone),
                cmocka_unit_test(the_power_of_dry_is_bounded),
                cmocka_unit_test(rules_that_leave_no_token_or_name_one_twice_are_refused),
                cmocka_unit_test(finds_the_tokens_that_begin_with_a_text),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
