/*
 * libsamovar against a daemon that dies, stops, lies or belongs to another user: no call hangs
 * or crashes, and every stream that began ends exactly once.
 */
#include "tests/unit/client-rig.h"
#include "tests/skip.h"

#include <grp.h>
#include <pwd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static void a_daemon_that_hangs_up_ends_each_stream_once(void **state)
{
        struct wire w;

        (void)state;
        for (unsigned cut = 0; cut < 40; cut++) { /* also in the middle of a frame */
                begin();
                ok(&script, 2);
                ok(&script, 3);
                ok(&script, 4);
                end_frame(&script, 3, 0, SMV_END_EOS);
                tokens_frame(&script, 4, 0, 0, 1, "last words");
                tokens_frame(&script, 2, 0, 0, 1, "never whole");
                script.count -= 1 + cut;
                open_wire(&w);
                generate(w.client);
                generate(w.client);
                generate(w.client);
                hang_up(&w);
                expect_end(w.client, 3, SMV_END_EOS, SMV_OK);
                expect_tokens(w.client, 4, 0, 1, "last words");
                expect_lost(w.client, 2);
                close_wire(&w);
        }
}

static void keeps_received_tokens_if_the_daemon_dies_before_its_reply(void **state)
{
        struct smv_generate g = { SMV_SIZE(smv_generate), .prompt = "x" };
        struct wire w;
        uint32_t stream;

        (void)state;
        begin();
        ok(&script, 2);
        tokens_frame(&script, 2, 0, 0, 1, "a");
        open_wire(&w);
        generate(w.client);
        hang_up(&w);
        assert_int_equal(smv_generate(w.client, &g, &stream), -ENOTCONN);
        expect_tokens(w.client, 2, 0, 1, "a");
        expect_lost(w.client, 1);
        close_wire(&w);
}

static void the_END_of_a_lost_stream_counts_the_tokens_that_came(void **state)
{
        struct smv_event e;
        struct wire w;

        (void)state;
        begin();
        ok(&script, 2);
        ok(&script, 3);
        tokens_frame(&script, 2, 0, 0, 3, "abc");
        tokens_frame(&script, 2, 1, 3, 2, "de");
        open_wire(&w);
        generate(w.client);
        generate(w.client);
        hang_up(&w);
        expect_tokens(w.client, 2, 0, 3, "abc");
        expect_tokens(w.client, 2, 3, 2, "de");
        for (int i = 0; i < 2; i++) {
                e = next(w.client);
                assert_int_equal(e.code, SMV_LOST);
                assert_int_equal(e.output_tokens, e.stream == 2 ? 5 : 0);
        }
        close_wire(&w);
}

static void keeps_the_error_that_the_daemon_sent_before_hanging_up(void **state)
{
        struct smv_generate g = { SMV_SIZE(smv_generate), .prompt = "x" };
        struct wire w;
        uint32_t stream;

        (void)state;
        begin();
        open_wire(&w);
        refusal(&script, 0, "bad_frame", SMV_BAD_FRAME, NULL, "your length is too long");
        send_script(&w);
        hang_up(&w);
        assert_int_equal(smv_generate(w.client, &g, &stream), -ENOTCONN);
        assert_int_equal(problem(w.client).code, SMV_BAD_FRAME);
        assert_string_equal(problem(w.client).message, "your length is too long");
        close_wire(&w);
}

static void *kill_later(void *arg)
{
        usleep(50000);
        kill(*(pid_t *)arg, SIGKILL);
        return NULL;
}

static void killing_the_daemon_wakes_a_client_that_waits_without_timeout(void **state)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        pthread_t thread;
        int pair[2];
        pid_t pid;

        (void)state;
        begin();
        ok(&script, 2);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                close(pair[1]);
                send_all(pair[0], script.at, script.count);
                pause();
                _exit(0);
        }
        close(pair[0]);
        assert_int_equal(connect_fd(pair[1], &client), 0);
        generate(client);
        pthread_create(&thread, NULL, kill_later, &pid);
        assert_int_equal(smv_next(client, &e, -1), 1);
        assert_int_equal(e.code, SMV_LOST);
        expect_lost(client, 0);
        pthread_join(thread, NULL);
        waitpid(pid, NULL, 0);
        smv_close(client);
}

