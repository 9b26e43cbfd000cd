#include "bridge/core/logprobs.h"

#include <math.h>

void logprobs_read(struct fields *fields, struct smv_generate *options, bool *ret_wanted)
{
        uint64_t top = 0;

        field_bool(fields, 0, "logprobs", ret_wanted);
        if (field_uint(fields, 0, "top_logprobs", 0, LOGPROBS_TOP_MAX, &top) && top && !*ret_wanted)
                fields_fail(fields, FAILURE_REQUEST, "top_logprobs",
                            "top_logprobs needs logprobs: true");
        if (!*ret_wanted)
                return;
        options->logprobs = (uint32_t)top;
        options->set |= SMV_SET_LOGPROBS;
}

double logprob_shown(float logprob)
{
        return isfinite(logprob) ? (double)logprob : -9999.0;
}

/* token, logprob, bytes: without the braces. */
static void put_token(struct json_builder *to, const struct vocabulary *vocabulary,
                      const struct smv_logprob *entry)
{
        struct text piece = vocabulary_piece(vocabulary, entry->token);

        json_put_key_text(to, "token", piece.at, piece.bytes);
        json_put_key(to, "logprob");
        json_put_float(to, logprob_shown(entry->logprob));
        json_put_key(to, "bytes");
        json_put_array(to);
        for (size_t i = 0; i < piece.bytes; i++)
                json_put_uint(to, (unsigned char)piece.at[i]);
        json_put_array_end(to);
}

void logprobs_put_more(struct json_builder *to, const struct vocabulary *vocabulary,
                       struct run_choice *choice)
{
        const struct smv_logprob *entry = (const void *)choice->logprobs.values.at;
        size_t count = run_logprobs_ready(choice), top = choice->logprobs.top_count;

        for (size_t i = 0; i < count; i++, entry += 1 + top) {
                json_put_object(to);
                put_token(to, vocabulary, entry);
                json_put_key(to, "top_logprobs");
                json_put_array(to);
                for (size_t k = 1; k <= top; k++) {
                        json_put_object(to);
                        put_token(to, vocabulary, &entry[k]);
                        json_put_object_end(to);
                }
                json_put_array_end(to);
                json_put_object_end(to);
        }
        run_logprobs_take(choice, count);
}

void logprobs_put(struct json_builder *to, const struct vocabulary *vocabulary,
                  struct run_choice *choice)
{
        json_put_array(to);
        logprobs_put_more(to, vocabulary, choice);
        json_put_array_end(to);
}
