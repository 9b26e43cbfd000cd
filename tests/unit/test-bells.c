/* How the waker rings: which bell, when, and its behaviour when it cannot ring. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/ipc/channel.h"
#include "daemon/engine/publish.h"
#include "daemon/engine/waker.h"
#include "base/sys.h"
#include "tests/scale.h"

#define RING 65536u

struct world {
        struct mailbox *inbox, *outbox;
        struct stats stats;
        struct waker *waker;
        struct channel *channel;

        /* of a shared one: what its client has */
        int far;
        struct ring_reader reader;
        uint8_t *ring, *control;
        atomic_bool enough;
};

static void open_mail(struct world *w, uint32_t capacity)
{
        memset(w, 0, sizeof(*w));
        assert_int_equal(mailbox_new(capacity, -1, &w->inbox), 0);
        assert_int_equal(mailbox_new(capacity, -1, &w->outbox), 0);
        assert_int_equal(waker_start(w->inbox, w->outbox, &w->stats, &w->waker), 0);
}

static uint8_t *map(const struct segment *segment, int protection)
{
        int fd = segment_lend(segment);
        uint8_t *at = mmap(NULL, segment->bytes, protection, MAP_SHARED, fd, 0);

        assert_true(at != MAP_FAILED);
        close(fd);
        return at;
}

