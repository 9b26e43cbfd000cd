/*
 * Picks with every sampler, with any backend: `test-samplers ref`, `test-samplers cpu`,
 * `test-samplers cpu c`, `test-samplers cuda`.  A program in Python has drawn from the same rows by
 * the formulas (contrib/reference/samplers.py), and the tokens must be the same.
 */
#include "tests/kernels/pick-fixture.h"
#include "tests/kernels/pick-rows.h"
#include "tests/kernels/samplers-golden.h"

#define ROWS  1000u
#define VOCAB 4500u

static int open_bench(void **state)
{
        static struct fixture b;

        fixture_open(&b, VOCAB, 2);
        *state = &b;
        return 0;
}

static int close_bench(void **state)
{
        fixture_close(*state);
        return 0;
}

/* ---- the rows and picks of the other program ---- */

enum kind { N_SIGMA, TYPICAL, XTC, DYNAMIC, LAST, MASK, EDITS, ALL, MIROSTAT };

struct one {
        float row[100];
        uint32_t vocab, mask[(VOCAB + 31) / 32];
        struct pick_edit edits[100];
        struct pick pick;
};

static void make_row(struct one *o)
{
        uint32_t kind = random_below(8);

        o->vocab = 1 + random_below(100);
        for (uint32_t i = 0; i < o->vocab; i++) {
                uint32_t n = random_below(2048);
                const float by_kind[] = {
                        (float)(n % 12) / 2,
                        (float)((int)(n % 9) - 4) * 0x1p-149f,
                        i == o->vocab / 2 ? 20 : -20,
                        i == o->vocab / 3 ? 0.5f : -INFINITY,
                        n % 3 ? -INFINITY : (float)n / 256,
                        -(float)(n % 64 * (n % 64)) / 128,
                };

                o->row[i] = kind < 6 ? by_kind[kind] : (float)((int)n - 1024) / 256;
        }
        if (kind == 4)
                o->row[o->vocab - 1] = 1.5f;
}

#define ONE_OF(...)                                                                                \
        ((const float[]){ __VA_ARGS__ }[random_below(sizeof((float[]){ __VA_ARGS__ }) / 4)])

static void make_edits(struct one *o)
{
        for (uint32_t i = 0; i < o->vocab; i++) {
                struct pick_edit *edit = &o->edits[o->pick.edit_count];

                if (random_below(4))
                        continue;
                edit->token = i;
                edit->bias = (float)((int)random_below(17) - 8) / 4;
                edit->theta = ONE_OF(1, 1.3f, 0.8f);
                edit->after = INFINITY;
                if (random_below(6))
                        edit->after = (float)random_below(9) / 8;
                o->pick.edit_count++;
        }
        o->pick.edits = o->edits;
}

static void make_mask(struct one *o)
{
        for (uint32_t i = 0; i < o->vocab; i++)
                o->mask[i / 32] |= (uint32_t)(random_below(3) > 0) << i % 32;
        o->pick.mask = o->mask;
}

/* The order of the random numbers is that of the other program. */
static void make_pick(struct one *o, enum kind kind)
{
        struct pick *pick = &o->pick;
        float last;

        pick->seed = random_next();
        pick->position = random_next();
        last = random_below(8) ? 1 : 0;
        pick->temperature = ONE_OF(1, 0.75f, 1.5f, 0.5f, 3, last);
        pick->top_k = (uint32_t)ONE_OF(0, 0, 1, 3, 17, 40);
        pick->top_p = ONE_OF(1, 1, 0.9f, 0.62f, 0.33f);
        pick->min_p = ONE_OF(0, 0, 0.07f, 0.26f);
        if (kind == N_SIGMA || kind == ALL)
                pick->n_sigma = ONE_OF(0.3f, 0.7f, 1.1f, 1.7f);
        if (kind == TYPICAL || kind == ALL)
                pick->typical = ONE_OF(0.2f, 0.47f, 0.81f, 0.93f);
        if (kind == XTC || kind == ALL) {
                pick->xtc_chance = ONE_OF(0.3f, 0.7f, 1);
                pick->xtc_least = ONE_OF(0.03f, 0.07f, 0.13f, 0.37f);
        }
        if (kind == DYNAMIC || kind >= ALL) {
                pick->temperature_range = ONE_OF(0.25f, 0.5f, 1.5f);
                pick->temperature_exponent = ONE_OF(1, 0.5f, 2);
        }
        if (kind == LAST || (kind == ALL && random_below(2)))
                pick->order = TEMPERATURE_LAST;
        if (kind == MASK || kind >= ALL)
                make_mask(o);
        if (kind == EDITS || kind >= ALL)
                make_edits(o);
        if (kind == MIROSTAT) {
                pick->mirostat = true;
                pick->mu = ONE_OF(0.5f, 1, 2.1f, 3.3f, 5, 10);
        }
}

