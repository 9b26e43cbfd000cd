/*
 * A draft model: a small model with the same vocabulary, whose tokens are guesses at those of the
 * served model.
 *
 * It has keys and values of its own.  Its pool has a shadow page for each block of the served
 * model's pool, with the block's number, and two private pages for each slot:
 *
 *      tokens of the sequence    [ block ][ block ] ... [ tail        ]
 *      the served model's KV      block 7  block 3       block 9
 *      the draft model's KV       page 7   page 3        a private page, then the other one
 *
 * The tail is the block of the newest token.  A shadow page is full, or it counts as empty: only
 * whole blocks are in shadow pages, and they are shared as the served model's blocks are, by
 * forks and by requests whose prompts begin alike.  Guesses and the tail are in private pages; a
 * private page is copied to the shadow page when its block is whole.  A shadow page becomes empty
 * when the served model writes a row into the block, or copies to it.  Then the draft model
 * computes it again from the tokens, when it guesses for a sequence that has the block.  So the
 * scheduler need not tell it anything.  A fault here could make a guess wrong, but never a token.
 *
 * All memory is allocated at the start.  Engine thread only.
 */
#ifndef DAEMON_ENGINE_DRAFT_MODEL_H
#define DAEMON_ENGINE_DRAFT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/sched-conf.h"
#include "daemon/draft/drafter.h"
#include "daemon/engine/model-conf.h"

struct draft_model;
struct model;

struct draft_model_conf {
        struct model *model; /* opened for draft_model_sizes(), with a backend of its own */
        const struct sched_conf *sched;
        uint32_t context; /* its positions; a longer sequence has no guesses */
        uint32_t vocab;   /* of the served model: no guess is as large */
        /* Its own vocabulary.  A larger token, which stands for no text, is token 0 for it. */
        uint32_t own_vocab;
};

/* The sizes that the model and its backend are to be opened for. */
struct model_conf draft_model_sizes(const struct sched_conf *sched, uint32_t context,
                                    enum kv_type kv);

/* Bytes that are allocated besides the model. */
size_t draft_model_bytes(const struct sched_conf *sched);
int draft_model_new(const struct draft_model_conf *conf, struct draft_model **ret_draft_model);
struct draft_model *draft_model_free(struct draft_model *draft_model); /* takes NULL */

/* The served model runs this step: learns which blocks slots have, and which have new tokens. */
void draft_model_follow(struct draft_model *draft_model, const struct step *step);

/*
 * How many of these tokens have no KV yet, besides the newest one; UINT32_MAX: the sequence is too
 * long for the model.  More than a few dozens are read over several steps.
 */
uint32_t draft_model_missing(const struct draft_model *draft_model, uint32_t slot,
                             uint32_t token_count);

/* Another request has the slot. */
void draft_model_begin(struct draft_model *draft_model, uint32_t slot);

/* A guess at what follows in the sequence of a slot. */
struct draft_ask {
        uint32_t slot;
        const uint32_t *tokens; /* all whose KV the served model has, and one more */
        uint32_t token_count;
        /*
         * How a token is drawn; the position is set here.  The draw of the served model, without
         * rules and masks, gives most often the same token.
         */
        struct pick pick;
        bool more;      /* in: a token is wanted; out, false: it cannot be had now */
        uint32_t count; /* tokens so far; the caller begins with 0 */
        uint32_t guess[DRAFT_MAX];
        float chance; /* of the last one, by this model */
        bool reads;   /* out: much of its sequence has no KV yet */
};

/*
 * One step: the next token for each ask that wants more.  If many tokens of a sequence have no KV
 * yet, a part of them is computed instead, in rows that the others leave.  Returns how many rows
 * the step had; 0: none.  Negative errno: the model is lost.
 */
int draft_model_step(struct draft_model *draft_model, struct draft_ask *asks, uint32_t count);

#endif