static void open_shared(struct world *w, enum channel_bell bell)
{
        int fds[2];

        open_mail(w, 8);
        assert_int_equal(channel_new_shared(3, RING, bell, &w->channel), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        w->channel->socket = fds[0]; /* the channel's to close */
        w->far = fds[1];
        w->ring = map(&w->channel->segment_d, PROT_READ);
        w->control = map(&w->channel->segment_c, PROT_READ | PROT_WRITE);
        assert_int_equal(ring_reader_init(&w->reader, w->ring, (void *)w->control), 0);
}

static struct mail take(struct world *w)
{
        struct mail mail;

        assert_int_equal(mailbox_take(w->outbox, &mail, 1, sys_clock_ns() + 60000000000u), 1);
        return mail;
}

static void close_world(struct world *w)
{
        mailbox_post(w->inbox, &(struct mail){ .kind = MAIL_STOPPED });
        assert_int_equal(take(w).kind, MAIL_STOPPED);
        assert_null(waker_join(w->waker));
        mailbox_free(w->inbox);
        mailbox_free(w->outbox);
        if (w->ring) {
                munmap(w->ring, w->channel->segment_d.bytes);
                munmap(w->control, w->channel->segment_c.bytes);
                close(w->far);
        }
        assert_null(channel_free(w->channel, false));
}

static void post_wake(struct world *w)
{
        if (channel_raise(&w->channel->waking))
                mailbox_post(w->inbox, &(struct mail){ .kind = MAIL_WAKE, .what = w->channel });
}

static void put(struct world *w, uint8_t type)
{
        void *payload;

        assert_int_equal(ring_put(&w->channel->writer, type, 0, 1, 0, 8, &payload), 0);
        memset(payload, 0, 8);
        if (type == SMV_RECORD_END)
                w->channel->end = w->channel->writer.tail;
}

/* As the engine's step does. */
static void show(struct world *w)
{
        ring_publish(&w->channel->writer);
        channel_show(w->channel);
        post_wake(w);
}

static void say(struct world *w, uint8_t type)
{
        put(w, type);
        show(w);
}

/* When the waker has done all that it was asked: how often it called the loop. */
static uint32_t calls(struct world *w)
{
        uint32_t count = 0;

        mailbox_post(w->inbox, &(struct mail){ .kind = MAIL_FAILED });
        for (struct mail mail = take(w); mail.kind != MAIL_FAILED; mail = take(w)) {
                assert_int_equal(mail.kind, MAIL_WAKE);
                channel_lower(&w->channel->draining);
                count++;
        }
        return count;
}

/* Empty frames that have come since the last look. */
static uint32_t kicks(struct world *w)
{
        uint32_t frame, count = 0;

        while (recv(w->far, &frame, sizeof(frame), MSG_DONTWAIT) == (ssize_t)sizeof(frame)) {
                assert_int_equal(frame, 0);
                count++;
        }
        return count;
}

static void read_all(struct world *w)
{
        const struct smv_record *record;

        while (!ring_next(&w->reader, &record))
                ;
        ring_release(&w->reader);
}

static void fall_asleep(struct world *w, uint64_t bytes)
{
        read_all(w);
        assert_true(doorbell_may_sleep(&w->reader, bytes));
}

static void a_kick_is_one_empty_frame_for_all_records_of_a_step(void **state)
{
        struct world w;

        (void)state;
        open_shared(&w, CHANNEL_KICK);
        for (uint32_t step = 1; step <= 50; step++) {
                fall_asleep(&w, 0);
                for (uint32_t i = 0; i < step; i++)
                        put(&w, SMV_RECORD_TOKENS);
                show(&w);
                assert_int_equal(calls(&w), 0); /* the loop has no part in it */
                assert_int_equal(kicks(&w), 1);
                assert_int_equal(counter_get(&w.stats.doorbells), step);
        }
        close_world(&w);
}

static void does_not_wake_a_batch_reader_before_its_level_or_an_end(void **state)
{
        struct world w;

        (void)state;
        open_shared(&w, CHANNEL_KICK);
        fall_asleep(&w, 96); /* four records: the fifth goes past it */
        for (uint32_t i = 1; i <= 8; i++) {
                say(&w, SMV_RECORD_TOKENS);
                calls(&w);
                assert_int_equal(kicks(&w), i == 5);
        }
        assert_int_equal(counter_get(&w.stats.wakes), 8);
        assert_int_equal(counter_get(&w.stats.doorbells), 1);
        read_all(&w);
        doorbell_awake(&w.reader);
        for (uint32_t i = 0; i < 8; i++)
                say(&w, i == 4 ? SMV_RECORD_END : SMV_RECORD_TOKENS);
        calls(&w);
        assert_int_equal(kicks(&w), 0); /* awake */
        fall_asleep(&w, RING);
        say(&w, SMV_RECORD_TOKENS);
        calls(&w);
        assert_int_equal(kicks(&w), 0);
        say(&w, SMV_RECORD_END);
        calls(&w);
        assert_int_equal(kicks(&w), 1); /* no reader sleeps through an END */
        close_world(&w);
}

static void wakes_the_loop_for_its_own_mail_with_every_kind_of_doorbell(void **state)
{
        static const enum channel_bell bells[] = { CHANNEL_KICK, CHANNEL_FUTEX, CHANNEL_NONE };

        (void)state;
        for (size_t i = 0; i < 3; i++) {
                struct world w;

                open_shared(&w, bells[i]);
                fall_asleep(&w, 0);
                say(&w, SMV_RECORD_TOKENS);
                assert_int_equal(calls(&w), 0);
                channel_raise(&w.channel->calling);
                say(&w, SMV_RECORD_END);
                assert_int_equal(calls(&w), 1);
                assert_false(atomic_load(&w.channel->calling));
                say(&w, SMV_RECORD_TOKENS);
                assert_int_equal(calls(&w), 0);
                assert_int_equal(kicks(&w) > 0, bells[i] == CHANNEL_KICK);
                assert_int_equal(counter_get(&w.stats.doorbells) > 0, bells[i] != CHANNEL_NONE);
                close_world(&w);
        }
}

/* It sleeps on its own mapping, which is for reading, as another process would. */
static void *sleep_on_the_tail(void *arg)
{
        struct world *w = arg;

        for (uint32_t n = 0; n < 2000; n++) {
                const struct smv_record *record;

                while (ring_next(&w->reader, &record) == RING_E_EMPTY) {
                        const struct timespec most = { .tv_sec = 20 };
                        uint32_t value;
                        const uint32_t *word = doorbell_word(&w->reader, &value);

                        ring_release(&w->reader);
                        if (doorbell_may_sleep(&w->reader, 0) &&
                            syscall(SYS_futex, word, FUTEX_WAIT, value, &most, NULL, 0) < 0 &&
                            errno == ETIMEDOUT)
                                return w;
                        doorbell_awake(&w->reader);
                }
        }
        ring_release(&w->reader);
        return NULL;
}

static void wakes_a_futex_sleeper_every_time(void **state)
{
        pthread_t reader;
        struct world w;
        void *lost;

        (void)state;
        open_shared(&w, CHANNEL_FUTEX);
        assert_int_equal(pthread_create(&reader, NULL, sleep_on_the_tail, &w), 0);
        for (uint32_t n = 0; n < 2000; n++) {
                say(&w, SMV_RECORD_TOKENS);
                usleep(n % 50);
                while (w.channel->writer.tail - ring_head(w.channel->segment_c.at) > RING / 2)
                        sched_yield();
                assert_int_equal(ring_free_bytes(&w.channel->writer, 64, &(uint64_t){ 0 }), 0);
        }
        pthread_join(reader, &lost);
        assert_null(lost);
        assert_int_equal(calls(&w), 0);
        assert_int_equal(kicks(&w), 0);
        close_world(&w);
}

static void leaves_the_kick_to_the_loop_while_the_loop_holds_the_send_lock(void **state)
{
        struct world w;

        (void)state;
        open_shared(&w, CHANNEL_KICK);
        fall_asleep(&w, 0);
        assert_true(send_lock_take(&w.channel->send_lock, SEND_LOCK_CALL));
        say(&w, SMV_RECORD_TOKENS);
        calls(&w);
        fall_asleep(&w, 0);
        say(&w, SMV_RECORD_TOKENS);
        assert_int_equal(calls(&w), 0);
        assert_int_equal(kicks(&w), 0);
        /* once for both */
        assert_int_equal(send_lock_release(&w.channel->send_lock), SEND_LOCK_RING);
        assert_int_equal(send_lock_release(&w.channel->send_lock), 0);
        close_world(&w);
}

/* As fast as it can: the waker has the send lock half of the time. */
static void *show_records(void *arg)
{
        struct world *w = arg;

        while (!atomic_load(&w->enough)) {
                uint64_t *wish = &((struct smv_ring_control *)w->control)->wake_position;

                while (atomic_load(&w->channel->waking))
                        sched_yield();
                __atomic_store_n(wish, w->channel->writer.tail, __ATOMIC_RELAXED);
                put(w, SMV_RECORD_TOKENS);
                show(w);
                read_all(w);
                assert_int_equal(ring_free_bytes(&w->channel->writer, 64, &(uint64_t){ 0 }), 0);
        }
        return NULL;
}

static void calls_the_loop_if_it_failed_to_take_the_send_lock(void **state)
{
        uint32_t refused = 0, rung = 0, frames = 0, turns = scaled(100000, 1000000);
        pthread_t engine;
        struct world w;

        (void)state;
        open_shared(&w, CHANNEL_KICK);
        assert_int_equal(pthread_create(&engine, NULL, show_records, &w), 0);
        for (uint32_t n = 0; n < turns || refused < 50; n++) {
                if (n % 512 == 0)
                        frames += kicks(&w);
                if (send_lock_take(&w.channel->send_lock, SEND_LOCK_CALL)) {
                        while (send_lock_release(&w.channel->send_lock))
                                rung++;
                } else {
                        assert_int_equal(take(&w).kind, MAIL_WAKE); /* or it waits in vain */
                        channel_lower(&w.channel->draining);
                        refused++;
                }
        }
        atomic_store(&w.enough, true);
        pthread_join(engine, NULL);
        assert_int_equal(calls(&w), 0);
        frames += kicks(&w);
        print_message("# refused %u times, rang %u times for the waker\n", refused, rung);
        assert_true(frames > 0 && frames + rung <= counter_get(&w.stats.doorbells));
        close_world(&w);
}

static void a_full_or_closed_socket_does_not_block_the_waker(void **state)
{
        static const uint8_t junk[4096];
        struct world w;

        (void)state;
        open_shared(&w, CHANNEL_KICK);
        while (send(w.channel->socket, junk, sizeof(junk), MSG_DONTWAIT) > 0)
                ;
        while (send(w.channel->socket, junk, 1, MSG_DONTWAIT) > 0)
                ;
        assert_int_equal(errno, EAGAIN);
        fall_asleep(&w, 0);
        say(&w, SMV_RECORD_TOKENS);
        assert_int_equal(calls(&w), 0);
        assert_int_equal(counter_get(&w.stats.doorbells), 1);
        assert_true(send_lock_take(&w.channel->send_lock, SEND_LOCK_CALL)); /* it has let go */
        assert_int_equal(send_lock_release(&w.channel->send_lock), 0);

        close(w.far);
        w.far = -1;
        fall_asleep(&w, 0);
        say(&w, SMV_RECORD_TOKENS);
        assert_int_equal(calls(&w), 0);
        assert_int_equal(counter_get(&w.stats.doorbells), 2);
        close_world(&w);
}

static void posts_channel_gone_after_the_last_kick_of_the_channel(void **state)
{
        struct world w;

        (void)state;
        open_shared(&w, CHANNEL_KICK);
        for (uint32_t i = 0; i < 200; i++) {
                fall_asleep(&w, 0);
                channel_raise(&w.channel->calling);
                say(&w, SMV_RECORD_END);
                mailbox_post(w.inbox,
                             &(struct mail){ .kind = MAIL_CHANNEL_GONE, .what = w.channel });
                assert_int_equal(take(&w).kind, MAIL_WAKE);
                channel_lower(&w.channel->draining);
                assert_int_equal(take(&w).kind, MAIL_CHANNEL_GONE);
                assert_int_equal(kicks(&w), 1);
                assert_false(atomic_load(&w.channel->waking));
        }
        close_world(&w);
}

/*
 * RETIRED is posted while the waker is busy with the step before: it may not take that
 * step's WAKE for the call that the loop is owed.
 */
static void wakes_the_loop_after_the_mail_that_the_call_is_for(void **state)
{
        struct publish_conf conf = { .requests_max = 1, .channels = 1, .piece_max = 8 };
        struct publish *publish;
        struct world w;

        (void)state;
        for (int bell = CHANNEL_KICK; bell <= CHANNEL_NONE; bell++) {
                open_shared(&w, (enum channel_bell)bell);
                conf.waker = w.inbox;
                assert_int_equal(publish_new(&conf, &publish), 0);
                publish_call_loop(publish, w.channel);
                post_wake(&w); /* of the step before */
                calls(&w);
                publish_flush(publish);
                assert_int_equal(calls(&w), 1);
                publish_free(publish);
                close_world(&w);
        }
}

static struct publish *open_publish(struct world *w, uint32_t channels)
{
        const struct publish_conf conf = { .requests_max = 1,
                                           .channels = channels,
                                           .piece_max = 8,
                                           .waker = w->inbox,
                                           .wake_inline = w->waker };
        struct publish *publish;

        assert_int_equal(publish_new(&conf, &publish), 0);
        return publish;
}

static void wait_until_asleep(struct world *w)
{
        while (!mailbox_is_asleep(w->inbox))
                sched_yield();
}

/* The kick is there when publish_flush() returns, and no mail has gone. */
static void the_engine_kicks_a_single_sleeper_itself(void **state)
{
        struct publish *publish;
        struct world w;

        (void)state;
        open_shared(&w, CHANNEL_KICK);
        publish = open_publish(&w, 1);
        for (uint32_t n = 1; n <= 100; n++) {
                fall_asleep(&w, 0);
                put(&w, SMV_RECORD_TOKENS);
                wait_until_asleep(&w);
                publish_call_loop(publish, w.channel);
                publish_flush(publish);
                assert_int_equal(kicks(&w), 1);
                assert_int_equal(counter_get(&w.stats.doorbells), n);
                assert_true(mailbox_is_asleep(w.inbox));
                assert_int_equal(calls(&w), 1);
        }
        publish_free(publish);
        close_world(&w);
}

static void the_engine_does_not_kick_while_the_waker_has_mail(void **state)
{
        struct publish *publish;
        struct world w;

        (void)state;
        open_shared(&w, CHANNEL_KICK);
        publish = open_publish(&w, 1);
        for (uint32_t n = 1; n <= 100; n++) {
                wait_until_asleep(&w);
                fall_asleep(&w, 0);
                put(&w, SMV_RECORD_TOKENS);
                mailbox_put(w.inbox, &(struct mail){ .kind = MAIL_FAILED }); /* not rung for */
                assert_false(mailbox_is_asleep(w.inbox));
                assert_false(waker_wake_inline(w.waker, w.channel));
                publish_call_loop(publish, w.channel);
                publish_flush(publish);
                assert_int_equal(take(&w).kind, MAIL_FAILED); /* the older one is first */
                assert_int_equal(calls(&w), 1);
                assert_int_equal(kicks(&w), 1);
        }
        publish_free(publish);
        close_world(&w);
}

static void wakes_both_of_two_sleepers(void **state)
{
        struct publish *publish;
        struct world w, other;

        (void)state;
        open_shared(&w, CHANNEL_KICK);
        open_shared(&other, CHANNEL_KICK);
        publish = open_publish(&w, 2);
        for (uint32_t n = 0; n < 100; n++) {
                struct pollfd asks[2] = { { .fd = w.far, .events = POLLIN },
                                          { .fd = other.far, .events = POLLIN } };

                fall_asleep(&w, 0);
                fall_asleep(&other, 0);
                put(&w, SMV_RECORD_TOKENS);
                put(&other, SMV_RECORD_TOKENS);
                wait_until_asleep(&w);
                publish_call_loop(publish, w.channel);
                publish_call_loop(publish, other.channel);
                publish_flush(publish);
                for (uint32_t i = 0; i < 2; i++)
                        assert_int_equal(poll(&asks[i], 1, 10000), 1);
                assert_int_equal(kicks(&w), 1);
                assert_int_equal(kicks(&other), 1);
                assert_int_equal(calls(&w), 2);
                channel_lower(&other.channel->draining);
        }
        publish_free(publish);
        close_world(&other);
        close_world(&w);
}

/* One connection or both have news, so that engine and waker ring in turns. */
static void no_wakeup_is_lost_when_engine_and_waker_alternate(void **state)
{
        struct publish *publish;
        pthread_t readers[2];
        struct world w, other;
        void *lost;

        (void)state;
        open_shared(&w, CHANNEL_FUTEX);
        open_shared(&other, CHANNEL_FUTEX);
        publish = open_publish(&w, 2);
        pthread_create(&readers[0], NULL, sleep_on_the_tail, &w);
        pthread_create(&readers[1], NULL, sleep_on_the_tail, &other);
        for (uint32_t n = 0; n < 3000; n++) {
                struct world *all[2] = { &w, &other };

                for (uint32_t i = 0; i < 2; i++) {
                        if (!((1 + n % 3) & 1u << i))
                                continue;
                        put(all[i], SMV_RECORD_TOKENS);
                        publish_call_loop(publish, all[i]->channel);
                        channel_lower(&all[i]->channel->draining);
                }
                publish_flush(publish);
                if (n % 64 == 0)
                        usleep(50);
                while (mailbox_take(w.outbox, &(struct mail){ 0 }, 1, 0))
                        ;
        }
        for (uint32_t i = 0; i < 2; i++) {
                pthread_join(readers[i], &lost);
                assert_null(lost);
        }
        publish_free(publish);
        calls(&w);
        close_world(&other);
        close_world(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_kick_is_one_empty_frame_for_all_records_of_a_step),
                cmocka_unit_test(does_not_wake_a_batch_reader_before_its_level_or_an_end),
                cmocka_unit_test(wakes_the_loop_for_its_own_mail_with_every_kind_of_doorbell),
                cmocka_unit_test(wakes_a_futex_sleeper_every_time),
                cmocka_unit_test(leaves_the_kick_to_the_loop_while_the_loop_holds_the_send_lock),
                cmocka_unit_test(calls_the_loop_if_it_failed_to_take_the_send_lock),
                cmocka_unit_test(a_full_or_closed_socket_does_not_block_the_waker),
                cmocka_unit_test(posts_channel_gone_after_the_last_kick_of_the_channel),
                cmocka_unit_test(wakes_the_loop_after_the_mail_that_the_call_is_for),
                cmocka_unit_test(the_engine_kicks_a_single_sleeper_itself),
                cmocka_unit_test(the_engine_does_not_kick_while_the_waker_has_mail),
                cmocka_unit_test(wakes_both_of_two_sleepers),
                cmocka_unit_test(no_wakeup_is_lost_when_engine_and_waker_alternate),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
