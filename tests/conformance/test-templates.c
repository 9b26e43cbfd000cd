/*
 * Widely used templates, compared with prompts that other programs rendered.
 *
 * SAMOVAR_DATA says where the files are; without it there is nothing to test.
 */
#include "daemon/text/chat.h"
#include "tests/unit/template-rig.h"

static struct value member(struct value map, const char *name)
{
        const struct value *found = value_member(map, name);

        return found ? *found : (struct value){ .kind = VALUE_UNDEFINED };
}

static struct value read_values(struct arena *arena, const char *name)
{
        char path[1024];
        struct value all;
        size_t bytes;
        char *text;

        snprintf(path, sizeof(path), "%s/templates/%s", getenv("SAMOVAR_DATA"), name);
        text = rig_read(path, &bytes);
        rig_values(arena, text, bytes, &all);
        free(text);
        return all;
}

static bool as_expected(struct value template, struct value globals, struct value expected,
                        char *why, size_t why_bytes)
{
        const struct template_limits limits = template_limits(1u << 20);
        struct outcome out;
        size_t same = 0;
        bool equal;

        rig_render(template.text->bytes, template.text->count, globals, &limits, &out);
        snprintf(why, why_bytes, "%s", out.why);
        equal = !out.r && out.rendered.bytes == expected.text->count &&
                !memcmp(out.rendered.text, expected.text->bytes, out.rendered.bytes);
        while (!out.r && !equal && same < expected.text->count &&
               out.rendered.text[same] == expected.text->bytes[same])
                same++;
        if (!out.r && !equal)
                snprintf(why, why_bytes, "at %zu: '%.40s', not '%.*s'", same,
                         out.rendered.text + same,
                         (int)(expected.text->count - same < 40 ? expected.text->count - same : 40),
                         expected.text->bytes + same);
        rendered_free(&out.rendered);
        return equal;
}

static unsigned run_model(struct arena *arena, struct value model, struct value cases)
{
        struct value tokens = member(model, "special_tokens"), globals;
        unsigned good = 0;
        char why[512];

        for (uint32_t i = 0; i < cases.list->count; i++) {
                const struct map *one = cases.list->items[i].map;

                assert_int_equal(value_map(arena, one->count + tokens.map->count, &globals), 0);
                for (uint32_t n = 0; n < tokens.map->count; n++)
                        value_map_add(&globals, tokens.map->entries[n].key,
                                      tokens.map->entries[n].value);
                for (uint32_t n = 0; n < one->count; n++)
                        value_map_add(&globals, one->entries[n].key, one->entries[n].value);
                assert_int_equal(value_map_end(arena, &globals), 0);
                if (as_expected(member(model, "template"), globals,
                                member(cases.list->items[i], "expected"), why, sizeof(why)))
                        good++;
                else
                        print_message("#   case %u: %s\n", i, why);
        }
        return good;
}

static void renders_the_prompts_of_widely_used_models(void **state)
{
        unsigned good = 0, all = 0;
        struct arena *arena;
        struct value models;

        (void)state;
        assert_int_equal(arena_new(64u << 20, &arena), 0);
        models = read_values(arena, "jinja.cpp/chat_templates.json");
        for (uint32_t i = 0; i < models.map->count; i++) {
                struct value model = models.map->entries[i].value, cases = member(model, "cases");
                unsigned rendered = run_model(arena, model, cases);

                print_message("# %-45.*s %3u of %3u\n", (int)models.map->entries[i].key.text->count,
                              models.map->entries[i].key.text->bytes, rendered, cases.list->count);
                good += rendered;
                all += cases.list->count;
        }
        print_message("# %u of %u\n", good, all);
        assert_int_equal(all, 207);
        assert_int_equal(good, all);
        arena_free(arena);
}

/* This template prints a list, which in JavaScript is JSON; contrib/reference/templates.py has
 * Python's output. */
#define PRINTED "MadeAgents/Hammer2.1"

static struct value as_python_prints(struct arena *arena)
{
        char path[1024];
        struct value value;
        size_t bytes;
        char *text;

        snprintf(path, sizeof(path), "%s/tests/golden/templates/hammer.txt", getenv("SOURCES"));
        text = rig_read(path, &bytes);
        assert_int_equal(value_string(arena, text, bytes, TEXT_OURS, &value), 0);
        free(text);
        return value;
}

