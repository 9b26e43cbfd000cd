/*
 * Queries to the draft model: decides for which streams it is asked, asks for all of them together,
 * and learns how long its tokens take and how often they are right.
 *
 * The model is asked for a stream if its chance there is better than that of what repeats, and if a
 * token is worth its own time and a row of the next step.  It goes on as long as the next token is
 * worth both.  Streams learn their chances by themselves (drafter.h); a new one begins with the
 * mean of recent streams.
 *
 * All memory is allocated at the start.  Engine thread only.
 */
#ifndef DAEMON_ENGINE_DRAFT_QUERIES_H
#define DAEMON_ENGINE_DRAFT_QUERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/request.h"
#include "daemon/draft/drafter.h"
#include "daemon/draft/step-costs.h"

struct draft_model;
struct draft_queries;

struct draft_query {
        const struct request *request;
        struct drafter *drafter;
        struct draft *guess; /* from other sources; tokens of the model take its place */
        uint32_t most;       /* tokens of it */
        float extra_ns;      /* that each costs, besides its row and the model */
};

/* The next step. */
struct draft_step {
        const struct step_costs *costs; /* NULL: a token need not be worth its time: draft always */
        uint32_t decodes;               /* rows without those of guesses */
        uint32_t spare;                 /* rows that guesses may have */
};

/* No model: none is asked.  0 or -ENOMEM. */
int draft_queries_new(struct draft_model *model, uint32_t slots, uint64_t (*clock_ns)(void),
                      struct draft_queries **ret_queries);
struct draft_queries *draft_queries_free(struct draft_queries *queries); /* takes NULL */

/* Another request has the slot.  Returns the chance of the model that it begins with. */
float draft_queries_begin(struct draft_queries *queries, uint32_t slot);

/* Is the model to be asked?  The guess is what drafter_propose() gave. */
bool draft_queries_wants(const struct draft_queries *queries, const struct draft_step *step,
                         const struct draft_query *query);
/* Asks with the next draft_queries_ask().  At most one of each slot; the drafter stays as it is. */
void draft_queries_add(struct draft_queries *queries, const struct draft_query *query);
/* Asks for all that were added, and puts the tokens into their guesses. */
void draft_queries_ask(struct draft_queries *queries, const struct draft_step *step);

/* This drafter has learnt whether a guess of the model was right. */
void draft_queries_learn(struct draft_queries *queries, const struct drafter *drafter);
/*
 * Once a step: old measurements count less and less.  The machine may have less work now, or other
 * texts.
 */
void draft_queries_forget(struct draft_queries *queries);

/* The time that the model took since the last call. */
uint64_t draft_queries_ns(struct draft_queries *queries);

#endif
