/*
 * A fake model, for tests of the draft model; and pools that keep a number for each position.
 *
 * The number that a pool keeps for a position is a hash of the token and of all numbers before it,
 * which it reads through the page table of the slot.  A pick of the fake model is a hash of all
 * numbers up to its row.  So a pick is right only if each page before it has what belongs there.
 * The fake asserts what a backend asserts of a step (kernels/steps.h).
 *
 * A program that is linked to this file has these model_forward(), model_collect() and
 * model_logprobs() instead of the daemon's (daemon/engine/model.h), and one model, `fake`.  The
 * test sets its conf and its vocabulary and opens its pool; nothing needs to be freed.
 */
#ifndef TESTS_UNIT_FAKE_MODEL_H
#define TESTS_UNIT_FAKE_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/engine/model-conf.h"

enum {
        SLOTS_MAX = 150,
        TABLE_MAX = 64,
        CONTEXT_MAX = TABLE_MAX * 16,
        BLOCKS_MAX = 400,
        PAGES_MAX = BLOCKS_MAX + 2 * SLOTS_MAX,
        ROWS_MAX = 16384,
        VOCAB = 65536, /* of the served model */
};

/* Keys and values of all positions, and where those of each slot are. */
struct pool {
        uint32_t pages, slots, table_max;
        uint64_t kv[PAGES_MAX][16];
        uint32_t tables[SLOTS_MAX][TABLE_MAX];
        uint64_t values[ROWS_MAX]; /* by row of the last step: all numbers up to it, hashed */
};

/* The numbers of a new pool mean nothing, and are different everywhere. */
void pool_open(struct pool *pool, uint32_t pages, uint32_t slots, uint32_t table_max);
/* Follows a step: its page tables, its copies, and its rows. */
void pool_run(struct pool *pool, const struct step *step);
/* All numbers of the first positions of a slot, hashed. */
uint64_t pool_fold(struct pool *pool, uint32_t slot, uint32_t count);
/* What pool_fold() returns with one more token behind those that gave `all`. */
uint64_t pool_go_on(uint64_t all, uint32_t token);

struct model {
        struct model_conf conf;
        struct pool pool;
        uint32_t own_vocab;
        bool lost;       /* each step fails */
        bool plain;      /* all picks are tokens of the served model */
        uint64_t number; /* of the last step */
        uint32_t row_count, want_count, tokens[SLOTS_MAX];
        bool wanted[SLOTS_MAX]; /* by slot: a row of it was wanted; the test clears it */
};

extern struct model fake;

/*
 * The pick behind a history.  Some picks fail, some are no tokens of the served model, and some are
 * tokens of which texts are made.
 */
uint32_t fake_pick(uint64_t history, uint64_t seed, uint64_t position);
/* The only entry of a pick's log probabilities. */
float fake_logprob(uint32_t token);

#endif
