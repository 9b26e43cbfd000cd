/*
 * A backend that picks, opened by name ("ref", "cpu", and optionally an instruction set; "cuda",
 * which is the library $CUDA_LIBRARY).  The same
 * logits are put for several wanted rows, and the definition (ref-sampler.h) is computed beside it.
 * Shared by the programs of this directory that pick.
 *
 * Rounding decides a cut that lies closer to a border than the error of the backend.
 * ref sums doubles one by one: an error of 2^-53 of the whole for each of 128,256.  cpu keeps
 * weights and sums of blocks in floats.  A weight is off by a few times 2^-24, and by as much
 * again for each factor of e that it is below the largest weight.  The weights that make up
 * most of the whole are seldom far below it, so the error of the whole is less than 1e-6.
 */
#ifndef TESTS_KERNELS_PICK_FIXTURE_H
#define TESTS_KERNELS_PICK_FIXTURE_H

#include "tests/kernels/ref-sampler.h"

#define FIXTURE_WANTS 64u /* at most */

struct fixture {
        struct kernels *k;
        struct kv *kv;
        float *logits; /* (wants, vocab) */
        struct ref_sampler ref_sampler;
        struct near near;
        uint32_t vocab, wants; /* at most */
        uint64_t number;       /* of the last step */
};

/*
 * Reads the program's arguments: "ref", "cpu", "cpu c", "cuda"; without any, the backend is cuda if
 * there is a $CUDA_LIBRARY, or else ref.  Returns 77 if this machine lacks the instruction set.
 */
int fixture_choose(int argc, char **argv);

void fixture_open(struct fixture *b, uint32_t vocab, uint32_t wants);
void fixture_close(struct fixture *b);
/* From here on, steps are replayed if the backend can; all rows have as many logits as possible. */
void fixture_warm_up(struct fixture *b);

/*
 * Begins a step with as many rows as the last wanted row needs.  Returns true if it is replayed, so
 * that the picks are made already.
 */
bool fixture_begin(struct fixture *b, const uint32_t *want, const struct pick *picks,
                   uint32_t count);
void fixture_end(struct fixture *b, uint32_t *ret_tokens);

/* Runs one step that makes `count` picks from the same logits. */
void pick_all(struct fixture *b, const float *logits, uint32_t vocab, const struct pick *picks,
              uint32_t count, uint32_t *ret_tokens);
uint32_t pick_one(struct fixture *b, const float *logits, uint32_t vocab, struct pick pick);

/* Fails unless `token` is right by the definition, for the row that b->ref_sampler holds. */
void expect_picked(struct fixture *b, const struct pick *pick, uint32_t token);
/* Loads the logits into b->ref_sampler, picks, and checks each token. */
void follow(struct fixture *b, const float *logits, uint32_t vocab, const struct pick *picks,
            uint32_t count);
/*
 * Checks the logprobs and the log-sum that a step has reported of want `want`, for the row that
 * b->ref_sampler holds.
 */
void expect_logprobs(struct fixture *b, uint64_t number, uint32_t want, const struct pick *pick,
                     uint32_t picked);

/* A pick without cuts, and one at another place. */
struct pick pick_plain(float temperature);
struct pick pick_drawn(float temperature, uint32_t sample_index, uint64_t position);

#endif
