#include "bridge/core/sampling.h"

#include <string.h>

#include <samovar/protocol.h>

#define TOP_K_MAX      1024
#define STOPS_MAX      16u
#define STOP_BYTES_MAX 256u
#define MIROSTAT_TAU   5 /* as in llama.cpp, if the request does not say */

static void set_float(float *to, double value, struct smv_generate *options, enum smv_set bit)
{
        *to = (float)value;
        options->set |= bit;
}

static void read_top_k(struct fields *fields, uint32_t object, struct smv_generate *options)
{
        int64_t top_k;

        if (!field_int(fields, object, "top_k", &top_k))
                return;
        if (top_k < -1 || top_k > TOP_K_MAX) {
                fields_fail(fields, FAILURE_REQUEST, "top_k",
                            "top_k is %lld; it may be 1 to %d, and 0 or -1 for all",
                            (long long)top_k, TOP_K_MAX);
                return;
        }
        options->top_k = top_k > 0 ? (uint32_t)top_k : 0;
        options->set |= SMV_SET_TOP_K;
}

/* Negative numbers, and a typical_p of 1, ask for nothing. */
static void read_cuts(struct fields *fields, uint32_t object, struct smv_generate *options)
{
        double value;

        if (field_real(fields, object, "top_n_sigma", -1e9, SMV_N_SIGMA_MAX, &value) && value > 0)
                options->n_sigma = (float)value;
        if (field_real(fields, object, "typical_p", 0, 1, &value) && value < 1)
                options->typical = (float)value;
        if (field_real(fields, object, "xtc_probability", 0, 1, &value))
                options->xtc_chance = (float)value;
        if (field_real(fields, object, "xtc_threshold", 0, 1, &value))
                set_float(&options->xtc_least, value, options, SMV_SET_XTC_LEAST);
        if (field_real(fields, object, "dynatemp_range", 0, SMV_TEMPERATURE_MAX, &value))
                options->temperature_range = (float)value;
        if (field_real(fields, object, "dynatemp_exponent", 0, SMV_EXPONENT_MAX, &value))
                set_float(&options->temperature_exponent, value, options,
                          SMV_SET_TEMPERATURE_EXPONENT);
}

/* As in llama.cpp, mirostat makes no other cut, whatever is asked. */
static void drop_cuts(struct smv_generate *options)
{
        options->set &=
                ~(unsigned)(SMV_SET_TOP_K | SMV_SET_TOP_P | SMV_SET_MIN_P | SMV_SET_XTC_LEAST);
        options->top_k = 0;
        options->top_p = options->min_p = options->n_sigma = options->typical = 0;
        options->xtc_chance = options->xtc_least = 0;
}

static void read_mirostat(struct fields *fields, uint32_t object, struct smv_generate *options)
{
        double tau = MIROSTAT_TAU, eta = 0;
        uint64_t version = 0;
        bool has_eta;

        field_uint(fields, object, "mirostat", 0, 2, &version);
        field_real(fields, object, "mirostat_tau", 0, SMV_MIROSTAT_TAU_MAX, &tau);
        has_eta = field_real(fields, object, "mirostat_eta", 0, SMV_MIROSTAT_ETA_MAX, &eta);
        if (version == 1)
                fields_fail(fields, FAILURE_UNSUPPORTED, "mirostat",
                            "mirostat is 1; the daemon has version 2 only");
        if (version != 2)
                return;
        drop_cuts(options);
        options->mirostat_tau = tau > 0 ? (float)tau : 1e-6f;
        if (has_eta)
                set_float(&options->mirostat_eta, eta, options, SMV_SET_MIROSTAT_ETA);
}

void sampling_limit_reasoning(int64_t tokens, struct smv_generate *options)
{
        if (tokens < 0)
                return;
        options->reasoning_max = tokens < UINT32_MAX ? (uint32_t)tokens : UINT32_MAX;
        options->set |= SMV_SET_REASONING_MAX;
}

static void read_reasoning(struct fields *fields, uint32_t object, struct smv_generate *options)
{
        static const char *const names[] = { "thinking_token_budget", "reasoning_budget",
                                             "reasoning_budget_tokens", "thinking_budget_tokens" };
        struct text message = { 0 };
        int64_t tokens;

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (field_int(fields, object, names[i], &tokens))
                        sampling_limit_reasoning(tokens, options);
        if (!field_text(fields, object, "reasoning_budget_message", &message) || !message.bytes)
                return;
        if (message.bytes > SMV_REASONING_END_MAX || memchr(message.at, 0, message.bytes))
                fields_fail(fields, FAILURE_REQUEST, "reasoning_budget_message",
                            "reasoning_budget_message has %zu bytes; it may have %u without NUL",
                            message.bytes, SMV_REASONING_END_MAX);
        if (options->set & SMV_SET_REASONING_MAX)
                options->reasoning_end = message.at;
}

