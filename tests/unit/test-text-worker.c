/*
 * The text worker, with the test's own tokenizer, which counts its calls and can cancel the job
 * that it works for.  daemon/text/tokenizer.c must not be linked.
 */
#include "daemon/text/worker.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sys.h"

/* Under a sanitizer, too, an allocation too large returns NULL, as malloc does. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
        return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
        return "allocator_may_return_null=1";
}

/* The text worker's thread writes it between JOB and JOB_DONE. */
struct tokenizer {
        bool divisible, greedy, leads;
        bool poor; /* encoding has no memory */
        const struct text_part *saw_controls;
        size_t saw_control_count;
        struct text_job *victim; /* cancelled at the n-th call */
        uint32_t cancel_at;
        uint32_t encodes, pieces;
        size_t most_bytes; /* of one call */
};

bool tokenizer_divisible(const struct tokenizer *tokenizer)
{
        return tokenizer->divisible;
}

bool tokenizer_adds_blank(const struct tokenizer *tokenizer)
{
        return tokenizer->leads;
}

size_t tokenizer_ids_max(const struct tokenizer *tokenizer, size_t text_bytes)
{
        /* more memory than any machine has */
        return tokenizer->greedy ? SIZE_MAX / 64 : text_bytes;
}

static void one_call(struct tokenizer *tokenizer, uint32_t number)
{
        if (tokenizer->victim && number == tokenizer->cancel_at)
                atomic_store(&tokenizer->victim->cancelled, true);
}

int tokenizer_encode(const struct tokenizer *const_tokenizer, const char *text, size_t text_bytes,
                     struct encoding *how, uint32_t *ret_ids, size_t *ret_count)
{
        struct tokenizer *tokenizer = (struct tokenizer *)const_tokenizer;

        if (tokenizer->poor)
                return -ENOMEM;
        tokenizer->saw_controls = how->controls;
        tokenizer->saw_control_count = how->control_count;
        one_call(tokenizer, ++tokenizer->encodes);
        if (text_bytes > tokenizer->most_bytes)
                tokenizer->most_bytes = text_bytes;
        for (size_t i = 0; i < text_bytes; i++)
                ret_ids[i] = 1000u + (uint8_t)text[i];
        *ret_count = text_bytes;
        return how->cancelled(how->arg) ? -ECANCELED : 0;
}

/* Id i is i % 4 times the same letter; but that of 3 is " aa". */
const char *tokenizer_piece(const struct tokenizer *const_tokenizer, uint32_t id, size_t *ret_bytes)
{
        struct tokenizer *tokenizer = (struct tokenizer *)const_tokenizer;

        one_call(tokenizer, ++tokenizer->pieces);
        *ret_bytes = id % 4;
        return id == 3 ? " aa" : &"aaabbbcccddd"[id / 4 % 4 * 3];
}

struct world {
        struct mailbox *inbox, *outbox;
        struct text_worker *text_worker;
        struct tokenizer tokenizer;
};

static void open_world(struct world *w)
{
        *w = (struct world){ .tokenizer = { .divisible = true } };
        assert_int_equal(mailbox_new(16, -1, &w->inbox), 0);
        assert_int_equal(mailbox_new(16, -1, &w->outbox), 0);
        assert_int_equal(text_worker_start(w->inbox, w->outbox, &w->text_worker), 0);
}

static void close_world(struct world *w)
{
        mailbox_post(w->inbox, &(struct mail){ .kind = MAIL_STOP });
        assert_null(text_worker_join(w->text_worker));
        mailbox_free(w->inbox);
        mailbox_free(w->outbox);
}

static void post(struct world *w, struct text_job *job)
{
        job->result = 12345;
        mailbox_post(w->inbox, &(struct mail){ .kind = MAIL_JOB, .what = job });
}

static void expect_done(struct world *w, struct text_job *job, int result)
{
        struct mail mail;

        assert_int_equal(mailbox_take(w->outbox, &mail, 1, sys_clock_ns() + 60000000000u), 1);
        assert_int_equal(mail.kind, MAIL_JOB_DONE);
        assert_ptr_equal(mail.what, job);
        assert_int_equal(job->result, result);
}

