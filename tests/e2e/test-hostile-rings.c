/*
 * A client that lies in its ring: by writing to the control page, by using the descriptors that it
 * was given in every way, and by keeping memory.  ring.md has the table of attacks; those with
 * frames and sockets are in test-floods.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/honest-client.h"
#include "tests/e2e/latency-probe.h"
#include "tests/e2e/manual-ring.h"
#include "tests/skip.h"

#define STREAMS 4
/* tokens; the streams together are more than the smallest ring takes without a reader */
#define LONG  1900
#define SHORT 300

static struct want number(uint32_t i, uint32_t tokens)
{
        return (struct want){ .prompt = "Once upon a time",
                              .max_tokens = tokens,
                              .temperature = 1,
                              .seed = 100 + i,
                              .ignore_eos = true };
}

static void ask_all(struct raw_client *client, uint32_t tokens, uint32_t ids[STREAMS])
{
        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = number(i, tokens);

                ids[i] = raw_client_generate(client, &want);
        }
}

/* Records the streams over a socket, the short ones, and reads them as they come. */
static void record_reference(const struct daemon_fixture *fixture, struct stream *alone[STREAMS])
{
        struct raw_client *client = raw_client_greet(fixture);

        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = number(i, SHORT);

                alone[i] = stream_copy(raw_client_complete(client, &want));
        }
        raw_client_close(client);
}

static void free_reference(struct stream *alone[STREAMS])
{
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
}

/* ---- lies in the control page ---- */

enum lie {
        RANDOM,
        OSCILLATING,
        MAXIMAL,
        MISALIGNED,
        BEHIND,
        AHEAD,
        INSTANT,
        HOLE,
        WAKE_POSITIONS,
        LIES
};

static const struct {
        const char *name;
        bool must_disconnect; /* no value that it writes is ever a true one */
} lies[LIES] = {
        [RANDOM] = { "random heads", true },
        [OSCILLATING] = { "oscillating heads", false },
        [MAXIMAL] = { "maximal heads", true },
        [MISALIGNED] = { "misaligned heads", true },
        [BEHIND] = { "heads that go back", false },
        [AHEAD] = { "heads beyond the tail", true },
        [INSTANT] = { "heads that lie for an instant", false },
        [HOLE] = { "holes in the control page", false },
        [WAKE_POSITIONS] = { "wishes to be woken", false },
};

static uint64_t any64(void)
{
        return (uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX);
}

static uint64_t false_head(enum lie lie, uint64_t tail)
{
        switch (lie) {
        case RANDOM:
        case INSTANT:
                return any64() | UINT64_C(1) << 40; /* never a true one by chance */
        case OSCILLATING:
                return random_below(2) ? tail : tail / 2 & ~UINT64_C(7);
        case MAXIMAL:
                return UINT64_MAX - random_below(2) * 7;
        case MISALIGNED:
                return tail + 1 + random_below(7);
        case BEHIND:
                return tail - (tail ? 8u * random_below(3) : 0);
        default:
                return tail + 8 * (1 + UINT64_C(1) * random_below(1 << 20));
        }
}

