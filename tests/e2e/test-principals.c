/*
 * Principals: the users of a gateway, each with quotas, cache, streams and handles of its own.  The
 * gateway of these tests is the user of the daemon, so that they also show that a principal has
 * nothing of that user's privileges.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <samovar/client.h>

#include "tests/e2e/other-user.h"
#include "tests/e2e/honest-client.h"

#define STRANGER 65533u
#define PREFIX   1000u

static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };
static const struct want endless = { .prompt = "Once", .max_tokens = ENDLESS, .ignore_eos = true };

static const char *own_uid(void)
{
        static char digits[16];

        snprintf(digits, sizeof(digits), "%u", (unsigned)geteuid());
        return digits;
}

#define GATEWAY MANY_CONNECTS, "--threads", "1", "--gateway", own_uid()

/* A connection of the gateway for this principal; its hello may be refused. */
static struct reply *say_hello(struct raw_client *client, const char *principal)
{
        return raw_client_call(client, "op=s versions=I principal=s", "hello", versions, (size_t)2,
                               principal);
}

static struct raw_client *greet_as(const struct daemon_fixture *fixture, const char *principal)
{
        struct raw_client *client = raw_client_connect(fixture);
        struct reply *reply = say_hello(client, principal);

        if (!reply->ok)
                fail_msg("%s", reply->message);
        return client;
}

static uint32_t begin(struct raw_client *client)
{
        uint32_t id = raw_client_generate(client, &endless);
        struct reply *reply = raw_client_await_reply(client, id);

        if (!reply->ok)
                fail_msg("%s", reply->message);
        return id;
}

static void assert_word(const struct reply *reply, const char *path, const char *word)
{
        const msgpack_object *found = reply_at(reply, path);

        assert_non_null(found);
        assert_int_equal(found->via.str.size, strlen(word));
        assert_memory_equal(found->via.str.ptr, word, strlen(word));
}

static size_t count_of(const struct reply *reply, const char *path)
{
        const msgpack_object *found = reply_at(reply, path);

        assert_non_null(found);
        return found->via.array.size;
}

static void assert_code(const struct reply *reply, enum smv_code code)
{
        if (reply->ok || reply->code != code)
                fail_msg("%u \"%s\", not %u", (unsigned)reply->code, reply->message, code);
}

/* ---- limits ---- */

static void each_principal_has_requests_of_its_own(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *alice, *bob, *gateway;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, GATEWAY, "--uid-requests", "2");
        alice = greet_as(fixture, "alice");
        bob = greet_as(fixture, "bob");
        gateway = raw_client_greet(fixture);
        begin(alice);
        begin(alice);
        id = raw_client_generate(alice, &endless);
        assert_code(raw_client_await_reply(alice, id), SMV_QUOTA);
        begin(bob);
        begin(bob);
        begin(gateway);
        begin(gateway);
        assert_int_equal(raw_client_status(alice, "users.0.requests"), 2);
        id = raw_client_generate(bob, &endless);
        assert_code(raw_client_await_reply(bob, id), SMV_QUOTA);
        raw_client_close(alice);
        raw_client_close(bob);
        raw_client_close(gateway);
        fixture_stop(fixture);
}

static void each_principal_has_connections_of_its_own(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *clients[5], *client;

        START_QUICK_DAEMON(fixture, GATEWAY, "--uid-connections", "2");
        for (int i = 0; i < 4; i++)
                clients[i] = greet_as(fixture, i % 2 ? "alice" : "bob");
        client = raw_client_connect(fixture);
        assert_code(say_hello(client, "alice"), SMV_QUOTA);
        raw_client_close(client);
        clients[4] = raw_client_greet(fixture); /* the gateway has none, but those of its own */
        assert_int_equal(raw_client_status(clients[4], "users.0.connections"), 1);
        assert_int_equal(raw_client_status(clients[0], "users.0.connections"), 2);
        for (int i = 0; i < 5; i++)
                raw_client_close(clients[i]);
        fixture_stop(fixture);
}

/* The sockets that are connected from now on are those of this user. */
static void become(uint32_t uid)
{
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(seteuid(uid), 0);
}

static int tear_down(void **state)
{
        become(0);
        return fixture_tear_down(state);
}

