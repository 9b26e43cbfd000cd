/*
 * Work: what the scribe does for a peer's tasks.
 *
 * It runs on the scribe's thread, which owns the task for that time.  It touches the task and what
 * is read-only (a tokenizer, the config), never the peer.  Its outcome is the job's result.  Whole
 * reply frames are written here, so that the loop only sends them.  Memory that the reply does not
 * need is freed here, too: for 32 MiB of ids the kernel takes milliseconds.
 */
#ifndef DAEMON_EDGE_WORK_H
#define DAEMON_EDGE_WORK_H

#include "daemon/text/scribe.h"

enum work_outcome {
        /* 1 and 2 are those of wire_decode() */
        WORK_E_BAD_ID = 3, /* `bad_id` is at index `at` */
        WORK_E_LONG = 4,   /* the reply would have `answer_bytes` */
};

/* Decodes a task's frame: 0 and `asked`, WIRE_E_REFUSED and `problem`, or -ENOMEM. */
int work_read(struct scribe_job *job);

/*
 * Makes a prompt's ids; if there are too many for any context, it only counts them.  0, -ENOMEM,
 * -ECANCELED.
 */
int work_prompt(struct scribe_job *job);

/*
 * Renders messages to text.  The text becomes the job's, with the parts that the template wrote: 0,
 * WIRE_E_REFUSED and `problem`, -ENOMEM, -ECANCELED.
 */
int work_render(struct scribe_job *job);

/* Text to ids, ids to text, and the reply with them: 0, an outcome above, -ENOMEM, -ECANCELED. */
int work_tokenize(struct scribe_job *job);
int work_detokenize(struct scribe_job *job);
/*
 * Makes the reply with the rendered text, and its ids if they are wanted.  Returns as
 * work_tokenize().
 */
int work_template(struct scribe_job *job);

/* Only frees a reply that was made for a peer that is gone. */
int work_clear(struct scribe_job *job);

#endif
