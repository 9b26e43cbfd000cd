/*
 * A model opened as the daemon opens it, and steps of it one at a time: prompts read and tokens
 * decoded, each fed by what was picked before, at any depth.
 *
 * Depth costs nothing to have: one prompt is read, and all other contexts are made of copies of its
 * pages.  What is attended to is nonsense, and as many bytes as sense would have.
 */
#ifndef BENCH_CPU_MODEL_H
#define BENCH_CPU_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/files/checkpoint.h"
#include "kernels/kernels.h"

#define CPU_PROMPT    512u /* tokens, in one step */
#define CPU_BATCH_MAX 32u
#define CPU_CONTEXT   128u   /* of each in a batch, to begin with */
#define CPU_DEPTH_MAX 16384u /* of one stream, where the model was made for so much */

struct cpu_model_conf {
        uint32_t threads; /* 0: one for each core */
        const char *isa;
        uint32_t tokens; /* that are decoded at a time */
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
 * Seconds.  From an empty context, CPU_PROMPT tokens; conf's tokens of each of a batch whose
 * contexts have CPU_CONTEXT; of one stream at this depth.  0: what was picked is no token, for a
 * logit was not finite.
 */
double cpu_model_prompt(struct cpu_model *model);
double cpu_model_batch(struct cpu_model *model, uint32_t batch);
double cpu_model_stream(struct cpu_model *model, uint32_t depth);

/* Of one pick, out of logits of this model's size for so many rows at once, which a head has just made. */
double cpu_model_pick(struct cpu_model *model, const struct pick *pick, uint32_t rows);

#endif
