/* Copies, checks and sends the options that a generate shares with other requests. */
#include "client/options.h"

#include <errno.h>
#include <string.h>

void client_put_model(struct codec_writer *writer, const char *model)
{
        if (model)
                codec_put_text(writer, "model", model, strlen(model));
}

int client_check_priority(struct smv_client *client, enum smv_priority priority)
{
        if ((unsigned)priority <= SMV_PRIORITY_BACKGROUND)
                return 0;
        return client_refuse(client, -EINVAL, "priority", "priority is %u; it may be 0 to %u",
                             (unsigned)priority, (unsigned)SMV_PRIORITY_BACKGROUND);
}

int client_check_set(struct smv_client *client, unsigned set)
{
        const unsigned known = 2 * SMV_SET_DRAFT_TOKENS - 1;

        if (!(set & ~known))
                return 0;
        return client_refuse(client, -EINVAL, "set",
                             "set has the bits 0x%x, which this library has not", set & ~known);
}

static int check_messages(struct smv_client *client, const struct smv_generate *o)
{
        if (o->messages && o->packed_messages.bytes)
                return client_refuse(client, -EINVAL, "packed_messages",
                                     "messages are given twice, once packed");
        if (o->message_count && !o->messages)
                return client_refuse(client, -EINVAL, "messages",
                                     "message_count is %zu, but messages is NULL",
                                     o->message_count);
        for (size_t i = 0; i < o->message_count; i++)
                if (!o->messages[i].role || !o->messages[i].content)
                        return client_refuse(client, -EINVAL, "messages",
                                             "the %s of message %zu is NULL",
                                             o->messages[i].role ? "content" : "role", i);
        return 0;
}

static int check_packed(struct smv_client *client, const char *member,
                        const struct smv_packed *packed)
{
        if (!packed->bytes || codec_is_value(packed))
                return 0;
        return client_refuse(client, -EINVAL, member, "%s is not exactly one msgpack value",
                             member);
}

/* Each of the texts must be there. */
static int check_texts(struct smv_client *client, const char *name, const char *const *texts,
                       size_t count)
{
        for (size_t i = 0; texts && i < count; i++)
                if (!texts[i])
                        return client_refuse(client, -EINVAL, name, "text %zu of %s is NULL", i,
                                             name);
        return 0;
}

/* An array must be there if its count is not 0. */
static int check_arrays(struct smv_client *client, const struct smv_generate *o)
{
        const struct {
                const char *name, *count_name;
                const void *array;
                size_t count;
        } arrays[] = {
                { "tokens", "token_count", o->tokens, o->token_count },
                { "stop_tokens", "stop_token_count", o->stop_tokens, o->stop_token_count },
                { "stops", "stop_count", o->stops, o->stop_count },
                { "biases", "bias_count", o->biases, o->bias_count },
                { "allowed_tokens", "allowed_token_count", o->allowed_tokens,
                  o->allowed_token_count },
                { "banned_tokens", "banned_token_count", o->banned_tokens, o->banned_token_count },
                { "banned_texts", "banned_text_count", o->banned_texts, o->banned_text_count },
                { "dry_breakers", "dry_breaker_count", o->dry_breakers, o->dry_breaker_count },
                { "allowed_tools", "allowed_tool_count", o->allowed_tools, o->allowed_tool_count },
        };
        int r;

        for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++)
                if (arrays[i].count && !arrays[i].array)
                        return client_refuse(client, -EINVAL, arrays[i].name,
                                             "%s is %zu, but %s is NULL", arrays[i].count_name,
                                             arrays[i].count, arrays[i].name);
        r = check_texts(client, "stops", o->stops, o->stop_count);
        if (!r)
                r = check_texts(client, "banned_texts", o->banned_texts, o->banned_text_count);
        if (!r)
                r = check_texts(client, "dry_breakers", o->dry_breakers, o->dry_breaker_count);
        if (!r)
                r = check_texts(client, "allowed_tools", o->allowed_tools, o->allowed_tool_count);
        return r;
}

