/* samovar template FILE: the prompt that a file's chat template makes of a conversation, without a
 * daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/talk.h"

#define SAMOVAR given("SAMOVAR")

#define CHATML                                                                                     \
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + "                 \
        "'<|im_end|>\\n' }}{% endfor %}"                                                           \
        "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{{ n }}"                            \
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

static void write_file(const struct house *house, const char *name, const char *text,
                       char path[128])
{
        FILE *out;

        snprintf(path, 128, "%s/%s", house->directory, name);
        out = fopen(path, "w");
        assert_non_null(out);
        assert_int_equal(fwrite(text, 1, strlen(text), out), strlen(text));
        assert_int_equal(fclose(out), 0);
}

/* Frees `ran`.  `said` is a part of the text on stderr; NULL: stderr is empty. */
static void expect(struct ran ran, int status, const char *out, const char *said)
{
        if (said && !strstr(ran.err, said))
                fail_msg("\"%s\" is not in:\n%s", said, ran.err);
        if (!said)
                assert_string_equal(ran.err, "");
        assert_string_equal(ran.out, out);
        assert_int_equal(ran.status, status);
        ran_free(&ran);
}

static void a_daemon_and_its_model_s_file_make_the_same_bytes(void **state)
{
        static const char talk[] =
                "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},"
                "{\"role\":\"user\",\"content\":\"\\u00e9\\ud83d\\ude00 <|im_end|>\\u0000\\\"\"}],"
                "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\","
                "\"parameters\":{\"a\":[1,-2.5,1e30,null,true,{}]}}}],"
                "\"template_vars\":{\"n\":-7}}";
        struct house *house = *state;
        char model[128], path[128];
        struct ran served, alone;

        snprintf(model, sizeof(model), "%s/chat.gguf", house->directory);
        served = RUN(house, NULL, given("BABBLE_MAKER"), model, "--layers", "1", "--vocab", "300",
                     "--template", CHATML);
        assert_int_equal(served.status, 0);
        ran_free(&served);
        write_file(house, "talk.json", talk, path);
        HOUSE(house, "--model", model, "--threads", "1");
        served = RUN(house, NULL, SAMOVAR, "template", "--messages", path);
        assert_string_equal(served.err, "");
        assert_true(served.out_bytes > 100);
        house_stop(house);

        alone = RUN(house, NULL, SAMOVAR, "template", model, "--messages", path);
        assert_string_equal(alone.err, "");
        assert_int_equal(alone.status, 0);
        assert_int_equal(alone.out_bytes, served.out_bytes);
        assert_memory_equal(alone.out, served.out, served.out_bytes);
        ran_free(&alone);
        ran_free(&served);
}

static void a_template_by_itself_renders_a_question(void **state)
{
        struct house *house = *state;
        char path[128], plain[128];

        write_file(house, "chat.jinja", CHATML, path);
        write_file(house, "template", "{{ messages[0].content }}\n", plain);
        expect(RUN(house, NULL, SAMOVAR, "template", path, "Is it", "tea?"), 0,
               "<|im_start|>user\nIs it tea?<|im_end|>\n<|im_start|>assistant\n", NULL);
        expect(RUN(house, NULL, SAMOVAR, "template", "--system", "Be \"brief\".", path, "a\tb"), 0,
               "<|im_start|>system\nBe \"brief\".<|im_end|>\n<|im_start|>user\na\tb<|im_end|>\n"
               "<|im_start|>assistant\n",
               NULL);
        write_file(house,
                   "a-name=of-more-than-64-bytes-----------------------------------------.txt",
                   "{{ messages | length }}", path);
        expect(RUN(house, NULL, SAMOVAR, "template", path, "a"), 0, "1", NULL);
        expect(RUN(house, "from stdin\n", SAMOVAR, "template", plain), 0, "from stdin\n", NULL);
        expect(RUN(house, NULL, SAMOVAR, "template", plain, "\xff"), 1, "", "not valid UTF-8");
}

static void a_conversation_may_have_tools_and_end_without_an_answer_s_beginning(void **state)
{
        struct house *house = *state;
        char path[128];

        write_file(house, "chat.jinja", CHATML, path);
        expect(RUN(house,
                   "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[{\"name\":"
                   "\"weather\"}],\"template_vars\":{\"n\":1.5},\"add_generation_prompt\":false}",
                   SAMOVAR, "template", path, "--messages", "-"),
               0, "<|im_start|>user\na<|im_end|>\n{\"name\": \"weather\"}1.5", NULL);
}

static void json_says_which_bytes_were_given(void **state)
{
        struct house *house = *state;
        char path[128];

        write_file(house, "chat.jinja", "<a>{{ messages[0].content }}</a>", path);
        expect(RUN(house, NULL, SAMOVAR, "template", "--json", path, "\xc3\xa9\"\xc2\x9b"), 0,
               "{\"text\":\"<a>\xc3\xa9\\\"\\u009b</a>\","
               "\"spans\":[[3,\"template\"],[5,\"given\"],[4,\"template\"]]}\n",
               NULL);
}