static void store(uint64_t *word, uint64_t value)
{
        __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* Lies in a child, for as long as the child lives. */
static void write_false_values(const struct manual_ring *ring, enum lie lie)
{
        for (;;) {
                uint64_t tail = __atomic_load_n(&ring->page->tail, __ATOMIC_RELAXED);
                const uint64_t positions[] = {
                        0, tail, tail - 1, tail + 64, any64(), SMV_WAKE_NEVER, SMV_WAKE_NEVER - 1
                };

                store(&ring->own->wake_position, positions[random_below(7)]);
                if (lie == WAKE_POSITIONS)
                        continue;
                if (lie == HOLE)
                        fallocate(ring->control, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                                  sizeof(*ring->own));
                else
                        store(&ring->own->head, false_head(lie, tail));
                if (lie == INSTANT || lie == HOLE)
                        store(&ring->own->head, tail);
        }
}

/* A client that lies about its head reads nothing; one that lies about its wishes reads
 * everything. */
static void run_lying_client(struct daemon_fixture *fixture, struct honest_client *honest,
                             struct stream *alone[STREAMS], enum lie lie, const char *doorbell)
{
        struct manual_ring *ring = manual_ring_open(fixture, doorbell, MANUAL_RING_BYTES);
        uint64_t end = now_ms() + scaled(120, 5000);
        uint32_t ids[STREAMS];
        pid_t pid;

        random_below(2); /* so that children differ */
        pid = fork_child();
        if (!pid)
                write_false_values(ring, lie);
        ask_all(ring->client, lie == WAKE_POSITIONS ? SHORT : LONG, ids);
        while (now_ms() < end ||
               (lies[lie].must_disconnect && fixture_status(fixture, "requests.open") > 1)) {
                assert_true(now_ms() < end + 30000);
                honest_client_check(honest);
                if (lie == WAKE_POSITIONS)
                        manual_ring_read(ring, UINT32_MAX);
                raw_client_poll(ring->client, 1);
        }
        while (lies[lie].must_disconnect && !ring->client->hung_up) {
                assert_true(now_ms() < end + 30000);
                raw_client_poll(ring->client, 10);
        }
        for (uint32_t i = 0; lie == WAKE_POSITIONS && i < STREAMS; i++)
                assert_same_stream(manual_ring_await_end(ring, ids[i]), alone[i]);
        kill_child(pid);
        manual_ring_close(ring);
}

static void a_corrupted_control_page_harms_only_its_own_client(void **state)
{
        static const char *const doorbells[] = { "kick", "futex", "none" };
        struct stream *alone[STREAMS];
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;

        START_DAEMON(fixture, MANY_CONNECTS, "--pipeline-depth", "2");
        record_reference(fixture, alone);
        honest = honest_client_start(fixture);
        latency_probe_baseline(fixture, 300);
        for (enum lie lie = 0; lie < LIES; lie++) {
                struct latency_probe *probe = latency_probe_start(fixture);

                for (size_t i = 0; i < 3; i++)
                        run_lying_client(fixture, &honest, alone, lie, doorbells[i]);
                latency_probe_stop(probe, lies[lie].name);
        }
        printf("# %u honest streams beside them\n", honest.rounds);
        honest_client_stop(&honest);
        free_reference(alone);
        fixture_stop(fixture);
}

/* ---- attacks with the descriptors ---- */

static void assert_errno(int result, int number, const char *what)
{
        if (result != -1 || errno != number)
                fail_msg("%s: %d, %s", what, result, result == -1 ? strerror(errno) : "done");
}

static int reopen(int fd, int flags)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return open(path, flags | O_CLOEXEC);
}

static int punch(int fd)
{
        return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SMV_RING_HEADER);
}

/* For every user sizes and seals stay as they are, and a descriptor opened for reading only
 * reads. */
static void try_all(const struct manual_ring *ring)
{
        const int fds[] = { ring->data, ring->control };
        void *page = (void *)(uintptr_t)ring->page;

        for (size_t i = 0; i < 2; i++) {
                int no = i ? EPERM : EINVAL; /* it is not even open for writing */

                assert_errno(ftruncate(fds[i], 0), no, "ftruncate down");
                assert_errno(ftruncate(fds[i], 1 << 20), no, "ftruncate up");
                no = EPERM;
                assert_errno(fcntl(fds[i], F_ADD_SEALS, F_SEAL_WRITE), no, "F_ADD_SEALS");
        }
        assert_ptr_equal(mmap(NULL, ring->bytes, PROT_WRITE, MAP_SHARED, ring->data, 0),
                         MAP_FAILED);
        assert_int_equal(errno, EACCES);
        assert_errno(mprotect(page, ring->bytes, PROT_READ | PROT_WRITE), EACCES, "mprotect");
        assert_errno(madvise(page, ring->bytes, MADV_REMOVE), EACCES, "MADV_REMOVE");
        assert_errno((int)pwrite(ring->data, "x", 1, 0), EBADF, "pwrite");
        assert_errno(punch(ring->data), EBADF, "punch");
        assert_errno(ftruncate(ring->control, sizeof(*ring->own) * 2), EPERM, "grow C");
}