void client_put_conversation(struct codec_writer *writer, const struct smv_generate *o)
{
        if (o->messages)
                codec_put_messages(writer, "messages", o->messages, o->message_count);
        if (o->packed_messages.bytes)
                codec_put_packed(writer, "messages", &o->packed_messages);
        if (o->packed_tools.bytes)
                codec_put_packed(writer, "tools", &o->packed_tools);
        if (o->packed_vars.bytes)
                codec_put_packed(writer, "template_vars", &o->packed_vars);
        if (o->add_generation_prompt || (o->set & SMV_SET_ADD_GENERATION_PROMPT))
                codec_put_bool(writer, "add_generation_prompt", o->add_generation_prompt);
        if (o->continue_final_message)
                codec_put_bool(writer, "continue_final_message", true);
}

void client_put_priority(struct codec_writer *writer, enum smv_priority priority)
{
        static const char *const names[] = {
#define X(name, word) [SMV_PRIORITY_##name] = word,
                SMV_PRIORITIES(X)
#undef X
        };

        if ((unsigned)priority < sizeof(names) / sizeof(*names))
                codec_put_text(writer, "priority", names[priority], strlen(names[priority]));
}

void client_put_sampling(struct codec_writer *writer, const struct smv_generate *o)
{
        if (o->temperature != 0 || (o->set & SMV_SET_TEMPERATURE))
                codec_put_float(writer, "temperature", (double)o->temperature);
        if (o->top_p != 0 || (o->set & SMV_SET_TOP_P))
                codec_put_float(writer, "top_p", (double)o->top_p);
        if (o->min_p != 0 || (o->set & SMV_SET_MIN_P))
                codec_put_float(writer, "min_p", (double)o->min_p);
        if (o->top_k || (o->set & SMV_SET_TOP_K))
                codec_put_uint(writer, "top_k", o->top_k);
        if (o->seed || (o->set & SMV_SET_SEED))
                codec_put_uint(writer, "seed", o->seed);
        if (o->sample_index)
                codec_put_uint(writer, "sample_index", o->sample_index);
}

void client_put_cuts(struct codec_writer *writer, const struct smv_generate *o)
{
        const char *last = "temperature_last";

        if (o->n_sigma != 0)
                codec_put_float(writer, "n_sigma", (double)o->n_sigma);
        if (o->typical != 0)
                codec_put_float(writer, "typical", (double)o->typical);
        if (o->xtc_chance != 0)
                codec_put_float(writer, "xtc_chance", (double)o->xtc_chance);
        if (o->xtc_least != 0 || (o->set & SMV_SET_XTC_LEAST))
                codec_put_float(writer, "xtc_least", (double)o->xtc_least);
        if (o->temperature_range != 0)
                codec_put_float(writer, "temperature_range", (double)o->temperature_range);
        if (o->temperature_exponent != 0 || (o->set & SMV_SET_TEMPERATURE_EXPONENT))
                codec_put_float(writer, "temperature_exponent", (double)o->temperature_exponent);
        if (o->mirostat_tau != 0)
                codec_put_float(writer, "mirostat_tau", (double)o->mirostat_tau);
        if (o->mirostat_eta != 0 || (o->set & SMV_SET_MIROSTAT_ETA))
                codec_put_float(writer, "mirostat_eta", (double)o->mirostat_eta);
        if (o->order)
                codec_put_text(writer, "order", last, strlen(last));
}

void client_put_asking(struct codec_writer *writer, const struct smv_generate *o)
{
        const char *kind = o->ask == SMV_ASK_TOKEN ? "token" : "mask";

        if (o->ask)
                codec_put_text(writer, "ask", kind, strlen(kind));
        if (o->ask_ms)
                codec_put_uint(writer, "ask_ms", o->ask_ms);
        if (o->late_draws)
                codec_put_text(writer, "ask_late", "draw", strlen("draw"));
        if (o->row_top || (o->set & SMV_SET_ROW_TOP))
                codec_put_uint(writer, "row_top", o->row_top);
        if (o->whole_row)
                codec_put_bool(writer, "whole_row", true);
}

