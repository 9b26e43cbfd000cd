#include "daemon/files/config-layers.h"

#include <inttypes.h>
#include <string.h>

#include "base/errtext.h"
#include "json/reader.h"

#define FROM_USUAL 28u /* max_window_layers, if absent */

/* ---- windows ---- */

/* One for each layer; false: the file has no such list. */
static bool read_types(struct trait_reader *rd, struct traits *t, uint32_t window)
{
        uint32_t list, layer = 0;

        if (!trait_reader_has(rd, "layer_types"))
                return false;
        list = rd->node;
        if (json_count(rd->from, list) != t->layers) {
                trait_reader_fault(
                        rd, "config.json's 'layer_types' are %" PRIu32 " for %" PRIu32 " layers",
                        json_count(rd->from, list), t->layers);
                return true;
        }
        for (uint32_t at = json_first(rd->from, list); at != JSON_NONE;
             at = json_next(rd->from, at), layer++) {
                const char *name = json_string(rd->from, at, NULL);

                if (name && !strcmp(name, "sliding_attention"))
                        t->layer[layer].window = window;
                else if (!name || (strcmp(name, "full_attention") && strcmp(name, "attention")))
                        trait_reader_fault(
                                rd,
                                "config.json's 'layer_types' have '%s', which is not supported yet",
                                shown(name ? name : "?").text);
        }
        return true;
}

/* "LLLG": which layers of a period have a window.  Otherwise each layer but the period's last. */
static void read_pattern(struct trait_reader *rd, struct traits *t, uint32_t period,
                         uint32_t window)
{
        const char *word = NULL;
        size_t letters = 0;

        if (trait_reader_take(rd, "sliding_window_pattern") &&
            json_kind(rd->from, rd->node) == JSON_STRING) {
                word = trait_reader_text(rd, "sliding_window_pattern");
                letters = strlen(word);
                if (!letters || strspn(word, "LG") != letters)
                        trait_reader_fault(
                                rd,
                                "config.json's 'sliding_window_pattern' is '%s', not made of L and "
                                "G",
                                shown(word).text);
        } else {
                period = trait_reader_whole(rd, "sliding_window_pattern", 1, LAYERS_MAX, &period);
        }
        for (uint32_t i = 0; i < t->layers && !rd->r; i++)
                if (word ? word[i % letters] == 'L' && i + 1 < t->layers : (i + 1) % period)
                        t->layer[i].window = window;
}

/* Qwen's: the layers from max_window_layers on. */
static void read_from(struct trait_reader *rd, struct traits *t, uint32_t window)
{
        static const uint32_t usual = FROM_USUAL;
        uint32_t from = trait_reader_whole(rd, "max_window_layers", 0, UINT32_MAX, &usual);

        for (uint32_t i = from; i < t->layers; i++)
                t->layer[i].window = window;
}

/* The size of windows; 0: no layer has one. */
static uint32_t read_window(struct trait_reader *rd, const struct config_family *family)
{
        bool has = trait_reader_has(rd, "sliding_window"), is_null = !has && rd->node != JSON_NONE;

        if (family->window == WINDOW_NEVER) {
                if (has)
                        trait_reader_fault(rd,
                                           "config.json's 'sliding_window' is not supported "
                                           "with '%s'",
                                           family->name);
                return 0;
        }
        if ((family->window == WINDOW_ON_REQUEST || family->window == WINDOW_LISTED) &&
            !trait_reader_flag(rd, "use_sliding_window", false))
                return 0;
        if (is_null || (!has && !family->window_usual))
                return 0;
        return trait_reader_whole(rd, "sliding_window", 1, CONTEXT_MAX, &family->window_usual);
}

void config_read_windows(struct trait_reader *rd, const struct config_family *family,
                         struct traits *t)
{
        uint32_t window = read_window(rd, family);

        if (family->window != WINDOW_ALWAYS && read_types(rd, t, window)) {
                (void)trait_reader_take(rd, "sliding_window_pattern"); /* the list says the same */
                return;
        }
        switch (window ? family->window : WINDOW_NEVER) {
        case WINDOW_NEVER:
                break;
        case WINDOW_ALWAYS:
                for (uint32_t i = 0; i < t->layers; i++)
                        t->layer[i].window = window;
                break;
        case WINDOW_ON_REQUEST:
                read_from(rd, t, window);
                break;
        case WINDOW_LISTED:
                trait_reader_fault(rd, "config.json's 'use_sliding_window' is true, and there are "
                                       "no 'layer_types'");
                break;
        case WINDOW_IN_TURNS:
                read_pattern(rd, t, family->period, window);
        }
}

