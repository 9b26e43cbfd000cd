/* samovar template FILE: the prompt that a file's chat template makes of a conversation, without a
 * daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define SAMOVAR env_path("SAMOVAR")

#define CHATML                                                                                     \
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + "                 \
        "'<|im_end|>\\n' }}{% endfor %}"                                                           \
        "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{{ n }}"                            \
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

static void write_file(const struct daemon_fixture *fixture, const char *name, const char *text,
                       char path[128])
{
        FILE *out;

        snprintf(path, 128, "%s/%s", fixture->directory, name);
        out = fopen(path, "w");
        assert_non_null(out);
        assert_int_equal(fwrite(text, 1, strlen(text), out), strlen(text));
        assert_int_equal(fclose(out), 0);
}

/* Frees `ran`.  `said` is a part of the text on stderr; NULL: stderr is empty. */
static void expect(struct run_result ran, int status, const char *out, const char *said)
{
        if (said && !strstr(ran.err, said))
                fail_msg("\"%s\" is not in:\n%s", said, ran.err);
        if (!said)
                assert_string_equal(ran.err, "");
        assert_string_equal(ran.out, out);
        assert_int_equal(ran.status, status);
        run_result_free(&ran);
}

static void the_command_renders_the_same_bytes_as_the_daemon(void **state)
{
        static const char conversation[] =
                "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},"
                "{\"role\":\"user\",\"content\":\"\\u00e9\\ud83d\\ude00 <|im_end|>\\u0000\\\"\"}],"
                "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\","
                "\"parameters\":{\"a\":[1,-2.5,1e30,null,true,{}]}}}],"
                "\"template_vars\":{\"n\":-7}}";
        struct daemon_fixture *fixture = *state;
        char model[128], path[128];
        struct run_result served, alone;

        snprintf(model, sizeof(model), "%s/chat.gguf", fixture->directory);
        served = RUN(fixture, NULL, env_path("TOY_MODEL_MAKER"), model, "--layers", "1", "--vocab",
                     "300", "--template", CHATML);
        assert_int_equal(served.status, 0);
        run_result_free(&served);
        write_file(fixture, "talk.json", conversation, path);
        START_DAEMON(fixture, "--model", model, "--threads", "1");
        served = RUN(fixture, NULL, SAMOVAR, "template", "--messages", path);
        assert_string_equal(served.err, "");
        assert_true(served.out_bytes > 100);
        fixture_stop(fixture);

        alone = RUN(fixture, NULL, SAMOVAR, "template", model, "--messages", path);
        assert_string_equal(alone.err, "");
        assert_int_equal(alone.status, 0);
        assert_int_equal(alone.out_bytes, served.out_bytes);
        assert_memory_equal(alone.out, served.out, served.out_bytes);
        run_result_free(&alone);
        run_result_free(&served);
}

static void renders_a_question_with_a_template_file(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[128], plain[128];

        write_file(fixture, "chat.jinja", CHATML, path);
        write_file(fixture, "template", "{{ messages[0].content }}\n", plain);
        expect(RUN(fixture, NULL, SAMOVAR, "template", path, "Is it", "tea?"), 0,
               "<|im_start|>user\nIs it tea?<|im_end|>\n<|im_start|>assistant\n", NULL);
        expect(RUN(fixture, NULL, SAMOVAR, "template", "--system", "Be \"brief\".", path, "a\tb"),
               0,
               "<|im_start|>system\nBe \"brief\".<|im_end|>\n<|im_start|>user\na\tb<|im_end|>\n"
               "<|im_start|>assistant\n",
               NULL);
        write_file(fixture,
                   "a-name=of-more-than-64-bytes-----------------------------------------.txt",
                   "{{ messages | length }}", path);
        expect(RUN(fixture, NULL, SAMOVAR, "template", path, "a"), 0, "1", NULL);
        expect(RUN(fixture, "from stdin\n", SAMOVAR, "template", plain), 0, "from stdin\n", NULL);
        expect(RUN(fixture, NULL, SAMOVAR, "template", plain, "\xff"), 1, "", "not valid UTF-8");
}

static void renders_tools_and_omits_the_generation_prompt(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[128];

        write_file(fixture, "chat.jinja", CHATML, path);
        expect(RUN(fixture,
                   "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":[{\"name\":"
                   "\"weather\"}],\"template_vars\":{\"n\":1.5},\"add_generation_prompt\":false}",
                   SAMOVAR, "template", path, "--messages", "-"),
               0, "<|im_start|>user\na<|im_end|>\n{\"name\": \"weather\"}1.5", NULL);
}

static void ends_with_the_beginning_of_an_answer(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[128];

        write_file(fixture, "chat.jinja", CHATML, path);
        expect(RUN(fixture, NULL, SAMOVAR, "template", path, "--answer", "Yes ", "--json", "Tea?"),
               0,
               "{\"text\":\"<|im_start|>user\\nTea?<|im_end|>\\n<|im_start|>assistant\\nYes \","
               "\"spans\":[[17,\"template\"],[4,\"given\"],[33,\"template\"],[4,\"given\"]]}\n",
               NULL);
}

static void json_output_marks_the_bytes_from_the_user(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[128];

        write_file(fixture, "chat.jinja", "<a>{{ messages[0].content }}</a>", path);
        expect(RUN(fixture, NULL, SAMOVAR, "template", "--json", path, "\xc3\xa9\"\xc2\x9b"), 0,
               "{\"text\":\"<a>\xc3\xa9\\\"\\u009b</a>\","
               "\"spans\":[[3,\"template\"],[5,\"given\"],[4,\"template\"]]}\n",
               NULL);
}

static void reads_template_and_tokens_from_tokenizer_config(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[128];

        write_file(fixture, "tokenizer_config.json",
                   "{\"chat_template\":\"{{ bos_token }}{{ messages[0].content }}"
                   "{{ eos_token }}\",\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"}}",
                   path);
        expect(RUN(fixture, NULL, SAMOVAR, "template", path, "Hi"), 0, "<s>Hi</s>", NULL);
        expect(RUN(fixture, NULL, SAMOVAR, "template", fixture->directory, "Hi"), 0, "<s>Hi</s>",
               NULL);
        write_file(fixture, "chat_template.jinja", "{{ bos_token }}!", path);
        expect(RUN(fixture, NULL, SAMOVAR, "template", fixture->directory, "Hi"), 0, "<s>!", NULL);
}