/* One body as a frame, after a stream has begun. */
static void expect_refused(const void *body, size_t count)
{
        uint32_t length = htole32((uint32_t)count);
        struct wire w;

        begin();
        ok(&script, 2);
        raw(&script, &length, 4);
        raw(&script, body, count);
        tokens_frame(&script, 2, 0, 0, 1, "must not be believed");
        open_wire(&w);
        generate(w.client);
        expect_lost(w.client, 1);
        close_wire(&w);
}

static void a_malformed_frame_ends_the_connection(void **state)
{
        static const struct {
                const char *bytes;
                size_t count;
        } bodies[] = {
                { "\xc0", 1 },                              /* no map */
                { "\x81", 1 },                              /* cut off */
                { "\x80\x80", 2 },                          /* two of them */
                { "\x80", 1 },                              /* no reply, no records */
                { "\x81\xa2ok\xc3", 5 },                    /* no id */
                { "\x81\xa7records\xa1x", 11 },             /* text */
                { "\x81\xa7records\xc4\x05xxxxx", 15 },     /* less than a record */
                { "\x82\xa2id\x01\xa2ok\xc2", 9 },          /* neither ok nor error */
                { "\xdf\xff\xff\xff\xff\x00", 6 },          /* more pairs than bytes */
                { "\x81\xa1x\xdd\xff\xff\xff\xff\x01", 9 }, /* more elements */
                { "\x81\xa1x\xdb\xff\xff\xff\xff\x01", 9 }, /* more text */
                { "\x81\xa1x\xd4\x01\x01", 6 },             /* ext */
                { "\x81\xa1x\xc1", 4 },                     /* not msgpack */
        };
        char deep[80];

        (void)state;
        for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
                expect_refused(bodies[i].bytes, bodies[i].count);

        memcpy(deep, "\x81\xa1x", 3);
        memset(deep + 3, 0x91, sizeof(deep) - 4);
        deep[sizeof(deep) - 1] = 1;
        expect_refused(deep, sizeof(deep));
}

static void refuses_a_frame_longer_than_the_limit_by_its_header(void **state)
{
        struct wire w;

        (void)state;
        begin();
        ok(&script, 2);
        raw(&script, "\x01\x00\x80\x00", 4);
        open_wire(&w);
        generate(w.client);
        expect_lost(w.client, 1);
        close_wire(&w);
}

enum bad_record { BAD_SIZE, BAD_HEAD, BAD_IDS, BAD_STREAM, BAD_GAP, BAD_MUST, BAD_REASON, BAD_N };

static void bad_record(struct script *s, enum bad_record bad)
{
        size_t at;

        records_begin(s);
        at = s->count;
        switch (bad) {
        case BAD_SIZE:
                tokens_record(s, 2, 1, 1, 1, "x");
                s->at[at + 1] = 1;
                break;
        case BAD_HEAD:
                tokens_record(s, 2, 1, 1, 1, "x");
                s->at[at + 10] = 8;
                break;
        case BAD_IDS:
                tokens_record(s, 2, 1, 1, 1, "x");
                s->at[at + 20] = 2;
                break;
        case BAD_STREAM:
                tokens_record(s, 3, 1, 1, 1, "x");
                break;
        case BAD_GAP:
                tokens_record(s, 2, 2, 1, 1, "x");
                break;
        case BAD_MUST:
                record_head(s, 99, SMV_RECORD_CRITICAL, 2, 1, 0);
                break;
        default:
                end_record(s, 2, 1, 9, 0);
                break;
        }
        records_end(s);
}

static void a_bad_record_ends_the_connection_but_keeps_earlier_records(void **state)
{
        struct wire w;

        (void)state;
        for (enum bad_record bad = 0; bad < BAD_N; bad++) {
                begin();
                ok(&script, 2);
                tokens_frame(&script, 2, 0, 0, 1, "good");
                bad_record(&script, bad);
                tokens_frame(&script, 2, 1, 1, 1, "not believed");
                open_wire(&w);
                generate(w.client);
                expect_tokens(w.client, 2, 0, 1, "good");
                expect_lost(w.client, 1);
                close_wire(&w);
        }
}

