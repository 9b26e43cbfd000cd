/*
 * Small templates, and the output of Jinja2 for each (contrib/reference/templates.py).
 *
 * A case is [template, its output or null, values: if they are not the common ones]. TEMPLATES
 * names another file of cases: contrib/dev/jinja makes such files.
 */
#include "tests/unit/template-rig.h"

static void renders_the_same_as_jinja2(void **state)
{
        const struct template_limits limits = template_limits(1u << 16);
        const char *others = getenv("TEMPLATES");
        struct value all, cases, values;
        unsigned wrong = 0;
        struct arena *arena;
        char path[1024];
        size_t bytes;
        char *text;

        (void)state;
        snprintf(path, sizeof(path), "%s/tests/golden/templates.json", getenv("SOURCES"));
        if (others)
                snprintf(path, sizeof(path), "%s", others);
        text = rig_read(path, &bytes);
        assert_int_equal(arena_new(64u << 20, &arena), 0);
        rig_values(arena, text, bytes, &all);
        free(text);
        cases = *value_member(all, "cases");
        values = *value_member(all, "values");
        for (uint32_t i = 0; i < cases.list->count; i++) {
                const struct list *list = cases.list->items[i].list;
                const struct value *one = list->items;
                const struct text *source = one[0].text;
                bool refused = one[1].kind == VALUE_NONE, good;
                struct outcome out;

                rig_render(source->bytes, source->count, list->count > 2 ? one[2] : values, &limits,
                           &out);
                good = refused ? out.r == -EINVAL
                               : !out.r && out.rendered.bytes == one[1].text->count &&
                                         !memcmp(out.rendered.text, one[1].text->bytes,
                                                 out.rendered.bytes);
                wrong += !good;
                if (!good && out.r)
                        print_message("# %u: %s\n", i, out.why);
                else if (!good)
                        print_message("# %u gives '%s'\n", i, out.rendered.text);
                if (!good && !others)
                        print_message("#    for %.*s\n#    not '%.*s'\n", (int)source->count,
                                      source->bytes, refused ? 7 : (int)one[1].text->count,
                                      refused ? "refused" : one[1].text->bytes);
                rendered_free(&out.rendered);
        }
        assert_true(others || cases.list->count > 1000);
        arena_free(arena);
        assert_int_equal(wrong, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(renders_the_same_as_jinja2),
        };

        assert_non_null(getenv("SOURCES"));
        return cmocka_run_group_tests(tests, NULL, NULL);
}
