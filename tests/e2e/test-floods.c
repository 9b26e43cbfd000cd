/*
 * Clients that come and go at the wrong moment, send too much of a thing that is allowed, or send
 * descriptors that the daemon did not ask for.  docs/reference/ring.md has the table of attacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/honest-client.h"
#include "tests/e2e/latency-probe.h"
#include "tests/e2e/manual-ring.h"
#include "tests/skip.h"

/* ---- clients that come and go ---- */

enum step {
        CONNECT,
        HALF_HELLO,
        HELLO_UNREAD,
        HELLO_AND_GENERATE,
        TAKE_AND_GO,
        CLOSE_READING,
        CLOSE_WRITING,
        RUN_AND_GO,
        LARGE_AND_GO,
        STEPS
};

/* A frame for the text worker.  It is read, decoded or answered when its client is already gone. */
static void say_large(struct raw_client *client)
{
        static char text[512 << 10];
        size_t bytes = 9000 + random_below(sizeof(text) - 9000);

        memset(text, 'x', bytes);
        raw_client_send_frame(client, "op=s id=u text=t", "tokenize", 77u, text, bytes);
        if (random_below(2))
                raw_client_send_frame(client, "op=s id=u prompt=t", "generate", 78u, text, bytes);
}

/* Runs as far as this step, then the client is gone. */
static void disconnect_at(const struct daemon_fixture *fixture, enum step step,
                          const char *doorbell)
{
        const struct want want = { .prompt = "Gone", .max_tokens = 200, .ignore_eos = true };
        struct raw_client *client = raw_client_connect(fixture);
        int fds[2] = { -1, -1 };

        if (step == CLOSE_READING)
                shutdown(client->fd, SHUT_RD);
        if (step == HALF_HELLO)
                raw_client_send(client, "\x40\0\0\0\x83\xa2op\xa5hel", 13);
        if (step >= HELLO_UNREAD)
                manual_ring_send_hello(client, random_below(2) ? "ring" : "auto", doorbell,
                                       MANUAL_RING_BYTES);
        if (step == HELLO_AND_GENERATE || step == RUN_AND_GO)
                raw_client_generate(client, &want);
        if (step == CLOSE_WRITING)
                shutdown(client->fd, SHUT_WR);
        if (step == TAKE_AND_GO || step == RUN_AND_GO)
                manual_ring_take_fds(client, fds);
        if (step == LARGE_AND_GO)
                say_large(client);
        if (step == RUN_AND_GO || step == LARGE_AND_GO)
                sleep_ms(random_below(4));
        raw_client_close(client);
        for (size_t i = 0; i < 2 && fds[i] >= 0; i++)
                close(fds[i]);
}

