/*
 * Admission by need: requests begin when what they need now is there, and take blocks as they grow.
 * If the pool is too small for all of them after all, some are preempted, and no client sees that
 * in its tokens.  `list` says why requests wait, and END says how often a stream was preempted.
 */
#include <stdio.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define STREAMS 24u
/* The quick model has blocks of 512 bytes: 512 of them. */
#define POOL        "--kv-bytes", "256K", "--max-seqs", "64", "--ring-bytes", "64K"
#define POOL_BLOCKS 512u
#define ASK_MOST    3500u

static const struct want much = { .prompt = "The samovar",
                                  .max_tokens = ASK_MOST,
                                  .temperature = 1,
                                  .ignore_eos = true,
                                  .logprobs = LOGPROBS_MOST };

static void start(struct daemon_fixture *fixture, const char *admission)
{
        START_DAEMON(fixture, "--model", make_quick_model(fixture, "4096"), POOL, "--threads", "1",
                     "--admission-normal", admission, "--stall-preempt-ms", "86400000");
}

/* The client does not read, so its streams make some tokens and then stall. */
static struct raw_client *ask_for_much(const struct daemon_fixture *fixture)
{
        struct raw_client *client = raw_client_greet(fixture);

        for (uint32_t i = 0; i < STREAMS; i++) {
                struct want want = much;

                want.seed = i;
                raw_client_generate(client, &want);
        }
        return client;
}

static void requests_that_ask_for_much_and_need_little_run_at_once(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        start(fixture, "learned");
        client = ask_for_much(fixture);
        fixture_await_status(fixture, "requests.running", STREAMS);
        assert_int_equal(fixture_status(fixture, "requests.waiting"), 0);
        assert_int_equal(fixture_status(fixture, "requests.blocks_lost"), 0);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* The rows of `list`. */
struct rows {
        struct raw_client *client;
        struct reply *reply;
        size_t count;
};

static struct rows list(const struct daemon_fixture *fixture)
{
        struct rows rows = { .client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET) };

        rows.reply = raw_client_call(rows.client, "op=s", "list");
        rows.count = reply_at(rows.reply, "work.streams")->via.array.size;
        return rows;
}

static const msgpack_object *at_row(const struct rows *rows, size_t row, const char *key)
{
        char path[64];

        snprintf(path, sizeof(path), "work.streams.%zu.%s", row, key);
        return reply_at(rows->reply, path);
}

static uint64_t number_at(const struct rows *rows, size_t row, const char *key)
{
        assert_non_null(at_row(rows, row, key));
        return at_row(rows, row, key)->via.u64;
}

static bool has_word(const struct rows *rows, size_t row, const char *key, const char *word)
{
        const msgpack_object *found = at_row(rows, row, key);

        assert_non_null(found);
        return found->via.str.size == strlen(word) &&
               !memcmp(found->via.str.ptr, word, found->via.str.size);
}

/* How many streams wait for this; `status` says the same.  Sets ret_row to the last of them. */
static uint32_t waiting_for(const struct daemon_fixture *fixture, const struct rows *rows,
                            const char *what, size_t *ret_row)
{
        uint32_t count = 0;
        char path[64];

        for (size_t row = 0; row < rows->count; row++) {
                if (!has_word(rows, row, "waits_for", what))
                        continue;
                *ret_row = row;
                count++;
        }
        snprintf(path, sizeof(path), "waits.%s", what);
        assert_int_equal(fixture_status(fixture, path), count);
        return count;
}

/* Does `samovar ps` or `samovar status` say this? */
static bool says(struct daemon_fixture *fixture, const char *command, const char *words)
{
        struct run_result ran = RUN(fixture, NULL, env_path("SAMOVAR"), command);
        bool said = strstr(ran.out, words);

        assert_int_equal(ran.status, 0);
        if (!said)
                printf("# not \"%s\" but:\n%s", words, ran.out);
        run_result_free(&ran);
        return said;
}

static void assert_said(struct daemon_fixture *fixture, const char *command, const char *words)
{
        assert_true(says(fixture, command, words));
}

/*
 * The first stream is over and stays in the pool.  Of the others two begin, with 220 blocks each,
 * and the third needs as many.
 */
