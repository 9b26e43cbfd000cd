/*
 * Which processes are let in, and when: a client that is refused for now waits, a limit of the
 * whole daemon is shared, and users that the daemon cannot tell apart are not served.
 */
#include <errno.h>
#include <fcntl.h>
#include <samovar/client.h>
#include <samovar/protocol.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/e2e/other-user.h"
#include "tests/e2e/raw-client.h"
#include "tests/skip.h"

#define ALICE 65533u
#define OPEN  "--socket-mode", "0666"

/* As many exit statuses as a child needs. */
enum { ALL_WELL, NOT_BECOME, NOT_CONNECTED, NOT_SERVED, NOT_REFUSED };

/* A process that is killed with the test.  In it nothing is asserted: it returns a status. */
static pid_t fork_process(void)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (!pid)
                prctl(PR_SET_PDEATHSIG, SIGKILL);
        return pid;
}

static bool become(uint32_t uid)
{
        return !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid) &&
               !prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int connect_for(const struct daemon_fixture *fixture, enum smv_transport transport,
                       int timeout_ms, struct smv_client **ret_client, char message[256])
{
        const struct smv_connect at = { SMV_SIZE(smv_connect),  .socket = fixture->socket,
                                        .transport = transport, .timeout_ms = timeout_ms,
                                        .message = message,     .message_bytes = 256 };

        message[0] = '\0';
        return smv_connect(&at, ret_client);
}

static void open_directory(const struct daemon_fixture *fixture)
{
        assert_int_equal(chmod(fixture->directory, 0711), 0);
}

static bool tokenizes(struct smv_client *client)
{
        const uint32_t *tokens;
        size_t count;

        return !smv_tokenize(client, NULL, "hi", 2, &tokens, &count) && count;
}

static bool generates(struct smv_client *client)
{
        struct smv_generate options = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 3,
                                        .ignore_eos = 1 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream;

        if (smv_generate(client, &options, &stream))
                return false;
        while (event.kind != SMV_EVENT_END)
                if (smv_next(client, &event, TIMEOUT_MS) != 1)
                        return false;
        return event.reason == SMV_END_LENGTH;
}

/* ---- a client waits ---- */

/* More than the burst, one after another, with the settings that a daemon has by default. */
static void the_owner_connects_as_often_as_it_likes(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        char message[256];

        START_DAEMON(fixture, "--uid-connects-burst", "1", "--uid-connects-per-s", "1",
                     "--uid-connections", "256");
        for (int i = 0; i < 120; i++) {
                assert_int_equal(connect_for(fixture, SMV_TRANSPORT_AUTO, 0, &client, message), 0);
                assert_true(tokenizes(client));
                smv_close(client);
        }
        assert_int_equal(fixture_status(fixture, "connections.refused"), 0);
        fixture_stop(fixture);
}

static int wait_for_a_connection(const struct daemon_fixture *fixture)
{
        struct smv_client *client;
        char message[256];

        if (connect_for(fixture, SMV_TRANSPORT_AUTO, -1, &client, message))
                return NOT_CONNECTED;
        return tokenizes(client) ? ALL_WELL : NOT_SERVED;
}

static void a_client_waits_while_all_connections_are_taken(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *clients[3];
        pid_t pid;

        START_DAEMON(fixture, "--uid-connections", "3");
        for (size_t i = 0; i < 3; i++)
                clients[i] = raw_client_greet(fixture);
        pid = fork_process();
        if (!pid) {
                for (size_t i = 0; i < 3; i++)
                        close(clients[i]->fd);
                _exit(wait_for_a_connection(fixture));
        }
        while (raw_client_status(clients[0], "connections.refused") < 3)
                sleep_ms(2);
        raw_client_close(clients[2]);
        assert_int_equal(await_process(pid), ALL_WELL);
        raw_client_close(clients[1]);
        raw_client_close(clients[0]);
        fixture_stop(fixture);
}

