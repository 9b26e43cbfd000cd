/*
 * The steps of a backend that computes at once. It holds a copy of the step that runs, the page
 * table of every slot, and the picks of the last steps. Rows may take their tokens from those
 * picks.
 *
 *      begin -> operators ... -> picks set -> end -> collect, up to STEPS_BACK later
 *
 * steps_begin() checks the whole contract of struct step by assert, so that the operators need
 * not. Nothing allocates after steps_init().
 */
#ifndef KERNELS_STEPS_H
#define KERNELS_STEPS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define STEPS_RESULTS (STEPS_BACK + 1u)
#define STEPS_NO_PAGE UINT32_MAX /* an entry of a page table that was never set */

/* The wanted rows of one step and the tokens picked from them. */
struct step_result {
        uint64_t number;
        bool valid;  /* there was such a step */
        bool picked; /* `tokens` is set */
        uint32_t count;
        uint32_t *rows;   /* (wants_max), ascending */
        uint32_t *tokens; /* (wants_max) */
        /* (wants_max + 1): where the entries of each wanted row begin, and where the last end. */
        uint32_t *first_entries;
        /* (wants_max * PICK_ENTRIES_MAX), packed; NULL if they are on a device. */
        struct logprob *entries;
        uint32_t *copies; /* (wants_max): pick.row */
        float *logits;    /* (row_copies_max, vocab_max); NULL if they are on a device, or none */
};

struct steps {
        uint32_t rows_max, slots_max, pages_max, wants_max, row_copies_max, vocab_max, groups;
        bool running;     /* between begin and end */
        struct step step; /* rows, runs, want and picks are copies; no pages, no copies */
        uint32_t *tokens; /* (rows_max): the token of each row, wherever it came from */
        uint32_t *tables; /* (groups, slots_max, pages_max) of page numbers */
        struct step_row *rows;
        struct step_run *runs;
        struct pick *picks;
        uint64_t *copied; /* (row_copies_max): the last step that has this copy of a row */
        struct step_result result[STEPS_RESULTS]; /* step n is in [n % STEPS_RESULTS] */
};

int steps_init(struct steps *s, const struct kernels_conf *conf);
/* Like steps_init(), without memory for what picks return besides tokens. */
int steps_init_on_device(struct steps *s, const struct kernels_conf *conf);
void steps_deinit(struct steps *s); /* a zeroed or half-made *s is fine */

/*
 * Copies `step`, applies its page table changes and resolves its tokens. The caller copies the
 * pages next (kv_copy). A row whose token is a pick that was not finite runs on token 0: the host
 * drops the row when it collects that pick.
 */
void steps_begin(struct steps *s, const struct step *step);
/*
 * Like steps_begin(), but does not resolve the tokens, which are on a device: steps_pick_index()
 * tells where.
 */
void steps_begin_on_device(struct steps *s, const struct step *step);
/*
 * For a row whose token is an earlier pick: the index of that pick among the wanted rows of its
 * step.
 */
uint32_t steps_pick_index(const struct steps *s, const struct step_row *row);
/* Where pick() writes the want_count tokens of the running step. */
uint32_t *steps_tokens_out(struct steps *s);
/* Where pick() writes the entries of wanted row `want`. */
struct logprob *steps_entries_out(struct steps *s, uint32_t want);
/* Copies the logits of wanted row `want`, if its pick asks for that. */
void steps_copy_row(struct steps *s, uint32_t want, const float *logits, uint32_t vocab);
void steps_end(struct steps *s);
void steps_collect(const struct steps *s, uint64_t number, uint32_t *ret_tokens);
void steps_logprobs(const struct steps *s, uint64_t number, uint32_t want,
                    struct logprob *ret_logprobs);
const float *steps_row(const struct steps *s, uint64_t number, uint32_t want);
/* How many entries wanted row `want` of a step has. */
static inline uint32_t steps_entry_count(const struct step_result *result, uint32_t want)
{
        assert(want < result->count);
        return result->first_entries[want + 1] - result->first_entries[want];
}

/* Where the copy of that row begins, among those of its step. */
static inline size_t steps_copy_of(const struct steps *s, const struct step_result *result,
                                   uint32_t want)
{
        assert(want < result->count && result->copies[want]);
        return (size_t)(result->copies[want] - 1) * s->vocab_max;
}

/* Where the page tables of a group begin in `tables`. */
static inline size_t steps_tables_of(const struct steps *s, uint32_t group)
{
        assert(group < s->groups);
        return (size_t)group * s->slots_max * s->pages_max;
}

/* The page that holds `position` of `slot` in a group. */
static inline uint32_t steps_page(const struct steps *s, uint32_t group, uint32_t slot,
                                  uint32_t position)
{
        assert(slot < s->slots_max && position / PAGE_POSITIONS < s->pages_max);
        return s->tables[steps_tables_of(s, group) + (size_t)slot * s->pages_max +
                         position / PAGE_POSITIONS];
}

#ifdef __cplusplus
}
#endif

#endif
