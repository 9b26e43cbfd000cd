/*
 * Streams that outlive their connection, and how they end: when their time has passed, when they
 * are dropped, when the daemon stops; which user owns them, and how much one user may have.
 */
#include <errno.h>
#include <samovar/client.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/stream-log.h"
#include "tests/skip.h"

#define OTHER_UID 65533u

static void a_resumable_stream_expires_only_without_an_attached_client(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = ENDLESS,
                                    .ignore_eos = 1, .keep_ms = 400 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client, *other;
        uint32_t stream, last;
        uint64_t resume_id;

        START_ENDLESS_FOR_RESUMING(fixture, "--pipeline-depth", "1");
        client = resumable_connect(fixture);
        other = resumable_connect(fixture);
        resume_id = resumable_stream_begin(client, &ask);
        smv_close(client);
        fixture_await_status(fixture, "resumable.open", 0);
        assert_client_refused(other, smv_attach(other, resume_id, 0, &stream), SMV_NO_RESUMABLE,
                              "no resumable stream");
        assert_int_equal(fixture_status(fixture, "requests.open"), 0);

        /* No time passes while a client is attached; from the stream's END on the time starts
         * again. */
        ask.max_tokens = 5;
        resume_id = resumable_stream_begin(other, &ask);
        sleep_ms(600);
        while (event.kind != SMV_EVENT_END)
                assert_int_equal(smv_next(other, &event, 10000), 1);
        last = event.sequence;
        ask.keep_ms = 60000;
        resume_id = resumable_stream_begin(other, &ask);
        for (event.kind = SMV_EVENT_NONE; event.kind != SMV_EVENT_END;)
                assert_int_equal(smv_next(other, &event, 10000), 1);
        fixture_await_status(fixture, "resumable.open", 1); /* the earlier stream is gone */
        assert_int_equal(smv_attach(other, resume_id, last, &stream), 0);
        assert_int_equal(smv_next(other, &event, 10000), 1);
        assert_int_equal(event.kind, SMV_EVENT_END);
        assert_int_equal(event.reason, SMV_END_LENGTH);
        assert_client_refused(other, smv_attach(other, resume_id, last + 1, &stream), SMV_BAD_VALUE,
                              "its END included");
        resumable_stream_drop(other, resume_id);

        /* A stream that runs is cancelled, and the attached client gets its END. */
        ask.max_tokens = ENDLESS;
        resume_id = resumable_stream_begin(other, &ask);
        assert_client_refused(other, smv_attach(other, resume_id, ENDLESS, &stream), SMV_BAD_VALUE,
                              "so far");
        resumable_stream_drop(other, resume_id);
        for (event.kind = SMV_EVENT_NONE; event.kind != SMV_EVENT_END;)
                assert_int_equal(smv_next(other, &event, 10000), 1);
        assert_int_equal(event.reason, SMV_END_CANCELLED);
        smv_close(other);
        fixture_stop(fixture);
}

static void read_ends(struct smv_client *client, uint32_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        while (count) {
                assert_int_equal(smv_next(client, &event, 10000), 1);
                count -= event.kind == SMV_EVENT_END;
        }
}

static void refuses_more_resumable_streams_than_the_limit(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 100,
                                    .ignore_eos = 1, .keep_ms = 60000 };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        uint64_t resume_id[3];
        uint32_t stream;

        START_QUICK_FOR_RESUMING(fixture, "--uid-resumable", "2", "--resumable", "3",
                                 "--uid-resumable-bytes", "32K");
        client = resumable_connect(fixture);
        resume_id[0] = resumable_stream_begin(client, &ask);
        assert_int_equal(fixture_status(fixture, "users.0.resumable"), 1);
        resume_id[1] = resumable_stream_begin(client, &ask);
        assert_client_refused(client, smv_generate(client, &ask, &stream), SMV_QUOTA,
                              "you have 2 resumable streams, the limit (uid_resumable)");
        ask.keep_ms = 0;
        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        read_ends(client, 3);
        assert_int_equal(fixture_status(fixture, "resumable.bytes"),
                         fixture_status(fixture, "users.0.resumable_bytes"));
        assert_int_equal(fixture_status(fixture, "resumable.ended"), 2);
        resumable_stream_drop(client, resume_id[0]);
        ask.keep_ms = 60000;
        resume_id[2] = resumable_stream_begin(client, &ask);
        resumable_stream_drop(client, resume_id[1]);
        resumable_stream_drop(client, resume_id[2]);
        smv_close(client);
        fixture_stop(fixture);
}

