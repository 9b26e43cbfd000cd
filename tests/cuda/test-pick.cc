/*
 * Draws on the device, compared with the ref backend's own pick, row by row, under every schedule.
 * Where the two differ, rounding must be the cause: the definition, computed in long double
 * (ref-sampler.h) with its borders moved by 1e-12, must give the same token.  Random numbers come
 * from a seed that is printed; SEED=... repeats a run.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "kernels/cuda/pick.h"
#include "tests/kernels/pick-rows.h"
#include "tests/kernels/ref-sampler.h"

#define VOCAB_MAX 128256u
#define WANTS     16u /* of a bucket */
#define PADDING   3u  /* floats after a row */
#define POISON    0xa5
#define NEAR      1e-12L
#define EDITS_MAX 50u

/* ---- a device that runs work at once ---- */

static unsigned launches;

int device_launch_raw(device *, stream stream, const launch *launch, const void *kernel,
                      device_run *run, const void *args, size_t)
{
        assert_int_equal(stream, STREAM_STEPS);
        run(launch, kernel, args);
        launches++;
        return 0;
}

/* ---- the ref backend's picks ---- */

struct bench {
        struct kernels *k;
        struct kv *kv;
        struct kv *pools[KV_POOLS_MAX];
        float *logits;
        uint64_t number;
};

static bench ref;
static ref_sampler drawn; /* of the row in question */

static int bench_open(void **)
{
        const kv_shape shape = { 1, 1, 64, 1, KV_F32 };
        const step_page page = { 0, 0, 0 };
        const char *seed = getenv("SEED");
        kernels_conf conf = {};
        step first = {};

        conf.slots_max = conf.pages_max = 1;
        conf.rows_max = conf.wants_max = WANTS;
        conf.vocab_max = VOCAB_MAX;
        random_state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
        print_message("SEED=%llu\n", (unsigned long long)random_state);
        ref_sampler_new(&drawn, VOCAB_MAX);
        assert_int_equal(kernels_open("ref", &conf, &ref.k), 0);
        assert_int_equal(ref.k->kv_new(ref.k, &shape, &ref.kv), 0);
        assert_int_equal(ref.k->floats_new(ref.k, (size_t)WANTS * VOCAB_MAX, &ref.logits), 0);
        first.number = ref.number = 1;
        first.page_count = 1;
        first.pages = &page;
        ref.pools[0] = ref.kv;
        ref.k->step_begin(ref.k, ref.pools, &first);
        ref.k->step_end(ref.k);
        return 0;
}

static int bench_close(void **)
{
        ref_sampler_free(&drawn);
        ref.k->floats_free(ref.k, ref.logits);
        ref.k->kv_free(ref.k, ref.kv);
        ref.k->close(ref.k);
        return 0;
}

/* The inputs of pick.h on the host: rows and picks of a step, and room for the results. */
struct rows {
        uint32_t vocab, wants;
        float *logits;
        pick picks[WANTS];
        uint32_t masks[WANTS][(VOCAB_MAX + 31) / 32];
        pick_edit edits[WANTS][EDITS_MAX];
        uint32_t tokens[WANTS];
        logprob entries[WANTS * PICK_ENTRIES_MAX]; /* packed; pick.first_entry says where */
};

/* One behind the other, as a backend lays them out. */
static void lay_out_entries(rows *r)
{
        uint32_t entry = 0;

        for (uint32_t i = 0; i < r->wants; i++) {
                r->picks[i].first_entry = entry;
                entry += pick_entries(&r->picks[i]);
        }
}

static const logprob *entries_of(const rows *r, uint32_t want)
{
        return r->entries + r->picks[want].first_entry;
}

