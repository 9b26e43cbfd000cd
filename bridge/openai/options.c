#include "bridge/openai/options.h"

#include <samovar/protocol.h>
#include <string.h>

#include "bridge/core/bridge.h"

#define NO_SAMPLER "the daemon does not have this sampler yet"
#define NO_GRAMMAR "the daemon cannot constrain its output yet"

/* Fields of requests that known programs send, and that would change the answer. */
static const struct {
        const char *name, *why;
} refused[] = {
        { "frequency_penalty", NO_SAMPLER },
        { "presence_penalty", NO_SAMPLER },
        { "logit_bias", NO_SAMPLER },
        { "min_tokens", NO_SAMPLER },
        { "bad_words", NO_SAMPLER },
        { "allowed_token_ids", NO_SAMPLER },
        { "use_beam_search", "the library has beam search" },
        { "grammar", NO_GRAMMAR },
        { "json_schema", NO_GRAMMAR },
        { "guided_json", NO_GRAMMAR },
        { "guided_regex", NO_GRAMMAR },
        { "guided_choice", NO_GRAMMAR },
        { "guided_grammar", NO_GRAMMAR },
        { "structured_outputs", NO_GRAMMAR },
};

static void refuse(struct fields *fields)
{
        double penalty = 1;

        for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
                field_refuse(fields, 0, refused[i].name, refused[i].why);
        if (field_real(fields, 0, "repetition_penalty", 0, 1e9, &penalty) && penalty != 1)
                fields_fail(fields, FAILURE_UNSUPPORTED, "repetition_penalty",
                            "repetition_penalty is not supported: " NO_SAMPLER);
}

static void set_float(float *to, double value, struct smv_generate *options, enum smv_set bit)
{
        *to = (float)value;
        options->set |= bit;
}

static void read_top_k(struct fields *fields, struct smv_generate *options)
{
        int64_t top_k;

        if (!field_int(fields, 0, "top_k", &top_k))
                return;
        if (top_k < -1 || top_k > 1024) {
                fields_fail(fields, FAILURE_REQUEST, "top_k",
                            "top_k is %lld; it may be 1 to 1024, and 0 or -1 for all",
                            (long long)top_k);
                return;
        }
        options->top_k = top_k > 0 ? (uint32_t)top_k : 0;
        options->set |= SMV_SET_TOP_K;
}

static void read_stops(struct call *call, struct fields *fields, struct smv_generate *options)
{
        uint32_t node = field_of(fields, 0, "stop"), at = node;
        const char **stops;
        uint32_t count;

        if (fields->failed || node == JSON_NONE)
                return;
        count = json_kind(fields->json, node) == JSON_STRING ? 1 : json_count(fields->json, node);
        if (json_kind(fields->json, node) == JSON_ARRAY)
                at = json_first(fields->json, node);
        stops = arena_alloc(&call->arena, (count + 1) * sizeof(*stops));
        for (uint32_t i = 0; stops && i < count; i++, at = json_next(fields->json, at)) {
                const char *stop = json_string(fields->json, at, NULL);

                if (!stop || strlen(stop) > 256) {
                        fields_fail(fields, FAILURE_REQUEST, "stop",
                                    "stop must be a string, or an array of strings, of 1 to 256 "
                                    "bytes each without NUL");
                        return;
                }
                if (*stop)
                        stops[options->stop_count++] = stop;
        }
        options->stops = stops;
        if (options->stop_count > 16)
                fields_fail(fields, FAILURE_REQUEST, "stop", "stop has %zu strings; at most 16",
                            options->stop_count);
}

