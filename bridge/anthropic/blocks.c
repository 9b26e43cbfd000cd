#include "bridge/anthropic/blocks.h"

#include <string.h>

#include "bridge/core/tools.h"

/* Clients send it back as the proof that the thoughts are the model's; any text will do. */
#define SIGNATURE "samovar"

void blocks_init(struct blocks *blocks, struct call *call, bool streamed)
{
        *blocks = (struct blocks){ .call = call, .streamed = streamed };
}

void blocks_deinit(struct blocks *blocks)
{
        for (struct block *block = blocks->first; block; block = block->next)
                bytes_deinit(&block->text);
        bytes_deinit(&blocks->blank);
}

static bool fail_for_memory(struct blocks *blocks)
{
        call_no_memory(blocks->call);
        return false;
}

/* ---- events ---- */

/* Begins an event up to the member of its block or delta. */
static struct json_builder begin_event(struct blocks *blocks, const char *type)
{
        struct json_builder to = call_event(blocks->call, type);

        json_put_object(&to);
        json_put_key_word(&to, "type", type);
        json_put_key_uint(&to, "index", blocks->count - 1);
        return to;
}

static bool send_event(struct blocks *blocks, struct json_builder *to)
{
        json_put_object_end(to);
        return call_event_send(blocks->call, to);
}

static void put_call_head(struct json_builder *to, const struct run_call *call)
{
        json_put_key_word(to, "type", "tool_use");
        json_put_key_word(to, "id", call->id);
        json_put_key_text(to, "name", call->name.at, call->name.count);
        json_put_key(to, "input");
}

static bool send_start(struct blocks *blocks, const struct run_call *call)
{
        struct json_builder to = begin_event(blocks, "content_block_start");

        json_put_key(&to, "content_block");
        json_put_object(&to);
        if (blocks->kind == BLOCK_TOOL_USE) {
                put_call_head(&to, call);
                json_put_object(&to);
                json_put_object_end(&to);
        } else if (blocks->kind == BLOCK_THINKING) {
                json_put_key_word(&to, "type", "thinking");
                json_put_key_word(&to, "thinking", "");
                json_put_key_word(&to, "signature", "");
        } else {
                json_put_key_word(&to, "type", "text");
                json_put_key_word(&to, "text", "");
        }
        json_put_object_end(&to);
        return send_event(blocks, &to);
}

static bool send_delta(struct blocks *blocks, const char *type, const char *key, struct text text)
{
        struct json_builder to = begin_event(blocks, "content_block_delta");

        json_put_key(&to, "delta");
        json_put_object(&to);
        json_put_key_word(&to, "type", type);
        json_put_key_text(&to, key, text.at, text.bytes);
        json_put_object_end(&to);
        return send_event(blocks, &to);
}

static bool send_text(struct blocks *blocks, struct text text)
{
        switch (blocks->kind) {
        case BLOCK_THINKING:
                return send_delta(blocks, "thinking_delta", "thinking", text);
        case BLOCK_TOOL_USE:
                return send_delta(blocks, "input_json_delta", "partial_json", text);
        default:
                return send_delta(blocks, "text_delta", "text", text);
        }
}

static bool send_stop(struct blocks *blocks)
{
        struct json_builder to;

        if (blocks->kind == BLOCK_THINKING &&
            !send_delta(blocks, "signature_delta", "signature", TEXT(SIGNATURE)))
                return false;
        to = begin_event(blocks, "content_block_stop");
        return send_event(blocks, &to);
}

/* ---- one block behind the other ---- */

static bool stop(struct blocks *blocks)
{
        bool was_open = blocks->open;

        blocks->open = false;
        return !was_open || !blocks->streamed || send_stop(blocks);
}

static bool collect_start(struct blocks *blocks, const struct run_call *call)
{
        struct block *block = arena_alloc(&blocks->call->arena, sizeof(*block));

        if (!block)
                return fail_for_memory(blocks);
        block->kind = blocks->kind;
        block->call = call;
        if (blocks->last)
                blocks->last->next = block;
        else
                blocks->first = block;
        blocks->last = block;
        return true;
}

static bool start(struct blocks *blocks, enum block_kind kind, const struct run_call *call)
{
        if (!stop(blocks))
                return false;
        blocks->open = true;
        blocks->kind = kind;
        blocks->count++;
        return blocks->streamed ? send_start(blocks, call) : collect_start(blocks, call);
}

/* Text of the block that is open.  The arguments of a call are collected by the run. */
static bool put(struct blocks *blocks, struct text text)
{
        if (!text.bytes)
                return true;
        if (blocks->streamed)
                return send_text(blocks, text);
        return blocks->kind == BLOCK_TOOL_USE ||
               !bytes_add(&blocks->last->text, text.at, text.bytes) || fail_for_memory(blocks);
}

static bool is_blank(struct text text)
{
        for (size_t i = 0; i < text.bytes; i++)
                if (!strchr(" \t\r\n", text.at[i]) || !text.at[i])
                        return false;
        return true;
}

static bool add_text(struct blocks *blocks, enum block_kind kind, struct text text)
{
        if (blocks->open && blocks->kind == kind)
                return put(blocks, text);
        if (blocks->blank_kind != kind)
                blocks->blank.count = 0;
        blocks->blank_kind = kind;
        if (bytes_add(&blocks->blank, text.at, text.bytes))
                return fail_for_memory(blocks);
        if (is_blank(text))
                return true;
        text = (struct text){ blocks->blank.at, blocks->blank.count };
        blocks->blank.count = 0;
        return start(blocks, kind, NULL) && put(blocks, text);
}

bool blocks_add(struct blocks *blocks, const struct run_piece *piece)
{
        switch (piece->kind) {
        case PIECE_TEXT:
                return add_text(blocks, BLOCK_TEXT, piece->text);
        case PIECE_REASONING:
                return add_text(blocks, BLOCK_THINKING, piece->text);
        case PIECE_CALL:
                blocks->blank.count = 0;
                return start(blocks, BLOCK_TOOL_USE, piece->call);
        case PIECE_ARGUMENTS:
                return put(blocks, piece->text);
        case PIECE_CALL_END:
                return stop(blocks);
        }
        return true;
}

bool blocks_end(struct blocks *blocks)
{
        return (blocks->count || start(blocks, BLOCK_TEXT, NULL)) && stop(blocks);
}

/* ---- the whole content ---- */

static void put_text(struct json_builder *to, struct text text)
{
        json_put_key_word(to, "type", "text");
        json_put_key_text(to, "text", text.at ? text.at : "", text.bytes);
}

static void put_block(const struct blocks *blocks, const struct block *block, bool by_length,
                      struct json_builder *to)
{
        json_put_object(to);
        if (block->kind == BLOCK_TOOL_USE && block->call->cut && !by_length) {
                put_text(to, tools_cut_text(&blocks->call->arena, block->call));
        } else if (block->kind == BLOCK_TOOL_USE) {
                put_call_head(to, block->call);
                tools_put_arguments(to, &block->call->arguments);
        } else if (block->kind == BLOCK_THINKING) {
                json_put_key_word(to, "type", "thinking");
                json_put_key_text(to, "thinking", block->text.at, block->text.count);
                json_put_key_word(to, "signature", SIGNATURE);
        } else {
                put_text(to, (struct text){ block->text.at, block->text.count });
        }
        json_put_object_end(to);
}

void blocks_put(const struct blocks *blocks, bool by_length, struct json_builder *to)
{
        json_put_array(to);
        for (const struct block *block = blocks->first; block; block = block->next)
                put_block(blocks, block, by_length, to);
        json_put_array_end(to);
}
