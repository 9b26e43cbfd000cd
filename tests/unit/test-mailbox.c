#include "daemon/ipc/mailbox.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"

#define SECOND 1000000000u

static struct mailbox *open_box(uint32_t capacity, int bell)
{
        struct mailbox *mailbox;

        assert_int_equal(mailbox_new(capacity, bell, &mailbox), 0);
        return mailbox;
}

static void post_number(struct mailbox *mailbox, uint32_t number)
{
        mailbox_post(mailbox, &(struct mail){ .kind = MAIL_CANCEL,
                                              .reason = SMV_END_STALLED,
                                              .code = SMV_TIMEOUT,
                                              .result = (int)number,
                                              .what = (void *)(uintptr_t)number });
}

static bool is_number(const struct mail *mail, uint32_t number)
{
        return mail->kind == MAIL_CANCEL && mail->reason == SMV_END_STALLED &&
               mail->code == SMV_TIMEOUT && mail->result == (int)number &&
               mail->what == (void *)(uintptr_t)number;
}

static uint32_t next_random(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(*state >> 33);
}

static void pause_ns(long ns)
{
        nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static void takes_mails_in_order_up_to_the_given_count(void **state)
{
        struct mailbox *mailbox = open_box(8, -1);
        struct mail mails[8];
        uint32_t number = 0;

        (void)state;
        assert_int_equal(mailbox_take(mailbox, mails, 8, 0), 0);
        for (uint32_t round = 0; round < 100; round++) {
                for (uint32_t i = 0; i < 7; i++)
                        post_number(mailbox, number + i);
                assert_int_equal(mailbox_take(mailbox, mails, 3, 0), 3);
                assert_int_equal(mailbox_take(mailbox, mails + 3, 8, UINT64_MAX), 4);
                for (uint32_t i = 0; i < 7; i++)
                        assert_true(is_number(&mails[i], number + i));
                number += 7;
        }
        assert_null(mailbox_free(mailbox));
        assert_null(mailbox_free(NULL));
}

/* Runs in a child process: true if this many mails exceed the capacity. */
static bool overflows(uint32_t capacity, uint32_t mails)
{
        struct mailbox *mailbox = open_box(capacity, -1);
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (!child) {
                close(2); /* the assertion's message is expected */
                for (uint32_t i = 0; i < mails; i++)
                        post_number(mailbox, i);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        mailbox_free(mailbox);
        return !WIFEXITED(status) || WEXITSTATUS(status);
}

static void asserts_if_a_full_mailbox_is_posted_to(void **state)
{
        (void)state;
        assert_false(overflows(1, 1));
        assert_true(overflows(1, 2));
        assert_false(overflows(5, 8)); /* rounded up */
        assert_true(overflows(5, 9));
}

static void a_take_returns_at_its_deadline(void **state)
{
        struct mailbox *mailbox = open_box(4, -1);
        struct mail mail;
        uint64_t begin = sys_clock_ns();

        (void)state;
        assert_int_equal(mailbox_take(mailbox, &mail, 1, begin + 30000000), 0);
        assert_true(sys_clock_ns() >= begin + 30000000);
        assert_int_equal(mailbox_take(mailbox, &mail, 1, 1), 0); /* long past */
        post_number(mailbox, 6);
        assert_int_equal(mailbox_take(mailbox, &mail, 1, 1), 1);
        assert_true(is_number(&mail, 6));
        mailbox_free(mailbox);
}

/*
 * One mail out, one mail back: after each the taker is asleep, about to fall asleep
 * or just awake again, so a wake-up that can be lost is lost here, and a deadline
 * then passes with nothing taken.
 */
#define EXCHANGES 50000u

struct pair {
        struct mailbox *there, *back;
};

static void *answer(void *arg)
{
        struct pair *pair = arg;
        uint64_t random = 3;
        struct mail mail;

        for (uint32_t n = 0; n < EXCHANGES; n++) {
                if (!mailbox_take(pair->there, &mail, 1, UINT64_MAX) || !is_number(&mail, n))
                        abort();
                for (uint32_t spin = next_random(&random) % 512; spin; spin--)
                        __asm__ volatile("");
                post_number(pair->back, n);
        }
        return NULL;
}

static void no_wakeup_is_lost(void **state)
{
        struct pair pair = { open_box(1, -1), open_box(1, -1) };
        uint64_t random = 8;
        pthread_t thread;
        struct mail mail;

        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, answer, &pair), 0);
        for (uint32_t n = 0; n < EXCHANGES; n++) {
                post_number(pair.there, n);
                for (uint32_t spin = next_random(&random) % 512; spin; spin--)
                        __asm__ volatile("");
                assert_int_equal(mailbox_take(pair.back, &mail, 1, sys_clock_ns() + 20ull * SECOND),
                                 1);
                assert_true(is_number(&mail, n));
        }
        pthread_join(thread, NULL);
        mailbox_free(pair.there);
        mailbox_free(pair.back);
}

