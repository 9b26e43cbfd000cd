/*
 * The scribe: a thread for work on text that would freeze the loop.
 *
 * A megabyte of prompt takes long to tokenise; while the scribe does it, every
 * peer is served.  Jobs are done in order.  A job belongs to the scribe from
 * MAIL_JOB to MAIL_JOB_DONE, but for `cancelled`, which the loop may set: the
 * job then returns early, unfinished, with result -ECANCELED.
 */
#ifndef DAEMON_TEXT_SCRIBE_H
#define DAEMON_TEXT_SCRIBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/mailbox.h"
#include "daemon/text/tokenizer.h"

enum scribe_work { SCRIBE_ENCODE, SCRIBE_DECODE };

struct scribe_job {
        enum scribe_work work;
        const struct tokenizer *tokenizer;
        atomic_bool cancelled; /* set by the loop at any time, read by the scribe */
        /* ENCODE: text in, ids out; DECODE: ids in, text out.  The scribe mallocs what is out. */
        char *text;
        size_t text_bytes;
        uint32_t *ids;
        size_t id_count;
        uint32_t first_id; /* ENCODE: put before the rest, unless UINT32_MAX */
        int result;
        void *owner; /* the loop's own */
};

struct scribe;

int scribe_start(struct mailbox *inbox, struct mailbox *outbox, struct scribe **ret_scribe);
/* After MAIL_STOP was posted to its inbox: waits for the thread.  Takes NULL. */
struct scribe *scribe_join(struct scribe *scribe);

#endif
