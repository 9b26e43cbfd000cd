/*
 * Clients that come and go at the wrong moment, send too much of a thing that is allowed, or send
 * descriptors that the daemon did not ask for.  docs/ipc.md has the table of attacks.
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

#include "tests/e2e/honest.h"
#include "tests/e2e/probe.h"
#include "tests/e2e/raw-ring.h"

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

/* A frame for the scribe, which is read, worked on or answered when no client waits any more. */
static void say_large(struct talk *talk)
{
        static char text[512 << 10];
        size_t bytes = 9000 + random_below(sizeof(text) - 9000);

        memset(text, 'x', bytes);
        talk_say(talk, "op=s id=u text=t", "tokenize", 77u, text, bytes);
        if (random_below(2))
                talk_say(talk, "op=s id=u prompt=t", "generate", 78u, text, bytes);
}

/* Runs as far as this step, then the client is gone. */
static void vanish(const struct house *house, enum step step, const char *doorbell)
{
        const struct want want = { .prompt = "Gone", .max_tokens = 200, .ignore_eos = true };
        struct talk *talk = talk_open(house);
        int fds[2] = { -1, -1 };

        if (step == CLOSE_READING)
                shutdown(talk->fd, SHUT_RD);
        if (step == HALF_HELLO)
                talk_send(talk, "\x40\0\0\0\x83\xa2op\xa5hel", 13);
        if (step >= HELLO_UNREAD)
                raw_hello(talk, random_below(2) ? "ring" : "auto", doorbell, RAW_RING_BYTES);
        if (step == HELLO_AND_GENERATE || step == RUN_AND_GO)
                talk_generate(talk, &want);
        if (step == CLOSE_WRITING)
                shutdown(talk->fd, SHUT_WR);
        if (step == TAKE_AND_GO || step == RUN_AND_GO)
                raw_take(talk, fds);
        if (step == LARGE_AND_GO)
                say_large(talk);
        if (step == RUN_AND_GO || step == LARGE_AND_GO)
                sleep_ms(random_below(4));
        talk_close(talk);
        for (size_t i = 0; i < 2 && fds[i] >= 0; i++)
                close(fds[i]);
}

static void clients_that_vanish_at_any_step_leave_nothing(void **state)
{
        static const char *const doorbells[] = { "kick", "futex", "none" };
        uint32_t times = scaled(500, 20000);
        struct house *house = *state;
        struct honest honest;
        struct probe *probe;

        HOUSE(house, FAST, "--depth", "2");
        honest = honest_begin(house);
        probe_rest(house, 300);
        probe = probe_begin(house);
        for (uint32_t i = 0; i < times; i++) {
                vanish(house, i % STEPS, doorbells[i % 3]);
                honest_look(&honest);
        }
        probe_end(probe, "clients that vanish");
        honest_end(&honest);
        house_stop(house);
}

/* Descriptors in flight count as the daemon's; the daemon has some left for others. */
static void hello_that_is_never_received_takes_no_ring_from_others(void **state)
{
        enum { SILENT = 60 };
        const struct want want = { .prompt = "Here", .max_tokens = 50, .ignore_eos = true };
        struct house *house = *state;
        struct talk *silent[SILENT];
        struct honest honest;
        struct raw_ring *ring;

        HOUSE(house, FAST, "--uid-connections", "80");
        honest = honest_begin(house);
        for (uint32_t i = 0; i < SILENT; i++) {
                silent[i] = talk_open(house);
                raw_hello(silent[i], "ring", "kick", RAW_RING_BYTES);
        }
        wait_status(house, "channels.made", SILENT + 1);
        ring = raw_open(house, "kick", RAW_RING_BYTES);
        assert_int_equal(raw_end(ring, talk_generate(ring->talk, &want))->token_count, 50);
        raw_close(ring);
        for (uint32_t i = 0; i < SILENT; i++)
                talk_close(silent[i]);
        honest_end(&honest);
        house_stop(house);
}