/* A million, with random pauses on both sides; a count in both directions bounds the box. */
#define MAILS 1000000u
#define BOX   1024u

struct stream {
        struct mailbox *mailbox;
        uint32_t taken; /* by the taker */
        int bell;
};

static void *send_many(void *arg)
{
        struct stream *stream = arg;
        uint64_t random = 1;

        for (uint32_t n = 0; n < MAILS; n++) {
                while (n - __atomic_load_n(&stream->taken, __ATOMIC_ACQUIRE) >= BOX)
                        pause_ns(1000);
                post_number(stream->mailbox, n);
                if (next_random(&random) % 8192 == 0)
                        pause_ns(next_random(&random) % 200000);
        }
        return NULL;
}

static void take_many(struct stream *stream, bool bell)
{
        uint64_t random = 2;
        pthread_t thread;
        uint32_t n = 0;

        assert_int_equal(pthread_create(&thread, NULL, send_many, stream), 0);
        while (n < MAILS) {
                uint32_t most = 1 + next_random(&random) % 64, count;
                struct mail mails[64];
                uint64_t rings;

                if (bell) /* a blocking eventfd: sleeps until it has rung */
                        assert_int_equal(sys_read(stream->bell, &rings, sizeof(rings)), 8);
                count = mailbox_take(stream->mailbox, mails, most,
                                     bell ? 0 : sys_clock_ns() + 60ull * SECOND);
                if (!bell)
                        assert_true(count > 0);
                assert_true(count <= most);
                for (uint32_t i = 0; i < count; i++)
                        if (!is_number(&mails[i], n + i))
                                fail_msg("mail %u is not the one", n + i);
                n += count;
                __atomic_store_n(&stream->taken, n, __ATOMIC_RELEASE);
                if (next_random(&random) % 8192 == 0)
                        pause_ns(next_random(&random) % 200000);
        }
        pthread_join(thread, NULL);
}

static void a_million_mails_arrive_in_order(void **state)
{
        struct stream stream = { open_box(BOX, -1), 0, -1 };

        (void)state;
        take_many(&stream, false);
        mailbox_free(stream.mailbox);
}

static int open_bell(void)
{
        int fd = sys_eventfd(), flags = fcntl(fd, F_GETFL);

        assert_true(fd >= 0 && flags >= 0);
        assert_int_equal(fcntl(fd, F_SETFL, flags & ~O_NONBLOCK), 0);
        return fd;
}

/* It takes once for each ring, and few; mails left behind must ring again. */
static void no_eventfd_wakeup_is_lost_over_a_million_mails(void **state)
{
        int bell = open_bell();
        struct stream stream = { open_box(BOX, bell), 0, bell };

        (void)state;
        alarm(300); /* a lost ring sleeps for ever */
        take_many(&stream, true);
        alarm(0);
        mailbox_free(stream.mailbox);
        sys_close(bell);
}

static bool rang(int bell)
{
        uint64_t rings;

        return sys_read(bell, &rings, sizeof(rings)) == sizeof(rings);
}

static void rings_the_eventfd_only_if_the_taker_may_sleep(void **state)
{
        int bell = sys_eventfd();
        struct mailbox *mailbox = open_box(8, bell);
        struct mail mails[8];

        (void)state;
        post_number(mailbox, 0); /* before the taker has looked even once */
        assert_true(rang(bell));
        post_number(mailbox, 1);
        assert_false(rang(bell)); /* it was told already */
        assert_int_equal(mailbox_take(mailbox, mails, 1, 0), 1);
        assert_true(rang(bell)); /* one is left behind */
        assert_int_equal(mailbox_take(mailbox, mails, 8, 0), 1);
        assert_false(rang(bell));
        post_number(mailbox, 2);
        post_number(mailbox, 3);
        assert_true(rang(bell));
        assert_int_equal(mailbox_take(mailbox, mails, 2, 0), 2);
        assert_false(rang(bell));
        assert_int_equal(mailbox_take(mailbox, mails, 2, 0), 0);
        post_number(mailbox, 4);
        assert_true(rang(bell));
        mailbox_free(mailbox);
        sys_close(bell);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(takes_mails_in_order_up_to_the_given_count),
                cmocka_unit_test(asserts_if_a_full_mailbox_is_posted_to),
                cmocka_unit_test(a_take_returns_at_its_deadline),
                cmocka_unit_test(no_wakeup_is_lost),
                cmocka_unit_test(a_million_mails_arrive_in_order),
                cmocka_unit_test(rings_the_eventfd_only_if_the_taker_may_sleep),
                cmocka_unit_test(no_eventfd_wakeup_is_lost_over_a_million_mails),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