/* Of the last pick, which asked for no logprobs; the definition has doubles. */
static void expect_surprise(struct fixture *b, uint32_t token, float wanted)
{
        struct logprob entry;

        b->k->logprobs(b->k, b->number, 0, &entry);
        assert_int_equal(entry.token, token);
        assert_true(fabsf(entry.logprob - wanted) <= 1e-6f * (1 + fabsf(wanted)));
}

static void picks_match_those_of_another_program(void **state)
{
        static const struct {
                const char *name;
                const uint8_t *tokens;
        } kinds[] = { { "n_sigma", golden_n_sigma },  { "typical", golden_typical },
                      { "xtc", golden_xtc },          { "dynamic", golden_dynamic },
                      { "last", golden_last },        { "mask", golden_mask },
                      { "edits", golden_edits },      { "all", golden_all },
                      { "mirostat", golden_mirostat } };

        for (enum kind kind = N_SIGMA; kind <= MIROSTAT; kind++) {
                random_state = strlen(kinds[kind].name) * 1000003 + (uint8_t)kinds[kind].name[0];
                for (uint32_t i = 0; i < ROWS; i++) {
                        struct one o = { .vocab = 0 };
                        uint32_t token;

                        make_row(&o);
                        make_pick(&o, kind);
                        token = pick_one(*state, o.row, o.vocab, o.pick);
                        if (token == PICK_NONE_LEGAL)
                                token = 255;
                        if (token != kinds[kind].tokens[i])
                                fail_msg("%s, row %u of %u tokens: token %u, not %u",
                                         kinds[kind].name, i, o.vocab, token,
                                         kinds[kind].tokens[i]);
                        if (kind == MIROSTAT && token != 255)
                                expect_surprise(*state, token, golden_surprise[i]);
                }
        }
}

/* ---- what else can be said ---- */

static float logits[VOCAB];

static void make_large_row(void)
{
        random_state = 8;
        for (uint32_t i = 0; i < VOCAB; i++)
                logits[i] = (float)random_below(4096) / 256;
}

/* The pick equals that from a row whose illegal tokens have the logit -inf. */
static void a_mask_is_as_if_other_logits_were_missing(void **state)
{
        static uint32_t mask[(VOCAB + 31) / 32];
        static float masked[VOCAB];
        const struct pick picks[] = { { .top_p = 1 },
                                      { .temperature = 0.5f, .top_p = 1 },
                                      { .temperature = 1, .top_p = 0.9f },
                                      { .temperature = 1, .top_p = 1, .top_k = 40 },
                                      { .temperature = 1, .top_p = 1, .min_p = 0.1f } };

        make_large_row();
        for (uint32_t i = 0; i < sizeof(mask) / sizeof(*mask); i++)
                mask[i] = random_next() & random_next();
        for (uint32_t i = 0; i < VOCAB; i++)
                masked[i] = mask[i / 32] >> i % 32 & 1 ? logits[i] : -INFINITY;
        for (uint32_t i = 0; i < 200; i++) {
                struct pick pick = picks[i % 5];
                uint32_t token;

                pick.position = i;
                token = pick_one(*state, masked, VOCAB, pick);
                pick.mask = mask;
                assert_int_equal(pick_one(*state, logits, VOCAB, pick), token);
        }
}

static void a_row_without_legal_tokens_has_a_result_of_its_own(void **state)
{
        static const uint32_t none[(VOCAB + 31) / 32] = { 1u << 3 };
        const struct pick_edit ban = { 3, 0, 1, INFINITY };
        const float row[4] = { 1, 2, 3, 4 }, bad[4] = { 1, NAN, 3, 4 };

        for (uint32_t t = 0; t < 2; t++) {
                struct pick pick = {
                        .temperature = (float)t, .top_p = 1, .mask = none, .logprobs = 2
                };

                assert_int_equal(pick_one(*state, row, 4, pick), 3);
                pick.edits = &ban;
                pick.edit_count = 1;
                assert_int_equal(pick_one(*state, row, 4, pick), PICK_NONE_LEGAL);
                assert_int_equal(pick_one(*state, bad, 4, pick), PICK_NOT_FINITE);
        }
}

/* For a picked token that an edit has changed, too. */
static void logprobs_are_those_of_the_logits_before_edits_and_cuts(void **state)
{
        struct fixture *b = *state;
        const uint32_t top = 2222;
        const struct pick_edit edit = { top, 30, 1, 1 };
        const struct pick pick = { .temperature = 1,
                                   .top_p = 0.5f,
                                   .n_sigma = 1,
                                   .logprobs = 20,
                                   .edits = &edit,
                                   .edit_count = 1 };

        make_large_row();
        assert_int_equal(pick_one(b, logits, VOCAB, pick), top);
        ref_sampler_load(&b->ref_sampler, logits, VOCAB);
        expect_logprobs(b, b->number, 0, &pick, top);
}

