#include "daemon/edge/call-arguments.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "daemon/edge/call-spelling.h"

static int spell(const struct dialect *dialect, struct arena *arena, const char *text,
                 struct regex_text *ret_text)
{
        return text ? error_pass(call_spell(dialect, arena, text, strlen(text), ret_text)) : 0;
}

/* Each argument between two tags. */
static int make_tags(const struct dialect *dialect, struct arena *arena,
                     struct json_schema_options *options)
{
        const struct dialect_writing *writing = dialect->writing;
        struct json_tags *tags = arena_take(arena, sizeof(*tags));
        int r;

        if (!tags)
                return error_raise(-ENOMEM);
        *tags = (struct json_tags){
                .newline = dialect->tags && dialect->tags->newlines &&
                           writing->key_end[strlen(writing->key_end) - 1] != '\n',
        };
        options->tags = tags;
        r = spell(dialect, arena, writing->key, &tags->key);
        if (!r)
                r = spell(dialect, arena, writing->key_end, &tags->key_end);
        if (!r)
                r = spell(dialect, arena, writing->raw_key_end, &tags->raw_key_end);
        if (!r)
                r = spell(dialect, arena, writing->value_end, &tags->value_end);
        if (!r)
                r = spell(dialect, arena, writing->between_values, &tags->between);
        return error_pass(r);
}

/* Values that are no JSON. */
static int make_surface(const struct dialect *dialect, struct arena *arena,
                        struct json_schema_options *options)
{
        struct json_surface *surface = arena_take(arena, sizeof(*surface));

        if (!surface)
                return error_raise(-ENOMEM);
        *surface = (struct json_surface){ .python = dialect->shape == SHAPE_PYTHON };
        options->surface = surface;
        if (surface->python)
                return 0;
        options->space = JSON_SPACE_NONE;
        return error_pass(spell(dialect, arena, dialect->marks[MARK_QUOTE].spelling.text,
                                &surface->bare_quote));
}

int call_arguments_make(const struct dialect *dialect, struct arena *arena,
                        struct json_schema_options *ret_options)
{
        int r = 0;

        /* A tool without additionalProperties takes no arguments that it does not name. */
        *ret_options = (struct json_schema_options){ .only_named = true };
        if (dialect->writing->key)
                r = make_tags(dialect, arena, ret_options);
        if (!r && (dialect->shape == SHAPE_PYTHON || dialect->shape == SHAPE_BARE))
                r = make_surface(dialect, arena, ret_options);
        return error_pass(r);
}
