/*
 * Traits: the properties of a model, without its weights.
 *
 * There is one table of properties instead of a file per architecture; the forward pass
 * (engine/model-stage.c) is driven by it.  It is filled from a model file's metadata, with every
 * value checked, and never written again.  Any thread may read it.
 *
 * A layer has two branches, attention and the feed-forward part, which add to the residual stream
 * x.  n is a norm that a branch reads through, m a norm of what it adds, s residual_scale:
 *
 *      RESIDUAL_SERIAL     x += s m1(attention(n1(x))); x += s m2(ffn(n2(x)))
 *      RESIDUAL_PARALLEL   x += s attention(n1(x)) + s ffn(n2(x))
 *      RESIDUAL_ONE_NORM     the same, and n2 is n1
 *
 * n is there if `pre_norms`, m if `post_norms`.  With `sum_norms` a norm o follows each branch of
 * RESIDUAL_SERIAL: x = o(x + attention(x)).  Then there is no norm before the head.
 *
 * With `layer_input`, a layer has an input i besides x.  It is made from the token's embedding x0
 * and from the token's row e, for this layer, of a second table.  A third branch reads it:
 *
 *      i = (sqrt(layer_input) e + n4(W x0)) / sqrt(2)
 *      x += m3(Wo (act(Wg x) * i))
 *
 * With `layer_scale`, a layer ends with x *= its scale.
 */
#ifndef DAEMON_MODEL_TRAITS_H
#define DAEMON_MODEL_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/rope.h"
#include "kernels/kernels.h"

#define TRAITS_NO_TOKEN   UINT32_MAX
#define TRAITS_EOS_MAX    8u
#define TRAITS_LAYERS_MAX 1024u
#define TRAITS_ROPES_MAX  4u
#define TRAITS_NO_ROPE    255u

/* Whether a model has a certain tensor. */
enum presence { MAYBE_THERE, MUST_BE_THERE, NOT_THERE };

enum residual { RESIDUAL_SERIAL, RESIDUAL_PARALLEL, RESIDUAL_ONE_NORM };

/* How the rows of q, k and v follow each other in a file, if one tensor has all of them. */
enum qkv_order {
        QKV_STACKED,  /* all of q, all of k, all of v */
        QKV_BY_HEAD,  /* each head: its q, its k, its v */
        QKV_BY_GROUP, /* each head of k and v: the q of all heads that share it, its k, its v */
        QKV_IN_FOURS, /* each quarter of the heads: their q, their v, their k */
};

enum position_table { POSITIONS_NONE, POSITIONS_LEARNED, POSITIONS_SINUSOIDAL };

/* What may differ from layer to layer. */
struct layer_traits {
        /* sliding window: positions that a row sees, including its own; 0: no window */
        uint32_t window;
        uint8_t rope; /* index into `ropes`, or TRAITS_NO_ROPE */
        bool v_is_k;  /* no matrix for v: v is k, before its norm and its rope */
        /* it has no k and v, and attends to those of the layer that is so many before; 0: it has */
        uint16_t kv_back;
        /* until traits_check() has set them, 0 stands for the model's */
        uint32_t kv_heads, head_dim, ffn;
};

struct traits {
        uint32_t vocab;
        uint32_t context; /* the context length that the file states */
        uint32_t width;
        uint32_t layers;
        uint32_t heads;
        /* the largest of any layer; before traits_check(): of layers that have no others */
        uint32_t kv_heads, head_dim, ffn;
        uint32_t layer_input; /* numbers; 0: layers have no inputs besides x */
        enum presence layer_scale;
        /* 0: width; otherwise the width of the embedding and of the head, with matrices between */
        uint32_t embed_width;
        bool tied; /* the embedding is also the head, unless the file has a separate head */

        enum residual residual;
        enum norm_kind norm; /* of all norms of rows; those of q and k have a kind of their own */
        float eps;
        bool pre_norms, post_norms, sum_norms;
        bool norm_weights;        /* false: no norm of rows has weights */
        bool norm_is_one_plus;    /* the file has w where the norm multiplies by 1 + w */
        enum presence norm_bias;  /* of norms of rows */
        enum presence embed_norm; /* of what the embedding gives */

        enum presence qkv_bias, output_bias, ffn_bias, head_bias;
        enum qkv_order qkv_order;
        /* matrices of layers are stored with a row for each column of x */
        bool transposed;
        float qkv_clip; /* 0: none */
        enum presence qk_norm, qk_norm_bias;
        enum norm_kind qk_norm_kind;
        enum head_norm_span qk_norm_span;
        bool v_norm; /* RMSNorm of each head of v, without weights */
        /* q is multiplied by 1 + beta * log(1 + floor(position / length)); beta 0: by nothing */
        float query_beta;
        uint32_t query_length;

        bool gated; /* false: the feed-forward part has no gate, only `up` and `down` */
        enum activation act;
        float embed_scale, residual_scale, head_scale;
        bool head_unit_rows; /* each row of the head's matrix is divided by its length */
        float attend_scale;  /* 1 / sqrt(head_dim) unless the file says otherwise */
        float attend_softcap, head_softcap;
        float alibi;          /* 8: slopes from 2^-8/heads on; 0: no slopes */
        bool alibi_is_scaled; /* attend_scale is a factor of the slopes, too */

        enum position_table positions;
        uint32_t first_position; /* position 0 has this row of the table */

        uint32_t rope_count;
        struct rope_shape ropes[TRAITS_ROPES_MAX];
        /* tensors that slow down the first of `ropes`: one for all texts; LongRoPE's two */
        enum presence rope_table, rope_tables;
        struct layer_traits layer[TRAITS_LAYERS_MAX];

        uint32_t bos; /* token put before a text, or TRAITS_NO_TOKEN */
        uint32_t eos_count;
        uint32_t eos[TRAITS_EOS_MAX]; /* each of them ends a stream */
};

/*
 * The positions that the layers with a window see; 0 if no layer has one, or if the largest hides
 * nothing of `context` positions.
 */
static inline uint32_t traits_window(const struct traits *traits, uint32_t context)
{
        uint32_t window = 0;

        for (uint32_t i = 0; i < traits->layers; i++)
                if (traits->layer[i].window > window)
                        window = traits->layer[i].window;
        return window < context ? window : 0;
}

/* The layer whose keys and values a layer attends to. */
static inline uint32_t traits_kv_layer(const struct traits *traits, uint32_t layer)
{
        return layer - traits->layer[layer].kv_back;
}

/*
 * The most first layers of a model that may be in another backend than the others, because a layer
 * is in the backend of its keys and values.
 */
static inline uint32_t traits_split_max(const struct traits *traits)
{
        uint32_t most = traits->layers - 1;

        for (uint32_t i = 0; i < traits->layers; i++)
                if (traits->layer[i].kv_back && traits_kv_layer(traits, i) < most)
                        most = traits_kv_layer(traits, i);
        return most;
}

#endif