/* Returns the END, and checks that as many tokens came as it says. */
static struct smv_event read_to_end(struct smv_client *client)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint64_t tokens = 0;

        while (event.kind != SMV_EVENT_END) {
                assert_int_equal(smv_next(client, &event, 10000), 1);
                tokens += event.token_count;
        }
        assert_int_equal(tokens, event.output_tokens);
        return event;
}

/* A stream may ask for more than the limit: it is charged for what it has become. */
static void a_resumable_stream_ends_when_its_records_reach_the_limit(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = ENDLESS,
                                    .ignore_eos = 1, .keep_ms = 60000 };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        uint64_t resume_id, charged;
        struct smv_event end, again;
        uint32_t stream;

        START_ENDLESS_FOR_RESUMING(fixture, "--uid-resumable-bytes", "12K");
        client = resumable_connect(fixture);
        resume_id = resumable_stream_begin(client, &ask);
        end = read_to_end(client);
        assert_int_equal(end.reason, SMV_END_ERROR);
        assert_int_equal(end.code, SMV_QUOTA);
        assert_true(end.output_tokens > 100);

        /* Nothing of it is lost, and the charge is what it takes. */
        charged = fixture_status(fixture, "users.0.resumable_bytes");
        assert_true(charged > 8 << 10);
        assert_int_equal(smv_attach(client, resume_id, 0, &stream), 0);
        again = read_to_end(client);
        assert_int_equal(again.output_tokens, end.output_tokens);
        assert_int_equal(again.sequence, end.sequence);
        assert_int_equal(again.code, SMV_QUOTA);
        assert_client_refused(client, smv_generate(client, &ask, &stream), SMV_QUOTA,
                              "12288 (uid_resumable_bytes)");
        resumable_stream_drop(client, resume_id);
        assert_int_equal(fixture_status(fixture, "resumable.bytes"), 0);
        resume_id = resumable_stream_begin(client, &ask);
        resumable_stream_drop(client, resume_id);
        read_ends(client, 1);
        smv_close(client);
        fixture_stop(fixture);
}

/* The stream might have had a hundred tokens; it has one, and is charged for no more. */
static void an_ended_resumable_stream_is_charged_for_its_actual_size(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 1,
                                    .set = SMV_SET_TEMPERATURE, .ignore_eos = 1 };
        struct stream_log *alone = stream_log_new(), *log = stream_log_new();
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        uint64_t resume_id;

        START_QUICK_FOR_RESUMING(fixture, NULL);
        client = resumable_connect(fixture);
        stream_log_read_whole(client, &ask, alone);
        ask.max_tokens = 100;
        ask.stop_tokens = alone->at[0].tokens;
        ask.stop_token_count = 1;
        ask.keep_ms = 60000;
        resume_id = resumable_stream_begin(client, &ask);
        assert_true(stream_log_read(client, log, UINT32_MAX));
        assert_int_equal(log->end.reason, SMV_END_STOP);
        assert_int_equal(log->end.output_tokens, 1);
        assert_in_range(fixture_status(fixture, "users.0.resumable_bytes"), 1, 100 * 32);
        resumable_stream_drop(client, resume_id);
        stream_log_free(alone);
        stream_log_free(log);
        smv_close(client);
        fixture_stop(fixture);
}

/* A stranger gets the same reply for these numbers as for numbers that never existed. */
static int check_hidden_from_other_user(const struct daemon_fixture *fixture, uint64_t resume_id,
                                        uint64_t handle)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_client *client;
        uint32_t stream;

        if (setresgid(OTHER_UID, OTHER_UID, OTHER_UID) ||
            setresuid(OTHER_UID, OTHER_UID, OTHER_UID))
                return 2;
        if (smv_connect(&at, &client))
                return 3;
        if (smv_attach(client, resume_id, 0, &stream) != -EREMOTEIO)
                return 4;
        smv_error(client, &problem);
        if (problem.code != SMV_NO_RESUMABLE ||
            strncmp(problem.message, "there is no resumable stream", 28))
                return 5;
        if (smv_attach(client, resume_id + 1000, 0, &stream) != -EREMOTEIO)
                return 6;
        smv_error(client, &problem);
        if (problem.code != SMV_NO_RESUMABLE ||
            strncmp(problem.message, "there is no resumable stream", 28))
                return 7;
        if (smv_drop(client, resume_id) != -EREMOTEIO ||
            smv_handle_close(client, handle) != -EREMOTEIO)
                return 8;
        smv_close(client);
        return 0;
}

