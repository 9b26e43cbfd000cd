/* Doorbell: two threads, or two processes, and no ring is lost between them. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/scale.h"
#include "tests/unit/doorbell-rig.h"

#define LOST_S 20 /* a sleep of this many seconds has missed its ring */

static long futex(const uint32_t *word, int op, uint32_t value, const struct timespec *most)
{
        return syscall(SYS_futex, word, op, value, most, NULL, 0);
}

/* False: a ring was lost. */
static bool sleep_once(struct ring_reader *reader, uint64_t bytes)
{
        const struct timespec most = { .tv_sec = LOST_S };
        uint32_t value;
        const uint32_t *word = doorbell_word(reader, &value);
        bool lost = false;

        if (doorbell_may_sleep(reader, bytes))
                lost = futex(word, FUTEX_WAIT, value, &most) < 0 && errno == ETIMEDOUT;
        doorbell_awake(reader);
        return !lost;
}

struct reading {
        struct ring_reader *reader;
        uint32_t records;
        uint64_t batch_max;
        uint32_t sleeps, lost, wrong;
};

static void *read_and_sleep(void *arg)
{
        struct reading *reading = arg;
        uint64_t random = 23;
        uint32_t n = 0;

        while (n < reading->records && !reading->lost) {
                const struct smv_record *record;
                uint32_t most = 1 + next_random(&random) % 100;
                bool empty = false;

                while (most && n < reading->records) {
                        empty = ring_next(reading->reader, &record) != 0;
                        if (empty)
                                break;
                        reading->wrong += record->sequence != n++;
                        most--;
                }
                ring_release(reading->reader);
                if (!empty)
                        continue;
                reading->sleeps++;
                reading->lost += !sleep_once(reading->reader,
                                             next_random(&random) % (reading->batch_max + 1));
        }
        return NULL;
}

/* Until all was read, were it not wished for later; then a little, and the reader is on its way
 * to sleep. */
static void wait_a_little(const struct memory *m, uint64_t *random)
{
        uint32_t most = next_random(random) % 8 ? 0 : 20000, more = next_random(random) % 300;

        while (most && ring_head(m->control) != m->writer.published)
                if (--most % 512 == 0)
                        sched_yield();
        while (more--)
                (void)ring_head(m->control);
}

static uint32_t write_and_ring(struct memory *m, uint32_t records, uint64_t *random)
{
        uint32_t rings = 0;

        while (m->number < records) {
                uint32_t burst = next_random(random) % 8 ? 1 : next_random(random) % 64;
                uint64_t room;

                for (; burst && m->number < records; burst--) {
                        bool end = m->number == records - 1 || next_random(random) % 64 == 0;

                        if (!put(m, end ? SMV_RECORD_END : SMV_RECORD_TOKENS))
                                break;
                }
                ring_publish(&m->writer);
                if (is_due(m)) {
                        futex((const uint32_t *)&m->writer.page->tail, FUTEX_WAKE, INT32_MAX, NULL);
                        rings++;
                }
                assert_int_equal(ring_free_bytes(&m->writer, RECORD, &room), 0);
                if (burst)
                        sched_yield();
                wait_a_little(m, random);
        }
        return rings;
}

static void hammer(uint32_t records, uint64_t batch_max)
{
        struct memory m;
        struct reading reading = { .reader = &m.reader,
                                   .records = records,
                                   .batch_max = batch_max };
        uint64_t random = 5;
        uint32_t rings;
        pthread_t thread;

        open_ring(&m);
        assert_int_equal(pthread_create(&thread, NULL, read_and_sleep, &reading), 0);
        rings = write_and_ring(&m, records, &random);
        pthread_join(thread, NULL);
        print_message("# %u records, %u sleeps asked for, %u rings\n", records, reading.sleeps,
                      rings);
        assert_int_equal(reading.lost, 0);
        assert_int_equal(reading.wrong, 0);
        assert_true(reading.sleeps > 100);
        assert_true(rings < records);
        close_ring(&m);
}

static void no_wakeup_is_lost_between_two_threads(void **state)
{
        (void)state;
        hammer(scaled(300000, 3000000), 0);
}

