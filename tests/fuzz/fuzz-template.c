/*
 * Hostile templates with hostile values.
 *
 *      the template, 0, a JSON document
 *
 * A template is refused with a sentence, or rendered within its budgets: it uses no more output,
 * fuel or memory than it was given.  Its spans cover the text, and differ from their neighbours.  A
 * second rendering gives the same.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/text/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char why[256];

static const struct template_limits limits = { .fuel = 2000,
                                               .output_bytes = 1u << 14,
                                               .memory_bytes = 1u << 20 };

static void check(const struct rendered *rendered)
{
        size_t bytes = 0;

        assert(rendered->bytes <= limits.output_bytes && rendered->fuel <= limits.fuel);
        assert(!rendered->text[rendered->bytes]);
        for (size_t i = 0; i < rendered->span_count; i++) {
                const struct rendered_span *s = &rendered->spans[i];

                assert(s->bytes && (!i || s[-1].origin != s->origin));
                bytes += s->bytes;
        }
        assert(bytes == rendered->bytes);
}

static int render(const struct template *template, struct value globals, struct rendered *rendered)
{
        const struct tm day = { .tm_year = 125, .tm_mday = 1 };
        int r;

        why[0] = 0;
        r = template_render(template, globals, &limits, &day, rendered, why, sizeof(why));
        assert(!r || r == -EINVAL);
        if (r)
                assert(!rendered->text);
        else
                check(rendered);
        return r;
}

/* Once more, of every eighth. */
static void use(const struct template *template, struct value globals, size_t bytes)
{
        struct rendered first, second;
        int r = render(template, globals, &first), again;

        if (bytes % 8) {
                rendered_free(&first);
                return;
        }
        again = render(template, globals, &second);
        assert(r == again && first.bytes == second.bytes && first.fuel == second.fuel);
        assert(r || !memcmp(first.text, second.text, first.bytes));
        rendered_free(&first);
        rendered_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *text = (const char *)data, *end = size ? memchr(text, 0, size) : NULL;
        size_t bytes = end ? (size_t)(end - text) : size, rest = size - bytes - (end != NULL);
        struct template *template;
        struct arena *arena;
        struct json_document *json;
        struct value globals;

        why[0] = 0;
        if (template_open(text, bytes, &template, why, sizeof(why))) {
                assert(why[0]);
                return 0;
        }
        assert(!arena_new(1u << 20, &arena));
        if (!end || json_parse(end + 1, rest, 1000, &json, why, sizeof(why)))
                json = NULL;
        if (!json || json_kind(json, 0) != JSON_OBJECT ||
            value_from_json(arena, json, 0, TEXT_GIVEN, &globals))
                assert(!value_map(arena, 0, &globals) && !value_map_end(arena, &globals));
        use(template, globals, bytes);
        json_free(json);
        arena_free(arena);
        template_close(template);
        return 0;
}