/* A process of the daemon's own uid, with a higher limit, leaves descriptors unread in a socket. */
static void fill_sockets_as(uint32_t uid, const char *ready, uint32_t count)
{
        const struct rlimit limit = { 2 * count, 2 * count };
        int pair[2], fds[200] = { 0 };

        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(setresuid(uid, uid, uid), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        for (uint32_t i = 0; i < count; i += 200)
                assert_int_equal(send_with(pair[0], "x", 1, fds, 200), 1);
        unlink(ready);
        for (;;)
                pause();
}

static void daemon_that_may_pass_no_descriptors_says_so(void **state)
{
        enum { OTHER = 65534, FEW = 256, MANY = 2000 };
        struct house *house = *state;
        struct rlimit before;
        struct talk *talk;
        char ready[128];
        pid_t pid;

        /* This limit does not hold for root, and only root can become another user. */
        if (geteuid())
                skip();
        assert_int_equal(chown(house->directory, OTHER, (gid_t)-1), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ FEW, before.rlim_max }), 0);
        assert_int_equal(setresuid(OTHER, OTHER, 0), 0);
        HOUSE(house, FAST);
        assert_int_equal(setresuid(0, 0, 0), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        raw_close(raw_open(house, "kick", RAW_RING_BYTES));

        snprintf(ready, sizeof(ready), "%s/ready", house->directory);
        close(open(ready, O_CREAT | O_WRONLY, 0600));
        chown(ready, OTHER, (gid_t)-1);
        pid = child();
        if (!pid)
                fill_sockets_as(OTHER, ready, MANY);
        for (uint64_t end = now_ms() + PATIENCE_MS; !access(ready, F_OK); sleep_ms(2))
                assert_true(now_ms() < end);
        talk = talk_open(house);
        raw_hello(talk, "ring", "kick", RAW_RING_BYTES);
        assert_int_equal(talk_reply(talk, talk->last_id)->code, SMV_BUSY);
        raw_hello(talk, "auto", "kick", RAW_RING_BYTES);
        assert_null(reply_at(talk_reply(talk, talk->last_id), "segments.0"));
        talk_close(talk);
        child_kill(pid);
        raw_close(raw_open(house, "kick", RAW_RING_BYTES));
        house_stop(house);
}

/* ---- descriptors that the daemon did not ask for ---- */

static void send_parts(struct talk *talk, const struct bytes_out *frame, const int *fds, size_t n)
{
        size_t half = frame->count / 2;
        ssize_t sent = send_with(talk->fd, frame->at, half, fds, n);

        /* The kernel may refuse them. */
        if (sent < 0 && errno == EPERM)
                sent = send(talk->fd, frame->at, half, MSG_NOSIGNAL);
        assert_int_equal(sent, half);
        send_with(talk->fd, "", 0, fds, n); /* with no bytes nothing is sent */
        sent = send_with(talk->fd, frame->at + half, frame->count - half, fds, 1);
        if (sent < 0 && errno == EPERM)
                sent = send(talk->fd, frame->at + half, frame->count - half, MSG_NOSIGNAL);
        assert_int_equal(sent, frame->count - half);
}

static void descriptors_that_nobody_asked_for_are_dropped(void **state)
{
        static const size_t counts[] = { 1, 2, 16, 64, 253 };
        struct house *house = *state;
        struct talk *talk, *asking;
        struct bytes_out frame = { 0 };
        uint64_t before;
        int fds[253];

        HOUSE(house, FAST);
        asking = talk_greet(house);
        talk = talk_greet(house);
        before = talk_status(asking, "descriptors");
        frame_put(&frame, "op=s id=u text=s", "tokenize", 7u, "with a present");
        /* the daemon's own peer sockets */
        for (size_t i = 0; i < 253; i++)
                fds[i] = i % 3 ? talk->fd : asking->fd;
        for (uint32_t i = 0; i < scaled(200, 20000); i++) {
                size_t n = counts[i % 5];

                send_parts(talk, &frame, fds, n);
                assert_true(talk_reply(talk, 7)->ok);
                send_with(talk->fd, "\0\0\0\0", 4, fds, n);
                assert_int_equal(talk_status(asking, "descriptors"), before);
        }
        send_with(talk->fd, frame.at, frame.count - 3, fds, 253); /* the rest is never sent */
        talk_close(talk);
        talk = talk_open(house);
        send_with(talk->fd, frame.at, 6, fds, 253); /* not even a whole hello */
        wait_status(house, "connections.open", 3);
        assert_true(talk_status(asking, "descriptors") <= before);
        talk_close(talk);
        talk_close(asking);
        free(frame.at);
        house_stop(house);
}

