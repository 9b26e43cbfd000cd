/*
 * A model opened as the daemon opens it, and steps of it one at a time.  A step reads a prompt
 * or decodes tokens, each fed by the token picked before it, at any context depth.
 *
 * Depth is free to set up: one prompt is read, and all other contexts are made of copies of its
 * pages.  The attended contents are meaningless, but attention reads as many bytes as it would
 * in a real run.
 */
#ifndef BENCH_CPU_MODEL_H
#define BENCH_CPU_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/files/checkpoint.h"
#include "kernels/kernels.h"

#define CPU_PROMPT    512u /* tokens, in one step */
#define CPU_BATCH_MAX 32u
#define CPU_CONTEXT   128u   /* tokens in the context of each stream of a batch, at the start */
#define CPU_DEPTH_MAX 16384u /* of one stream, if the model was made for that length */

struct cpu_model_conf {
        uint32_t threads; /* 0: one for each core */
        const char *isa;
        uint32_t lone_ahead; /* of struct kernels_conf */
        uint32_t tokens;     /* streams that are decoded at a time */
};

struct cpu_model;

/* Loads it and reads the prompt.  0, or a negative errno and one line in *why. */
int cpu_model_open(const char *path, const struct cpu_model_conf *conf,
                   struct cpu_model **ret_model, char *why, size_t why_bytes);
struct cpu_model *cpu_model_close(struct cpu_model *model); /* takes NULL */

const char *cpu_model_kernels(const struct cpu_model *model); /* "cpu/avx2" */
const struct traits *cpu_model_traits(const struct cpu_model *model);
const struct checkpoint *cpu_model_checkpoint(const struct cpu_model *model);
uint32_t cpu_model_depth(const struct cpu_model *model); /* CPU_DEPTH_MAX or less */

/*
 * All three return seconds, or 0 if a logit was not finite, so that the pick is no token.
 *
 * cpu_model_prompt() reads CPU_PROMPT tokens into an empty context.  cpu_model_batch() decodes
 * conf's tokens for each stream of a batch whose contexts have CPU_CONTEXT tokens.
 * cpu_model_stream() decodes one stream at this depth.
 */
double cpu_model_prompt(struct cpu_model *model);
double cpu_model_batch(struct cpu_model *model, uint32_t batch);
double cpu_model_stream(struct cpu_model *model, uint32_t depth);

/*
 * Seconds for one pick, for `rows` rows at once, from logits of this model's size that a head
 * has just made.
 */
double cpu_model_pick(struct cpu_model *model, const struct pick *pick, uint32_t rows);

#endif
