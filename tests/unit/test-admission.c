/* Admission: every refusal by its code.  After each refusal, and at the end, nothing is held. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/edge/admission.h"
#include "daemon/edge/fork.h"
#include "daemon/edge/quota.h"
#include "daemon/text/tokenizer.h"

#define VOCAB   300u
#define CONTEXT 128u
#define POOL    80u /* positions: 5 blocks */
#define UID     7u

struct world {
        struct quota *quota;
        struct admission *admission;
        struct served served;
};

static size_t record_bytes_max(size_t piece_max, size_t stop_bytes_max, uint32_t logprobs)
{
        return 1000 * piece_max + stop_bytes_max + 1000000 * logprobs;
}

static size_t end_bytes_max(size_t stop_bytes_max)
{
        return 64 + stop_bytes_max;
}

static uint64_t seed(void)
{
        return 42;
}

static const struct admission_conf conf = {
        .sched = { .blocks = POOL / BLOCK_POSITIONS,
                   .slots = 4,
                   .rows = 16,
                   .context = CONTEXT,
                   .depth = 1,
                   .requests_max = 8,
                   .channels = 4 },
        .max_tokens = 20,
        .requests_max = 8,
        .record_bytes_max = record_bytes_max,
        .end_bytes_max = end_bytes_max,
        .seed = seed,
};

static int set_up(void **state)
{
        const struct quota_conf quota = { .max = { [QUOTA_CONNECTIONS] = 1,
                                                   [QUOTA_REQUESTS] = 6,
                                                   [QUOTA_PROMPT_BYTES] = 10000,
                                                   [QUOTA_RING_BYTES] = 1 },
                                          .total = { [QUOTA_REQUESTS] = 8 },
                                          .owner = UID };
        struct world *world = calloc(1, sizeof(*world));

        assert_int_equal(quota_new(&quota, &world->quota), 0);
        assert_int_equal(admission_new(&conf, world->quota, &world->admission), 0);
        assert_int_equal(tokenizer_open_bytes(VOCAB, &world->served.tokenizer), 0);
        world->served.context = CONTEXT;
        world->served.traits = (struct traits){ .vocab = VOCAB, .context = CONTEXT, .bos = 256 };
        *state = world;
        return 0;
}

/* quota_free() and admission_free() assert that nothing is held. */
static int tear_down(void **state)
{
        struct world *world = *state;

        assert_int_equal(world->served.references, 0);
        admission_free(world->admission);
        quota_free(world->quota);
        tokenizer_close(world->served.tokenizer);
        free(world);
        return 0;
}

static void expect_nothing_held(struct world *world)
{
        uint32_t index = 0;

        assert_null(quota_next(world->quota, &index));
        assert_int_equal(admission_alive(world->admission), 0);
        assert_int_equal(admission_jobs(world->admission), 0);
}

static struct wire_request asking(void)
{
        return (struct wire_request){ .op = WIRE_GENERATE, .id = 5, .temperature = 1, .top_p = 1 };
}

static const uint32_t some_ids[200] = { 1, 2, 3 };

static struct wire_request with_ids(uint32_t count)
{
        struct wire_request asked = asking();

        asked.tokens = some_ids;
        asked.token_count = count;
        return asked;
}

static struct wire_request with_text(const char *text)
{
        struct wire_request asked = asking();

        asked.prompt = (struct wire_text){ text, (uint32_t)strlen(text) };
        return asked;
}

/* The functions that op-generate.c and op-fork.c call, for a request instead of its stream. */
static int ask(struct world *world, uint32_t uid, const struct wire_request *asked,
               struct request **ret_request, struct wire_problem *ret_problem)
{
        struct stream *stream = NULL;
        int r;

        r = admission_ask(world->admission, uid, &world->served, asked, &stream, ret_problem);
        if (r)
                return r;
        r = fork_siblings(world->admission, stream, asked, ret_problem);
        if (!r && asked->token_count)
                r = admission_finish(world->admission, stream, "tokens", asked->tokens,
                                     asked->token_count, ret_problem);
        if (r)
                admission_forget_all(world->admission, stream);
        else
                *ret_request = &stream->request;
        return r;
}

static int fork_of(struct world *world, struct request *parent, const struct wire_request *asked,
                   struct request **ret_first, struct wire_problem *ret_problem)
{
        struct stream *first = NULL;
        int r = fork_stream(world->admission, stream_of(parent), asked, &first, ret_problem);

