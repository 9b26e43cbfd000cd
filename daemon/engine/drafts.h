/*
 * Drafts: between two steps, asks the drafters of all requests whose last token is known, deals the
 * rows of the next step to their guesses, and tells the scheduler (SCHED_DRAFT).  The drafter of a
 * request with a guide is asked earlier, because masks are made along its guess.  When the step has
 * run, the drafters learn which guesses were right.  Answers of requests that retire are kept.
 *
 * A draft model, if there is one, is asked where its chance is better than that of what repeats,
 * for all such requests together.  A token of it must be worth its step and a row.
 *
 * All memory is allocated at the start.  Engine thread only.
 */
#ifndef DAEMON_ENGINE_DRAFTS_H
#define DAEMON_ENGINE_DRAFTS_H

#include "daemon/core/sched.h"
#include "daemon/draft/drafter.h"
#include "daemon/ipc/stats.h"

struct drafts;
struct draft_model;

struct drafts_conf {
        const struct sched_conf *sched;
        struct stats *stats;
        uint32_t pool; /* tokens of finished answers that are kept for each user; 0: none */
        bool always;   /* each guess has its rows, whether they pay or not */
        struct draft_model *model; /* guesses where nothing repeats; NULL: there is none */
        uint64_t (*clock_ns)(void);
};

/* Of a scheduler with this conf, which has drafts. */
size_t drafts_bytes(uint32_t slots, uint32_t context, uint32_t pool);

/* 0 or -ENOMEM. */
int drafts_new(const struct drafts_conf *conf, struct drafts **ret_drafts);
struct drafts *drafts_free(struct drafts *drafts); /* takes NULL */

/* Before sched_next(); plan `collected` was the last to be collected. */
void drafts_offer(struct drafts *drafts, struct sched *sched, uint64_t collected, uint64_t now_ns);

/*
 * A request with a guide awaits the mask behind its last token.  Returns guesses at the tokens that
 * follow, along which masks are made; each mask takes mask_ns.  *ret_most: how many masks are worth
 * their time.  Valid until the next call.
 */
const struct draft *drafts_guess(struct drafts *drafts, struct request *request, float mask_ns,
                                 uint32_t *ret_most);

/* The request has rows in plan `number`, which is launched. */
void drafts_rows(struct drafts *drafts, struct request *request, uint64_t number);
/* It retires, and its tokens are valid: keeps those of its answer for drafts of its user. */
void drafts_keep(struct drafts *drafts, const struct request *request);
/* It has retired. */
void drafts_forget(struct drafts *drafts, const struct request *request);

/* A step has run in which each of these rows was for a next token. */
void drafts_step(struct drafts *drafts, uint32_t rows, uint64_t ns);

/*
 * In the run of a request `tried` tokens of its draft had a row, and `right` of them were confirmed
 * before the first difference, or before the answer ended.
 */
void drafts_learn(struct drafts *drafts, struct request *request, uint32_t tried, uint32_t right);

/* The time that the draft model took since the last call. */
uint64_t drafts_model_ns(struct drafts *drafts);

/* Why the request has no drafts, as long as they are possible at all. */
enum smv_no_drafts drafts_missing(const struct request *request);

#endif
