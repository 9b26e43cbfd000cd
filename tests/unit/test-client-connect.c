/*
 * smv_connect() against a stand-in for the daemon: how a refusal is reported, when it waits and
 * tries again, and what it says meanwhile.
 */
#include "tests/unit/client-rig.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>

#define WAITS_MAX 64

/* A listener, and a thread that answers one connection with the script, and hangs up or not. */
struct stand_in {
        struct sockaddr_un address;
        char directory[32];
        int listener, fd; /* -1: none */
        pthread_t thread;
        bool runs, hangs_up;
};

/* The waits that on_wait() was told of, and what the test does at each of them. */
struct waits {
        struct stand_in *daemon;
        void (*act)(struct stand_in *daemon, unsigned number);
        unsigned count;
        enum smv_code codes[WAITS_MAX];
        char names[WAITS_MAX][32];
        uint32_t wait_ms[WAITS_MAX];
};

static void make_place(struct stand_in *daemon)
{
        *daemon = (struct stand_in){ .address.sun_family = AF_UNIX, .listener = -1, .fd = -1 };
        snprintf(daemon->directory, sizeof(daemon->directory), "/tmp/samovar-test-XXXXXX");
        assert_non_null(mkdtemp(daemon->directory));
        snprintf(daemon->address.sun_path, sizeof(daemon->address.sun_path), "%s/sock",
                 daemon->directory);
}

static void listen_there(struct stand_in *daemon, int backlog)
{
        daemon->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(daemon->listener >= 0);
        assert_int_equal(bind(daemon->listener, (const struct sockaddr *)&daemon->address,
                              sizeof(daemon->address)),
                         0);
        assert_int_equal(listen(daemon->listener, backlog), 0);
}

static void *answer_one(void *arg)
{
        struct stand_in *daemon = arg;

        daemon->fd = accept(daemon->listener, NULL, NULL);
        send_all(daemon->fd, script.at, script.count);
        if (daemon->hangs_up) {
                close(daemon->fd);
                daemon->fd = -1;
        }
        return NULL;
}

static void begin_answer(struct stand_in *daemon, bool hangs_up)
{
        daemon->hangs_up = hangs_up;
        daemon->runs = true;
        assert_int_equal(pthread_create(&daemon->thread, NULL, answer_one, daemon), 0);
}

static void end_answer(struct stand_in *daemon)
{
        if (daemon->runs)
                assert_int_equal(pthread_join(daemon->thread, NULL), 0);
        daemon->runs = false;
}

static void stop_listening(struct stand_in *daemon)
{
        end_answer(daemon);
        close(daemon->listener);
        daemon->listener = -1;
}

static void remove_place(struct stand_in *daemon)
{
        end_answer(daemon);
        if (daemon->fd >= 0)
                close(daemon->fd);
        if (daemon->listener >= 0)
                close(daemon->listener);
        unlink(daemon->address.sun_path);
        rmdir(daemon->directory);
}

static void refuse_connection(const char *error, uint32_t code, const char *message,
                              uint32_t retry_ms)
{
        script.count = 0;
        frame_begin(&script, retry_ms ? 5 : 4);
        text(&script, "id");
        number(&script, 0);
        text(&script, "error");
        text(&script, error);
        text(&script, "code");
        number(&script, code);
        text(&script, "message");
        text(&script, message);
        if (retry_ms) {
                text(&script, "retry_ms");
                number(&script, retry_ms);
        }
        frame_end(&script);
}

static void on_wait(void *arg, const struct smv_problem *why, uint32_t wait_ms)
{
        struct waits *waits = arg;

        assert_true(waits->count < WAITS_MAX);
        waits->codes[waits->count] = why->code;
        snprintf(waits->names[waits->count], sizeof(*waits->names), "%s", why->name);
        waits->wait_ms[waits->count] = wait_ms;
        assert_true(*why->message);
        if (waits->act)
                waits->act(waits->daemon, waits->count);
        waits->count++;
}

static int connect_at(const struct stand_in *daemon, struct waits *waits, int timeout_ms,
                      struct smv_problem *problem, struct smv_client **ret_client)
{
        const struct smv_connect options = {
                SMV_SIZE(smv_connect),    .socket = daemon->address.sun_path,
                .timeout_ms = timeout_ms, .problem = problem,
                .on_wait = on_wait,       .on_wait_arg = waits
        };