static void read_stop_tokens(struct call *call, struct fields *fields, struct smv_generate *options)
{
        uint32_t node = field_array(fields, 0, "stop_token_ids");
        uint32_t count = json_count(fields->json, node), at = json_first(fields->json, node);
        uint32_t *tokens = arena_alloc(&call->arena, (count + 1) * sizeof(*tokens));
        uint64_t id;

        for (uint32_t i = 0; tokens && i < count; i++, at = json_next(fields->json, at)) {
                if (!json_whole(fields->json, at, &id) || id > UINT32_MAX) {
                        fields_fail(fields, FAILURE_REQUEST, "stop_token_ids",
                                    "stop_token_ids must be an array of token ids");
                        return;
                }
                tokens[i] = (uint32_t)id;
        }
        options->stop_tokens = tokens;
        options->stop_token_count = tokens ? count : 0;
}

void openai_read_sampling(struct call *call, struct fields *fields, struct smv_generate *options)
{
        bool ignore_eos = false;
        double value;

        refuse(fields);
        if (field_real(fields, 0, "temperature", 0, 2, &value))
                set_float(&options->temperature, value, options, SMV_SET_TEMPERATURE);
        if (field_real(fields, 0, "top_p", 0, 1, &value))
                set_float(&options->top_p, value > 0 ? value : 1e-6, options, SMV_SET_TOP_P);
        if (field_real(fields, 0, "min_p", 0, 1, &value))
                set_float(&options->min_p, value, options, SMV_SET_MIN_P);
        read_top_k(fields, options);
        if (field_bool(fields, 0, "ignore_eos", &ignore_eos))
                options->ignore_eos = ignore_eos;
        read_stop_tokens(call, fields, options);
}

void openai_read_class(struct fields *fields, struct smv_generate *options)
{
        struct text tier = { 0 };

        if (!field_text(fields, 0, "service_tier", &tier))
                return;
        if (text_is(tier, "flex"))
                options->priority = SMV_PRIORITY_BACKGROUND;
        else if (text_is(tier, "priority") || text_is(tier, "fast"))
                options->priority = SMV_PRIORITY_INTERACTIVE;
        else if (!text_is(tier, "auto") && !text_is(tier, "default") && !text_is(tier, "scale"))
                fields_fail(fields, FAILURE_REQUEST, "service_tier",
                            "service_tier is %.40s; it may be auto, default, flex, scale, "
                            "priority or fast",
                            tier.at);
}

const char *openai_tier(const struct smv_generate *options)
{
        if (options->priority == SMV_PRIORITY_BACKGROUND)
                return "flex";
        return options->priority == SMV_PRIORITY_INTERACTIVE ? "priority" : "default";
}

/* Numbers of any size are right, because clients send what they know of other models. */
bool openai_read_length(struct fields *fields, const char *name, struct smv_generate *options)
{
        uint64_t length;

        if (!field_uint(fields, 0, name, 1, UINT64_MAX, &length))
                return false;
        options->max_tokens = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
        return true;
}

static void read_count(struct fields *fields, struct smv_generate *options)
{
        uint64_t n = 1, best_of = 1;

        field_uint(fields, 0, "n", 1, SMV_SAMPLES_MAX, &n);
        options->n = (uint32_t)n;
        if (field_uint(fields, 0, "best_of", 0, UINT64_MAX, &best_of) && best_of > n)
                fields_fail(fields, FAILURE_UNSUPPORTED, "best_of",
                            "best_of is %llu, which is more than n; the bridge returns every "
                            "answer that it asks for",
                            (unsigned long long)best_of);
}

void openai_read_options(struct call *call, struct fields *fields, struct smv_generate *options)
{
        int64_t seed;

        openai_read_sampling(call, fields, options);
        read_stops(call, fields, options);
        read_count(fields, options);
        openai_read_class(fields, options);
        if (field_int(fields, 0, "seed", &seed)) {
                options->seed = (uint64_t)seed;
                options->set |= SMV_SET_SEED;
        }
}

struct openai_stream openai_read_stream(struct fields *fields)
{
        struct openai_stream stream = { 0 };
        uint32_t options;

        field_bool(fields, 0, "stream", &stream.stream);
        options = field_object(fields, 0, "stream_options");
        if (options != JSON_NONE)
                field_bool(fields, options, "include_usage", &stream.usage);
        return stream;
}
