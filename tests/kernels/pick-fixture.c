#include "tests/kernels/pick-fixture.h"

#include <errno.h>
#include <stdio.h>

static const char *backend, *isa = "auto";

static struct kernels_conf conf_of(uint32_t vocab, uint32_t wants)
{
        return (struct kernels_conf){ .threads = 2,
                                      .isa = isa,
                                      .library = getenv("CUDA_LIBRARY"),
                                      .rows_max = wants,
                                      .slots_max = 1,
                                      .pages_max = (wants + 15) / 16,
                                      .vocab_max = vocab,
                                      .wants_max = wants,
                                      .row_copies_max = wants };
}

int fixture_choose(int argc, char **argv)
{
        struct kernels_conf conf;
        struct kernels *k;
        int r;

        backend = argc > 1 ? argv[1] : getenv("CUDA_LIBRARY") ? "cuda" : "ref";
        isa = argc > 2 ? argv[2] : isa;
        conf = conf_of(1, 1);
        r = kernels_open(backend, &conf, &k);
        if (r == -ENOTSUP) {
                printf("skipped: backend %s (%s) does not run on this machine\n", backend, isa);
                return 77;
        }
        if (!r)
                k->close(k);
        return 0;
}

void fixture_open(struct fixture *b, uint32_t vocab, uint32_t wants)
{
        struct kernels_conf conf = conf_of(vocab, wants);
        struct kv_shape shape = { 1, 1, 64, FIXTURE_WANTS / 16, KV_F16 };
        struct step_page pages[FIXTURE_WANTS / 16];
        struct step first = { .number = 1, .page_count = conf.pages_max, .pages = pages };

        assert_true(wants <= FIXTURE_WANTS);
        *b = (struct fixture){ .vocab = vocab, .wants = wants, .number = 1 };
        b->near = strcmp(backend, "ref") ? (struct near){ .sum = 1e-6L, .chance = 0x1p-21L }
                                         : (struct near){ .sum = 2e-11L, .chance = 1e-14L };
        assert_int_equal(kernels_open(backend, &conf, &b->k), 0);
        assert_int_equal(b->k->kv_new(b->k, &shape, &b->kv), 0);
        assert_int_equal(b->k->floats_new(b->k, (size_t)wants * vocab, &b->logits), 0);
        ref_sampler_new(&b->ref_sampler, vocab);
        for (uint32_t i = 0; i < conf.pages_max; i++)
                pages[i] = (struct step_page){ 0, i, i };
        assert_int_equal(b->k->step_begin(b->k, KV_ALONE(b->kv), &first), 0);
        assert_int_equal(b->k->step_end(b->k), 0);
}

void fixture_close(struct fixture *b)
{
        ref_sampler_free(&b->ref_sampler);
        b->k->floats_free(b->k, b->logits);
        b->k->kv_free(b->k, b->kv);
        b->k->close(b->k);
}

static int pick_of_all(void *arg)
{
        struct fixture *b = arg;

        return b->k->pick(b->k, b->logits, b->vocab);
}

void fixture_warm_up(struct fixture *b)
{
        if (b->k->warm_up)
                assert_int_equal(b->k->warm_up(b->k, pick_of_all, b), 0);
}

bool fixture_begin(struct fixture *b, const uint32_t *want, const struct pick *picks,
                   uint32_t count)
{
        struct step_row rows[FIXTURE_WANTS] = { { 0 } };
        struct step_run run = { 0, want[count - 1] + 1 };
        struct step step = { .number = ++b->number,
                             .row_count = run.count,
                             .run_count = 1,
                             .want_count = count,
                             .rows = rows,
                             .runs = &run,
                             .want = want,
                             .picks = picks };
        int r;

        assert_true(count <= b->wants && run.count <= b->wants);
        for (uint32_t i = 0; i < run.count; i++) {
                rows[i].position = i;
                rows[i].from_row = STEP_TOKEN;
        }
        r = b->k->step_begin(b->k, KV_ALONE(b->kv), &step);
        assert_true(r == 0 || r == STEP_REPLAYED);
        return r == STEP_REPLAYED;
}

void fixture_end(struct fixture *b, uint32_t *ret_tokens)
{
        assert_int_equal(b->k->step_end(b->k), 0);
        assert_int_equal(b->k->collect(b->k, b->number, ret_tokens), 0);
}

