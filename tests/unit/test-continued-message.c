/*
 * A last message that goes on: the prompt ends exactly where its text ends.
 */
#include "daemon/text/chat.h"
#include "tests/unit/template-rig.h"

/* It trims, as many do, and ends each message. */
#define TRIMMING                                                                                   \
        "{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}"                      \
        "{{ m.content | trim }}{% else %}{% for p in m.content %}{{ p.text | trim }}{% endfor %}"  \
        "{% endif %}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"

#define NONCE UINT64_C(0x0123456789abcdef)

struct result {
        int r;
        char text[4096], spans[4096], why[256];
};

static struct result render(const char *template, const char *messages, bool continues)
{
        const struct chat_conf conf = { .plain = template };
        struct conversation about = { .add_generation_prompt = true,
                                      .continue_final_message = true,
                                      .continues = continues,
                                      .nonce = NONCE,
                                      .bytes = strlen(messages) };
        struct rendered out = { 0 };
        struct result result = { 0 };
        struct arena *arena;
        struct chat *chat;
        size_t at = 0;

        assert_int_equal(arena_new(1u << 20, &arena), 0);
        rig_values(arena, messages, strlen(messages), &about.messages);
        assert_int_equal(chat_open(&conf, &chat), 0);
        assert_null(chat_refusal(chat));
        result.r = chat_render(chat, arena, &about, &rig_day, &out, result.why, sizeof(result.why));
        if (!result.r) {
                assert_int_equal(strlen(out.text), out.bytes);
                assert_true(out.bytes < sizeof(result.text));
                strcpy(result.text, out.text);
        }
        for (size_t i = 0; i < out.span_count; i++) {
                assert_true(out.spans[i].bytes > 0);
                assert_true(!i || out.spans[i].origin != out.spans[i - 1].origin);
                for (size_t b = 0; b < out.spans[i].bytes; b++)
                        result.spans[at++] = out.spans[i].origin == TEXT_OURS ? 'o' : 'g';
        }
        assert_int_equal(at, out.bytes);
        rendered_free(&out);
        chat_close(chat);
        arena_free(arena);
        return result;
}

static void the_prompt_ends_where_the_text_of_the_last_message_ends(void **state)
{
        struct result result;

        (void)state;
        result = render(TRIMMING,
                        "[{\"role\":\"user\",\"content\":\" hi \"},"
                        "{\"role\":\"assistant\",\"content\":\" The sky \\n \"}]",
                        false);
        assert_int_equal(result.r, 0);
        assert_string_equal(result.text, "<|user|>hi<|end|>\n<|assistant|>The sky \n ");
        assert_string_equal(result.spans, "ooooooooggooooooooooooooooooooogggggggggg");
}

static void a_text_without_characters_ends_where_it_would_begin(void **state)
{
        struct result result;

        (void)state;
        result = render(TRIMMING, "[{\"role\":\"assistant\",\"content\":\"\"}]", false);
        assert_int_equal(result.r, 0);
        assert_string_equal(result.text, "<|assistant|>");
}

static void the_last_part_of_a_content_goes_on(void **state)
{
        struct result result;

        (void)state;
        result = render(TRIMMING,
                        "[{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a \"},"
                        "{\"text\":\"b \",\"type\":\"text\"}]}]",
                        false);
        assert_int_equal(result.r, 0);
        assert_string_equal(result.text, "<|assistant|>ab ");
}

/* No tokenizer looks for control tokens in what was given (template.h). */
static void the_spelling_of_a_control_token_stays_given_text(void **state)
{
        struct result result;

        (void)state;
        result = render(TRIMMING, "[{\"role\":\"assistant\",\"content\":\"<|end|>\"}]", false);
        assert_int_equal(result.r, 0);
        assert_string_equal(result.text, "<|assistant|><|end|>");
        assert_string_equal(result.spans, "oooooooooooooggggggg");
}

static void a_turn_can_end_in_an_unfinished_answer(void **state)
{
        struct result result;

        (void)state;
        result = render(TRIMMING,
                        "[{\"role\":\"user\",\"content\":\"and\"},"
                        "{\"role\":\"assistant\",\"content\":\"Then \"}]",
                        true);
        assert_int_equal(result.r, 0);
        assert_string_equal(result.text, "<|end|>\n<|user|>and<|end|>\n<|assistant|>Then ");
}

