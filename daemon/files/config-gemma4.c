#include "daemon/files/config-gemma4.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/errtext.h"
#include "json/reader.h"

/* The members of "per_layer_config", by the number of a layer; other layers are as the model. */
static void read_listed_heads(struct trait_reader *rd, struct traits *t)
{
        uint32_t list = rd->node, root = rd->root;

        for (uint32_t at = json_first(rd->from, list); at != JSON_NONE;
             at = json_next(rd->from, at)) {
                const char *name = json_key(rd->from, at, NULL);
                char *end = NULL;
                unsigned long layer = name ? strtoul(name, &end, 10) : 0;
                struct layer_traits *l;

                if (!name || !*name || *end || layer >= t->layers) {
                        trait_reader_fault(rd,
                                           "config.json's 'per_layer_config' has '%s', which is "
                                           "not one of the %" PRIu32 " layers",
                                           shown(name ? name : "?").text, t->layers);
                        continue;
                }
                l = &t->layer[layer];
                rd->root = at;
                l->head_dim = trait_reader_whole(rd, "head_dim", 2, HEAD_DIM_MAX, &t->head_dim);
                l->kv_heads =
                        trait_reader_whole(rd, "num_key_value_heads", 1, HEADS_MAX, &t->kv_heads);
                rd->root = root;
        }
}

/* Layers without a window have other heads. */
static void read_heads(struct trait_reader *rd, struct traits *t, bool v_is_k)
{
        static const uint32_t usual = 512;
        bool listed = trait_reader_take(rd, "per_layer_config");
        uint32_t head_dim, kv_heads = t->kv_heads;

        if (listed)
                read_listed_heads(rd, t);
        head_dim = trait_reader_whole(rd, "global_head_dim", 2, HEAD_DIM_MAX, &usual);
        if (v_is_k)
                kv_heads = trait_reader_whole(rd, "num_global_key_value_heads", 1, HEADS_MAX,
                                              &t->kv_heads);
        for (uint32_t i = 0; i < t->layers; i++) {
                struct layer_traits *l = &t->layer[i];

                l->v_is_k = v_is_k && !l->window;
                if (listed || l->window)
                        continue;
                l->head_dim = head_dim;
                l->kv_heads = kv_heads;
        }
}

/* The rope of layers without a window covers their heads; its last pairs stand still. */
static void read_rope(struct trait_reader *rd, struct traits *t)
{
        static const double quarter = 0.25, one = 1;
        const char *type = trait_reader_text(rd, "rope_parameters.full_attention.rope_type");
        double share = trait_reader_real(rd, "rope_parameters.full_attention.partial_rotary_factor",
                                         0, 1, type ? &one : &quarter);
        struct rope_shape *rope = &t->ropes[0];

        for (uint32_t i = 0; i < t->layers; i++)
                if (!t->layer[i].window)
                        rope->dims = t->layer[i].head_dim ? t->layer[i].head_dim : t->head_dim;
        rope->still = 0;
        if (type && strcmp(type, "proportional"))
                return;
        (void)trait_reader_real(rd, "rope_parameters.full_attention.factor", 1, 1, &one);
        rope->still = rope->dims / 2 - (uint32_t)(share * rope->dims / 2);
}

static void read_inputs(struct trait_reader *rd, struct traits *t)
{
        static const uint32_t usual = 256, vocab = 262144;

        t->layer_input = trait_reader_whole(rd, "hidden_size_per_layer_input", 0,
                                            WIDTH_MAX / t->layers, &usual);
        if (t->layer_input)
                (void)trait_reader_whole(rd, "vocab_size_per_layer_input", t->vocab, t->vocab,
                                         t->vocab == vocab ? &vocab : NULL);
}

static void refuse_others(struct trait_reader *rd)
{
        const char *sees = trait_reader_has(rd, "use_bidirectional_attention")
                                   ? trait_reader_text(rd, "use_bidirectional_attention")
                                   : NULL;

        /* "vision": only images see what follows them */
        if (sees && strcmp(sees, "vision"))
                trait_reader_fault(rd,
                                   "config.json's 'use_bidirectional_attention' is '%s', which is "
                                   "not supported yet",
                                   shown(sees).text);
        if (trait_reader_flag(rd, "enable_moe_block", false))
                trait_reader_fault(rd, "config.json's 'enable_moe_block' is true, so the model has "
                                       "experts, which are not supported yet");
        (void)trait_reader_take(rd, "num_experts");
}

void config_gemma4_read(struct trait_reader *rd, struct traits *t)
{
        static const double no_cap = 0;
        static const uint32_t none = 0;
        uint32_t shared = trait_reader_whole(rd, "num_kv_shared_layers", 0, t->layers - 1, &none);
        bool wide = trait_reader_flag(rd, "use_double_wide_mlp", false);

        /* The last layer has no window, whatever the file says. */
        t->layer[t->layers - 1].window = 0;
        t->layer[t->layers - 1].rope = 0;
        t->embed_scale = sqrtf((float)t->width);
        t->attend_scale = 1;
        t->head_softcap =
                (float)trait_reader_real(rd, "final_logit_softcapping", 0, SCALE_MAX, &no_cap);
        t->v_norm = true;
        t->layer_scale = MUST_BE_THERE;
        refuse_others(rd);
        read_heads(rd, t, trait_reader_flag(rd, "attention_k_eq_v", false));
        read_rope(rd, t);
        read_inputs(rd, t);
        traits_share_kv(rd, t, shared);
        if (wide && t->ffn > WIDTH_MAX / 2)
                trait_reader_fault(rd,
                                   "config.json's 'intermediate_size' is %" PRIu32
                                   ", and some layers have twice as many: more than %u",
                                   t->ffn, WIDTH_MAX);
        for (uint32_t i = 0; wide && i < t->layers; i++)
                if (t->layer[i].kv_back)
                        t->layer[i].ffn = 2 * t->ffn;
}