static struct text_job encode_job(struct world *w, char *text, size_t bytes, uint32_t first_id)
{
        return (struct text_job){ .work = text_worker_encode,
                                  .tokenizer = &w->tokenizer,
                                  .text = text,
                                  .text_bytes = bytes,
                                  .first_id = first_id };
}

static void does_jobs_in_order(void **state)
{
        char text[] = "xyz";
        struct text_job jobs[4];
        struct world w;

        (void)state;
        open_world(&w);
        jobs[0] = encode_job(&w, text, 3, UINT32_MAX);
        jobs[1] = encode_job(&w, text, 2, 7);
        jobs[2] = encode_job(&w, NULL, 0, UINT32_MAX);
        jobs[3] = encode_job(&w, NULL, 0, 0);
        for (int i = 0; i < 4; i++)
                post(&w, &jobs[i]);
        for (int i = 0; i < 4; i++)
                expect_done(&w, &jobs[i], 0);

        assert_int_equal(jobs[0].id_count, 3);
        assert_int_equal(jobs[0].ids[0], 1000 + 'x');
        assert_int_equal(jobs[0].ids[2], 1000 + 'z');
        assert_int_equal(jobs[1].id_count, 3);
        assert_int_equal(jobs[1].ids[0], 7);
        assert_int_equal(jobs[1].ids[1], 1000 + 'x');
        assert_int_equal(jobs[2].id_count, 0);
        assert_non_null(jobs[2].ids);
        assert_int_equal(jobs[3].id_count, 1);
        assert_int_equal(jobs[3].ids[0], 0);
        for (int i = 0; i < 4; i++)
                free(jobs[i].ids);
        close_world(&w);
}

static void decodes_ids_to_text(void **state)
{
        uint32_t ids[] = { 1, 0, 7, 4, 14 };
        struct text_job job, empty;
        struct world w;

        (void)state;
        open_world(&w);
        job = (struct text_job){
                .work = text_worker_decode, .tokenizer = &w.tokenizer, .ids = ids, .id_count = 5
        };
        empty = job;
        empty.id_count = 0;
        post(&w, &job);
        post(&w, &empty);
        expect_done(&w, &job, 0);
        expect_done(&w, &empty, 0);
        assert_int_equal(job.joined_bytes, 6);
        assert_memory_equal(job.joined, "abbbdd", 6);
        assert_int_equal(empty.joined_bytes, 0);
        assert_non_null(empty.joined);
        free(job.joined);
        free(empty.joined);
        close_world(&w);
}

static void removes_the_leading_blank_only_from_a_whole_text(void **state)
{
        uint32_t ids[] = { 3, 3, 4 };
        struct world w;

        (void)state;
        open_world(&w);
        for (int leads = 0; leads < 2; leads++)
                for (uint32_t first = 0; first < 3; first += 2) {
                        struct text_job job = { .work = text_worker_decode,
                                                .tokenizer = &w.tokenizer,
                                                .ids = ids + first,
                                                .id_count = 3 - first };
                        const char *wanted = first ? "" : leads ? "aa aa" : " aa aa";

                        w.tokenizer.leads = leads;
                        post(&w, &job);
                        expect_done(&w, &job, 0);
                        assert_int_equal(job.joined_bytes, strlen(wanted));
                        assert_memory_equal(job.joined, wanted, job.joined_bytes);
                        free(job.joined);
                }
        close_world(&w);
}

static void looks_for_control_tokens_only_where_the_job_says(void **state)
{
        char text[] = "abc";
        struct world w;

        (void)state;
        open_world(&w);
        for (size_t controls = 0; controls < 2; controls++) {
                struct text_job job = encode_job(&w, text, 3, UINT32_MAX);

                job.controls = &text_whole;
                job.control_count = controls;
                post(&w, &job);
                expect_done(&w, &job, 0);
                assert_ptr_equal(w.tokenizer.saw_controls, &text_whole);
                assert_int_equal(w.tokenizer.saw_control_count, controls);
                free(job.ids);
        }
        close_world(&w);
}