void pick_all(struct fixture *b, const float *logits, uint32_t vocab, const struct pick *picks,
              uint32_t count, uint32_t *ret_tokens)
{
        uint32_t want[FIXTURE_WANTS];

        for (uint32_t i = 0; i < count; i++) {
                want[i] = i;
                b->k->put(b->k, b->logits + (size_t)i * vocab, logits, vocab);
        }
        if (!fixture_begin(b, want, picks, count))
                assert_int_equal(b->k->pick(b->k, b->logits, vocab), 0);
        fixture_end(b, ret_tokens);
}

uint32_t pick_one(struct fixture *b, const float *logits, uint32_t vocab, struct pick pick)
{
        uint32_t token;

        pick_all(b, logits, vocab, &pick, 1, &token);
        return token;
}

void expect_picked(struct fixture *b, const struct pick *pick, uint32_t token)
{
        if (ref_sampler_allows(&b->ref_sampler, pick, token, &b->near))
                return;
        fail_msg("vocab %u temperature %.9g top_k %u top_p %.9g min_p %.9g: token %u, not %u",
                 b->ref_sampler.vocab, pick->temperature, pick->top_k, pick->top_p, pick->min_p,
                 token, ref_sampler_pick(&b->ref_sampler, pick));
}

void follow(struct fixture *b, const float *logits, uint32_t vocab, const struct pick *picks,
            uint32_t count)
{
        uint32_t tokens[FIXTURE_WANTS];

        ref_sampler_load(&b->ref_sampler, logits, vocab);
        for (uint32_t some; count; count -= some, picks += some) {
                some = count < b->wants ? count : b->wants;
                pick_all(b, logits, vocab, picks, some, tokens);
                for (uint32_t i = 0; i < some; i++) {
                        expect_picked(b, &picks[i], tokens[i]);
                        if (tokens[i] != PICK_NOT_FINITE)
                                expect_logprobs(b, b->number, i, &picks[i], tokens[i]);
                }
        }
}

/* Equal, which includes -inf; or as near as the rounding of floats. */
static bool is_near(float told, float wanted)
{
        return told == wanted || fabsf(told - wanted) <= 1e-6f * fmaxf(1, fabsf(wanted));
}

/* Computes the expected values in long double. */
void expect_logprobs(struct fixture *b, uint64_t number, uint32_t want, const struct pick *pick,
                     uint32_t picked)
{
        struct logprob told[PICK_ENTRIES_MAX + 1];
        const struct candidate *all = b->ref_sampler.all;
        const struct logprob *last = told + pick_entries(pick) - 1;
        long double sum = 0;

        if (!pick_entries(pick))
                return;
        for (uint32_t i = 0; i < b->ref_sampler.vocab; i++)
                sum += expl((long double)all[i].logit - all[0].logit);
        memset(told, 0xff, sizeof(told));
        b->k->logprobs(b->k, number, want, told);
        assert_int_equal(told[pick_entries(pick)].token, UINT32_MAX);
        for (uint32_t i = 0; i < pick->logprobs; i++) {
                uint32_t at = i ? i - 1 : 0;
                float wanted;

                while (!i && all[at].id != picked)
                        at++;
                wanted = (float)((long double)all[at].logit - all[0].logit - logl(sum));
                assert_int_equal(told[i].token, all[at].id);
                if (!is_near(told[i].logprob, wanted))
                        fail_msg("vocab %u: token %u is told with %.9g, not %.9g",
                                 b->ref_sampler.vocab, all[at].id, told[i].logprob, wanted);
        }
        if (!pick->log_sum)
                return;
        assert_int_equal(last->token, picked);
        if (!is_near(last->logprob, (float)(all[0].logit + logl(sum))))
                fail_msg("vocab %u: the log-sum is told as %.9g, not %.9Lg", b->ref_sampler.vocab,
                         last->logprob, all[0].logit + logl(sum));
}

struct pick pick_plain(float temperature)
{
        return (struct pick){ .temperature = temperature, .top_p = 1 };
}

struct pick pick_drawn(float temperature, uint32_t sample_index, uint64_t position)
{
        return (struct pick){ .temperature = temperature,
                              .top_p = 1,
                              .sample_index = sample_index,
                              .position = position };
}
