#include "daemon/edge/call-form.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/edge/call-arguments.h"
#include "daemon/edge/call-spelling.h"
#include "json/builder.h"
#include "json/reader.h"

#define WISH_NODES_MAX JSON_SCHEMA_NODES
#define PIECES_MAX     9u /* of a call: its parts, and the texts around them */
#define FORM_PARTS     4u /* of the structure of calls; the list is the third one */

struct builder {
        const struct dialect *dialect;
        const struct json_document *wish;
        struct arena *arena;
        const char *middle; /* of a call: from the first of its parts to the last one */
        size_t middle_bytes;
        struct json_schema_options arguments;
        char *why;
        size_t why_bytes;
};

#define REFUSE(in, format, ...)                                                                    \
        error_raise(errtext_set((in)->why, (in)->why_bytes, -EINVAL, format, ##__VA_ARGS__))

/* ---- texts ---- */

static int spell_part(const struct builder *builder, const char *text, size_t bytes,
                      struct structure *ret_literal)
{
        *ret_literal = (struct structure){ .kind = STRUCTURE_LITERAL };
        return error_pass(
                call_spell(builder->dialect, builder->arena, text, bytes, &ret_literal->text));
}

/* These two texts, one behind the other; either may be NULL. */
static int spell_both(const struct builder *builder, const char *one, size_t one_bytes,
                      const char *other, size_t other_bytes, struct regex_text *ret_text)
{
        char *both = arena_take(builder->arena, one_bytes + other_bytes + 1);

        if (!both)
                return error_raise(-ENOMEM);
        if (one_bytes)
                memcpy(both, one, one_bytes);
        if (other_bytes)
                memcpy(both + one_bytes, other, other_bytes);
        return error_pass(call_spell(builder->dialect, builder->arena, both,
                                     one_bytes + other_bytes, ret_text));
}

static size_t length(const char *text)
{
        return text ? strlen(text) : 0;
}

/* ---- one call ---- */

static struct structure expression(const char *text)
{
        return (struct structure){ .kind = STRUCTURE_REGEX,
                                   .text = { text, (uint32_t)strlen(text) } };
}

/* Names that no shape of calls has to escape. */
static bool can_be_written(const char *name, size_t bytes)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_.:/-";

        return bytes && strspn(name, letters) == bytes && bytes <= 128;
}

static int read_name(const struct builder *builder, uint32_t tool, struct structure *ret_part)
{
        size_t bytes = 0;
        const char *name =
                json_string(builder->wish, json_member(builder->wish, tool, "name"), &bytes);

        if (!name || !can_be_written(name, bytes))
                return REFUSE(builder,
                              "tool \"%.60s\": calls need a name of at most 128 letters, digits "
                              "and _.:/-",
                              name ? name : "");
        *ret_part =
                (struct structure){ .kind = STRUCTURE_LITERAL, .text = { name, (uint32_t)bytes } };
        return 0;
}

static int read_schema(const struct builder *builder, uint32_t tool, struct structure *ret_part)
{
        struct bytes text = { 0 };
        struct json_builder to = json_build(&text);
        char *copy = NULL;

        json_put_node(&to, builder->wish, json_member(builder->wish, tool, "schema"));
        if (!json_put_end(&to))
                copy = arena_take(builder->arena, text.count + 1);
        if (copy)
                memcpy(copy, text.at, text.count);
        *ret_part = (struct structure){ .kind = STRUCTURE_SCHEMA,
                                        .text = { copy, (uint32_t)text.count },
                                        .schema = builder->arguments };
        bytes_deinit(&text);
        return copy ? 0 : error_raise(-ENOMEM);
}

static int read_piece(const struct builder *builder, uint32_t tool, char which,
                      struct structure *ret_part)
{
        if (which == *WRITTEN_NAME)
                return error_pass(read_name(builder, tool, ret_part));
        if (which == *WRITTEN_ARGUMENTS)
                return error_pass(read_schema(builder, tool, ret_part));
        *ret_part = expression(which == *WRITTEN_ID ? "[A-Za-z0-9]{9}" : "0|[1-9][0-9]{0,2}");
        return 0;
}

static bool stands_for_part(char byte)
{
        return byte >= *WRITTEN_NAME && byte <= *WRITTEN_NUMBER;
}

/* The parts of a call of this tool, with the texts between them. */
static int read_tool(const struct builder *builder, uint32_t tool, struct structure *ret_part)
{
        struct structure *pieces = arena_take(builder->arena, PIECES_MAX * sizeof(*pieces));
        const char *at = builder->middle, *end = at + builder->middle_bytes;
        uint32_t count = 0;
        int r = pieces ? 0 : error_raise(-ENOMEM);

        while (!r && at < end) {
                const char *from = at;

                while (at < end && !stands_for_part(*at))
                        at++;
                if (at > from)
                        r = spell_part(builder, from, (size_t)(at - from), &pieces[count++]);
                if (!r && at < end)
                        r = read_piece(builder, tool, *at++, &pieces[count++]);
        }
        *ret_part =
                (struct structure){ .kind = STRUCTURE_SEQUENCE, .parts = pieces, .count = count };
        return error_pass(r);
}

/* ---- all calls ---- */

static int read_tools(const struct builder *builder, struct structure *ret_choice)
{
        uint32_t list = json_member(builder->wish, 0, "tools"), i = 0;
        uint32_t count = json_count(builder->wish, list);
        struct structure *tools = arena_take(builder->arena, (count + 1ul) * sizeof(*tools));
        int r = tools ? 0 : error_raise(-ENOMEM);

        for (uint32_t at = json_first(builder->wish, list); !r && at != JSON_NONE;
             at = json_next(builder->wish, at))
                r = read_tool(builder, at, &tools[i++]);
        *ret_choice =
                (struct structure){ .kind = STRUCTURE_CHOICE, .parts = tools, .count = count };
        return error_pass(r);
}

/* Where the parts of a call begin and end. */
static void find_middle(struct builder *builder, const char *call)
{
        const char *first = call, *last = call + strlen(call);

        while (!stands_for_part(*first))
                first++;
        while (!stands_for_part(last[-1]))
                last--;
        builder->middle = first;
        builder->middle_bytes = (size_t)(last - first);
}

/* The mark that these calls begin with; MARK_N: none. */
static unsigned first_mark(const struct dialect *dialect)
{
        static const uint8_t marks[] = { MARK_CALLS, MARK_CALL };
        const struct dialect_writing *writing = dialect->writing;
        const char *text = writing->begin ? writing->begin : writing->call;

        for (size_t i = 0; i < sizeof(marks); i++)
                if (dialect->marks[marks[i]].bytes &&
                    !strncmp(text, dialect->marks[marks[i]].spelling.text,
                             dialect->marks[marks[i]].bytes))
                        return marks[i];
        return MARK_N;
}

/* A list of calls, with what is behind a call and before the next one in between. */
static int make_list(const struct builder *builder, struct structure *list)
{
        const struct dialect_writing *writing = builder->dialect->writing;
        const char *tail = builder->middle + builder->middle_bytes;
        struct structure *choice = arena_take(builder->arena, sizeof(*choice));
        size_t head_bytes = (size_t)(builder->middle - writing->call);
        struct regex_text between;
        uint64_t max = 0;
        int r;

        if (!choice)
                return error_raise(-ENOMEM);
        r = read_tools(builder, choice);
        if (!r)
                r = spell_both(builder, tail, strlen(tail), writing->between,
                               length(writing->between), &between);
        (void)json_whole(builder->wish, json_member(builder->wish, 0, "max"), &max);
        *list = (struct structure){ .kind = STRUCTURE_LIST,
                                    .parts = choice,
                                    .count = 1,
                                    .min = 1,
                                    .max = max ? (uint32_t)max : REGEX_FOREVER };
        if (!writing->between)
                list->max = 1;
        if (!r)
                r = spell_both(builder, between.bytes, between.count, writing->call, head_bytes,
                               &list->text);
        return error_pass(r);
}

static int make_calls(const struct builder *builder, struct structure *ret_calls)
{
        const struct dialect_writing *writing = builder->dialect->writing;
        const char *tail = builder->middle + builder->middle_bytes;
        unsigned mark = first_mark(builder->dialect);
        size_t mark_bytes = mark < MARK_N ? builder->dialect->marks[mark].bytes : 0;
        size_t head_bytes = (size_t)(builder->middle - writing->call);
        struct structure *parts = arena_take(builder->arena, FORM_PARTS * sizeof(*parts));
        const char *begin = writing->begin ? writing->begin : "";
        int r;

        if (!parts)
                return error_raise(-ENOMEM);
        memset(parts, 0, FORM_PARTS * sizeof(*parts)); /* literals */
        if (*begin)
                r = spell_both(builder, begin + mark_bytes, strlen(begin) - mark_bytes,
                               writing->call, head_bytes, &parts[1].text);
        else
                r = spell_both(builder, writing->call + mark_bytes, head_bytes - mark_bytes, NULL,
                               0, &parts[1].text);
        if (!r)
                r = spell_both(builder, *begin ? begin : writing->call, mark_bytes, NULL, 0,
                               &parts[0].text);
        if (!r)
                r = make_list(builder, &parts[2]);
        if (!r)
                r = spell_both(builder, tail, strlen(tail), writing->end, length(writing->end),
                               &parts[3].text);
        *ret_calls = (struct structure){ .kind = STRUCTURE_SEQUENCE,
                                         .parts = parts,
                                         .count = FORM_PARTS };
        return error_pass(r);
}

/* ---- answers that may have calls ---- */

static void find_marks(const struct dialect *dialect, struct call_form *form)
{
        static const uint8_t marks[] = { MARK_CALLS, MARK_CALL, MARK_CALL_TOO };

        for (size_t i = 0; i < sizeof(marks); i++)
                if (dialect->marks[marks[i]].bytes && !dialect->marks[marks[i]].is_token)
                        form->marks[form->mark_count++] =
                                (struct regex_text){ dialect->marks[marks[i]].spelling.text,
                                                     dialect->marks[marks[i]].bytes };
}

static struct structure sequence(const struct structure *parts, uint32_t count)
{
        return (struct structure){ .kind = STRUCTURE_SEQUENCE, .parts = parts, .count = count };
}

static struct structure choice(const struct structure *parts, uint32_t count)
{
        return (struct structure){ .kind = STRUCTURE_CHOICE, .parts = parts, .count = count };
}

/* Text without calls, up to the end. */
static struct structure free_text(const struct call_form *form)
{
        return (struct structure){ .kind = STRUCTURE_TEXT,
                                   .without = form->marks,
                                   .without_count = form->mark_count };
}

/* Text from this literal on, up to another one; to the end, if that is NULL. */
static int make_framed(const struct builder *builder, const struct call_form *form,
                       const char *open, const char *close, struct structure *ret_part)
{
        struct structure *parts = arena_take(builder->arena, 3 * sizeof(*parts));
        int r = parts ? 0 : error_raise(-ENOMEM);

        if (!r)
                r = spell_part(builder, open, strlen(open), &parts[0]);
        if (!r && close)
                r = spell_part(builder, close, strlen(close), &parts[2]);
        if (r)
                return error_pass(r);
        parts[1] = free_text(form);
        if (close) {
                parts[1].parts = &parts[2];
                parts[1].count = parts[1].min = parts[1].max = 1;
                parts[1].closed = true;
        }
        *ret_part = sequence(parts, 2);
        return 0;
}

/* Text for people before a call, or a call, or the final message. */
static int make_messages(const struct builder *builder, struct call_form *form,
                         struct structure *parts)
{
        int r;

        parts[2] = sequence(NULL, 0);
        r = make_framed(builder, form, "<|channel|>commentary<|message|>",
                        "<|end|><|start|>assistant", &parts[3]);
        parts[4] = form->calls;
        if (!r)
                r = make_framed(builder, form, "<|channel|>final<|message|>", NULL, &parts[5]);
        parts[0] = choice(&parts[2], 2);
        parts[1] = choice(&parts[4], 2);
        form->answer = sequence(parts, 2);
        form->answer_path = "/1/0";
        return error_pass(r);
}

/*
 * Calls without a mark begin an answer, so text begins with another character.  The marks that text
 * must not have begin with "<|", so the first character is none of theirs.
 */
static void make_unmarked(struct call_form *form, struct structure *parts)
{
        parts[0] = form->calls;
        parts[1] = sequence(NULL, 0);
        parts[2] = sequence(&parts[3], 2);
        parts[3] = expression("[^\\s{\\[<]|<[^|]");
        parts[4] = free_text(form);
        form->answer = choice(parts, 3);
        form->answer_path = "/0";
}

static int make_answer(const struct builder *builder, struct call_form *form)
{
        const struct dialect *dialect = builder->dialect;
        struct structure *parts = arena_take(builder->arena, 6 * sizeof(*parts));
        int r;

        if (!parts)
                return error_raise(-ENOMEM);
        find_marks(dialect, form);
        if (dialect->shape == SHAPE_CHANNELS)
                return error_pass(make_messages(builder, form, parts));
        if (dialect->traits & DIALECT_BARE) {
                make_unmarked(form, parts);
                return 0;
        }
        parts[0] = free_text(form);
        parts[0].parts = &form->calls;
        parts[0].count = parts[0].max = 1;
        parts[0].closed = true;
        form->answer = parts[0];
        form->answer_path = "/0";
        if (!dialect->marks[MARK_ANSWER].bytes)
                return 0;
        r = make_framed(builder, form, dialect->marks[MARK_ANSWER].spelling.text,
                        dialect->marks[MARK_ANSWER_END].spelling.text, &parts[1]);
        form->answer = choice(parts, 2);
        form->answer_path = "/0/0";
        return error_pass(r);
}

/* ---- the whole ---- */

static int build(struct builder *builder, struct call_form *form)
{
        const struct dialect *dialect = builder->dialect;
        int r;

        assert(dialect->writing);
        find_middle(builder, dialect->writing->call);
        r = call_arguments_make(dialect, builder->arena, &builder->arguments);
        if (!r)
                r = make_calls(builder, &form->calls);
        if (!r)
                r = make_answer(builder, form);
        (void)json_bool(builder->wish, json_member(builder->wish, 0, "required"), &form->required);
        return error_pass(r);
}

int call_form_open(const struct dialect *dialect, const char *wish, size_t bytes,
                   struct call_form *ret_form, char *why, size_t why_bytes)
{
        struct builder builder = { .dialect = dialect, .why = why, .why_bytes = why_bytes };
        int r;

        *ret_form = (struct call_form){ 0 };
        r = json_parse(wish, bytes, WISH_NODES_MAX, &ret_form->wish, why, why_bytes);
        if (!r)
                r = arena_new(SIZE_MAX / 2, &ret_form->arena);
        builder.wish = ret_form->wish;
        builder.arena = ret_form->arena;
        if (!r)
                r = build(&builder, ret_form);
        if (r == -ENOMEM)
                errtext_set(why, why_bytes, r, "out of memory");
        if (r)
                call_form_close(ret_form);
        return error_pass(r);
}

void call_form_close(struct call_form *form)
{
        json_free(form->wish);
        arena_free(form->arena);
        *form = (struct call_form){ 0 };
}

/* The tool whose part this is; JSON_NONE: the part is not of a tool. */
static uint32_t tool_at(const struct call_form *form, const char *place, const char *path)
{
        size_t bytes = strlen(path);
        unsigned index = 0;
        uint32_t at;

        if (strncmp(place, path, bytes) || sscanf(place + bytes, "/2/0/%u", &index) != 1)
                return JSON_NONE;
        at = json_first(form->wish, json_member(form->wish, 0, "tools"));
        while (index-- && at != JSON_NONE)
                at = json_next(form->wish, at);
        return at;
}

bool call_form_explain(const struct call_form *form, const char *path, char *why, size_t why_bytes)
{
        static const char head[] = "part \"", foot[] = "\": ";
        const char *end = strstr(why, foot);
        uint32_t tool = JSON_NONE;
        char what[400];

        if (!strncmp(why, head, sizeof(head) - 1) && end)
                tool = tool_at(form, why + sizeof(head) - 1, path);
        if (tool == JSON_NONE)
                return false;
        snprintf(what, sizeof(what), "%s", end + sizeof(foot) - 1);
        snprintf(why, why_bytes, "tool \"%.60s\": %s",
                 json_string(form->wish, json_member(form->wish, tool, "name"), NULL), what);
        return true;
}