        return smv_connect(&options, ret_client);
}

/* ---- refusals ---- */

/* Connects by a descriptor, over which the script and a hang-up have come already. */
static int connect_to_script(struct smv_connect *options, struct smv_problem *problem)
{
        struct smv_client *client = NULL;
        int pair[2], r;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        send_all(pair[0], script.at, script.count);
        shutdown(pair[0], SHUT_WR);
        options->size = sizeof(*options);
        options->use_fd = 1;
        options->fd = pair[1];
        options->problem = problem;
        r = smv_connect(options, &client);
        assert_null(client);
        close(pair[0]);
        return r;
}

static void reports_every_field_of_a_refused_connection(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        char why[128] = "";
        struct smv_connect options = { .message = why, .message_bytes = sizeof(why) };

        (void)state;
        refuse_connection("busy", SMV_BUSY, "no connection is free", 250);
        assert_int_equal(connect_to_script(&options, &problem), -EREMOTEIO);
        assert_int_equal(problem.code, SMV_BUSY);
        assert_string_equal(problem.name, "busy");
        assert_string_equal(problem.field, "");
        assert_ptr_equal(problem.message, why);
        assert_string_equal(why, "no connection is free");
        assert_int_equal(problem.retry_ms, 250);

        options.message = NULL;
        refuse_connection("denied", SMV_DENIED, "you have no uid", 0);
        assert_int_equal(connect_to_script(&options, &problem), -EREMOTEIO);
        assert_int_equal(problem.code, SMV_DENIED);
        assert_string_equal(problem.message, "");
        assert_int_equal(problem.retry_ms, 0);
}

static void names_the_field_of_hello_that_is_refused(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        char why[128] = "";
        struct smv_connect options = { .message = why, .message_bytes = sizeof(why) };

        (void)state;
        script.count = 0;
        refusal(&script, 1, "bad_value", SMV_BAD_VALUE, "ring_bytes", "ring_bytes is 7");
        assert_int_equal(connect_to_script(&options, &problem), -EREMOTEIO);
        assert_string_equal(problem.name, "bad_value");
        assert_string_equal(problem.field, "ring_bytes");
        assert_string_equal(why, "ring_bytes is 7");
}

static void names_the_member_that_the_library_refuses(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        char why[128] = "", path[1024];
        struct smv_connect options = { .message = why, .message_bytes = sizeof(why) };
        struct smv_client *client;

        (void)state;
        script.count = 0;
        options.doorbell = (enum smv_doorbell)3;
        assert_int_equal(connect_to_script(&options, &problem), -EINVAL);
        assert_int_equal(problem.code, SMV_OK);
        assert_string_equal(problem.name, "EINVAL");
        assert_string_equal(problem.field, "doorbell");
        assert_string_equal(why, "doorbell is 3; it may be 0 to 2");
        options.transport = (enum smv_transport)4;
        assert_int_equal(connect_to_script(&options, &problem), -EINVAL);
        assert_string_equal(problem.field, "transport");

        memset(path, 'x', sizeof(path));
        path[sizeof(path) - 1] = '\0';
        options.use_fd = 0;
        options.socket = path;
        assert_int_equal(smv_connect(&options, &client), -ENAMETOOLONG);
        assert_string_equal(problem.field, "socket");
}

static void a_daemon_that_hangs_up_without_a_reason_is_lost(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_connect options = { SMV_SIZE(smv_connect), .use_fd = 1, .problem = &problem };
        struct smv_client *client;
        int pair[2];

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        close(pair[0]);
        options.fd = pair[1];
        assert_int_equal(smv_connect(&options, &client), -ENOTCONN);
        assert_int_equal(problem.code, SMV_LOST);
        assert_string_equal(problem.name, "lost");
}

/* ---- without a client ---- */

static void a_connection_that_fails_leaves_no_client(void **state)
{
        struct smv_client *client = (struct smv_client *)(void *)&client;
        const struct smv_connect no_size = { 0 },
                                 nowhere = { SMV_SIZE(smv_connect), .socket = "/nowhere/sock" };

        (void)state;
        assert_int_equal(smv_connect(&nowhere, &client), -ENOENT);
        assert_null(client);
        client = (struct smv_client *)(void *)&client;
        assert_int_equal(smv_connect(&no_size, &client), -EINVAL);
        assert_null(client);
}