/* ---- ropes ---- */

/* Keys of a rope that are read, or are known to have no effect. */
static const char *const rope_keys[] = {
        "rope_type",
        "type",
        "rope_theta",
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "beta_slow",
        "beta_fast",
        "mscale",
        "mscale_all_dim",
        "truncate",
        "attention_factor",
        "finetuned",
        "original_max_position_embeddings",
        "max_position_embeddings",
        "partial_rotary_factor",
        "short_factor",
        "long_factor",
        "llama_4_scaling_beta",
};

static bool is_known(const char *key)
{
        for (size_t i = 0; i < sizeof(rope_keys) / sizeof(*rope_keys); i++)
                if (!strcmp(key, rope_keys[i]))
                        return true;
        return false;
}

/* The object that has the keys of a rope; after this they are read as ".key". */
static void enter(struct trait_reader *rd, const char *name)
{
        uint32_t node;

        rd->prefix = name;
        if (!trait_reader_has(rd, name))
                return;
        node = rd->node;
        if (json_kind(rd->from, node) != JSON_OBJECT) {
                trait_reader_fault(rd, "config.json's '%s' is not an object", name);
                return;
        }
        for (uint32_t at = json_first(rd->from, node); at != JSON_NONE;
             at = json_next(rd->from, at)) {
                const char *key = json_key(rd->from, at, NULL);

                if (!key || !is_known(key))
                        trait_reader_fault(
                                rd, "config.json's '%s.%s' has a value that is not supported yet",
                                name, shown(key ? key : "?").text);
        }
}

/* `dynamic` stretches only texts that are longer than the context, which are not served. */
static enum rope_scaling read_scaling(struct trait_reader *rd, const struct config_family *family)
{
        static const struct {
                const char *name;
                enum rope_scaling scaling;
        } names[] = {
                { "default", ROPE_PLAIN }, { "dynamic", ROPE_PLAIN }, { "linear", ROPE_LINEAR },
                { "llama3", ROPE_LLAMA3 }, { "yarn", ROPE_YARN },     { "longrope", ROPE_LONG },
                { "su", ROPE_LONG },
        };
        const char *name =
                trait_reader_text(rd, trait_reader_has(rd, ".rope_type") ? ".rope_type" : ".type");

        if (name && !strcmp(name, "yarn") && !strcmp(family->type, "phi3"))
                return ROPE_LONG; /* so its first files say */
        if (name && !strcmp(name, "proportional") && !strcmp(family->type, "gemma4_text"))
                return ROPE_PLAIN; /* and some pairs stand still: config-gemma4.c */
        for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
                if (!strcmp(name, names[i].name))
                        return names[i].scaling;
        if (name)
                trait_reader_fault(rd, "config.json's '%s' is '%s', which is not supported yet",
                                   rd->key, shown(name).text);
        return ROPE_PLAIN;
}

/*
 * attention_factor is given, or follows from the factor.  DeepSeek's two mscales define a quotient;
 * if only one is given, it is ignored, as in transformers.
 */
static double read_attention(struct trait_reader *rd, double factor)
{
        static const double none = 0;
        double mscale = trait_reader_real(rd, ".mscale", 0, ATTENTION_MAX, &none);
        double all = trait_reader_real(rd, ".mscale_all_dim", 0, ATTENTION_MAX, &none);
        double usual = rope_attention(factor, 1);

        if (mscale > 0 && all > 0)
                usual = rope_attention(factor, mscale) / rope_attention(factor, all);
        return trait_reader_real(rd, ".attention_factor", ATTENTION_MIN, ATTENTION_MAX, &usual);
}

static void read_factors(struct trait_reader *rd, const char *key, uint32_t pairs, float *ret)
{
        uint32_t count, i = 0;
        double factor;

        if (!trait_reader_has(rd, key)) {
                trait_reader_fault(rd, "config.json's '%s' is missing", rd->key);
                return;
        }
        count = json_count(rd->from, rd->node);
        if (json_kind(rd->from, rd->node) != JSON_ARRAY || count != pairs ||
            pairs > ROPE_PAIRS_MAX) {
                trait_reader_fault(rd, "config.json's '%s' has %" PRIu32 " numbers, not %" PRIu32,
                                   rd->key, count, pairs);
                return;
        }
        for (uint32_t at = json_first(rd->from, rd->node); at != JSON_NONE;
             at = json_next(rd->from, at)) {
                if (!json_real(rd->from, at, &factor) || !(factor > 0 && factor <= STRETCH_MAX))
                        trait_reader_fault(rd,
                                           "config.json's '%s' has a number that is not above 0 "
                                           "and at most %g",
                                           rd->key, STRETCH_MAX);
                else
                        ret[i++] = (float)factor;
        }
}

