/*
 * The structures of a stage (model-stage.h).
 *
 * Part of model.c: only its other parts include this.
 */
#ifndef DAEMON_ENGINE_STAGE_PARTS_H
#define DAEMON_ENGINE_STAGE_PARTS_H

#include "daemon/engine/model-shapes.h"
#include "daemon/engine/tensors.h"
#include "daemon/engine/weights.h"

/* Everything constant across steps, filled once, so that a layer is five calls, or seven. */
struct layer {
        struct matrix *qkv_matrix, *output_matrix, *gate_matrix, *down_matrix;
        struct matrix *input_gate_matrix, *input_matrix;
        struct qkv qkv;
        struct attend attend;
        struct linear output;
        struct gate gate;
        struct linear down;
        struct renorm output_sum, down_sum; /* if there are norms of sums */
        /* if layers have inputs besides x */
        struct gate input_gate;
        struct linear input;
};

struct stage {
        struct kernels *kernels;
        struct stage_shape shape;
        uint32_t vocab;
        /* both branches of a layer read the same x: both are computed before one is added */
        bool parallel;
        bool sum_norms;
        struct layer *layers; /* shape.layers entries */
        struct matrix *embedding, *positions;
        struct matrix *input_embedding, *input_projection;
        struct matrix *head_matrix; /* NULL: tied to the embedding */
        struct embed embed;
        struct embed input_embed;
        struct linear input_project;
        struct head head;
        struct rope ropes[TRAITS_ROPES_MAX];
        const float *slopes;
        struct kv *pools[KV_POOLS_MAX]; /* by enum pool; NULL: it has no layers */
        /* norms, biases, frequencies, slopes; each starts on its own line of LINE floats */
        float *vectors;
        float *x, *q, *y, *h, *logits;
        float *inputs, *input; /* of all layers, for each row; the hidden values of one layer's */
};

/* Matrices that have to be loaded. */
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

#endif