static void calls_about_streams_are_refused_without_a_client(void **state)
{
        const struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once" };
        const struct smv_fork fork = { SMV_SIZE(smv_fork), .count = 1 };
        const struct smv_beam beam = { SMV_SIZE(smv_beam), .start = &ask };
        const struct smv_beam_result *results;
        struct smv_accepted accepted = { SMV_SIZE(smv_accepted), .prompt_tokens = 1 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream = 7;
        size_t count;

        (void)state;
        assert_int_equal(smv_generate(NULL, &ask, &stream), -EINVAL);
        assert_int_equal(smv_fork(NULL, 1, &fork, &stream), -EINVAL);
        assert_int_equal(smv_beam(NULL, &beam, &results, &count), -EINVAL);
        assert_int_equal(smv_next(NULL, &event, -1), -EINVAL);
        assert_int_equal(smv_next(NULL, &(struct smv_event){ 0 }, -1), -EINVAL);
        assert_int_equal(smv_cancel(NULL, 1), -EINVAL);
        assert_int_equal(smv_attach(NULL, 1, 0, &stream), -EINVAL);
        assert_int_equal(smv_detach(NULL, 1), -EINVAL);
        assert_int_equal(smv_drop(NULL, 1), -EINVAL);
        assert_int_equal(stream, 7);
        smv_accepted(NULL, &accepted);
        assert_int_equal(accepted.prompt_tokens, 0);
        assert_int_equal(smv_resume_id(NULL, 1), 0);
        assert_int_equal(smv_stream_number(NULL, 1), 0);
}

static void calls_with_one_answer_are_refused_without_a_client(void **state)
{
        const struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once" };
        const uint32_t *tokens;
        const char *text;
        uint64_t handle;
        uint32_t stream;
        size_t count;

        (void)state;
        assert_int_equal(smv_tokenize(NULL, NULL, "a", 0, &tokens, &count), -EINVAL);
        assert_int_equal(smv_detokenize(NULL, NULL, NULL, 0, &text, &count), -EINVAL);
        assert_int_equal(smv_pieces(NULL, NULL, NULL, 0, &(const struct smv_piece *){ NULL }),
                         -EINVAL);
        assert_int_equal(smv_vocabulary(NULL, NULL, 0, 0, &(const struct smv_piece *){ NULL },
                                        &count, &count),
                         -EINVAL);
        assert_int_equal(smv_template(NULL, &ask, &text, &count, NULL, NULL), -EINVAL);
        assert_int_equal(smv_status(NULL, &text), -EINVAL);
        assert_int_equal(smv_list(NULL, &text), -EINVAL);
        assert_int_equal(smv_pool(NULL, 0, &text), -EINVAL);
        assert_int_equal(smv_end(NULL, 1), -EINVAL);
        assert_int_equal(smv_handle_open(NULL, &ask, &handle, NULL), -EINVAL);
        assert_int_equal(smv_handle_append(NULL, 1, NULL, 0, NULL), -EINVAL);
        assert_int_equal(smv_handle_append_text(NULL, 1, "a", 0, NULL), -EINVAL);
        assert_int_equal(smv_handle_append_messages(NULL, 1, &ask, NULL), -EINVAL);
        assert_int_equal(smv_handle_truncate(NULL, 1, 0), -EINVAL);
        assert_int_equal(smv_handle_fork(NULL, 1, 1, &handle), -EINVAL);
        assert_int_equal(smv_handle_pin(NULL, 1, 1, SMV_PRIORITY_NORMAL, &stream), -EINVAL);
        assert_int_equal(smv_handle_pin(NULL, 1, 1, (enum smv_priority)9, &stream), -EINVAL);
        assert_int_equal(smv_handle_publish(NULL, 1, 0, NULL, &stream), -EINVAL);
        assert_int_equal(smv_handle_revoke(NULL, 1), -EINVAL);
        assert_int_equal(smv_handle_close(NULL, 1), -EINVAL);
}

static void says_that_there_is_no_client(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        (void)state;
        smv_error(NULL, &problem);
        assert_int_equal(problem.code, SMV_OK);
        assert_string_equal(problem.name, "EINVAL");
        assert_string_equal(problem.field, "client");
        assert_non_null(strstr(problem.message, "smv_connect() has failed"));
        assert_int_equal(smv_fd(NULL), -EINVAL);
        assert_null(smv_socket_used(NULL));
        assert_int_equal(smv_transport_used(NULL), SMV_TRANSPORT_SOCKET);
        smv_wake_after(NULL, 1);
        assert_null(smv_close(NULL));
}

/* ---- waiting ---- */

static void let_in_at_the_third_wait(struct stand_in *daemon, unsigned number)
{
        end_answer(daemon);
        if (number == 2)
                begin();
        begin_answer(daemon, number < 2);
}

static void tells_of_each_wait_for_a_daemon_that_refuses(void **state)
{
        struct stand_in daemon;
        struct waits waits = { .daemon = &daemon, .act = let_in_at_the_third_wait };
        struct smv_client *client;

        (void)state;
        make_place(&daemon);
        listen_there(&daemon, 8);
        refuse_connection("quota", SMV_QUOTA, "you connect too often", 1);
        begin_answer(&daemon, true);
        assert_int_equal(connect_at(&daemon, &waits, -1, NULL, &client), 0);
        assert_int_equal(waits.count, 3);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(waits.codes[i], SMV_QUOTA);
                assert_int_equal(waits.wait_ms[i], 1u << i);
        }
        smv_close(client);
        remove_place(&daemon);
}

