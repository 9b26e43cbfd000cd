/*
 * Mirostat, which has the only state of a draw that is no function of the tokens: it stays with a
 * stream, wherever that goes on.
 */
#include <samovar/client.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/honest-client.h"

#define TOKENS 300u

struct told {
        uint32_t first; /* position of the first token */
        uint32_t count, tokens[1600];
        double surprise; /* the sum over all tokens, of the whole distribution, in bits */
        struct smv_event end;
};

static struct smv_client *connect_library(const struct daemon_fixture *fixture)
{
        const struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                           .transport = SMV_TRANSPORT_RING,
                                           .ring_bytes = SMV_RING_BYTES_MIN };
        struct smv_client *client;

        assert_int_equal(smv_connect(&where, &client), 0);
        return client;
}

static struct smv_generate make_ask(float tau)
{
        return (struct smv_generate){ SMV_SIZE(smv_generate),
                                      .prompt = "Tea",
                                      .max_tokens = TOKENS,
                                      .ignore_eos = 1,
                                      .seed = 7,
                                      .temperature = 1,
                                      .set = SMV_SET_SEED | SMV_SET_TEMPERATURE | SMV_SET_LOGPROBS,
                                      .mirostat_tau = tau };
}

static void tell(struct told *told, const struct smv_event *event)
{
        if (event->kind == SMV_EVENT_END) {
                told->end = *event;
                return;
        }
        if (!told->count && event->token_count)
                told->first = event->position;
        assert_true(told->count + event->token_count <= 1600);
        for (size_t i = 0; i < event->token_count; i++) {
                told->tokens[told->count++] = event->tokens[i];
                if (event->logprobs)
                        told->surprise -= (double)event->logprobs[i].logprob / log(2);
        }
}

/* Reads all streams from `first` on. */
static void read_all(struct smv_client *client, uint32_t first, struct told *told, uint32_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        for (uint32_t left = count; left;) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                assert_in_range(event.stream, first, first + count - 1);
                tell(&told[event.stream - first], &event);
                left -= event.kind == SMV_EVENT_END;
        }
}

static struct told ask(struct smv_client *client, const struct smv_generate *options)
{
        struct told told = { 0 };
        uint32_t stream;

        assert_int_equal(smv_generate(client, options, &stream), 0);
        read_all(client, stream, &told, 1);
        return told;
}

static void assert_same(const struct told *a, const struct told *b)
{
        assert_int_equal(a->count, b->count);
        assert_memory_equal(a->tokens, b->tokens, a->count * sizeof(*a->tokens));
}

/* ---- tests ---- */

static void surprise_goes_where_it_is_asked_to(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_accepted accepted = { SMV_SIZE(smv_accepted) };
        struct told greedy, least, free_one, most, half;
        struct smv_generate options;
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = connect_library(fixture);
        options = make_ask(0);
        free_one = ask(client, &options);
        options.temperature = 0;
        greedy = ask(client, &options);
        options = make_ask(1e-6f);
        least = ask(client, &options);
        assert_same(&least, &greedy);
        options = make_ask(100);
        most = ask(client, &options);
        assert_same(&most, &free_one);
        smv_accepted(client, &accepted);
        assert_string_equal(accepted.chain, "mirostat draw");
        options = make_ask((float)(free_one.surprise / TOKENS / 2));
        half = ask(client, &options);
        printf("# bits a token: greedy %.3f, half %.3f, free %.3f\n", greedy.surprise / TOKENS,
               half.surprise / TOKENS, free_one.surprise / TOKENS);
        assert_true(half.surprise > greedy.surprise && half.surprise < free_one.surprise);
        smv_close(client);
        fixture_stop(fixture);
}

