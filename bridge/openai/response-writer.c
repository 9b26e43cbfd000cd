#include "bridge/openai/response-writer.h"

#include <stdio.h>
#include <string.h>

#include "bridge/core/context.h"
#include "bridge/core/logprobs.h"
#include "bridge/openai/writing.h"

/* ---- items ---- */

static bool is_cut(const struct response_writer *writer, const struct response_item *item)
{
        enum run_end end = writer->run ? writer->run->choices[0].end : RUN_EOS;

        return writer->failure || (item->call && item->call->cut) ||
               (!item->next && writer->ended && (end == RUN_LENGTH || end == RUN_CONTEXT));
}

static const char *item_status(const struct response_writer *writer,
                               const struct response_item *item)
{
        if (item->open)
                return "in_progress";
        return is_cut(writer, item) ? "incomplete" : "completed";
}

/* An array of logprobs, from so many bytes of the item's on. */
static void put_logprobs(struct json_builder *to, const struct response_item *item, size_t from)
{
        struct text text = { item->logprobs.at, item->logprobs.count };

        json_put_key(to, "logprobs");
        json_put_array(to);
        from += from < text.bytes && text.at[from] == ',';
        if (from < text.bytes && !to->out.result)
                to->out.result = bytes_add(to->out.to, text.at + from, text.bytes - from);
        json_put_array_end(to);
}

static void put_part(struct json_builder *to, const struct response_item *item, const char *type)
{
        json_put_object(to);
        json_put_key_word(to, "type", type);
        json_put_key_text(to, "text", item->text.at, item->text.count);
        if (item->kind == ITEM_MESSAGE) {
                json_put_key(to, "annotations");
                json_put_array(to);
                json_put_array_end(to);
                put_logprobs(to, item, 0);
        }
        json_put_object_end(to);
}

static const char *part_type(const struct response_item *item)
{
        return item->kind == ITEM_MESSAGE ? "output_text" : "reasoning_text";
}

/* An item that has just been opened has no content yet. */
static void put_item(const struct response_writer *writer, struct json_builder *to,
                     const struct response_item *item)
{
        static const char *const types[] = { "reasoning", "message", "function_call" };

        json_put_object(to);
        json_put_key_word(to, "id", item->id);
        json_put_key_word(to, "type", types[item->kind]);
        json_put_key_word(to, "status", item_status(writer, item));
        if (item->kind == ITEM_CALL) {
                json_put_key_word(to, "call_id", item->call->id);
                json_put_key_text(to, "name", item->call->name.at, item->call->name.count);
                json_put_key_text(to, "arguments", item->call->arguments.at,
                                  item->open ? 0 : item->call->arguments.count);
                json_put_object_end(to);
                return;
        }
        if (item->kind == ITEM_MESSAGE) {
                json_put_key_word(to, "role", "assistant");
        } else {
                json_put_key(to, "summary");
                json_put_array(to);
                json_put_array_end(to);
        }
        json_put_key(to, "content");
        json_put_array(to);
        if (!item->open)
                put_part(to, item, part_type(item));
        json_put_array_end(to);
        json_put_object_end(to);
}

void response_put_items(const struct response_writer *writer, struct json_builder *to)
{
        for (const struct response_item *item = writer->items; item; item = item->next)
                put_item(writer, to, item);
}

/* ---- the response ---- */

/* A field of the request as it was given, or the default. */
static void put_echo(const struct response_writer *writer, struct json_builder *to,
                     const char *name, const char *otherwise)
{
        uint32_t node = json_member(writer->call->json, 0, name);

        json_put_key(to, name);
        if (json_kind(writer->call->json, node) == JSON_ABSENT ||
            json_kind(writer->call->json, node) == JSON_NULL)
                json_put_raw(to, otherwise);
        else
                json_put_node(to, writer->call->json, node);
}

static const char *status_of(const struct response_writer *writer)
{
        enum run_end end;

        if (writer->failure)
                return "failed";
        if (!writer->ended)
                return "in_progress";
        end = writer->run->choices[0].end;
        return end == RUN_LENGTH || end == RUN_CONTEXT ? "incomplete" : "completed";
}