static void does_not_wait_for_a_daemon_that_was_never_there(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct waits waits = { 0 };
        struct smv_client *client;
        struct stand_in daemon;

        (void)state;
        make_place(&daemon);
        assert_int_equal(connect_at(&daemon, &waits, -1, &problem, &client), -ENOENT);
        assert_string_equal(problem.name, "ENOENT");
        listen_there(&daemon, 8);
        stop_listening(&daemon);
        assert_int_equal(connect_at(&daemon, &waits, -1, &problem, &client), -ECONNREFUSED);
        assert_int_equal(waits.count, 0);
        remove_place(&daemon);
}

/* The daemon goes; then there is no socket; then one daemon dies before hello, and one serves. */
static void replace_daemon(struct stand_in *daemon, unsigned number)
{
        end_answer(daemon);
        if (number == 0)
                stop_listening(daemon);
        if (number == 1)
                unlink(daemon->address.sun_path);
        if (number == 2) {
                listen_there(daemon, 8);
                script.count = 0;
                begin_answer(daemon, true);
        }
        if (number == 3) {
                begin();
                begin_answer(daemon, false);
        }
}

static void follows_a_daemon_that_stops_to_the_next_one(void **state)
{
        static const char *const names[] = { "shutting_down", "ECONNREFUSED", "ENOENT", "lost" };
        struct stand_in daemon;
        struct waits waits = { .daemon = &daemon, .act = replace_daemon };
        struct smv_client *client;

        (void)state;
        make_place(&daemon);
        listen_there(&daemon, 8);
        refuse_connection("shutting_down", SMV_SHUTTING_DOWN, "the daemon is stopping", 1);
        begin_answer(&daemon, true);
        assert_int_equal(connect_at(&daemon, &waits, -1, NULL, &client), 0);
        assert_int_equal(waits.count, 4);
        for (unsigned i = 0; i < 4; i++)
                assert_string_equal(waits.names[i], names[i]);
        smv_close(client);
        remove_place(&daemon);
}

static void stop_for_good(struct stand_in *daemon, unsigned number)
{
        if (!number)
                stop_listening(daemon);
}

static void reports_that_no_daemon_followed_the_one_that_stopped(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct stand_in daemon;
        struct waits waits = { .daemon = &daemon, .act = stop_for_good };
        struct smv_client *client;

        (void)state;
        make_place(&daemon);
        listen_there(&daemon, 8);
        refuse_connection("shutting_down", SMV_SHUTTING_DOWN, "the daemon is stopping", 1);
        begin_answer(&daemon, true);
        assert_int_equal(connect_at(&daemon, &waits, 2000, &problem, &client), -ECONNREFUSED);
        assert_true(waits.count >= 2);
        assert_string_equal(problem.name, "ECONNREFUSED");
        remove_place(&daemon);
}

