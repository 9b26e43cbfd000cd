/*
 * Beam search of the library, through a real daemon, finds what transformers finds with the same
 * file.  contrib/reference/beams.py wrote the goldens.
 */
#include <errno.h>
#include <math.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/daemon-fixture.h"

#define BEAMS_MAX  16u
#define TOKENS_MAX 256u
#define NEAR       2e-4 /* in score; beams that are nearer than this may change places */

struct search {
        unsigned width, max_tokens, beam_count;
        float penalty;
        size_t prompt_count;
        uint32_t prompt[TOKENS_MAX];
        struct found {
                double score;
                int ended;
                size_t count;
                uint32_t tokens[TOKENS_MAX];
        } beams[BEAMS_MAX];
};

static void read_tokens(FILE *in, uint32_t *tokens, size_t count)
{
        assert_true(count <= TOKENS_MAX);
        for (size_t i = 0; i < count; i++)
                assert_int_equal(fscanf(in, "%u", &tokens[i]), 1);
}

static bool read_search(FILE *in, struct search *s)
{
        if (fscanf(in, " search %u %f %u %u", &s->width, &s->penalty, &s->max_tokens,
                   &s->beam_count) != 4)
                return false;
        assert_true(s->beam_count <= BEAMS_MAX);
        assert_int_equal(fscanf(in, " prompt %zu", &s->prompt_count), 1);
        read_tokens(in, s->prompt, s->prompt_count);
        for (unsigned i = 0; i < s->beam_count; i++) {
                struct found *beam = &s->beams[i];

                assert_int_equal(
                        fscanf(in, " way %lf %d %zu", &beam->score, &beam->ended, &beam->count), 3);
                read_tokens(in, beam->tokens, beam->count);
        }
        return true;
}

static struct smv_client *connect_library(const struct daemon_fixture *fixture)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

static bool is_same(const struct found *wanted, const struct smv_beam_result *found)
{
        return wanted->count == found->token_count && wanted->ended == found->ended &&
               !memcmp(wanted->tokens, found->tokens, wanted->count * sizeof(uint32_t));
}

/* A beam that is not in its expected place has a neighbour that is as good. */
static bool is_tie(const struct search *s, unsigned at)
{
        double near = NEAR * fmax(1, fabs(s->beams[at].score));

        return (at && s->beams[at - 1].score - s->beams[at].score < near) ||
               (at + 1 < s->beam_count && s->beams[at].score - s->beams[at + 1].score < near);
}

static void compare(struct smv_client *client, const struct search *s, unsigned *ties)
{
        struct smv_generate start = { SMV_SIZE(smv_generate), .tokens = s->prompt,
                                      .token_count = s->prompt_count, .max_tokens = s->max_tokens };
        struct smv_beam beam = { SMV_SIZE(smv_beam), .start = &start, .width = s->width,
                                 .length_penalty = s->penalty };
        const struct smv_beam_result *found;
        size_t count;

        if (smv_beam(client, &beam, &found, &count)) {
                struct smv_problem problem = { SMV_SIZE(smv_problem) };

                smv_error(client, &problem);
                fail_msg("%s", problem.message);
        }
        assert_int_equal(count, s->beam_count);
        for (unsigned i = 0; i < count; i++) {
                assert_true(fabs(found[i].score - s->beams[i].score) <
                            NEAR * fmax(1, fabs(s->beams[i].score)));
                if (is_same(&s->beams[i], &found[i]))
                        continue;
                assert_true(is_tie(s, i));
                ++*ties;
        }
}

static void beam_search_finds_the_same_beams_as_transformers(void **state)
{
        struct daemon_fixture *fixture = *state;
        static struct search search;
        unsigned searches = 0, ties = 0;
        struct smv_client *client;
        char path[512];
        FILE *in;

        snprintf(path, sizeof(path), "%s/tests/golden/shipped/beams.txt", env_path("SOURCES"));
        in = fopen(path, "r");
        assert_non_null(in);
        /* the cpu rounds rows to bytes, and finds other beams where scores are close */
        START_DAEMON(fixture, "--kv", "f32", "--backend", "ref");
        client = connect_library(fixture);
        while (read_search(in, &search)) {
                /* of each kind; there rows are expensive */
                if (!fixture->sanitized || searches % 4 == 0)
                        compare(client, &search, &ties);
                searches++;
        }
        assert_true(feof(in));
        assert_int_equal(searches, 60);
        print_message("# %u of 60 searches have ways as good as each other\n", ties);
        assert_true(ties <= 3);
        fclose(in);
        smv_close(client);
        fixture_stop(fixture);
}

/* The sum of the log-probabilities of these tokens behind the prompt, read as one prompt. */
static double sum_of_scores(struct smv_client *client, const uint32_t *tokens, size_t count,
                            size_t prompt_count)
{
        struct smv_generate options = { SMV_SIZE(smv_generate), .tokens = tokens,
                                        .token_count = count,
                                        .set = SMV_SET_MAX_TOKENS | SMV_SET_PROMPT_LOGPROBS };
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream, scored = 0;
        double sum = 0;

        assert_int_equal(smv_generate(client, &options, &stream), 0);
        while (smv_next(client, &event, TIMEOUT_MS) > 0 && event.kind != SMV_EVENT_END) {
                assert_int_equal(event.kind, SMV_EVENT_PROMPT_LOGPROBS);
                if (event.position >= prompt_count)
                        sum += (double)event.logprobs->logprob;
                scored++;
        }
        assert_int_equal(event.code, SMV_OK);
        assert_int_equal(scored, count - 1);
        return sum;
}

