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

#include "tests/e2e/notes.h"

#define STRANGER 65533u

static void with_nobody_attached_its_time_passes(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = ENDLESS,
                                    .ignore_eos = 1, .keep_ms = 400 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct house *house = *state;
        struct smv_client *client, *other;
        uint32_t stream, last;
        uint64_t kept;

        QUICK_ENDLESS(house, "--depth", "1");
        client = kept_connect(house);
        other = kept_connect(house);
        kept = kept_begin(client, &ask);
        smv_close(client);
        kept_wait_status(house, "kept.open", 0);
        kept_refused(other, smv_attach(other, kept, 0, &stream), SMV_NO_KEPT, "no kept stream");
        assert_int_equal(house_status(house, "requests.alive"), 0);

        /* No time passes while a client is attached; from the stream's END on the time starts
         * again. */
        ask.max_tokens = 5;
        kept = kept_begin(other, &ask);
        sleep_ms(600);
        while (event.kind != SMV_EVENT_END)
                assert_int_equal(smv_next(other, &event, 10000), 1);
        last = event.sequence;
        ask.keep_ms = 60000;
        kept = kept_begin(other, &ask);
        for (event.kind = SMV_EVENT_NONE; event.kind != SMV_EVENT_END;)
                assert_int_equal(smv_next(other, &event, 10000), 1);
        kept_wait_status(house, "kept.open", 1); /* the earlier stream is gone */
        assert_int_equal(smv_attach(other, kept, last, &stream), 0);
        assert_int_equal(smv_next(other, &event, 10000), 1);
        assert_int_equal(event.kind, SMV_EVENT_END);
        assert_int_equal(event.reason, SMV_END_LENGTH);
        kept_refused(other, smv_attach(other, kept, last + 1, &stream), SMV_BAD_VALUE,
                     "its END included");
        kept_drop(other, kept);

        /* A stream that runs is cancelled, and the attached client gets its END. */
        ask.max_tokens = ENDLESS;
        kept = kept_begin(other, &ask);
        kept_refused(other, smv_attach(other, kept, ENDLESS, &stream), SMV_BAD_VALUE, "so far");
        kept_drop(other, kept);
        for (event.kind = SMV_EVENT_NONE; event.kind != SMV_EVENT_END;)
                assert_int_equal(smv_next(other, &event, 10000), 1);
        assert_int_equal(event.reason, SMV_END_CANCELLED);
        smv_close(other);
        house_stop(house);
}

static void what_may_be_kept_is_limited(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 100,
                                    .ignore_eos = 1, .keep_ms = 60000 };
        struct house *house = *state;
        struct smv_client *client;
        uint64_t kept[3], charged;
        uint32_t stream;

        QUICK(house, "--uid-kept", "2", "--kept", "3", "--uid-kept-bytes", "32K");
        client = kept_connect(house);
        kept[0] = kept_begin(client, &ask);
        charged = house_status(house, "charges.0.kept_bytes");
        assert_true(charged > 100 * 32);
        assert_int_equal(house_status(house, "charges.0.kept"), 1);
        kept[1] = kept_begin(client, &ask);
        kept_refused(client, smv_generate(client, &ask, &stream), SMV_QUOTA, "limit of 2 kept");
        ask.keep_ms = 0;
        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        for (uint32_t ends = 0; ends < 3;) {
                struct smv_event event = { SMV_SIZE(smv_event) };

                assert_int_equal(smv_next(client, &event, 10000), 1);
                ends += event.kind == SMV_EVENT_END;
        }
        assert_true(house_status(house, "charges.0.kept_bytes") <= 2 * charged);
        assert_int_equal(house_status(house, "kept.bytes"),
                         house_status(house, "charges.0.kept_bytes"));
        assert_int_equal(house_status(house, "kept.ended"), 2);
        kept_drop(client, kept[0]);
        ask.keep_ms = 60000;
        ask.max_tokens = 1900;
        kept_refused(client, smv_generate(client, &ask, &stream), SMV_QUOTA,
                     "limit of 32768 kept_bytes");
        ask.max_tokens = 100;
        kept[2] = kept_begin(client, &ask);
        kept_drop(client, kept[1]);
        kept_drop(client, kept[2]);
        smv_close(client);
        house_stop(house);
}

/* The stream might have had a hundred tokens; it has one, and is charged for no more. */
static void what_has_ended_is_charged_for_what_it_became(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 1,
                                    .set = SMV_SET_TEMPERATURE, .ignore_eos = 1 };
        struct notes *alone = notes_new(), *notes = notes_new();
        struct house *house = *state;
        struct smv_client *client;
        uint64_t kept;

        QUICK(house, NULL);
        client = kept_connect(house);
        notes_read_whole(client, &ask, alone);
        ask.max_tokens = 100;
        ask.stop_tokens = alone->at[0].tokens;
        ask.stop_token_count = 1;
        ask.keep_ms = 60000;
        kept = kept_begin(client, &ask);
        assert_true(notes_read(client, notes, UINT32_MAX));
        assert_int_equal(notes->end.reason, SMV_END_STOP);
        assert_int_equal(notes->end.output_tokens, 1);
        assert_in_range(house_status(house, "charges.0.kept_bytes"), 1, 100 * 32);
        kept_drop(client, kept);
        notes_free(alone);
        notes_free(notes);
        smv_close(client);
        house_stop(house);
}

