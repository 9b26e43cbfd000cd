#include "daemon/files/config-gemma4.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/errtext.h"
#include "json/reader.h"

#define LAYER_DIGITS_MAX 4u

/* The layer that a member of "per_layer_config" is named by; false: it is none. */
static bool layer_of(const struct trait_reader *rd, uint32_t node, uint32_t layers,
                     uint32_t *ret_layer)
{
        size_t bytes;
        const char *name = json_key(rd->from, node, &bytes);

        if (!name || !bytes || bytes > LAYER_DIGITS_MAX || strspn(name, "0123456789") != bytes)
                return false;
        *ret_layer = (uint32_t)strtoul(name, NULL, 10);
        return *ret_layer < layers;
}

static void read_listed_layer(struct trait_reader *rd, struct traits *t, struct layer_traits *layer)
{
        for (uint32_t at = json_first(rd->from, rd->root); at != JSON_NONE;
             at = json_next(rd->from, at)) {
                const char *key = json_key(rd->from, at, NULL);

                if (!key || (strcmp(key, "head_dim") && strcmp(key, "num_key_value_heads")))
                        trait_reader_fault(rd,
                                           "config.json's 'per_layer_config' has '%s', which is "
                                           "not supported yet",
                                           shown(key ? key : "?").text);
        }
        layer->head_dim = trait_reader_whole(rd, "head_dim", 2, HEAD_DIM_MAX, &t->head_dim);
        layer->kv_heads = trait_reader_whole(rd, "num_key_value_heads", 1, HEADS_MAX, &t->kv_heads);
}

/* The members of "per_layer_config", by the number of a layer; other layers are as the model. */
static void read_listed_heads(struct trait_reader *rd, struct traits *t)
{
        uint32_t list = rd->node, root = rd->root, layer;

        if (json_kind(rd->from, list) != JSON_OBJECT) {
                trait_reader_fault(rd, "config.json's 'per_layer_config' is not an object");
                return;
        }
        for (uint32_t at = json_first(rd->from, list); at != JSON_NONE;
             at = json_next(rd->from, at)) {
                const char *name = json_key(rd->from, at, NULL);

                if (!layer_of(rd, at, t->layers, &layer)) {
                        trait_reader_fault(rd,
                                           "config.json's 'per_layer_config' has '%s', which is "
                                           "not one of the %" PRIu32 " layers",
                                           shown(name ? name : "?").text, t->layers);
                } else if (json_kind(rd->from, at) != JSON_OBJECT) {
                        trait_reader_fault(
                                rd, "config.json's 'per_layer_config.%" PRIu32 "' is not an object",
                                layer);
                } else {
                        rd->root = at;
                        read_listed_layer(rd, t, &t->layer[layer]);
                        rd->root = root;
                }
        }
}

/* Layers without a window have other heads. */
static void read_heads(struct trait_reader *rd, struct traits *t, bool v_is_k)
{
        static const uint32_t usual = 512;
        bool has = trait_reader_take(rd, "per_layer_config");
        bool listed = has || rd->node != JSON_NONE; /* null: a list that names no layer */
        uint32_t head_dim, kv_heads = t->kv_heads;

        if (has)
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
        static const char *const locals[] = { "rope_parameters.sliding_attention.rope_type",
                                              "rope_parameters.sliding_attention.type", NULL };
        static const char *const types[] = { "rope_parameters.full_attention.rope_type",
                                             "rope_parameters.full_attention.type", NULL };
        const char *local = trait_reader_text(rd, trait_reader_first(rd, locals));
        const char *type = trait_reader_text(rd, trait_reader_first(rd, types));
        bool has = trait_reader_has(rd, "rope_parameters.full_attention");
        bool is_usual = has && (!type || !strcmp(type, "default"));
        bool shared = trait_reader_has(rd, "rope_parameters.full_attention.partial_rotary_factor");
        double share = trait_reader_real(rd, "rope_parameters.full_attention.partial_rotary_factor",
                                         0, 1, has ? &one : &quarter);
        struct rope_shape *rope = &t->ropes[0];

        for (uint32_t i = 0; i < t->layers; i++)
                if (!t->layer[i].window)
                        rope->dims = t->layer[i].head_dim ? t->layer[i].head_dim : t->head_dim;
        rope->still = 0;
        if (local && !strcmp(local, "proportional"))
                trait_reader_fault(rd, "config.json's 'rope_parameters.sliding_attention' "
                                       "is 'proportional', which is not supported yet");
        if (is_usual)
                return;
        if (type && strcmp(type, "proportional")) {
                if (shared)
                        trait_reader_fault(rd,
                                           "config.json's 'rope_parameters.full_attention' has a "
                                           "'partial_rotary_factor' and type '%s', which is not "
                                           "supported yet",
                                           shown(type).text);
                return;
        }
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