static void skips_a_record_of_unknown_type(void **state)
{
        struct wire w;

        (void)state;
        begin();
        ok(&script, 2);
        records_begin(&script);
        record_head(&script, 99, 0, 2, 0, 5);
        raw(&script, "later", 5);
        record_head(&script, SMV_RECORD_PAD, 0, 0, 0, 0);
        tokens_record(&script, 2, 1, 0, 1, "x");
        records_end(&script);
        open_wire(&w);
        generate(w.client);
        expect_tokens(w.client, 2, 0, 1, "x");
        close_wire(&w);
}

static void *talk_before_listening(void *arg)
{
        struct wire *w = arg;
        static uint8_t sink[65536];
        ssize_t n;

        /* Everything is said first; only then is the request read. */
        send_all(w->daemon, script.at, script.count);
        do
                n = recv(w->daemon, sink, sizeof(sink), 0);
        while (n > 0);
        return NULL;
}

static void client_and_daemon_may_send_large_data_at_the_same_time(void **state)
{
        struct smv_generate g = { SMV_SIZE(smv_generate) };
        char *long_prompt = malloc(4u << 20), words[1001];
        pthread_t thread;
        uint32_t stream;
        struct wire w;

        (void)state;
        assert_non_null(long_prompt);
        memset(long_prompt, 'x', 4u << 20);
        memset(words, 'y', 1000);
        words[1000] = '\0';
        g.prompt = long_prompt;
        g.prompt_bytes = 4u << 20;

        begin();
        ok(&script, 2);
        open_wire(&w);
        generate(w.client);
        for (uint32_t i = 0; i < 900; i++)
                tokens_frame(&script, 2, i, i, 1, words);
        ok(&script, 3);
        pthread_create(&thread, NULL, talk_before_listening, &w);
        assert_int_equal(smv_generate(w.client, &g, &stream), 0);
        for (uint32_t i = 0; i < 900; i++)
                expect_tokens(w.client, 2, i, 1, words);
        smv_close(w.client);
        pthread_join(thread, NULL);
        close(w.daemon);
        free(long_prompt);
}

static void cancel_does_not_block_if_the_daemon_does_not_read(void **state)
{
        struct wire w;
        int r = 0;

        (void)state;
        begin();
        ok(&script, 2);
        open_wire(&w);
        generate(w.client);
        for (int i = 0; i < 20000 && !r; i++)
                r = smv_cancel(w.client, 2);
        assert_int_equal(r, 0);
        assert_true(w.client->connection.out.count > 0);
        close_wire(&w);
}

static void times_out_if_the_daemon_never_replies(void **state)
{
        struct smv_generate g = { SMV_SIZE(smv_generate), .prompt = "x" };
        struct smv_connect o = { SMV_SIZE(smv_connect), .use_fd = 1, .timeout_ms = 30 };
        struct smv_client *client = NULL;
        char why[128] = "";
        struct wire w;
        uint32_t stream;
        int pair[2];

        (void)state;
        begin();
        ok(&script, 2);
        open_wire(&w);
        generate(w.client);
        w.client->reply_ms = 30;
        assert_int_equal(smv_generate(w.client, &g, &stream), -ETIMEDOUT);
        assert_string_equal(problem(w.client).message,
                            "the daemon did not answer within 30 ms (reply_timeout_ms)");
        expect_lost(w.client, 1);
        close_wire(&w);

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        o.fd = pair[1];
        o.message = why;
        o.message_bytes = sizeof(why);
        assert_int_equal(smv_connect(&o, &client), -ETIMEDOUT);
        assert_null(client);
        assert_string_equal(why, "the daemon did not answer within 30 ms (timeout_ms)");
        close(pair[0]);
}

/* An older daemon says less: then numbers are 0 and texts are empty. */
static void a_model_has_what_the_daemon_says_of_it(void **state)
{
        struct smv_model model = { SMV_SIZE(smv_model) };
        struct wire w;

        (void)state;
        script.count = 0;
        hello_with_model(&script);
        open_wire(&w);
        assert_int_equal(smv_model(w.client, 0, &model), 0);
        assert_string_equal(model.name, "toy");
        assert_true(model.is_default && !model.chat);
        assert_int_equal(model.context, 4096);
        assert_int_equal(model.end_token_count, 0);
        assert_string_equal(model.architecture, "");
        assert_string_equal(model.digest, "");
        assert_int_equal(model.parameters, 0);
        assert_int_equal(smv_model(w.client, 1, &model), -ENOENT);
        assert_int_equal(smv_model(NULL, 0, &model), -ENOENT);
        close_wire(&w);
}

