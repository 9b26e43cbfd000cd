/*
 * Clients of a daemon that does not answer because a signal has stopped it, and of one that stops
 * for good, so that another one follows.
 */
#include <errno.h>
#include <samovar/client.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"
#include "tests/unit/fake-daemon.h"

#define SAMOVAR env_path("SAMOVAR")

/* ---- calls ---- */

static const uint32_t ids[] = { 1, 2 };
static const struct smv_message hello_there = { .role = "user", .content = "Hello" };
static const struct smv_generate options = { SMV_SIZE(smv_generate), .messages = &hello_there,
                                             .message_count = 1 };

static int call_generate(struct smv_client *client)
{
        return smv_generate(client, &options, &(uint32_t){ 0 });
}

static int call_fork(struct smv_client *client)
{
        const struct smv_fork one = { SMV_SIZE(smv_fork), .count = 1 };

        return smv_fork(client, 1, &one, &(uint32_t){ 0 });
}

static int call_attach(struct smv_client *client)
{
        return smv_attach(client, 1, 0, &(uint32_t){ 0 });
}

static int call_drop(struct smv_client *client)
{
        return smv_drop(client, 1);
}

static int call_tokenize(struct smv_client *client)
{
        return smv_tokenize(client, NULL, "x", 1, &(const uint32_t *){ NULL }, &(size_t){ 0 });
}

static int call_detokenize(struct smv_client *client)
{
        return smv_detokenize(client, NULL, ids, 2, &(const char *){ NULL }, &(size_t){ 0 });
}

static int call_template(struct smv_client *client)
{
        return smv_template(client, &options, &(const char *){ NULL }, &(size_t){ 0 }, NULL, NULL);
}

static int call_open(struct smv_client *client)
{
        return smv_handle_open(client, &options, &(uint64_t){ 0 }, NULL);
}

static int call_append(struct smv_client *client)
{
        return smv_handle_append(client, 1, ids, 2, NULL);
}

static int call_append_text(struct smv_client *client)
{
        return smv_handle_append_text(client, 1, "x", 1, NULL);
}

static int call_append_messages(struct smv_client *client)
{
        return smv_handle_append_messages(client, 1, &options, NULL);
}

static int call_truncate(struct smv_client *client)
{
        return smv_handle_truncate(client, 1, 0);
}

static int call_handle_fork(struct smv_client *client)
{
        return smv_handle_fork(client, 1, 1, &(uint64_t){ 0 });
}

static int call_pin(struct smv_client *client)
{
        return smv_handle_pin(client, 1, 1000, SMV_PRIORITY_NORMAL, &(uint32_t){ 0 });
}

static int call_unpin(struct smv_client *client)
{
        return smv_handle_pin(client, 1, 0, SMV_PRIORITY_NORMAL, &(uint32_t){ 0 });
}

static int call_publish(struct smv_client *client)
{
        return smv_handle_publish(client, 1, 0, NULL, &(uint32_t){ 0 });
}

static int call_revoke(struct smv_client *client)
{
        return smv_handle_revoke(client, 1);
}

static int call_close(struct smv_client *client)
{
        return smv_handle_close(client, 1);
}

static int call_beam(struct smv_client *client)
{
        const struct smv_beam beam = { SMV_SIZE(smv_beam), .start = &options, .width = 1 };

        return smv_beam(client, &beam, &(const struct smv_beam_result *){ NULL }, &(size_t){ 0 });
}

static int call_status(struct smv_client *client)
{
        return smv_status(client, &(const char *){ NULL });
}

static int call_list(struct smv_client *client)
{
        return smv_list(client, &(const char *){ NULL });
}

static int call_end(struct smv_client *client)
{
        return smv_end(client, 1);
}

static int (*const calls[])(struct smv_client *client) = {
        call_generate,
        call_fork,
        call_attach,
        call_drop,
        call_tokenize,
        call_detokenize,
        call_template,
        call_open,
        call_append,
        call_append_text,
        call_append_messages,
        call_truncate,
        call_handle_fork,
        call_pin,
        call_unpin,
        call_publish,
        call_revoke,
        call_close,
        call_beam,
        call_status,
        call_list,
        call_end,
};
#define CALLS (sizeof(calls) / sizeof(*calls))