static void splits_a_long_text_and_joins_the_ids(void **state)
{
        const size_t bytes = (1u << 20) + 17;
        char *text = malloc(bytes);
        struct text_job job;
        struct world w;

        (void)state;
        assert_non_null(text);
        for (size_t i = 0; i < bytes; i++)
                text[i] = (char)(i * 31 + i / 1000);
        open_world(&w);
        for (int divisible = 0; divisible < 2; divisible++) {
                w.tokenizer = (struct tokenizer){ .divisible = divisible };
                job = encode_job(&w, text, bytes, UINT32_MAX);
                post(&w, &job);
                expect_done(&w, &job, 0);
                assert_int_equal(job.id_count, bytes);
                for (size_t i = 0; i < bytes; i++)
                        if (job.ids[i] != 1000u + (uint8_t)text[i])
                                fail_msg("id %zu", i);
                free(job.ids);
                if (divisible) {
                        assert_true(w.tokenizer.encodes > 8);
                        assert_true(w.tokenizer.most_bytes < bytes / 8);
                } else {
                        assert_int_equal(w.tokenizer.encodes, 1);
                }
        }
        close_world(&w);
        free(text);
}

static void a_cancelled_job_returns_early(void **state)
{
        const size_t bytes = 4u << 20;
        uint32_t *ids = calloc(bytes, sizeof(*ids));
        char *text = calloc(bytes, 1);
        struct text_job job;
        struct world w;

        (void)state;
        assert_non_null(text);
        assert_non_null(ids);
        open_world(&w);

        job = encode_job(&w, text, bytes, UINT32_MAX);
        atomic_store(&job.cancelled, true); /* before it was begun */
        post(&w, &job);
        expect_done(&w, &job, -ECANCELED);
        assert_int_equal(w.tokenizer.encodes, 0);
        assert_null(job.ids);

        job = encode_job(&w, text, bytes, 1); /* in the middle */
        w.tokenizer.victim = &job;
        w.tokenizer.cancel_at = 3;
        post(&w, &job);
        expect_done(&w, &job, -ECANCELED);
        assert_int_equal(w.tokenizer.encodes, 3);
        assert_null(job.ids);

        for (uint32_t at = 100; at <= bytes + 100; at += (uint32_t)bytes) {
                job = (struct text_job){ .work = text_worker_decode,
                                         .tokenizer = &w.tokenizer,
                                         .ids = ids,
                                         .id_count = bytes };
                w.tokenizer.pieces = 0;
                w.tokenizer.cancel_at = at; /* while it counts, while it writes */
                post(&w, &job);
                expect_done(&w, &job, -ECANCELED);
                assert_in_range(w.tokenizer.pieces, at, at + (64u << 10));
                assert_null(job.joined);
        }
        close_world(&w);
        free(text);
        free(ids);
}

static void out_of_memory_fails_only_the_job(void **state)
{
        char text[] = "abc";
        struct text_job job;
        struct world w;

        (void)state;
        open_world(&w);
        w.tokenizer.greedy = true;
        job = encode_job(&w, text, 3, UINT32_MAX);
        post(&w, &job);
        expect_done(&w, &job, -ENOMEM);
        assert_null(job.ids);
        w.tokenizer.greedy = false;
        w.tokenizer.poor = true;
        post(&w, &job);
        expect_done(&w, &job, -ENOMEM);
        assert_null(job.ids);
        w.tokenizer.poor = false;
        post(&w, &job);
        expect_done(&w, &job, 0);
        free(job.ids);
        close_world(&w);
}

static int no_thread(const char *call, void *arg)
{
        (void)arg;
        return strcmp(call, "thread") ? 0 : -EAGAIN;
}

static void reports_a_thread_that_cannot_start(void **state)
{
        struct text_worker *text_worker = NULL;

        (void)state;
        sys_set_fault(no_thread, NULL);
        assert_int_equal(text_worker_start(NULL, NULL, &text_worker), -EAGAIN);
        sys_set_fault(NULL, NULL);
        assert_null(text_worker);
        assert_null(text_worker_join(NULL));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(does_jobs_in_order),
                cmocka_unit_test(decodes_ids_to_text),
                cmocka_unit_test(removes_the_leading_blank_only_from_a_whole_text),
                cmocka_unit_test(looks_for_control_tokens_only_where_the_job_says),
                cmocka_unit_test(splits_a_long_text_and_joins_the_ids),
                cmocka_unit_test(a_cancelled_job_returns_early),
                cmocka_unit_test(out_of_memory_fails_only_the_job),
                cmocka_unit_test(reports_a_thread_that_cannot_start),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
