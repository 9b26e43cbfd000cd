/*
 * A job is done in slices.  `cancelled` is checked before each slice, so that no more work is done
 * for a peer that hung up.  A tokenizer that needs the whole text gets it in one slice, and checks
 * `cancelled` itself.
 */
#include "daemon/text/worker.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"

#define SLICE_BYTES (64u << 10)
#define SLICE_IDS   (16u << 10)
#define MAILS       16u

struct text_worker {
        struct mailbox *inbox, *outbox;
        pthread_t thread;
};

static bool job_cancelled(void *job)
{
        return text_job_is_cancelled(job);
}

/* Allocates even if count is 0, because NULL would mean an error. */
static void *reserve(size_t count, size_t bytes)
{
        return reallocarray(NULL, count ? count : 1, bytes);
}

static int encode_slices(struct text_job *job, uint32_t *ids, size_t *ret_count)
{
        const struct tokenizer *tokenizer = job->tokenizer;
        size_t slice = tokenizer_divisible(tokenizer) ? SLICE_BYTES : job->text_bytes;
        struct encoding how = {
                .controls = job->controls,
                .control_count = job->control_count,
                .cancelled = job_cancelled,
                .arg = job,
        };

        for (size_t at = 0; at < job->text_bytes; at += slice) {
                size_t left = job->text_bytes - at, count = 0;
                int r;

                if (text_job_is_cancelled(job))
                        return -ECANCELED;
                r = tokenizer_encode(tokenizer, job->text + at, left < slice ? left : slice, &how,
                                     ids + *ret_count, &count);
                if (r)
                        return error_pass(r);
                *ret_count += count;
        }
        return 0;
}

int text_worker_encode(struct text_job *job)
{
        size_t ids_max = tokenizer_ids_max(job->tokenizer, job->text_bytes), count = 0;
        uint32_t *ids;
        int r;

        if (text_job_is_cancelled(job))
                return -ECANCELED;
        ids = reserve(ids_max + 1, sizeof(*ids));
        if (!ids)
                return error_raise(-ENOMEM);
        if (job->first_id != UINT32_MAX)
                ids[count++] = job->first_id;
        r = encode_slices(job, ids, &count);
        if (r) {
                free(ids);
                return error_pass(r);
        }
        assert(count <= ids_max + 1);
        job->ids = ids;
        job->id_count = count;
        return 0;
}

/* Counts the bytes of the pieces, and writes them to `text` unless it is NULL. */
static int join_pieces(struct text_job *job, char *text, size_t *ret_bytes)
{
        bool lead = tokenizer_adds_blank(job->tokenizer);
        size_t bytes = 0;

        for (size_t i = 0; i < job->id_count; i++) {
                const char *piece;
                size_t n;

                if (i % SLICE_IDS == 0 && text_job_is_cancelled(job))
                        return -ECANCELED;
                piece = tokenizer_piece(job->tokenizer, job->ids[i], &n);
                if (lead && n && *piece == ' ') {
                        piece++;
                        n--;
                        lead = false;
                } else if (n) {
                        lead = false; /* ids without text may come before the blank */
                }
                if (text)
                        memcpy(text + bytes, piece, n);
                bytes += n;
        }
        *ret_bytes = bytes;
        return 0;
}

int text_worker_decode(struct text_job *job)
{
        size_t bytes;
        char *text;
        int r;

        if (text_job_is_cancelled(job))
                return -ECANCELED;
        r = join_pieces(job, NULL, &bytes);
        if (r)
                return r;
        text = reserve(bytes, 1);
        if (!text)
                return error_raise(-ENOMEM);
        r = join_pieces(job, text, &bytes);
        if (r) {
                free(text);
                return r;
        }
        job->joined = text;
        job->joined_bytes = bytes;
        return 0;
}

static void *text_worker_main(void *arg)
{
        struct text_worker *worker = arg;
        struct mail mails[MAILS];

        for (;;) {
                uint32_t count = mailbox_take(worker->inbox, mails, MAILS, UINT64_MAX);

                for (uint32_t i = 0; i < count; i++) {
                        struct text_job *job = mails[i].what;

                        if (mails[i].kind == MAIL_STOP)
                                return NULL;
                        assert(mails[i].kind == MAIL_JOB);
                        job->result = job->work(job);
                        mailbox_post(worker->outbox,
                                     &(struct mail){ .kind = MAIL_JOB_DONE, .what = job });
                }
        }
}

int text_worker_start(struct mailbox *inbox, struct mailbox *outbox,
                      struct text_worker **ret_worker)
{
        struct text_worker *worker = malloc(sizeof(*worker));
        int r;

        if (!worker)
                return error_raise(-ENOMEM);
        worker->inbox = inbox;
        worker->outbox = outbox;
        r = sys_thread(&worker->thread, "text-worker", text_worker_main, worker);
        if (r < 0) {
                free(worker);
                return error_raise(r);
        }
        *ret_worker = worker;
        return 0;
}

struct text_worker *text_worker_join(struct text_worker *worker)
{
        if (worker)
                pthread_join(worker->thread, NULL);
        free(worker);
        return NULL;
}
