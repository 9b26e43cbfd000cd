/*
 * The text worker: a worker thread for jobs that would block the loop for too long.
 *
 * Tokenizing a megabyte of prompt, or decoding it from its frame, takes long.  While the text
 * worker does it, the loop serves every peer.  Jobs are done in order.  A job belongs to the text
 * worker from MAIL_JOB to MAIL_JOB_DONE.  The exception is text_job_cancel(), which the loop may
 * call: the job then returns early, unfinished, with result -ECANCELED.  The module that posts a
 * job says which of its own members the loop may still use (edge/encode-job.h).
 */
#ifndef DAEMON_TEXT_WORKER_H
#define DAEMON_TEXT_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/ipc/mailbox.h"
#include "daemon/text/tokenizer.h"

struct text_job {
        int (*work)(struct text_job *job); /* runs on the text worker; returns the result */
        /* An enum smv_code: why the loop does not want the result any more; SMV_OK: it does. */
        atomic_uint cancelled;
        int result;
        void *owner; /* used by the loop only */

        /*
         * For text_worker_encode() and text_worker_decode(): input and output.  Encoding mallocs
         * `ids`, decoding mallocs `joined`.
         */
        const struct tokenizer *tokenizer;
        const char *text;
        size_t text_bytes;
        uint32_t first_id;                /* put before the text's ids, unless UINT32_MAX */
        const struct text_part *controls; /* the parts of the text that may have control tokens */
        size_t control_count;
        uint32_t *ids;
        size_t id_count;
        char *joined;
        size_t joined_bytes;
};

/* The reason of text_job_cancel(), or SMV_OK. */
static inline enum smv_code text_job_cancel_reason(const struct text_job *job)
{
        /* Relaxed is enough: the mails order everything else in the job. */
        return atomic_load_explicit(&job->cancelled, memory_order_relaxed);
}

/* `work` asks this often. */
static inline bool text_job_is_cancelled(const struct text_job *job)
{
        return text_job_cancel_reason(job) != SMV_OK;
}

/*
 * The loop may call this at any time, also while the text worker has the job; the first reason
 * stays.
 */
static inline void text_job_cancel(struct text_job *job, enum smv_code reason)
{
        if (!text_job_is_cancelled(job))
                atomic_store_explicit(&job->cancelled, reason, memory_order_relaxed);
}

/* Values for `work`: from text to ids, and from ids to the text of their pieces joined. */
int text_worker_encode(struct text_job *job);
int text_worker_decode(struct text_job *job);

struct text_worker;

int text_worker_start(struct mailbox *inbox, struct mailbox *outbox,
                      struct text_worker **ret_worker);
/* Waits for the thread to end; MAIL_STOP must have been posted to its inbox.  Takes NULL. */
struct text_worker *text_worker_join(struct text_worker *worker);

#endif
