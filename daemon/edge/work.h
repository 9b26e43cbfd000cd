/*
 * Work: what the scribe does for a peer's tasks.
 *
 * Runs on the scribe's thread, while the task is nobody else's: it touches the task
 * and what is read-only (a tokenizer, the config), never the peer.  What it finds is
 * the job's result; answers are written here, whole frames, so that the loop only
 * sends them.  Memory that the answer does not need is freed here, too: for 32 MiB of
 * ids the kernel takes milliseconds.
 */
#ifndef DAEMON_EDGE_WORK_H
#define DAEMON_EDGE_WORK_H

#include "daemon/text/scribe.h"

enum work_outcome {
        /* 1 and 2 are wire_decode()'s */
        WORK_E_BAD_ID = 3, /* `bad_id` stands at `at` */
        WORK_E_LONG = 4,   /* the answer would have `answer_bytes` */
};

/* Of a task's frame, a request: 0 and `asked`, WIRE_E_REFUSED and `problem`, or -ENOMEM. */
int work_read(struct scribe_job *job);

/* A prompt's ids; if no context could hold them, their count alone.  0, -ENOMEM, -ECANCELED. */
int work_prompt(struct scribe_job *job);

/*
 * Messages to text, which then is the job's, with the parts that the template wrote: 0,
 * WIRE_E_REFUSED and `problem`, -ENOMEM, -ECANCELED.
 */
int work_render(struct scribe_job *job);

/* Text to ids, ids to text, and the reply: 0, an outcome above, -ENOMEM, -ECANCELED. */
int work_tokenize(struct scribe_job *job);
int work_detokenize(struct scribe_job *job);
/* What messages were rendered to, and its ids, if they are wanted: the reply; the same. */
int work_template(struct scribe_job *job);

/* Nothing but to free a reply that was made for somebody who is gone. */
int work_clear(struct scribe_job *job);

#endif
