#include "bridge/openai/options.h"

#include <samovar/protocol.h>

#include "bridge/core/constraint.h"
#include "bridge/core/penalties.h"
#include "bridge/core/sampling.h"

#define OPENAI_TEMPERATURE_MAX 2
#define OPENAI_PENALTY_MAX     2

/* Fields of requests that known programs send, and that would change the answer. */
static const struct {
        const char *name, *why;
} refused[] = {
        { "use_beam_search", "the library has beam search" },
};

void openai_read_sampling(struct call *call, struct fields *fields, struct smv_generate *options)
{
        for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
                field_refuse(fields, 0, refused[i].name, refused[i].why);
        sampling_read(fields, 0, OPENAI_TEMPERATURE_MAX, options);
        penalties_read(fields, &call->arena, 0, OPENAI_PENALTY_MAX, options);
        options->stop_tokens = fields_tokens(fields, &call->arena, 0, "stop_token_ids",
                                             &options->stop_token_count);
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
