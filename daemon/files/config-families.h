/*
 * The families of models that a config.json may name: a row for each.
 *
 * A row has the defaults of transformers for absent keys, the names of the keys where they are not
 * the usual ones, and the form of the model's layers (model/traits.h).  What no column can say is
 * read by the family's own function.
 */
#ifndef DAEMON_FILES_CONFIG_FAMILIES_H
#define DAEMON_FILES_CONFIG_FAMILIES_H

#include "daemon/files/tensor-names.h"
#include "daemon/files/trait-reader.h"

/* Names of the keys with sizes; each is a list that ends with NULL, of which the first is usual. */
struct config_sizes {
        const char *const *layers,
                *const *width, *const *ffn, *const *heads,
                                                    *const *kv_heads,
                                                            *const *context,
                                                                    *const *eps, *const *activation;
};

/* When a layer has a window. */
enum config_window {
        WINDOW_NEVER,
        WINDOW_ALWAYS,     /* each layer, if sliding_window is a number */
        WINDOW_ON_REQUEST, /* use_sliding_window, and then from max_window_layers on */
        WINDOW_LISTED,     /* use_sliding_window, and then as layer_types say */
        WINDOW_IN_TURNS,   /* all but each `period`-th layer */
};

/* Which layers rotate q and k. */
enum config_ropes {
        ROPES_EVERYWHERE,
        ROPES_NOWHERE,
        ROPES_TWO,          /* layers with a window by another set than the others */
        ROPES_WITH_WINDOWS, /* if any layer has a window, only those */
        ROPES_LISTED,       /* no_rope_layers, no_rope_layer_interval */
};

/* Whether a model has some biases: the file says so, or if it does not, no or yes. */
enum config_bias { BIAS_NEVER, BIAS_ALWAYS, BIAS_KEYED, BIAS_USUAL };

struct config_family {
        const char *name, *type; /* in `architectures`; as `model_type` */
        const struct config_sizes *sizes;
        enum tensor_naming naming;
        uint32_t kv_heads; /* 0: as many as heads */
        uint32_t head_dim; /* 0: width / heads */
        double eps;
        uint32_t context; /* 0: the key must be there */
        bool tied, bos_first;

        enum residual residual;
        enum norm_kind norm;
        bool norm_bias, no_norm_weights, norm_is_one_plus, no_pre_norms, post_norms, embed_norm;
        enum norm_kind qk_norm; /* NORM_NONE: no norms of q and k */
        enum head_norm_span qk_span;
        const char *bias_key; /* of the first two below; NULL: attention_bias */
        enum config_bias qkv_bias, output_bias, ffn_bias; /* the last: mlp_bias */
        bool head_bias;
        enum qkv_order qkv_order;
        bool transposed, plain; /* plain: no gate */
        enum activation activation;

        enum config_window window;
        uint32_t window_usual; /* if sliding_window is absent; 0: then there is none */
        uint32_t period;
        enum config_ropes ropes;
        bool adjacent; /* neighbours rotate together; otherwise the two halves of a head */
        double rope_base;
        double local_base; /* of layers with a window, if they have a rope of their own */
        double rope_share; /* the part of a head that rotates; 0: all of it */

        void (*read)(struct trait_reader *rd, struct traits *t); /* or NULL */
};

/* The row of a name in `architectures`, or of a model_type; NULL: not known. */
const struct config_family *config_family_of(const char *name, bool is_type);

#endif