static void put_lists(struct codec_writer *writer, const struct smv_generate *o)
{
        if (o->dry_breaker_count || (o->set & SMV_SET_DRY_BREAKERS))
                codec_put_texts(writer, "dry_breakers", o->dry_breakers, o->dry_breaker_count);
        if (o->bias_count)
                codec_put_biases(writer, "logit_bias", o->biases, o->bias_count);
        if (o->allowed_token_count)
                codec_put_ids(writer, "allowed_tokens", o->allowed_tokens, o->allowed_token_count);
        if (o->banned_token_count)
                codec_put_ids(writer, "banned_tokens", o->banned_tokens, o->banned_token_count);
        if (o->banned_text_count)
                codec_put_texts(writer, "banned_texts", o->banned_texts, o->banned_text_count);
}

void client_put_penalties(struct codec_writer *writer, const struct smv_generate *o)
{
        const struct {
                const char *name;
                float value;
        } floats[] = {
                { "presence_penalty", o->presence_penalty },
                { "frequency_penalty", o->frequency_penalty },
                { "repetition_penalty", o->repetition_penalty },
                { "dry_multiplier", o->dry_multiplier },
                { "dry_base", o->dry_base },
        };
        const struct {
                const char *name;
                uint32_t value;
        } uints[] = {
                { "repeat_window", o->repeat_window },     { "dry_allowed", o->dry_allowed },
                { "dry_window", o->dry_window },           { "min_tokens", o->min_tokens },
                { "no_repeat_ngram", o->no_repeat_ngram },
        };

        for (size_t i = 0; i < sizeof(floats) / sizeof(*floats); i++)
                if (floats[i].value != 0)
                        codec_put_float(writer, floats[i].name, (double)floats[i].value);
        for (size_t i = 0; i < sizeof(uints) / sizeof(*uints); i++)
                if (uints[i].value)
                        codec_put_uint(writer, uints[i].name, uints[i].value);
        put_lists(writer, o);
}

void client_put_reasoning(struct codec_writer *writer, const struct smv_generate *o)
{
        if (o->reasoning_max || (o->set & SMV_SET_REASONING_MAX))
                codec_put_uint(writer, "reasoning_max", o->reasoning_max);
        if (o->reasoning_end)
                codec_put_text(writer, "reasoning_end", o->reasoning_end, strlen(o->reasoning_end));
}

void client_put_start(struct codec_writer *writer, const struct smv_generate *o)
{
        client_put_model(writer, o->model);
        client_put_conversation(writer, o);
        if (o->prompt)
                codec_put_given(writer, "prompt", o->prompt, o->prompt_bytes);
        if (o->tokens)
                codec_put_ids(writer, "tokens", o->tokens, o->token_count);
}

int client_begin_generate(struct smv_client *client, const struct smv_generate *options,
                          struct smv_generate *ret_options)
{
        int r = client_begin(client);

        if (r)
                return r;
        r = client_copy_in(ret_options, sizeof(*ret_options), options);
        if (r)
                return client_refuse_struct(client, r, "smv_generate");
        r = check_messages(client, ret_options);
        if (!r)
                r = check_packed(client, "packed_messages", &ret_options->packed_messages);
        if (!r)
                r = check_packed(client, "packed_tools", &ret_options->packed_tools);
        if (!r)
                r = check_packed(client, "packed_vars", &ret_options->packed_vars);
        if (!r)
                r = check_arrays(client, ret_options);
        if (!r)
                r = client_check_priority(client, ret_options->priority);
        if (!r && (unsigned)ret_options->ask > SMV_ASK_TOKEN)
                r = client_refuse(client, -EINVAL, "ask", "ask is %u; it may be up to %u",
                                  (unsigned)ret_options->ask, SMV_ASK_TOKEN);
        return r ? r : client_check_set(client, ret_options->set);
}
