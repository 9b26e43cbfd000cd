/*
 * A backend that picks, opened by name ("ref", "cpu", and optionally an instruction set).  The
 * same logits are put for several wanted rows, and the definition (line.h) is computed beside
 * it.  Shared by the programs of this directory that pick.
 *
 * Rounding decides a draw or a cut that lies closer to a border than the error of the backend.
 * ref sums doubles one by one: an error of 2^-53 of the whole for each of 128,256.  cpu keeps
 * weights and sums of blocks in floats.  A weight is off by a few times 2^-24, and by as much
 * again for each factor of e that it is below the largest weight.  The weights that make up
 * most of the whole are seldom far below it, so the error of the whole is less than 1e-6.
 */
#ifndef TESTS_KERNELS_PICKER_H
#define TESTS_KERNELS_PICKER_H

#include "tests/kernels/line.h"

#define BENCH_WANTS 64u /* at most */

struct bench {
        struct kernels *k;
        struct kv *kv;
        float *logits; /* (wants, vocab) */
        struct line line;
        struct near near;
        uint32_t vocab, wants; /* at most */
        uint64_t number;       /* of the last step */
};

/*
 * Reads the program's arguments: "ref", "cpu", "cpu c".  Returns 77 if this machine lacks the
 * instruction set.
 */
int bench_choose(int argc, char **argv);

void bench_open(struct bench *b, uint32_t vocab, uint32_t wants);
void bench_close(struct bench *b);

/* Begins a step with as many rows as the last wanted row needs. */
void bench_begin(struct bench *b, const uint32_t *want, const struct pick *picks, uint32_t count);
void bench_end(struct bench *b, uint32_t *ret_tokens);

/* Runs one step that makes `count` picks from the same logits. */
void pick_all(struct bench *b, const float *logits, uint32_t vocab, const struct pick *picks,
              uint32_t count, uint32_t *ret_tokens);
uint32_t pick_one(struct bench *b, const float *logits, uint32_t vocab, struct pick pick);

/* Fails unless `token` is right by the definition, for the row that b->line holds. */
void expect_picked(struct bench *b, const struct pick *pick, uint32_t token);
/* Lines the logits up in b->line, picks, and checks each token. */
void follow(struct bench *b, const float *logits, uint32_t vocab, const struct pick *picks,
            uint32_t count);
/* Checks the details that the last step reported of want `want`, for the row that b->line holds. */
void expect_told(struct bench *b, uint32_t want, uint32_t picked, uint32_t count);

/* Picks with the `count` numbers of draw.h from `position` on. */
struct pick pick_plain(float temperature);
struct pick pick_drawn(float temperature, uint32_t choice, uint64_t position);

#endif