/* A stranger gets the same reply for these numbers as for numbers that never existed. */
static int be_a_stranger(const struct house *house, uint64_t kept, uint64_t handle)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = house->socket };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_client *client;
        uint32_t stream;

        if (setresgid(STRANGER, STRANGER, STRANGER) || setresuid(STRANGER, STRANGER, STRANGER))
                return 2;
        if (smv_connect(&at, &client))
                return 3;
        if (smv_attach(client, kept, 0, &stream) != -EREMOTEIO)
                return 4;
        smv_error(client, &problem);
        if (problem.code != SMV_NO_KEPT || strncmp(problem.message, "there is no kept stream", 23))
                return 5;
        if (smv_attach(client, kept + 1000, 0, &stream) != -EREMOTEIO)
                return 6;
        smv_error(client, &problem);
        if (problem.code != SMV_NO_KEPT || strncmp(problem.message, "there is no kept stream", 23))
                return 7;
        if (smv_drop(client, kept) != -EREMOTEIO || smv_handle_close(client, handle) != -EREMOTEIO)
                return 8;
        smv_close(client);
        return 0;
}

static void to_another_user_it_does_not_exist(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 100,
                                    .ignore_eos = 1, .keep_ms = 60000 };
        struct house *house = *state;
        struct smv_client *client;
        uint64_t kept, handle;
        pid_t pid;

        /* Only root can become another user. */
        if (getuid())
                skip();
        QUICK(house, "--socket-mode", "0666");
        assert_int_equal(chmod(house->directory, 0711), 0);
        client = kept_connect(house);
        kept = kept_begin(client, &ask);
        assert_int_equal(smv_handle_open(client, &ask, &handle, NULL), 0);
        pid = fork();
        if (!pid)
                _exit(be_a_stranger(house, kept, handle));
        assert_int_equal(process_wait(pid), 0);
        assert_int_equal(smv_handle_close(client, handle), 0);
        kept_drop(client, kept);
        smv_close(client);
        house_stop(house);
}

/* A slow reader does not hold up a kept stream: it ends, and all of it waits for the reader. */
static void who_does_not_read_stalls_nothing(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate),     .prompt = "Tea",
                                    .max_tokens = 1900,         .ignore_eos = 1,
                                    .set = SMV_SET_TEMPERATURE, .keep_ms = 60000 };
        struct house *house = *state;
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint64_t kept[12];
        uint32_t ends = 0, tokens = 0;

        QUICK(house, "--ring-bytes", "64K");
        client = kept_connect(house);
        for (uint32_t i = 0; i < 12; i++)
                kept[i] = kept_begin(client, &ask);
        kept_wait_status(house, "kept.ended", 12);
        assert_int_equal(house_status(house, "requests.alive"), 0);
        while (ends < 12) {
                assert_int_equal(smv_next(client, &event, 10000), 1);
                tokens += (uint32_t)event.token_count;
                ends += event.kind == SMV_EVENT_END;
                if (event.kind == SMV_EVENT_END)
                        assert_int_equal(event.reason, SMV_END_LENGTH);
        }
        assert_int_equal(tokens, 12 * 1900);
        for (uint32_t i = 0; i < 12; i++)
                kept_drop(client, kept[i]);
        smv_close(client);
        house_stop(house);
}

static void a_daemon_that_stops_ends_them_as_all_others(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = ENDLESS,
                                    .ignore_eos = 1, .keep_ms = 3600000 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct house *house = *state;
        struct smv_client *client, *other;
        uint64_t handle;

        QUICK_ENDLESS(house, "--drain-ms", "1");
        client = kept_connect(house);
        other = kept_connect(house);
        for (uint32_t i = 0; i < 6; i++)
                kept_begin(i % 2 ? client : other, &ask);
        assert_int_equal(smv_handle_open(other, &ask, &handle, NULL), 0);
        smv_close(other);
        kill(house->pid, SIGTERM);
        for (uint32_t ends = 0; ends < 3; ends += event.kind == SMV_EVENT_END) {
                assert_int_equal(smv_next(client, &event, 10000), 1);
                if (event.kind == SMV_EVENT_END)
                        assert_int_equal(event.code, SMV_SHUTTING_DOWN);
        }
        assert_int_equal(house_wait(house), 0);
        smv_close(client);
        assert_no_process_left();
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                STORY(with_nobody_attached_its_time_passes),
                STORY(what_may_be_kept_is_limited),
                STORY(what_has_ended_is_charged_for_what_it_became),
                STORY(to_another_user_it_does_not_exist),
                STORY(who_does_not_read_stalls_nothing),
                STORY(a_daemon_that_stops_ends_them_as_all_others),
        };

        need((const char *const[]){ "SAMOVARD", "SAMOVAR", "BABBLE", "BABBLE_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(stories, NULL, NULL);
}
