#include "bridge/core/penalties.h"

#include <stdlib.h>
#include <string.h>

#include <samovar/protocol.h>

#define REPEAT_LAST_N 64 /* llama.cpp's default */
#define BIAS_MAX      100

static void read_penalty(struct fields *fields, uint32_t object, const char *name, double most,
                         float *to)
{
        double value;

        if (field_real(fields, object, name, -most, most, &value))
                *to = (float)value;
}

/* A factor; 0 would be none. */
static bool read_factor(struct fields *fields, uint32_t object, const char *name, float *to)
{
        double value;

        if (!field_real(fields, object, name, 0, SMV_PENALTY_MAX, &value))
                return false;
        if ((float)value <= 0)
                fields_fail(fields, FAILURE_REQUEST, name, "%s is %g; it must be above 0", name,
                            value);
        *to = (float)value;
        return true;
}

/* llama.cpp's windows: -1 is as far as possible, and 0 switches the penalty off. */
static bool read_window(struct fields *fields, uint32_t object, const char *name, uint32_t *to)
{
        int64_t window;

        if (!field_int(fields, object, name, &window))
                return true;
        if (window < -1 || window > (int64_t)SMV_WINDOW_MAX)
                fields_fail(fields, FAILURE_REQUEST, name,
                            "%s is %lld; it may be 0 to %u, and -1 for %u", name, (long long)window,
                            SMV_WINDOW_MAX, SMV_WINDOW_MAX);
        *to = window > 0 ? (uint32_t)window : SMV_WINDOW_MAX;
        return window != 0;
}

static void read_repetition(struct fields *fields, uint32_t object, struct smv_generate *options)
{
        bool is_known =
                read_factor(fields, object, "repetition_penalty", &options->repetition_penalty);
        uint32_t window = REPEAT_LAST_N;
        float factor;

        if (!read_factor(fields, object, "repeat_penalty", &factor))
                return;
        if (is_known && options->repetition_penalty != factor) {
                fields_fail(fields, FAILURE_REQUEST, "repeat_penalty",
                            "repeat_penalty and repetition_penalty are given; give only one of "
                            "them");
                return;
        }
        options->repetition_penalty =
                read_window(fields, object, "repeat_last_n", &window) ? factor : 1;
        options->repeat_window = window;
}

static const char *const *read_texts(struct fields *fields, struct arena *arena, uint32_t object,
                                     const char *name, uint32_t most, size_t *ret_count)
{
        uint32_t node = field_array(fields, object, name), count = json_count(fields->json, node);
        uint32_t at = json_first(fields->json, node);
        const char **texts = arena_alloc(arena, (count + 1) * sizeof(*texts));

        if (count > most)
                fields_fail(fields, FAILURE_REQUEST, name, "%s has %u texts; at most %u", name,
                            count, most);
        for (uint32_t i = 0; texts && i < count && !fields->failed;
             i++, at = json_next(fields->json, at)) {
                texts[i] = json_string(fields->json, at, NULL);
                if (!texts[i] || !*texts[i] || strlen(texts[i]) > SMV_STOP_BYTES_MAX)
                        fields_fail(fields, FAILURE_REQUEST, name,
                                    "%s must be an array of strings of 1 to %u bytes each "
                                    "without NUL",
                                    name, SMV_STOP_BYTES_MAX);
        }
        *ret_count = texts && !fields->failed ? count : 0;
        return texts;
}

static void read_dry(struct fields *fields, struct arena *arena, uint32_t object,
                     struct smv_generate *options)
{
        uint64_t allowed;
        double multiplier;