/* A beam search waits for streams, which have no timeout; so it also asks for a reply. */
static void beam_search_times_out_if_the_daemon_goes_silent(void **state)
{
        const struct smv_generate start = { SMV_SIZE(smv_generate), .prompt = "Once" };
        const struct smv_beam o = { SMV_SIZE(smv_beam), .start = &start, .width = 1 };
        const struct smv_beam_result *results;
        struct wire w;
        size_t count;

        (void)state;
        script.count = 0;
        hello_with_model(&script);
        ok_begin(&script, 2, 2);
        text(&script, "handle");
        number(&script, 7);
        text(&script, "length");
        number(&script, 1);
        frame_end(&script);
        ok(&script, 3); /* the stream begins, and has no event */
        open_wire(&w);
        w.client->reply_ms = 30;
        assert_int_equal(smv_beam(w.client, &o, &results, &count), -ETIMEDOUT);
        assert_int_equal(w.client->last_id, 4); /* that of its question */
        expect_lost(w.client, 1);
        close_wire(&w);
}

static void a_reply_without_its_field_fails_only_that_call(void **state)
{
        const uint32_t *ids;
        struct wire w;
        size_t count;

        (void)state;
        begin();
        ok(&script, 2);
        ok(&script, 3);
        open_wire(&w);
        assert_int_equal(smv_tokenize(w.client, NULL, "x", 1, &ids, &count), -EPROTO);
        assert_int_equal(generate(w.client), 3);
        close_wire(&w);
}

/* Whatever comes: no crash, no hang, and one END for each stream that began. */
static void ends_every_stream_once_for_any_received_bytes(void **state)
{
        static struct script whole;
        uint64_t draw = 20260101;

        (void)state;
        story(&whole);
        for (int turn = 0; turn < 20000; turn++) {
                struct smv_generate g = { SMV_SIZE(smv_generate), .prompt = "x" };
                struct smv_event e = { SMV_SIZE(smv_event) };
                struct smv_client *client;
                uint32_t stream, ends = 0;
                int pair[2], began, r;

                memcpy(script.at, whole.at, whole.count);
                script.count = whole.count;
                for (int i = 0; i < 1 + turn % 3; i++) {
                        draw = draw * 6364136223846793005u + 1442695040888963407u;
                        script.at[(draw >> 33) % whole.count] ^= (uint8_t)(1u << (draw >> 29 & 7));
                }
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
                send_all(pair[0], script.at, script.count);
                shutdown(pair[0], SHUT_WR);
                if (!connect_fd(pair[1], &client)) {
                        began = !smv_generate(client, &g, &stream);
                        while ((r = smv_next(client, &e, 1000)) > 0)
                                ends += e.kind == SMV_EVENT_END;
                        assert_true(r == -ENOTCONN || r == -ENODATA);
                        assert_int_equal(ends, began);
                        smv_close(client);
                }
                close(pair[0]);
        }
}

/* Must run as root, so that another user can serve the socket. */
static void refuses_a_daemon_of_another_user_unless_allowed(void **state)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct smv_connect o = { SMV_SIZE(smv_connect), .socket = address.sun_path };
        char dir[] = "/tmp/samovar-test-XXXXXX", why[256] = "";
        struct smv_client *client;
        int listener, ready[2];
        pid_t pid;
        char byte_read;

        (void)state;
        if (geteuid())
                skip_because("only root can be two users");
        assert_non_null(mkdtemp(dir));
        assert_int_equal(chmod(dir, 0777), 0);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", dir);
        assert_int_equal(pipe(ready), 0);
        begin();
        pid = fork();
        if (!pid) {
                if (setuid(65534))
                        _exit(1);
                listener = socket(AF_UNIX, SOCK_STREAM, 0);
                if (bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
                    listen(listener, 4) || write(ready[1], "", 1) != 1)
                        _exit(1);
                for (;;)
                        accept_one(&listener);
        }
        assert_int_equal(read(ready[0], &byte_read, 1), 1);
        o.message = why;
        o.message_bytes = sizeof(why);
        assert_int_equal(smv_connect(&o, &client), -EPERM);
        assert_non_null(strstr(why, "65534"));
        o.any_uid = 1;
        assert_int_equal(smv_connect(&o, &client), 0);
        smv_close(client);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(ready[0]);
        close(ready[1]);
        unlink(address.sun_path);
        rmdir(dir);
}

