/*
 * Admission: turns what a client asked into a request that may run, or refuses it.
 *
 * It has two halves, because between them the scribe may count the tokens of the prompt.
 * admit_ask() checks what is known at once and charges the uid. admit_finish() has the ids and
 * checks them against the context and the pool.  A request that can never fit is refused here with
 * both numbers; any other waits in the scheduler.  For a prompt of ids admit_ask() does both.
 * admit_forget() takes all charges back, exactly once, however the request ended.
 *
 * If a client asks for many streams, it gets as many requests: all or none.  The others are the
 * first one's siblings, and each is charged as if it had come alone.  They are of one family, and
 * so are the forks of any of them.  No two requests of a family have the same choice, unless the
 * client asks for it.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_ADMIT_H
#define DAEMON_EDGE_ADMIT_H

#include "daemon/core/request.h"
#include "daemon/core/sched.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/wire.h"
#include "daemon/served.h"

struct admit_conf {
        struct sched_conf sched;
        uint32_t max_tokens;   /* for requests that do not give it */
        uint32_t requests_max; /* of the whole daemon */
        /* Functions of engine/publish, which the edge may not include. */
        size_t (*record_bytes_max)(size_t piece_max, size_t stop_bytes_max, uint32_t logprobs);
        size_t (*end_bytes_max)(size_t stop_bytes_max);
        uint64_t (*seed)(void); /* for requests that do not give it */
};

struct admit;

int admit_new(const struct admit_conf *conf, struct quota *quota, struct admit **ret_admit);
struct admit *admit_free(struct admit *admit);

/*
 * 0: *ret_request and its siblings are the caller's.  They have copies of what the frame held, and
 * are charged to uid.  If the frame had ids, the tokens are in the request.  If it had text, a copy
 * of the text and the ids that it may have are charged, once; the caller makes the copy, for
 * the scribe.  If it had messages, a copy of them is charged.
 * WIRE_E_REFUSED or -ENOMEM: nothing is charged.
 */
int admit_ask(struct admit *admit, uint32_t uid, struct served *served,
              const struct wire_request *asked, struct request **ret_request,
              struct wire_problem *ret_problem);

/*
 * Forks of a stream that is alive, with the same outcomes.  Parameters that are not given are those
 * of the parent.  Only the engine knows how many tokens a fork begins with; here the largest
 * possible number is charged.
 */
int admit_fork(struct admit *admit, struct request *parent, const struct wire_request *asked,
               struct request **ret_request, struct wire_problem *ret_problem);

/*
 * Checks what is known at once of a generate, an open or an append: the model has the ids, and
 * there is something to begin with.  0 or WIRE_E_REFUSED.
 */
int admit_check(const struct admit *admit, const struct served *served,
                const struct wire_request *asked, struct wire_problem *ret_problem);

/* The most tokens that a sequence of this model may have here. */
uint32_t admit_context(const struct admit *admit, const struct served *served);

/*
 * Messages have become a text: the text and all that it needs are charged in place of the messages.
 * Returns as admit_finish().
 */
int admit_rendered(struct admit *admit, struct request *request, size_t bytes,
                   struct wire_problem *ret_problem);

/*
 * Gives the request and its siblings a copy of the ids.  `field` names the field that they come
 * from.  0, WIRE_E_REFUSED or -ENOMEM; the request stays the caller's.
 */
int admit_finish(struct admit *admit, struct request *request, const char *field,
                 const uint32_t *ids, size_t id_count, struct wire_problem *ret_problem);

/* Takes the tokens of a request that has retired: they are the caller's, and no longer charged. */
uint32_t *admit_take_tokens(struct admit *admit, struct request *request);

/* Frees a request and takes its charges back.  Takes NULL. */
struct request *admit_forget(struct admit *admit, struct request *request);
/* The same for a request that was never submitted, and its siblings. */
void admit_forget_all(struct admit *admit, struct request *first);

/*
 * A job for the scribe that is no generation.  Until it is done, it counts as a request of its uid
 * and of the daemon, and its bytes are charged. admit_job_more() charges more bytes for the same
 * job.  0, WIRE_E_REFUSED or -ENOMEM.
 */
int admit_job(struct admit *admit, uint32_t uid, uint32_t id, uint64_t bytes,
              struct wire_problem *ret_problem);
int admit_job_more(struct admit *admit, uint32_t uid, uint32_t id, uint64_t bytes,
                   struct wire_problem *ret_problem);
void admit_job_done(struct admit *admit, uint32_t uid, uint64_t bytes);

/* As quota_charge(), but fills the problem if it is refused. */
int admit_charge(struct quota *quota, uint32_t uid, enum quota_kind kind, uint64_t amount,
                 uint32_t id, struct wire_problem *ret_problem);

uint32_t admit_alive(const struct admit *admit); /* made and not yet forgotten */
uint32_t admit_jobs(const struct admit *admit);

#endif
