/*
 * Encode work: what the text worker's thread does for an encode job.
 *
 * The text worker owns the job for that time.  The work touches the job and what is read-only (a
 * tokenizer, the config), never the peer.  Its outcome is the job's result.  Whole reply frames are
 * written here, so that the loop only sends them.  Memory that the reply does not need is freed
 * here, too: for 32 MiB of ids the kernel takes milliseconds.
 */
#ifndef DAEMON_EDGE_ENCODE_WORK_H
#define DAEMON_EDGE_ENCODE_WORK_H

#include "daemon/text/worker.h"

/* Decodes the job's frame: 0 and `asked`, WIRE_E_REFUSED and `problem`, or -ENOMEM. */
int work_decode(struct text_job *job);

/*
 * Makes a prompt's ids; if there are too many for any context, it only counts them.  0, -ENOMEM,
 * -ECANCELED.
 */
int work_prompt(struct text_job *job);

/*
 * Makes the wish of a request with tools and without messages: 0, WIRE_E_REFUSED and `problem`,
 * -ENOMEM, -ECANCELED.
 */
int work_wish(struct text_job *job);

/*
 * Compiles the job's form to its grammar: 0, WIRE_E_REFUSED and `problem`, -ENOMEM,
 * -ECANCELED.
 */
int work_constrain(struct text_job *job);

/*
 * Renders messages to text.  The text becomes the job's, with the parts that the template wrote: 0,
 * WIRE_E_REFUSED and `problem`, -ENOMEM, -ECANCELED.
 */
int work_render(struct text_job *job);

/*
 * Text to ids, ids to text, and the reply with them: 0, an encode_work_outcome, -ENOMEM,
 * -ECANCELED.
 */
int work_tokenize(struct text_job *job);
int work_detokenize(struct text_job *job);
/*
 * Makes the reply with the spelling and the kind of each id: of the job's ids, or else of `from`
 * and the next ones, as many as a frame has room for.  Returns as work_tokenize().
 */
int work_pieces(struct text_job *job);
/* No reply about so many ids is longer. */
size_t work_pieces_bytes_max(const struct tokenizer *tokenizer, size_t count);
/*
 * Makes the reply with the rendered text, and its ids if they are wanted.  Returns as
 * work_tokenize().
 */
int work_template(struct text_job *job);

#endif