        if (!r)
                *ret_first = &first->request;
        return r;
}

static struct request *forget(struct world *world, struct request *request)
{
        admission_forget(world->admission, stream_of(request));
        return NULL;
}

static void forget_all(struct world *world, struct request *first)
{
        admission_forget_all(world->admission, stream_of(first));
}

static void expect_refused(struct world *world, const struct wire_request *asked,
                           enum smv_code code, const char *field, const char *said)
{
        struct wire_problem problem;
        struct request *request = NULL;

        assert_int_equal(ask(world, UID, asked, &request, &problem), WIRE_E_REFUSED);
        assert_null(request);
        assert_int_equal(problem.code, code);
        assert_int_equal(problem.id, asked->id);
        assert_string_equal(problem.field, field);
        assert_false(problem.fatal);
        if (!strstr(problem.message, said))
                fail_msg("'%s' is not in '%s'", said, problem.message);
        expect_nothing_held(world);
}

static struct request *expect_admitted(struct world *world, const struct wire_request *asked)
{
        struct wire_problem problem;
        struct request *request = NULL;

        assert_int_equal(ask(world, UID, asked, &request, &problem), 0);
        return request;
}

static void copies_prompt_ids_unchanged(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(3);
        struct request *request;

        request = expect_admitted(world, &asked);
        assert_int_equal(request->prompt_count, 3);
        assert_int_equal(request->sequence.token_count, 3);
        assert_memory_equal(request->sequence.tokens, some_ids, 12);
        assert_ptr_not_equal(request->sequence.tokens, some_ids);
        assert_ptr_equal(request->sequence.request, request);
        assert_int_equal(request->sequence.slot, SEQUENCE_NO_SLOT);
        assert_int_equal(request->max_tokens, 20);
        assert_int_equal(request->stream, 5);
        assert_int_equal(request->uid, UID);
        assert_int_equal(request->state, REQUEST_WAITING);
        assert_ptr_equal(request->model, &world->served);
        assert_int_equal(world->served.references, 1);
        forget(world, request);
        expect_nothing_held(world);
}

static void copies_stops_and_sampling_settings_into_the_request(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(1);
        char stops[2][8] = { "stop", "halting" };
        struct request *request;

        asked.stop_count = 2;
        asked.stop[0] = (struct wire_text){ stops[0], 4 };
        asked.stop[1] = (struct wire_text){ stops[1], 7 };
        asked.stop_token_count = 1;
        asked.stop_tokens[0] = 299;
        asked.temperature = 0.5f;
        asked.top_k = 3;
        asked.seed = 99;
        wire_give(&asked, WIRE_F_SEED);
        wire_give(&asked, WIRE_F_TEMPERATURE);
        asked.ignore_eos = true;
        request = expect_admitted(world, &asked);
        memset(stops, 'x', sizeof(stops));
        assert_int_equal(request->stop_count, 2);
        assert_int_equal(request->stop_bytes[1], 7);
        assert_memory_equal(request->stops[0], "stop", 4);
        assert_memory_equal(request->stops[1], "halting", 7);
        assert_int_equal(request->stop_tokens[0], 299);
        assert_int_equal(request->sampling.seed, 99);
        assert_true(request->sampling.temperature == 0.5f);
        assert_true(request->ignore_eos);
        assert_int_equal(request->end_bytes_max, 64 + 7);
        assert_int_equal(request->record_bytes_max,
                         1000 * tokenizer_piece_max(world->served.tokenizer) + 7);
        forget(world, request);

        world->served.defaults = (struct sampling_defaults){ 0.25f, 0.75f, 0.125f, 5 };
        asked.top_k = 3;
        memset(asked.given, 0, sizeof(asked.given));
        wire_give(&asked, WIRE_F_TOP_K);
        request = expect_admitted(world, &asked);
        assert_true(request->sampling.temperature == 0.25f && request->sampling.top_p == 0.75f);
        assert_true(request->sampling.min_p == 0.125f && request->sampling.top_k == 3);
        forget(world, request);

        memset(asked.given, 0, sizeof(asked.given));
        request = expect_admitted(world, &asked);
        assert_int_equal(request->sampling.seed, 42);
        forget(world, request);
}

