/* Lists of streams and handles, and ending them from another connection. */
#include <errno.h>
#include <fcntl.h>
#include <samovar/client.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"
#include "tests/skip.h"

#define STRANGER 4711u

static const struct want endless = { .prompt = "Once", .max_tokens = ENDLESS, .ignore_eos = true };

static struct reply *list(struct raw_client *client)
{
        struct reply *reply = raw_client_call(client, "op=s", "list");

        assert_true(reply->ok);
        return reply;
}

static size_t count_of(const struct reply *reply, const char *path)
{
        const msgpack_object *found = reply_at(reply, path);

        assert_non_null(found);
        return found->via.array.size;
}

static void assert_word(const struct reply *reply, const char *path, const char *word)
{
        const msgpack_object *found = reply_at(reply, path);

        assert_non_null(found);
        assert_int_equal(found->via.str.size, strlen(word));
        assert_memory_equal(found->via.str.ptr, word, strlen(word));
}

static struct reply *end(struct raw_client *client, uint64_t number)
{
        return raw_client_call(client, "op=s number=q", "end", number);
}

static void another_connection_lists_and_ends_a_stream(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        struct reply *reply;
        uint64_t number;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        assert_int_equal(count_of(list(other), "work.streams"), 0);
        id = raw_client_generate(client, &endless);
        assert_true(raw_client_await_reply(client, id)->ok);
        do
                reply = list(other);
        while (!reply_uint(reply, "work.streams.0.tokens"));
        assert_int_equal(count_of(reply, "work.streams"), 1);
        assert_word(reply, "work.streams.0.kind", "stream");
        assert_word(reply, "work.streams.0.state", "running");
        assert_word(reply, "work.streams.0.priority", "normal");
        assert_int_equal(reply_uint(reply, "work.streams.0.pid"), getpid());
        assert_int_equal(reply_uint(reply, "work.streams.0.uid"), geteuid());
        number = reply_uint(reply, "work.streams.0.number");

        assert_int_equal(end(other, number + 1)->code, SMV_NO_STREAM);
        assert_true(end(other, number)->ok);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

/*
 * The requests come together, so the stream is usually there still when the second and the third
 * are answered.  A busy machine may let it go before.
 */
static void a_stream_is_ended_only_once(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        struct bytes_out asks = { 0 };
        struct reply *reply;
        uint64_t number;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        id = raw_client_generate(client, &endless);
        assert_true(raw_client_await_reply(client, id)->ok);
        number = reply_uint(list(other), "work.streams.0.number");

        frame_put(&asks, "op=s id=u number=q", "end", 101u, number);
        frame_put(&asks, "op=s id=u number=q", "end", 102u, number);
        frame_put(&asks, "op=s id=u", "list", 103u);
        assert_true(raw_client_send(other, asks.at, asks.count));
        free(asks.at);
        assert_true(raw_client_await_reply(other, 101)->ok);
        reply = raw_client_await_reply(other, 102);
        assert_int_equal(reply->code, SMV_NO_STREAM);
        assert_true(strstr(reply->message, " is ending already") ||
                    strstr(reply->message, "there is no running stream"));
        reply = raw_client_await_reply(other, 103);
        if (count_of(reply, "work.streams"))
                assert_memory_equal(reply_at(reply, "work.streams.0.state")->via.str.ptr, "end", 3);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);

        do
                reply = list(other);
        while (count_of(reply, "work.streams"));
        reply = end(other, number);
        assert_int_equal(reply->code, SMV_NO_STREAM);
        assert_non_null(strstr(reply->message, "there is no running stream or handle"));
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

static void a_handle_and_a_resumable_stream_are_listed_and_ended(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        uint64_t handle, number;
        struct reply *reply;

        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--uid-resumable-bytes", "1G");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        reply = raw_client_call(client, "op=s prompt=s", "open", "Once");
        handle = reply_uint(reply, "handle");
        raw_client_call(client, "op=s prompt=s max_tokens=u keep_ms=u ignore_eos=y", "generate",
                        "Once", 100000u, 60000u, 1);

        reply = list(other);
        assert_int_equal(count_of(reply, "work.handles"), 1);
        assert_int_equal(reply_uint(reply, "work.handles.0.number"), handle);
        assert_int_equal(reply_uint(reply, "work.handles.0.tokens"), 5);
        assert_int_equal(count_of(reply, "work.streams"), 1);
        assert_word(reply, "work.streams.0.kind", "resumable");
        assert_int_equal(reply_uint(reply, "work.streams.0.keep_ms"), 60000);
        number = reply_uint(reply, "work.streams.0.number");

        assert_true(end(other, handle)->ok);
        assert_int_equal(
                raw_client_call(client, "op=s handle=q length=u", "truncate", handle, 1u)->code,
                SMV_NO_HANDLE);
        assert_true(end(other, number)->ok);
        assert_int_equal(raw_client_await_end(client, client->last_id - 1)->end.reason,
                         SMV_END_CANCELLED);

        /* It has ended, and stays for its reader; ending it once more forgets it. */
        do
                reply = list(other);
        while (reply_at(reply, "work.streams.0.state")->via.str.size != strlen("ended"));
        assert_word(reply, "work.streams.0.state", "ended");
        assert_true(end(other, number)->ok);
        assert_int_equal(count_of(list(other), "work.streams"), 0);
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

/* The number of each of many streams, and of a fork, names that one alone. */
static void a_program_learns_the_numbers_of_its_streams(void **state)
{
        const struct smv_generate options = { SMV_SIZE(smv_generate), .prompt = "Once",
                                              .max_tokens = ENDLESS, .ignore_eos = 1, .n = 3 };
        const struct smv_fork two = { SMV_SIZE(smv_fork), .count = 2 };
        struct daemon_fixture *fixture = *state;
        const struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client, *other;
        uint32_t first, forks[2], ending[3];

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        assert_int_equal(smv_connect(&where, &client), 0);
        assert_int_equal(smv_connect(&where, &other), 0);
        assert_int_equal(smv_generate(client, &options, &first), 0);
        assert_int_equal(smv_fork(client, first, &two, forks), 0);
        ending[0] = first + 2;
        ending[1] = forks[1];
        ending[2] = first;
        for (size_t i = 0; i < 3; i++) {
                uint64_t number = smv_stream_number(client, ending[i]);

                assert_true(number != 0);
                assert_int_equal(smv_end(other, number), 0);
                do
                        assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                while (event.kind != SMV_EVENT_END);
                assert_int_equal(event.stream, ending[i]);
                assert_int_equal(event.reason, SMV_END_CANCELLED);
                assert_int_equal(smv_stream_number(client, ending[i]), 0);
        }
        smv_close(client);
        smv_close(other);
        fixture_stop(fixture);
}

/* Another user, in a process of its own; its exit status is the line that failed, or 0. */
#define DEMAND(condition)                                                                          \
        do                                                                                         \
                if (!(condition))                                                                  \
                        _exit(__LINE__ % 250 + 1);                                                 \
        while (0)

static void be_a_stranger(const struct daemon_fixture *fixture, uint64_t number)
{
        struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                     .any_uid = 1 };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_client *client;
        const char *json;

        DEMAND(!setgid(STRANGER) && !setuid(STRANGER));
        DEMAND(!smv_connect(&where, &client));
        DEMAND(!smv_list(client, &json));
        DEMAND(!strcmp(json, "{\"streams\":[],\"handles\":[]}"));
        DEMAND(smv_end(client, number) == -EREMOTEIO);
        smv_error(client, &problem);
        DEMAND(problem.code == SMV_NO_STREAM);
        smv_close(client);
        _exit(0);
}

static void a_user_neither_sees_nor_ends_the_streams_of_others(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct reply *reply;
        uint32_t id;
        pid_t pid;

        if (geteuid() != 0)
                skip_because("only root can be two users");
        chmod(fixture->directory, 0755);
        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--socket-mode", "0666");
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &endless);
        assert_true(raw_client_await_reply(client, id)->ok);
        reply = list(client);
        pid = fork();
        if (!pid)
                be_a_stranger(fixture, reply_uint(reply, "work.streams.0.number"));
        assert_int_equal(await_process(pid), 0);
        assert_true(end(client, reply_uint(reply, "work.streams.0.number"))->ok);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void the_command_lists_and_ends_them(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        char number[32], quoted[48];
        struct run_result ran;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &endless);
        assert_true(raw_client_await_reply(client, id)->ok);
        snprintf(number, sizeof(number), "%llu",
                 (unsigned long long)reply_uint(list(client), "work.streams.0.number"));
        snprintf(quoted, sizeof(quoted), "\"number\":\"%s\"", number);

        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "ps");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, number));
        assert_non_null(strstr(ran.out, " stream "));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "ps", "--json");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, quoted)); /* a text: many readers keep 53 bits only */
        run_result_free(&ran);

        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "cancel", "77");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "there is no running stream or handle 77"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "cancel");
        assert_int_equal(ran.status, 2);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "cancel", number);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* Runs the command in the background, with stderr to this file. */
