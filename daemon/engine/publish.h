/*
 * Publish: writes tokens and ENDs into rings.
 *
 * Each request has a stream, indexed by the request's number: the detok, and the sequence number of
 * its next record.  Ring space was reserved before a row was computed, so a ring without space for
 * TOKENS here is a bug.  Each ring keeps space for the ENDs of its requests, up to half of the
 * ring.  An END has to wait for its reader only in two cases: more requests share a ring than this
 * half is enough for, or a client submits more without having read what ended.
 *
 * Nothing more is written to a channel that is shut.  Nothing is visible and no reader is woken
 * before publish_flush().  Engine thread only.
 */
#ifndef DAEMON_ENGINE_PUBLISH_H
#define DAEMON_ENGINE_PUBLISH_H

#include "daemon/ipc/channel.h"
#include "daemon/core/sched.h"
#include "daemon/ipc/mailbox.h"
#include "kernels/kernels.h"

struct dialect;
struct publish;
struct waker;

enum publish_outcome { PUBLISH_E_LATER = 1 };

struct publish_conf {
        uint32_t requests_max;
        uint32_t channels;
        size_t piece_max;              /* the longest piece of all tokenizers served */
        const struct dialect *dialect; /* NULL: no request asks for parts */
        struct mailbox *waker;
        struct waker *wake_inline; /* NULL: every WAKE is posted */
};

int publish_new(const struct publish_conf *conf, struct publish **ret_publish);
struct publish *publish_free(struct publish *publish);

/* For admission: the most ring bytes that a token may take, and that an end may take. */
size_t publish_record_bytes_max(size_t piece_max, size_t stop_bytes_max, uint32_t logprobs);
size_t publish_end_bytes_max(size_t stop_bytes_max);
/* ... and that a token of the prompt may take, with so many logprobs. */
size_t publish_score_bytes_max(uint32_t logprobs);
/* How much more a token may take if it has a ROW with so many entries, or an ASK. */
size_t publish_row_bytes_max(uint32_t entries);
size_t publish_ask_bytes_max(void);
/*
 * How much more either may take if the text is divided into parts.  *ret_held: of these, the bytes
 * of text that was held back before, which comes only once.
 */
size_t publish_parts_bytes_max(const struct dialect *dialect, size_t stop_bytes_max,
                               size_t *ret_held);

/* Starts the stream of a request that was submitted.  control_text: as for detok_begin(). */
void publish_begin(struct publish *publish, const struct request *request, bool control_text);

/*
 * The same for a fork, which shows control tokens if its parent does.  It also shows the text that
 * its parent holds back at this point.  So the parent's shown text followed by the fork's text is
 * the text of one stream.
 */
void publish_fork(struct publish *publish, const struct request *request,
                  const struct request *parent);

/*
 * For SCHED_SPACE: bytes that TOKENS may take in the ring now.  -EPROTO: the reader's head is
 * invalid.
 */
int publish_free_bytes(struct channel *channel, uint64_t *ret_bytes);

/*
 * Writes one token, with as many logprobs as the request wants.  Returns the verdict, changed to
 * STOP if the token's text completed a stop string.  Writes nothing for a request that only reads
 * (max_tokens 0).
 */
enum sched_verdict publish_token(struct publish *publish, const struct request *request,
                                 uint32_t token, const struct logprob *logprobs, uint32_t position,
                                 enum sched_verdict verdict);

/*
 * Writes the ROW of the token at `position`: as many entries as the request wants, the first of
 * the token that was drawn.
 */
void publish_row(struct publish *publish, const struct request *request,
                 const struct logprob *entries, float log_sum, uint32_t position);
/* Writes the ASK for the mask or the token of `position`. */
void publish_ask(struct publish *publish, const struct request *request, uint32_t position);

/* Writes the logprobs of the token of the prompt at `position`, as many as the request wants. */
void publish_score(struct publish *publish, const struct request *request,
                   const struct logprob *logprobs, uint32_t position);

/*
 * Writes how much of the prompt is read, if that is more than was written before, and if the ring
 * has space besides: rows in flight may still write `pending_bytes`, and a quarter of the ring must
 * stay free.  So what is paid for always fits, and no stream waits for its reader because of this.
 */
void publish_progress(struct publish *publish, const struct request *request, uint32_t prefilled,
                      uint64_t pending_bytes);

/*
 * Writes the text still held back, and END.  Rows in flight may still write `pending_bytes`.  If
 * there is no space for all of these, it writes nothing and returns PUBLISH_E_LATER.
 */
int publish_end(struct publish *publish, const struct request *request, enum smv_reason reason,
                enum smv_code code, uint64_t pending_bytes);

/* Makes the waker call the loop, because the loop has mail about this channel. */
void publish_call_loop(struct publish *publish, struct channel *channel);

/*
 * Makes all records visible, then wakes every reader that may sleep.  The waker does this; for a
 * single channel the engine may do it itself.
 */
void publish_flush(struct publish *publish);

#endif