/* A byte out of band is not part of a frame, and must not make the loop turn for ever. */
static void urgent_bytes_are_nothing(void **state)
{
        struct house *house = *state;
        struct talk *talk;
        int pair[2];
        bool known;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        known = send(pair[0], "!", 1, MSG_OOB) == 1;
        close(pair[0]);
        close(pair[1]);
        /* Such sockets of this kernel have no urgent bytes. */
        if (!known)
                skip();
        HOUSE(house, FAST);
        talk = talk_greet(house);
        for (int i = 0; i < 100; i++) {
                assert_int_equal(send(talk->fd, "!", 1, MSG_OOB | MSG_NOSIGNAL), 1);
                sleep_ms(i % 3);
                assert_true(talk_ask(talk, "op=s", "status")->ok);
        }
        talk_close(talk);
        house_stop(house);
}

/* ---- too much of a thing that is allowed ---- */

enum flood { EMPTY_FRAMES, HELLOS, CANCELS, IDS, GENERATES, TEXTS, RINGS, FLOODS };

static const char *const floods[FLOODS] = { "empty frames",
                                            "hellos",
                                            "cancels",
                                            "megabytes of ids, of which a generate has too many",
                                            "generates of another user, to his quota",
                                            "megabytes of text of another user, to his quota",
                                            "the largest rings" };

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
static bool pour(int fd, const struct bytes_out *all)
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

/* Opens a connection with a large ring and leaves it; the pages are made and given back. */
static void ask_for_much(const struct house *house)
{
        struct talk *talk = talk_open(house);

        raw_hello(talk, "auto", "kick", SMV_RING_BYTES_MAX);
        talk_reply(talk, talk->last_id);
        talk_close(talk);
}

/* Runs in a child: floods as fast as it can. */
static void flood_on(const struct house *house, enum flood flood)
{
        struct raw_ring *ring = raw_open(house, "kick", RAW_RING_BYTES);

        while (flood == RINGS)
                ask_for_much(house);
        for (uint32_t first = 2;; first += 400) {
                struct bytes_out all = { 0 };
                uint64_t tail;

                put_flood(&all, flood, first);
                if (!pour(ring->talk->fd, &all)) {
                        raw_close(ring);
                        ring = raw_open(house, "kick", RAW_RING_BYTES);
                }
                free(all.at);
                tail = __atomic_load_n(&ring->page->tail, __ATOMIC_ACQUIRE);
                __atomic_store_n(&ring->own->head, tail, __ATOMIC_RELEASE);
        }
}

/* A user that fills its own quota harms only itself, so the flood comes from another user. */
static bool become_another(struct house *house)
{
        char inner[96];

        snprintf(inner, sizeof(inner), "%s/in", house->directory);
        return !geteuid() && !chmod(house->directory, 0755) && !chmod(inner, 0755) &&
               !chmod(house->socket, 0666);
}

static void wait_alone(const struct house *house)
{
        uint64_t end = now_ms() + PATIENCE_MS;
        struct talk *talk = talk_greet(house);

        while (reply_shows_others(talk_ask(talk, "op=s", "status"))) {
                assert_true(now_ms() < end);
                sleep_ms(10);
        }
        talk_close(talk);
}

static void floods_wash_nobody_away(void **state)
{
        struct house *house = *state;
        struct honest honest;

        HOUSE(house, FAST, "--depth", "2", "--uid-requests", "60", "--uid-ring-bytes", "1G");
        honest = honest_begin(house);
        probe_rest(house, 500);
        for (enum flood flood = 0; flood < FLOODS; flood++) {
                bool alien = flood == GENERATES || flood == TEXTS;
                bool other = alien && become_another(house);
                struct probe *probe;
                pid_t pid;

                /* Only root has two users. */
                if (alien && !other)
                        continue;
                probe = probe_begin(house);
                pid = child();
                if (!pid && other)
                        assert_int_equal(setresuid(65534, 65534, 65534), 0);
                if (!pid)
                        flood_on(house, flood);
                honest_look_for(&honest, scaled(1000, 20000));
                probe_end(probe, floods[flood]);
                child_kill(pid);
                wait_alone(house);
        }
        honest_end(&honest);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(clients_that_vanish_at_any_step_leave_nothing),
                STORY(hello_that_is_never_received_takes_no_ring_from_others),
                STORY(daemon_that_may_pass_no_descriptors_says_so),
                STORY(descriptors_that_nobody_asked_for_are_dropped),
                STORY(urgent_bytes_are_nothing),
                STORY(floods_wash_nobody_away),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