static void carries_the_other_cuts_to_the_request(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(1);
        struct request *request;

        asked.typical = 0.5f;
        asked.xtc_least = 0.1f;
        asked.temperature_exponent = 1;
        asked.order = WIRE_TEMPERATURE_LAST;
        request = expect_admitted(world, &asked);
        assert_true(request->sampling.typical == 0.5f && request->sampling.temperature_last);
        assert_true(request->sampling.temperature_exponent == 1);
        forget(world, request);
        expect_nothing_held(world);
}

static void refuses_ids_outside_the_vocabulary_by_field_and_index(void **state)
{
        struct world *world = *state;
        uint32_t ids[] = { 0, VOCAB - 1, VOCAB };
        struct wire_request asked = with_ids(3);

        asked.tokens = ids;
        expect_refused(world, &asked, SMV_BAD_VALUE, "tokens", "300 at index 2");
        asked = with_ids(1);
        asked.stop_token_count = 1;
        asked.stop_tokens[0] = UINT32_MAX;
        expect_refused(world, &asked, SMV_BAD_VALUE, "stop_tokens", "the largest id is 299");
}

static void an_empty_prompt_needs_a_bos_token(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_text("");
        struct wire_problem problem;
        struct request *request;

        request = expect_admitted(world, &asked);
        assert_int_equal(admission_finish(world->admission, stream_of(request), "prompt",
                                          (uint32_t[]){ 256 }, 1, &problem),
                         0);
        assert_int_equal(request->prompt_count, 1);
        forget(world, request);
        world->served.traits.bos = TRAITS_NO_TOKEN;
        expect_refused(world, &asked, SMV_BAD_VALUE, "prompt", "is empty");
}

static void refuses_a_request_longer_than_the_context(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(CONTEXT);

        expect_refused(world, &asked, SMV_TOO_LONG, "tokens", "128 tokens");
        asked = with_ids(30);
        asked.max_tokens = CONTEXT - 30 + 1;
        expect_refused(world, &asked, SMV_TOO_LONG, "max_tokens",
                       "30 tokens and max_tokens is 99; together they may be 128");
        asked.max_tokens = UINT32_MAX;
        expect_refused(world, &asked, SMV_TOO_LONG, "max_tokens", "4294967295");
}

static void refuses_a_request_larger_than_the_pool(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(30);
        struct request *request;

        asked.max_tokens = POOL - 30;
        request = expect_admitted(world, &asked);
        forget(world, request);
        asked.max_tokens = CONTEXT - 30;
        expect_refused(world, &asked, SMV_TOO_LARGE, "max_tokens", "the KV pool has 80 positions");
        asked = with_ids(POOL + 2);
        expect_refused(world, &asked, SMV_TOO_LARGE, "tokens", "82 tokens");
}

static void cuts_the_default_max_tokens_to_context_and_pool(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(POOL - 5);
        struct request *request;

        request = expect_admitted(world, &asked);
        assert_int_equal(request->max_tokens, 5);
        forget(world, request);
        world->served.context = 50;
        asked = with_ids(40);
        request = expect_admitted(world, &asked);
        assert_int_equal(request->max_tokens, 10);
        forget(world, request);
}

static void lowers_max_tokens_to_context_and_pool_if_it_may(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(POOL - 5);
        struct request *request;

        asked.clamp = true;
        asked.max_tokens = UINT32_MAX;
        request = expect_admitted(world, &asked);
        assert_int_equal(request->max_tokens, 5);
        forget(world, request);
        asked.max_tokens = 3; /* it fits */
        request = expect_admitted(world, &asked);
        assert_int_equal(request->max_tokens, 3);
        forget(world, request);
        world->served.context = 50;
        asked = with_ids(40);
        asked.clamp = true;
        asked.max_tokens = 11;
        request = expect_admitted(world, &asked);
        assert_int_equal(request->max_tokens, 10);
        forget(world, request);
        asked = with_ids(50); /* a prompt is never cut */
        asked.clamp = true;
        asked.max_tokens = 1;
        expect_refused(world, &asked, SMV_TOO_LONG, "tokens", "50 tokens");
}

/* Of the pool's five. */
static void let_one_have(struct world *world, uint32_t blocks)
{
        struct admission_conf less = conf;

        less.sched.user_blocks = blocks;
        admission_free(world->admission);
        assert_int_equal(admission_new(&less, world->quota, &world->admission), 0);
}

