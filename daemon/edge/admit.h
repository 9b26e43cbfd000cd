/*
 * Admit: from what a client asked to a request that may run, or a refusal.
 *
 * In two halves, because between them the scribe may count the prompt's tokens.
 * admit_ask() checks what is known at once and charges the uid; admit_finish()
 * has the ids and checks them against the context and the pool: what can never
 * fit is refused here with both numbers, the rest waits in the scheduler.  For
 * a prompt of ids admit_ask() does both.
 * Whatever was charged is uncharged by admit_forget(), exactly once, whichever
 * way the request went.
 *
 * Who asks for many streams gets as many requests, the others the first one's siblings, or none;
 * each is charged as if it had come alone.  They are of one family, and so is what is forked of
 * any of them: no two of a family have the same choice, unless the client says so.  Loop thread only.
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
        uint32_t max_tokens;   /* for requests that do not say */
        uint32_t requests_max; /* of the whole daemon */
        /* from engine/publish, whom the edge does not know */
        size_t (*record_bytes_max)(size_t piece_max, size_t stop_bytes_max, uint32_t logprobs);
        size_t (*end_bytes_max)(size_t stop_bytes_max);
        uint64_t (*seed)(void); /* for requests that do not say */
};

struct admit;

int admit_new(const struct admit_conf *conf, struct quota *quota, struct admit **ret_admit);
struct admit *admit_free(struct admit *admit);

/*
 * 0: *ret_request and its siblings are ours, with copies of what the frame held, charged to uid.
 * If the wire had ids its tokens are there.  If it had text, a copy of that and
 * the ids it may have are charged, once; the copy is the caller's, for the scribe.  If it
 * had messages, a copy of them is.
 * WIRE_E_REFUSED or -ENOMEM: nothing is charged.
 */
int admit_ask(struct admit *admit, uint32_t uid, struct served *served,
              const struct wire_request *asked, struct request **ret_request,
              struct wire_problem *ret_problem);

/*
 * Forks of a stream that is alive, with the same outcomes: they ask what that did, where nothing
 * else was asked.  What they begin with the engine says; here it is as much as that could be.
 */
int admit_fork(struct admit *admit, struct request *parent, const struct wire_request *asked,
               struct request **ret_request, struct wire_problem *ret_problem);

/*
 * What of an open or an append is known at once, as of a generate: the ids are the model's, and
 * there is something to begin with.  0 or WIRE_E_REFUSED.
 */
int admit_check(const struct admit *admit, const struct served *served,
                const struct wire_request *asked, struct wire_problem *ret_problem);

/* Tokens that a sequence of this model may have here. */
uint32_t admit_context(const struct admit *admit, const struct served *served);

/* Messages have become a text: with all that it needs it is charged in their place.  As below. */
int admit_rendered(struct admit *admit, struct request *request, size_t bytes,
                   struct wire_problem *ret_problem);

/*
 * ids (copied) of what was given in this field, for it and its siblings.  0, WIRE_E_REFUSED or -ENOMEM; the request stays
 * the caller's.
 */
int admit_finish(struct admit *admit, struct request *request, const char *field,
                 const uint32_t *ids, size_t id_count, struct wire_problem *ret_problem);

/* Of a request that has retired: its tokens, which are the caller's and no longer charged. */
uint32_t *admit_take_tokens(struct admit *admit, struct request *request);

/* Frees a request and takes its charges back.  Takes NULL. */
struct request *admit_forget(struct admit *admit, struct request *request);
/* The same with its siblings: of what was never submitted. */
void admit_forget_all(struct admit *admit, struct request *first);

/*
 * Work for the scribe that is no generation counts as a request of its uid, and
 * of the daemon, and as bytes, until it is done.  0, WIRE_E_REFUSED or -ENOMEM.
 */
int admit_job(struct admit *admit, uint32_t uid, uint32_t id, uint64_t bytes,
              struct wire_problem *ret_problem);
int admit_job_more(struct admit *admit, uint32_t uid, uint32_t id, uint64_t bytes,
                   struct wire_problem *ret_problem);
void admit_job_done(struct admit *admit, uint32_t uid, uint64_t bytes);

/* As quota_charge(), with the refusal put in words. */
int admit_charge(struct quota *quota, uint32_t uid, enum quota_kind kind, uint64_t amount,
                 uint32_t id, struct wire_problem *ret_problem);

uint32_t admit_alive(const struct admit *admit); /* asked and not forgotten */
uint32_t admit_jobs(const struct admit *admit);

#endif
