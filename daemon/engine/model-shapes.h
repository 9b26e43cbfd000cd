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

static inline uint32_t q_columns(const struct traits *t, uint32_t layer)
{
        return t->heads * t->layer[layer].head_dim;
}

static inline uint32_t kv_columns(const struct traits *t, uint32_t layer)
{
        return t->layer[layer].kv_heads * t->layer[layer].head_dim;
}

/* The most of any layer. */
static inline uint32_t q_columns_max(const struct traits *t)
{
        uint32_t most = 0;

        for (uint32_t i = 0; i < t->layers; i++)
                if (q_columns(t, i) > most)
                        most = q_columns(t, i);
        return most;
}

static inline uint32_t ffn_max(const struct traits *t)
{
        uint32_t most = 0;

        for (uint32_t i = 0; i < t->layers; i++)
                if (t->layer[i].ffn > most)
                        most = t->layer[i].ffn;
        return most;
}

/* The numbers of the inputs of all layers (traits.h); 0: they have none. */
static inline uint32_t input_columns(const struct traits *t)
{
        return t->layers * t->layer_input;
}

/* The parts of the matrix that gives q, k and v, or those of them that the layer has. */
static inline uint32_t qkv_parts(const struct layer_traits *layer)
{
        return layer->kv_back ? 1 : layer->v_is_k ? 2 : 3;
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
static inline size_t layer_vectors_count(const struct traits *t, uint32_t layer)
{
        size_t norms = 2 * ((size_t)t->pre_norms + t->post_norms + t->sum_norms) +
                       (t->layer_input ? 1 : 0);
        size_t each = lines(t->width), q = q_columns(t, layer), kv = kv_columns(t, layer);

        if (t->norm_bias != NOT_THERE)
                norms *= 2;
        /* norms; two biases; norms of q and k with their biases; biases of q, k, v; of the gate */
        return (norms + 2) * each + (t->qk_norm == NOT_THERE ? 0 : 2 * (lines(q) + lines(kv))) +
               lines(q + 2 * kv) + lines(2 * (size_t)t->layer[layer].ffn);
}

static inline size_t vectors_count(const struct traits *t, const struct stage_shape *shape)
{
        /* norms of the ends with their biases, the head's bias, slopes, the norm of inputs */
        size_t count = 4 * lines(t->width) + lines(t->heads) + lines(t->layer_input) +
                       (t->head_bias == NOT_THERE ? 0 : lines(t->vocab)) +
                       TRAITS_ROPES_MAX * lines(ROPE_PAIRS_MAX);

        for (uint32_t i = 0; i < shape->layers; i++)
                count += layer_vectors_count(t, shape->first + i);
        return count;
}

/* Buffers of floats, which may have no floats; a stage without the head has no FLOATS_LOGITS. */
enum floats {
        FLOATS_VECTORS,
        FLOATS_X,
        FLOATS_Q,
        FLOATS_Y,
        FLOATS_H,
        FLOATS_INPUTS,
        FLOATS_INPUT,
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
        ret_floats[FLOATS_Q] = rows * q_columns_max(t);
        ret_floats[FLOATS_Y] = rows * q_columns_max(t);
        ret_floats[FLOATS_H] = rows * ffn_max(t);
        ret_floats[FLOATS_INPUTS] = rows * input_columns(t);
        ret_floats[FLOATS_INPUT] = rows * t->layer_input;
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

/*
 * The pools of a model: of layers without a window, and of those with one, if these are in another
 * group or have heads of another shape.  Otherwise the first pool has all layers.
 */
enum pool { POOL_OF_ALL, POOL_OF_WINDOWS };

static inline enum kv_group pool_group(const struct model_conf *conf, enum pool pool)
{
        return conf->windows && pool == POOL_OF_WINDOWS ? GROUP_WINDOWS : GROUP_BLOCKS;
}

/* Whether some layers have a window, and other heads than a layer without one. */
static inline bool windows_have_a_shape(const struct traits *t)
{
        const struct layer_traits *first[2] = { NULL, NULL };

        for (uint32_t i = 0; i < t->layers; i++)
                first[t->layer[i].window > 0] = &t->layer[i];
        return first[0] && first[1] &&
               (first[0]->kv_heads != first[1]->kv_heads ||
                first[0]->head_dim != first[1]->head_dim);
}

static inline enum pool layer_pool(const struct traits *t, const struct model_conf *conf,
                                   uint32_t layer)
{
        bool apart = conf->windows || windows_have_a_shape(t);

        return apart && t->layer[layer].window ? POOL_OF_WINDOWS : POOL_OF_ALL;
}

/* How many layers of the stage before `layer` have keys and values in a pool. */
static inline uint32_t layers_in_pool(const struct traits *t, const struct model_conf *conf,
                                      const struct stage_shape *shape, enum pool pool,
                                      uint32_t layer)
{
        uint32_t count = 0;

        for (uint32_t i = shape->first; i < layer; i++)
                count += !t->layer[i].kv_back && layer_pool(t, conf, i) == pool;
        return count;
}

/* A pool in a stage.  It may have no layers; then there is no such pool. */
static inline struct kv_shape kv_shape(const struct traits *t, const struct model_conf *conf,
                                       const struct stage_shape *shape, enum pool pool)
{
        enum kv_group group = pool_group(conf, pool);
        struct kv_shape of = {
                .group = group,
                .layers = layers_in_pool(t, conf, shape, pool, shape->first + shape->layers),
                .pages = group == GROUP_WINDOWS ? conf->windows : conf->blocks,
                .type = conf->kv,
                .swap_pages = group == GROUP_WINDOWS ? 0 : conf->swap_blocks,
        };

        for (uint32_t i = 0; i < t->layers; i++)
                if (layer_pool(t, conf, i) == pool) {
                        of.kv_heads = t->layer[i].kv_heads;
                        of.head_dim = t->layer[i].head_dim;
                }
        return of;
}

/* Bytes of a page of a group in a stage; 0 if it has no layers there. */
static inline uint64_t page_bytes(const struct traits *t, const struct model_conf *conf,
                                  const struct stage_shape *shape, enum kv_group group)
{
        uint64_t bytes = 0;

        for (uint32_t pool = 0; pool < KV_POOLS_MAX; pool++) {
                const struct kv_shape of = kv_shape(t, conf, shape, pool);

                if (of.group == group)
                        bytes += kv_page_bytes(&of);
        }
        return bytes;
}

#endif