/* A block has 16 positions, and the last token of a continuation needs none. */
static void refuses_a_request_over_the_block_limit_of_a_user_with_both_numbers(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(30);

        let_one_have(world, 3);
        asked.max_tokens = 19;
        forget(world, expect_admitted(world, &asked));
        asked.max_tokens = 20;
        expect_refused(world, &asked, SMV_QUOTA, "max_tokens",
                       "the prompt has 30 tokens and 20 may follow; that takes 4 blocks, and one "
                       "user may have 3 (uid_blocks_percent)");
        asked.max_tokens = 60; /* more than any request could have */
        expect_refused(world, &asked, SMV_TOO_LARGE, "max_tokens", "the KV pool has 80 positions");
        asked = with_ids(49);
        expect_refused(world, &asked, SMV_QUOTA, "tokens", "that takes 5 blocks");
}

static void applies_the_block_limit_of_a_user_to_pins(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(48);

        let_one_have(world, 3);
        asked.op = WIRE_PIN;
        forget(world, expect_admitted(world, &asked));
        asked.token_count = 49;
        expect_refused(world, &asked, SMV_QUOTA, "tokens",
                       "49 tokens and 0 may follow; that takes 4 blocks");
}

static void cuts_the_default_max_tokens_to_the_block_limit_of_a_user(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(43);
        struct request *request;

        let_one_have(world, 3);
        request = expect_admitted(world, &asked);
        assert_int_equal(request->max_tokens, 5);
        forget(world, request);
}

static void checks_the_length_of_a_text_when_its_ids_are_known(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_text("hello");
        struct wire_problem problem;
        struct request *request;

        request = expect_admitted(world, &asked);
        assert_null(request->sequence.tokens);
        assert_int_equal(admission_finish(world->admission, stream_of(request), "prompt", some_ids,
                                          CONTEXT, &problem),
                         WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_TOO_LONG);
        assert_string_equal(problem.field, "prompt");
        assert_int_equal(admission_finish(world->admission, stream_of(request), "prompt", some_ids,
                                          0, &problem),
                         WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_BAD_VALUE);
        assert_int_equal(admission_finish(world->admission, stream_of(request), "prompt", some_ids,
                                          6, &problem),
                         0);
        assert_int_equal(request->prompt_count, 6);
        forget(world, request);
        expect_nothing_held(world);
}

static void corrects_the_charged_prompt_bytes_when_the_ids_are_known(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_text("hello");
        struct wire_problem problem;
        struct request *request;
        uint32_t index = 0;

        request = expect_admitted(world, &asked);
        assert_int_equal(quota_next(world->quota, &index)->held[QUOTA_PROMPT_BYTES],
                         sizeof(struct stream) + 5 + 6 * 4);
        assert_int_equal(admission_finish(world->admission, stream_of(request), "prompt", some_ids,
                                          6, &problem),
                         0);
        index = 0;
        assert_int_equal(quota_next(world->quota, &index)->held[QUOTA_PROMPT_BYTES],
                         sizeof(struct stream) + (6 + 20) * 4);
        index = 0;
        assert_int_equal(quota_next(world->quota, &index)->held[QUOTA_REQUESTS], 1);
        forget(world, request);
        expect_nothing_held(world);
}

