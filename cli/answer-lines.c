#include "cli/answer-lines.h"

#include <string.h>

#include "json/writer.h"

static void begin_line(struct answer_lines *lines, struct json_writer *json,
                       const struct smv_event *event)
{
        lines->out.count = 0;
        json_write_raw(json, "{");
        if (lines->count == 1)
                return;
        json_write_raw(json, "\"number\":");
        json_write_uint(json, event->stream - lines->first + 1);
        json_write_raw(json, ",");
}

static int write_line(struct answer_lines *lines, struct json_writer *json)
{
        json_write_raw(json, "}\n");
        if (json_write_end(json)) {
                say("out of memory");
                return CLI_FAILED;
        }
        return screen_raw(lines->out.at, lines->out.count);
}

/* For each token: its own logprob, then the likeliest tokens with theirs. */
static void put_logprobs(struct json_writer *json, const struct smv_event *event)
{
        const struct smv_logprob *at = event->logprobs;

        json_write_raw(json, ",\"logprobs\":[");
        for (size_t i = 0; i < event->token_count; i++) {
                json_write_raw(json, i ? ",{\"logprob\":" : "{\"logprob\":");
                json_write_float(json, (double)at++->logprob);
                json_write_raw(json, ",\"top\":[");
                for (size_t j = 0; j < event->top_count; j++, at++) {
                        json_write_raw(json, j ? ",[" : "[");
                        json_write_uint(json, at->token);
                        json_write_raw(json, ",");
                        json_write_float(json, (double)at->logprob);
                        json_write_raw(json, "]");
                }
                json_write_raw(json, "]}");
        }
        json_write_raw(json, "]");
}

static void put_parts(struct json_writer *json, const struct smv_event *event)
{
        static const char *const kinds[] = {
                [SMV_PART_TEXT] = "text",         [SMV_PART_REASONING] = "reasoning",
                [SMV_PART_CALL] = "call",         [SMV_PART_ARGUMENTS] = "arguments",
                [SMV_PART_CALL_END] = "call_end",
        };
        const char *text = event->text;

        json_write_raw(json, ",\"parts\":[");
        for (size_t i = 0; i < event->part_count; i++) {
                const struct smv_part *part = &event->parts[i];
                const char *kind =
                        part->kind < sizeof(kinds) / sizeof(*kinds) ? kinds[part->kind] : "unknown";

                json_write_raw(json, i ? ",{\"kind\":" : "{\"kind\":");
                json_write_text(json, kind, strlen(kind));
                json_write_raw(json, ",\"text\":");
                json_write_text(json, text, part->bytes);
                if (part->kind >= SMV_PART_CALL) {
                        json_write_raw(json, ",\"number\":");
                        json_write_uint(json, part->call);
                }
                if (part->flags) {
                        json_write_raw(json, ",\"flags\":");
                        json_write_uint(json, part->flags);
                }
                json_write_raw(json, "}");
                text += part->bytes;
        }
        json_write_raw(json, "]");
}

int answer_lines_tokens(struct answer_lines *lines, const struct smv_event *event)
{
        struct json_writer json = { .to = &lines->out };

        begin_line(lines, &json, event);
        json_write_raw(&json, "\"tokens\":[");
        for (size_t i = 0; i < event->token_count; i++) {
                json_write_raw(&json, i ? "," : "");
                json_write_uint(&json, event->tokens[i]);
        }
        json_write_raw(&json, "],\"text\":");
        json_write_text(&json, event->text, event->text_bytes);
        if (event->part_count)
                put_parts(&json, event);
        json_write_raw(&json, ",\"position\":");
        json_write_uint(&json, event->position);
        if (event->logprobs)
                put_logprobs(&json, event);
        if (lines->sequence) {
                json_write_raw(&json, ",\"sequence\":");
                json_write_uint(&json, event->sequence);
        }
        return write_line(lines, &json);
}

static void put_depths(struct json_writer *json, const char *name, const uint32_t *counts,
                       uint32_t count)
{
        json_write_raw(json, ",");
        json_write_text(json, name, strlen(name));
        json_write_raw(json, ":[");
        for (uint32_t i = 0; i < count; i++) {
                json_write_raw(json, i ? "," : "");
                json_write_uint(json, counts[i]);
        }
        json_write_raw(json, "]");
}

/* As far as guesses have gone. */
static void put_drafts_by_depth(struct json_writer *json, const struct smv_event *event)
{
        uint32_t count = 0;

        while (count < SMV_DRAFT_TOKENS_MAX && event->drafted_by_depth[count])
                count++;
        if (!count)
                return;
        put_depths(json, "drafted_by_depth", event->drafted_by_depth, count);
        put_depths(json, "drafts_right_by_depth", event->drafts_right_by_depth, count);
}

int answer_lines_end(struct answer_lines *lines, const struct smv_event *event)
{
        const struct {
                const char *name;
                uint64_t value;
        } counts[] = {
                { "prompt_tokens", event->prompt_tokens },
                { "cached_tokens", event->cached_tokens },
                { "output_tokens", event->output_tokens },
                { "queued_ns", event->queued_ns },
                { "prefill_ns", event->prefill_ns },
                { "decode_ns", event->decode_ns },
                { "preemptions", event->preemptions },
                { "blocks_lost", event->blocks_lost },
                { "recomputed", event->recomputed },
                { "restored", event->restored },
                { "reasoning_tokens", event->reasoning_tokens },
                { "calls", event->calls },
                { "parts_flags", event->parts_flags },
                { "drafted", event->drafted },
                { "drafts_right", event->drafts_right },
                { "predicted", event->predicted },
                { "predictions_right", event->predictions_right },
                { "draft_steps", event->draft_steps },
                /* The last three are left out if there is no such position. */
                { "diverged_at", event->diverged_at },
                { "diverged_cached_token", event->diverged_cached_token },
                { "diverged_prompt_token", event->diverged_prompt_token },
        };
        size_t count = sizeof(counts) / sizeof(counts[0]) - (event->diverged_at ? 0 : 3);
        const char *reason = smv_reason_name(event->reason);
        const char *error = smv_code_name(event->code);
        struct json_writer json = { .to = &lines->out };

        begin_line(lines, &json, event);
        json_write_raw(&json, "\"end\":");
        json_write_text(&json, reason, strlen(reason));
        if (event->stopped_by) {
                json_write_raw(&json, event->stopped_by == SMV_STOPPED_BY_STRING
                                              ? ",\"stopped_by\":\"string\",\"stop_index\":"
                                              : ",\"stopped_by\":\"token\",\"stop_index\":");
                json_write_uint(&json, event->stop_index);
        }
        if (event->code != SMV_OK) {
                json_write_raw(&json, ",\"error\":");
                json_write_text(&json, error, strlen(error));
        }
        if (*lines->chain) {
                json_write_raw(&json, ",\"chain\":");
                json_write_text(&json, lines->chain, strlen(lines->chain));
        }
        put_drafts_by_depth(&json, event);
        for (size_t i = 0; i < count; i++) {
                json_write_raw(&json, ",");
                json_write_text(&json, counts[i].name, strlen(counts[i].name));
                json_write_raw(&json, ":");
                json_write_uint(&json, counts[i].value);
        }
        return write_line(lines, &json);
}

int answer_lines_best(struct answer_lines *lines, uint32_t number, double score)
{
        struct json_writer json = { .to = &lines->out };

        lines->out.count = 0;
        json_write_raw(&json, "{\"best\":");
        json_write_uint(&json, number + 1);
        json_write_raw(&json, ",\"score\":");
        json_write_float(&json, score);
        return write_line(lines, &json);
}