static void ref_pick(rows *r)
{
        step_row rows[WANTS] = {};
        step_run run = { 0, r->wants };
        uint32_t want[WANTS];
        step step = {};

        for (uint32_t i = 0; i < r->wants; i++) {
                want[i] = i;
                rows[i].position = i;
                rows[i].from_row = STEP_TOKEN;
                ref.k->put(ref.k, ref.logits + (size_t)i * r->vocab,
                           r->logits + (size_t)i * (r->vocab + PADDING), r->vocab);
        }
        step.number = ++ref.number;
        step.row_count = step.want_count = r->wants;
        step.run_count = r->wants != 0;
        step.rows = rows;
        step.runs = &run;
        step.want = want;
        step.picks = r->picks;
        assert_int_equal(ref.k->step_begin(ref.k, ref.pools, &step), 0);
        assert_int_equal(ref.k->pick(ref.k, ref.logits, r->vocab), 0);
        assert_int_equal(ref.k->step_end(ref.k), 0);
        assert_int_equal(ref.k->collect(ref.k, step.number, r->tokens), 0);
        for (uint32_t i = 0; i < r->wants; i++)
                if (!pick_failed(r->tokens[i]))
                        ref.k->logprobs(ref.k, step.number, i,
                                        r->entries + r->picks[i].first_entry);
}

/* ---- and the device ---- */

static rows *rows_new(uint32_t vocab, uint32_t wants)
{
        rows *r = (rows *)calloc(1, sizeof(*r));
        size_t count = (size_t)WANTS * (vocab + PADDING);

        assert_non_null(r);
        assert_true(wants <= WANTS);
        r->vocab = vocab;
        r->wants = wants;
        r->logits = (float *)malloc(count * sizeof(*r->logits));
        assert_non_null(r->logits);
        for (size_t i = 0; i < count; i++)
                r->logits[i] = NAN;
        memset(r->picks, POISON, sizeof(r->picks));
        return r;
}

static void rows_free(rows *r)
{
        free(r->logits);
        free(r);
}

static float *row_of(rows *r, uint32_t want)
{
        return r->logits + (size_t)want * (r->vocab + PADDING);
}

static void device_pick(rows *r, unsigned schedule)
{
        const step_counts counts = { WANTS, 1, r->wants };
        float *edited = (float *)malloc((size_t)WANTS * r->vocab * sizeof(*edited));
        pick_args args = {};

        assert_non_null(edited);
        memset(r->tokens, POISON, sizeof(r->tokens));
        memset(r->entries, POISON, sizeof(r->entries));
        lay_out_entries(r);
        args.step.counts = &counts;
        args.step.picks = r->picks;
        args.step.rows_max = WANTS;
        args.logits = r->logits;
        args.vocab = r->vocab;
        args.stride = r->vocab + PADDING;
        args.wants_max = WANTS;
        args.edited = edited;
        args.tokens = r->tokens;
        args.entries = r->entries;
        emu_set_schedule(schedule);
        assert_int_equal(pick_tokens(NULL, &args), 0);
        assert_int_equal(pick_more_tokens(NULL, &args), 0);
        free(edited);
}

static void expect_untouched(const void *at, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                assert_int_equal(((const uint8_t *)at)[i], POISON);
}

/* Results that were not requested stay untouched. */
static void expect_the_rest_untouched(const rows *r)
{
        uint32_t end = 0;

        for (uint32_t i = 0; i < WANTS; i++) {
                if (i >= r->wants) {
                        expect_untouched(&r->tokens[i], sizeof(r->tokens[i]));
                        continue;
                }
                end = r->picks[i].first_entry + pick_entries(&r->picks[i]);
                if (pick_failed(r->tokens[i]))
                        expect_untouched(entries_of(r, i),
                                         pick_entries(&r->picks[i]) * sizeof(r->entries[0]));
        }
        expect_untouched(r->entries + end, sizeof(r->entries) - end * sizeof(r->entries[0]));
}

/* ---- the two of them ---- */

static unsigned compared, rounded;

static bool rounding_decides(const float *logits, uint32_t vocab, const pick *pick, uint32_t token)
{
        const near by = { NEAR, NEAR };

        ref_sampler_load(&drawn, logits, vocab);
        return ref_sampler_allows(&drawn, pick, token, &by);
}

