/* The operation pool: what each block is used for, and who may see it. */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json/document.h"
#include "json/reader.h"
#include "tests/e2e/stream-log.h"
#include "tests/skip.h"

#define STRANGER  4711u
#define NODES_MAX 200000u
#define FORKS     4u
#define PART      65536u /* blocks that a reply describes at most */

enum { BLOCK_FREE, BLOCK_CACHED, BLOCK_IN_USE, BLOCK_PINNED, BLOCK_HIDDEN, STATES };

/* The whole map, summed up. */
struct sums {
        uint32_t blocks, states[STATES];
        uint32_t shared;    /* blocks with more than one reference */
        uint32_t most_refs; /* of one block */
        uint32_t users;     /* most that one reply names */
        bool all_users;
        uint32_t replies;
};

static uint64_t whole(const struct json_document *json, uint32_t row, const char *key)
{
        uint64_t number = 0;

        assert_true(json_whole(json, json_member(json, row, key), &number));
        return number;
}

static void add_run(const struct json_document *json, uint32_t run, uint32_t users,
                    struct sums *sums)
{
        uint64_t numbers[4] = { 0 };
        uint32_t count = 0;

        for (uint32_t at = json_first(json, run); at != JSON_NONE; at = json_next(json, at)) {
                assert_true(count < 4);
                assert_true(json_whole(json, at, &numbers[count++]));
        }
        assert_true(count >= 3 && numbers[1] < STATES);
        if (count == 4)
                assert_true(numbers[3] < users);
        assert_int_equal(numbers[2] > 0, numbers[1] == BLOCK_IN_USE);
        sums->blocks += (uint32_t)numbers[0];
        sums->states[numbers[1]] += (uint32_t)numbers[0];
        if (numbers[2] > 1)
                sums->shared += (uint32_t)numbers[0];
        if (numbers[2] > sums->most_refs)
                sums->most_refs = (uint32_t)numbers[2];
}

static struct sums ask_for_map(struct smv_client *client)
{
        struct sums sums = { 0 };
        uint64_t next = 0, blocks = 1;

        while (next < blocks) {
                struct json_document *json;
                const char *text;
                char why[128];
                uint32_t at, users;

                assert_int_equal(smv_pool(client, (uint32_t)next, &text), 0);
                assert_int_equal(json_parse(text, strlen(text), NODES_MAX, &json, why, sizeof(why)),
                                 0);
                assert_int_equal(whole(json, 0, "from"), next);
                assert_int_equal(whole(json, 0, "positions"), 16);
                next = whole(json, 0, "next");
                blocks = whole(json, 0, "blocks");
                assert_true(json_bool(json, json_member(json, 0, "all_users"), &sums.all_users));
                users = json_count(json, json_member(json, 0, "users"));
                sums.users = users > sums.users ? users : sums.users;
                at = json_first(json, json_member(json, 0, "runs"));
                for (; at != JSON_NONE; at = json_next(json, at))
                        add_run(json, at, users, &sums);
                assert_int_equal(sums.blocks, next);
                json_free(json);
                sums.replies++;
        }
        assert_int_equal(sums.blocks, blocks);
        return sums;
}

/* A map may be as old as a fifth of a second: asks until it shows what is awaited. */
static struct sums await_map(struct smv_client *client, bool (*is_there)(const struct sums *sums))
{
        struct sums sums = ask_for_map(client);

        while (!is_there(&sums)) {
                sleep_ms(20);
                sums = ask_for_map(client);
        }
        return sums;
}

static struct smv_client *connect_to(const struct daemon_fixture *fixture)
{
        struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                     .any_uid = 1 };
        struct smv_client *client;

        assert_int_equal(smv_connect(&where, &client), 0);
        return client;
}

static bool is_shared_by_forks(const struct sums *sums)
{
        return sums->most_refs == FORKS && sums->states[BLOCK_IN_USE] > FORKS;
}

static bool is_only_cached(const struct sums *sums)
{
        return sums->states[BLOCK_CACHED] && !sums->states[BLOCK_IN_USE];
}

static bool is_pinned(const struct sums *sums)
{
        return sums->states[BLOCK_PINNED] && !sums->states[BLOCK_IN_USE];
}