static void a_client_that_waited_in_vain_reports_the_refusal(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *first, *second, *refused;
        struct smv_client *client;
        char message[256];

        START_DAEMON(fixture, "--uid-connections", "2");
        first = raw_client_greet(fixture);
        second = raw_client_greet(fixture);
        assert_int_equal(connect_for(fixture, SMV_TRANSPORT_AUTO, 200, &client, message),
                         -EREMOTEIO);
        assert_string_equal(message, "you have 2 connections, the limit (uid_connections)");
        assert_true(raw_client_status(first, "connections.refused") >= 2); /* it tried again */

        refused = raw_client_connect(fixture);
        raw_client_await_hangup(refused);
        assert_int_equal(refused->reply_count, 1);
        assert_int_equal(refused->replies[0]->code, SMV_QUOTA);
        assert_in_range(reply_uint(refused->replies[0], "retry_ms"), 1, 1000);
        raw_client_close(refused);
        raw_client_close(second);
        while (raw_client_status(first, "connections.open") > 1)
                sleep_ms(2);
        raw_client_close(first);
        fixture_stop(fixture);
}

/* Many processes of one user, each of which connects many times. */
#define PROCESSES 64u

static int connect_many_times(const struct daemon_fixture *fixture, uint32_t times)
{
        struct smv_client *client;
        char message[256];

        for (uint32_t i = 0; i < times; i++) {
                if (connect_for(fixture, SMV_TRANSPORT_AUTO, TIMEOUT_MS, &client, message))
                        return NOT_CONNECTED;
                if (i % 2 ? !tokenizes(client) : !generates(client))
                        return NOT_SERVED;
                smv_close(client);
        }
        return ALL_WELL;
}

static void serves_thousands_of_short_clients_of_its_user(void **state)
{
        uint32_t times = (uint32_t)scaled(16, 160);
        struct daemon_fixture *fixture = *state;
        pid_t pids[PROCESSES];

        START_QUICK_DAEMON(fixture, "--uid-connections", "32", "--uid-ring-bytes", "2M");
        for (uint32_t i = 0; i < PROCESSES; i++) {
                pids[i] = fork_process();
                if (!pids[i])
                        _exit(connect_many_times(fixture, times));
        }
        for (uint32_t i = 0; i < PROCESSES; i++)
                assert_int_equal(await_process(pids[i]), ALL_WELL);
        printf("# %u connections were refused for a while\n",
               (unsigned)fixture_status(fixture, "connections.refused"));
        fixture_stop(fixture);
}

/* ---- what a client knows ---- */

