#include "daemon/text/chat-cuts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/value-edit.h"

#define MARK_BYTES 64u

/* ---- marks in the text ---- */

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
                r = value_map_name(arena, &message, "role", from);
        if (!r)
                r = value_map_name(arena, &message, "content", text);
        if (!r)
                r = value_map_end(arena, &message);
        return r ? error_pass(r) : error_pass(value_list_add(list, message));
}

int chat_put_behind_answer(struct arena *arena, uint64_t nonce, struct value messages,
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

int chat_cut_turn(struct rendered *rendered, uint64_t nonce, char *why, size_t why_bytes)
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

const char *chat_check_last(struct value messages)
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

int chat_mark_end(struct arena *arena, uint64_t nonce, struct value *messages)
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
                        r = value_edit_member(arena, &part, value_member(part, "text"), text);
                if (!r)
                        r = value_edit_item(arena, &copy, copy.list->count - 1, part);
        }
        if (!r)
                r = value_edit_member(arena, &last, content, copy);
        return r ? error_pass(r)
                 : error_pass(value_edit_item(arena, messages, messages->list->count - 1, last));
}

int chat_cut_end(struct rendered *rendered, uint64_t nonce, char *why, size_t why_bytes)
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
