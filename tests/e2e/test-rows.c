/*
 * Rows: what the model says of the place of each token.  They are the same wherever and however a
 * stream runs, their entries are those of `logprobs`, and whole rows agree with them.
 */
#include <math.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/question-client.h"

#define TOKENS  50u
#define TOP_ALL 256u

static const uint32_t tops[] = { 0, 1, 20, 256 };
#define TOP_N (sizeof(tops) / sizeof(*tops))

static struct smv_generate with_rows(uint64_t seed, uint32_t top)
{
        return (struct smv_generate){ SMV_SIZE(smv_generate),
                                      .prompt = "Tea with",
                                      .max_tokens = TOKENS,
                                      .temperature = 0.8f,
                                      .top_k = 40,
                                      .presence_penalty = 0.5f,
                                      .seed = seed,
                                      .ignore_eos = 1,
                                      .set = SMV_SET_SEED | SMV_SET_TEMPERATURE | SMV_SET_ROW_TOP,
                                      .row_top = top };
}

static struct smv_client *connect_socket(const struct daemon_fixture *fixture)
{
        const struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                        .transport = SMV_TRANSPORT_SOCKET };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

/* Begun with one request: the streams behind the first one. */
static void take_siblings(struct asked *several, uint32_t count)
{
        for (uint32_t i = 1; i < count; i++) {
                several[i] = (struct asked){ .keeps_rows = true, .first = several[0].first };
                several[i].stream = several[0].stream + i;
        }
}

/* ---- one row ---- */

/* What holds for every row by itself. */
static void check_row(const struct kept_row *row, uint32_t token)
{
        double sum = 0;

        assert_int_equal(row->entries[0].token, token);
        for (size_t i = 1; i <= row->top_count; i++) {
                sum += exp((double)row->entries[i].logprob);
                if (i > 1)
                        assert_true(row->entries[i].logprob <= row->entries[i - 1].logprob);
                for (size_t j = 1; j < i; j++)
                        assert_int_not_equal(row->entries[i].token, row->entries[j].token);
                if (row->entries[i].token == token)
                        assert_true(row->entries[i].logprob == row->entries[0].logprob);
        }
        assert_true(sum < 1 + 1e-5);
        assert_true(isfinite(row->log_sum) && row->entries[0].logprob <= 0);
}

/* Logits and entries say the same. */
static void check_whole_row(const struct kept_row *row, uint32_t vocab)
{
        long double sum = 0;
        float best = row->logits[0];

        assert_int_equal(row->logit_count, vocab);
        for (uint32_t i = 0; i < vocab; i++) {
                sum += expl((long double)row->logits[i]);
                best = fmaxf(best, row->logits[i]);
        }
        assert_true(fabsl(logl(sum) - (long double)row->log_sum) < 1e-5L);
        for (size_t i = 0; i <= row->top_count; i++) {
                const struct smv_logprob *entry = &row->entries[i];
                double logit = (double)entry->logprob + (double)row->log_sum;

                assert_true(fabs(logit - (double)row->logits[entry->token]) < 1e-4);
        }
        if (row->top_count)
                assert_true(row->logits[row->entries[1].token] == best);
}

static void check_rows(const struct asked *asked)
{
        assert_int_equal(asked->row_count, asked->token_count);
        for (uint32_t i = 0; i < asked->row_count; i++) {
                assert_int_equal(asked->rows[i].position, asked->first + i);
                check_row(&asked->rows[i], asked->tokens[i]);
        }
}

/* ---- entries ---- */