static void every_call_ends_if_a_signal_has_stopped_the_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                     .transport = SMV_TRANSPORT_SOCKET, .reply_timeout_ms = 20 };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_client *clients[CALLS];

        START_DAEMON(fixture, "--threads", "1");
        for (size_t i = 0; i < CALLS; i++)
                assert_int_equal(smv_connect(&where, &clients[i]), 0);
        assert_int_equal(kill(fixture->pid, SIGSTOP), 0);
        for (size_t i = 0; i < CALLS; i++) {
                assert_int_equal(calls[i](clients[i]), -ETIMEDOUT);
                smv_error(clients[i], &problem);
                assert_int_equal(problem.code, SMV_LOST);
                assert_string_equal(problem.message,
                                    "the daemon did not answer within 20 ms (reply_timeout_ms)");
                assert_int_equal(calls[i](clients[i]), -ENOTCONN);
                smv_close(clients[i]);
        }
        where.timeout_ms = 20;
        where.problem = &problem;
        assert_int_equal(smv_connect(&where, &clients[0]), -ETIMEDOUT);
        assert_int_equal(problem.code, SMV_LOST);
        assert_int_equal(kill(fixture->pid, SIGCONT), 0);
        fixture_stop(fixture);
}

/* ---- the command ---- */

static void the_command_gives_up_after_its_timeout(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        assert_int_equal(kill(fixture->pid, SIGSTOP), 0);
        ran = RUN(fixture, NULL, SAMOVAR, "models", "--timeout", "3");
        assert_int_equal(kill(fixture->pid, SIGCONT), 0);
        assert_int_equal(ran.status, 1);
        assert_string_equal(
                ran.err, "samovar: waiting up to 3 s (--timeout): the daemon does not answer yet\n"
                         "samovar: the daemon did not answer within 3000 ms (timeout_ms)\n"
                         "samovar: it may be stopped or overloaded; --timeout waits longer\n");
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* When the socket is at its path, it listens. */
static int listen_at(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", path);
        if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 8) ||
            rename(address.sun_path, path))
                _exit(1);
        return listener;
}

/* Answers a connection, and waits until the client has closed it. */
static void answer(int listener, const struct script *script)
{
        int fd = accept(listener, NULL, NULL);
        char byte_read;

        if (fd < 0 || send(fd, script->at, script->count, MSG_NOSIGNAL) != (ssize_t)script->count)
                _exit(1);
        shutdown(fd, SHUT_WR);
        while (recv(fd, &byte_read, 1, 0) > 0)
                ;
        close(fd);
}

/* A daemon that stops, which a client asks twice; then another one, which does what is asked. */
static void be_two_daemons(const char *path)
{
        static struct script script;
        int listener = listen_at(path);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        frame_begin(&script, 5);
        text(&script, "id");
        number(&script, 0);
        text(&script, "error");
        text(&script, "shutting_down");
        text(&script, "code");
        number(&script, SMV_SHUTTING_DOWN);
        text(&script, "message");
        text(&script, "the daemon is stopping");
        text(&script, "retry_ms");
        number(&script, 1000);
        frame_end(&script);
        answer(listener, &script);
        answer(listener, &script);
        close(listener);
        unlink(path);

        listener = listen_at(path);
        script.count = 0;
        hello(&script);
        ok(&script, 2);
        answer(listener, &script);
        _exit(0);
}

static void the_command_follows_a_daemon_that_stops_and_says_once_that_it_waits(void **state)
{
        static const char said[] =
                "samovar: waiting up to 50 s (--timeout): the daemon is stopping\n";
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char path[96];
        pid_t pid;

        snprintf(path, sizeof(path), "%s/stand-in", fixture->directory);
        pid = fork();
        assert_true(pid >= 0);
        if (!pid)
                be_two_daemons(path);
        while (access(path, F_OK))
                assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        ran = RUN(fixture, NULL, SAMOVAR, "cancel", "7", "--timeout", "50", "--socket", path);
        assert_int_equal(ran.status, 0);
        assert_memory_equal(ran.err, said, strlen(said));
        assert_null(strstr(ran.err + strlen(said), "is stopping"));
        run_result_free(&ran);
        assert_int_equal(await_process(pid), 0);
        unlink(path);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(every_call_ends_if_a_signal_has_stopped_the_daemon),
                DAEMON_TEST(the_command_gives_up_after_its_timeout),
                DAEMON_TEST(the_command_follows_a_daemon_that_stops_and_says_once_that_it_waits),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