/* The gateway is another user here: that of the daemon may connect as often as it likes. */
static void each_principal_has_a_rate_of_connections_of_its_own(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        char name[16];

        assert_int_equal(chmod(fixture->directory, 0711), 0);
        START_QUICK_DAEMON(fixture, "--gateway", "65533", "--socket-mode", "0666", "--threads", "1",
                           "--uid-connects-burst", "3", "--uid-connects-per-s", "1",
                           "--connections", "4096");
        become(STRANGER);
        for (int i = 0; i < 40; i++) {
                snprintf(name, sizeof(name), "user-%d", i);
                raw_client_close(greet_as(fixture, name));
        }
        /* Of one principal, more than any rate lets in before the bucket fills again. */
        for (int i = 0; i < 1000; i++) {
                const struct reply *reply;
                bool refused;

                client = raw_client_connect(fixture);
                reply = say_hello(client, "eager");
                refused = !reply->ok;
                if (refused)
                        assert_code(reply, SMV_QUOTA);
                raw_client_close(client);
                if (refused)
                        break;
                assert_true(i < 999);
        }
        become(0);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

static void the_load_of_one_leaves_the_other_its_share(void **state)
{
        const struct want question = { .prompt = "What is left for me?",
                                       .max_tokens = 60,
                                       .ignore_eos = true,
                                       .priority = "background" };
        struct want greedy = endless;
        struct daemon_fixture *fixture = *state;
        struct raw_client *alice, *bob;

        greedy.priority = "interactive";
        START_ENDLESS_DAEMON(fixture, GATEWAY, "--max-seqs", "2");
        alice = greet_as(fixture, "alice");
        bob = greet_as(fixture, "bob");
        for (int i = 0; i < 6; i++)
                assert_true(raw_client_await_reply(alice, raw_client_generate(alice, &greedy))->ok);
        /* If they were one user, her requests would all come before this one, and never end. */
        assert_int_equal(raw_client_complete(bob, &question)->token_count, 60);
        assert_int_equal(raw_client_status(alice, "users.0.requests"), 6);
        raw_client_close(alice);
        raw_client_close(bob);
        fixture_stop(fixture);
}

/* ---- the cache ---- */

static struct smv_record_end ask(struct raw_client *client, const uint32_t *tokens, size_t count)
{
        uint32_t id = ++client->last_id;

        raw_client_send_frame(client, "op=s id=u tokens=I max_tokens=u ignore_eos=y", "generate",
                              id, tokens, count, 2, 1);
        assert_true(raw_client_await_reply(client, id)->ok);
        return raw_client_await_end(client, id)->end;
}

static void assert_finds_nothing(struct raw_client *client, const uint32_t *tokens, size_t count)
{
        struct smv_record_end end = ask(client, tokens, count);

        assert_int_equal(end.cached_tokens, 0);
        assert_int_equal(end.diverged_at, 0);
}

static void principals_share_nothing_in_the_cache(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *alice, *bob, *gateway;
        uint32_t tokens[PREFIX];

        random_prompt(tokens, PREFIX);
        START_QUICK_DAEMON(fixture, GATEWAY);
        alice = greet_as(fixture, "alice");
        bob = greet_as(fixture, "bob");
        gateway = raw_client_greet(fixture);
        assert_finds_nothing(alice, tokens, PREFIX);
        assert_int_equal(ask(alice, tokens, PREFIX).cached_tokens, PREFIX - 1);
        tokens[PREFIX / 2] ^= 1;
        assert_finds_nothing(bob, tokens, PREFIX);
        assert_finds_nothing(gateway, tokens, PREFIX);
        assert_int_equal(ask(alice, tokens, PREFIX).diverged_at, PREFIX / 2);

        /* Another connection for her, also later, finds what she has computed. */
        raw_client_close(alice);
        alice = greet_as(fixture, "alice");
        assert_int_equal(ask(alice, tokens, PREFIX).cached_tokens, PREFIX - 1);
        raw_client_close(alice);
        raw_client_close(bob);
        raw_client_close(gateway);
        fixture_stop(fixture);
}

static uint64_t open_handle(struct raw_client *client, const uint32_t *tokens, size_t count)
{
        struct reply *reply = raw_client_call(client, "op=s tokens=I", "open", tokens, count);

        assert_true(reply->ok);
        return reply_uint(reply, "handle");
}

static void a_principal_finds_what_is_published_to_all_but_not_to_a_group(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *alice, *gateway;
        uint32_t tokens[2][PREFIX], id;
        uint64_t handle;

        random_prompt(tokens[0], PREFIX);
        random_prompt(tokens[1], PREFIX);
        START_QUICK_DAEMON(fixture, GATEWAY, "--publish");
        alice = greet_as(fixture, "alice");
        gateway = raw_client_greet(fixture);
        id = ++gateway->last_id;
        raw_client_send_frame(gateway, "op=s id=u handle=q to=s", "publish", id,
                              open_handle(gateway, tokens[0], PREFIX), "all");
        assert_int_equal(raw_client_await_end(gateway, id)->end.code, SMV_OK);
        id = ++gateway->last_id;
        raw_client_send_frame(gateway, "op=s id=u handle=q to=s group=u", "publish", id,
                              open_handle(gateway, tokens[1], PREFIX), "group",
                              (unsigned)getegid());
        assert_int_equal(raw_client_await_end(gateway, id)->end.code, SMV_OK);
        assert_true(ask(alice, tokens[0], PREFIX).cached_tokens > PREFIX - 17);
        assert_finds_nothing(alice, tokens[1], PREFIX);

        handle = open_handle(alice, tokens[1], PREFIX);
        assert_code(raw_client_call(alice, "op=s handle=q to=s group=u", "publish", handle, "group",
                                    (unsigned)getegid()),
                    SMV_BAD_VALUE);
        raw_client_close(alice);
        raw_client_close(gateway);
        fixture_stop(fixture);
}

/* ---- handles and streams ---- */

static void does_not_know_the_handles_and_streams_of_another_principal(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *alice, *bob, *gateway;
        uint64_t handle, resume_id, number;
        struct reply *reply;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, GATEWAY);
        alice = greet_as(fixture, "alice");
        bob = greet_as(fixture, "bob");
        gateway = raw_client_greet(fixture);
        handle = open_handle(alice, (const uint32_t[]){ 1, 2, 3 }, 3);
        number = reply_uint(raw_client_await_reply(alice, raw_client_generate(alice, &endless)),
                            "numbers.0");
        id = ++alice->last_id;
        raw_client_send_frame(alice, "op=s id=u prompt=s max_tokens=u ignore_eos=y keep_ms=u",
                              "generate", id, "Once", ENDLESS, 1, 60000);
        resume_id = reply_uint(raw_client_await_reply(alice, id), "resume_id");

        assert_code(raw_client_call(bob, "op=s handle=q", "close", handle), SMV_NO_HANDLE);
        assert_code(raw_client_call(gateway, "op=s handle=q", "close", handle), SMV_NO_HANDLE);
        assert_code(raw_client_call(bob, "op=s resume_id=q", "attach", resume_id),
                    SMV_NO_RESUMABLE);
        assert_code(raw_client_call(gateway, "op=s resume_id=q", "attach", resume_id),
                    SMV_NO_RESUMABLE);
        assert_code(raw_client_call(bob, "op=s number=q", "end", number), SMV_NO_STREAM);
        assert_code(raw_client_call(bob, "op=s number=q", "end", resume_id), SMV_NO_STREAM);
        assert_code(raw_client_call(bob, "op=s number=q", "end", handle), SMV_NO_STREAM);
        reply = raw_client_call(bob, "op=s", "list");
        assert_int_equal(count_of(reply, "work.streams"), 0);
        assert_int_equal(count_of(reply, "work.handles"), 0);

        /* The user of the daemon sees whose they are, and may end them. */
        reply = raw_client_call(gateway, "op=s", "list");
        assert_int_equal(count_of(reply, "work.streams"), 2);
        assert_word(reply, "work.streams.0.principal", "alice");
        assert_word(reply, "work.handles.0.principal", "alice");
        assert_int_equal(reply_uint(reply, "work.handles.0.uid"), geteuid());
        assert_true(raw_client_call(gateway, "op=s number=q", "end", number)->ok);
        assert_true(raw_client_call(alice, "op=s resume_id=q", "drop", resume_id)->ok);
        raw_client_close(alice);
        raw_client_close(bob);
        raw_client_close(gateway);
        fixture_stop(fixture);
}

