/*
 * A world for a draft model: a served model, whose blocks streams share, copy, lose and find.
 *
 * The served model is a pool of numbers (fake-model.h), and so is the model behind the draft model.
 * The world plays the scheduler: a stream has a text and perhaps a slot, takes blocks, finds those
 * that are known in the pool or in the swap, and has rows in a step.  world_run_step() shows each
 * step to the draft model and to the served model's pool.  A stream knows what both models must
 * make of its text, because it hashes the text itself.
 *
 * There is one world in a program.  world_open() begins a new one and makes its draft model;
 * world_close() frees it.  A test that fails leaves it open, so each test has world_end() as its
 * teardown.  Streams, blocks and steps are parts of the world, and pointers to them stay valid.
 */
#ifndef TESTS_UNIT_DRAFT_WORLD_H
#define TESTS_UNIT_DRAFT_WORLD_H

#include "daemon/engine/draft-model.h"
#include "tests/unit/fake-model.h"

enum {
        SWAP_MAX = 6,
        WAITING_MAX = 3, /* streams without a slot */
        STREAMS_MAX = SLOTS_MAX + WAITING_MAX,
        CHANGES_MAX = 16384, /* pages, and copies, of a step of the served model */
};

#define NONE UINT32_MAX

struct stream {
        uint64_t serial; /* of the request; a slot has begun for one of them */
        uint32_t slot;   /* or NONE */
        uint32_t tokens[CONTEXT_MAX], count;
        /* By count of tokens: what the served model, and the draft model, make of them. */
        uint64_t served[CONTEXT_MAX + 1], drafted[CONTEXT_MAX + 1];
        uint32_t computed; /* positions that the served model has */
        uint32_t again;    /* before this position, rows write what is there already */
        bool runs;         /* it had rows in the slot */
        uint32_t blocks[TABLE_MAX], block_count;
        uint32_t guess[DRAFT_MAX], guess_count;
        uint32_t asks; /* how often it asks, in percent */
};

/* A block that is known can be found again, and a part of it. */
struct block {
        uint32_t refs;
        bool known;
        uint64_t content, before; /* all numbers up to its end, and those before it */
        uint32_t tokens[16];
};

struct seat {
        uint64_t serial; /* the last one that had rows in the slot */
        bool begun;
};

extern struct world {
        struct sched_conf sched;
        uint32_t context, own_vocab; /* of the draft model */
        uint32_t seed, swap;         /* swap: blocks behind those of the pool */
        bool windows;                /* steps have pages and copies of windows, too */
        uint64_t random, serials;
        struct pool pool;
        struct block blocks[BLOCKS_MAX + SWAP_MAX];
        struct stream streams[STREAMS_MAX];
        uint32_t stream_count;
        struct seat seats[SLOTS_MAX];
        struct draft_model *draft_model;
        struct step step; /* of the served model; points into these: */
        struct step_row rows[ROWS_MAX];
        struct step_run runs[ROWS_MAX];
        struct step_page pages[CHANGES_MAX];
        struct step_copy copies[CHANGES_MAX];
} world;

/* Counts events, so that a test that did nothing is noticed.  The test sets them to 0. */
extern struct deeds {
        uint64_t guesses, right, failed, beyond, too_long, waits, foreign;
        uint64_t left, ended, returned, found, parts, shared_parts, written_copies, rewritten;
        uint64_t again, evicted, swapped_out, swapped_in, replaced;
} deeds;

/* The draft model has `context` positions and a vocabulary of `own_vocab` tokens. */
void world_open(const struct sched_conf *sched, uint32_t context, uint32_t own_vocab);
void world_close(void);
/* A teardown: says in which world a test failed, and closes that world. */
int world_end(void **state);

/* Dice: a number below the limit; true in `percent` of a hundred throws. */
uint32_t any(uint32_t below);
bool chance(uint32_t percent);
/* Few tokens, so that texts repeat; and some that are none of the draft model's. */
uint32_t any_token(void);
/* The token that the draft model reads instead: a token of its own vocabulary. */
uint32_t own_token(uint32_t token);

static inline uint32_t least(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

/* Blocks of the pool without references. */
uint32_t blocks_unused(void);
/* A known block in [from, to), other than that one, whose content this is; or NONE. */
uint32_t block_find(uint32_t from, uint32_t to, uint64_t content, uint32_t other_than);
/* A block to write to: any without references.  Its content may move to the swap. */
uint32_t block_take(void);
/* The step copies this block to that one. */
void block_copy(uint32_t from, uint32_t to);

void stream_append(struct stream *s, uint32_t token);
/* It loses its slot, its blocks and its guesses. */
void stream_leave(struct stream *s);
/* The block, which has a reference for it, is the stream's from now on. */
void stream_set_block(struct stream *s, uint32_t index, uint32_t block);
/* Takes whole blocks that are known, in the pool or in the swap; so many at most. */
void stream_find_blocks(struct stream *s, uint32_t most);

/*
 * A step: begun, filled with changes of blocks and with rows of streams, and run.  A stream whose
 * rows reach its last token draws the next ones.  When there are few blocks, it has no rows, and
 * may leave.
 */
void world_begin_step(void);
void stream_plan(struct stream *s);
void world_run_step(void);
/* After the step: whole blocks become known, sooner or later. */
void stream_name_blocks(const struct stream *s, uint32_t percent);

#endif
