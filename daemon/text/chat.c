#include "daemon/text/chat.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define ANSWER_BYTES 64u
#define NAMES        6u /* how many variables we set ourselves, at most */
#define ABSENT       "this model has no chat template"

struct chat {
        struct template *plain, *tools;
        char *bos, *eos;
        bool absent;
        char missing[256]; /* "": it can render */
};

static int keep(const char *text, char **to)
{
        if (!text)
                return 0;
        *to = strdup(text);
        return *to ? 0 : error_raise(-ENOMEM);
}

/* A template with a fault counts as missing; chat->missing tells the first fault. */
static int parse(struct chat *chat, const char *name, const char *text, struct template **to)
{
        char why[200];
        int r;

        if (!text)
                return 0;
        r = template_open(text, strlen(text), to, why, sizeof(why));
        if (r == -EINVAL) {
                *to = NULL;
                if (!chat->missing[0])
                        snprintf(chat->missing, sizeof(chat->missing),
                                 "this model's chat template%s cannot be used: %s", name, why);
                return 0;
        }
        return error_pass(r);
}

static int fill(struct chat *chat, const struct chat_conf *conf)
{
        int r = keep(conf->bos, &chat->bos);

        if (!r)
                r = keep(conf->eos, &chat->eos);
        if (!r)
                r = parse(chat, "", conf->plain, &chat->plain);
        if (!r)
                r = parse(chat, " for tools", conf->tools, &chat->tools);
        chat->absent = !conf->plain && !conf->tools && !conf->fault;
        if (conf->fault)
                snprintf(chat->missing, sizeof(chat->missing),
                         "this model's chat template cannot be used: %s", conf->fault);
        else if (chat->absent)
                snprintf(chat->missing, sizeof(chat->missing), ABSENT);
        return error_pass(r);
}

int chat_open(const struct chat_conf *conf, struct chat **ret_chat)
{
        struct chat *chat = calloc(1, sizeof(*chat));
        int r;

        if (!chat)
                return error_raise(-ENOMEM);
        r = fill(chat, conf);
        if (r) {
                chat_close(chat);
                return error_pass(r);
        }
        *ret_chat = chat;
        return 0;
}

struct chat *chat_close(struct chat *chat)
{
        if (!chat)
                return NULL;
        template_close(chat->plain);
        template_close(chat->tools);
        free(chat->bos);
        free(chat->eos);
        free(chat);
        return NULL;
}

const char *chat_refusal(const struct chat *chat)
{
        if (!chat)
                return ABSENT;
        return chat->missing[0] ? chat->missing : NULL;
}

bool chat_is_absent(const struct chat *chat)
{
        return !chat || chat->absent;
}

bool chat_sets_variable(const char *name, size_t bytes)
{
        static const char *const names[NAMES] = { "messages",  "tools",
                                                  "documents", "add_generation_prompt",
                                                  "bos_token", "eos_token" };

        for (size_t i = 0; i < NAMES; i++)
                if (strlen(names[i]) == bytes && !memcmp(names[i], name, bytes))
                        return true;
        return false;
}

static int set(struct arena *arena, struct value *globals, const char *name, struct value item)
{
        return error_pass(value_map_name(arena, globals, name, item));
}

static int set_token(struct arena *arena, struct value *globals, const char *name, const char *text)
{
        struct value token;
        int r;

        if (!text)
                return 0;
        r = value_string(arena, text, strlen(text), TEXT_OURS, &token);
        return r ? error_pass(r) : error_pass(set(arena, globals, name, token));
}

static int set_vars(struct value *globals, const struct map *vars)
{
        int r = 0;

        for (uint32_t i = 0; !r && i < vars->count; i++)
                r = value_map_add(globals, vars->entries[i].key, vars->entries[i].value);
        return error_pass(r);
}

/*
 * If a role is one of these words, we vouch for it: it becomes TEXT_OURS.  Templates make control
 * tokens of it, as in '<|' + message.role + '|>', and no other token can be hidden in such a word.
 */
static bool is_known_role(const struct text *role)
{
        static const char *const known[] = { "system", "user", "assistant", "tool", "developer" };

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (role->count == strlen(known[i]) && !memcmp(role->bytes, known[i], role->count))
                        return true;
        return false;
}

/* Replaces a message by a copy whose role is TEXT_OURS, if the role is a known one. */
static int vouch_for_role(struct arena *arena, struct value *message)
{
        const struct value *role = value_member(*message, "role");
        struct value ours, copy;
        int r;

        if (!role || role->kind != VALUE_STRING || !is_known_role(role->text))
                return 0;
        r = value_string(arena, role->text->bytes, role->text->count, TEXT_OURS, &ours);
        if (!r)
                r = value_map(arena, message->map->count, &copy);
        for (uint32_t i = 0; !r && i < message->map->count; i++) {
                const struct map_entry *entry = &message->map->entries[i];

                r = value_map_add(&copy, entry->key, &entry->value == role ? ours : entry->value);
        }
        if (!r)
                r = value_map_end(arena, &copy);
        if (!r)
                *message = copy;
        return error_pass(r);
}

static int vouch_for_roles(struct arena *arena, struct value messages, struct value *ret_messages)
{
        int r;

        *ret_messages = messages;
        if (messages.kind != VALUE_LIST)
                return 0;
        r = value_list(arena, messages.list->count, ret_messages);
        for (uint32_t i = 0; !r && i < messages.list->count; i++) {
                struct value message = messages.list->items[i];

                r = vouch_for_role(arena, &message);
                if (!r)
                        r = value_list_add(ret_messages, message);
        }
        return error_pass(r);
}