/* Compares the device's result for one row with ref's. */
static void compare(const float *logits, uint32_t vocab, const pick *pick, uint32_t token,
                    uint32_t expected, const logprob *told, const logprob *told_expected)
{
        compared++;
        if (token != expected) {
                rounded++;
                print_message(
                        "rounding: vocab %u temperature %g top_k %u top_p %.9g min_p %g: token "
                        "%u, not %u\n",
                        vocab, pick->temperature, pick->top_k, pick->top_p, pick->min_p, token,
                        expected);
                if (pick_has_more(pick) || !rounding_decides(logits, vocab, pick, token))
                        fail_msg("this is not a matter of rounding");
        }
        for (uint32_t i = 0; !pick_failed(token) && i < pick->logprobs; i++) {
                double found = told[i].logprob, wanted = told_expected[i].logprob;

                if (!i && token != expected)
                        continue;
                assert_int_equal(told[i].token, told_expected[i].token);
                if (wanted == -INFINITY)
                        assert_true(found == -INFINITY);
                else
                        assert_true(fabs(found - wanted) <= 1e-6 * fmax(1, -wanted));
        }
        /* the surprise and the log-sum */
        for (uint32_t i = pick->logprobs; !pick_failed(token) && i < pick_entries(pick); i++) {
                double found = told[i].logprob, wanted = told_expected[i].logprob;

                assert_int_equal(told[i].token, token);
                assert_true(fabs(found - wanted) <= 1e-6 * fmax(1, fabs(wanted)));
        }
}

/* The bits must be the same under all schedules, and equal to ref's. */
static void check(rows *r)
{
        rows *expected = rows_new(r->vocab, r->wants);
        rows first;

        memcpy(expected->logits, r->logits,
               (size_t)WANTS * (r->vocab + PADDING) * sizeof(*r->logits));
        memcpy(expected->picks, r->picks, sizeof(r->picks));
        lay_out_entries(expected);
        ref_pick(expected);
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                device_pick(r, schedule);
                if (!schedule)
                        first = *r;
                assert_memory_equal(r->tokens, first.tokens, sizeof(r->tokens));
                assert_memory_equal(r->entries, first.entries, sizeof(r->entries));
        }
        expect_the_rest_untouched(r);
        for (uint32_t i = 0; i < r->wants; i++)
                compare(row_of(r, i), r->vocab, &r->picks[i], r->tokens[i], expected->tokens[i],
                        entries_of(r, i), entries_of(expected, i));
        rows_free(expected);
}

static row_kind random_kind(void)
{
        return (row_kind)random_below(ROW_KINDS);
}

static void check_random(uint32_t vocab, uint32_t wants)
{
        rows *r = rows_new(vocab, wants);

        for (uint32_t i = 0; i < wants; i++) {
                random_row(row_of(r, i), vocab, random_kind());
                r->picks[i] = random_pick(vocab);
        }
        check(r);
        rows_free(r);
}

/* ---- what can be said by hand ---- */

static pick plain_pick(float temperature)
{
        pick pick = {};

        pick.temperature = temperature;
        pick.top_p = 1;
        return pick;
}

/* The row is there twice, for two picks. */
static void expect_picks(const float *logits, uint32_t vocab, const pick picks[2],
                         const uint32_t tokens[2])
{
        rows *r = rows_new(vocab, 2);

        for (uint32_t i = 0; i < 2; i++) {
                memcpy(row_of(r, i), logits, vocab * sizeof(*logits));
                r->picks[i] = picks[i];
        }
        check(r);
        for (uint32_t i = 0; i < 2; i++)
                assert_int_equal(r->tokens[i], tokens[i]);
        rows_free(r);
}

static void temperature_0_picks_the_lowest_id_of_the_largest_logit(void **)
{
        const float logits[] = { -1, 3, -INFINITY, 7, 2, 7, 7 }, zeros[] = { -1, -0.0f, 0, -0.0f };
        const pick greedy[] = { plain_pick(0), plain_pick(0) };
        const uint32_t first[] = { 1, 1 }, third[] = { 3, 3 };

        expect_picks(logits, 2, greedy, first);
        expect_picks(logits, 7, greedy, third);
        expect_picks(zeros, 4, greedy, first);
}