static void a_tokenizer_s_configuration_gives_its_template_and_tokens(void **state)
{
        struct house *house = *state;
        char path[128];

        write_file(house, "tokenizer_config.json",
                   "{\"chat_template\":\"{{ bos_token }}{{ messages[0].content }}"
                   "{{ eos_token }}\",\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"}}",
                   path);
        expect(RUN(house, NULL, SAMOVAR, "template", path, "Hi"), 0, "<s>Hi</s>", NULL);
        expect(RUN(house, NULL, SAMOVAR, "template", house->directory, "Hi"), 0, "<s>Hi</s>", NULL);
        write_file(house, "chat_template.jinja", "{{ bos_token }}!", path);
        expect(RUN(house, NULL, SAMOVAR, "template", house->directory, "Hi"), 0, "<s>!", NULL);
}

static void what_cannot_be_rendered_is_told_with_its_place(void **state)
{
        struct house *house = *state;
        char path[128];

        write_file(house, "bad.jinja", "a\n{% if %}\n", path);
        expect(RUN(house, NULL, SAMOVAR, "template", path, "Hi"), 1, "", "(line 2)\n");
        write_file(house, "refuses.jinja", "{{ raise_exception('no\\n tools') }}", path);
        expect(RUN(house, NULL, SAMOVAR, "template", path, "Hi"), 1, "",
               "refuses.jinja: no  tools\n");
        write_file(house, "empty.json", "{}", path);
        expect(RUN(house, NULL, SAMOVAR, "template", path, "Hi"), 1, "",
               "empty.json: this model has no chat template\n");
        expect(RUN(house, NULL, SAMOVAR, "template", "./nowhere.jinja", "Hi"), 1, "",
               "./nowhere.jinja: No such file or directory\n");
        expect(RUN(house, NULL, SAMOVAR, "template", "/dev/zero", "Hi"), 1, "",
               "/dev/zero: not a regular file\n");
        expect(RUN(house, NULL, SAMOVAR, "template", house->directory, "Hi"), 1, "",
               "config.json is missing beside its weights\n");
}

static void a_conversation_that_is_none_is_refused_by_name(void **state)
{
        static const struct {
                const char *text, *said;
        } cases[] = {
                { "", "stdin: byte 0: " },
                { "\xff", "stdin: byte 0: " },
                { "[{\"role\":\"user\"", "stdin: byte 15: " },
                { "7", "it is neither an array of messages nor an object" },
                { "[]", "it has no messages" },
                { "{\"tools\":[]}", "it has no messages" },
                { "[1]", "messages[0] is no object" },
                { "[{\"role\":\"a\"},{\"role\":1}]", "messages[1] has no role" },
                { "{\"messages\":{}}", "messages are no array" },
                { "{\"messages\":[{\"role\":\"a\"}],\"tools\":[2]}", "tools[0] is no object" },
                { "{\"template_vars\":[]}", "template_vars is no object" },
                { "{\"template_vars\":{\"bos_token\":\"\"}}", "may not set bos_token" },
                { "{\"add_generation_prompt\":1}", "is neither true nor false" },
                { "{\"mess'ages\":1}", "'mess?ages' is none of messages, tools" },
                { "[{\"role\":\"a\",\"n\":9223372036854775808}]", "does not fit 64 bits" },
        };
        struct house *house = *state;
        char path[128];
        struct ran ran;

        write_file(house, "chat.jinja", CHATML, path);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                expect(RUN(house, cases[i].text, SAMOVAR, "template", path, "--messages", "-"), 1,
                       "", cases[i].said);
        expect(RUN(house, NULL, SAMOVAR, "template", path, "--messages", "/dev/zero"), 1, "",
               "/dev/zero: it has more than 8388608 bytes");
        expect(RUN(house, NULL, SAMOVAR, "template", path, "--messages", "/nowhere"), 1, "",
               "/nowhere: No such file or directory");
        ran = RUN(house, NULL, SAMOVAR, "template", path, "--socket", "a", "Hi");
        expect(ran, 2, "", "there is no --socket beside it");
}

static void a_question_with_a_slash_in_it_is_a_question(void **state)
{
        struct house *house = *state;

        expect(RUN(house, NULL, SAMOVAR, "template", "What is TCP/IP?"), 3, "",
               "no daemon is there");
        expect(RUN(house, NULL, SAMOVAR, "template", "nowhere/there"), 1, "",
               "nowhere/there: No such file or directory");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(a_daemon_and_its_model_s_file_make_the_same_bytes),
                STORY(a_template_by_itself_renders_a_question),
                STORY(a_conversation_may_have_tools_and_end_without_an_answer_s_beginning),
                STORY(json_says_which_bytes_were_given),
                STORY(a_tokenizer_s_configuration_gives_its_template_and_tokens),
                STORY(what_cannot_be_rendered_is_told_with_its_place),
                STORY(a_conversation_that_is_none_is_refused_by_name),
                STORY(a_question_with_a_slash_in_it_is_a_question),
        };

        need((const char *const[]){ "SAMOVARD", "SAMOVAR", "BABBLE_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
