/*
 * The inside of a matcher, for the files matcher*.c only.
 *
 * A *row* belongs to a place where a lexeme has ended, or to the beginning.  Its items are what the
 * grammar has read there, and expects.  A *thread* is a lexeme being read, or several: a row where
 * it began, and a state of the lexer.  A *position* is the place behind a byte: its threads, and
 * its row if it has one.  All of them are stacks, so a position is told by their heights.
 */
#ifndef CONSTRAINT_MATCHER_STATE_H
#define CONSTRAINT_MATCHER_STATE_H

#include "daemon/constraint/matcher-inside.h"
#include "daemon/constraint/matcher.h"

#define ROW_NONE UINT32_MAX

struct item {
        uint32_t dot;    /* of a sequence: the next symbol; or a list or an object, with its mark */
        uint32_t phase;  /* of a list: 1 behind a separator; of an object: 1 + the open member */
        uint32_t origin; /* the row where the rule began */
        uint32_t value;  /* of a list: elements; of an object: its register */
};

#define DOT_LIST   0x80000000u
#define DOT_OBJECT 0x40000000u
#define DOT_INDEX  0x3fffffffu

struct row {
        uint32_t items, items_end;
        uint32_t depth; /* rules that are open here, each within the one before */
        bool ends;      /* the text may end here */
};

struct thread {
        uint32_t row, state;
};

struct position {
        uint32_t threads_end, rows_end, registers_end;
        uint32_t row; /* ROW_NONE: no lexeme ends here */
};

struct seen_item {
        uint32_t stamp, item;
};

struct matcher {
        struct grammar *grammar;
        const struct token_trie *trie;
        struct matcher_limits limits;

        struct row *rows;
        struct item *items;
        struct thread *threads;
        struct position *positions;
        uint32_t *registers; /* [register][words]: the number of members, then their bits */
        uint32_t row_count, item_count, thread_count, position_count, register_count;
        uint32_t rows_max, threads_max, positions_max, registers_max, words;

        uint32_t *marks; /* positions behind each of the last tokens, the first one before them */
        uint32_t mark_count;

        /* While a row is made. */
        uint32_t stamp, row, expected_count;
        struct seen_item *seen; /* the items of the row, by hash */
        uint32_t seen_mask;
        uint32_t *lexeme_stamps, *rule_stamps;
        uint32_t *expected; /* lexemes */
        uint32_t *remap;    /* while rows are removed */
        struct inside_cache inside;
        const char *why; /* a budget is spent */
};

enum push {
        PUSH_DEAD,
        PUSH_FINE,
        PUSH_SPENT,
};

/* Puts the row of the beginning, and its thread. */
enum push matcher_push_first(struct matcher *matcher);
enum push matcher_push(struct matcher *matcher, uint8_t byte);
/* Puts a position where these threads are being read. */
enum push matcher_resume(struct matcher *matcher, const struct thread *threads, uint32_t count);
/* Removes all positions behind this one. */
void matcher_cut(struct matcher *matcher, uint32_t position);
enum push matcher_spend(struct matcher *matcher, const char *why);
/* Removes what no longer matters, so that there is space for a token and its mask. */
void matcher_compact(struct matcher *matcher);

static inline uint32_t matcher_first_thread(const struct matcher *matcher, uint32_t position)
{
        return position ? matcher->positions[position - 1].threads_end : 0;
}

#endif
