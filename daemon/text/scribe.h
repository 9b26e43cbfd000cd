/*
 * The scribe: a thread for work that would freeze the loop.
 *
 * A megabyte of prompt takes long to tokenise, and to read out of its frame; while
 * the scribe does it, every peer is served.  Jobs are done in order.  A job belongs
 * to the scribe from MAIL_JOB to MAIL_JOB_DONE, but for `cancelled`, which the loop
 * may set: the job then returns early, unfinished, with result -ECANCELED.
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
        int (*work)(struct scribe_job *job); /* on the scribe; returns the result */
        atomic_bool cancelled; /* set by the loop at any time, looked at by the work */
        int result;
        void *owner; /* the loop's own */

        /* Of work on text: what it is given, or mallocs and gives. */
        const struct tokenizer *tokenizer;
        const char *text;
        size_t text_bytes;
        uint32_t first_id;                /* put before the text's ids, unless UINT32_MAX */
        const struct text_part *controls; /* where control tokens are found in the text */
        size_t control_count;
        uint32_t *ids;
        size_t id_count;
        char *joined;
        size_t joined_bytes;
};

static inline bool scribe_is_cancelled(struct scribe_job *job)
{
        return atomic_load_explicit(&job->cancelled, memory_order_relaxed); /* the mails order */
}

/* Work on text: from text to ids, and from ids to what they are joined. */
int scribe_encode(struct scribe_job *job);
int scribe_decode(struct scribe_job *job);

struct scribe;

int scribe_start(struct mailbox *inbox, struct mailbox *outbox, struct scribe **ret_scribe);
/* After MAIL_STOP was posted to its inbox: waits for the thread.  Takes NULL. */
struct scribe *scribe_join(struct scribe *scribe);

#endif