static void requests_that_reserve_run_as_far_as_their_worst_cases_fit(void **state)
{
        const struct want first = { .prompt = "Another text",
                                    .max_tokens = 100,
                                    .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        uint32_t needs = (12 + ASK_MOST - 1 + 15) / 16;
        struct raw_client *client;
        struct rows rows;
        char words[128];
        size_t row;

        start(fixture, "reserve");
        client = raw_client_greet(fixture);
        raw_client_complete(client, &first);
        raw_client_close(client);
        client = ask_for_much(fixture);
        fixture_await_status(fixture, "requests.stalled", 2);
        fixture_await_status(fixture, "requests.waiting", STREAMS - 2);
        assert_int_equal(fixture_status(fixture, "requests.running"), 2);
        rows = list(fixture);
        assert_int_equal(waiting_for(fixture, &rows, "turn", &row), STREAMS - 3);
        assert_int_equal(waiting_for(fixture, &rows, "blocks", &row), 1);
        assert_int_equal(number_at(&rows, row, "needs"), needs);
        assert_int_equal(number_at(&rows, row, "free"), POOL_BLOCKS - 2 * needs);
        assert_in_range(number_at(&rows, row, "free_cached"), 1, POOL_BLOCKS - 2 * needs);
        assert_int_equal(number_at(&rows, row, "free_cached"),
                         fixture_status(fixture, "blocks.cached"));
        assert_int_equal(number_at(&rows, row, "free_cached_own"),
                         number_at(&rows, row, "free_cached"));
        assert_null(at_row(&rows, row, "expected"));
        snprintf(words, sizeof(words), " needs 220 blocks, 72 free (%u cached by its user)\n",
                 (unsigned)number_at(&rows, row, "free_cached"));
        assert_said(fixture, "ps", words);
        assert_said(fixture, "ps", " behind others\n");
        assert_said(fixture, "status", "\nwaiting    1 need blocks, 21 behind others\n");
        raw_client_close(rows.client);
        raw_client_close(client);
        fixture_stop(fixture);
}

/*
 * One request is held back by the forecast, and `ps` and `status` say the same about it as the
 * rows.  False: it changes at this moment.
 */
static bool is_held_back(struct daemon_fixture *fixture, const struct rows *rows)
{
        uint64_t running = fixture_status(fixture, "requests.running");
        uint32_t held = 0, turns = 0;
        char words[128];
        size_t row = 0;
        bool said;

        for (size_t i = 0; i < rows->count; i++) {
                turns += has_word(rows, i, "waits_for", "turn");
                if (!has_word(rows, i, "waits_for", "forecast"))
                        continue;
                row = i;
                held++;
        }
        if (held != 1 || running + 1 + turns != STREAMS)
                return false;
        assert_true(number_at(rows, row, "expected") > 128);
        assert_int_equal(number_at(rows, row, "pool"), 128);
        assert_int_equal(number_at(rows, row, "needs"), 0);
        assert_null(at_row(rows, row, "free"));
        snprintf(words, sizeof(words), " waits: the pool is expected to need %u blocks of 128\n",
                 (unsigned)number_at(rows, row, "expected"));
        said = says(fixture, "ps", words);
        snprintf(words, sizeof(words), "\nwaiting    1 would outgrow the pool, %u behind others\n",
                 turns);
        return says(fixture, "status", words) && said;
}

/* Each is expected to need 17 blocks of 128 before it is over, so a few run at once. */
static void a_request_that_the_forecast_holds_back_says_what_is_expected(void **state)
{
        struct daemon_fixture *fixture = *state;
        uint64_t end = now_ms() + TIMEOUT_MS;
        struct rows rows = { 0 };
        struct raw_client *client;
        struct want want = much;

        START_DAEMON(fixture, "--model", make_quick_model(fixture, "4096"), "--kv-bytes", "64K",
                     "--max-seqs", "64", "--ring-bytes", "64K", "--threads", "1",
                     "--stall-preempt-ms", "86400000");
        client = raw_client_greet(fixture);
        want.max_tokens = 1000;
        want.logprobs = 32; /* large records: the rings are full before the pool is */
        for (uint32_t i = 0; i < STREAMS; i++) {
                want.seed = i;
                raw_client_generate(client, &want);
        }
        fixture_await_status(fixture, "requests.open", STREAMS);
        do {
                assert_true(now_ms() < end);
                raw_client_close(rows.client);
                rows = list(fixture);
        } while (!is_held_back(fixture, &rows));
        assert_said(fixture, "status", "\nmargin     requests begin with room for answers longer");
        raw_client_close(rows.client);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* A user may have a quarter of the pool, which is two of these streams. */
static void a_request_over_its_users_share_says_what_its_user_has(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct want want = much;
        struct rows rows;
        size_t row;

        START_DAEMON(fixture, "--model", make_quick_model(fixture, "4096"), POOL, "--threads", "1",
                     "--admission-normal", "reserve", "--uid-blocks-percent", "25",
                     "--stall-preempt-ms", "86400000");
        client = raw_client_greet(fixture);
        want.max_tokens = 1000;
        for (uint32_t i = 0; i < 4; i++) {
                want.seed = i;
                raw_client_generate(client, &want);
        }
        fixture_await_status(fixture, "requests.stalled", 2);
        fixture_await_status(fixture, "requests.waiting", 2);
        rows = list(fixture);
        assert_int_equal(waiting_for(fixture, &rows, "share", &row), 1);
        assert_int_equal(number_at(&rows, row, "user_blocks"), 3 * 64);
        assert_int_equal(number_at(&rows, row, "user_blocks_max"), POOL_BLOCKS / 4);
        assert_int_equal(number_at(&rows, row, "user_slots"), 0);
        assert_int_equal(number_at(&rows, row, "user_slots_max"), 0);
        assert_said(fixture, "ps",
                    " others come first: its user would have 192 blocks, its share is 128\n");
        raw_client_close(rows.client);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* The sums over all ENDs are what `status` counts. */
static void assert_sums(const struct daemon_fixture *fixture, struct raw_client *client,
                        const uint32_t *ids)
{
        uint64_t preemptions = 0, blocks_lost = 0, recomputed = 0, restored = 0;

        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct smv_record_end *end = &raw_client_await_end(client, ids[i])->end;

                preemptions += end->preemptions;
                blocks_lost += end->blocks_lost;
                recomputed += end->recomputed;
                restored += end->restored;
        }
        printf("# %u preemptions, %u of them because the pool was full; %u positions again, %u "
               "restored\n",
               (unsigned)preemptions, (unsigned)blocks_lost, (unsigned)recomputed,
               (unsigned)restored);
        assert_int_equal(preemptions, fixture_status(fixture, "requests.preemptions"));
        assert_int_equal(blocks_lost, fixture_status(fixture, "requests.blocks_lost"));
        assert_int_equal(recomputed, fixture_status(fixture, "tokens_recomputed"));
        assert_int_equal(restored, fixture_status(fixture, "tokens_restored"));
        assert_true(blocks_lost > 0);
}

/* All of them run to their end, which needs ten times the pool. */
static void streams_that_outgrow_the_pool_are_preempted_and_lose_no_token(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct stream *alone[STREAMS];
        struct raw_client *client;
        uint32_t ids[STREAMS];
        struct want want = much;

        start(fixture, "learned");
        client = raw_client_greet(fixture);
        want.logprobs = 0;
        want.max_tokens = fixture->sanitized ? 1000 : 3500;
        for (uint32_t i = 0; i < STREAMS; i++) {
                want.seed = i;
                alone[i] = stream_copy(raw_client_complete(client, &want));
                assert_int_equal(alone[i]->token_count, want.max_tokens);
        }
        /* Another class, so the daemon knows no lengths of it. */
        want.priority = "background";
        for (uint32_t i = 0; i < STREAMS; i++) {
                want.seed = i;
                ids[i] = raw_client_generate(client, &want);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(raw_client_await_end(client, ids[i]), alone[i]);
        assert_sums(fixture, client, ids);
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* Resumable streams stay in `list` when they have ended, and their ENDs say the same. */
static void an_END_says_what_list_says_about_preemptions(void **state)
{
        struct daemon_fixture *fixture = *state;
        uint64_t numbers[STREAMS], most = 0;
        struct raw_client *client;
        uint32_t ids[STREAMS];
        struct rows rows;

        START_DAEMON(fixture, "--model", make_quick_model(fixture, "4096"), "--kv-bytes", "64K",
                     "--max-seqs", "64", "--threads", "1", "--uid-resumable", "64",
                     "--uid-resumable-bytes", "1G");
        client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        for (uint32_t i = 0; i < STREAMS; i++) {
                ids[i] = ++client->last_id;
                raw_client_send_frame(
                        client, "op=s id=u prompt=s max_tokens=u keep_ms=u ignore_eos=y seed=u",
                        "generate", ids[i], "The samovar", 1000u, 600000u, 1, i);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                numbers[i] = reply_uint(raw_client_await_reply(client, ids[i]), "resume_id");
        assert_sums(fixture, client, ids);
        rows = list(fixture);
        assert_int_equal(rows.count, STREAMS);
        for (size_t row = 0; row < rows.count; row++) {
                uint64_t said = number_at(&rows, row, "preemptions");
                uint32_t i = 0;

                while (number_at(&rows, row, "number") != numbers[i])
                        assert_true(++i < STREAMS);
                assert_true(has_word(&rows, row, "state", "ended"));
                assert_int_equal(raw_client_await_end(client, ids[i])->end.preemptions, said);
                most = said > most ? said : most;
        }
        assert_true(most >= 1);
        assert_said(fixture, "ps", "kept preempted ");
        assert_said(fixture, "status", "\npreempted  ");
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_true(raw_client_call(client, "op=s resume_id=q", "drop", numbers[i])->ok);
        raw_client_close(rows.client);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(requests_that_ask_for_much_and_need_little_run_at_once),
                DAEMON_TEST(requests_that_reserve_run_as_far_as_their_worst_cases_fit),
                DAEMON_TEST(a_request_that_the_forecast_holds_back_says_what_is_expected),
                DAEMON_TEST(a_request_over_its_users_share_says_what_its_user_has),
                DAEMON_TEST(streams_that_outgrow_the_pool_are_preempted_and_lose_no_token),
                DAEMON_TEST(an_END_says_what_list_says_about_preemptions),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