/*
 * The trained positions are among the model's sizes, or beside the tables.  Phi-3's code reads the
 * former alone, and transformers prefers them.
 */
static void read_long(struct trait_reader *rd, struct traits *t, struct rope_shape *rope)
{
        double context = t->context, stretch;

        context = trait_reader_real(rd, ".original_max_position_embeddings", 1, CONTEXT_MAX,
                                    &context);
        rope->trained =
                trait_reader_real(rd, "original_max_position_embeddings", 1, CONTEXT_MAX, &context);
        stretch = t->context / rope->trained;
        rope->factor = trait_reader_real(rd, ".factor", 0, STRETCH_MAX, &stretch);
        context = rope_long_attention(rope->factor, rope->trained);
        rope->attention =
                trait_reader_real(rd, ".attention_factor", ATTENTION_MIN, ATTENTION_MAX, &context);
        read_factors(rd, ".short_factor", rope->dims / 2, rope->slower[0]);
        read_factors(rd, ".long_factor", rope->dims / 2, rope->slower[1]);
}

/* Ministral 3: the scale of q grows with the position. */
static void read_query_scale(struct trait_reader *rd, struct traits *t)
{
        static const double none = 0;

        t->query_beta = (float)trait_reader_real(rd, ".llama_4_scaling_beta", 0, SCALE_MAX, &none);
        if (t->query_beta > 0)
                t->query_length = trait_reader_whole(rd, ".original_max_position_embeddings", 1,
                                                     CONTEXT_MAX, NULL);
}

static void read_by_parts(struct trait_reader *rd, struct traits *t, struct rope_shape *rope)
{
        static const double slow = 1, fast = 32;
        double context = t->context, stretch;
        bool by_parts = rope->scaling != ROPE_LINEAR;

        rope->trained = by_parts ? trait_reader_real(rd, ".original_max_position_embeddings", 1,
                                                     CONTEXT_MAX, &context)
                                 : context;
        stretch = context / rope->trained;
        rope->factor =
                trait_reader_real(rd, ".factor", 1, STRETCH_MAX,
                                  rope->scaling == ROPE_YARN && stretch >= 1 ? &stretch : NULL);
        if (rope->scaling == ROPE_LLAMA3) {
                rope->low = trait_reader_real(rd, ".low_freq_factor", TURNS_MIN, TURNS_MAX, NULL);
                rope->high = trait_reader_real(rd, ".high_freq_factor", TURNS_MIN, TURNS_MAX, NULL);
        } else if (rope->scaling == ROPE_YARN) {
                rope->low = trait_reader_real(rd, ".beta_slow", TURNS_MIN, TURNS_MAX, &slow);
                rope->high = trait_reader_real(rd, ".beta_fast", TURNS_MIN, TURNS_MAX, &fast);
                rope->whole = trait_reader_flag(rd, ".truncate", true);
                rope->attention = read_attention(rd, rope->factor);
                read_query_scale(rd, t);
        }
}

/* How many numbers of a head rotate: a share of them. */
static uint32_t read_dims(struct trait_reader *rd, const struct config_family *family,
                          const struct traits *t)
{
        static const char *const keys[] = { ".partial_rotary_factor", "partial_rotary_factor",
                                            "rotary_pct", "rope_pct", NULL };
        double share = family->rope_share > 0 ? family->rope_share : 1;

        share = trait_reader_real(rd, trait_reader_first(rd, keys), 0, 1, &share);
        return (uint32_t)(t->head_dim * share);
}

static void read_rope(struct trait_reader *rd, const struct config_family *family, struct traits *t,
                      struct rope_shape *rope, double base)
{
        *rope = (struct rope_shape){ .pairing = family->adjacent ? ROPE_ADJACENT : ROPE_HALVES,
                                     .attention = 1 };
        rope->dims = read_dims(rd, family, t);
        rope->base = trait_reader_real(rd, ".rope_theta", 1, ROPE_BASE_MAX, &base);
        rope->scaling = read_scaling(rd, family);
        if (rope->scaling == ROPE_LONG)
                read_long(rd, t, rope);
        else if (rope->scaling != ROPE_PLAIN)
                read_by_parts(rd, t, rope);
}

