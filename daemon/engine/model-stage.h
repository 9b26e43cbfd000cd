/*
 * A stage: the layers of a model that are in one backend, and everything made there for them.
 *
 * Opening it makes all objects and reads the small tensors.  Its matrices are put on a list, and
 * the model loads this list after all stages are open.  stage_run() is the usual forward pass:
 * embed; for every layer norm, qkv with rope and KV write, attend, project, norm, gate, project;
 * then head and pick for the wanted rows.  Some models have more (stage-inputs.h).  A stage that
 * does not begin takes its input in x from the previous stage.  A stage that does not end leaves
 * its output in x.
 *
 *      x        (rows, width)             the residual stream
 *      q, y     (rows, heads * head_dim)  queries; attention output
 *      h        (rows, ffn)               gated hidden values
 *      logits   (wanted rows, vocab)
 *
 * Part of model.c: no other file includes this.
 */
#ifndef DAEMON_ENGINE_MODEL_STAGE_H
#define DAEMON_ENGINE_MODEL_STAGE_H

#include "daemon/engine/stage-parts.h"

/* The most loads that one stage may put on the list. */
static inline uint32_t stage_loads_max(const struct stage_shape *shape)
{
        return 5 + 9 * shape->layers;
}

/*
 * Returns 0 or negative errno and *why; call stage_close() in both cases.  If the head may turn out
 * to be the same as the embedding, it has no matrix yet.
 */
int stage_open(const struct stage_conf *conf, struct stage *ret_stage);
void stage_close(struct stage *stage); /* a zeroed stage is fine */

/* Gives the head its own matrix, to be loaded from this tensor. */
int stage_give_head(struct stage *stage, const struct tensor *tensor, struct load_list *list,
                    char *why, size_t why_bytes);

/* Backs the next part of the memory of a pool (enum pool); returns whether there is more. */
bool stage_back_pool(struct stage *stage, uint32_t pool, size_t *at);
/* The time to copy its part of a block between the pool and the swap (kernels.h, kv_copy_ns). */
uint64_t stage_swap_copy_ns(struct stage *stage);
/* Prepares the steps; call it after the weights are loaded and before the first step. */
int stage_rehearse(struct stage *stage);
/* Starts the step.  Without wanted rows there is nothing to collect. */
int stage_run(struct stage *stage, const struct step *step);

#endif
