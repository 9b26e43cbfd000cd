#include "daemon/engine/waker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/ipc/channel.h"
#include "base/sys.h"

#define RING 65536u

struct world {
        struct mailbox *inbox, *outbox;
        struct stats stats;
        struct waker *waker;
        struct channel *channel;
};

static void open_world(struct world *w, uint32_t capacity)
{
        memset(w, 0, sizeof(*w));
        assert_int_equal(mailbox_new(capacity, -1, &w->inbox), 0);
        assert_int_equal(mailbox_new(capacity, -1, &w->outbox), 0);
        assert_int_equal(channel_new(3, RING, &w->channel), 0);
        assert_int_equal(w->channel->number, 3);
        assert_int_equal(waker_start(w->inbox, w->outbox, &w->stats, &w->waker), 0);
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
        assert_null(channel_free(w->channel, false));
}

static void passes_all_mail_on_in_order(void **state)
{
        static const enum mail_kind kinds[] = { MAIL_FAILED, MAIL_WAKE, MAIL_CHANNEL_GONE,
                                                MAIL_FAILED, MAIL_CHANNEL_GONE };
        const size_t n = sizeof(kinds) / sizeof(kinds[0]);
        struct world w;

        (void)state;
        open_world(&w, 8);
        assert_true(channel_raise(&w.channel->waking));
        for (size_t i = 0; i < n; i++)
                mailbox_post(w.inbox, &(struct mail){ .kind = kinds[i], .what = w.channel });
        for (size_t i = 0; i < n; i++) {
                struct mail mail = take(&w);

                assert_int_equal(mail.kind, kinds[i]);
                assert_ptr_equal(mail.what, w.channel);
        }
        assert_false(atomic_load(&w.channel->waking));
        assert_true(atomic_load(&w.channel->draining));
        close_world(&w);
}

static void does_not_wake_a_loop_that_was_already_told(void **state)
{
        struct world w;

        (void)state;
        open_world(&w, 8);
        for (uint32_t i = 0; i < 3; i++) {
                assert_true(channel_raise(&w.channel->waking));
                mailbox_post(w.inbox, &(struct mail){ .kind = MAIL_WAKE, .what = w.channel });
                mailbox_post(w.inbox, &(struct mail){ .kind = MAIL_FAILED, .result = (int)i });
                if (!i)
                        assert_int_equal(take(&w).kind, MAIL_WAKE);
                assert_int_equal(take(&w).kind, MAIL_FAILED);
                assert_false(atomic_load(&w.channel->waking));
        }
        assert_int_equal(counter_get(&w.stats.wakes), 3);

        channel_lower(&w.channel->draining);
        assert_true(channel_raise(&w.channel->waking));
        mailbox_post(w.inbox, &(struct mail){ .kind = MAIL_WAKE, .what = w.channel });
        assert_int_equal(take(&w).kind, MAIL_WAKE);
        close_world(&w);
}

/*
 * The whole path: an engine that publishes and raises, and this thread as the loop that lowers,
 * drains and sleeps.  A record without its WAKE shows at the deadline.
 */
#define RECORDS 100000u

static void *publish_records(void *arg)
{
        struct world *w = arg;

        for (uint32_t n = 0; n < RECORDS; n++) {
                void *payload;

                while (ring_put(&w->channel->writer, SMV_RECORD_TOKENS, 0, 1, n, 8, &payload))
                        sched_yield();
                memcpy(payload, &(uint64_t){ n }, 8);
                ring_publish(&w->channel->writer);
                if (channel_raise(&w->channel->waking))
                        mailbox_post(w->inbox,
                                     &(struct mail){ .kind = MAIL_WAKE, .what = w->channel });
        }
        return NULL;
}

static void every_record_is_seen(void **state)
{
        const struct smv_record *record;
        pthread_t engine;
        struct world w;
        uint32_t n = 0;

        (void)state;
        open_world(&w, 2); /* the flags let one message be under way */
        assert_int_equal(pthread_create(&engine, NULL, publish_records, &w), 0);
        while (n < RECORDS) {
                struct mail mail = take(&w);

                assert_int_equal(mail.kind, MAIL_WAKE);
                assert_ptr_equal(mail.what, w.channel);
                channel_lower(&w.channel->draining);
                while (!ring_next(&w.channel->reader, &record)) {
                        if (record->sequence != n)
                                fail_msg("record %u is not the one", n);
                        n++;
                }
                ring_release(&w.channel->reader);
        }
        pthread_join(engine, NULL);
        /* A WAKE for records that were seen already may still be under way. */
        mailbox_post(w.inbox, &(struct mail){ .kind = MAIL_STOPPED });
        for (struct mail mail = take(&w); mail.kind != MAIL_STOPPED; mail = take(&w))
                assert_int_equal(mail.kind, MAIL_WAKE);
        assert_null(waker_join(w.waker));
        mailbox_free(w.inbox);
        mailbox_free(w.outbox);
        channel_free(w.channel, false);
}

static int refuse(const char *call, void *arg)
{
        return strcmp(call, arg) ? 0 : -ENOMEM;
}

static void reports_failures_at_creation_and_leaks_nothing(void **state)
{
        struct channel *channel = NULL;
        struct waker *waker = NULL;

        (void)state;
        sys_set_fault(refuse, (void *)"thread");
        assert_int_equal(waker_start(NULL, NULL, NULL, &waker), -ENOMEM);
        sys_set_fault(refuse, (void *)"mmap");
        assert_int_equal(channel_new(0, RING, &channel), -ENOMEM);
        sys_set_fault(NULL, NULL);
        assert_null(waker);
        assert_null(channel);
        assert_null(waker_join(NULL));
        assert_null(channel_free(NULL, false));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(passes_all_mail_on_in_order),
                cmocka_unit_test(does_not_wake_a_loop_that_was_already_told),
                cmocka_unit_test(every_record_is_seen),
                cmocka_unit_test(reports_failures_at_creation_and_leaks_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