static void shows_free_shared_cached_and_pinned_blocks(void **state)
{
        struct smv_generate ask = {
                SMV_SIZE(smv_generate),        .max_tokens = ENDLESS, .ignore_eos = 1, .n = FORKS,
                .tokens = (uint32_t[40]){ 0 }, .token_count = 40
        };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        uint32_t stream, ends = 0;
        uint64_t handle;
        struct sums sums;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = connect_to(fixture);
        sums = ask_for_map(client);
        assert_true(sums.all_users);
        assert_true(sums.states[BLOCK_FREE] && !sums.states[BLOCK_IN_USE]);
        assert_int_equal(sums.replies, (sums.blocks + PART - 1) / PART);

        for (uint32_t i = 0; i < 40; i++)
                ((uint32_t *)(uintptr_t)ask.tokens)[i] = 97 + i % 20;
        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        sums = await_map(client, is_shared_by_forks);
        /* 40 tokens: two whole blocks, and a part of one until each stream has its copy. */
        assert_in_range(sums.shared, 2, 3);
        assert_int_equal(sums.users, 1);
        for (uint32_t i = 0; i < FORKS; i++)
                assert_int_equal(smv_cancel(client, stream + i), 0);
        while (ends < FORKS) {
                assert_int_equal(smv_next(client, &event, 10000), 1);
                ends += event.kind == SMV_EVENT_END;
        }
        sums = await_map(client, is_only_cached);
        assert_int_equal(sums.states[BLOCK_CACHED], fixture_status(fixture, "blocks.cached"));
        assert_int_equal(sums.states[BLOCK_FREE], fixture_status(fixture, "blocks.free"));

        assert_int_equal(smv_handle_open(client, &ask, &handle, NULL), 0);
        assert_int_equal(smv_handle_pin(client, handle, 600000, SMV_PRIORITY_NORMAL, &stream), 0);
        do
                assert_int_equal(smv_next(client, &event, 10000), 1);
        while (event.kind != SMV_EVENT_END);
        sums = await_map(client, is_pinned);
        assert_in_range(sums.states[BLOCK_PINNED], 2, 3);
        smv_close(client);
        fixture_stop(fixture);
}

#define DEMAND(condition)                                                                          \
        do                                                                                         \
                if (!(condition))                                                                  \
                        _exit(__LINE__ % 250 + 1);                                                 \
        while (0)

static bool is_all_hidden(const struct sums *sums)
{
        return sums->states[BLOCK_HIDDEN] == sums->blocks;
}

static bool has_own(const struct sums *sums)
{
        return sums->states[BLOCK_IN_USE] > 0;
}

/* It sees nothing of what root's streams hold, and then its own blocks and no others. */
static void be_a_stranger(const struct daemon_fixture *fixture)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once", .ignore_eos = 1,
                                    .max_tokens = ENDLESS };
        struct smv_client *client;
        struct sums sums;
        uint32_t stream;

        DEMAND(!setgid(STRANGER) && !setuid(STRANGER));
        client = connect_to(fixture);
        sums = ask_for_map(client);
        DEMAND(is_all_hidden(&sums) && !sums.all_users && !sums.users);
        DEMAND(!smv_generate(client, &ask, &stream));
        sums = await_map(client, has_own);
        DEMAND(sums.users == 1 && !sums.states[BLOCK_FREE] && sums.states[BLOCK_HIDDEN]);
        smv_close(client);
        _exit(0);
}

static void a_user_sees_its_own_blocks_and_no_others(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once upon", .ignore_eos = 1,
                                    .max_tokens = ENDLESS };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        uint32_t stream;
        pid_t pid;

        if (geteuid() != 0)
                skip_because("only root can be two users");
        chmod(fixture->directory, 0755);
        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--socket-mode", "0666");
        client = connect_to(fixture);
        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        await_map(client, has_own);
        pid = fork();
        if (!pid)
                be_a_stranger(fixture);
        assert_int_equal(await_process(pid), 0);
        smv_close(client);
        fixture_stop(fixture);
}

/* Connections that go while they wait for the map, and many requests at once. */
static void clients_may_leave_while_they_wait_for_the_map(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint32_t request, ok = 0, busy = 0;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        for (uint32_t i = 0; i < 30; i++) {
                client = connect_to(fixture);
                for (uint32_t j = 0; j < 5; j++)
                        assert_int_equal(smv_ask_pool(client, j, &request), 0);
                (void)smv_next(client, &event, 0);
                smv_close(client);
        }
        client = connect_to(fixture);
        for (uint32_t i = 0; i < 400; i++)
                assert_int_equal(smv_ask_pool(client, 0, &request), 0);
        while (smv_next(client, &event, 10000) == 1) {
                ok += event.code == SMV_OK;
                busy += event.code == SMV_BUSY;
        }
        assert_int_equal(ok + busy, 400);
        assert_true(ok > 0);
        assert_client_refused(client, smv_pool(client, 4000000, &(const char *){ NULL }),
                              SMV_BAD_VALUE, "the pool has");
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(shows_free_shared_cached_and_pinned_blocks),
                DAEMON_TEST(a_user_sees_its_own_blocks_and_no_others),
                DAEMON_TEST(clients_may_leave_while_they_wait_for_the_map),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
