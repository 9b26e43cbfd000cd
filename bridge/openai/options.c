#include "bridge/openai/options.h"

#include <string.h>

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

/* The bytes of all texts of a list of parts; copies them to `to`, if it is not NULL. */
static size_t join_parts(struct fields *fields, uint32_t list, char *to)
{
        size_t bytes = 0;

        for (uint32_t at = json_first(fields->json, list); at != JSON_NONE;
             at = json_next(fields->json, at)) {
                struct text kind = text_of(fields->json, json_member(fields->json, at, "type"));
                struct text text = text_of(fields->json, json_member(fields->json, at, "text"));

                if (!text_is(kind, "text") || !text.at) {
                        fields_fail(fields, FAILURE_REQUEST, "prediction",
                                    "a part of prediction.content must be of the type text, with a "
                                    "text");
                        return 0;
                }
                if (to)
                        memcpy(to + bytes, text.at, text.bytes);
                bytes += text.bytes;
        }
        return bytes;
}

/* {"type": "content", "content": a text, or a list of parts} */
static struct text read_prediction(struct call *call, struct fields *fields)
{
        uint32_t object = field_object(fields, 0, "prediction"), content;
        struct text text;
        char *to;

        if (object == JSON_NONE)
                return (struct text){ 0 };
        if (!text_is(text_of(fields->json, json_member(fields->json, object, "type")), "content"))
                fields_fail(fields, FAILURE_REQUEST, "prediction.type",
                            "prediction.type must be content");
        content = json_member(fields->json, object, "content");
        text = text_of(fields->json, content);
        if (text.at)
                return text;
        if (json_kind(fields->json, content) != JSON_ARRAY) {
                fields_fail(fields, FAILURE_REQUEST, "prediction.content",
                            "prediction.content must be a text or a list of parts");
                return (struct text){ 0 };
        }
        text.bytes = join_parts(fields, content, NULL);
        to = arena_alloc(&call->arena, text.bytes + 1);
        if (to)
                join_parts(fields, content, to);
        text.at = to;
        return text;
}

static void use_prediction(struct call *call, struct fields *fields, struct smv_generate *options)
{
        struct text text = read_prediction(call, fields);

        if (text.bytes > SMV_PREDICTION_BYTES_MAX)
                fields_fail(fields, FAILURE_REQUEST, "prediction.content",
                            "prediction.content has %zu bytes; it may have %u", text.bytes,
                            SMV_PREDICTION_BYTES_MAX);
        if (!text.at || !text.bytes)
                return;
        options->prediction = text.at;
        options->prediction_bytes = text.bytes;
}

void openai_read_options(struct call *call, struct fields *fields, struct smv_generate *options)
{
        openai_read_sampling(call, fields, options);
        sampling_read_stops(fields, &call->arena, 0, "stop", options);
        read_count(fields, options);
        use_prediction(call, fields, options);
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
