#include "cli/chat/branch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"

#define NODES_MAX 1000000u

int branch_add(struct branch *branch, struct message *message)
{
        if (branch->count == branch->size) {
                size_t size = 2 * branch->size + 8;
                struct message *messages = realloc(branch->messages, size * sizeof(*messages));

                if (!messages) {
                        message_deinit(message);
                        return -ENOMEM;
                }
                branch->messages = messages;
                branch->size = size;
        }
        branch->messages[branch->count++] = *message;
        return 0;
}

void branch_remove(struct branch *branch, size_t at, size_t count)
{
        for (size_t i = at; i < at + count; i++)
                message_deinit(&branch->messages[i]);
        branch->count -= count;
        memmove(branch->messages + at, branch->messages + at + count,
                (branch->count - at) * sizeof(*branch->messages));
}

void branch_cut(struct branch *branch, size_t count)
{
        while (branch->count > count)
                message_deinit(&branch->messages[--branch->count]);
}

void branch_lose_handle(struct branch *branch)
{
        branch->handle = 0;
        branch->sent = branch->length = 0;
        for (size_t i = 0; i < branch->count; i++)
                branch->messages[i].begin = branch->messages[i].end = 0;
}

const struct message *branch_system(const struct branch *branch)
{
        return branch->count && branch->messages->role == MESSAGE_SYSTEM ? branch->messages : NULL;
}

int branch_set_system(struct branch *branch, const char *text, size_t bytes)
{
        struct message message;
        int r;

        if (branch_system(branch))
                branch_remove(branch, 0, 1);
        if (!bytes)
                return 0;
        r = message_make(&message, MESSAGE_SYSTEM, text, bytes);
        if (!r)
                r = branch_add(branch, &message);
        if (r)
                return r;
        memmove(branch->messages + 1, branch->messages,
                (branch->count - 1) * sizeof(*branch->messages));
        branch->messages[0] = message;
        return 0;
}

size_t branch_turn(const struct branch *branch, size_t turn)
{
        size_t i = 0;

        for (; i < branch->count; i++)
                if (branch->messages[i].role == MESSAGE_USER && !turn--)
                        break;
        return i;
}

size_t branch_turns(const struct branch *branch)
{
        size_t turns = 0;

        for (size_t i = 0; i < branch->count; i++)
                turns += branch->messages[i].role == MESSAGE_USER;
        return turns;
}

static int copy_bytes(struct bytes *to, const struct bytes *from)
{
        return from->count ? bytes_add(to, from->at, from->count) : 0;
}

struct branch *branch_copy(const struct branch *branch)
{
        struct branch *copy = calloc(1, sizeof(*copy));
        struct message message;
        int r = 0;

        if (!copy)
                return NULL;
        r = copy_bytes(&copy->tools, &branch->tools);
        if (!r)
                r = copy_bytes(&copy->vars, &branch->vars);
        for (size_t i = 0; !r && i < branch->count; i++) {
                r = message_copy(&message, &branch->messages[i]);
                if (!r)
                        r = branch_add(copy, &message);
        }
        return r ? branch_free(copy) : copy;
}

struct branch *branch_free(struct branch *branch)
{
        if (!branch)
                return NULL;
        branch_cut(branch, 0);
        free(branch->messages);
        bytes_deinit(&branch->tools);
        bytes_deinit(&branch->vars);
        free(branch);
        return NULL;
}

int branch_messages(const struct branch *branch, size_t from, struct bytes *to)
{
        int r = bytes_add(to, "[", 1);

        for (size_t i = from; !r && i < branch->count; i++) {
                if (i > from)
                        r = bytes_add(to, ",\n ", 3);
                if (!r)
                        r = bytes_add(to, branch->messages[i].json.at,
                                      branch->messages[i].json.count);
        }
        return r ? r : bytes_add(to, "]", 1);
}

static int add_member(struct bytes *to, const char *name, const struct bytes *json)
{
        int r = 0;

        if (json->count)
                r = bytes_add(to, name, strlen(name));
        return r || !json->count ? r : bytes_add(to, json->at, json->count);
}

int branch_write(const struct branch *branch, struct bytes *to)
{
        static const char begin[] = "{\"messages\":\n";
        int r = bytes_add(to, begin, sizeof(begin) - 1);

        if (!r)
                r = branch_messages(branch, 0, to);
        if (!r)
                r = add_member(to, ",\n\"tools\":", &branch->tools);
        if (!r)
                r = add_member(to, ",\n\"template_vars\":", &branch->vars);
        return r ? r : bytes_add(to, "}\n", 2);
}

static int take_json(const struct json_document *json, uint32_t node, struct bytes *to)
{
        struct json_builder builder = json_build(to);

        if (node == JSON_NONE)
                return 0;
        json_put_node(&builder, json, node);
        return json_put_end(&builder);
}

static int read_messages(struct branch *branch, const struct json_document *json, uint32_t list,
                         char *why, size_t why_bytes)
{
        struct message message;
        int r = 0;

        if (json_kind(json, list) != JSON_ARRAY) {
                snprintf(why, why_bytes, "it has no list of messages");
                return -EINVAL;
        }
        for (uint32_t node = json_first(json, list); !r && node != JSON_NONE;
             node = json_next(json, node)) {
                r = message_read(&message, json, node);
                if (!r)
                        r = branch_add(branch, &message);
        }
        if (r)
                snprintf(why, why_bytes,
                         r == -EINVAL ? "message %zu is no object with a role" : "no memory at %zu",
                         branch->count + 1);
        return r;
}

int branch_read(struct branch *branch, const struct bytes *text, char *why, size_t why_bytes)
{
        struct json_document *json = NULL;
        int r = json_parse(text->at, text->count, NODES_MAX, &json, why, why_bytes);
        uint32_t list;

        if (r)
                return r;
        list = json_kind(json, 0) == JSON_ARRAY ? 0 : json_member(json, 0, "messages");
        r = read_messages(branch, json, list, why, why_bytes);
        if (!r)
                r = take_json(json, json_member(json, 0, "tools"), &branch->tools);
        if (!r)
                r = take_json(json, json_member(json, 0, "template_vars"), &branch->vars);
        json_free(json);
        return r;
}
