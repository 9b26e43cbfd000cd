#include <time.h>

#include "daemon/text/chat.h"
#include "json/reader.h"
#include "tests/unit/template-rig.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define EACH         "{% for m in messages %}{% for c in m.tool_calls or [] %}{% set f = c.function %}"
#define ENDED        "{% endfor %}{% endfor %}"

/* Messages with a call "f" that has these arguments, and one "g" that has none. */
#define CALLS(arguments)                                                                           \
        "[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"\","        \
        "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":" arguments "}},"             \
        "{\"function\":{\"name\":\"g\",\"arguments\":{}}}]}]"

static int render(const char *template, const char *messages, struct rendered *ret_rendered,
                  char *why, size_t why_bytes)
{
        const struct chat_conf conf = { .plain = template };
        struct conversation about = { .bytes = strlen(messages) };
        const struct tm now = { .tm_year = 125, .tm_mday = 1 };
        struct json_document *json;
        struct arena *arena;
        struct chat *chat;
        int r;

        assert_int_equal(chat_open(&conf, &chat), 0);
        assert_null(chat_refusal(chat));
        assert_int_equal(arena_new(32u << 20, &arena), 0);
        assert_int_equal(json_parse(messages, strlen(messages), 4096, &json, why, why_bytes), 0);
        assert_int_equal(value_from_json(arena, json, 0, TEXT_GIVEN, &about.messages), 0);
        r = chat_render(chat, arena, &about, &now, ret_rendered, why, why_bytes);
        json_free(json);
        arena_free(arena);
        chat_close(chat);
        return r;
}

static void check(const char *template, const char *messages, const char *wanted)
{
        struct rendered rendered;
        char why[256] = "";

        if (render(template, messages, &rendered, why, sizeof(why)))
                fail_msg("%s: %s", template, why);
        assert_string_equal(rendered.text, wanted);
        /* no control token is ever found in what the client gave */
        for (size_t i = 0, at = 0; i < rendered.span_count; at += rendered.spans[i++].bytes)
                if (rendered.spans[i].origin == TEXT_OURS)
                        assert_null(
                                memmem(rendered.text + at, rendered.spans[i].bytes, "<eos>", 5));
        rendered_free(&rendered);
}

static void a_template_gets_arguments_as_it_wants_them(void **state)
{
        static const struct {
                const char *template, *object, *text;
        } cases[] = {
                /* it walks through the object */
                { EACH "{{ f.name }}{% for k, v in f.arguments.items() %} {{ k }}={{ v }}"
                       "{% endfor %};" ENDED,
                  "f a=<eos> b=1;g;", "f a=<eos> b=1;g;" },
                { EACH "{{ f.arguments | tojson }};" ENDED, "{\"a\": \"<eos>\", \"b\": 1};{};",
                  "{\"a\": \"<eos>\", \"b\": 1};{};" },
                /* it concatenates the text */
                { EACH "{{ '<' + f.arguments + '>' }};" ENDED,
                  "<{\"a\": \"<eos>\", \"b\": 1}>;<{}>;", "<{\"a\":\"<eos>\",\"b\":1}>;<{}>;" },
                /* it takes either */
                { EACH "{% if f.arguments is string %}{{ f.arguments }}{% else %}"
                       "{{ f.arguments | tojson }}{% endif %};" ENDED,
                  "{\"a\": \"<eos>\", \"b\": 1};{};", "{\"a\":\"<eos>\",\"b\":1};{};" },
                { EACH "{% set a = f.arguments %}{% if a is string %}{% set a = a | from_json %}"
                       "{% endif %}{{ a.a }} {{ a.b }};" ENDED,
                  "<eos> 1; ;", "<eos> 1; ;" },
                /* it does not show them */
                { EACH "{{ f.name }};" ENDED, "f;g;", "f;g;" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(cases); i++) {
                check(cases[i].template, CALLS("{\"a\":\"<eos>\",\"b\":1}"), cases[i].object);
                check(cases[i].template, CALLS("\"{\\\"a\\\":\\\"<eos>\\\",\\\"b\\\":1}\""),
                      cases[i].text);
        }
}

static void an_empty_text_is_no_arguments(void **state)
{
        (void)state;
        check(EACH "{{ f.arguments | tojson }};" ENDED, CALLS("\"\""), "{};{};");
}

static void arguments_that_are_no_object_are_refused_by_place(void **state)
{
        static const char *const bad[] = { "\"{\"", "\"[1]\"", "\"1\"", "\"x\"",
                                           "\"{\\\"a\\\":1e999}\"" };

        (void)state;
        for (size_t i = 0; i < COUNT(bad); i++) {
                struct rendered rendered;
                char messages[512], why[256];

                snprintf(messages, sizeof(messages), CALLS("%s"), bad[i]);
                assert_int_equal(render(EACH "{{ f.arguments | tojson }}" ENDED, messages,
                                        &rendered, why, sizeof(why)),
                                 -EINVAL);
                assert_non_null(strstr(why, "messages[1]: the arguments of tool_calls[0] must be a "
                                            "JSON object: "));
        }
}

/* Calls without `function`, lists that are none, and other forms go to the template as they are. */
static void other_messages_stay_as_they_are(void **state)
{
        static const char template[] =
                "{% for m in messages %}{{ m.tool_calls | default(none) | tojson }};"
                "{% endfor %}";
        static const struct {
                const char *messages, *wanted;
        } cases[] = {
                { "[{\"tool_calls\":[{\"name\":\"f\",\"arguments\":\"{}\"}]}]",
                  "[{\"name\": \"f\", \"arguments\": {}}];" },
                { "[{\"tool_calls\":[{\"arguments\":7},8,{\"function\":9}]}]",
                  "[{\"arguments\": 7}, 8, {\"function\": 9}];" },
                { "[{\"tool_calls\":\"none\"},{\"tool_calls\":null}]", "\"none\";null;" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(cases); i++)
                check(template, cases[i].messages, cases[i].wanted);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_template_gets_arguments_as_it_wants_them),
                cmocka_unit_test(an_empty_text_is_no_arguments),
                cmocka_unit_test(arguments_that_are_no_object_are_refused_by_place),
                cmocka_unit_test(other_messages_stay_as_they_are),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
