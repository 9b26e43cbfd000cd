/*
 * A stage: the layers of a model that lie in one backend, and all that is made there for them.
 *
 * Opening it makes everything and reads the small tensors; its matrices are put on a list, which the
 * model has read when all stages are open.  stage_run() is the forward pass as the paper has it: embed,
 * then for every layer norm, qkv with rope and KV write, attend, project, norm, gate, project; then head
 * and pick for the rows that want it.  A stage that does not begin finds in x what the one before
 * has left in its own, and one that does not end leaves it there.
 *
 *      x        (rows, width)             the stream every layer adds to
 *      q, y     (rows, heads * head_dim)  queries; what attention found
 *      h        (rows, ffn)               the gated hidden numbers
 *      logits   (wanted rows, vocab)
 *
 * Part of model.c: nobody else includes this.
 */
#ifndef DAEMON_ENGINE_MODEL_STAGE_H
#define DAEMON_ENGINE_MODEL_STAGE_H

#include "daemon/engine/model-shapes.h"
#include "daemon/engine/model.h"
#include "daemon/engine/tensors.h"
#include "daemon/engine/weights.h"

/* All that does not change from step to step, filled in once: so a layer is five calls. */
struct layer {
        struct mat *qkv_mat, *output_mat, *gate_mat, *down_mat;
        struct qkv qkv;
        struct attend attend;
        struct linear output;
        struct gate gate;
        struct linear down;
};

struct stage {
        struct kernels *kernels;
        struct stage_shape shape;
        uint32_t vocab;
        float embed_scale;
        struct layer *layers; /* shape.layers of them */
        struct mat *embedding;
        struct mat *head_mat; /* NULL: tied */
        struct head head;
        struct rope rope;
        struct kv *kv;
        float *vectors; /* norms, biases and frequencies, each at a line of its own */
        float *x, *q, *y, *h, *logits;
};

/* Matrices that are to be filled. */
struct load_list {
        struct weights_load *loads;
        uint32_t count, max;
};

struct stage_conf {
        const struct checkpoint *checkpoint;
        const struct traits *traits;
        const struct tensors *tensors;
        const struct model_conf *model;
        struct stage_shape shape;
        struct kernels *kernels;
        struct load_list *list;
        char *why;
        size_t why_bytes;
};

/* How many loads one may put on the list. */
static inline uint32_t stage_loads_max(const struct stage_shape *shape)
{
        return 2 + 7 * shape->layers;
}

/* 0 or negative errno and *why; then, too, it wants to be closed.  A head that may yet turn out to be the
 * embedding has no matrix. */
int stage_open(const struct stage_conf *conf, struct stage *ret_stage);
void stage_close(struct stage *stage); /* zeroed is fine */

/* The head gets a matrix of its own, to be filled by this tensor. */
int stage_give_head(struct stage *stage, const struct tensor *tensor, struct load_list *list,
                    char *why, size_t why_bytes);

/* Once the weights are there, before the first step. */
int stage_rehearse(struct stage *stage);
/* Starts it.  Without wanted rows there is nothing to collect. */
int stage_run(struct stage *stage, const struct step *step);

#endif