static pid_t run_aside(const struct daemon_fixture *fixture, const char *err)
{
        pid_t pid = fork();

        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_WRONLY), 1);
        dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
        execl(env_path("SAMOVAR"), "samovar", "complete", "Once", "--ignore-eos", "--stats",
              "--priority", "background", "--max-tokens", "1000000", "--socket", fixture->socket,
              (char *)NULL);
        _exit(126);
}

/* The one slot is taken from the command for a request of a better class of the same user. */
static void the_command_says_that_its_stream_was_preempted(void **state)
{
        const struct want urgent = {
                .prompt = "Hi", .max_tokens = 1, .ignore_eos = true, .priority = "interactive"
        };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct run_result ran;
        struct reply *reply;
        char err[128], *said;
        pid_t pid;

        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--max-seqs", "1");
        snprintf(err, sizeof(err), "%s/err", fixture->directory);
        client = raw_client_greet(fixture);
        pid = run_aside(fixture, err);
        do
                reply = list(client);
        while (!count_of(reply, "work.streams") || !reply_uint(reply, "work.streams.0.tokens"));
        assert_int_equal(reply_uint(reply, "work.streams.0.preemptions"), 0);
        raw_client_complete(client, &urgent);
        reply = list(client);
        assert_int_equal(count_of(reply, "work.streams"), 1);
        assert_int_equal(reply_uint(reply, "work.streams.0.preemptions"), 1);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "ps");
        assert_non_null(strstr(ran.out, " preempted 1 time\n"));
        run_result_free(&ran);
        assert_true(end(client, reply_uint(reply, "work.streams.0.number"))->ok);
        await_process(pid);
        said = file_text(err);
        if (!strstr(said, "\nsamovar: pauses: preempted 1 time"))
                fail_msg("this was said: %s", said);
        free(said);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(another_connection_lists_and_ends_a_stream),
                DAEMON_TEST(a_stream_is_ended_only_once),
                DAEMON_TEST(a_handle_and_a_resumable_stream_are_listed_and_ended),
                DAEMON_TEST(a_program_learns_the_numbers_of_its_streams),
                DAEMON_TEST(a_user_neither_sees_nor_ends_the_streams_of_others),
                DAEMON_TEST(the_command_lists_and_ends_them),
                DAEMON_TEST(the_command_says_that_its_stream_was_preempted),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