/* Our own name, and those of llama.cpp and Ollama, by which more may be asked for. */
static void read_drafts(struct fields *fields, uint32_t object, struct smv_generate *options)
{
        uint64_t tokens;

        if (!field_uint(fields, object, "draft_tokens", 0, SMV_DRAFT_TOKENS_MAX, &tokens) &&
            !field_uint(fields, object, "speculative.n_max", 0, UINT32_MAX, &tokens) &&
            !field_uint(fields, object, "draft_num_predict", 0, UINT32_MAX, &tokens))
                return;
        options->draft_tokens =
                tokens < SMV_DRAFT_TOKENS_MAX ? (uint32_t)tokens : SMV_DRAFT_TOKENS_MAX;
        options->set |= SMV_SET_DRAFT_TOKENS;
}

void sampling_read(struct fields *fields, uint32_t object, double temperature_max,
                   struct smv_generate *options)
{
        bool ignore_eos = false;
        uint64_t keep_ms;
        double value;

        if (field_real(fields, object, "temperature", 0, temperature_max, &value))
                set_float(&options->temperature, value, options, SMV_SET_TEMPERATURE);
        if (field_real(fields, object, "top_p", 0, 1, &value))
                set_float(&options->top_p, value > 0 ? value : 1e-6, options, SMV_SET_TOP_P);
        if (field_real(fields, object, "min_p", 0, 1, &value))
                set_float(&options->min_p, value, options, SMV_SET_MIN_P);
        read_top_k(fields, object, options);
        read_cuts(fields, object, options);
        read_mirostat(fields, object, options);
        read_reasoning(fields, object, options);
        read_drafts(fields, object, options);
        if (field_bool(fields, object, "ignore_eos", &ignore_eos))
                options->ignore_eos = ignore_eos;
        /* run_keep_ms() takes it, when all of the request is known. */
        field_uint(fields, 0, "stream_keep_ms", 0, UINT32_MAX, &keep_ms);
}

void sampling_read_seed(struct fields *fields, uint32_t object, struct smv_generate *options)
{
        int64_t seed;

        if (!field_int(fields, object, "seed", &seed))
                return;
        options->seed = (uint64_t)seed;
        options->set |= SMV_SET_SEED;
}

void sampling_read_stops(struct fields *fields, struct arena *arena, uint32_t object,
                         const char *name, struct smv_generate *options)
{
        uint32_t node = field_of(fields, object, name), at = node;
        const char **stops;
        uint32_t count;

        if (fields->failed || node == JSON_NONE)
                return;
        count = json_kind(fields->json, node) == JSON_ARRAY ? json_count(fields->json, node) : 1;
        if (json_kind(fields->json, node) == JSON_ARRAY)
                at = json_first(fields->json, node);
        stops = arena_alloc(arena, (count + 1) * sizeof(*stops));
        for (uint32_t i = 0; stops && i < count; i++, at = json_next(fields->json, at)) {
                const char *stop = json_string(fields->json, at, NULL);

                if (!stop || strlen(stop) > STOP_BYTES_MAX) {
                        fields_fail(fields, FAILURE_REQUEST, name,
                                    "%s must be a string, or an array of strings, of 1 to %u "
                                    "bytes each without NUL",
                                    name, STOP_BYTES_MAX);
                        return;
                }
                if (*stop)
                        stops[options->stop_count++] = stop;
        }
        options->stops = stops;
        if (options->stop_count > STOPS_MAX)
                fields_fail(fields, FAILURE_REQUEST, name, "%s has %zu strings; at most %u", name,
                            options->stop_count, STOPS_MAX);
}

/* Numbers of any size are right, because clients send what they know of other models. */
bool sampling_read_length(struct fields *fields, uint32_t object, const char *name,
                          struct smv_generate *options)
{
        uint64_t length;

        if (!field_uint(fields, object, name, 1, UINT64_MAX, &length))
                return false;
        options->max_tokens = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
        return true;
}

void sampling_read_tier(struct fields *fields, struct smv_generate *options)
{
        static const struct {
                const char *word;
                enum smv_priority priority;
        } tiers[] = {
                { "auto", SMV_PRIORITY_NORMAL },          { "default", SMV_PRIORITY_NORMAL },
                { "standard_only", SMV_PRIORITY_NORMAL }, { "scale", SMV_PRIORITY_NORMAL },
                { "flex", SMV_PRIORITY_BACKGROUND },      { "priority", SMV_PRIORITY_INTERACTIVE },
                { "fast", SMV_PRIORITY_INTERACTIVE },
        };
        struct text tier = { 0 };

        if (!field_text(fields, 0, "service_tier", &tier))
                return;
        for (size_t i = 0; i < sizeof(tiers) / sizeof(*tiers); i++)
                if (text_is(tier, tiers[i].word)) {
                        options->priority = tiers[i].priority;
                        return;
                }
        fields_fail(fields, FAILURE_REQUEST, "service_tier",
                    "service_tier is %.40s; it may be auto, default, standard_only, scale, flex, "
                    "priority or fast",
                    tier.at);
}
