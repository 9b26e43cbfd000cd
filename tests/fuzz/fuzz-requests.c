/*
 * Hostile bodies of requests to samovar-http, past the HTTP reader.
 *
 * The first byte chooses the reader.  Each packed field of an accepted request must be one whole
 * value of msgpack.  A refusal has a message of valid UTF-8.  The texts of a form
 * lie in its body.
 */
#include <assert.h>
#include <msgpack.h>
#include <samovar/client.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/anthropic/request.h"
#include "bridge/core/conversation.h"
#include "bridge/core/fields.h"
#include "bridge/core/tools.h"
#include "bridge/ollama/request.h"
#include "bridge/openai/batch-lines.h"
#include "bridge/openai/batch-record.h"
#include "bridge/openai/messages.h"
#include "bridge/openai/multipart.h"
#include "bridge/openai/options.h"
#include "bridge/openai/response-items.h"
#include "json/reader.h"
#include "json/utf8.h"

#define NODES_MAX 65536u
#define WHY_BYTES 256u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(const char *message)
{
        size_t bytes = strlen(message);

        assert(bytes && utf8_valid(message, bytes) == bytes);
}

static void check_packed(struct smv_packed packed)
{
        msgpack_unpacked value;
        size_t at = 0;

        if (!packed.bytes)
                return;
        msgpack_unpacked_init(&value);
        assert(msgpack_unpack_next(&value, packed.bytes, packed.count, &at) ==
               MSGPACK_UNPACK_SUCCESS);
        assert(at == packed.count);
        msgpack_unpacked_destroy(&value);
}

static void finish(struct fields *fields, struct conversation *conversation)
{
        struct smv_generate options = { SMV_SIZE(smv_generate) };

        assert(!conversation->arena->failed);
        if (fields->failed) {
                check_message(fields->failure.message);
                return;
        }
        assert(!conversation_pack(conversation, &options));
        check_packed(options.packed_messages);
        check_packed(options.packed_tools);
        check_packed(options.packed_vars);
}

static void read_chat(struct fields *fields, struct conversation *conversation)
{
        struct smv_generate options = { SMV_SIZE(smv_generate) };

        openai_read_messages(fields, conversation);
        openai_read_tools(fields, conversation, &options);
        tools_settle(fields, conversation, false, &options);
        openai_read_vars(fields, conversation);
        (void)openai_read_stream(fields);
        finish(fields, conversation);
}

static void read_responses(struct fields *fields, struct conversation *conversation)
{
        struct smv_generate options = { SMV_SIZE(smv_generate) };

        response_read_instructions(fields, conversation);
        response_read_input(fields, conversation, field_of(fields, 0, "input"), true);
        response_read_tools(fields, conversation, &options);
        tools_settle(fields, conversation, true, &options);
        response_read_vars(fields, conversation);
        finish(fields, conversation);
}

static void read_json(const char *text, size_t bytes,
                      void (*read)(struct fields *fields, struct conversation *conversation))
{
        struct json_document *json = NULL;
        struct arena arena = { 0 };
        char why[WHY_BYTES];

        if (json_parse(text, bytes, NODES_MAX, &json, why, sizeof(why)))
                return;
        if (json_kind(json, 0) == JSON_OBJECT) {
                struct conversation conversation = { .arena = &arena, .json = json };
                struct fields fields = { .json = json };

                read(&fields, &conversation);
        }
        json_free(json);
        arena_deinit(&arena);
}

/* ---- readers that have a call ---- */

static void ignore_header(struct call *call, const char *name, const char *value)
{
        (void)call, (void)name, (void)value;
}

static void read_call(const char *text, size_t bytes,
                      void (*read)(struct call *call, struct fields *fields))
{
        static const struct call_sink sink = { .header = ignore_header };
        struct call call = { .sink = &sink };
        char why[WHY_BYTES];

        if (json_parse(text, bytes, NODES_MAX, &call.json, why, sizeof(why)))
                return;
        if (json_kind(call.json, 0) == JSON_OBJECT) {
                struct fields fields = { .json = call.json };

                read(&call, &fields);
                assert(!call.arena.failed);
                if (fields.failed)
                        check_message(fields.failure.message);
        }
        json_free(call.json);
        arena_deinit(&call.arena);
}

static void check_options(const struct fields *fields, const struct smv_generate *options)
{
        if (fields->failed)
                return;
        check_packed(options->packed_messages);
        check_packed(options->packed_tools);
        check_packed(options->packed_vars);
}

static void read_anthropic(struct call *call, struct fields *fields)
{
        struct anthropic_request request = { .options = { SMV_SIZE(smv_generate) } };

        anthropic_read_prompt(call, fields, &request);
        anthropic_read_options(call, fields, &request);
        check_options(fields, &request.options);
}

static void read_ollama(struct call *call, struct fields *fields)
{
        struct ollama_request request = { .options = { SMV_SIZE(smv_generate) } };

        ollama_read(call, fields, &request);
        check_options(fields, &request.options);
}

/* ---- files ---- */

static void check_inside(struct text part, struct text body)
{
        if (part.at)
                assert(part.at >= body.at && part.at + part.bytes <= body.at + body.bytes);
}

/* The content type, a NUL, the body. */
static void read_form(char *text, size_t bytes)
{
        const char *end = memchr(text, '\0', bytes);
        struct multipart form;
        const char *why = NULL;
        struct text body;

        if (!end)
                return;
        body = (struct text){ end + 1, bytes - (size_t)(end + 1 - text) };
        if (!multipart_read(text, body, &form, &why)) {
                check_message(why);
                return;
        }
        assert(form.count <= MULTIPART_PARTS_MAX);
        for (unsigned i = 0; i < form.count; i++) {
                check_inside(form.parts[i].name, body);
                check_inside(form.parts[i].filename, body);
                check_inside(form.parts[i].content, body);
        }
}

static void read_lines(const char *text, size_t bytes)
{
        struct batch_lines lines = { .text = { text, bytes } };
        struct batch_line_request request;
        struct text line;
        char why[WHY_BYTES];

        while (batch_lines_next(&lines, &line)) {
                request = (struct batch_line_request){ 0 };
                check_inside(line, lines.text);
                if (batch_line_read(line, "/v1/chat/completions", &request, why, sizeof(why)))
                        assert(json_kind(request.json, request.body) == JSON_OBJECT);
                else
                        check_message(why);
                json_free(request.json);
        }
}

/* The same text as what a start may find in the state folder. */
static void read_records(const char *text, size_t bytes)
{
        struct file_record file;
        struct batch_record batch;
        const char *why;

        if (!file_record_read((struct text){ text, bytes }, &file, &why))
                check_message(why);
        if (!batch_record_read((struct text){ text, bytes }, &batch, &why))
                free(batch.metadata);
        else
                check_message(why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text;

        if (!size)
                return 0;
        /* Of exactly this size, and with a NUL behind it, as the HTTP reader leaves a body. */
        text = calloc(1, size);
        assert(text);
        memcpy(text, data + 1, size - 1);
        switch (data[0] % 6) {
        case 0:
                read_json(text, size - 1, read_chat);
                break;
        case 1:
                read_json(text, size - 1, read_responses);
                break;
        case 2:
                read_call(text, size - 1, read_anthropic);
                break;
        case 3:
                read_call(text, size - 1, read_ollama);
                break;
        case 4:
                read_form(text, size - 1);
                break;
        default:
                read_lines(text, size - 1);
                read_records(text, size - 1);
        }
        free(text);
        return 0;
}
