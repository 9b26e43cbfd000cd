/*
 * The share of the KV pool that a user has: `status` reports it, shared blocks are charged once, no
 * user may have more than the configured limit, and a user that caches much does not evict a user
 * that caches little.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/e2e/other-user.h"
#include "tests/e2e/honest-client.h"

#define ALICE 65533u
#define BOB   65531u

/* A pool of 128 blocks of 16 KiB. */
#define SMALL MANY_CONNECTS, "--threads", "1", "--ctx", "2048", "--kv-bytes", "2M"

static uint32_t blocks_of(uint32_t positions)
{
        return (positions + 15) / 16;
}

static void wait_until(struct raw_client *client, const char *path, uint64_t number)
{
        uint64_t end = now_ms() + TIMEOUT_MS;

        while (raw_client_status(client, path) != number) {
                assert_true(now_ms() < end);
                sleep_ms(2);
        }
}

/* Begins `streams` streams of it, with many log-probabilities; returns the first one's id. */
static uint32_t ask(struct raw_client *client, const uint32_t *tokens, size_t count, uint32_t most,
                    uint32_t streams)
{
        uint32_t id = client->last_id + 1;

        client->last_id += streams;
        raw_client_send_frame(client, "op=s id=u tokens=I max_tokens=u ignore_eos=y n=u logprobs=u",
                              "generate", id, tokens, count, most, 1, streams, LOGPROBS_MOST - 1);
        return id;
}

/*
 * Sends a request and does not read, so that all of its streams stall before any of them ends.
 * Then its user must have `blocks` blocks.  Then the streams are cancelled.
 */
static void expect_while_it_runs(const struct daemon_fixture *fixture, struct raw_client *witness,
                                 uint32_t prompt, uint32_t most, uint32_t streams, uint64_t blocks)
{
        struct raw_client *client = raw_client_greet_over(fixture, RAW_CLIENT_KICK);
        uint32_t tokens[OTHER_USER_PROMPT_MAX], id;

        random_prompt(tokens, prompt);
        id = ask(client, tokens, prompt, most, streams);
        wait_until(witness, "requests.stalled", streams);
        assert_int_equal(raw_client_status(witness, "users.0.blocks"), blocks);
        assert_true(raw_client_await_reply(client, id)->ok);
        for (uint32_t s = id; s < id + streams; s++)
                assert_true(raw_client_call(client, "op=s stream=u", "cancel", s)->ok);
        for (uint32_t s = id; s < id + streams; s++)
                raw_client_await_end(client, s);
        raw_client_close(client);
}

/* If there is only one user, every cached block is charged to it. */
static void blocks_are_charged_only_while_a_request_runs(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *witness;
        uint64_t cached;

        START_DAEMON(fixture, SMALL, "--ring-bytes", "64K", "--admission-normal", "reserve");
        witness = raw_client_greet(fixture);
        assert_int_equal(raw_client_status(witness, "users.0.blocks"), 0);
        cached = raw_client_status(witness, "users.0.cached_blocks");
        assert_int_equal(cached, raw_client_status(witness, "blocks.cached"));

        /* The stream's worst case: all tokens but its last. */
        expect_while_it_runs(fixture, witness, 100, 1100, 1, blocks_of(100 + 1100 - 1));
        wait_until(witness, "users.0.blocks", 0);
        assert_true(raw_client_status(witness, "users.0.cached_blocks") >= cached + 100 / 16);
        assert_int_equal(raw_client_status(witness, "users.0.cached_blocks"),
                         raw_client_status(witness, "blocks.cached"));
        raw_client_close(witness);
        fixture_stop(fixture);
}

/*
 * 640 tokens are 40 blocks, and each stream needs 10 of its own for 160 more.  Without sharing each
 * stream would need 50, and the pool has not so many.
 */
static void streams_with_a_common_prompt_are_charged_once_for_it(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *witness;

        START_DAEMON(fixture, SMALL, "--ring-bytes", "64K", "--admission-normal", "reserve");
        witness = raw_client_greet(fixture);
        assert_in_range(raw_client_status(witness, "blocks.total"), 40 + 8 * 10, 8 * 50 - 1);
        expect_while_it_runs(fixture, witness, 640, 161, 8, 40 + 8 * 10);
        wait_until(witness, "users.0.blocks", 0);
        raw_client_close(witness);
        fixture_stop(fixture);
}