static void put_error(const struct response_writer *writer, struct json_builder *to)
{
        json_put_key(to, "error");
        if (!writer->failure) {
                json_put_null(to);
                return;
        }
        json_put_object(to);
        json_put_key_word(to, "code", "server_error");
        json_put_key_word(to, "message", writer->failure->message);
        json_put_object_end(to);
}

static void put_incomplete(const struct response_writer *writer, struct json_builder *to)
{
        json_put_key(to, "incomplete_details");
        if (strcmp(status_of(writer), "incomplete")) {
                json_put_null(to);
                return;
        }
        json_put_object(to);
        json_put_key_word(to, "reason", "max_output_tokens");
        json_put_object_end(to);
}

/* OpenAI has no word for the instructions: to it they are input. */
static const char *miss_reason(enum cache_miss_part part)
{
        return part == CACHE_MISS_TOOLS ? "tools_changed" : "input_changed";
}

/* Only if the client asked.  Without anything cached there is nothing to compare with. */
static void put_diagnostics(const struct response_writer *writer, struct json_builder *to,
                            const struct run_usage *usage)
{
        uint32_t at = writer->miss.diverged_at;
        bool known = at && writer->miss.part != CACHE_MISS_UNKNOWN;

        if (!writer->diagnose)
                return;
        json_put_key(to, "prompt_cache_diagnostics");
        json_put_object(to);
        if (known) {
                json_put_key_word(to, "type", "cache_miss");
                json_put_key_word(to, "reason", miss_reason(writer->miss.part));
                json_put_key_uint(to, "cache_missed_tokens",
                                  usage->prompt > at ? usage->prompt - at : 0);
                json_put_key_uint(to, "comparison_reusable_tokens", at);
        } else {
                json_put_key_word(to, "type", !at && usage->cached ? "cache_hit" : "unavailable");
        }
        json_put_object_end(to);
}

static void put_usage(const struct response_writer *writer, struct json_builder *to)
{
        struct run_usage usage;

        json_put_key(to, "usage");
        if (!writer->ended || writer->failure) {
                json_put_null(to);
                return;
        }
        usage = run_usage(writer->run);
        json_put_object(to);
        json_put_key_uint(to, "input_tokens", usage.prompt);
        json_put_key(to, "input_tokens_details");
        json_put_object(to);
        json_put_key_uint(to, "cached_tokens", usage.cached);
        json_put_key_uint(to, "cache_write_tokens", 0);
        json_put_object_end(to);
        json_put_key_uint(to, "output_tokens", usage.output);
        json_put_key(to, "output_tokens_details");
        json_put_object(to);
        json_put_key_uint(to, "reasoning_tokens", usage.reasoning);
        json_put_object_end(to);
        json_put_key_uint(to, "total_tokens", usage.prompt + usage.output);
        json_put_object_end(to);
        put_diagnostics(writer, to, &usage);
}

void response_put(const struct response_writer *writer, struct json_builder *to)
{
        json_put_object(to);
        json_put_key_word(to, "id", writer->id);
        json_put_key_word(to, "object", "response");
        json_put_key_uint(to, "created_at", writer->created_s);
        json_put_key_word(to, "status", status_of(writer));
        json_put_key_bool(to, "background", false);
        put_error(writer, to);
        put_incomplete(writer, to);
        put_echo(writer, to, "instructions", "null");
        put_echo(writer, to, "max_output_tokens", "null");
        json_put_key_text(to, "model", writer->model.at, writer->model.bytes);
        json_put_key(to, "output");
        json_put_array(to);
        if (writer->ended)
                response_put_items(writer, to);
        json_put_array_end(to);
        put_echo(writer, to, "parallel_tool_calls", "true");
        json_put_key(to, "previous_response_id");
        if (writer->previous_id.at)
                json_put_text(to, writer->previous_id.at, writer->previous_id.bytes);
        else
                json_put_null(to);
        put_echo(writer, to, "reasoning", "{\"effort\":null,\"summary\":null}");
        json_put_key_word(to, "service_tier", writer->tier);
        json_put_key_bool(to, "store", writer->store);
        put_echo(writer, to, "temperature", "null");
        put_echo(writer, to, "text", "{\"format\":{\"type\":\"text\"}}");
        put_echo(writer, to, "tool_choice", "\"auto\"");
        put_echo(writer, to, "tools", "[]");
        put_echo(writer, to, "top_p", "null");
        put_echo(writer, to, "truncation", "\"disabled\"");
        put_echo(writer, to, "metadata", "{}");
        put_echo(writer, to, "user", "null");
        put_usage(writer, to);
        json_put_object_end(to);
}

