/*
 * A backend that picks: opened by name ("ref", "cpu", and an instruction set if one likes), with the same logits put
 * for some wanted rows, and the definition (line.h) beside it.  Shared by the programs of this directory that pick.
 *
 * How near a draw or a cut has to lie to a border for rounding to decide it: ref sums doubles one by one, 2^-53 of the
 * whole for each of 128,256.  cpu has weights and sums of blocks in floats: a weight is off by a few times
 * 2^-24, and by as much for each factor of e that it is less than the largest, which those that make up most of the whole
 * are not often; the whole comes to less than 1e-6.
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

/* Of the arguments of a program: "ref", "cpu", "cpu c".  77: this machine has no such instruction set. */
int bench_choose(int argc, char **argv);

void bench_open(struct bench *b, uint32_t vocab, uint32_t wants);
void bench_close(struct bench *b);

/* A step of as many rows as the last wanted one needs. */
void bench_begin(struct bench *b, const uint32_t *want, const struct pick *picks, uint32_t count);
void bench_end(struct bench *b, uint32_t *ret_tokens);

/* One step: the same logits for `count` picks. */
void pick_all(struct bench *b, const float *logits, uint32_t vocab, const struct pick *picks,
              uint32_t count, uint32_t *ret_tokens);
uint32_t pick_one(struct bench *b, const float *logits, uint32_t vocab, struct pick pick);

/* Fails unless the definition says so, of the row that b->line has in line. */
void expect_picked(struct bench *b, const struct pick *pick, uint32_t token);
/* Lines them up, picks, and looks at each. */
void follow(struct bench *b, const float *logits, uint32_t vocab, const struct pick *picks,
            uint32_t count);
/* What the last step told of want `want`, of the row that is in line. */
void expect_told(struct bench *b, uint32_t want, uint32_t picked, uint32_t count);

/* Picks of the `count` numbers of draw.h from `position` on. */
struct pick pick_plain(float temperature);
struct pick pick_drawn(float temperature, uint32_t choice, uint64_t position);

#endif