static void reports_the_place_of_a_template_error(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[128];

        write_file(fixture, "bad.jinja", "a\n{% if %}\n", path);
        expect(RUN(fixture, NULL, SAMOVAR, "template", path, "Hi"), 1, "", "(line 2)\n");
        write_file(fixture, "refuses.jinja", "{{ raise_exception('no\\n tools') }}", path);
        expect(RUN(fixture, NULL, SAMOVAR, "template", path, "Hi"), 1, "",
               "refuses.jinja: no  tools\n");
        write_file(fixture, "empty.json", "{}", path);
        expect(RUN(fixture, NULL, SAMOVAR, "template", path, "Hi"), 1, "",
               "empty.json: this model has no chat template\n");
        expect(RUN(fixture, NULL, SAMOVAR, "template", "./nowhere.jinja", "Hi"), 1, "",
               "./nowhere.jinja: No such file or directory\n");
        expect(RUN(fixture, NULL, SAMOVAR, "template", "/dev/zero", "Hi"), 1, "",
               "/dev/zero: not a regular file\n");
        expect(RUN(fixture, NULL, SAMOVAR, "template", fixture->directory, "Hi"), 1, "",
               "config.json is missing beside its weights\n");
}

static void refuses_an_invalid_conversation_and_names_the_part(void **state)
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
                { "[1]", "messages[0] is not an object" },
                { "[{\"role\":\"a\"},{\"role\":1}]", "messages[1] has no role" },
                { "{\"messages\":{}}", "messages is not an array" },
                { "{\"messages\":[{\"role\":\"a\"}],\"tools\":[2]}", "tools[0] is not an object" },
                { "{\"template_vars\":[]}", "template_vars is not an object" },
                { "{\"template_vars\":{\"bos_token\":\"\"}}", "may not set bos_token" },
                { "{\"add_generation_prompt\":1}", "is neither true nor false" },
                { "{\"continue_final_message\":0}", "is neither true nor false" },
                { "{\"continue_final_message\":true,\"messages\":[{\"role\":\"user\"}]}",
                  "the last message is not from the assistant" },
                { "{\"mess'ages\":1}", "'mess\\'ages' is not one of messages, tools" },
                { "[{\"role\":\"a\",\"n\":9223372036854775808}]", "does not fit 64 bits" },
        };
        struct daemon_fixture *fixture = *state;
        char path[128];
        struct run_result ran;

        write_file(fixture, "chat.jinja", CHATML, path);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                expect(RUN(fixture, cases[i].text, SAMOVAR, "template", path, "--messages", "-"), 1,
                       "", cases[i].said);
        expect(RUN(fixture, NULL, SAMOVAR, "template", path, "--messages", "/dev/zero"), 1, "",
               "/dev/zero: it has more than 8388608 bytes");
        expect(RUN(fixture, NULL, SAMOVAR, "template", path, "--messages", "/nowhere"), 1, "",
               "/nowhere: No such file or directory");
        ran = RUN(fixture, NULL, SAMOVAR, "template", path, "--socket", "a", "Hi");
        expect(ran, 2, "", "leave out --socket");
}

static void a_question_with_a_slash_is_not_taken_for_a_path(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect(RUN(fixture, NULL, SAMOVAR, "template", "What is TCP/IP?"), 3, "",
               "no daemon is there");
        expect(RUN(fixture, NULL, SAMOVAR, "template", "nowhere/there"), 1, "",
               "nowhere/there: No such file or directory");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(the_command_renders_the_same_bytes_as_the_daemon),
                DAEMON_TEST(renders_a_question_with_a_template_file),
                DAEMON_TEST(renders_tools_and_omits_the_generation_prompt),
                DAEMON_TEST(ends_with_the_beginning_of_an_answer),
                DAEMON_TEST(json_output_marks_the_bytes_from_the_user),
                DAEMON_TEST(reads_template_and_tokens_from_tokenizer_config),
                DAEMON_TEST(reports_the_place_of_a_template_error),
                DAEMON_TEST(refuses_an_invalid_conversation_and_names_the_part),
                DAEMON_TEST(a_question_with_a_slash_is_not_taken_for_a_path),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
