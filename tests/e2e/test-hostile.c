/*
 * A client that lies in its ring: by writing to the control page, by using the descriptors that it
 * was given in every way, and by keeping memory.  docs/ipc.md has the table of attacks; those with
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

#include "tests/e2e/honest.h"
#include "tests/e2e/probe.h"
#include "tests/e2e/raw-ring.h"

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

static void ask_all(struct talk *talk, uint32_t tokens, uint32_t ids[STREAMS])
{
        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = number(i, tokens);

                ids[i] = talk_generate(talk, &want);
        }
}

/* Records the streams over a socket, the short ones, and reads them as they come. */
static void record_alone(const struct house *house, struct stream *alone[STREAMS])
{
        struct talk *talk = talk_greet(house);

        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = number(i, SHORT);

                alone[i] = stream_copy(talk_whole(talk, &want));
        }
        talk_close(talk);
}

static void forget_alone(struct stream *alone[STREAMS])
{
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
}

/* ---- lies in the control page ---- */

enum lie { RANDOM, OSCILLATING, MAXIMAL, MISALIGNED, BEHIND, AHEAD, INSTANT, HOLE, WISHES, LIES };

static const struct {
        const char *name;
        bool deadly; /* no value that it writes is ever a true one */
} lies[LIES] = {
        [RANDOM] = { "random heads", true },
        [OSCILLATING] = { "oscillating heads", false },
        [MAXIMAL] = { "maximal heads", true },
        [MISALIGNED] = { "misaligned heads", true },
        [BEHIND] = { "heads that go back", false },
        [AHEAD] = { "heads beyond the tail", true },
        [INSTANT] = { "heads that lie for an instant", false },
        [HOLE] = { "holes in the control page", false },
        [WISHES] = { "wishes to be woken", false },
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
static void tell_lies(const struct raw_ring *ring, enum lie lie)
{
        for (;;) {
                uint64_t tail = __atomic_load_n(&ring->page->tail, __ATOMIC_RELAXED);
                const uint64_t wishes[] = { 0,       tail,           tail - 1,          tail + 64,
                                            any64(), SMV_WAKE_NEVER, SMV_WAKE_NEVER - 1 };

                store(&ring->own->wake_position, wishes[random_below(7)]);
                if (lie == WISHES)
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
static void lie_beside(struct house *house, struct honest *honest, struct stream *alone[STREAMS],
                       enum lie lie, const char *doorbell)
{
        struct raw_ring *ring = raw_open(house, doorbell, RAW_RING_BYTES);
        uint64_t end = now_ms() + scaled(120, 5000);
        uint32_t ids[STREAMS];
        pid_t pid;

        random_below(2); /* so that children differ */
        pid = child();
        if (!pid)
                tell_lies(ring, lie);
        ask_all(ring->talk, lie == WISHES ? SHORT : LONG, ids);
        while (now_ms() < end || (lies[lie].deadly && house_status(house, "requests.alive") > 1)) {
                assert_true(now_ms() < end + 30000);
                honest_look(honest);
                if (lie == WISHES)
                        raw_read(ring, UINT32_MAX);
                talk_turn(ring->talk, 1);
        }
        while (lies[lie].deadly && !ring->talk->hung_up) {
                assert_true(now_ms() < end + 30000);
                talk_turn(ring->talk, 10);
        }
        for (uint32_t i = 0; lie == WISHES && i < STREAMS; i++)
                assert_same_stream(raw_end(ring, ids[i]), alone[i]);
        child_kill(pid);
        raw_close(ring);
}

static void what_is_said_in_a_control_page_is_between_its_client_and_nobody(void **state)
{
        static const char *const doorbells[] = { "kick", "futex", "none" };
        struct stream *alone[STREAMS];
        struct house *house = *state;
        struct honest honest;

        HOUSE(house, FAST, "--depth", "2");
        record_alone(house, alone);
        honest = honest_begin(house);
        probe_rest(house, 300);
        for (enum lie lie = 0; lie < LIES; lie++) {
                struct probe *probe = probe_begin(house);

                for (size_t i = 0; i < 3; i++)
                        lie_beside(house, &honest, alone, lie, doorbells[i]);
                probe_end(probe, lies[lie].name);
        }
        printf("# %u honest streams beside them\n", honest.rounds);
        honest_end(&honest);
        forget_alone(alone);
        house_stop(house);
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
static void try_all(const struct raw_ring *ring)
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

static void size_and_seals_of_a_segment_are_as_they_are(void **state)
{
        struct stream *alone[STREAMS];
        struct house *house = *state;
        struct raw_ring *ring;
        uint32_t ids[STREAMS];

        HOUSE(house, FAST);
        record_alone(house, alone);
        ring = raw_open(house, "kick", RAW_RING_BYTES);
        ask_all(ring->talk, SHORT, ids);
        for (int i = 0; i < 100; i++) {
                try_all(ring);
                raw_read(ring, 20);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(raw_end(ring, ids[i]), alone[i]);
        raw_close(ring);
        forget_alone(alone);
        house_stop(house);
}

/* The socket is for its user alone, so the other user is given the connection. */
static void ring_cannot_be_opened_for_writing_by_another_user(void **state)
{
        struct house *house = *state;
        struct raw_ring *ring;
        pid_t pid;

        /* Only root has two users. */
        if (geteuid())
                skip();
        HOUSE(house, FAST);
        ring = raw_open(house, "kick", RAW_RING_BYTES);
        pid = child();
        if (!pid) {
                assert_int_equal(setresgid(65534, 65534, 65534), 0);
                assert_int_equal(setresuid(65534, 65534, 65534), 0);
                /* otherwise /proc/self belongs to root */
                assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
                try_all(ring);
                assert_errno(reopen(ring->data, O_RDWR), EACCES, "reopen D");
                assert_errno(reopen(ring->control, O_RDWR), EACCES, "reopen C");
                assert_errno(fchmod(ring->data, 0666), EPERM, "fchmod D");
                assert_errno(fchmod(ring->control, 0666), EPERM, "fchmod C");
                _exit(0);
        }
        assert_int_equal(process_wait(pid), 0);
        raw_close(ring);
        house_stop(house);
}

static void scribble_over(uint8_t *memory, size_t bytes)
{
        for (;;) {
                size_t at = random_below((uint32_t)bytes / 8) * 8;

                if (random_below(4) == 0)
                        at = (size_t[]){ 0, 0x18, 0x80, 0x100 }[random_below(4)];
                store((uint64_t *)(memory + at), random_below(8) ? any64() : 0);
        }
}

/* A process of our own uid may write to the ring; the daemon reads none of it back. */
static void ring_that_its_own_user_scribbles_over_is_his_own_loss(void **state)
{
        struct house *house = *state;
        struct honest honest;
        struct probe *probe;

        HOUSE(house, FAST, "--depth", "2");
        honest = honest_begin(house);
        probe_rest(house, 300);
        probe = probe_begin(house);
        for (int i = 0; i < 6; i++) {
                struct raw_ring *ring = raw_open(house, i & 1 ? "kick" : "futex", RAW_RING_BYTES);
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
                pid = child();
                if (!pid)
                        scribble_over(memory, ring->bytes);
                ask_all(ring->talk, LONG, ids);
                for (int k = 0; k < 12; k++) {
                        assert_int_equal(punch(fd), 0);
                        store(&ring->own->wake_position, 0);
                        honest_look_for(&honest, 10);
                }
                child_kill(pid);
                munmap(memory, ring->bytes);
                close(fd);
                raw_close(ring);
        }
        probe_end(probe, "rings scribbled over");
        honest_end(&honest);
        house_stop(house);
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
static void segments_are_made_for_one_connection_and_are_zero(void **state)
{
        const struct want want = { .prompt = "Secret", .max_tokens = 100, .ignore_eos = true };
        uint32_t times = scaled(30, 2000);
        struct house *house = *state;
        struct raw_ring *rings[2];

        HOUSE(house, FAST);
        for (uint32_t i = 0; i < times; i++) {
                for (uint32_t k = 0; k < 2; k++) {
                        struct raw_ring *ring = raw_open(house, "futex", RAW_RING_BYTES);

                        assert_zero(ring->page, 0x30, ring->bytes);
                        assert_zero(ring->own, 0, offsetof(struct smv_ring_control, wake_position));
                        assert_zero(ring->own, 0x88, sizeof(*ring->own));
                        rings[k] = ring;
                }
                assert_true(inode_of(rings[0]->data) != inode_of(rings[1]->data));
                assert_true(inode_of(rings[0]->control) != inode_of(rings[1]->control));
                for (uint32_t k = 0; k < 2; k++) {
                        raw_end(rings[k], talk_generate(rings[k]->talk, &want));
                        raw_close(rings[k]);
                }
        }
        house_stop(house);
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
static void memory_of_one_that_went_and_holds_on_is_given_back(void **state)
{
        enum { TIMES = 300 };
        static struct raw_ring *rings[TIMES];
        struct house *house = *state;
        uint64_t before, after;
        struct probe *probe;

        /* the memory of the last one is freed a moment later */
        HOUSE(house, FAST, "--uid-ring-bytes", "2G");
        before = shared_kib(house->pid, "RssShmem:");
        probe_rest(house, 300);
        probe = probe_begin(house);
        for (uint32_t i = 0; i < TIMES; i++) {
                const struct want want = number(i, LONG);

                rings[i] = raw_open(house, "kick", i % 8 ? RAW_RING_BYTES : SMV_RING_BYTES_MAX);
                assert_true(blocks_of(rings[i]->data) >= rings[i]->bytes / 512);
                if (i % 2)
                        talk_reply(rings[i]->talk, talk_generate(rings[i]->talk, &want));
                raw_leave(rings[i]);
        }
        probe_end(probe, "300 who take a ring and go");
        house_rest(house);
        for (uint32_t i = 0; i < TIMES; i++) {
                assert_int_equal(blocks_of(rings[i]->data), 0);
                assert_int_equal(blocks_of(rings[i]->control), 0);
        }
        after = shared_kib(house->pid, "RssShmem:");
        printf("# shared memory of the daemon: %u KiB before, %u after\n", (unsigned)before,
               (unsigned)after);
        assert_true(after <= before + 256);
        for (uint32_t i = 0; i < TIMES; i++) {
                assert_zero(rings[i]->page, 0, 64); /* a hole in the file, and no fault */
                raw_close(rings[i]);
        }
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(what_is_said_in_a_control_page_is_between_its_client_and_nobody),
                STORY(size_and_seals_of_a_segment_are_as_they_are),
                STORY(ring_cannot_be_opened_for_writing_by_another_user),
                STORY(ring_that_its_own_user_scribbles_over_is_his_own_loss),
                STORY(segments_are_made_for_one_connection_and_are_zero),
                STORY(memory_of_one_that_went_and_holds_on_is_given_back),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