static void waits_while_the_queue_of_new_connections_is_full(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct waits waits = { 0 };
        struct smv_client *client;
        struct stand_in daemon;
        int fds[8], count = 0, r = 0;

        (void)state;
        make_place(&daemon);
        listen_there(&daemon, 0);
        while (!r) {
                assert_true(count < 8);
                fds[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
                r = connect(fds[count++], (struct sockaddr *)&daemon.address,
                            sizeof(daemon.address));
        }
        assert_int_equal(errno, EAGAIN);
        assert_int_equal(connect_at(&daemon, &waits, 50, &problem, &client), -ETIMEDOUT);
        assert_in_range(waits.count, 1, 3); /* 10, 20 and 40 ms are more than 50 */
        assert_string_equal(waits.names[0], "EAGAIN");
        while (count)
                close(fds[--count]);
        remove_place(&daemon);
}

/* The listener has a queue, but nobody accepts, as at the socket of a service manager. */
static void tells_of_a_daemon_that_does_not_answer(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct waits waits = { 0 };
        struct smv_client *client;
        struct stand_in daemon;

        (void)state;
        make_place(&daemon);
        listen_there(&daemon, 8);
        assert_int_equal(connect_at(&daemon, &waits, 1100, &problem, &client), -ETIMEDOUT);
        assert_int_equal(waits.count, 1);
        assert_string_equal(waits.names[0], "EAGAIN");
        assert_int_equal(problem.code, SMV_LOST);
        remove_place(&daemon);
}

/* Refuses each connection at the control socket until it is shut down. */
static void *refuse_all(void *arg)
{
        struct stand_in *control = arg;
        int fd;

        while ((fd = accept(control->listener, NULL, NULL)) >= 0) {
                send_all(fd, script.at, script.count);
                close(fd);
        }
        return NULL;
}

/*
 * No thread accepts at the socket, but one refuses at the control socket.  A slow machine may hide
 * that, so this connects until it is seen.
 */
static void hears_at_the_control_socket_that_the_daemon_is_stopping(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        char why[128] = "";
        struct smv_client *client;
        struct stand_in daemon, control;
        struct waits waits = { 0 };
        const struct smv_connect options = {
                SMV_SIZE(smv_connect),        .socket = daemon.address.sun_path,
                .timeout_ms = 1600,           .message = why,
                .message_bytes = sizeof(why), .problem = &problem,
                .on_wait = on_wait,           .on_wait_arg = &waits
        };

        (void)state;
        make_place(&daemon);
        listen_there(&daemon, 64);
        control = daemon;
        strcat(control.address.sun_path, SMV_CONTROL_SUFFIX);
        listen_there(&control, 8);
        refuse_connection("shutting_down", SMV_SHUTTING_DOWN, "the daemon is stopping", 250);
        assert_int_equal(pthread_create(&control.thread, NULL, refuse_all, &control), 0);
        do {
                waits.count = 0;
                assert_int_equal(smv_connect(&options, &client), -ETIMEDOUT);
                assert_int_equal(waits.count, 1);
        } while (waits.codes[0] != SMV_SHUTTING_DOWN);
        assert_string_equal(waits.names[0], "shutting_down");
        assert_int_equal(problem.code, SMV_LOST);
        assert_string_equal(why, "the daemon is stopping, and no other one answered within 1600 ms "
                                 "(timeout_ms)");

        shutdown(control.listener, SHUT_RDWR);
        assert_int_equal(pthread_join(control.thread, NULL), 0);
        close(control.listener);
        unlink(control.address.sun_path);
        remove_place(&daemon);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reports_every_field_of_a_refused_connection),
                cmocka_unit_test(names_the_field_of_hello_that_is_refused),
                cmocka_unit_test(names_the_member_that_the_library_refuses),
                cmocka_unit_test(a_daemon_that_hangs_up_without_a_reason_is_lost),
                cmocka_unit_test(a_connection_that_fails_leaves_no_client),
                cmocka_unit_test(calls_about_streams_are_refused_without_a_client),
                cmocka_unit_test(calls_with_one_answer_are_refused_without_a_client),
                cmocka_unit_test(says_that_there_is_no_client),
                cmocka_unit_test(tells_of_each_wait_for_a_daemon_that_refuses),
                cmocka_unit_test(does_not_wait_for_a_daemon_that_was_never_there),
                cmocka_unit_test(follows_a_daemon_that_stops_to_the_next_one),
                cmocka_unit_test(reports_that_no_daemon_followed_the_one_that_stopped),
                cmocka_unit_test(tells_of_a_daemon_that_does_not_answer),
                cmocka_unit_test(hears_at_the_control_socket_that_the_daemon_is_stopping),
                cmocka_unit_test(waits_while_the_queue_of_new_connections_is_full),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
