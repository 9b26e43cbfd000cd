/*
 * Divides any text, cut anywhere, in any dialect, and compares with the text in one piece.
 *
 *      dialect | flags | cut count | a length for each | the text: all the rest
 *
 * The rig asserts what parts.h promises of every feed.
 */
#include <stdint.h>

#include "tests/unit/parts-rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const templates[][2] = {
        { "<tool_call> <think>", NULL },
        { "[TOOL_CALLS]", NULL },
        { "[TOOL_CALLS] [CALL_ID] [ARGS]", NULL },
        { "[TOOL_CALLS] [ARGS] [THINK]", NULL },
        { "<|python_tag|>", NULL },
        { NULL, NULL },
        { "<\uff5ctool\u2581sep\uff5c> ```json <think>", NULL },
        { "<\uff5ctool\u2581sep\uff5c> <think>", NULL },
        { "<|tool_calls_section_begin|> <think>", NULL },
        { "<|START_ACTION|> <|START_RESPONSE|> <|START_THINKING|>", NULL },
        { "<|tool_call|> <|start_of_role|> <response> <think>", NULL },
        { "<|/tool|>", NULL },
        { "<tool_call> <function= <parameter= <think>", NULL },
        { "<tool_call> <arg_key>", NULL },
        { "<minimax:tool_call>", NULL },
        { "\uff5cDSML\uff5cfunction_calls> <think>", NULL },
        { "<|tool_call_start|>", NULL },
        { "<|python_start|>", NULL },
        { "<|tool_call>call: <|channel>", NULL },
        { "<|channel|> <|message|>", NULL },
        { "<|tools_prefix|>", NULL },
        { "<tool_calls>[ </tool_calls> [BEGIN FINAL RESPONSE]", NULL },
        { "functools[", NULL },
        { "<function= has_code_interpreter", NULL },
        { "<|function_call|>", NULL },
        { "<function name=\" <param name=\" <think>", NULL },
};
#define TEMPLATES (sizeof(templates) / sizeof(*templates))

static struct dialect open_dialect(unsigned number, bool tokens)
{
        struct dialect_conf conf = { .templates = { templates[number][0], templates[number][1] } };
        static struct tokenizer *tokenizer;
        struct dialect dialect;

        if (!tokenizer && tokenizer_open_bytes(300, &tokenizer))
                abort();
        conf.tokenizer = tokenizer;
        dialect_open(&conf, &dialect);
        for (uint32_t mark = 0; tokens && mark < MARK_N; mark++) {
                dialect.marks[mark].is_token = dialect.marks[mark].bytes;
                dialect.marks[mark].token = 1000 + mark;
        }
        return dialect;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        size_t cut_count = size > 2 ? data[2] : 0, at = 0, bytes;
        struct parts_rig whole, pieces;
        const uint8_t *cuts = data + 3;
        struct dialect dialect;
        const char *text;

        if (size < 3 + cut_count)
                return 0;
        text = (const char *)cuts + cut_count;
        bytes = size - 3 - cut_count;
        dialect = open_dialect(data[0] % TEMPLATES, data[1] & 1);

        rig_begin(&whole, &dialect, data[1] & 2, data[1] & 4);
        rig_feed(&whole, text, bytes);
        rig_end(&whole);
        rig_begin(&pieces, &dialect, data[1] & 2, data[1] & 4);
        for (size_t i = 0; at < bytes; i++) {
                size_t piece = i < cut_count ? cuts[i] : bytes - at;

                piece = piece > bytes - at ? bytes - at : piece;
                rig_feed(&pieces, text + at, piece);
                at += piece;
        }
        rig_end(&pieces);
        assert(whole.count == pieces.count && !memcmp(whole.shown, pieces.shown, whole.count));
        assert(whole.parts.flags == pieces.parts.flags);
        assert(whole.parts.call_count == pieces.parts.call_count);
        rig_free(&whole);
        rig_free(&pieces);
        return 0;
}