static void expect_access_refused(const struct smv_connect *options, uid_t uid, const char *why,
                                  const char *words)
{
        struct smv_client *client;
        pid_t pid = fork();
        int status;

        if (!pid) {
                if (setgid(65533) || setuid(uid))
                        _exit(2);
                _exit(smv_connect(options, &client) != -EACCES || !strstr(why, words));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

/* Must run as root, so that another user can be refused. */
static void says_which_users_may_connect(void **state)
{
        static const struct {
                mode_t mode;
                uid_t owner;
                const char *words;
        } sockets[] = {
                { 0600, 0, ": only root may connect" },
                { 0600, 1234, ": only root and user 1234 may connect" },
                { 0660, 0,
                  ": only root and members of the group 4321 may connect; ask root to add you to "
                  "it" },
                { 0660, 1234, ": only root, user 1234 and members of the group 4321 may connect;" },
        };
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        char dir[] = "/tmp/samovar-test-XXXXXX", why[256] = "", words[192];
        const struct smv_connect o = { SMV_SIZE(smv_connect), .socket = address.sun_path,
                                       .message = why, .message_bytes = sizeof(why) };
        int listener = socket(AF_UNIX, SOCK_STREAM, 0);

        (void)state;
        if (geteuid())
                skip_because("only root can be two users");
        assert_non_null(mkdtemp(dir));
        assert_int_equal(chmod(dir, 0755), 0);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", dir);
        assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(listener, 4), 0);
        for (size_t i = 0; i < sizeof(sockets) / sizeof(*sockets); i++) {
                assert_int_equal(chown(address.sun_path, sockets[i].owner, 4321), 0);
                assert_int_equal(chmod(address.sun_path, sockets[i].mode), 0);
                expect_access_refused(&o, 65533, why, sockets[i].words);
        }
        if (getgrgid(1) && getpwuid(65534)) {
                snprintf(words, sizeof(words),
                         "members of the group %s may connect; ask root to add you to it: usermod "
                         "-aG %s %s",
                         getgrgid(1)->gr_name, getgrgid(1)->gr_name, getpwuid(65534)->pw_name);
                assert_int_equal(chown(address.sun_path, 0, 1), 0);
                expect_access_refused(&o, 65534, why, words);
        }
        close(listener);
        unlink(address.sun_path);
        rmdir(dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_daemon_that_hangs_up_ends_each_stream_once),
                cmocka_unit_test(keeps_received_tokens_if_the_daemon_dies_before_its_reply),
                cmocka_unit_test(the_END_of_a_lost_stream_counts_the_tokens_that_came),
                cmocka_unit_test(keeps_the_error_that_the_daemon_sent_before_hanging_up),
                cmocka_unit_test(killing_the_daemon_wakes_a_client_that_waits_without_timeout),
                cmocka_unit_test(a_malformed_frame_ends_the_connection),
                cmocka_unit_test(refuses_a_frame_longer_than_the_limit_by_its_header),
                cmocka_unit_test(a_bad_record_ends_the_connection_but_keeps_earlier_records),
                cmocka_unit_test(skips_a_record_of_unknown_type),
                cmocka_unit_test(client_and_daemon_may_send_large_data_at_the_same_time),
                cmocka_unit_test(cancel_does_not_block_if_the_daemon_does_not_read),
                cmocka_unit_test(times_out_if_the_daemon_never_replies),
                cmocka_unit_test(a_model_has_what_the_daemon_says_of_it),
                cmocka_unit_test(beam_search_times_out_if_the_daemon_goes_silent),
                cmocka_unit_test(a_reply_without_its_field_fails_only_that_call),
                cmocka_unit_test(ends_every_stream_once_for_any_received_bytes),
                cmocka_unit_test(refuses_a_daemon_of_another_user_unless_allowed),
                cmocka_unit_test(says_which_users_may_connect),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
