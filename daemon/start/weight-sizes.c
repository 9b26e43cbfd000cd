#include "daemon/start/weight-sizes.h"

#include <assert.h>

/* Types of the matrices: most of them, those that get more bits, and the head. */
static const struct recipe {
        const char *name;
        enum row_type most, more, head;
} recipes[WEIGHT_RECIPES] = {
        { "q4_0", ROW_Q4_0, ROW_Q4_0, ROW_Q6_K },   { "q4_k_m", ROW_Q4_K, ROW_Q6_K, ROW_Q6_K },
        { "q5_k_m", ROW_Q5_K, ROW_Q6_K, ROW_Q6_K }, { "q6_k", ROW_Q6_K, ROW_Q6_K, ROW_Q6_K },
        { "q8_0", ROW_Q8_0, ROW_Q8_0, ROW_Q8_0 },   { "bf16", ROW_BF16, ROW_BF16, ROW_BF16 },
};

const char *weight_recipe_name(uint32_t recipe)
{
        assert(recipe < WEIGHT_RECIPES);
        return recipes[recipe].name;
}

/* Bytes of a matrix.  If blocks of that type do not divide a row, a type with more bits does. */
static uint64_t matrix_bytes(enum row_type type, uint64_t rows, uint32_t columns)
{
        size_t row = row_bytes(type, columns);

        if (!row && type == ROW_Q4_K)
                row = row_bytes(ROW_Q5_0, columns);
        else if (!row && type == ROW_Q5_K)
                row = row_bytes(ROW_Q5_1, columns);
        else if (!row && type == ROW_Q6_K)
                row = row_bytes(ROW_Q8_0, columns);
        return rows * (row ? row : row_bytes(ROW_F16, columns));
}

/* The values and the second matrix of the feed-forward part have more bits in these layers. */
static bool has_more_bits(uint32_t layer, uint32_t layers)
{
        uint32_t eighth = layers / 8;

        return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

static uint64_t layer_bytes(const struct recipe *recipe, const struct traits *t, uint32_t layer)
{
        const struct layer_traits *l = &t->layer[layer];
        uint64_t q = (uint64_t)t->heads * l->head_dim, kv = (uint64_t)l->kv_heads * l->head_dim;
        enum row_type rich = has_more_bits(layer, t->layers) ? recipe->more : recipe->most;
        uint64_t k = l->kv_back ? 0 : kv, v = l->v_is_k ? 0 : k;

        return matrix_bytes(recipe->most, q + k, t->width) + matrix_bytes(rich, v, t->width) +
               matrix_bytes(recipe->most, t->width, (uint32_t)q) +
               matrix_bytes(recipe->most, (t->gated ? 2 : 1) * (uint64_t)l->ffn, t->width) +
               matrix_bytes(rich, t->width, l->ffn) +
               matrix_bytes(recipe->most, t->layer_input, t->width) +
               matrix_bytes(recipe->most, t->width, t->layer_input);
}

/* The second table of embeddings, and its projection, where layers have inputs of their own. */
static uint64_t input_bytes(const struct recipe *recipe, const struct traits *t)
{
        uint32_t columns = t->layers * t->layer_input;

        return matrix_bytes(recipe->head, columns ? t->vocab : 0, columns) +
               matrix_bytes(recipe->most, columns, t->width);
}

/* Norms, which stay floats. */
static uint64_t vector_numbers(const struct traits *t)
{
        uint32_t each = (t->pre_norms ? t->residual == RESIDUAL_ONE_NORM ? 1 : 2 : 0) +
                        (t->post_norms ? 2 : 0) + (t->sum_norms ? 2 : 0) + (t->layer_input ? 1 : 0);
        uint32_t last = t->sum_norms ? 0 : 1;

        return t->norm_weights ? (each * (uint64_t)t->layers + last) * t->width : 0;
}

/* A table of learned positions, which stays as it is. */
static uint64_t position_numbers(const struct traits *t)
{
        return t->positions == POSITIONS_LEARNED
                       ? ((uint64_t)t->context + t->first_position) * t->width
                       : 0;
}

uint64_t weight_recipe_bytes(uint32_t recipe, const struct traits *t, bool own_head)
{
        const struct recipe *r = &recipes[recipe];
        uint64_t bytes = (vector_numbers(t) + position_numbers(t)) * sizeof(float) +
                         matrix_bytes(own_head ? r->most : r->head, t->vocab, t->width);

        assert(recipe < WEIGHT_RECIPES);
        if (own_head)
                bytes += matrix_bytes(r->head, t->vocab, t->width);
        for (uint32_t i = 0; i < t->layers; i++)
                bytes += layer_bytes(r, t, i);
        return bytes + input_bytes(r, t);
}

uint64_t weight_parameters(const struct traits *t, bool own_head)
{
        static const struct recipe plain = { NULL, ROW_F16, ROW_F16, ROW_F16 };
        uint64_t embed = t->embed_width ? t->embed_width : t->width;
        uint64_t projections = 2 * (uint64_t)t->embed_width * t->width;
        uint64_t bytes = input_bytes(&plain, t);

        for (uint32_t i = 0; i < t->layers; i++)
                bytes += layer_bytes(&plain, t, i);
        return vector_numbers(t) + position_numbers(t) + projections +
               (own_head ? 2 : 1) * t->vocab * embed + bytes / 2;
}