static void each_of_several_answers_has_its_own_state(void **state)
{
        struct daemon_fixture *fixture = *state;
        static struct told several[4];
        struct smv_generate options = make_ask(2);
        struct smv_client *client;
        uint32_t first;

        START_DAEMON(fixture, "--threads", "1");
        client = connect_library(fixture);
        options.n = 4;
        memset(several, 0, sizeof(several));
        assert_int_equal(smv_generate(client, &options, &first), 0);
        read_all(client, first, several, 4);
        options.n = 0;
        for (options.sample_index = 0; options.sample_index < 4; options.sample_index++) {
                struct told alone = ask(client, &options);

                assert_same(&alone, &several[options.sample_index]);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* The fork has the sample index of its parent, so it draws as its parent does. */
static void a_fork_begins_with_the_state_of_its_parent(void **state)
{
        const struct smv_fork how = { SMV_SIZE(smv_fork), .count = 1, .sample_index = 3 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        struct smv_generate options = make_ask(2);
        static struct told told[2];
        uint32_t parent, fork, at;
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = connect_library(fixture);
        memset(told, 0, sizeof(told));
        options.sample_index = 3;
        /* More than the ring has space for: it cannot end before it is read. */
        options.max_tokens = 1500;
        assert_int_equal(smv_generate(client, &options, &parent), 0);
        while (told[0].count < 50) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                tell(&told[0], &event);
        }
        assert_int_equal(smv_fork(client, parent, &how, &fork), 0);
        assert_int_equal(fork, parent + 1);
        read_all(client, parent, told, 2);
        at = told[1].first - told[0].first;
        printf("# forked at token %u\n", at);
        assert_true(at >= 50);
        assert_int_equal(at + told[1].count, told[0].count);
        assert_memory_equal(told[1].tokens, told[0].tokens + at, told[1].count * sizeof(uint32_t));
        smv_close(client);
        fixture_stop(fixture);
}

/* The stream has the only slot, and cannot end while nobody reads its ring. */
static void a_preempted_stream_keeps_its_state(void **state)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        struct smv_generate options = make_ask(2), other = make_ask(0);
        static struct told plain, told;
        struct smv_client *slow, *client;
        uint32_t stream;

        START_DAEMON(fixture, "--threads", "1", "--max-seqs", "1");
        slow = connect_library(fixture);
        client = connect_library(fixture);
        options.max_tokens = 1500;
        options.priority = SMV_PRIORITY_BACKGROUND;
        plain = ask(client, &options);
        memset(&told, 0, sizeof(told));
        assert_int_equal(smv_generate(slow, &options, &stream), 0);
        assert_int_equal(smv_next(slow, &event, TIMEOUT_MS), 1);
        tell(&told, &event);
        other.priority = SMV_PRIORITY_INTERACTIVE;
        other.max_tokens = 3;
        (void)ask(client, &other);
        read_all(slow, stream, &told, 1);
        assert_true(told.end.preemptions > 0);
        assert_same(&told, &plain);
        smv_close(slow);
        smv_close(client);
        fixture_stop(fixture);
}

static void a_fork_makes_no_other_cut(void **state)
{
        const struct smv_fork how = { SMV_SIZE(smv_fork), .count = 1, .top_k = 40 };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct daemon_fixture *fixture = *state;
        struct smv_generate options = make_ask(2);
        uint32_t parent, fork;
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = connect_library(fixture);
        options.max_tokens = 1500;
        assert_int_equal(smv_generate(client, &options, &parent), 0);
        assert_true(smv_fork(client, parent, &how, &fork) < 0);
        smv_error(client, &problem);
        assert_int_equal(problem.code, SMV_BAD_FIELD);
        assert_string_equal(problem.field, "top_k");
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(surprise_goes_where_it_is_asked_to),
                DAEMON_TEST(each_of_several_answers_has_its_own_state),
                DAEMON_TEST(a_fork_begins_with_the_state_of_its_parent),
                DAEMON_TEST(a_preempted_stream_keeps_its_state),
                DAEMON_TEST(a_fork_makes_no_other_cut),
        };

        require_env_paths(needed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