/* One with edits of the first and last token, beside a plain one. */
static void a_pick_does_not_depend_on_the_one_beside_it(void **state)
{
        const struct pick_edit edits[] = { { 0, 9, 1, 0 }, { VOCAB - 1, 9, 1.5f, 0 } };
        const struct pick more = { .temperature = 1,
                                   .top_p = 0.9f,
                                   .typical = 0.9f,
                                   .top_k = 300,
                                   .edits = edits,
                                   .edit_count = 2 };
        const struct pick plain = { .temperature = 1, .top_p = 0.9f, .logprobs = 5 };

        make_large_row();
        for (uint64_t i = 0; i < 100; i++) {
                struct pick picks[2] = { more, plain };
                uint32_t together[2];

                picks[0].position = picks[1].position = i;
                pick_all(*state, logits, VOCAB, picks, 2, together);
                assert_int_equal(pick_one(*state, logits, VOCAB, picks[0]), together[0]);
                assert_int_equal(pick_one(*state, logits, VOCAB, picks[1]), together[1]);
        }
}

/* Beside a plain one; and with as many edits as a row may have. */
static void steps_that_are_replayed_pick_the_same(void **state)
{
        static struct pick_edit edits[PICK_EDITS_MAX];
        static uint32_t mask[(VOCAB + 31) / 32];
        struct pick picks[] = { { .temperature = 1, .top_p = 0.9f },
                                { .temperature = 1, .top_p = 0.9f, .mask = mask } };
        struct fixture replaying;

        make_large_row();
        for (uint32_t i = 0; i < sizeof(mask) / sizeof(*mask); i++)
                mask[i] = random_next();
        for (uint32_t i = 0; i < PICK_EDITS_MAX; i++)
                edits[i] = (struct pick_edit){ i, (float)random_below(8), 1, 0 };
        picks[1].edits = edits;
        fixture_open(&replaying, VOCAB, 2);
        fixture_warm_up(&replaying);
        for (uint32_t i = 0; i < 50; i++) {
                uint32_t alone[2], tokens[2];

                for (uint32_t j = 0; j < 2; j++) {
                        picks[j].position = i;
                        picks[j].edit_count = j && i % 2 ? PICK_EDITS_MAX : 0;
                }
                pick_all(&replaying, logits, VOCAB, picks, 2, tokens);
                pick_all(*state, logits, VOCAB, picks, 2, alone);
                assert_memory_equal(tokens, alone, sizeof(tokens));
        }
        fixture_close(&replaying);
}

/* Each has a mask of its own, and as many edits as a row may have: all but one of the legal ban. */
static void all_rows_may_have_a_mask_and_all_edits(void **state)
{
        static struct pick_edit edits[2][PICK_EDITS_MAX];
        static uint32_t masks[2][(VOCAB + 31) / 32];
        struct pick picks[2];
        uint32_t tokens[2];

        make_large_row();
        for (uint32_t row = 0; row < 2; row++) {
                for (uint32_t i = 0; i < PICK_EDITS_MAX; i++) {
                        bool is_spared = i == 1234 + row * 1000;

                        edits[row][i] = (struct pick_edit){ i, 0, 1, is_spared ? 0 : INFINITY };
                        masks[row][i / 32] |= (uint32_t)(is_spared || random_below(2)) << i % 32;
                }
                picks[row] = (struct pick){ .temperature = 1,
                                            .top_p = 1,
                                            .mask = masks[row],
                                            .edits = edits[row],
                                            .edit_count = PICK_EDITS_MAX };
        }
        pick_all(*state, logits, VOCAB, picks, 2, tokens);
        assert_int_equal(tokens[0], 1234);
        assert_int_equal(tokens[1], 2234);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(picks_match_those_of_another_program),
                cmocka_unit_test(a_mask_is_as_if_other_logits_were_missing),
                cmocka_unit_test(a_row_without_legal_tokens_has_a_result_of_its_own),
                cmocka_unit_test(logprobs_are_those_of_the_logits_before_edits_and_cuts),
                cmocka_unit_test(a_pick_does_not_depend_on_the_one_beside_it),
                cmocka_unit_test(steps_that_are_replayed_pick_the_same),
                cmocka_unit_test(all_rows_may_have_a_mask_and_all_edits),
        };
        int r = fixture_choose(argc, argv);

        return r ? r : cmocka_run_group_tests(tests, open_bench, close_bench);
}