static void a_row_that_is_not_finite_fails_the_pick(void **)
{
        const float bad[][3] = { { 1, NAN, 2 },
                                 { -NAN, 1, 2 },
                                 { 1, 2, INFINITY },
                                 { -INFINITY, -INFINITY, -INFINITY } };
        const float masked[] = { -INFINITY, -2, -INFINITY };
        const uint32_t none[] = { PICK_NOT_FINITE, PICK_NOT_FINITE }, second[] = { 1, 1 };
        pick picks[] = { plain_pick(0), plain_pick(1) };

        picks[0].logprobs = picks[1].logprobs = 3;
        for (size_t i = 0; i < 4; i++)
                expect_picks(bad[i], 3, picks, none);
        expect_picks(masked, 3, picks, second);
}

/* Draws the last of the kept tokens, and another one if the next token is aimed at. */
static void expect_kept(const float *logits, uint32_t vocab, uint32_t kept, float top_p)
{
        rows *r = rows_new(vocab, 4);

        ref_sampler_load(&drawn, logits, vocab);
        for (uint32_t i = 0; i < 4; i++) {
                memcpy(row_of(r, i), logits, vocab * sizeof(*logits));
                r->picks[i] = plain_pick(1);
                if (i < 2 || kept < vocab)
                        ref_sampler_aim(&drawn, &r->picks[i], i < 2 ? kept - 1 : kept);
                if (i & 1)
                        r->picks[i].top_k = kept;
                else
                        r->picks[i].top_p = top_p;
        }
        check(r);
        for (uint32_t i = 0; i < 4; i++)
                assert_true(i < 2 ? r->tokens[i] == kept - 1 : r->tokens[i] < kept);
        rows_free(r);
}

static void a_cut_among_equal_logits_keeps_the_lowest_ids(void **)
{
        const uint32_t vocab = 9000, counts[] = { 2, 31, 33, 1024, 1025, 5000, vocab };
        static float logits[vocab];

        for (uint32_t i = 0; i < vocab; i++)
                logits[i] = 0.5f;
        logits[0] = 0.5f + logf(9); /* as likely as nine of them */
        for (uint32_t kept : counts)
                expect_kept(logits, vocab, kept, (float)((9 + kept - 1.5) / (9 + vocab - 1)));
}

/*
 * The search lists candidates where few are left: so many of them, or one more.  They are all in
 * one of the first buckets, equal or nearly equal, and other tokens lie before and behind.
 */
static void put_crowd(float *row, uint32_t vocab, uint32_t crowd, bool equal)
{
        const uint32_t before = vocab > crowd ? 3 : 0;

        for (uint32_t i = 0; i < vocab; i++) {
                uint32_t at = i * 7 % vocab;

                row[at] = i < before           ? 2 + (float)i
                          : i < before + crowd ? 0.49f + (equal ? 0 : (float)(i * 37 % 90) * 1e-5f)
                                               : -3 - (float)i * 1e-3f;
        }
}

static void check_crowd(uint32_t vocab, uint32_t crowd)
{
        const uint32_t ends[] = { 1, 130, crowd - 1, crowd + 2 };
        rows *r = rows_new(vocab, WANTS);

        for (uint32_t i = 0; i < WANTS; i++) {
                const uint32_t end = ends[i / 2 % 4];
                pick *pick = &r->picks[i];

                put_crowd(row_of(r, i), vocab, crowd, i & 1);
                *pick = plain_pick(1);
                pick->position = i;
                pick->top_k = i < 8 && end < vocab ? end : 0;
                pick->top_p = i < 8 ? 1 : 0.99f;
                pick->logprobs = end < logprobs_most(vocab) ? end + 1 : logprobs_most(vocab);
                pick->log_sum = i % 3 == 0;
        }
        check(r);
        rows_free(r);
}

static void a_list_that_is_full_or_one_short_or_one_over_matches_ref(void **)
{
        const uint32_t crowds[] = { 127, 128, 129, 253, 254, 255, 256, 257, 258 };

        for (uint32_t crowd : crowds) {
                check_crowd(crowd, crowd);
                check_crowd(5001, crowd);
        }
}