/* ---- events ---- */

static struct json_builder begin_event(struct response_writer *writer, const char *type)
{
        struct json_builder to = call_event(writer->call, type);

        json_put_object(&to);
        json_put_key_word(&to, "type", type);
        json_put_key_uint(&to, "sequence_number", writer->sequence++);
        return to;
}

static void end_event(struct response_writer *writer, struct json_builder *to)
{
        json_put_object_end(to);
        call_event_send(writer->call, to);
}

static void send_response(struct response_writer *writer, const char *type)
{
        struct json_builder to;

        if (!writer->stream)
                return;
        to = begin_event(writer, type);
        json_put_key(&to, "response");
        response_put(writer, &to);
        end_event(writer, &to);
}

/* An event about an item, with the ids that it needs. */
static struct json_builder begin_item_event(struct response_writer *writer, const char *type,
                                            const struct response_item *item)
{
        struct json_builder to = begin_event(writer, type);

        json_put_key_word(&to, "item_id", item->id);
        json_put_key_uint(&to, "output_index", item->index);
        if (item->kind != ITEM_CALL)
                json_put_key_uint(&to, "content_index", 0);
        return to;
}

static void send_item(struct response_writer *writer, const char *type,
                      const struct response_item *item)
{
        struct json_builder to = begin_event(writer, type);

        json_put_key_uint(&to, "output_index", item->index);
        json_put_key(&to, "item");
        put_item(writer, &to, item);
        end_event(writer, &to);
}

static void send_part(struct response_writer *writer, const char *type,
                      const struct response_item *item)
{
        struct json_builder to = begin_item_event(writer, type, item);

        json_put_key(&to, "part");
        put_part(&to, item, part_type(item));
        end_event(writer, &to);
}

/* Adds the logprobs that are ready.  Returns how many bytes the item had of them before. */
static size_t take_logprobs(struct response_writer *writer, struct response_item *item)
{
        size_t before = item->logprobs.count;
        struct json_builder to = json_build(&item->logprobs);

        if (!writer->logprobs)
                return before;
        to.comma = before > 0;
        logprobs_put_more(&to, writer->call->bridge->vocabulary, &writer->run->choices[0]);
        if (to.out.result)
                call_no_memory(writer->call);
        return before;
}

/* logprobs_from: those behind so many bytes are new. */
static void send_delta(struct response_writer *writer, const struct response_item *item,
                       struct text delta, size_t logprobs_from)
{
        static const char *const types[] = { "response.reasoning_text.delta",
                                             "response.output_text.delta",
                                             "response.function_call_arguments.delta" };
        struct json_builder to;

        if (!writer->stream)
                return;
        to = begin_item_event(writer, types[item->kind], item);
        json_put_key_text(&to, "delta", delta.at, delta.bytes);
        if (item->kind == ITEM_MESSAGE)
                put_logprobs(&to, item, logprobs_from);
        end_event(writer, &to);
}

/* The last events of the texts of an item. */
static void send_text_done(struct response_writer *writer, const struct response_item *item)
{
        static const char *const types[] = { "response.reasoning_text.done",
                                             "response.output_text.done",
                                             "response.function_call_arguments.done" };
        struct json_builder to = begin_item_event(writer, types[item->kind], item);

        if (item->kind == ITEM_CALL) {
                json_put_key_text(&to, "name", item->call->name.at, item->call->name.count);
                json_put_key_text(&to, "arguments", item->call->arguments.at,
                                  item->call->arguments.count);
        } else {
                json_put_key_text(&to, "text", item->text.at, item->text.count);
        }
        if (item->kind == ITEM_MESSAGE)
                put_logprobs(&to, item, 0);
        end_event(writer, &to);
}