/* The gateway shows the totals as metrics; the rows of other users are not its business. */
static void the_gateway_sees_totals_and_its_own_row(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *own, *gateway;
        struct reply *reply;

        START_QUICK_DAEMON(fixture, "--gateway", "65533", "--socket-mode", "0666");
        assert_int_equal(chmod(fixture->directory, 0711), 0);
        own = raw_client_greet(fixture);
        assert_int_equal(seteuid(65533), 0);
        gateway = raw_client_greet(fixture);
        assert_int_equal(seteuid(0), 0);
        reply = raw_client_call(gateway, "op=s", "status");
        assert_non_null(reply_at(reply, "status.latency.le"));
        assert_int_equal(count_of(reply, "status.users"), 1);
        assert_int_equal(reply_uint(reply, "status.users.0.uid"), 65533);
        raw_client_close(gateway);
        raw_client_close(own);
        fixture_stop(fixture);
}

/* The place of this principal in `users`. */
static uint32_t place_of(const struct reply *reply, const char *principal)
{
        char path[48];

        for (uint32_t i = 0; i < count_of(reply, "status.users"); i++) {
                const msgpack_object *name;

                snprintf(path, sizeof(path), "status.users.%u.principal", i);
                name = reply_at(reply, path);
                if (name->via.str.size == strlen(principal) &&
                    !memcmp(name->via.str.ptr, principal, strlen(principal)))
                        return i;
        }
        fail_msg("there is no %s", principal);
        return 0;
}

