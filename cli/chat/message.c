#include "cli/chat/message.h"

#include <errno.h>
#include <string.h>

#include "json/reader.h"

#define NODES_MAX 65536u

static const char *const roles[] = {
        [MESSAGE_SYSTEM] = "system", [MESSAGE_USER] = "user",   [MESSAGE_ASSISTANT] = "assistant",
        [MESSAGE_TOOL] = "tool",     [MESSAGE_OTHER] = "other",
};

const char *message_role_name(enum message_role role)
{
        return roles[role];
}

static int set_text(struct message *message, const char *text, size_t bytes)
{
        int r = bytes_add(&message->text, text, bytes);

        if (!r)
                r = bytes_add(&message->text, "", 1);
        if (!r)
                message->text.count--;
        return r;
}

/* Begins a message with its role and content. */
static struct json_builder begin(struct message *message, enum message_role role, const char *text,
                                 size_t bytes)
{
        struct json_builder builder;

        *message = (struct message){ .role = role };
        builder = json_build(&message->json);
        json_put_object(&builder);
        json_put_key_word(&builder, "role", roles[role]);
        json_put_key_text(&builder, "content", text, bytes);
        return builder;
}

static int end(struct message *message, struct json_builder *builder, const char *text,
               size_t bytes)
{
        int r;

        json_put_object_end(builder);
        r = json_put_end(builder);
        if (!r)
                r = set_text(message, text, bytes);
        if (r)
                message_deinit(message);
        return r;
}

int message_make(struct message *message, enum message_role role, const char *text, size_t bytes)
{
        struct json_builder builder = begin(message, role, text, bytes);

        return end(message, &builder, text, bytes);
}

/* As an object if the arguments are JSON; as their text if the answer was cut within them. */
static void put_arguments(struct json_builder *builder, const struct bytes *arguments)
{
        struct json_document *json = NULL;
        char why[128];

        json_put_key(builder, "arguments");
        if (arguments->count &&
            !json_parse(arguments->at, arguments->count, NODES_MAX, &json, why, sizeof(why)))
                json_put_node(builder, json, 0);
        else
                json_put_text(builder, arguments->at ? arguments->at : "", arguments->count);
        json_free(json);
}

static void put_call(struct json_builder *builder, const struct message_call *call)
{
        json_put_object(builder);
        json_put_key_word(builder, "id", call->id);
        json_put_key_word(builder, "type", "function");
        json_put_key(builder, "function");
        json_put_object(builder);
        json_put_key_text(builder, "name", call->name.at, call->name.count);
        put_arguments(builder, &call->arguments);
        json_put_object_end(builder);
        json_put_object_end(builder);
}

int message_make_answer(struct message *message, const struct bytes *text,
                        const struct bytes *reasoning, const struct message_call *calls,
                        size_t call_count)
{
        const char *content = text->count ? text->at : "";
        struct json_builder builder = begin(message, MESSAGE_ASSISTANT, content, text->count);

        if (reasoning->count)
                json_put_key_text(&builder, "reasoning_content", reasoning->at, reasoning->count);
        if (call_count) {
                json_put_key(&builder, "tool_calls");
                json_put_array(&builder);
                for (size_t i = 0; i < call_count; i++)
                        put_call(&builder, &calls[i]);
                json_put_array_end(&builder);
        }
        return end(message, &builder, content, text->count);
}

int message_make_result(struct message *message, const struct message_call *call, const char *text,
                        size_t bytes)
{
        struct json_builder builder = begin(message, MESSAGE_TOOL, text, bytes);

        json_put_key_text(&builder, "name", call->name.at, call->name.count);
        json_put_key_word(&builder, "tool_call_id", call->id);
        return end(message, &builder, text, bytes);
}

int message_read(struct message *message, const struct json_document *json, uint32_t node)
{
        const char *role = json_string(json, json_member(json, node, "role"), NULL);
        size_t bytes = 0;
        const char *text = json_string(json, json_member(json, node, "content"), &bytes);
        struct json_builder builder;
        int r;

        if (json_kind(json, node) != JSON_OBJECT || !role)
                return -EINVAL;
        *message = (struct message){ .role = MESSAGE_OTHER };
        for (unsigned i = 0; i < MESSAGE_OTHER; i++)
                if (!strcmp(role, roles[i]))
                        message->role = (enum message_role)i;
        builder = json_build(&message->json);
        json_put_node(&builder, json, node);
        r = json_put_end(&builder);
        if (!r)
                r = set_text(message, text ? text : "", bytes);
        if (r)
                message_deinit(message);
        return r;
}

int message_copy(struct message *message, const struct message *from)
{
        int r;

        *message = (struct message){ .role = from->role, .begin = from->begin, .end = from->end };
        r = bytes_add(&message->json, from->json.at, from->json.count + 1);
        if (!r) {
                message->json.count--;
                r = set_text(message, from->text.at, from->text.count);
        }
        if (r)
                message_deinit(message);
        return r;
}

void message_deinit(struct message *message)
{
        bytes_deinit(&message->json);
        bytes_deinit(&message->text);
}