/* In one request, and in two. */
static void rows_have_the_entries_of_logprobs(void **state)
{
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < TOP_N; i++) {
                struct asked scored = { 0 }, shown = { .keeps_rows = true };
                struct asked both = { .keeps_rows = true };
                struct smv_generate how = with_rows(i, tops[i]), other = how;
                size_t each = 1 + (tops[i] < 32 ? tops[i] : 32);

                asked_run(rig.client, &how, &shown);
                check_rows(&shown);
                how.set |= SMV_SET_LOGPROBS;
                how.logprobs = (uint32_t)each - 1;
                asked_run(rig.client, &how, &both);
                assert_same_answer(&shown, &both);
                assert_same_rows(&shown, &both);
                other.set = (how.set & ~(uint32_t)SMV_SET_ROW_TOP);
                other.row_top = 0;
                other.logprobs = how.logprobs;
                asked_run(rig.client, &other, &scored);
                assert_same_answer(&shown, &scored);
                assert_int_equal(scored.row_count, 0);
                assert_int_equal(scored.logprob_count, TOKENS * each);
                assert_int_equal(both.logprob_count, TOKENS * each);
                for (uint32_t j = 0; j < TOKENS; j++) {
                        size_t bytes = each * sizeof(struct smv_logprob);

                        assert_int_equal(shown.rows[j].top_count, tops[i]);
                        assert_memory_equal(shown.rows[j].entries, scored.logprobs + j * each,
                                            bytes);
                        assert_memory_equal(shown.rows[j].entries, both.logprobs + j * each, bytes);
                }
                asked_free(&scored);
                asked_free(&shown);
                asked_free(&both);
        }
        question_rig_stop(&rig);
}

/* Without top_k and with every kind of question. */
static void shorter_rows_are_the_beginning_of_longer_ones(void **state)
{
        static const enum smv_ask asks[] = { SMV_ASK_NOTHING, SMV_ASK_MASK, SMV_ASK_TOKEN };
        struct asked longest = { .keeps_rows = true };
        struct smv_generate how = with_rows(3, TOP_ALL);
        struct question_rig rig = question_rig_start(state);

        asked_run(rig.client, &how, &longest);
        check_rows(&longest);
        for (size_t i = 0; i < TOP_N; i++) {
                for (size_t j = 0; j < 3; j++) {
                        struct asked asked = { .keeps_rows = true };

                        how.row_top = tops[i];
                        how.ask = asks[j];
                        asked_run(rig.client, &how, &asked);
                        assert_same_answer(&longest, &asked);
                        assert_same_rows(&longest, &asked);
                        check_rows(&asked);
                        asked_free(&asked);
                }
        }
        asked_free(&longest);
        question_rig_stop(&rig);
}

/* Settings of the draws change the tokens, and not what the model says of their first place. */
static void a_row_is_that_before_all_rules_of_the_request(void **state)
{
        static const uint32_t banned[] = { 'a', 'e', 'o' };
        static const struct smv_bias biases[] = { { 'i', 5 } };
        struct asked bare = { .keeps_rows = true }, ruled = { .keeps_rows = true };
        struct smv_generate how = { SMV_SIZE(smv_generate), .prompt = "Tea with", .max_tokens = 1,
                                    .row_top = 100 };
        struct question_rig rig = question_rig_start(state);

        asked_run(rig.client, &how, &bare);
        how.temperature = 0.3f;
        how.set = SMV_SET_TEMPERATURE;
        how.banned_tokens = banned;
        how.banned_token_count = 3;
        how.biases = biases;
        how.bias_count = 1;
        how.repetition_penalty = 1.5f;
        how.top_p = 0.5f;
        asked_run(rig.client, &how, &ruled);
        assert_int_equal(ruled.row_count, 1);
        assert_memory_equal(&bare.rows[0].log_sum, &ruled.rows[0].log_sum, sizeof(float));
        assert_memory_equal(bare.rows[0].entries + 1, ruled.rows[0].entries + 1,
                            100 * sizeof(struct smv_logprob));
        asked_free(&bare);
        asked_free(&ruled);
        question_rig_stop(&rig);
}

/* ---- whole rows ---- */