static void refuses_a_request_over_the_block_quota_and_states_the_limit(void **state)
{
        uint32_t tokens[OTHER_USER_PROMPT_MAX], id, own, most;
        struct daemon_fixture *fixture = *state;
        struct reply *reply;
        struct raw_client *client;
        char said[160];

        START_DAEMON(fixture, SMALL, "--uid-blocks-percent", "25");
        client = raw_client_greet(fixture);
        assert_int_equal(raw_client_status(client, "limits.uid_blocks_percent"), 25);
        own = (uint32_t)raw_client_status(client, "blocks.total") / 4;
        assert_in_range(own, 2, OTHER_USER_PROMPT_MAX / 16);
        most = 16 * own - 10 + 1; /* after 10 tokens; the last one is not read */
        random_prompt(tokens, OTHER_USER_PROMPT_MAX);

        id = ask(client, tokens, 10, most + 1, 1);
        reply = raw_client_await_reply(client, id);
        assert_false(reply->ok);
        assert_string_equal(reply->error, "quota");
        assert_string_equal(reply->field, "max_tokens");
        snprintf(said, sizeof(said),
                 "the prompt has 10 tokens and %u may follow; that takes %u blocks, and one user "
                 "may have %u (uid_blocks_percent)",
                 most + 1, own + 1, own);
        assert_string_equal(reply->message, said);

        id = ask(client, tokens, 10, most, 1);
        assert_true(raw_client_await_reply(client, id)->ok);
        assert_int_equal(raw_client_await_end(client, id)->token_count, most);

        /* A request without a limit gets as many tokens as fit. */
        reply = raw_client_call(client, "op=s tokens=I", "generate", tokens,
                                (size_t)(16 * own - 7));
        assert_true(reply->ok);
        assert_int_equal(reply_uint(reply, "max_tokens"), 7);
        raw_client_await_end(client, client->last_id);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* ---- two users ---- */

static struct daemon_fixture *open_to_all(void **state)
{
        struct daemon_fixture *fixture = *state;

        assert_int_equal(chmod(fixture->directory, 0711), 0);
        return fixture;
}

static uint32_t ask_as(const struct other_user *other_user, const struct question *question)
{
        other_user_send(other_user, question);
        return other_user_receive(other_user).cached_tokens;
}

/* Runs until everything in the pool could have been evicted twice. */
static void flood(struct raw_client *client, const struct other_user *other_user)
{
        uint64_t blocks = raw_client_status(client, "blocks.total");
        uint64_t until = raw_client_status(client, "blocks.evicted") + 2 * blocks;
        struct question question = { .count = 400, .max_tokens = 1 };

        while (raw_client_status(client, "blocks.evicted") < until) {
                random_prompt(question.tokens, question.count);
                ask_as(other_user, &question);
        }
}

/* How much of a short prompt its user finds after another user's prompts have gone through the
 * pool. */
static uint32_t found_after_a_flood(struct daemon_fixture *fixture)
{
        struct question question = { .count = 100, .max_tokens = 1 };
        struct raw_client *client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        struct other_user alice, bob;
        uint32_t found;

        random_prompt(question.tokens, question.count);
        alice = other_user_start(fixture, ALICE, 0);
        bob = other_user_start(fixture, BOB, 0);
        assert_int_equal(ask_as(&alice, &question), 0);
        assert_int_equal(ask_as(&alice, &question), 99); /* the last one is read again */
        flood(client, &bob);
        found = ask_as(&alice, &question);
        other_user_stop(&alice);
        other_user_stop(&bob);
        raw_client_close(client);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
        return found;
}

static void a_user_that_caches_much_does_not_evict_one_that_caches_little(void **state)
{
        struct daemon_fixture *fixture = open_to_all(state);

        START_DAEMON(fixture, SMALL, "--socket-mode", "0666");
        assert_int_equal(found_after_a_flood(fixture), 99);
}

/* If every user may cache all of the pool, the oldest blocks are evicted first, as for one user. */
static void without_a_cache_limit_the_oldest_blocks_are_evicted_first(void **state)
{
        struct daemon_fixture *fixture = open_to_all(state);

        START_DAEMON(fixture, SMALL, "--socket-mode", "0666", "--uid-cached-percent", "100");
        assert_int_equal(found_after_a_flood(fixture), 0);
}

/* The index of this user in `charges`; fails if it is not there. */
static uint32_t row_of(const struct reply *reply, uint32_t uid)
{
        char path[48];

        for (uint32_t i = 0;; i++) {
                snprintf(path, sizeof(path), "status.users.%u.uid", i);
                if (reply_uint(reply, path) == uid)
                        return i;
        }
}

static uint64_t charge(struct raw_client *client, uint32_t uid, const char *what)
{
        struct reply *reply = raw_client_call(client, "op=s", "status");
        char path[64];

        snprintf(path, sizeof(path), "status.users.%u.%s", row_of(reply, uid), what);
        return reply_uint(reply, path);
}

/* Root sees all rows.  Another user sees only its own row, as always. */
static void root_sees_the_cached_blocks_of_disconnected_users(void **state)
{
        const struct question look = { .action = USER_READS_STATUS, .count = 1 };
        struct question question = { .count = 100, .max_tokens = 1 };
        struct daemon_fixture *fixture = open_to_all(state);
        struct other_user alice, bob;
        struct answer answer;
        struct raw_client *client;
        const char *row;

        START_DAEMON(fixture, SMALL, "--socket-mode", "0666");
        client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        random_prompt(question.tokens, question.count);
        alice = other_user_start(fixture, ALICE, 0);
        ask_as(&alice, &question);
        other_user_stop(&alice);
        await_other_users_gone(fixture);
        assert_int_equal(charge(client, ALICE, "connections"), 0);
        assert_int_equal(charge(client, ALICE, "blocks"), 0);
        assert_int_equal(charge(client, ALICE, "cached_blocks"), blocks_of(100));

        bob = other_user_start(fixture, BOB, 0);
        other_user_send(&bob, &look);
        answer = other_user_receive(&bob);
        row = strstr(answer.status, "\"cached_blocks\":0");
        assert_non_null(row);
        assert_null(strstr(row + 1, "\"cached_blocks\""));
        other_user_stop(&bob);
        raw_client_close(client);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(blocks_are_charged_only_while_a_request_runs),
                DAEMON_TEST(streams_with_a_common_prompt_are_charged_once_for_it),
                DAEMON_TEST(refuses_a_request_over_the_block_quota_and_states_the_limit),
        };
        const struct CMUnitTest of_two_users[] = {
                DAEMON_TEST(a_user_that_caches_much_does_not_evict_one_that_caches_little),
                DAEMON_TEST(without_a_cache_limit_the_oldest_blocks_are_evicted_first),
                DAEMON_TEST(root_sees_the_cached_blocks_of_disconnected_users),
        };
        int failed;

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        random_begin();
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        if (can_become_another_user())
                failed += cmocka_run_group_tests(of_two_users, NULL, NULL);
        return failed;
}