        if (field_real(fields, object, "dry_multiplier", 0, SMV_PENALTY_MAX, &multiplier))
                options->dry_multiplier = (float)multiplier;
        read_factor(fields, object, "dry_base", &options->dry_base);
        if (field_uint(fields, object, "dry_allowed_length", 1, SMV_WINDOW_MAX, &allowed))
                options->dry_allowed = (uint32_t)allowed;
        if (!read_window(fields, object, "dry_penalty_last_n", &options->dry_window))
                options->dry_multiplier = 0;
        if (field_array(fields, object, "dry_sequence_breakers") == JSON_NONE)
                return;
        options->dry_breakers = read_texts(fields, arena, object, "dry_sequence_breakers",
                                           SMV_BREAKERS_MAX, &options->dry_breaker_count);
        options->set |= SMV_SET_DRY_BREAKERS;
}

/* OpenAI's object: its keys are ids. */
static void read_biases(struct fields *fields, struct arena *arena, uint32_t object,
                        struct smv_generate *options)
{
        uint32_t node = field_object(fields, object, "logit_bias");
        uint32_t count = json_count(fields->json, node), at = json_first(fields->json, node);
        struct smv_bias *biases = arena_alloc(arena, (count + 1) * sizeof(*biases));

        for (uint32_t i = 0; biases && i < count; i++, at = json_next(fields->json, at)) {
                const char *key = json_key(fields->json, at, NULL);
                char *end;
                unsigned long id = strtoul(key, &end, 10);
                double bias;

                if (*key < '0' || *key > '9' || *end || id > UINT32_MAX ||
                    !json_real(fields->json, at, &bias) || bias < -BIAS_MAX || bias > BIAS_MAX) {
                        fields_fail(fields, FAILURE_REQUEST, "logit_bias",
                                    "logit_bias must have token ids as keys, and numbers from %d "
                                    "to %d",
                                    -BIAS_MAX, BIAS_MAX);
                        return;
                }
                biases[i] = (struct smv_bias){ .token = (uint32_t)id, .bias = (float)bias };
        }
        if (count > SMV_BIASES_MAX)
                fields_fail(fields, FAILURE_REQUEST, "logit_bias",
                            "logit_bias has %u tokens; at most %u", count, SMV_BIASES_MAX);
        options->biases = biases;
        options->bias_count = biases ? count : 0;
}

const uint32_t *fields_tokens(struct fields *fields, struct arena *arena, uint32_t object,
                              const char *name, size_t *ret_count)
{
        uint32_t node = field_array(fields, object, name), count = json_count(fields->json, node);
        uint32_t at = json_first(fields->json, node);
        uint32_t *tokens = arena_alloc(arena, (count + 1) * sizeof(*tokens));
        uint64_t id;

        *ret_count = 0;
        for (uint32_t i = 0; tokens && i < count; i++, at = json_next(fields->json, at)) {
                if (!json_whole(fields->json, at, &id) || id > UINT32_MAX) {
                        fields_fail(fields, FAILURE_REQUEST, name,
                                    "%s must be an array of token ids", name);
                        return NULL;
                }
                tokens[i] = (uint32_t)id;
        }
        *ret_count = tokens ? count : 0;
        return *ret_count ? tokens : NULL;
}

void penalties_read(struct fields *fields, struct arena *arena, uint32_t object, double most,
                    struct smv_generate *options)
{
        uint64_t number;

        read_penalty(fields, object, "presence_penalty", most, &options->presence_penalty);
        read_penalty(fields, object, "frequency_penalty", most, &options->frequency_penalty);
        read_repetition(fields, object, options);
        read_dry(fields, arena, object, options);
        if (field_uint(fields, object, "no_repeat_ngram_size", 0, SMV_NGRAM_MAX, &number))
                options->no_repeat_ngram = (uint32_t)number;
        if (field_uint(fields, object, "min_tokens", 0, UINT32_MAX, &number))
                options->min_tokens = (uint32_t)number;
        read_biases(fields, arena, object, options);
        options->allowed_tokens = fields_tokens(fields, arena, object, "allowed_token_ids",
                                                &options->allowed_token_count);
        options->banned_texts = read_texts(fields, arena, object, "bad_words", SMV_BANNED_TEXTS_MAX,
                                           &options->banned_text_count);
}