static void whole_rows_agree_with_their_entries(void **state)
{
        static const enum smv_ask asks[] = { SMV_ASK_MASK, SMV_ASK_TOKEN };
        struct question_rig rig = question_rig_start(state);
        uint32_t vocab = question_vocab(rig.client);

        for (size_t i = 0; i < TOP_N; i++) {
                for (size_t j = 0; j < 2; j++) {
                        struct asked asked = { .keeps_rows = true };
                        struct smv_generate how = with_rows(i, tops[i]);

                        how.ask = asks[j];
                        how.whole_row = 1;
                        asked_run(rig.client, &how, &asked);
                        check_rows(&asked);
                        for (uint32_t k = 0; k < asked.row_count; k++) {
                                assert_non_null(asked.rows[k].logits);
                                check_whole_row(&asked.rows[k], vocab);
                        }
                        asked_free(&asked);
                }
        }
        question_rig_stop(&rig);
}

/* Without row_top, a row has the entry of the drawn token and all logits. */
static void a_whole_row_needs_no_likeliest_tokens(void **state)
{
        struct asked asked = { .keeps_rows = true };
        struct smv_generate how = with_rows(3, 0);
        struct question_rig rig = question_rig_start(state);

        how.set &= ~(uint32_t)SMV_SET_ROW_TOP;
        how.ask = SMV_ASK_TOKEN;
        how.whole_row = 1;
        asked_run(rig.client, &how, &asked);
        check_rows(&asked);
        for (uint32_t i = 0; i < asked.row_count; i++) {
                assert_int_equal(asked.rows[i].top_count, 0);
                assert_non_null(asked.rows[i].logits);
                check_whole_row(&asked.rows[i], question_vocab(rig.client));
        }
        asked_free(&asked);
        question_rig_stop(&rig);
}

static void a_client_that_takes_the_largest_logit_is_greedy(void **state)
{
        struct asked greedy = { 0 }, asked = { .answer = answer_likeliest };
        struct smv_generate how = { SMV_SIZE(smv_generate), .max_tokens = 200, .ignore_eos = 1,
                                    .set = SMV_SET_TEMPERATURE };
        static const char *const prompts[] = { "Tea with", "Once upon a time", "x" };
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < 3; i++) {
                how.prompt = prompts[i];
                how.temperature = 0;
                how.ask = SMV_ASK_NOTHING;
                how.whole_row = 0;
                asked_run(rig.client, &how, &greedy);
                how.temperature = 1.5f;
                how.ask = SMV_ASK_TOKEN;
                how.whole_row = 1;
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&greedy, &asked);
        }
        asked_free(&greedy);
        asked_free(&asked);
        question_rig_stop(&rig);
}

/* ---- the same rows elsewhere ---- */

static void rows_over_the_socket_are_the_same(void **state)
{
        struct question_rig rig = question_rig_start(state);
        struct smv_client *client = connect_socket(rig.fixture);

        for (size_t i = 0; i < TOP_N; i++) {
                struct asked ring = { .keeps_rows = true }, socket = { .keeps_rows = true };
                struct smv_generate how = with_rows(i, tops[i]);

                asked_run(rig.client, &how, &ring);
                asked_run(client, &how, &socket);
                check_rows(&ring);
                assert_same_answer(&ring, &socket);
                assert_same_rows(&ring, &socket);
                asked_free(&ring);
                asked_free(&socket);
        }
        smv_close(client);
        question_rig_stop(&rig);
}

static void each_of_several_answers_has_its_rows(void **state)
{
        struct asked several[4] = { { .keeps_rows = true } }, alone = { .keeps_rows = true };
        struct smv_generate how = with_rows(5, 20);
        struct question_rig rig = question_rig_start(state);

        how.n = 4;
        asked_begin(rig.client, &how, &several[0]);
        take_siblings(several, 4);
        asked_hear(rig.client, several, 4);
        how.n = 0;
        for (how.sample_index = 0; how.sample_index < 4; how.sample_index++) {
                asked_run(rig.client, &how, &alone);
                check_rows(&several[how.sample_index]);
                assert_same_answer(&alone, &several[how.sample_index]);
                assert_same_rows(&alone, &several[how.sample_index]);
                asked_free(&several[how.sample_index]);
        }
        asked_free(&alone);
        question_rig_stop(&rig);
}

