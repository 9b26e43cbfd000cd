#include "daemon/text/chat.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/chat-calls.h"
#include "daemon/text/chat-cuts.h"
#include "daemon/text/value-edit.h"

#define NAMES  6u /* how many variables we set ourselves, at most */
#define ABSENT "this model has no chat template"

struct chat {
        struct template *plain, *tools;
        char *bos, *eos;
        bool absent;
        enum calls_form form;
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
        struct value ours;
        int r;

        if (!role || role->kind != VALUE_STRING || !is_known_role(role->text))
                return 0;
        r = value_string(arena, role->text->bytes, role->text->count, TEXT_OURS, &ours);
        return r ? error_pass(r) : error_pass(value_edit_member(arena, message, role, ours));
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

/* ---- all of it ---- */

static int make_messages(const struct chat *chat, struct arena *arena,
                         const struct conversation *about, struct value *ret_messages, char *why,
                         size_t why_bytes)
{
        int r = vouch_for_roles(arena, about->messages, ret_messages);

        if (!r)
                r = chat_calls_convert(arena, chat->form, about->bytes, ret_messages, why,
                                       why_bytes);

        if (!r && about->continue_final_message)
                r = chat_mark_end(arena, about->nonce, ret_messages);
        if (!r && about->continues)
                r = chat_put_behind_answer(arena, about->nonce, *ret_messages, ret_messages);
        return error_pass(r);
}

static int make_globals(const struct chat *chat, struct arena *arena,
                        const struct conversation *about, struct value *ret_globals, char *why,
                        size_t why_bytes)
{
        const struct map *vars = about->vars.kind == VALUE_MAP ? about->vars.map : NULL;
        struct value messages;
        int r = value_map(arena, NAMES + (vars ? vars->count : 0), ret_globals);

        if (!r)
                r = make_messages(chat, arena, about, &messages, why, why_bytes);
        if (!r)
                r = set(arena, ret_globals, "messages", messages);
        if (!r)
                r = set(arena, ret_globals, "tools", about->tools);
        if (!r)
                r = set(arena, ret_globals, "documents", value_none());
        if (!r)
                r = set(arena, ret_globals, "add_generation_prompt",
                        value_bool(about->add_generation_prompt && !about->continue_final_message));
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
        const char *refusal =
                about->continue_final_message ? chat_check_last(about->messages) : NULL;
        struct value globals;
        int r;

        assert(template);
        if (refusal) {
                snprintf(why, why_bytes, "%s", refusal);
                return error_raise(-EINVAL);
        }
        limits.cancelled = about->cancelled;
        limits.arg = about->arg;
        r = make_globals(chat, arena, about, &globals, why, why_bytes);
        if (r == -ENOMEM)
                snprintf(why, why_bytes, "out of memory");
        if (r)
                return error_pass(r);
        r = template_render(template, globals, &limits, now, ret_rendered, why, why_bytes);
        if (r)
                return error_pass(r);
        if (about->continue_final_message)
                r = chat_cut_end(ret_rendered, about->nonce, why, why_bytes);
        if (!r && about->continues)
                r = chat_cut_turn(ret_rendered, about->nonce, why, why_bytes);
        if (r)
                rendered_free(ret_rendered);
        return error_pass(r);
}

/* ---- opening ---- */

/* Renders a call in this form: 0, without a text if the template refuses it, or -ENOMEM. */
static int try_form(const struct chat *chat, enum calls_form form, struct rendered *ret_rendered)
{
        struct conversation about = { .bytes = CHAT_CALLS_SAMPLE_BYTES };
        const struct tm now = { .tm_year = 125, .tm_mday = 1 };
        struct arena *arena;
        char why[256];
        int r = arena_new(2 * CHAT_CALLS_SAMPLE_BYTES, &arena);

        if (r)
                return error_pass(r);
        r = chat_calls_sample(arena, form, &about.messages, &about.tools);
        if (!r)
                r = chat_render(chat, arena, &about, &now, ret_rendered, why, sizeof(why));
        arena_free(arena);
        return r == -EINVAL ? 0 : error_pass(r);
}

static int find_form(struct chat *chat)
{
        struct rendered objects = { 0 }, texts = { 0 };
        int r = try_form(chat, CALLS_AS_OBJECTS, &objects);

        if (!r)
                r = try_form(chat, CALLS_AS_TEXTS, &texts);
        if (!r)
                chat->form = chat_calls_judge(objects.text ? &objects : NULL,
                                              texts.text ? &texts : NULL);
        rendered_free(&objects);
        rendered_free(&texts);
        return error_pass(r);
}

int chat_open(const struct chat_conf *conf, struct chat **ret_chat)
{
        struct chat *chat = calloc(1, sizeof(*chat));
        int r;

        if (!chat)
                return error_raise(-ENOMEM);
        r = fill(chat, conf);
        if (!r && !chat_refusal(chat))
                r = find_form(chat);
        if (r) {
                chat_close(chat);
                return error_pass(r);
        }
        *ret_chat = chat;
        return 0;
}