/* By Pearson's sum, of the tokens that top_k keeps; no other ever comes. */
static void tokens_are_drawn_as_often_as_their_probability(void **)
{
        const uint32_t vocab = 40, draws = 4000, kept = 20;
        uint32_t counts[vocab] = {};
        long double chi_square = 0;
        rows *r = rows_new(vocab, WANTS);

        for (uint32_t i = 0; i < WANTS * vocab; i++)
                row_of(r, i / vocab)[i % vocab] = (float)draw(9, 0, i % vocab) * 2;
        for (uint32_t i = 0; i < draws; i++) {
                r->picks[i % WANTS] = plain_pick(0.5f);
                r->picks[i % WANTS].position = i;
                r->picks[i % WANTS].top_k = kept;
                if (i % WANTS < WANTS - 1)
                        continue;
                device_pick(r, i / WANTS % EMU_SCHEDULES);
                for (uint32_t token : r->tokens)
                        counts[token]++;
        }
        ref_sampler_load(&drawn, row_of(r, 0), vocab);
        assert_int_equal(ref_sampler_weigh(&drawn, &r->picks[0]), kept);
        for (uint32_t i = 0; i < vocab; i++) {
                long double wanted = i < kept ? draws * drawn.chances[i] : 0;
                long double off = counts[drawn.all[i].id] - wanted;

                assert_true(i < kept || off == 0);
                chi_square += i < kept ? off * off / wanted : 0;
        }
        /* of `kept` - 1 squares, each 1 with a deviation of sqrt(2): four of these */
        assert_true(chi_square < kept - 1 + 4 * sqrtl(2 * kept));
        rows_free(r);
}

/*
 * Likelier tokens have lower ids.  The last one gets a chance with which top_p is reached 2e-12 of
 * the whole before or behind a border.  The draw aims at the token behind
 * that border.
 */
static void put_top_p_next_to_a_border(float *row, uint32_t vocab, pick *pick, long double side)
{
        long double whole = 0, last = expl(-8), wanted;
        uint32_t border;

        for (uint32_t i = 0; i < vocab; i++) {
                row[i] = i ? 0.02f + 0.5f * (float)(vocab - i) / (float)vocab : 8;
                if (i == vocab - 1)
                        row[i] = 0;
                whole += expl((long double)row[i] - 8);
        }
        do {
                long double sum = 0;

                pick->top_p = 0.7f + 0.2f * (float)random_next() * 0x1p-32f;
                for (border = 0; sum < pick->top_p * whole; border++)
                        sum += expl((long double)row[border] - 8);
                wanted = last + sum * (1 + side * 2 * NEAR) / pick->top_p - whole;
        } while (fabsl(wanted / last - 1) > 0.01L);
        row[vocab - 1] = (float)(8 + logl(wanted));
        ref_sampler_load(&drawn, row, vocab);
        ref_sampler_aim(&drawn, pick, border);
}

static void a_top_p_next_to_a_border_cuts_on_the_correct_side(void **)
{
        const uint32_t vocab = 1500;
        rows *r = rows_new(vocab, WANTS);

        for (uint32_t i = 0; i < WANTS; i++) {
                r->picks[i] = plain_pick(1);
                r->picks[i].seed = random_next();
                put_top_p_next_to_a_border(row_of(r, i), vocab, &r->picks[i], i & 1 ? 1 : -1);
        }
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                device_pick(r, schedule);
                for (uint32_t i = 0; i < WANTS; i++) {
                        ref_sampler_load(&drawn, row_of(r, i), vocab);
                        assert_int_equal(r->tokens[i], ref_sampler_pick(&drawn, &r->picks[i]));
                }
        }
        rows_free(r);
}