static void await_user(struct raw_client *client, const char *principal, const char *key,
                       uint64_t expected)
{
        uint64_t end = now_ms() + TIMEOUT_MS, value;
        char path[64];

        do {
                struct reply *reply = raw_client_call(client, "op=s", "status");

                assert_true(now_ms() < end);
                snprintf(path, sizeof(path), "status.users.%u.%s", place_of(reply, principal), key);
                value = reply_uint(reply, path);
        } while (value != expected);
}

static void each_principal_has_counts_of_its_own(void **state)
{
        const struct want five = { .prompt = "x", .max_tokens = 5, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct raw_client *alice, *bob, *gateway;
        uint32_t ids[3];

        START_ENDLESS_DAEMON(fixture, GATEWAY, "--max-seqs", "1");
        alice = greet_as(fixture, "alice");
        bob = greet_as(fixture, "bob");
        gateway = raw_client_greet(fixture);
        raw_client_complete(alice, &five);
        raw_client_complete(alice, &five);
        await_user(gateway, "alice", "tokens_out", 10);
        await_user(gateway, "bob", "tokens_out", 0);
        ids[0] = begin(alice);
        await_user(gateway, "alice", "running", 1);
        ids[1] = begin(bob);
        ids[2] = begin(bob);
        await_user(gateway, "bob", "waiting", 2);
        await_user(gateway, "bob", "running", 0);
        await_user(gateway, "alice", "waiting", 0);
        for (uint32_t i = 3; i-- > 0;)
                raw_client_call(i ? bob : alice, "op=s stream=u", "cancel", ids[i]);
        await_user(gateway, "bob", "waiting", 0);
        await_user(gateway, "alice", "running", 0);
        raw_client_close(alice);
        raw_client_close(bob);
        raw_client_close(gateway);
        fixture_stop(fixture);
}

static void a_principal_is_never_the_user_of_the_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *alice, *gateway;
        struct reply *reply;

        START_QUICK_DAEMON(fixture, GATEWAY);
        alice = greet_as(fixture, "alice");
        gateway = raw_client_greet(fixture);
        reply = raw_client_call(alice, "op=s", "status");
        assert_int_equal(count_of(reply, "status.users"), 1);
        assert_word(reply, "status.users.0.principal", "alice");
        assert_int_equal(reply_uint(reply, "status.users.0.uid"), geteuid());
        assert_null(reply_at(reply, "status.connections.open"));
        assert_true(raw_client_status(gateway, "connections.open") >= 2);
        assert_int_equal(count_of(raw_client_call(gateway, "op=s", "status"), "status.users"), 2);
        raw_client_close(alice);
        raw_client_close(gateway);
        fixture_stop(fixture);
}

