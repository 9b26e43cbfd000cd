/*
 * Publish: tokens and ENDs into rings.
 *
 * For every request a stream, by its number: the detok and the sequence number
 * of its next record.  Room was reserved before the row was computed, so a ring
 * that is full of TOKENS here is a bug.  Of every ring so much is left to the ENDs
 * of its requests, up to half of it; only where more requests share a ring than
 * that is enough for, or a client asks for more without having read what ended,
 * must an END wait until it is read.
 * A channel that is shut takes nothing more.
 * Nothing is visible, and nobody is woken, before publish_flush().
 * Engine thread only.
 */
#ifndef DAEMON_ENGINE_PUBLISH_H
#define DAEMON_ENGINE_PUBLISH_H

#include "daemon/channel.h"
#include "daemon/core/sched.h"
#include "daemon/mailbox.h"
#include "kernels/kernels.h"

struct publish;
struct waker;

enum publish_outcome { PUBLISH_E_LATER = 1 };

struct publish_conf {
        uint32_t requests_max;
        uint32_t channels;
        size_t piece_max; /* of the longest piece of any tokenizer served */
        struct mailbox *waker;
        struct waker *stand_in; /* NULL: every WAKE is posted */
};

int publish_new(const struct publish_conf *conf, struct publish **ret_publish);
struct publish *publish_free(struct publish *publish);

/* For admission: what a token may take in the ring, and what an end may. */
size_t publish_record_bytes_max(size_t piece_max, size_t stop_bytes_max, uint32_t logprobs);
size_t publish_end_bytes_max(size_t stop_bytes_max);

/* A request was submitted: its stream begins. */
void publish_begin(struct publish *publish, const struct request *request);

/*
 * The same of a fork: what its parent has not shown yet of its text is the fork's to show, too; so
 * the parent's text up to here and the fork's are those of one stream.
 */
void publish_fork(struct publish *publish, const struct request *request,
                  const struct request *parent);

/* For SCHED_ROOM: what TOKENS may take of its ring now.  -EPROTO: its reader lies. */
int publish_room(struct channel *channel, uint64_t *ret_bytes);

/* One token, with as many logprobs as the request wants; the verdict comes back as STOP if its
 * text completed a stop string.  Of one who only reads nothing is written. */
enum sched_verdict publish_token(struct publish *publish, const struct request *request,
                                 uint32_t token, const struct logprob *logprobs, uint32_t position,
                                 enum sched_verdict verdict);

/*
 * What is still held back, and END; or PUBLISH_E_LATER, with nothing written, when there
 * is no room for both beside `owed`, what rows in flight may still write.
 */
int publish_end(struct publish *publish, const struct request *request, enum smv_reason reason,
                enum smv_code code, uint64_t owed);

/* There is mail for the loop about this channel: the waker has to call it. */
void publish_call(struct publish *publish, struct channel *channel);

/* Makes all of it visible, then has every reader woken who may sleep: by the waker or, a single
 * one, in its stead. */
void publish_flush(struct publish *publish);

#endif