static void no_wakeup_is_lost_for_a_reader_that_waits_for_more_bytes(void **state)
{
        (void)state;
        hammer(scaled(300000, 3000000), 2000);
        hammer(scaled(100000, 1000000), 2 * RING); /* none but an END or the wake level wakes it */
}

/*
 * A futex looks at the tail once more when it begins to wait, which hides a fence that
 * is not there; a socket does not.  This reader sleeps on a bell and nothing else, and
 * the writer shows each record when it is about to.
 */
struct kicked {
        struct ring_reader *reader;
        atomic_uint bell, read;
        uint32_t records, slept;
        atomic_bool lost;
};

static void *read_until_kicked(void *arg)
{
        struct kicked *kicked = arg;
        uint64_t random = 41;
        uint32_t n = 0;

        while (n < kicked->records) {
                uint32_t bell = atomic_load(&kicked->bell);
                time_t most = time(NULL) + LOST_S;
                const struct smv_record *record;

                for (uint32_t wait = next_random(&random) % 2048; wait; wait--)
                        (void)atomic_load_explicit(&kicked->bell, memory_order_relaxed);
                if (doorbell_may_sleep(kicked->reader, 0)) {
                        kicked->slept++;
                        while (atomic_load(&kicked->bell) == bell) {
                                sched_yield();
                                if (time(NULL) > most) {
                                        atomic_store(&kicked->lost, true);
                                        return NULL;
                                }
                        }
                }
                doorbell_awake(kicked->reader);
                while (!ring_next(kicked->reader, &record))
                        n++;
                ring_release(kicked->reader);
                atomic_store_explicit(&kicked->read, n, memory_order_relaxed);
        }
        return NULL;
}

static void no_wakeup_is_lost_with_kicks(void **state)
{
        struct memory m;
        struct kicked kicked = { .reader = &m.reader, .records = scaled(500000, 5000000) };
        uint64_t random = 43, room;
        uint32_t rings = 0;
        pthread_t thread;

        (void)state;
        open_ring(&m);
        assert_int_equal(pthread_create(&thread, NULL, read_until_kicked, &kicked), 0);
        while (m.number < kicked.records && !atomic_load(&kicked.lost)) {
                for (uint32_t wait = next_random(&random) % 256; wait; wait--)
                        (void)atomic_load_explicit(&kicked.read, memory_order_relaxed);
                if (say(&m, SMV_RECORD_TOKENS)) {
                        atomic_fetch_add(&kicked.bell, 1);
                        rings++;
                }
                assert_int_equal(ring_free_bytes(&m.writer, RECORD, &room), 0);
                for (uint32_t n = 1;
                     atomic_load_explicit(&kicked.read, memory_order_relaxed) < m.number &&
                     !atomic_load(&kicked.lost);
                     n++)
                        if (n % 4096 == 0)
                                sched_yield();
        }
        pthread_join(thread, NULL);
        print_message("# %u sleeps, %u rings\n", kicked.slept, rings);
        assert_false(atomic_load(&kicked.lost));
        assert_true(kicked.slept > 100);
        close_ring(&m);
}

/* Its mapping of the ring is read-only: that is enough to sleep on it. */
static void a_reader_in_another_process_can_sleep_on_a_read_only_mapping(void **state)
{
        struct memory m;
        uint64_t random = 9;
        int status;
        pid_t pid;

        (void)state;
        open_ring(&m);
        pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                struct reading reading = { .reader = &m.reader,
                                           .records = 20000,
                                           .batch_max = 100 };

                if (mprotect(m.bytes, ring_segment_bytes(RING), PROT_READ))
                        _exit(2);
                read_and_sleep(&reading);
                _exit(reading.lost || reading.wrong || reading.sleeps < 10);
        }
        write_and_ring(&m, 20000, &random);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close_ring(&m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_wakeup_is_lost_between_two_threads),
                cmocka_unit_test(no_wakeup_is_lost_for_a_reader_that_waits_for_more_bytes),
                cmocka_unit_test(no_wakeup_is_lost_with_kicks),
                cmocka_unit_test(a_reader_in_another_process_can_sleep_on_a_read_only_mapping),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
