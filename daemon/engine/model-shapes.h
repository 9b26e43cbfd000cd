/*
 * The shapes of all objects that a model makes in a backend, computed from its traits.  Both the
 * code that makes these objects and the code that measures them use this file.
 */
#ifndef DAEMON_ENGINE_MODEL_SHAPES_H
#define DAEMON_ENGINE_MODEL_SHAPES_H

#include <stddef.h>

#include "daemon/engine/model-conf.h"
#include "daemon/engine/tensors.h"
#include "daemon/model/traits.h"
#include "kernels/kernels.h"

#define LINE 16u /* floats: 64 bytes */

static inline uint32_t q_columns(const struct traits *t)
{
        return t->heads * t->head_dim;
}

static inline uint32_t kv_columns(const struct traits *t)
{
        return t->kv_heads * t->head_dim;
}

static inline size_t lines(size_t floats)
{
        return (floats + LINE - 1) / LINE * LINE;
}

/* Which layers of a model form a stage, and whether it has the embedding and the head. */
struct stage_shape {
        uint32_t first, layers;
        /*
         * starts from tokens, with the embedding; otherwise from the output of the previous stage
         */
        bool begins;
        bool ends; /* has the head and the pick */
};

static inline struct stage_shape stage_on_host(const struct model_conf *conf)
{
        return (struct stage_shape){ .layers = conf->host_layers, .begins = true };
}

/* The last stage; the whole model if there is no other stage. */
static inline struct stage_shape stage_of_rest(const struct traits *t,
                                               const struct model_conf *conf)
{
        return (struct stage_shape){
                .first = conf->host_layers,
                .layers = t->layers - conf->host_layers,
                .begins = !conf->host_layers,
                .ends = true,
        };
}

/* Floats of the vectors of a layer, at most, if the model has the parts that its traits tell. */
static inline size_t layer_vectors_count(const struct traits *t)
{
        size_t norms = 2 * ((size_t)t->pre_norms + t->post_norms + t->sum_norms);
        size_t each = lines(t->width), q = lines(q_columns(t)), kv = lines(kv_columns(t));

        if (t->norm_bias != NOT_THERE)
                norms *= 2;
        /* norms; two biases; norms of q and k with their biases; biases of q, k, v; of the gate */
        return (norms + 2) * each + (t->qk_norm == NOT_THERE ? 0 : 2 * (q + kv)) +
               lines(q_columns(t) + 2 * (size_t)kv_columns(t)) + lines(2 * (size_t)t->ffn);
}

static inline size_t vectors_count(const struct traits *t, const struct stage_shape *shape)
{
        /* norms of the ends with their biases, the head's bias, slopes */
        size_t ends = 4 * lines(t->width) + lines(t->heads) +
                      (t->head_bias == NOT_THERE ? 0 : lines(t->vocab));

        return shape->layers * layer_vectors_count(t) + ends +
               TRAITS_ROPES_MAX * lines(ROPE_PAIRS_MAX);
}

/* Buffers of floats; a stage without the head has no FLOATS_LOGITS. */
enum floats {
        FLOATS_VECTORS,
        FLOATS_X,
        FLOATS_Q,
        FLOATS_Y,
        FLOATS_H,
        FLOATS_LOGITS,
        FLOATS_N,
};

/* Fills the sizes; returns how many buffers there are. */
static inline uint32_t floats_of(const struct traits *t, const struct model_conf *conf,
                                 const struct stage_shape *shape, size_t ret_floats[FLOATS_N])
{
        size_t rows = conf->rows_max;

        ret_floats[FLOATS_VECTORS] = vectors_count(t, shape);
        ret_floats[FLOATS_X] = rows * t->width;
        ret_floats[FLOATS_Q] = rows * q_columns(t);
        ret_floats[FLOATS_Y] = rows * q_columns(t);
        ret_floats[FLOATS_H] = rows * t->ffn;
        ret_floats[FLOATS_LOGITS] = (size_t)conf->wants_max * t->vocab;
        return shape->ends ? FLOATS_N : FLOATS_LOGITS;
}