static void a_pick_does_not_depend_on_other_rows(void **)
{
        const uint32_t vocab = 700;
        rows *many = rows_new(vocab, WANTS), *alone = rows_new(vocab, 1);

        for (uint32_t i = 0; i < WANTS; i++) {
                random_row(row_of(many, i), vocab, random_kind());
                many->picks[i] = random_pick(vocab);
                many->picks[i].logprobs = i;
        }
        device_pick(many, 0);
        for (uint32_t i = 0; i < WANTS; i++) {
                memcpy(row_of(alone, 0), row_of(many, i), vocab * sizeof(float));
                alone->picks[0] = many->picks[i];
                device_pick(alone, i % EMU_SCHEDULES);
                assert_int_equal(alone->tokens[0], many->tokens[i]);
                assert_memory_equal(entries_of(alone, 0), entries_of(many, i),
                                    pick_entries(&many->picks[i]) * sizeof(logprob));
        }
        rows_free(alone);
        rows_free(many);
}

static void refuses_vocabularies_that_do_not_fit(void **)
{
        const struct {
                uint32_t vocab, stride;
        } bad[] = { { 0, 8 }, { 9, 8 }, { PICK_VOCAB_MAX + 1, PICK_VOCAB_MAX + 1 } };

        launches = 0;
        for (const auto &one : bad) {
                pick_args args = {};

                args.wants_max = 1;
                args.vocab = one.vocab;
                args.stride = one.stride;
                assert_int_equal(pick_tokens(NULL, &args), -EINVAL);
                assert_int_equal(pick_more_tokens(NULL, &args), -EINVAL);
        }
        assert_int_equal(launches, 0);
}

/* ---- what ref says ---- */

static void check_all(const uint32_t (*sizes)[3], size_t count)
{
        compared = rounded = 0;
        for (; count; count--, sizes++)
                for (uint32_t i = 0; i < (*sizes)[1]; i++)
                        check_random((*sizes)[0],
                                     i % 4 == 3 ? random_below((*sizes)[2] + 1) : (*sizes)[2]);
        print_message("%u rows, of which rounding decided %u\n", compared, rounded);
}

/* vocab, times, wants */
static void picks_from_random_rows_match_ref(void **)
{
        const uint32_t sizes[][3] = { { 1, 2, WANTS },   { 3, 40, WANTS },   { 17, 60, WANTS },
                                      { 31, 10, WANTS }, { 33, 10, WANTS },  { 64, 5, WANTS },
                                      { 65, 5, WANTS },  { 256, 30, WANTS }, { 1025, 4, WANTS },
                                      { 2048, 4, WANTS } };

        check_all(sizes, sizeof(sizes) / sizeof(sizes[0]));
}

static void picks_from_random_rows_of_large_vocabularies_match_ref(void **)
{
        const uint32_t sizes[][3] = { { 4097, 2, 2 }, { 32000, 1, 3 }, { VOCAB_MAX, 1, 1 } };

        check_all(sizes, sizeof(sizes) / sizeof(sizes[0]));
}

static void mask_and_edit(rows *r, uint32_t want)
{
        pick *pick = &r->picks[want];
        uint32_t legal = random_below(5);

        for (uint32_t id = 0; id < r->vocab && legal < 4; id++)
                r->masks[want][id / 32] |= (uint32_t)(random_below(4) < legal) << id % 32;
        if (legal < 4)
                pick->mask = r->masks[want];
        for (uint32_t id = 0; id < r->vocab && pick->edit_count < EDITS_MAX; id++)
                if (!random_below(3))
                        r->edits[want][pick->edit_count++] = {
                                id, random_normal(), random_below(2) ? 1.3f : 0.8f,
                                random_below(4) ? (float)random_below(3) : INFINITY
                        };
        pick->edits = r->edits[want];
}

/* Rounding decides none of these: no border is exactly between two tokens. */
static pick random_pick_with_more(uint32_t vocab)
{
        const float temperatures[] = { 0, 1, 1, 0.7f, 0.25f, 1.7f };
        pick pick = plain_pick(temperatures[random_below(6)]);
        auto maybe = [](float number) { return random_below(2) ? number : 0; };
        auto any = [] { return (float)(random_next() >> 8 | 1) * 0x1p-24f; };

        pick.seed = random_next();
        pick.top_k = random_below(3) ? 0 : 1 + random_below(300);
        pick.top_p = random_below(2) ? 1 : any();
        pick.min_p = maybe(random_below(8) ? any() / 8 : 1.5f);
        pick.given = random_below(8) ? 0 : 1 + random_below(vocab);
        pick.logprobs = random_below(4) ? 0 : 1 + random_below(2);
        pick.log_sum = random_below(4) == 0;
        pick.n_sigma = maybe(3 * any());
        pick.typical = maybe(any());
        pick.xtc_chance = maybe(random_below(2) ? 1 : 0.5f);
        pick.xtc_least = any() / 8;
        pick.temperature_range = maybe(any());
        pick.temperature_exponent = 0.5f + any();
        pick.order = random_below(2) ? TEMPERATURE_LAST : TEMPERATURE_FIRST;
        pick.mirostat = !pick.given && random_below(2);
        pick.mu = 12 * any();
        return pick;
}