/* The rows of a part of a stream, from this token on, are those of the whole. */
static void assert_rest(const struct asked *whole, const struct asked *rest)
{
        uint32_t from = rest->first - whole->first;
        struct asked part = *whole;

        assert_in_range(from, 1, whole->token_count - 1);
        assert_int_equal(from + rest->token_count, whole->token_count);
        assert_memory_equal(rest->tokens, whole->tokens + from,
                            rest->token_count * sizeof(*rest->tokens));
        part.rows += from;
        part.row_count -= from;
        assert_same_rows(&part, rest);
}

/* The fork has the sample index of its parent, so it draws the same tokens. */
static void a_fork_has_rows_as_its_parent_has(void **state)
{
        const struct smv_fork fork = { SMV_SIZE(smv_fork), .count = 1, .sample_index = 7 };
        struct asked both[2] = { { .keeps_rows = true }, { .keeps_rows = true } };
        struct smv_generate how = with_rows(5, 40);
        struct question_rig rig = question_rig_start(state);

        how.sample_index = 7;
        /* More than the ring has space for: it cannot end before it is read. */
        how.max_tokens = 1500;
        asked_begin(rig.client, &how, &both[0]);
        while (both[0].token_count < 30)
                assert_non_null(asked_hear_one(rig.client, both, 1, TIMEOUT_MS));
        assert_int_equal(smv_fork(rig.client, both[0].stream, &fork, &both[1].stream), 0);
        asked_hear(rig.client, both, 2);
        check_rows(&both[0]);
        check_rows(&both[1]);
        assert_rest(&both[0], &both[1]);
        asked_free(&both[0]);
        asked_free(&both[1]);
        question_rig_stop(&rig);
}

/* Reads some tokens, leaves, and attaches to the rest; then to all of it. */
static void a_resumable_stream_has_its_rows_wherever_it_is_read(void **state)
{
        struct asked whole = { .keeps_rows = true }, read = { .keeps_rows = true };
        struct smv_generate how = with_rows(5, 20);
        struct question_rig rig = question_rig_start(state);
        struct smv_client *other = connect_socket(rig.fixture);
        uint64_t resume_id;
        uint32_t next = 0;

        asked_run(rig.client, &how, &whole);
        how.keep_ms = 600000;
        asked_begin(rig.client, &how, &read);
        resume_id = smv_resume_id(rig.client, read.stream);
        while (read.token_count < 20) {
                const struct asked *one = asked_hear_one(rig.client, &read, 1, TIMEOUT_MS);

                assert_non_null(one);
                next = one->sequence + 1;
        }
        assert_int_equal(smv_detach(rig.client, read.stream), 0);
        assert_int_equal(smv_attach(other, resume_id, next, &read.stream), 0);
        asked_hear(other, &read, 1);
        assert_same_answer(&whole, &read);
        assert_same_rows(&whole, &read);
        asked_free(&read);
        assert_int_equal(smv_attach(rig.client, resume_id, 0, &read.stream), 0);
        asked_hear(rig.client, &read, 1);
        assert_same_answer(&whole, &read);
        assert_same_rows(&whole, &read);
        assert_int_equal(smv_drop(rig.client, resume_id), 0);
        asked_free(&whole);
        asked_free(&read);
        smv_close(other);
        question_rig_stop(&rig);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(rows_have_the_entries_of_logprobs),
                DAEMON_TEST(shorter_rows_are_the_beginning_of_longer_ones),
                DAEMON_TEST(a_row_is_that_before_all_rules_of_the_request),
                DAEMON_TEST(whole_rows_agree_with_their_entries),
                DAEMON_TEST(a_whole_row_needs_no_likeliest_tokens),
                DAEMON_TEST(a_client_that_takes_the_largest_logit_is_greedy),
                DAEMON_TEST(rows_over_the_socket_are_the_same),
                DAEMON_TEST(each_of_several_answers_has_its_rows),
                DAEMON_TEST(a_fork_has_rows_as_its_parent_has),
                DAEMON_TEST(a_resumable_stream_has_its_rows_wherever_it_is_read),
        };

        require_env_paths(needed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