/* The shape of a matrix of stacked tensors. */
static inline struct matrix_shape matrix_shape(const struct tensor *const *parts,
                                               uint32_t part_count)
{
        struct matrix_shape shape = { .columns = parts[0]->columns, .parts = part_count };

        for (uint32_t i = 0; i < part_count; i++) {
                shape.rows[i] = parts[i]->rows;
                shape.type[i] = parts[i]->type;
        }
        return shape;
}

/*
 * The tensor of the head in a stage that ends: the file's own head, or a second copy of the
 * embedding if the embedding is in another stage.  NULL: use the stage's own embedding.
 */
static inline const struct tensor *head_tensor(const struct tensors *tensors,
                                               const struct stage_shape *shape)
{
        if (tensors->at[OUTPUT])
                return tensors->at[OUTPUT];
        return shape->begins ? NULL : tensors->at[TOKEN_EMBD];
}

/* A table of positions that is computed, for the positions that are served. */
static inline struct matrix_shape sinusoidal_shape(const struct traits *t,
                                                   const struct model_conf *conf)
{
        uint32_t context = conf->context && conf->context < t->context ? conf->context : t->context;

        return (struct matrix_shape){
                .columns = t->width,
                .parts = 1,
                .rows = { context + t->first_position },
                .type = { ROW_F32 },
        };
}

/* Its bytes; 0: the model has none. */
static inline uint64_t sinusoidal_bytes(const struct traits *t, const struct model_conf *conf)
{
        const struct matrix_shape shape = sinusoidal_shape(t, conf);

        return t->positions == POSITIONS_SINUSOIDAL
                       ? shape.rows[0] * (uint64_t)row_bytes(ROW_F32, t->width)
                       : 0;
}

/* The table of positions, if the model has one. */
static inline struct matrix_shape positions_shape(const struct tensors *tensors,
                                                  const struct traits *t,
                                                  const struct model_conf *conf)
{
        return t->positions == POSITIONS_LEARNED ? matrix_shape(&tensors->at[POSITION_EMBD], 1)
                                                 : sinusoidal_shape(t, conf);
}

/* The parts of the matrix that gives a layer's hidden values: gate and `up`, or `up` alone. */
static inline uint32_t gate_parts(const struct traits *t)
{
        return t->gated ? 2 : 1;
}

static inline enum layer_tensor gate_first(const struct traits *t)
{
        return t->gated ? FFN_GATE : FFN_UP;
}

static inline enum kv_group layer_group(const struct traits *t, const struct model_conf *conf,
                                        uint32_t layer)
{
        return conf->windows && t->layer[layer].window ? GROUP_WINDOWS : GROUP_BLOCKS;
}

/* How many layers of the stage before `layer` are in a group. */
static inline uint32_t layers_in_group(const struct traits *t, const struct model_conf *conf,
                                       const struct stage_shape *shape, enum kv_group group,
                                       uint32_t layer)
{
        uint32_t count = 0;

        for (uint32_t i = shape->first; i < layer; i++)
                count += layer_group(t, conf, i) == group;
        return count;
}

/* The pool of a group in a stage.  It may have no layers; then there is no such pool. */
static inline struct kv_shape kv_shape(const struct traits *t, const struct model_conf *conf,
                                       const struct stage_shape *shape, enum kv_group group)
{
        return (struct kv_shape){
                .group = group,
                .layers = layers_in_group(t, conf, shape, group, shape->first + shape->layers),
                .kv_heads = t->kv_heads,
                .head_dim = t->head_dim,
                .pages = group == GROUP_WINDOWS ? conf->windows : conf->blocks,
                .type = conf->kv,
                .swap_pages = group == GROUP_WINDOWS ? 0 : conf->swap_blocks,
        };
}

/* Bytes of a page of a group in a stage; 0 if it has no layers there. */
static inline uint64_t page_bytes(const struct traits *t, const struct model_conf *conf,
                                  const struct stage_shape *shape, enum kv_group group)
{
        const struct kv_shape pool = kv_shape(t, conf, shape, group);

        return kv_page_bytes(&pool);
}

#endif