/* ---- a turn ---- */

/*
 * A turn is rendered behind a short conversation with this answer.  The turn is the text that the
 * template writes behind it.  The answer has a random number, so no text of the client has it.
 */
static void make_answer(uint64_t nonce, char ret_answer[ANSWER_BYTES])
{
        snprintf(ret_answer, ANSWER_BYTES, "samovar: an earlier answer, %016" PRIx64, nonce);
}

static int add_message(struct arena *arena, struct value *list, const char *role,
                       const char *content)
{
        struct value message, from, text;
        int r = value_map(arena, 2, &message);

        if (!r)
                r = value_string(arena, role, strlen(role), TEXT_OURS, &from);
        if (!r)
                r = value_string(arena, content, strlen(content), TEXT_GIVEN, &text);
        if (!r)
                r = set(arena, &message, "role", from);
        if (!r)
                r = set(arena, &message, "content", text);
        if (!r)
                r = value_map_end(arena, &message);
        return r ? error_pass(r) : error_pass(value_list_add(list, message));
}

/* The same messages behind a question and the earlier answer. */
static int put_behind_answer(struct arena *arena, uint64_t nonce, struct value messages,
                             struct value *ret_messages)
{
        char answer[ANSWER_BYTES];
        const struct list *turn = messages.kind == VALUE_LIST ? messages.list : NULL;
        int r = value_list(arena, 2 + (turn ? turn->count : 0), ret_messages);

        make_answer(nonce, answer);
        if (!r)
                r = add_message(arena, ret_messages, "user", "a question");
        if (!r)
                r = add_message(arena, ret_messages, "assistant", answer);
        for (uint32_t i = 0; !r && turn && i < turn->count; i++)
                r = value_list_add(ret_messages, turn->items[i]);
        return error_pass(r);
}

/* Takes away everything up to the end of the earlier answer. */
static int cut_turn(struct rendered *rendered, uint64_t nonce, char *why, size_t why_bytes)
{
        char wanted[ANSWER_BYTES];
        const char *answer;
        size_t drop, left;

        make_answer(nonce, wanted);
        answer = memmem(rendered->text, rendered->bytes, wanted, strlen(wanted));
        if (!answer) {
                snprintf(why, why_bytes,
                         "this model's chat template does not show earlier answers, so it cannot "
                         "render a turn alone; give all messages, or append text");
                return error_raise(-EINVAL);
        }
        drop = left = (size_t)(answer - rendered->text) + strlen(wanted);
        for (size_t i = 0; left; i++) {
                struct rendered_span *span = &rendered->spans[i];
                size_t part = span->bytes < left ? span->bytes : left;

                span->bytes -= part;
                left -= part;
        }
        rendered->bytes -= drop;
        memmove(rendered->text, rendered->text + drop, rendered->bytes + 1);
        return 0;
}

static int make_globals(const struct chat *chat, struct arena *arena,
                        const struct conversation *about, struct value *ret_globals)
{
        const struct map *vars = about->vars.kind == VALUE_MAP ? about->vars.map : NULL;
        struct value messages;
        int r = value_map(arena, NAMES + (vars ? vars->count : 0), ret_globals);

        if (!r)
                r = vouch_for_roles(arena, about->messages, &messages);
        if (!r && about->continues)
                r = put_behind_answer(arena, about->nonce, messages, &messages);
        if (!r)
                r = set(arena, ret_globals, "messages", messages);
        if (!r)
                r = set(arena, ret_globals, "tools", about->tools);
        if (!r)
                r = set(arena, ret_globals, "documents", value_none());
        if (!r)
                r = set(arena, ret_globals, "add_generation_prompt",
                        value_bool(about->add_generation_prompt));
        if (!r)
                r = set_token(arena, ret_globals, "bos_token", chat->bos);
        if (!r)
                r = set_token(arena, ret_globals, "eos_token", chat->eos);
        if (!r && vars)
                r = set_vars(ret_globals, vars);
        if (!r)
                r = value_map_end(arena, ret_globals);
        assert(r <= 0); /* the client cannot set our names: chat_sets_variable() */
        return error_pass(r);
}

int chat_render(const struct chat *chat, struct arena *arena, const struct conversation *about,
                const struct tm *now, struct rendered *ret_rendered, char *why, size_t why_bytes)
{
        bool with_tools = about->tools.kind == VALUE_LIST && about->tools.list->count;
        const struct template *template =
                chat->tools && (with_tools || !chat->plain) ? chat->tools : chat->plain;
        struct template_limits limits = template_limits(about->bytes);
        struct value globals;
        int r;

        assert(template);
        limits.cancelled = about->cancelled;
        limits.arg = about->arg;
        r = make_globals(chat, arena, about, &globals);
        if (r) {
                snprintf(why, why_bytes, "out of memory");
                return error_pass(r);
        }
        r = template_render(template, globals, &limits, now, ret_rendered, why, why_bytes);
        if (!r && about->continues) {
                r = cut_turn(ret_rendered, about->nonce, why, why_bytes);
                if (r)
                        rendered_free(ret_rendered);
        }
        return error_pass(r);
}
