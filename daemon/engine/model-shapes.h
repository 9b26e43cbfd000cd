/*
 * What a model has made in a backend, by its traits: for who makes it and for who counts it.
 */
#ifndef DAEMON_ENGINE_MODEL_SHAPES_H
#define DAEMON_ENGINE_MODEL_SHAPES_H

#include <stddef.h>

#include "daemon/engine/model.h"
#include "daemon/engine/tensors.h"
#include "daemon/traits.h"
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

/* Room for every vector there may be, present or not. */
static inline size_t vectors_count(const struct traits *t)
{
        size_t layer = 4 * lines(t->width) + 2 * lines(t->head_dim) +
                       lines(q_columns(t) + 2 * (size_t)kv_columns(t)) + lines(2 * (size_t)t->ffn);

        return t->layers * layer + lines(t->width) + lines(t->rope.dims / 2);
}

/* Buffers of floats. */
enum floats {
        FLOATS_VECTORS,
        FLOATS_X,
        FLOATS_Q,
        FLOATS_Y,
        FLOATS_H,
        FLOATS_LOGITS,
        FLOATS_N,
};

static inline void floats_of(const struct traits *t, const struct model_conf *conf,
                             size_t ret_floats[FLOATS_N])
{
        size_t rows = conf->rows_max;

        ret_floats[FLOATS_VECTORS] = vectors_count(t);
        ret_floats[FLOATS_X] = rows * t->width;
        ret_floats[FLOATS_Q] = rows * q_columns(t);
        ret_floats[FLOATS_Y] = rows * q_columns(t);
        ret_floats[FLOATS_H] = rows * t->ffn;
        ret_floats[FLOATS_LOGITS] = (size_t)conf->wants_max * t->vocab;
}

/* A matrix of stacked tensors. */
static inline struct mat_shape mat_shape(const struct tensor *const *parts, uint32_t part_count)
{
        struct mat_shape shape = { .columns = parts[0]->columns, .parts = part_count };

        for (uint32_t i = 0; i < part_count; i++) {
                shape.rows[i] = parts[i]->rows;
                shape.type[i] = parts[i]->type;
        }
        return shape;
}

static inline uint32_t window_of(const struct traits *t, uint32_t layer)
{
        return layer < t->window_from ? 0 : t->window;
}

static inline struct kv_shape kv_shape(const struct traits *t, const struct model_conf *conf)
{
        return (struct kv_shape){
                .layers = t->layers,
                .kv_heads = t->kv_heads,
                .head_dim = t->head_dim,
                .pages = conf->blocks,
                .type = conf->kv,
        };
}

#endif