static void a_resumable_stream_is_hidden_from_other_users(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 100,
                                    .ignore_eos = 1, .keep_ms = 60000 };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        uint64_t resume_id, handle;
        pid_t pid;

        if (getuid())
                skip_because("only root can be two users");
        START_QUICK_FOR_RESUMING(fixture, "--socket-mode", "0666");
        assert_int_equal(chmod(fixture->directory, 0711), 0);
        client = resumable_connect(fixture);
        resume_id = resumable_stream_begin(client, &ask);
        assert_int_equal(smv_handle_open(client, &ask, &handle, NULL), 0);
        pid = fork();
        if (!pid)
                _exit(check_hidden_from_other_user(fixture, resume_id, handle));
        assert_int_equal(await_process(pid), 0);
        assert_int_equal(smv_handle_close(client, handle), 0);
        resumable_stream_drop(client, resume_id);
        smv_close(client);
        fixture_stop(fixture);
}

/* A slow reader does not stall a resumable stream: the stream ends, and its records wait. */
static void a_resumable_stream_never_stalls_on_a_slow_reader(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate),     .prompt = "Tea",
                                    .max_tokens = 1900,         .ignore_eos = 1,
                                    .set = SMV_SET_TEMPERATURE, .keep_ms = 60000 };
        struct daemon_fixture *fixture = *state;
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint64_t resume_id[12];
        uint32_t ends = 0, tokens = 0;

        START_QUICK_FOR_RESUMING(fixture, "--ring-bytes", "64K");
        client = resumable_connect(fixture);
        for (uint32_t i = 0; i < 12; i++)
                resume_id[i] = resumable_stream_begin(client, &ask);
        fixture_await_status(fixture, "resumable.ended", 12);
        assert_int_equal(fixture_status(fixture, "requests.open"), 0);
        while (ends < 12) {
                assert_int_equal(smv_next(client, &event, 10000), 1);
                tokens += (uint32_t)event.token_count;
                ends += event.kind == SMV_EVENT_END;
                if (event.kind == SMV_EVENT_END)
                        assert_int_equal(event.reason, SMV_END_LENGTH);
        }
        assert_int_equal(tokens, 12 * 1900);
        for (uint32_t i = 0; i < 12; i++)
                resumable_stream_drop(client, resume_id[i]);
        smv_close(client);
        fixture_stop(fixture);
}

static void a_stopping_daemon_ends_resumable_streams(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = ENDLESS,
                                    .ignore_eos = 1, .keep_ms = 3600000 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client, *other;
        uint64_t handle;

        START_ENDLESS_FOR_RESUMING(fixture, "--drain-timeout-ms", "1");
        client = resumable_connect(fixture);
        other = resumable_connect(fixture);
        for (uint32_t i = 0; i < 6; i++)
                resumable_stream_begin(i % 2 ? client : other, &ask);
        assert_int_equal(smv_handle_open(other, &ask, &handle, NULL), 0);
        smv_close(other);
        kill(fixture->pid, SIGTERM);
        for (uint32_t ends = 0; ends < 3; ends += event.kind == SMV_EVENT_END) {
                assert_int_equal(smv_next(client, &event, 10000), 1);
                if (event.kind == SMV_EVENT_END)
                        assert_int_equal(event.code, SMV_SHUTTING_DOWN);
        }
        assert_int_equal(fixture_await_exit(fixture), 0);
        smv_close(client);
        assert_no_process_left();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_resumable_stream_expires_only_without_an_attached_client),
                DAEMON_TEST(refuses_more_resumable_streams_than_the_limit),
                DAEMON_TEST(a_resumable_stream_ends_when_its_records_reach_the_limit),
                DAEMON_TEST(an_ended_resumable_stream_is_charged_for_its_actual_size),
                DAEMON_TEST(a_resumable_stream_is_hidden_from_other_users),
                DAEMON_TEST(a_resumable_stream_never_stalls_on_a_slow_reader),
                DAEMON_TEST(a_stopping_daemon_ends_resumable_streams),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