/* Templates may look at it before the last message, too. */
static void the_template_is_not_asked_for_a_new_answer(void **state)
{
        struct result result;

        (void)state;
        result = render("{{ add_generation_prompt }}{{ messages[0].content }}",
                        "[{\"role\":\"assistant\",\"content\":\"x\"}]", false);
        assert_int_equal(result.r, 0);
        assert_string_equal(result.text, "Falsex");
}

/* The random number of the mark is not known to the client. */
static void text_like_the_mark_does_not_end_the_prompt(void **state)
{
        struct result result;

        (void)state;
        result = render(TRIMMING,
                        "[{\"role\":\"user\",\"content\":\"samovar-end-of-text-0000000000000000\"},"
                        "{\"role\":\"assistant\",\"content\":\"x\"}]",
                        false);
        assert_int_equal(result.r, 0);
        assert_string_equal(result.text, "<|user|>samovar-end-of-text-0000000000000000<|end|>\n"
                                         "<|assistant|>x");
}

static void refuses_a_message_that_cannot_be_continued(void **state)
{
#define MESSAGE(more) "[{\"role\":\"user\",\"content\":\"q\"},{" more "}]"
#define ASSISTANT     "\"role\":\"assistant\""
        static const struct {
                const char *template, *messages, *why;
        } cases[] = {
                { TRIMMING, MESSAGE("\"role\":\"user\",\"content\":\"x\""),
                  "not from the assistant" },
                { TRIMMING, "[]", "not from the assistant" },
                { TRIMMING, MESSAGE(ASSISTANT), "neither a text nor a list" },
                { TRIMMING, MESSAGE(ASSISTANT ",\"content\":null"), "neither a text nor a list" },
                { TRIMMING, MESSAGE(ASSISTANT ",\"content\":[]"), "neither a text nor a list" },
                { TRIMMING, MESSAGE(ASSISTANT ",\"content\":[\"x\"]"),
                  "neither a text nor a list" },
                { TRIMMING,
                  MESSAGE(ASSISTANT ",\"content\":[{\"type\":\"text\",\"text\":\"x\"},"
                                    "{\"type\":\"image\"}]"),
                  "neither a text nor a list" },
                { TRIMMING, MESSAGE(ASSISTANT ",\"content\":\"x\",\"tool_calls\":[{\"id\":\"1\"}]"),
                  "has tool_calls" },
                { "{{ messages[0].content }}", MESSAGE(ASSISTANT ",\"content\":\"x\""),
                  "does not show the end of the last message" },
                { "{{ messages[1].content[:3] }}", MESSAGE(ASSISTANT ",\"content\":\"long text\""),
                  "does not show the end of the last message" },
                { "{{ messages[1].content }}{{ messages[1].content }}",
                  MESSAGE(ASSISTANT ",\"content\":\"x\""),
                  "shows the last message more than once" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct result result = render(cases[i].template, cases[i].messages, false);

                assert_int_equal(result.r, -EINVAL);
                if (!strstr(result.why, cases[i].why))
                        fail_msg("'%s' is not about '%s'", result.why, cases[i].why);
        }
}

static void empty_tool_calls_are_none(void **state)
{
        struct result result;

        (void)state;
        result = render(TRIMMING, "[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[]}]",
                        false);
        assert_int_equal(result.r, 0);
        assert_string_equal(result.text, "<|assistant|>x");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_prompt_ends_where_the_text_of_the_last_message_ends),
                cmocka_unit_test(a_text_without_characters_ends_where_it_would_begin),
                cmocka_unit_test(the_last_part_of_a_content_goes_on),
                cmocka_unit_test(the_spelling_of_a_control_token_stays_given_text),
                cmocka_unit_test(a_turn_can_end_in_an_unfinished_answer),
                cmocka_unit_test(the_template_is_not_asked_for_a_new_answer),
                cmocka_unit_test(text_like_the_mark_does_not_end_the_prompt),
                cmocka_unit_test(refuses_a_message_that_cannot_be_continued),
                cmocka_unit_test(empty_tool_calls_are_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