/* With the end token that an ended beam has behind its tokens. */
static void score_beams(struct smv_client *client, const struct search *s, uint32_t end_token)
{
        uint32_t tokens[2 * TOKENS_MAX + 1];

        memcpy(tokens, s->prompt, s->prompt_count * sizeof(*tokens));
        for (unsigned i = 0; i < s->beam_count; i++) {
                const struct found *beam = &s->beams[i];
                size_t length = beam->count + (size_t)beam->ended;
                double sum, score;

                memcpy(tokens + s->prompt_count, beam->tokens, beam->count * sizeof(*tokens));
                tokens[s->prompt_count + beam->count] = end_token;
                sum = sum_of_scores(client, tokens, s->prompt_count + length, s->prompt_count);
                score = sum / pow((double)length, (double)s->penalty);
                if (!(fabs(score - beam->score) < NEAR * fmax(1, fabs(beam->score))))
                        fail_msg("a beam has the score %g, and %g by transformers", score,
                                 beam->score);
        }
}

static void logprobs_of_a_prompt_are_those_of_transformers(void **state)
{
        struct smv_model model = { SMV_SIZE(smv_model) };
        struct daemon_fixture *fixture = *state;
        static struct search search;
        struct smv_client *client;
        unsigned searches = 0;
        char path[512];
        FILE *in;

        snprintf(path, sizeof(path), "%s/tests/golden/shipped/beams.txt", env_path("SOURCES"));
        in = fopen(path, "r");
        assert_non_null(in);
        START_DAEMON(fixture, "--kv", "f32", "--backend", "ref");
        client = connect_library(fixture);
        assert_int_equal(smv_model(client, 0, &model), 0);
        for (; read_search(in, &search); searches++)
                if (searches % (fixture->sanitized ? 30 : 5) == 0)
                        score_beams(client, &search, model.end_tokens[0]);
        assert_int_equal(searches, 60);
        fclose(in);
        smv_close(client);
        fixture_stop(fixture);
}

static void beam_search_from_a_handle_leaves_the_handle_unchanged(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate opening = { SMV_SIZE(smv_generate),
                                        .prompt = "Once upon a time there was a" };
        struct smv_generate start = { SMV_SIZE(smv_generate), .max_tokens = 8 };
        struct smv_beam beam = { SMV_SIZE(smv_beam), .start = &start, .width = 3, .count = 1 };
        const struct smv_beam_result *found;
        struct smv_client *client;
        size_t count, before, after;
        const char *text;
        uint32_t whole[64];
        size_t bytes;

        START_DAEMON(fixture, NULL);
        client = connect_library(fixture);
        assert_int_equal(smv_handle_open(client, &opening, &start.handle, &before), 0);
        assert_int_equal(smv_beam(client, &beam, &found, &count), 0);
        assert_int_equal(count, 1);
        assert_in_range(found->token_count, 1, 8);
        assert_true(found->text_bytes > 1 && *found->text == ' ');

        /* The best beam alone is what the handle would generate itself. */
        beam.width = 1;
        assert_int_equal(smv_beam(client, &beam, &found, &count), 0);
        memcpy(whole, found->tokens, found->token_count * sizeof(*whole));
        count = found->token_count;
        start.set = SMV_SET_TEMPERATURE;
        {
                struct smv_event event = { SMV_SIZE(smv_event) };
                uint32_t stream;
                size_t at = 0;

                assert_int_equal(smv_handle_append_text(client, start.handle, "", 0, &after), 0);
                assert_int_equal(after, before);
                assert_int_equal(smv_generate(client, &start, &stream), 0);
                while (smv_next(client, &event, -1) > 0 && event.kind != SMV_EVENT_END)
                        for (size_t i = 0; i < event.token_count && at < count; i++)
                                assert_int_equal(event.tokens[i], whole[at++]);
                assert_int_equal(at, count);
        }
        assert_int_equal(smv_detokenize(client, NULL, whole, count, &text, &bytes), 0);
        smv_close(client);
        fixture_stop(fixture);
}

static void beam_search_refuses_invalid_options_and_a_busy_client(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate start = { SMV_SIZE(smv_generate), .prompt = "Once", .max_tokens = 4 };
        struct smv_beam beam = { SMV_SIZE(smv_beam), .start = &start, .width = 17 };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_event event = { SMV_SIZE(smv_event) };
        const struct smv_beam_result *found;
        struct smv_client *client;
        uint32_t stream;
        size_t count;

        START_DAEMON(fixture, NULL);
        client = connect_library(fixture);
        assert_int_equal(smv_beam(client, &beam, &found, &count), -EINVAL);
        smv_error(client, &problem);
        assert_non_null(strstr(problem.message, "width is 17"));
        assert_string_equal(problem.field, "width");
        beam.width = 2;
        start.model = "nobody";
        assert_int_equal(smv_beam(client, &beam, &found, &count), -ENOENT);
        start.model = NULL;
        start.max_tokens = 1u << 30; /* no more than the model's context */
        assert_int_equal(smv_beam(client, &beam, &found, &count), 0);
        start.max_tokens = 4;
        assert_int_equal(smv_generate(client, &start, &stream), 0);
        assert_int_equal(smv_beam(client, &beam, &found, &count), -EBUSY);
        while (smv_next(client, &event, -1) > 0 && event.kind != SMV_EVENT_END)
                ;
        assert_int_equal(smv_beam(client, &beam, &found, &count), 0);
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "SOURCES", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(beam_search_finds_the_same_beams_as_transformers),
                DAEMON_TEST(logprobs_of_a_prompt_are_those_of_transformers),
                DAEMON_TEST(beam_search_from_a_handle_leaves_the_handle_unchanged),
                DAEMON_TEST(beam_search_refuses_invalid_options_and_a_busy_client),
        };
        char path[512];

        require_env_paths(needed);
        snprintf(path, sizeof(path), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        setenv("TOY_MODEL", path, 1); /* it says more than the toy model */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