/* The rope of layers with a window, where the file does not say it by layer types. */
static void make_local(struct trait_reader *rd, const struct config_family *family,
                       struct traits *t)
{
        double base = family->local_base > 0 ? family->local_base : t->ropes[0].base;

        rd->prefix = "";
        t->ropes[1] = (struct rope_shape){
                .pairing = family->adjacent ? ROPE_ADJACENT : ROPE_HALVES,
                .attention = 1,
                .dims = t->ropes[0].dims,
                .base = trait_reader_real(rd, "rope_local_base_freq", 1, ROPE_BASE_MAX, &base),
        };
}

static void read_sets(struct trait_reader *rd, const struct config_family *family, struct traits *t)
{
        static const char *const bases[] = { "rope_theta", "rotary_emb_base", NULL };
        double base = family->rope_base > 0 ? family->rope_base : 10000;
        bool newer = trait_reader_has(rd, "rope_parameters"),
             older = trait_reader_has(rd, "rope_scaling"),
             by_type = family->ropes == ROPES_TWO &&
                       trait_reader_has(rd, "rope_parameters.full_attention");

        if (newer && older)
                trait_reader_fault(rd, "config.json has both 'rope_parameters' and 'rope_scaling'");
        base = trait_reader_real(rd, trait_reader_first(rd, bases), 1, ROPE_BASE_MAX, &base);
        enter(rd, by_type ? "rope_parameters.full_attention"
                  : older ? "rope_scaling"
                          : "rope_parameters");
        read_rope(rd, family, t, &t->ropes[0], base);
        t->rope_count = 1;
        if (family->ropes != ROPES_TWO)
                return;
        t->rope_count = 2;
        if (!trait_reader_has(rd, "rope_parameters.sliding_attention")) {
                make_local(rd, family, t);
                return;
        }
        enter(rd, "rope_parameters.sliding_attention");
        read_rope(rd, family, t, &t->ropes[1],
                  family->local_base > 0 ? family->local_base : t->ropes[0].base);
}

/* SmolLM3: a list of 1 for layers that rotate, or each `interval`-th layer does not. */
static void read_rope_list(struct trait_reader *rd, struct traits *t)
{
        static const uint32_t four = 4;
        uint32_t interval = trait_reader_whole(rd, "no_rope_layer_interval", 1, LAYERS_MAX, &four);
        uint32_t layer = 0;
        bool has = trait_reader_take(rd, "no_rope_layers");
        uint32_t list = rd->node;

        if (has && json_count(rd->from, list) != t->layers) {
                trait_reader_fault(
                        rd, "config.json's 'no_rope_layers' are %" PRIu32 " for %" PRIu32 " layers",
                        json_count(rd->from, list), t->layers);
                return;
        }
        for (uint32_t i = 0; !has && i < t->layers; i++)
                if ((i + 1) % interval == 0)
                        t->layer[i].rope = TRAITS_NO_ROPE;
        for (uint32_t at = has ? json_first(rd->from, list) : JSON_NONE; at != JSON_NONE;
             at = json_next(rd->from, at), layer++) {
                uint64_t turns;

                if (!json_whole(rd->from, at, &turns) || turns > 1)
                        trait_reader_fault(rd, "config.json's 'no_rope_layers' has a value other "
                                               "than 0 and 1");
                else if (!turns)
                        t->layer[layer].rope = TRAITS_NO_ROPE;
        }
}

static bool any_window(const struct traits *t)
{
        for (uint32_t i = 0; i < t->layers; i++)
                if (t->layer[i].window)
                        return true;
        return false;
}

void config_read_ropes(struct trait_reader *rd, const struct config_family *family,
                       struct traits *t)
{
        bool windows = any_window(t);

        if (family->ropes == ROPES_NOWHERE) {
                for (uint32_t i = 0; i < t->layers; i++)
                        t->layer[i].rope = TRAITS_NO_ROPE;
                return;
        }
        read_sets(rd, family, t);
        for (uint32_t i = 0; i < t->layers; i++) {
                bool windowed = t->layer[i].window;

                if (family->ropes == ROPES_TWO)
                        t->layer[i].rope = windowed;
                else if (family->ropes == ROPES_WITH_WINDOWS && windows && !windowed)
                        t->layer[i].rope = TRAITS_NO_ROPE;
        }
        if (family->ropes == ROPES_LISTED)
                read_rope_list(rd, t);
}