static void frees_everything_when_clients_disconnect_at_any_step(void **state)
{
        static const char *const doorbells[] = { "kick", "futex", "none" };
        uint32_t times = scaled(500, 20000);
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        struct latency_probe *probe;

        START_DAEMON(fixture, CHURN, "--pipeline-depth", "2");
        honest = honest_client_start(fixture);
        latency_probe_baseline(fixture, 300);
        probe = latency_probe_start(fixture);
        for (uint32_t i = 0; i < times; i++) {
                disconnect_at(fixture, i % STEPS, doorbells[i % 3]);
                honest_client_check(&honest);
        }
        latency_probe_stop(probe, "clients that vanish");
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

/* Descriptors in flight count as the daemon's; the daemon has some left for others. */
static void unread_replies_to_hello_do_not_prevent_rings_of_other_clients(void **state)
{
        enum { SILENT = 60 };
        const struct want want = { .prompt = "Here", .max_tokens = 50, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct raw_client *silent[SILENT];
        struct honest_client honest;
        struct manual_ring *ring;

        START_DAEMON(fixture, MANY_CONNECTS, "--uid-connections", "80");
        honest = honest_client_start(fixture);
        for (uint32_t i = 0; i < SILENT; i++) {
                silent[i] = raw_client_connect(fixture);
                manual_ring_send_hello(silent[i], "ring", "kick", MANUAL_RING_BYTES);
        }
        fixture_await_status(fixture, "channels.allocated", SILENT + 1);
        ring = manual_ring_open(fixture, "kick", MANUAL_RING_BYTES);
        assert_int_equal(
                manual_ring_await_end(ring, raw_client_generate(ring->client, &want))->token_count,
                50);
        manual_ring_close(ring);
        for (uint32_t i = 0; i < SILENT; i++)
                raw_client_close(silent[i]);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

/* A process of the daemon's own uid, with a higher limit, leaves descriptors unread in a socket. */
static void fill_sockets_as(uint32_t uid, const char *ready, uint32_t count)
{
        const struct rlimit limit = { count + 200, count + 200 };
        int pair[2], fds[200] = { 0 };

        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        child_becomes(uid);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        for (uint32_t i = 0; i < count; i += 200)
                assert_int_equal(send_with_fds(pair[0], "x", 1, fds, 200), 1);
        unlink(ready);
        for (;;)
                pause();
}

static void replies_busy_when_no_more_descriptors_can_be_passed(void **state)
{
        enum { OTHER = 65533, FEW = 256 };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct rlimit before, daemons;
        char ready[128];
        pid_t pid;

        /* This limit does not hold for root, and only root can become another user. */
        if (geteuid())
                skip_because("only root can be two users");
        assert_int_equal(chown(fixture->directory, OTHER, (gid_t)-1), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        /* The daemon raises its own as far as it needs. */
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ FEW, before.rlim_max }), 0);
        assert_int_equal(setresuid(OTHER, OTHER, 0), 0);
        START_DAEMON(fixture, MANY_CONNECTS);
        assert_int_equal(prlimit(fixture->pid, RLIMIT_NOFILE, NULL, &daemons), 0);
        assert_int_equal(setresuid(0, 0, 0), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        manual_ring_close(manual_ring_open(fixture, "kick", MANUAL_RING_BYTES));

        snprintf(ready, sizeof(ready), "%s/ready", fixture->directory);
        close(open(ready, O_CREAT | O_WRONLY, 0600));
        assert_int_equal(chown(ready, OTHER, (gid_t)-1), 0);
        pid = fork_child();
        if (!pid)
                fill_sockets_as(OTHER, ready, (uint32_t)daemons.rlim_cur + 200);
        for (uint64_t end = now_ms() + TIMEOUT_MS; !access(ready, F_OK); sleep_ms(2))
                assert_true(now_ms() < end);
        client = raw_client_connect(fixture);
        manual_ring_send_hello(client, "ring", "kick", MANUAL_RING_BYTES);
        assert_int_equal(raw_client_await_reply(client, client->last_id)->code, SMV_BUSY);
        manual_ring_send_hello(client, "auto", "kick", MANUAL_RING_BYTES);
        assert_null(reply_at(raw_client_await_reply(client, client->last_id), "segments.0"));
        raw_client_close(client);
        kill_child(pid);
        manual_ring_close(manual_ring_open(fixture, "kick", MANUAL_RING_BYTES));
        fixture_stop(fixture);
}

/* ---- descriptors that the daemon did not ask for ---- */

static void send_parts(struct raw_client *client, const struct bytes_out *frame, const int *fds,
                       size_t n)
{
        size_t half = frame->count / 2;
        ssize_t sent = send_with_fds(client->fd, frame->at, half, fds, n);

        /* The kernel may refuse them. */
        if (sent < 0 && errno == EPERM)
                sent = send(client->fd, frame->at, half, MSG_NOSIGNAL);
        assert_int_equal(sent, half);
        send_with_fds(client->fd, "", 0, fds, n); /* with no bytes nothing is sent */
        sent = send_with_fds(client->fd, frame->at + half, frame->count - half, fds, 1);
        if (sent < 0 && errno == EPERM)
                sent = send(client->fd, frame->at + half, frame->count - half, MSG_NOSIGNAL);
        assert_int_equal(sent, frame->count - half);
}

static void closes_unrequested_descriptors_from_a_client(void **state)
{
        static const size_t counts[] = { 1, 2, 16, 64, 253 };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *asking;
        struct bytes_out frame = { 0 };
        uint64_t before;
        int fds[253];

        START_DAEMON(fixture, MANY_CONNECTS);
        asking = raw_client_greet(fixture);
        client = raw_client_greet(fixture);
        before = raw_client_status(asking, "descriptors");
        frame_put(&frame, "op=s id=u text=s", "tokenize", 7u, "with a present");
        /* the daemon's own peer sockets */
        for (size_t i = 0; i < 253; i++)
                fds[i] = i % 3 ? client->fd : asking->fd;
        for (uint32_t i = 0; i < scaled(200, 20000); i++) {
                size_t n = counts[i % 5];

                send_parts(client, &frame, fds, n);
                assert_true(raw_client_await_reply(client, 7)->ok);
                send_with_fds(client->fd, "\0\0\0\0", 4, fds, n);
                assert_int_equal(raw_client_status(asking, "descriptors"), before);
        }
        send_with_fds(client->fd, frame.at, frame.count - 3, fds, 253); /* the rest is never sent */
        raw_client_close(client);
        client = raw_client_connect(fixture);
        send_with_fds(client->fd, frame.at, 6, fds, 253); /* not even a whole hello */
        fixture_await_status(fixture, "connections.open", 3);
        assert_true(raw_client_status(asking, "descriptors") <= before);
        raw_client_close(client);
        raw_client_close(asking);
        free(frame.at);
        fixture_stop(fixture);
}

/* A byte out of band is not part of a frame, and must not make the loop turn for ever. */
static void ignores_out_of_band_bytes(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        int pair[2];
        bool known;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        known = send(pair[0], "!", 1, MSG_OOB) == 1;
        close(pair[0]);
        close(pair[1]);
        if (!known)
                skip_because("Unix sockets of this kernel have no urgent bytes");
        START_DAEMON(fixture, MANY_CONNECTS);
        client = raw_client_greet(fixture);
        for (int i = 0; i < 100; i++) {
                assert_int_equal(send(client->fd, "!", 1, MSG_OOB | MSG_NOSIGNAL), 1);
                sleep_ms(i % 3);
                assert_true(raw_client_call(client, "op=s", "status")->ok);
        }
        raw_client_close(client);
        fixture_stop(fixture);
}

/* ---- too much of a thing that is allowed ---- */

enum flood { EMPTY_FRAMES, HELLOS, CANCELS, IDS, GENERATES, TEXTS, RINGS, FLOODS };

static const char *const floods[FLOODS] = { "empty frames",
                                            "hellos",
                                            "cancels",
                                            "megabytes of ids, of which a generate has too many",
                                            "generates of another user, to his quota",
                                            "megabytes of text of another user, to his quota",
                                            "the largest rings of another user, to his quota" };

#define LARGE (1u << 20)

/* Four frames that the loop must leave to other threads. */
static void put_large(struct bytes_out *to, enum flood flood, uint32_t first)
{
        uint32_t *ids = calloc(LARGE, sizeof(*ids));
        char *text = malloc(LARGE);

        memset(text, 'x', LARGE);
        for (uint32_t i = 0; i < 4; i++)
                if (flood == IDS)
                        frame_put(to, "op=s id=u tokens=I", "generate", first + i, ids,
                                  (size_t)LARGE);
                else
                        frame_put(to, "op=s id=u text=t", "tokenize", first + i, text,
                                  (size_t)LARGE);
        free(ids);
        free(text);
}

static void put_flood(struct bytes_out *to, enum flood flood, uint32_t first)
{
        static const uint32_t versions[] = { 0, 0 };

        if (flood == IDS || flood == TEXTS) {
                put_large(to, flood, first);
                return;
        }
        for (uint32_t i = 0; i < 400; i++) {
                if (flood == EMPTY_FRAMES)
                        bytes_put(to, "\0\0\0\0", 4);
                else if (flood == HELLOS)
                        frame_put(to, "op=s id=u versions=I transport=s", "hello", 2u + i, versions,
                                  (size_t)2, "ring");
                else if (flood == CANCELS)
                        frame_put(to, "op=s id=u stream=u", "cancel", 2u + i, 2u + i);
                else
                        frame_put(to, "op=s id=u prompt=s", "generate", first + i, "Once more");
        }
}

/* Sends all bytes and drops what comes back.  False: the daemon hung up, because this client reads
 * too slowly. */
static bool send_and_discard(int fd, const struct bytes_out *all)
{
        static char waste[65536];

        for (size_t at = 0; at < all->count;) {
                struct pollfd poll_fd = { .fd = fd, .events = POLLIN | POLLOUT };
                ssize_t n = send(fd, all->at + at, all->count - at, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno != EAGAIN)
                        return false;
                if (n < 0)
                        poll(&poll_fd, 1, -1);
                at += n > 0 ? (size_t)n : 0;
                while (recv(fd, waste, sizeof(waste), MSG_DONTWAIT) > 0)
                        ;
        }
        return true;
}

/*
 * Opens a connection with a large ring and leaves it; the pages are made and given back.  A user
 * whose connections are not all freed yet may be refused.
 */
static void request_large_ring(const struct daemon_fixture *fixture)
{
        struct raw_client *client = raw_client_connect(fixture);

        manual_ring_send_hello(client, "auto", "kick", SMV_RING_BYTES_MAX);
        while (!client->reply_count && !client->hung_up)
                raw_client_poll(client, 100);
        raw_client_close(client);
}

/* Runs in a child: floods as fast as it can. */
static void flood_on(const struct daemon_fixture *fixture, enum flood flood)
{
        struct manual_ring *ring = manual_ring_open(fixture, "kick", MANUAL_RING_BYTES);

        while (flood == RINGS)
                request_large_ring(fixture);
        for (uint32_t first = 2;; first += 400) {
                struct bytes_out all = { 0 };
                uint64_t tail;

                put_flood(&all, flood, first);
                if (!send_and_discard(ring->client->fd, &all)) {
                        manual_ring_close(ring);
                        ring = manual_ring_open(fixture, "kick", MANUAL_RING_BYTES);
                }
                free(all.at);
                tail = __atomic_load_n(&ring->page->tail, __ATOMIC_ACQUIRE);
                __atomic_store_n(&ring->own->head, tail, __ATOMIC_RELEASE);
        }
}

/* A user that fills its own quota harms only itself, so the flood comes from another user. */
static bool open_socket_to_other_users(struct daemon_fixture *fixture)
{
        char inner[96];

        snprintf(inner, sizeof(inner), "%s/in", fixture->directory);
        return !geteuid() && !chmod(fixture->directory, 0755) && !chmod(inner, 0755) &&
               !chmod(fixture->socket, 0666);
}

static void await_only_user(const struct daemon_fixture *fixture)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        struct raw_client *client = raw_client_greet(fixture);

        while (reply_shows_others(raw_client_call(client, "op=s", "status"))) {
                assert_true(now_ms() < end);
                sleep_ms(10);
        }
        raw_client_close(client);
}

static void floods_do_not_disturb_other_clients(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;

        START_DAEMON(fixture, MANY_CONNECTS, "--pipeline-depth", "2", "--uid-requests", "60",
                     "--uid-ring-bytes", "1G");
        honest = honest_client_start(fixture);
        latency_probe_baseline(fixture, 500);
        for (enum flood flood = 0; flood < FLOODS; flood++) {
                bool from_other_user = flood == GENERATES || flood == TEXTS || flood == RINGS;
                bool other = from_other_user && open_socket_to_other_users(fixture);
                struct latency_probe *probe;
                pid_t pid;

                /* Only root has two users. */
                if (from_other_user && !other)
                        continue;
                probe = latency_probe_start(fixture);
                pid = fork_child();
                if (!pid && other)
                        child_becomes(65533);
                if (!pid)
                        flood_on(fixture, flood);
                honest_client_check_for(&honest, scaled(1000, 20000));
                latency_probe_stop(probe, floods[flood]);
                kill_child(pid);
                await_only_user(fixture);
        }
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(frees_everything_when_clients_disconnect_at_any_step),
                DAEMON_TEST(unread_replies_to_hello_do_not_prevent_rings_of_other_clients),
                DAEMON_TEST(replies_busy_when_no_more_descriptors_can_be_passed),
                DAEMON_TEST(closes_unrequested_descriptors_from_a_client),
                DAEMON_TEST(ignores_out_of_band_bytes),
                DAEMON_TEST(floods_do_not_disturb_other_clients),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
