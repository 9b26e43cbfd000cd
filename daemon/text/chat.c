#include "daemon/text/chat.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MARK_BYTES 64u
#define NAMES      6u /* how many variables we set ourselves, at most */
#define ABSENT     "this model has no chat template"

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

/* Replaces a map by a copy in which the value `old` is another one. */
static int replace_member(struct arena *arena, struct value *map, const struct value *old,
                          struct value other)
{
        struct value copy;
        int r = value_map(arena, map->map->count, &copy);

        for (uint32_t i = 0; !r && i < map->map->count; i++) {
                const struct map_entry *entry = &map->map->entries[i];

                r = value_map_add(&copy, entry->key, &entry->value == old ? other : entry->value);
        }
        if (!r)
                r = value_map_end(arena, &copy);
        if (!r)
                *map = copy;
        return error_pass(r);
}

/* Replaces a list by a copy in which the last item is another one. */
static int replace_last(struct arena *arena, struct value *list, struct value other)
{
        uint32_t count = list->list->count;
        struct value copy;
        int r = value_list(arena, count, &copy);

        for (uint32_t i = 0; !r && i < count; i++)
                r = value_list_add(&copy, i + 1 == count ? other : list->list->items[i]);
        if (!r)
                *list = copy;
        return error_pass(r);
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
        return r ? error_pass(r) : error_pass(replace_member(arena, message, role, ours));
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

/* ---- marks in the text ---- */

/*
 * A mark is text that we give the template to find a place in what it writes.  The mark has a
 * random number, so no text of the client contains it.
 */
static void make_mark(const char *words, uint64_t nonce, char ret_mark[MARK_BYTES])
{
        snprintf(ret_mark, MARK_BYTES, "%s-%016" PRIx64, words, nonce);
}

static const char *find_mark(const char *text, size_t bytes, const char *mark)
{
        return memmem(text, bytes, mark, strlen(mark));
}

/* Takes `bytes` bytes away from the place `at` on. */
static void cut_out(struct rendered *rendered, size_t at, size_t bytes)
{
        struct rendered_span *spans = rendered->spans;
        size_t kept = 0, begin = 0;

        for (size_t i = 0; i < rendered->span_count; i++) {
                size_t end = begin + spans[i].bytes, left = spans[i].bytes;
                size_t from = begin > at ? begin : at;
                size_t to = end < at + bytes ? end : at + bytes;

                begin = end;
                if (to > from)
                        left -= to - from;
                if (left && kept && spans[kept - 1].origin == spans[i].origin)
                        spans[kept - 1].bytes += left;
                else if (left)
                        spans[kept++] = (struct rendered_span){ left, spans[i].origin };
        }
        rendered->span_count = kept;
        rendered->bytes -= bytes;
        memmove(rendered->text + at, rendered->text + at + bytes, rendered->bytes - at + 1);
}

/* ---- a turn ---- */

/*
 * A turn is rendered behind a short conversation, whose answer is a mark.  The turn is the text
 * that the template writes behind it.
 */
static void make_answer(uint64_t nonce, char ret_answer[MARK_BYTES])
{
        make_mark("samovar-earlier-answer", nonce, ret_answer);
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
        char answer[MARK_BYTES];
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
        char mark[MARK_BYTES];
        const char *answer;

        make_answer(nonce, mark);
        answer = find_mark(rendered->text, rendered->bytes, mark);
        if (!answer) {
                snprintf(why, why_bytes,
                         "this model's chat template does not show earlier answers, so it cannot "
                         "render a turn alone; give all messages, or append text");
                return error_raise(-EINVAL);
        }
        cut_out(rendered, 0, (size_t)(answer - rendered->text) + strlen(mark));
        return 0;
}

/* ---- the last message, continued ---- */

/*
 * A mark stands behind the text of the last message.  The prompt ends where the template shows it.
 * The mark also keeps the template from trimming the end of the text.
 */
static void make_end(uint64_t nonce, char ret_end[MARK_BYTES])
{
        make_mark("samovar-end-of-text", nonce, ret_end);
}

static bool is_text(const struct value *value, const char *word)
{
        return value && value->kind == VALUE_STRING &&
               (!word || (value->text->count == strlen(word) &&
                          !memcmp(value->text->bytes, word, value->text->count)));
}

/* The last part of a content that is a list, if it is a text; or NULL. */
static struct value *last_part(const struct value *content)
{
        const struct list *parts = content->kind == VALUE_LIST ? content->list : NULL;
        struct value *part =
                parts && parts->count ? (struct value *)&parts->items[parts->count - 1] : NULL;

        return part && is_text(value_member(*part, "text"), NULL) ? part : NULL;
}

/* NULL: the last message can be continued.  Else the sentence that says why not. */
static const char *check_last(struct value messages)
{
        const struct list *list = messages.kind == VALUE_LIST ? messages.list : NULL;
        struct value last = list && list->count ? list->items[list->count - 1] : value_none();
        const struct value *content = value_member(last, "content");
        const struct value *calls = value_member(last, "tool_calls");

        if (!is_text(value_member(last, "role"), "assistant"))
                return "continue_final_message is true, but the last message is not from the "
                       "assistant";
        if (calls && value_truth(*calls))
                return "continue_final_message is true, but the last message has tool_calls; only "
                       "a text can be continued";
        if (!content || (!is_text(content, NULL) && !last_part(content)))
                return "continue_final_message is true, but the content of the last message is "
                       "neither a text nor a list that ends with one";
        return NULL;
}

/* Replaces a text by one with the mark behind it. */
static int add_end(struct arena *arena, uint64_t nonce, struct value *text)
{
        size_t bytes = text->text->count;
        char end[MARK_BYTES], *joined;
        int r;

        make_end(nonce, end);
        joined = malloc(bytes + strlen(end));
        if (!joined)
                return error_raise(-ENOMEM);
        memcpy(joined, text->text->bytes, bytes);
        memcpy(joined + bytes, end, strlen(end));
        r = value_string(arena, joined, bytes + strlen(end), TEXT_GIVEN, text);
        free(joined);
        return error_pass(r);
}

/* The same messages with the mark behind the text of the last one; check_last() has passed. */
static int mark_end(struct arena *arena, uint64_t nonce, struct value *messages)
{
        struct value last = messages->list->items[messages->list->count - 1];
        const struct value *content = value_member(last, "content");
        struct value copy = *content, text = copy, part;
        int r;

        if (copy.kind == VALUE_STRING) {
                r = add_end(arena, nonce, &copy);
        } else {
                part = *last_part(content);
                text = *value_member(part, "text");
                r = add_end(arena, nonce, &text);
                if (!r)
                        r = replace_member(arena, &part, value_member(part, "text"), text);
                if (!r)
                        r = replace_last(arena, &copy, part);
        }
        if (!r)
                r = replace_member(arena, &last, content, copy);
        return r ? error_pass(r) : error_pass(replace_last(arena, messages, last));
}

/* Takes away everything from the mark on. */
static int cut_end(struct rendered *rendered, uint64_t nonce, char *why, size_t why_bytes)
{
        char mark[MARK_BYTES];
        const char *end;
        size_t at;

        make_end(nonce, mark);
        end = find_mark(rendered->text, rendered->bytes, mark);
        at = end ? (size_t)(end - rendered->text) : 0;
        if (!end || find_mark(end + 1, rendered->bytes - at - 1, mark)) {
                snprintf(why, why_bytes,
                         "this model's chat template %s, so the message cannot be continued",
                         end ? "shows the last message more than once"
                             : "does not show the end of the last message");
                return error_raise(-EINVAL);
        }
        cut_out(rendered, at, rendered->bytes - at);
        return 0;
}

/* ---- all of it ---- */

static int make_messages(struct arena *arena, const struct conversation *about,
                         struct value *ret_messages)
{
        int r = vouch_for_roles(arena, about->messages, ret_messages);

        if (!r && about->continue_final_message)
                r = mark_end(arena, about->nonce, ret_messages);
        if (!r && about->continues)
                r = put_behind_answer(arena, about->nonce, *ret_messages, ret_messages);
        return error_pass(r);
}

static int make_globals(const struct chat *chat, struct arena *arena,
                        const struct conversation *about, struct value *ret_globals)
{
        const struct map *vars = about->vars.kind == VALUE_MAP ? about->vars.map : NULL;
        struct value messages;
        int r = value_map(arena, NAMES + (vars ? vars->count : 0), ret_globals);

        if (!r)
                r = make_messages(arena, about, &messages);
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
        const char *refusal = about->continue_final_message ? check_last(about->messages) : NULL;
        struct value globals;
        int r;

        assert(template);
        if (refusal) {
                snprintf(why, why_bytes, "%s", refusal);
                return error_raise(-EINVAL);
        }
        limits.cancelled = about->cancelled;
        limits.arg = about->arg;
        r = make_globals(chat, arena, about, &globals);
        if (r) {
                snprintf(why, why_bytes, "out of memory");
                return error_pass(r);
        }
        r = template_render(template, globals, &limits, now, ret_rendered, why, why_bytes);
        if (r)
                return error_pass(r);
        if (about->continue_final_message)
                r = cut_end(ret_rendered, about->nonce, why, why_bytes);
        if (!r && about->continues)
                r = cut_turn(ret_rendered, about->nonce, why, why_bytes);
        if (r)
                rendered_free(ret_rendered);
        return error_pass(r);
}