static void check_more(uint32_t vocab, uint32_t wants)
{
        const row_kind kinds[] = { PLAIN, STEEP, PEAKED, STEPS,  TWO, EQUAL,
                                   CROWD, ZEROS, MASKED, BLOCKS, BAD };
        rows *r = rows_new(vocab, wants);

        for (uint32_t i = 0; i < wants; i++) {
                random_row(row_of(r, i), vocab, kinds[random_below(11)]);
                r->picks[i] = random_below(8) ? random_pick_with_more(vocab) : random_pick(vocab);
                if (random_below(2) && pick_has_more(&r->picks[i]))
                        mask_and_edit(r, i);
        }
        check(r);
        rows_free(r);
}

static void picks_with_more_match_ref(void **)
{
        const uint32_t sizes[][2] = { { 1, 2 }, { 3, 10 }, { 33, 40 }, { 300, 40 }, { 2048, 6 } };

        for (const auto &size : sizes)
                for (uint32_t i = 0; i < size[1]; i++)
                        check_more(size[0], WANTS);
        check_more(4097, 3);
        check_more(20000, 3);
}

/* Each kind; and the picks that have most to do. */
static void check_kinds(uint32_t vocab, const row_kind *kinds, uint32_t count)
{
        rows *r = rows_new(vocab, count);

        for (uint32_t i = 0; i < count; i++) {
                random_row(row_of(r, i), vocab, kinds[i]);
                r->picks[i] = plain_pick(i % 2 ? 1 : 0.7f);
                r->picks[i].seed = random_next();
                r->picks[i].top_k = random_below(2) ? 5000 : 0;
                r->picks[i].top_p = random_below(2) ? 0.9f : 1;
                r->picks[i].min_p = random_below(2) ? 0.02f : 0;
        }
        check(r);
        rows_free(r);
}

static void picks_from_large_rows_of_all_kinds_match_ref(void **)
{
        const row_kind large[] = { FLAT, PEAKED, TWO, EQUAL, BLOCKS };
        row_kind all[ROW_KINDS];

        for (uint32_t i = 0; i < ROW_KINDS; i++)
                all[i] = (row_kind)i;
        check_kinds(9001, all, ROW_KINDS);
        check_kinds(VOCAB_MAX, large, 5);
        check_kinds(VOCAB_MAX - 29, large, 5);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(temperature_0_picks_the_lowest_id_of_the_largest_logit),
                cmocka_unit_test(a_row_that_is_not_finite_fails_the_pick),
                cmocka_unit_test(a_cut_among_equal_logits_keeps_the_lowest_ids),
                cmocka_unit_test(a_list_that_is_full_or_one_short_or_one_over_matches_ref),
                cmocka_unit_test(tokens_are_drawn_as_often_as_their_probability),
                cmocka_unit_test(a_top_p_next_to_a_border_cuts_on_the_correct_side),
                cmocka_unit_test(a_pick_does_not_depend_on_other_rows),
                cmocka_unit_test(refuses_vocabularies_that_do_not_fit),
                cmocka_unit_test(picks_from_random_rows_match_ref),
                cmocka_unit_test(picks_from_random_rows_of_large_vocabularies_match_ref),
                cmocka_unit_test(picks_with_more_match_ref),
                cmocka_unit_test(picks_from_large_rows_of_all_kinds_match_ref),
        };

        return cmocka_run_group_tests(tests, bench_open, bench_close);
}