/* ---- which users may have principals ---- */

static void only_the_user_of_the_setting_may_say_for_whom_it_connects(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct reply *reply;

        START_QUICK_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--gateway", "65533");
        client = raw_client_connect(fixture);
        reply = say_hello(client, "alice");
        assert_code(reply, SMV_DENIED);
        assert_string_equal(reply->field, "principal");
        assert_non_null(strstr(reply->message, "gateway names (now 65533)"));
        raw_client_close(client);
        fixture_stop(fixture);
}

static void serves_without_a_gateway_if_its_user_is_unknown(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        START_QUICK_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--gateway", "no-such-user");
        assert_true(fixture_logged(fixture, "gateway_unknown gateway=no-such-user"));
        client = raw_client_connect(fixture);
        assert_code(say_hello(client, "alice"), SMV_DENIED);
        raw_client_close(client);
        client = raw_client_greet(fixture);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void refuses_names_that_are_not_plain(void **state)
{
        static const char *const names[] = { "", "a b", "a/b", "\xc3\xa4",
                                             "0123456789012345678901234567890123456789012345678901"
                                             "2345678901234" };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        START_QUICK_DAEMON(fixture, GATEWAY);
        client = raw_client_connect(fixture);
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                assert_code(say_hello(client, names[i]), SMV_BAD_VALUE);
        assert_true(say_hello(client, "Alice.B-9_c")->ok);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* A hello that was refused, here for its ring, may be sent again, but not for another one. */
static void a_connection_stays_with_its_first_principal(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        START_QUICK_DAEMON(fixture, GATEWAY, "--uid-ring-bytes", "262144");
        client = raw_client_connect(fixture);
        assert_code(raw_client_call(client, "op=s versions=I principal=s transport=s ring_bytes=u",
                                    "hello", versions, (size_t)2, "alice", "ring", 1048576),
                    SMV_QUOTA);
        assert_code(say_hello(client, "bob"), SMV_BAD_VALUE);
        assert_code(raw_client_call(client, "op=s versions=I", "hello", versions, (size_t)2),
                    SMV_BAD_VALUE);
        assert_true(say_hello(client, "alice")->ok);
        assert_int_equal(raw_client_status(client, "users.0.connections"), 1);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void the_library_and_the_command_take_a_principal(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_connect where = { SMV_SIZE(smv_connect), .principal = "alice" };
        struct smv_client *client = NULL;
        const char *json = NULL;
        struct run_result ran;

        START_QUICK_DAEMON(fixture, GATEWAY);
        where.socket = fixture->socket;
        assert_int_equal(smv_connect(&where, &client), 0);
        assert_int_equal(smv_status(client, &json), 0);
        assert_non_null(strstr(json, "\"principal\":\"alice\""));
        smv_close(client);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "status", "--json", "--socket",
                  fixture->socket, "--principal", "bob");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "\"principal\":\"bob\""));
        run_result_free(&ran);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(each_principal_has_requests_of_its_own),
                DAEMON_TEST(each_principal_has_connections_of_its_own),
                cmocka_unit_test_setup_teardown(each_principal_has_a_rate_of_connections_of_its_own,
                                                fixture_set_up, tear_down),
                DAEMON_TEST(the_load_of_one_leaves_the_other_its_share),
                DAEMON_TEST(principals_share_nothing_in_the_cache),
                DAEMON_TEST(a_principal_finds_what_is_published_to_all_but_not_to_a_group),
                DAEMON_TEST(does_not_know_the_handles_and_streams_of_another_principal),
                DAEMON_TEST(the_gateway_sees_totals_and_its_own_row),
                DAEMON_TEST(each_principal_has_counts_of_its_own),
                DAEMON_TEST(a_principal_is_never_the_user_of_the_daemon),
                DAEMON_TEST(only_the_user_of_the_setting_may_say_for_whom_it_connects),
                DAEMON_TEST(serves_without_a_gateway_if_its_user_is_unknown),
                DAEMON_TEST(refuses_names_that_are_not_plain),
                DAEMON_TEST(a_connection_stays_with_its_first_principal),
                DAEMON_TEST(the_library_and_the_command_take_a_principal),
        };

        require_other_users();
        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