static void renders_the_templates_of_the_javascript_suite(void **state)
{
        struct arena *arena;
        struct value cases;
        unsigned good = 0;
        char why[512];

        (void)state;
        rig_day = (struct tm){
                .tm_year = 125, .tm_mon = 6, .tm_mday = 10, .tm_wday = 4, .tm_yday = 190
        };
        assert_int_equal(arena_new(64u << 20, &arena), 0);
        cases = read_values(arena, "hf-jinja/e2e.json");
        for (uint32_t i = 0; i < cases.list->count; i++) {
                struct value one = cases.list->items[i], name = member(one, "name");
                struct value target = member(one, "target");

                if (name.text->count == strlen(PRINTED) &&
                    !memcmp(name.text->bytes, PRINTED, name.text->count))
                        target = as_python_prints(arena);
                if (as_expected(member(one, "chat_template"), member(one, "data"), target, why,
                                sizeof(why)))
                        good++;
                else
                        print_message("# %.*s: %s\n", (int)name.text->count, name.text->bytes, why);
        }
        print_message("# %u of %u\n", good, cases.list->count);
        assert_int_equal(cases.list->count, 53);
        assert_int_equal(good, 53);
        arena_free(arena);
}

/* ---- turns ---- */

#define ANSWER "The answer is 42."

/* The text of these messages, or NULL if the template refuses them. */
static char *rendered_as(const struct chat *chat, const char *json, bool continues)
{
        struct conversation about = { .add_generation_prompt = true,
                                      .continues = continues,
                                      .bytes = 1u << 16 };
        struct rendered rendered = { 0 };
        struct arena *arena;
        char why[512], *text = NULL;
        int r;

        assert_int_equal(arena_new(4u << 20, &arena), 0);
        rig_values(arena, json, strlen(json), &about.messages);
        r = chat_render(chat, arena, &about, &rig_day, &rendered, why, sizeof(why));
        arena_free(arena);
        if (r)
                print_message("#   %s\n", why);
        else
                text = strdup(rendered.text);
        rendered_free(&rendered);
        return text;
}

static bool is_turn_as_in_whole(struct value template)
{
        static const char whole[] = "[{\"role\":\"user\",\"content\":\"What?\"},"
                                    "{\"role\":\"assistant\",\"content\":\"" ANSWER "\"},"
                                    "{\"role\":\"user\",\"content\":\"And then?\"}]";
        static const char turn[] = "[{\"role\":\"user\",\"content\":\"And then?\"}]";
        char *source = strndup(template.text->bytes, template.text->count);
        const struct chat_conf conf = { .plain = source, .bos = "<s>", .eos = "</s>" };
        char *all, *part, *behind;
        struct chat *chat;
        bool same;

        assert_int_equal(chat_open(&conf, &chat), 0);
        free(source);
        if (chat_refusal(chat))
                fail_msg("%s", chat_refusal(chat));
        all = rendered_as(chat, whole, false);
        part = rendered_as(chat, turn, true);
        behind = all ? strstr(all, ANSWER) : NULL;
        same = behind ? part && !strcmp(behind + strlen(ANSWER), part) : !part;
        free(all);
        free(part);
        chat_close(chat);
        return same;
}

/* A turn is what the template writes behind the answer when it has the whole conversation. */
static void a_turn_is_rendered_as_in_the_whole_conversation(void **state)
{
        struct arena *arena;
        struct value models, cases;
        unsigned good = 0, all = 0;

        (void)state;
        assert_int_equal(arena_new(64u << 20, &arena), 0);
        models = read_values(arena, "jinja.cpp/chat_templates.json");
        for (uint32_t i = 0; i < models.map->count; i++, all++)
                if (is_turn_as_in_whole(member(models.map->entries[i].value, "template")))
                        good++;
                else
                        print_message("# %.*s\n", (int)models.map->entries[i].key.text->count,
                                      models.map->entries[i].key.text->bytes);
        cases = read_values(arena, "hf-jinja/e2e.json");
        for (uint32_t i = 0; i < cases.list->count; i++, all++)
                if (is_turn_as_in_whole(member(cases.list->items[i], "chat_template")))
                        good++;
                else
                        print_message("# %s\n", member(cases.list->items[i], "name").text->bytes);
        print_message("# %u of %u\n", good, all);
        assert_int_equal(all, 15 + 53);
        assert_int_equal(good, all);
        arena_free(arena);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(renders_the_prompts_of_widely_used_models),
                cmocka_unit_test(renders_the_templates_of_the_javascript_suite),
                cmocka_unit_test(a_turn_is_rendered_as_in_the_whole_conversation),
        };

        if (!getenv("SAMOVAR_DATA")) {
                puts("1..0 # SKIP SAMOVAR_DATA is not set");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