static void limits_requests_and_jobs_per_user_and_for_the_daemon(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(3);
        struct wire_problem problem;
        struct request *requests[8], *one_more;

        for (uint32_t i = 0; i < 6; i++)
                requests[i] = expect_admitted(world, &asked);
        assert_int_equal(ask(world, UID, &asked, &one_more, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_QUOTA);
        assert_non_null(strstr(problem.message, "6 requests"));
        assert_int_equal(admission_job(world->admission, UID, 9, 10, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_QUOTA);

        /* Two more of other users, and the daemon itself is full; jobs count as well. */
        assert_int_equal(ask(world, UID + 1, &asked, &requests[6], &problem), 0);
        assert_int_equal(admission_job(world->admission, UID + 2, 9, 10, &problem), 0);
        assert_int_equal(ask(world, UID + 3, &asked, &one_more, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_BUSY);
        assert_non_null(strstr(problem.message, "8 requests"));
        admission_job_done(world->admission, UID + 2, 10);
        for (uint32_t i = 0; i < 7; i++)
                forget(world, requests[i]);
        expect_nothing_held(world);
}

static void refuses_prompt_bytes_over_the_limit_with_the_number(void **state)
{
        struct world *world = *state;
        static char text[9990];
        struct wire_request asked = asking();
        struct wire_problem problem;

        memset(text, 'x', sizeof(text));
        asked.prompt = (struct wire_text){ text, sizeof(text) };
        expect_refused(world, &asked, SMV_QUOTA, "", "10000 (uid_prompt_bytes)");
        assert_int_equal(admission_job(world->admission, UID, 9, 10001, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_QUOTA);
        expect_nothing_held(world);
}

static void live_requests_have_different_numbers(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(3);
        struct request *alive[6] = { NULL };
        uint32_t draw = 1;

        for (uint32_t i = 0; i < 1000; i++) {
                uint32_t seen = 0;
                uint32_t at;

                draw = draw * 1664525 + 1013904223;
                at = draw / 65536 % 6;
                if (alive[at])
                        alive[at] = forget(world, alive[at]);
                else
                        alive[at] = expect_admitted(world, &asked);
                for (uint32_t j = 0; j < 6; j++) {
                        if (!alive[j])
                                continue;
                        assert_in_range(alive[j]->number, 0, conf.requests_max - 1);
                        assert_false(seen & 1u << alive[j]->number);
                        seen |= 1u << alive[j]->number;
                }
        }
        for (uint32_t j = 0; j < 6; j++)
                forget(world, alive[j]);
        expect_nothing_held(world);
}

static void admits_n_streams_together_or_none_and_charges_each(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(3);
        struct request *request;
        uint32_t count = 0, index = 0;

        asked.n = 4;
        asked.sample_index = 7;
        request = expect_admitted(world, &asked);
        for (struct request *s = request; s; s = s->sibling, count++) {
                assert_int_equal(s->stream, 5 + count);
                assert_int_equal(s->sampling.sample_index, 7 + count);
                assert_int_equal(s->sampling.seed, request->sampling.seed);
                assert_int_equal(s->max_tokens, 20);
                assert_memory_equal(s->sequence.tokens, some_ids, 12);
        }
        assert_int_equal(count, 4);
        assert_int_equal(quota_next(world->quota, &index)->held[QUOTA_REQUESTS], 4);
        forget_all(world, request);
        expect_nothing_held(world);

        /* The user may have six; the reply is to the request that was made. */
        asked.n = 7;
        expect_refused(world, &asked, SMV_QUOTA, "", "6 requests");
        asked.n = 2;
        asked.sample_index = UINT32_MAX;
        expect_refused(world, &asked, SMV_BAD_VALUE, "sample_index", "4294967295");
}

static struct wire_request forking(uint32_t count, uint32_t max_tokens)
{
        struct wire_request asked = { .op = WIRE_FORK, .id = 50, .count = count };

        asked.max_tokens = max_tokens;
        if (max_tokens)
                wire_give(&asked, WIRE_F_MAX_TOKENS);
        return asked;
}

static struct request *expect_forked(struct world *world, struct request *parent,
                                     const struct wire_request *asked)
{
        struct wire_problem problem;
        struct request *first = NULL;

        if (fork_of(world, parent, asked, &first, &problem))
                fail_msg("%s", problem.message);
        return first;
}

/*
 * Choices are numbered in the order of forks, whichever member of the family forks.  A refused
 * fork takes no number.
 */
static void numbers_sample_indices_in_the_order_of_forks_in_a_family(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(3), fork = forking(2, 0);
        struct request *parent, *first, *deeper;
        struct wire_problem problem;

        asked.sample_index = 3;
        asked.stop[0] = (struct wire_text){ "END", 3 };
        asked.stop_count = 1;
        parent = expect_admitted(world, &asked);
        first = expect_forked(world, parent, &fork);
        assert_int_equal(first->sampling.sample_index, 4);
        assert_int_equal(first->sibling->sampling.sample_index, 5);
        assert_int_equal(first->stream, 50);
        assert_int_equal(first->sibling->stream, 51);
        assert_ptr_equal(first->sibling->parent, parent);
        assert_int_equal(first->sampling.seed, parent->sampling.seed);
        assert_int_equal(first->stop_bytes[0], 3);
        assert_memory_equal(first->stops[0], "END", 3);
        assert_ptr_not_equal(first->stops[0], parent->stops[0]);
        assert_int_equal(first->tokens_max, parent->tokens_max);
        assert_int_equal(first->max_tokens, 0); /* the engine reports the rest */
        assert_memory_equal(first->sequence.tokens, some_ids, 12);

        fork = forking(4, 0);
        assert_int_equal(fork_of(world, parent, &fork, &deeper, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_QUOTA);
        assert_int_equal(problem.id, 50);
        fork = forking(1, 9);
        deeper = expect_forked(world, first, &fork);
        assert_int_equal(deeper->sampling.sample_index, 6);
        assert_int_equal(deeper->tokens_max, parent->tokens_max - 1 + 9);

        /* Its parents may be gone before it. */
        forget(world, parent);
        forget_all(world, first);
        fork = forking(1, 0);
        fork.sample_index = 2;
        wire_give(&fork, WIRE_F_SAMPLE_INDEX);
        first = expect_forked(world, deeper, &fork);
        assert_int_equal(first->sampling.sample_index, 2);
        forget(world, first);
        fork = forking(1, 0);
        first = expect_forked(world, deeper, &fork);
        assert_int_equal(first->sampling.sample_index, 7);
        forget(world, first);
        forget(world, deeper);
        expect_nothing_held(world);
}

static void refuses_a_fork_that_may_exceed_pool_or_context(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(3), fork = forking(1, POOL + 1 - 22);
        struct request *parent = expect_admitted(world, &asked), *first; /* 3 and 20 */
        struct wire_problem problem;

        /* It may have 22 when it is forked, for its last token would end it. */
        forget(world, expect_forked(world, parent, &fork));
        fork.max_tokens++;
        assert_int_equal(fork_of(world, parent, &fork, &first, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_TOO_LARGE);
        fork.max_tokens = CONTEXT + 1 - 22;
        assert_int_equal(fork_of(world, parent, &fork, &first, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_TOO_LONG);
        assert_string_equal(problem.field, "max_tokens");
        forget(world, parent);
        expect_nothing_held(world);
}

static void refuses_a_fork_over_the_block_limit_of_a_user_with_both_numbers(void **state)
{
        struct world *world = *state;
        struct wire_request asked = with_ids(3), fork = forking(1, 27);
        struct request *parent, *first; /* 3 and 20: it may have 22 when it is forked */
        struct wire_problem problem;

        let_one_have(world, 3);
        parent = expect_admitted(world, &asked);
        forget(world, expect_forked(world, parent, &fork));
        fork.max_tokens = 28;
        assert_int_equal(fork_of(world, parent, &fork, &first, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_QUOTA);
        assert_string_equal(problem.field, "max_tokens");
        assert_string_equal(problem.message,
                            "the stream may have 22 tokens by then and 28 may follow; that takes 4 "
                            "blocks, and one user may have 3 (uid_blocks_percent)");
        forget(world, parent);
        expect_nothing_held(world);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(copies_prompt_ids_unchanged),
                TEST(copies_stops_and_sampling_settings_into_the_request),
                TEST(carries_the_other_cuts_to_the_request),
                TEST(refuses_ids_outside_the_vocabulary_by_field_and_index),
                TEST(an_empty_prompt_needs_a_bos_token),
                TEST(refuses_a_request_longer_than_the_context),
                TEST(refuses_a_request_larger_than_the_pool),
                TEST(lowers_max_tokens_to_context_and_pool_if_it_may),
                TEST(cuts_the_default_max_tokens_to_context_and_pool),
                TEST(refuses_a_request_over_the_block_limit_of_a_user_with_both_numbers),
                TEST(applies_the_block_limit_of_a_user_to_pins),
                TEST(cuts_the_default_max_tokens_to_the_block_limit_of_a_user),
                TEST(checks_the_length_of_a_text_when_its_ids_are_known),
                TEST(corrects_the_charged_prompt_bytes_when_the_ids_are_known),
                TEST(limits_requests_and_jobs_per_user_and_for_the_daemon),
                TEST(refuses_prompt_bytes_over_the_limit_with_the_number),
                TEST(live_requests_have_different_numbers),
                TEST(admits_n_streams_together_or_none_and_charges_each),
                TEST(numbers_sample_indices_in_the_order_of_forks_in_a_family),
                TEST(refuses_a_fork_that_may_exceed_pool_or_context),
                TEST(refuses_a_fork_over_the_block_limit_of_a_user_with_both_numbers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
