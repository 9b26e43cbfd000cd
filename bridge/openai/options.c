#include "bridge/openai/options.h"

#include <samovar/protocol.h>

#include "bridge/core/constraint.h"
#include "bridge/core/sampling.h"

#define OPENAI_TEMPERATURE_MAX 2

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
        refuse(fields);
        sampling_read(fields, 0, OPENAI_TEMPERATURE_MAX, options);
        read_stop_tokens(call, fields, options);
        constraint_read_extras(call, fields, options);
}

const char *openai_tier(const struct smv_generate *options)
{
        if (options->priority == SMV_PRIORITY_BACKGROUND)
                return "flex";
        return options->priority == SMV_PRIORITY_INTERACTIVE ? "priority" : "default";
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
        openai_read_sampling(call, fields, options);
        sampling_read_stops(fields, &call->arena, 0, "stop", options);
        read_count(fields, options);
        sampling_read_tier(fields, options);
        sampling_read_seed(fields, 0, options);
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
