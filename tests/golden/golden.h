/*
 * Goldens: texts with the logits that another program computed, and a model compared with them.
 *
 * After the prompt a sequence is fed the golden's tokens and not its own.  Otherwise one near tie
 * that falls the other way would hide everything after it.
 */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H

#include <stdint.h>
#include <stdio.h>

#include "daemon/engine/model.h"

#define TEXTS_MAX  20u
#define PROMPT_MAX 160u
#define GREEDY_MAX 64u
#define VOCAB_MAX  2048u

/* How near the logits must be: `tolerance` times the largest logit, and at least times 1. */
struct nearness {
        enum kv_type kv;
        double tolerance;
        double clear; /* a greedy token counts if it leads the second best by more than this */
        double share; /* at least this share of the clear ones must be the same */
        /* The nearness that holds instead where the cpu backend rounds the rows that it multiplies
         * weights with (kernels/cpu/act-quant.h): all weights but F32 and F16. */
        const struct nearness *rounded;
};

struct text {
        uint32_t prompt_count, greedy_count, vocab;
        uint32_t prompt[PROMPT_MAX], greedy[GREEDY_MAX];
        double margin[GREEDY_MAX];
        uint32_t at[2]; /* which greedy tokens these were chosen from */
        double logits[2][VOCAB_MAX];
};

struct sum {
        unsigned tokens, clear;
        double worst;
};

struct stand {
        struct checkpoint *checkpoint;
        struct traits traits;
        struct kernels *kernels;
        struct model *model;
        uint64_t number;
};

/* Reads all texts of a file, from after its first lines to its end.  Returns how many. */
unsigned texts_read(FILE *in, struct text ret_texts[TEXTS_MAX]);

/* The test fails if the model can not be opened. */
void stand_open(struct stand *stand, const char *path, const char *backend, enum kv_type kv);
void stand_close(struct stand *stand);

/* Runs each text on a model of its own, the prompt whole and in pieces; adds to *sum.  An emulated
 * GPU is slow: there the first prompt comes in pieces and the others whole. */
void texts_check(const char *path, const char *backend, const struct text *texts,
                 unsigned text_count, const struct nearness *near, struct sum *sum);

#endif