static void a_client_cannot_resize_reseal_or_write_its_ring(void **state)
{
        struct stream *alone[STREAMS];
        struct daemon_fixture *fixture = *state;
        struct manual_ring *ring;
        uint32_t ids[STREAMS];

        START_DAEMON(fixture, MANY_CONNECTS);
        record_reference(fixture, alone);
        ring = manual_ring_open(fixture, "kick", MANUAL_RING_BYTES);
        ask_all(ring->client, SHORT, ids);
        for (int i = 0; i < 100; i++) {
                try_all(ring);
                manual_ring_read(ring, 20);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(manual_ring_await_end(ring, ids[i]), alone[i]);
        manual_ring_close(ring);
        free_reference(alone);
        fixture_stop(fixture);
}

/* The socket is for its user alone, so the other user is given the connection. */
static void another_user_cannot_reopen_a_ring_for_writing(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct manual_ring *ring;
        pid_t pid;

        if (geteuid())
                skip_because("only root can be two users");
        START_DAEMON(fixture, MANY_CONNECTS);
        ring = manual_ring_open(fixture, "kick", MANUAL_RING_BYTES);
        pid = fork_child();
        if (!pid) {
                assert_int_equal(setresgid(65533, 65533, 65533), 0);
                child_becomes(65533);
                /* otherwise /proc/self belongs to root */
                assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
                try_all(ring);
                assert_errno(reopen(ring->data, O_RDWR), EACCES, "reopen D");
                assert_errno(reopen(ring->control, O_RDWR), EACCES, "reopen C");
                assert_errno(fchmod(ring->data, 0666), EPERM, "fchmod D");
                assert_errno(fchmod(ring->control, 0666), EPERM, "fchmod C");
                _exit(0);
        }
        assert_int_equal(await_process(pid), 0);
        manual_ring_close(ring);
        fixture_stop(fixture);
}

static void overwrite_at_random(uint8_t *memory, size_t bytes)
{
        for (;;) {
                size_t at = random_below((uint32_t)bytes / 8) * 8;

                if (random_below(4) == 0)
                        at = (size_t[]){ 0, 0x18, 0x80, 0x100 }[random_below(4)];
                store((uint64_t *)(memory + at), random_below(8) ? any64() : 0);
        }
}

/* A process of our own uid may write to the ring; the daemon reads none of it back. */
static void a_ring_overwritten_by_its_user_harms_only_that_user(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        struct latency_probe *probe;

        START_DAEMON(fixture, MANY_CONNECTS, "--pipeline-depth", "2");
        honest = honest_client_start(fixture);
        latency_probe_baseline(fixture, 300);
        probe = latency_probe_start(fixture);
        for (int i = 0; i < 6; i++) {
                struct manual_ring *ring =
                        manual_ring_open(fixture, i & 1 ? "kick" : "futex", MANUAL_RING_BYTES);
                uint32_t ids[STREAMS];
                void *memory;
                pid_t pid;
                int fd;

                assert_int_equal(fchmod(ring->data, 0600), 0);
                fd = reopen(ring->data, O_RDWR);
                assert_true(fd >= 0);
                memory = mmap(NULL, ring->bytes, PROT_WRITE, MAP_SHARED, fd, 0);
                assert_true(memory != MAP_FAILED);
                assert_errno(ftruncate(fd, 0), EPERM, "ftruncate down");
                assert_errno(ftruncate(fd, 1 << 20), EPERM, "ftruncate up");
                random_below(2);
                pid = fork_child();
                if (!pid)
                        overwrite_at_random(memory, ring->bytes);
                ask_all(ring->client, LONG, ids);
                for (int k = 0; k < 12; k++) {
                        assert_int_equal(punch(fd), 0);
                        store(&ring->own->wake_position, 0);
                        honest_client_check_for(&honest, 10);
                }
                kill_child(pid);
                munmap(memory, ring->bytes);
                close(fd);
                manual_ring_close(ring);
        }
        latency_probe_stop(probe, "rings scribbled over");
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

/* ---- whose memory the segments are ---- */

static uint64_t inode_of(int fd)
{
        struct stat file;

        assert_int_equal(fstat(fd, &file), 0);
        return file.st_ino;
}

static void assert_zero(const void *memory, size_t from, size_t to)
{
        const uint8_t *bytes = memory;

        while (from < to && !bytes[from])
                from++;
        if (from < to)
                fail_msg("byte %zu is %u", from, bytes[from]);
}

/* No two clients share a word to wait on or a byte, so none can steal a wake or read leftovers. */
static void each_connection_gets_new_segments_filled_with_zeros(void **state)
{
        const struct want want = { .prompt = "Secret", .max_tokens = 100, .ignore_eos = true };
        uint32_t times = scaled(30, 2000);
        struct daemon_fixture *fixture = *state;
        struct manual_ring *rings[2];

        START_DAEMON(fixture, MANY_CONNECTS);
        for (uint32_t i = 0; i < times; i++) {
                for (uint32_t k = 0; k < 2; k++) {
                        struct manual_ring *ring =
                                manual_ring_open(fixture, "futex", MANUAL_RING_BYTES);

                        assert_zero(ring->page, 0x30, ring->bytes);
                        assert_zero(ring->own, 0, offsetof(struct smv_ring_control, wake_position));
                        assert_zero(ring->own, 0x88, sizeof(*ring->own));
                        rings[k] = ring;
                }
                assert_true(inode_of(rings[0]->data) != inode_of(rings[1]->data));
                assert_true(inode_of(rings[0]->control) != inode_of(rings[1]->control));
                for (uint32_t k = 0; k < 2; k++) {
                        manual_ring_await_end(rings[k],
                                              raw_client_generate(rings[k]->client, &want));
                        manual_ring_close(rings[k]);
                }
        }
        fixture_stop(fixture);
}

static uint64_t shared_kib(pid_t pid, const char *row)
{
        char path[64], *text, *at;
        uint64_t kib;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        text = file_text(path);
        at = strstr(text, row);
        kib = at ? strtoull(at + strlen(row), NULL, 10) : 0;
        free(text);
        return kib;
}

/* The client's streams run when it goes, and it keeps its descriptors and mappings for ever. */
static void frees_ring_memory_that_a_departed_client_still_maps(void **state)
{
        enum { TIMES = 300 };
        static struct manual_ring *rings[TIMES];
        struct daemon_fixture *fixture = *state;
        uint64_t before, after;
        struct latency_probe *probe;

        /* A connection counts until its ring is freed: on a busy machine all of them may count. */
        START_DAEMON(fixture, MANY_CONNECTS, "--uid-ring-bytes", "2G", "--connections", "1024",
                     "--uid-connections", "512");
        before = shared_kib(fixture->pid, "RssShmem:");
        latency_probe_baseline(fixture, 300);
        probe = latency_probe_start(fixture);
        for (uint32_t i = 0; i < TIMES; i++) {
                const struct want want = number(i, LONG);

                rings[i] = manual_ring_open(fixture, "kick",
                                            i % 8 ? MANUAL_RING_BYTES : SMV_RING_BYTES_MAX);
                assert_true(blocks_of(rings[i]->data) >= rings[i]->bytes / 512);
                if (i % 2)
                        raw_client_await_reply(rings[i]->client,
                                               raw_client_generate(rings[i]->client, &want));
                manual_ring_disconnect(rings[i]);
        }
        latency_probe_stop(probe, "300 clients that take a ring and leave");
        fixture_await_rest(fixture);
        for (uint32_t i = 0; i < TIMES; i++) {
                assert_int_equal(blocks_of(rings[i]->data), 0);
                assert_int_equal(blocks_of(rings[i]->control), 0);
        }
        after = shared_kib(fixture->pid, "RssShmem:");
        printf("# shared memory of the daemon: %u KiB before, %u after\n", (unsigned)before,
               (unsigned)after);
        assert_true(after <= before + 256);
        for (uint32_t i = 0; i < TIMES; i++) {
                assert_zero(rings[i]->page, 0, 64); /* a hole in the file, and no fault */
                manual_ring_close(rings[i]);
        }
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_corrupted_control_page_harms_only_its_own_client),
                DAEMON_TEST(a_client_cannot_resize_reseal_or_write_its_ring),
                DAEMON_TEST(another_user_cannot_reopen_a_ring_for_writing),
                DAEMON_TEST(a_ring_overwritten_by_its_user_harms_only_that_user),
                DAEMON_TEST(each_connection_gets_new_segments_filled_with_zeros),
                DAEMON_TEST(frees_ring_memory_that_a_departed_client_still_maps),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