/* ---- pieces ---- */

static struct response_item *open_item(struct response_writer *writer, enum response_item_kind kind,
                                       const struct run_call *call)
{
        static const char *const prefixes[] = { "rs_", "msg_", "fc_" };
        struct response_item *item = arena_alloc(&writer->call->arena, sizeof(*item));

        if (!item) {
                call_no_memory(writer->call);
                return NULL;
        }
        item->kind = kind;
        item->open = true;
        item->call = call;
        item->index = writer->last ? writer->last->index + 1 : 0;
        call_identifier(writer->call, prefixes[kind], item->id, sizeof(item->id));
        if (writer->last)
                writer->last->next = item;
        else
                writer->items = item;
        writer->last = item;
        if (!writer->stream)
                return item;
        send_item(writer, "response.output_item.added", item);
        if (kind != ITEM_CALL)
                send_part(writer, "response.content_part.added", item);
        return item;
}

static void close_item(struct response_writer *writer)
{
        struct response_item *item = writer->last;

        if (!item || !item->open)
                return;
        item->open = false;
        if (!writer->stream)
                return;
        send_text_done(writer, item);
        if (item->kind != ITEM_CALL)
                send_part(writer, "response.content_part.done", item);
        send_item(writer, "response.output_item.done", item);
}

static bool is_blank(struct text text)
{
        for (size_t i = 0; i < text.bytes; i++)
                if (!strchr(" \t\r\n", text.at[i]))
                        return false;
        return true;
}

static void take_text(struct response_writer *writer, const struct run_piece *piece)
{
        enum response_item_kind kind = piece->kind == PIECE_TEXT ? ITEM_MESSAGE : ITEM_REASONING;
        struct response_item *item = writer->last;

        if (!item || !item->open || item->kind != kind) {
                /* Blank text between calls is no message of its own. */
                if (kind == ITEM_MESSAGE && item && is_blank(piece->text))
                        return;
                close_item(writer);
                item = open_item(writer, kind, NULL);
        }
        if (!item || writer->call->over)
                return;
        if (bytes_add(&item->text, piece->text.at, piece->text.bytes))
                call_no_memory(writer->call);
        else
                send_delta(writer, item, piece->text,
                           kind == ITEM_MESSAGE ? take_logprobs(writer, item) : 0);
}

void response_piece(struct response_writer *writer, const struct run_piece *piece)
{
        switch (piece->kind) {
        case PIECE_TEXT:
        case PIECE_REASONING:
                take_text(writer, piece);
                break;
        case PIECE_CALL:
                close_item(writer);
                open_item(writer, ITEM_CALL, piece->call);
                break;
        case PIECE_ARGUMENTS:
                if (writer->last && piece->text.bytes)
                        send_delta(writer, writer->last, piece->text, 0);
                break;
        case PIECE_CALL_END:
                close_item(writer);
        }
}

/* ---- begin and end ---- */

void response_begin(struct response_writer *writer)
{
        send_response(writer, "response.created");
        send_response(writer, "response.in_progress");
}

void response_end(struct response_writer *writer)
{
        enum run_end end = writer->run->choices[0].end;

        writer->ended = true;
        if (writer->last && writer->last->open && writer->last->kind == ITEM_MESSAGE)
                take_logprobs(writer, writer->last);
        close_item(writer);
        send_response(writer, end == RUN_LENGTH || end == RUN_CONTEXT ? "response.incomplete"
                                                                      : "response.completed");
}

void response_fail(struct response_writer *writer, const struct failure *failure)
{
        writer->failure = failure;
        writer->ended = true;
        close_item(writer);
        send_response(writer, "response.failed");
}

void response_deinit(struct response_writer *writer)
{
        for (struct response_item *item = writer->items; item; item = item->next) {
                bytes_deinit(&item->text);
                bytes_deinit(&item->logprobs);
        }
}
