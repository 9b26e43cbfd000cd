/*
 * Admission: turns what a client asked into a stream that may run, or refuses it.
 *
 * It has two halves, because between them the text worker may count the tokens of the prompt.
 * admission_ask() checks what is known at once and charges the uid.  admission_finish() has the ids
 * and checks them against the context and the pool.  A request that can never fit is refused here
 * with both numbers; any other waits in the scheduler.  admission_forget() takes all charges back,
 * exactly once, however the stream ended.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_ADMISSION_H
#define DAEMON_EDGE_ADMISSION_H

#include "daemon/edge/stream.h"
#include "daemon/edge/wire-request.h"

int admission_new(const struct admission_conf *conf, struct quota *quota,
                  struct admission **ret_admission);
struct admission *admission_free(struct admission *admission);
/* From now on, for requests that give no max_tokens. */
void admission_reload(struct admission *admission, uint32_t max_tokens);

/*
 * Checks what is known at once of a generate, an open or an append: the model has the ids, and
 * there is something to begin with.  0 or WIRE_E_REFUSED.
 */
int admission_check(const struct admission *admission, const struct served *served,
                    const struct wire_request *asked, struct wire_problem *ret_problem);

/*
 * Makes a stream with everything but its tokens, and charges it to uid.  It has copies of what the
 * frame held.  If the frame had ids, they are charged.  If it had text, a copy of the text and the
 * ids that it may have are charged; the caller makes the copy, for the text worker.  If it had
 * messages, a copy of them is charged.  0; or WIRE_E_REFUSED or -ENOMEM, and nothing is charged.
 */
int admission_ask(struct admission *admission, uint64_t uid, struct served *served,
                  const struct wire_request *asked, struct stream **ret_stream,
                  struct wire_problem *ret_problem);

/*
 * A stream that has its tokens gets a prediction, and is charged for it.  Returns as
 * admission_finish().
 */
int admission_give_prediction(struct admission *admission, struct stream *stream,
                              struct prediction *prediction, struct wire_problem *ret_problem);

/*
 * Messages have become a text: the text and all that it needs are charged in place of the messages.
 * Returns as admission_finish().
 */
int admission_rendered(struct admission *admission, struct stream *stream, size_t bytes,
                       struct wire_problem *ret_problem);

/*
 * Gives the stream and its siblings a copy of the ids.  `field` names the field that they come
 * from.  0, WIRE_E_REFUSED or -ENOMEM; the stream stays the caller's.
 */
int admission_finish(struct admission *admission, struct stream *first, const char *field,
                     const uint32_t *ids, size_t id_count, struct wire_problem *ret_problem);

/* Takes the tokens of a stream that has retired: they are the caller's, and no longer charged. */
uint32_t *admission_take_tokens(struct admission *admission, struct stream *stream);

/* Frees a stream and takes its charges back.  Takes NULL. */
struct stream *admission_forget(struct admission *admission, struct stream *stream);
/* The same for a stream that was never submitted, and its siblings. */
void admission_forget_all(struct admission *admission, struct stream *first);

/* The stream has these types of arguments, if it has parts, and is charged for them next time. */
void admission_give_types(struct stream *stream, struct argument_types *types);

/*
 * A job for the text worker that is no generation.  Until it is done, it counts as a request of its
 * uid and of the daemon, and its bytes are charged.  admission_job_more() charges more bytes for
 * the same job.  0, WIRE_E_REFUSED or -ENOMEM.
 */
int admission_job(struct admission *admission, uint64_t uid, uint32_t id, uint64_t bytes,
                  struct wire_problem *ret_problem);
int admission_job_more(struct admission *admission, uint64_t uid, uint32_t id, uint64_t bytes,
                       struct wire_problem *ret_problem);
void admission_job_done(struct admission *admission, uint64_t uid, uint64_t bytes);

/* The most tokens that a sequence of this model may have here. */
uint32_t admission_context(const struct admission *admission, const struct served *served);

uint32_t admission_alive(const struct admission *admission); /* made and not yet forgotten */
uint32_t admission_jobs(const struct admission *admission);

/* ---- for fork.c, which makes streams from others ---- */

/*
 * A stream without parameters.  `own` is its size with its stop strings, and `more` is charged in
 * addition.
 */
int admission_make(struct admission *admission, uint64_t uid, struct served *served, uint32_t id,
                   size_t own, size_t more, struct stream **ret_stream,
                   struct wire_problem *ret_problem);

/*
 * Changes the charge of the stream to `bytes`, which it holds from now on, and those of its types
 * of arguments.
 */
int admission_recharge(struct admission *admission, struct stream *stream, size_t bytes,
                       struct wire_problem *ret_problem);

/* The size of the stream and of its stop strings, which stand behind it in the same memory. */
size_t admission_own_bytes(const struct stream *stream);
/* Copies a stop string to `at`; returns where the next one goes. */
char *admission_add_stop(struct request *request, char *at, const char *bytes, size_t count);
void admission_add_stop_tokens(struct request *request, const uint32_t *tokens, uint32_t count);

/* Sets the rules of a request; either may be NULL.  Both are the request's from now on. */
void admission_set_rules(struct request *request, struct rules *rules,
                         struct reasoning_limit *limit);
/* What its rules take, and its history with this many tokens. */
size_t admission_rules_bytes(const struct request *request, uint32_t tokens_max);
/* Makes its history if its rules need one; its tokens_max is known.  0 or -ENOMEM. */
int admission_begin_history(struct request *request);

/*
 * Does a sequence of `count` tokens fit, which may have `most` more?  SMV_OK; or a code, and `to`
 * says why, as a text that goes behind a semicolon.
 */
#define ADMISSION_WHY_BYTES 96u
enum smv_code admission_fits(const struct admission *admission, uint32_t count, uint32_t most,
                             char to[ADMISSION_WHY_BYTES]);

enum request_priority admission_class(const struct wire_request *asked);
uint64_t admission_deadline(const struct wire_request *asked);

#endif