static void a_client_knows_the_model_that_is_served(void **state)
{
        struct smv_model model = { SMV_SIZE(smv_model) };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        char message[256], path[300];

        snprintf(path, sizeof(path), "%s/models/teaspoon-q8_0.gguf=spoon", env_path("SOURCES"));
        START_DAEMON(fixture, "--model", path, "--ctx", "512");
        assert_int_equal(connect_for(fixture, SMV_TRANSPORT_AUTO, 0, &client, message), 0);
        assert_int_equal(smv_model(client, 0, &model), 0);
        assert_string_equal(model.name, "spoon");
        assert_string_equal(model.architecture, "llama");
        assert_string_equal(model.quantisation, "Q8_0");
        assert_int_equal(model.parameters, 3672320); /* counted by another reader of the file */
        assert_int_equal(model.bytes, fixture_status(fixture, "model.bytes"));
        assert_int_equal(model.vocab, fixture_status(fixture, "model.vocab"));
        assert_int_equal(model.modified_s, fixture_status(fixture, "model.modified_s"));
        assert_int_equal(model.context, 512);
        assert_true(model.trained_context > 512);
        assert_true(model.chat && model.is_default && model.end_token_count > 0);
        assert_int_equal(strlen(model.digest), 64);
        assert_int_equal(smv_model(client, 1, &model), -ENOENT);
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- rings ---- */

static void falls_back_to_the_socket_if_no_ring_is_left(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *clients[8], *none;
        char message[256];

        START_DAEMON(fixture, "--ring-bytes", "64K", "--uid-ring-bytes", "64K");
        for (size_t i = 0; i < 8; i++) {
                assert_int_equal(connect_for(fixture, SMV_TRANSPORT_AUTO, 0, &clients[i], message),
                                 0);
                assert_string_equal(smv_socket_used(clients[i]), fixture->socket);
                assert_int_equal(smv_transport_used(clients[i]),
                                 i ? SMV_TRANSPORT_SOCKET : SMV_TRANSPORT_RING);
        }
        for (size_t i = 0; i < 8; i++)
                assert_true(generates(clients[i]));
        assert_int_equal(connect_for(fixture, SMV_TRANSPORT_RING, 0, &none, message), -EREMOTEIO);
        assert_string_equal(message, "you have 65536 bytes of rings, the limit (uid_ring_bytes)");
        for (size_t i = 0; i < 8; i++)
                smv_close(clients[i]);
        fixture_stop(fixture);
}

/* ---- several users ---- */

/* Says hello; returns the reply to it or the refusal of the connection, or NULL. */
static const struct reply *greet(struct raw_client *client)
{
        static const uint32_t versions[] = { 0, 0 };

        raw_client_send_frame(client, "op=s id=u versions=I transport=s", "hello", 1u, versions,
                              (size_t)2, "socket");
        while (!client->reply_count)
                if (!raw_client_poll(client, TIMEOUT_MS))
                        return NULL;
        return client->replies[0];
}

/* Connects until it is refused, says so with a byte, and stays. */
static int hold_all(const struct daemon_fixture *fixture, uint32_t uid, int ready)
{
        const struct reply *reply;
        uint32_t held = 0;

        if (!become(uid))
                return NOT_BECOME;
        for (;;) {
                reply = greet(raw_client_connect(fixture));
                if (!reply || !reply->ok)
                        break;
                held++;
        }
        if (!held)
                return NOT_CONNECTED;
        if (!reply || reply->code != SMV_BUSY || !strstr(reply->message, "(connections)"))
                return NOT_REFUSED;
        if (write(ready, "", 1) == 1)
                pause();
        return NOT_SERVED;
}

/* However many users came before, and whatever they hold. */
static void root_and_newcomers_get_in_while_others_hold_all_they_can(void **state)
{
        enum { USERS = 8 };
        struct daemon_fixture *fixture = *state;
        pid_t pids[USERS];
        char byte;

        open_directory(fixture);
        START_DAEMON(fixture, OPEN, "--connections", "64", "--uid-connections", "64",
                     "--uid-connects-burst", "100");
        for (uint32_t i = 0; i < USERS; i++) {
                int ready[2];

                assert_int_equal(pipe(ready), 0);
                pids[i] = fork_process();
                if (!pids[i])
                        _exit(hold_all(fixture, 60000 + i, ready[1]));
                close(ready[1]);
                /* Each of them gets in, though those before hold all they can. */
                assert_int_equal(read(ready[0], &byte, 1), 1);
                close(ready[0]);
                assert_true(fixture_status(fixture, "connections.open") < 64);
        }
        for (uint32_t i = 0; i < USERS; i++) {
                kill(pids[i], SIGKILL);
                assert_int_equal(await_process(pids[i]), -SIGKILL);
        }
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

/* Twelve connects at once and four a second, however long the process takes to try twenty. */
static int connect_too_often(const struct daemon_fixture *fixture)
{
        uint64_t begin = now_ms(), retry_ms = 0;
        struct raw_client *clients[20];
        uint32_t refused = 0;

        if (!become(ALICE))
                return NOT_BECOME;
        for (size_t i = 0; i < 20; i++)
                clients[i] = raw_client_connect(fixture);
        for (size_t i = 0; i < 20; i++) {
                const struct reply *reply = greet(clients[i]);

                if (!reply)
                        return NOT_SERVED;
                refused += !reply->ok;
                if (reply->ok)
                        continue;
                retry_ms = reply_uint(reply, "retry_ms");
                if (reply->code != SMV_QUOTA || !retry_ms || retry_ms > 251 ||
                    !strstr(reply->message, "uid_connects_per_s"))
                        return NOT_REFUSED;
        }
        printf("# %u of 20 were refused\n", refused);
        fflush(stdout);
        for (size_t i = 0; i < 20; i++)
                raw_client_close(clients[i]);
        if (20 - refused > 12 + (now_ms() - begin) * 4 / 1000 + 1)
                return NOT_REFUSED;
        /* libsamovar waits as long as it is told. */
        return wait_for_a_connection(fixture);
}

static void limits_the_rate_of_new_connections_of_other_users(void **state)
{
        struct daemon_fixture *fixture = *state;
        pid_t pid;

        open_directory(fixture);
        START_DAEMON(fixture, OPEN, "--uid-connects-burst", "12", "--uid-connects-per-s", "4");
        pid = fork_process();
        if (!pid)
                _exit(connect_too_often(fixture));
        assert_int_equal(await_process(pid), ALL_WELL);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

/* ---- the log ---- */

static int be_refused(const struct daemon_fixture *fixture, uint32_t times)
{
        char byte;

        if (!become(ALICE))
                return NOT_BECOME;
        for (uint32_t i = 0; i < times; i++) {
                int fd = fixture_connect(fixture);

                if (fd < 0 || shutdown(fd, SHUT_WR))
                        return NOT_CONNECTED;
                while (read(fd, &byte, 1) > 0)
                        ;
                close(fd);
        }
        return ALL_WELL;
}

static uint64_t lines_of(const char *log, const char *words)
{
        uint64_t count = 0;

        for (; (log = strstr(log, words)); log++)
                count++;
        return count;
}

/* One line a minute for each kind of refusal, however long the process takes. */
static void a_refused_client_cannot_fill_the_log(void **state)
{
        uint32_t times = (uint32_t)scaled(2000, 20000);
        struct daemon_fixture *fixture = *state;
        char *log, said[64];
        uint64_t begin, seconds;
        pid_t pid;

        open_directory(fixture);
        START_DAEMON(fixture, OPEN, "--uid-connects-burst", "1", "--uid-connects-per-s", "1");
        begin = now_ms();
        pid = fork_process();
        if (!pid)
                _exit(be_refused(fixture, times));
        snprintf(said, sizeof(said), "peer_refused uid=%u pid=%d code=", ALICE, (int)pid);
        assert_int_equal(await_process(pid), ALL_WELL);
        log = file_text(fixture->log);
        seconds = (now_ms() - begin) / 1000 + 1;
        /* Too many connections at once are another kind than too many in a second. */
        assert_in_range(lines_of(log, said), 1, 2 + seconds / 30);
        free(log);
        assert_true(fixture_status(fixture, "connections.refused") + 1 + seconds >= times);
        fixture_stop(fixture);
}

/* ---- users that the daemon cannot tell apart ---- */

/* Starts a daemon in a user namespace where only root has a uid; 0 if the kernel refuses that. */
static pid_t spawn_in_namespace(struct daemon_fixture *fixture)
{
        int ready[2], go[2];
        char path[64], made = 0;
        pid_t pid;
        int map;

        assert_int_equal(pipe(ready) | pipe(go), 0);
        pid = fork_process();
        if (!pid) {
                int log = open(fixture->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

                made = !unshare(CLONE_NEWUSER);
                if (write(ready[1], &made, 1) != 1 || read(go[0], &made, 1) != 1 || !made)
                        _exit(NOT_BECOME);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                dup2(log, 1);
                dup2(log, 2);
                execl(env_path("SAMOVARD"), "samovard", "--model", env_path("TOY_MODEL"),
                      "--socket", fixture->socket, OPEN, (char *)NULL);
                _exit(NOT_SERVED);
        }
        assert_int_equal(read(ready[0], &made, 1), 1);
        if (made) {
                snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
                map = open(path, O_WRONLY);
                made = map >= 0 && write(map, "0 0 1\n", 6) == 6;
                close(map);
        }
        assert_int_equal(write(go[1], &made, 1), 1);
        for (int i = 0; i < 2; i++) {
                close(ready[i]);
                close(go[i]);
        }
        if (made)
                return pid;
        await_process(pid);
        return 0;
}

static int be_denied(const struct daemon_fixture *fixture, uint32_t uid)
{
        struct smv_client *client;
        char message[256];

        if (!become(uid))
                return NOT_BECOME;
        if (connect_for(fixture, SMV_TRANSPORT_AUTO, 0, &client, message) != -EREMOTEIO)
                return NOT_REFUSED;
        return strstr(message, "overflowuid") ? ALL_WELL : NOT_SERVED;
}

static void refuses_users_without_a_uid_in_its_namespace(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client = NULL;
        uint64_t end = now_ms() + TIMEOUT_MS;
        char message[256], said[64];
        pid_t daemon;

        open_directory(fixture);
        daemon = spawn_in_namespace(fixture);
        if (!daemon)
                skip_because("the kernel lets this process make no user namespace");
        while (connect_for(fixture, SMV_TRANSPORT_AUTO, 0, &client, message))
                assert_true(now_ms() < end);
        assert_true(tokenizes(client)); /* root has a uid there */
        for (uint32_t uid = ALICE; uid > ALICE - 2; uid--) {
                pid_t pid = fork_process();

                if (!pid)
                        _exit(be_denied(fixture, uid));
                assert_int_equal(await_process(pid), ALL_WELL);
        }
        smv_close(client);
        snprintf(said, sizeof(said), "peer_refused uid=65534 pid=");
        assert_true(fixture_logged(fixture, said));
        kill(daemon, SIGTERM);
        assert_int_equal(await_process(daemon), 0);
}

/* ---- --fd ---- */

static void assert_fd_refused(struct daemon_fixture *fixture, int fd, const char *why)
{
        const char *const flags[] = { "--model", env_path("TOY_MODEL"), "--fd", "3", NULL };
        pid_t pid = fixture_spawn(fixture, flags, fd);
        char said[160];

        close(fd);
        assert_int_equal(await_process(pid), 1);
        snprintf(said, sizeof(said),
                 "samovard: --fd is 3, which is no connected Unix stream socket: %s", why);
        if (!fixture_logged(fixture, said))
                fail_msg("the log has no line \"%s\"", said);
}

static void refuses_an_fd_that_is_no_connected_stream_socket(void **state)
{
        struct daemon_fixture *fixture = *state;
        int pair[2];

        assert_fd_refused(fixture, open("/dev/null", O_RDWR), "Socket operation on non-socket");
        assert_fd_refused(fixture, socket(AF_UNIX, SOCK_STREAM, 0),
                          "Transport endpoint is not connected");
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        assert_fd_refused(fixture, pair[0], "Protocol wrong type for socket");
        close(pair[1]);
        assert_fd_refused(fixture, socket(AF_INET, SOCK_STREAM, 0),
                          "Protocol wrong type for socket");
}

/* Where other users may make files, one may make a control socket; nobody answers at it. */
static void a_control_socket_of_another_user_is_passed_by(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_connect where = { SMV_SIZE(smv_connect), .while_stopping = 1 };
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;
        struct smv_client *client;
        const char *json;

        START_DAEMON(fixture, "--threads", "1");
        r = snprintf(at.sun_path, sizeof(at.sun_path), "%s" SMV_CONTROL_SUFFIX, fixture->socket);
        assert_in_range(r, 1, sizeof(at.sun_path) - 1);
        assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at)));
        /* The kernel notes the user that calls listen(). */
        assert_int_equal(seteuid(ALICE), 0);
        r = listen(fd, 16);
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(r, 0);

        where.socket = fixture->socket;
        assert_int_equal(smv_connect(&where, &client), 0);
        assert_int_equal(smv_status(client, &json), 0);
        smv_close(client);
        close(fd);
        unlink(at.sun_path);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(the_owner_connects_as_often_as_it_likes),
                DAEMON_TEST(a_client_waits_while_all_connections_are_taken),
                DAEMON_TEST(a_client_that_waited_in_vain_reports_the_refusal),
                DAEMON_TEST(serves_thousands_of_short_clients_of_its_user),
                DAEMON_TEST(a_client_knows_the_model_that_is_served),
                DAEMON_TEST(falls_back_to_the_socket_if_no_ring_is_left),
                DAEMON_TEST(refuses_an_fd_that_is_no_connected_stream_socket),
        };
        const struct CMUnitTest with_others[] = {
                DAEMON_TEST(root_and_newcomers_get_in_while_others_hold_all_they_can),
                DAEMON_TEST(a_control_socket_of_another_user_is_passed_by),
                DAEMON_TEST(limits_the_rate_of_new_connections_of_other_users),
                DAEMON_TEST(a_refused_client_cannot_fill_the_log),
                DAEMON_TEST(refuses_users_without_a_uid_in_its_namespace),
        };
        int failed;

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        if (!can_become_another_user())
                return failed;
        return failed + cmocka_run_group_tests(with_others, NULL, NULL);
}
