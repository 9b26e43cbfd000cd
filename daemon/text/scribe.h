/*
 * The scribe: a worker thread for jobs that would block the loop for too long.
 *
 * Tokenizing a megabyte of prompt, or decoding it from its frame, takes long.  While the scribe
 * does it, the loop serves every peer.  Jobs are done in order.  A job belongs to the scribe from
 * MAIL_JOB to MAIL_JOB_DONE.  The exception is `cancelled`, which the loop may set: the job then
 * returns early, unfinished, with result -ECANCELED.
 */
#ifndef DAEMON_TEXT_SCRIBE_H
#define DAEMON_TEXT_SCRIBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/mailbox.h"
#include "daemon/text/tokenizer.h"

struct scribe_job {
        int (*work)(struct scribe_job *job); /* runs on the scribe; returns the result */
        atomic_bool cancelled;               /* the loop may set it at any time; `work` checks it */
        int result;
        void *owner; /* used by the loop only */

        /*
         * For scribe_encode() and scribe_decode(): input and output.  Encoding mallocs `ids`,
         * decoding mallocs `joined`.
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

static inline bool scribe_is_cancelled(struct scribe_job *job)
{
        /* Relaxed is enough: the mails order everything else in the job. */
        return atomic_load_explicit(&job->cancelled, memory_order_relaxed);
}

/* Values for `work`: from text to ids, and from ids to the text of their pieces joined. */
int scribe_encode(struct scribe_job *job);
int scribe_decode(struct scribe_job *job);

struct scribe;

int scribe_start(struct mailbox *inbox, struct mailbox *outbox, struct scribe **ret_scribe);
/* Waits for the thread to end; MAIL_STOP must have been posted to its inbox.  Takes NULL. */
struct scribe *scribe_join(struct scribe *scribe);

#endif
