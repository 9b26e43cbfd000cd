#include "bridge/openai/writing.h"

#include <errno.h>
#include <stdio.h>

#define NS_PER_MS 1e6
#define NS_PER_S  1e9

void openai_put_usage(struct json_builder *to, const struct run *run)
{
        struct run_usage usage = run_usage(run);

        json_put_key(to, "usage");
        json_put_object(to);
        json_put_key_uint(to, "prompt_tokens", usage.prompt);
        json_put_key_uint(to, "completion_tokens", usage.output);
        json_put_key_uint(to, "total_tokens", usage.prompt + usage.output);
        json_put_key(to, "prompt_tokens_details");
        json_put_object(to);
        json_put_key_uint(to, "cached_tokens", usage.cached);
        json_put_object_end(to);
        json_put_key(to, "completion_tokens_details");
        json_put_object(to);
        json_put_key_uint(to, "reasoning_tokens", usage.reasoning);
        json_put_key_uint(to, "accepted_prediction_tokens", usage.predictions_right);
        json_put_key_uint(to, "rejected_prediction_tokens",
                          usage.predicted - usage.predictions_right);
        json_put_object_end(to);
        json_put_object_end(to);
}

static void put_rate(struct json_builder *to, const char *key, uint64_t count, uint64_t ns)
{
        json_put_key(to, key);
        json_put_float(to, ns ? (double)count * NS_PER_S / (double)ns : 0);
}

static void put_ms(struct json_builder *to, const char *key, uint64_t ns)
{
        json_put_key(to, key);
        json_put_float(to, (double)ns / NS_PER_MS);
}

void openai_put_timings(struct json_builder *to, const struct run *run)
{
        struct run_usage usage = run_usage(run);
        uint64_t computed = usage.prompt > usage.cached ? usage.prompt - usage.cached : 0;
        enum miss_reason reason;

        json_put_key(to, "timings");
        json_put_object(to);
        json_put_key_uint(to, "cache_n", usage.cached);
        json_put_key_uint(to, "prompt_n", computed);
        put_ms(to, "prompt_ms", usage.prefill_ns);
        put_rate(to, "prompt_per_second", computed, usage.prefill_ns);
        json_put_key_uint(to, "predicted_n", usage.output);
        put_ms(to, "predicted_ms", usage.decode_ns);
        put_rate(to, "predicted_per_second", usage.output, usage.decode_ns);
        put_ms(to, "queued_ms", usage.queued_ns);
        if (usage.drafted) {
                json_put_key_uint(to, "draft_n", usage.drafted);
                json_put_key_uint(to, "draft_n_accepted", usage.drafts_right);
        }
        if (run_miss(run, &reason))
                json_put_key_word(to, "cache_miss", metrics_miss_word(reason));
        json_put_object_end(to);
}

/* A fingerprint of what decides the tokens besides the seed: the model. */
static void put_fingerprint(struct json_builder *to, const struct call *call)
{
        struct smv_model model = { SMV_SIZE(smv_model) };
        char text[32] = "samovar";

        if (link_client(call->link) && !smv_model(link_client(call->link), 0, &model) &&
            model.digest)
                snprintf(text, sizeof(text), "fp_%.10s", model.digest);
        json_put_key_word(to, "system_fingerprint", text);
}

/* Its members, without braces. */
static const char *render_head(struct call *call, const struct openai_head *head)
{
        struct bytes bytes = { 0 };
        struct json_builder to = json_build(&bytes);
        struct text text = { 0 };

        json_put_key_word(&to, "id", head->id);
        json_put_key_word(&to, "object", head->object);
        json_put_key_uint(&to, "created", head->created_s);
        json_put_key_text(&to, "model", head->model.at, head->model.bytes);
        put_fingerprint(&to, call);
        if (head->tier)
                json_put_key_word(&to, "service_tier", head->tier);
        if (!json_put_end(&to))
                text = arena_copy(&call->arena, bytes.at, bytes.count);
        bytes_deinit(&bytes);
        return text.at;
}

void openai_put_head(struct json_builder *to, struct call *call, struct openai_head *head)
{
        if (!head->rendered)
                head->rendered = render_head(call, head);
        json_put_object(to);
        if (head->rendered)
                json_put_raw(to, head->rendered);
        else
                to->out.result = -ENOMEM;
}
