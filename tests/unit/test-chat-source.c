/* Which templates and tokens a model's files have.  The small files are made here. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "daemon/files/chat-source.h"
#include "daemon/files/checkpoint.h"
#include "tests/unit/gguf-maker.h"
#include "tests/unit/good-folder.h"

#undef CONFIG
#define CONFIG   "tokenizer_config.json"
#define JINJA    "chat_template.jinja"
#define MORE     "additional_chat_templates"
#define TOOL_USE MORE "/tool_use.jinja"

static char why[256];

static int read_of(const char *name, struct chat_source *ret_source)
{
        struct checkpoint *checkpoint;
        int r;

        why[0] = '\0';
        r = checkpoint_open(name, &checkpoint, why, sizeof(why));
        if (r)
                fail_msg("%s: %s", name, why);
        r = chat_source_read(checkpoint, ret_source, why, sizeof(why));
        checkpoint_close(checkpoint);
        return r;
}

static void check(const char *expected, const char *found)
{
        if (!expected || !found)
                assert_ptr_equal(expected, found);
        else
                assert_string_equal(expected, found);
}

/* NULL: the files say nothing. */
static void expect(const char *name, const char *plain, const char *tools, const char *bos,
                   const char *eos)
{
        struct chat_source source;

        assert_int_equal(read_of(name, &source), 0);
        check(plain, source.plain);
        check(tools, source.tools);
        check(bos, source.bos);
        check(eos, source.eos);
        chat_source_deinit(&source);
}

static void refused(const char *name, const char *sentence)
{
        struct chat_source source;

        assert_int_equal(read_of(name, &source), -EINVAL);
        assert_string_equal(why, sentence);
        check(NULL, source.plain);
        check(NULL, source.tools);
}

static void clear(void)
{
        static const char *const names[] = { CONFIG, JINJA, TOOL_USE };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                unlink(in_folder(names[i]));
}

static void write_gguf(struct raw pair)
{
        struct recipe recipe = { .pair = pair };
        struct file file;

        make_gguf(&recipe, &file);
        write_file(GGUF, file.bytes, file.count);
}

static void reads_templates_from_gguf_metadata(void **state)
{
        (void)state;
        write_gguf((struct raw){ 0 });
        expect(in_folder(GGUF), NULL, NULL, NULL, NULL);
        write_gguf((struct raw)RAW("\x17\0\0\0\0\0\0\0tokenizer.chat_template\x08\0\0\0"
                                   "\x05\0\0\0\0\0\0\0{{a}}"));
        expect(in_folder(GGUF), "{{a}}", NULL, NULL, NULL);
        write_gguf((struct raw)RAW("\x20\0\0\0\0\0\0\0tokenizer.chat_template.tool_use\x08\0\0\0"
                                   "\x05\0\0\0\0\0\0\0{{b}}"));
        expect(in_folder(GGUF), NULL, "{{b}}", NULL, NULL);
        write_gguf((struct raw)RAW("\x17\0\0\0\0\0\0\0tokenizer.chat_template\x04\0\0\0\1\0\0\0"));
        refused(in_folder(GGUF), "metadata 'tokenizer.chat_template' is not a string");
}

static void a_folder_without_templates_has_none(void **state)
{
        (void)state;
        clear();
        expect(folder, NULL, NULL, NULL, NULL);
        write_text(CONFIG, "{\"model_max_length\":7,\"bos_token\":null,\"chat_template\":null}");
        expect(folder, NULL, NULL, NULL, NULL);
        expect(in_folder(WEIGHTS), NULL, NULL, NULL, NULL); /* and so has one of its files */
}

static void reads_template_and_tokens_from_tokenizer_config(void **state)
{
        (void)state;
        clear();
        write_text(CONFIG, "{\"chat_template\":\"{{x}}\\n\",\"bos_token\":\"<s>\","
                           "\"eos_token\":{\"content\":\"</s>\",\"lstrip\":false}}");
        expect(folder, "{{x}}\n", NULL, "<s>", "</s>");
        expect(in_folder(WEIGHTS), "{{x}}\n", NULL, "<s>", "</s>");
}

static void takes_default_and_tool_use_from_a_list_of_templates(void **state)
{
        (void)state;
        clear();
        write_text(CONFIG, "{\"chat_template\":[{\"name\":\"rag\",\"template\":\"r\"},"
                           "{\"name\":\"tool_use\",\"template\":\"t\"},"
                           "{\"name\":\"default\",\"template\":\"d\"}]}");
        expect(folder, "d", "t", NULL, NULL);
        write_text(CONFIG, "{\"chat_template\":[]}");
        expect(folder, NULL, NULL, NULL, NULL);
}

static void prefers_a_template_file_to_tokenizer_config(void **state)
{
        (void)state;
        clear();
        write_text(CONFIG, "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"t\"},"
                           "{\"name\":\"default\",\"template\":\"d\"}],\"bos_token\":\"<s>\"}");
        write_text(JINJA, "jinja");
        expect(folder, "jinja", NULL, "<s>", NULL);
        write_text(TOOL_USE, "with tools");
        expect(folder, "jinja", "with tools", "<s>", NULL);
}

static void refuses_a_malformed_template_entry_by_name(void **state)
{
        static const struct {
                const char *config, *sentence;
        } cases[] = {
                { "{\"chat_template\":7}",
                  "tokenizer_config.json: chat_template is neither a string nor a list" },
                { "{\"chat_template\":[7]}",
                  "tokenizer_config.json: a chat_template has no name or no template" },
                { "{\"chat_template\":[{\"name\":\"default\"}]}",
                  "tokenizer_config.json: a chat_template has no name or no template" },
                { "{\"chat_template\":[{\"name\":\"default\",\"template\":\"a\"},"
                  "{\"name\":\"default\",\"template\":\"b\"}]}",
                  "tokenizer_config.json: the default chat_template occurs twice" },
                { "{\"eos_token\":[]}", "tokenizer_config.json: eos_token is not a string" },
                { "{\"bos_token\":{\"lstrip\":true}}",
                  "tokenizer_config.json: bos_token is not a string" },
        };
        static char large[(1u << 20) + 2];

        (void)state;
        clear();
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                write_text(CONFIG, cases[i].config);
                refused(folder, cases[i].sentence);
        }
        unlink(in_folder(CONFIG));
        write_file(JINJA, "a\0b", 3);
        refused(folder, "chat_template.jinja contains a NUL byte");
        memset(large, 'x', sizeof(large) - 1);
        write_text(JINJA, large);
        refused(folder, "chat_template.jinja: the file has 1048577 bytes, the limit is 1048576");
}

static int set_up(void **state)
{
        (void)state;
        return good_folder() ? mkdir(in_folder(MORE), 0700) : -1;
}

static int tear_down(void **state)
{
        (void)state;
        clear();
        rmdir(in_folder(MORE));
        return remove_folder();
}

static void expect_file(const char *name, const char *plain, const char *bos, const char *eos)
{
        struct chat_source source;

        assert_int_equal(chat_source_file(in_folder(name), &source, why, sizeof(why)), 0);
        check(plain, source.plain);
        check(NULL, source.tools);
        check(bos, source.bos);
        check(eos, source.eos);
        chat_source_deinit(&source);
}

static void refused_file(const char *name, int result, const char *sentence)
{
        struct chat_source source;

        assert_int_equal(chat_source_file(in_folder(name), &source, why, sizeof(why)), result);
        assert_string_equal(why, sentence);
        check(NULL, source.plain);
}

static void reads_a_named_template_file_alone(void **state)
{
        (void)state;
        clear();
        write_text(CONFIG, "{\"chat_template\":\"{{x}}\",\"bos_token\":\"<s>\","
                           "\"eos_token\":{\"content\":\"</s>\"}}");
        write_text(JINJA, "jinja");
        expect_file(CONFIG, "{{x}}", "<s>", "</s>");
        expect_file(JINJA, "jinja", NULL, NULL);
        write_text(CONFIG, "{\"bos_token\":7}");
        refused_file(CONFIG, -EINVAL, CONFIG ": bos_token is not a string");
        write_file(JINJA, "a\0b", 3);
        refused_file(JINJA, -EINVAL,
                     "it contains a NUL byte, so it is neither a template nor a model");
        unlink(in_folder(JINJA));
        refused_file(JINJA, -ENOENT, "No such file or directory");
}

static void reads_templates_from_a_folder_without_a_model(void **state)
{
        struct chat_source source;
        int fd;

        (void)state;
        clear();
        write_text(CONFIG, "{\"chat_template\":\"{{x}}\",\"bos_token\":\"<s>\"}");
        unlink(in_folder("config.json"));
        unlink(in_folder(WEIGHTS));
        fd = open(folder, O_RDONLY | O_DIRECTORY);
        assert_true(fd >= 0);
        assert_int_equal(chat_source_folder(fd, &source, why, sizeof(why)), 0);
        check("{{x}}", source.plain);
        check("<s>", source.bos);
        chat_source_deinit(&source);
        close(fd);
        mend();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_templates_from_gguf_metadata),
                cmocka_unit_test(a_folder_without_templates_has_none),
                cmocka_unit_test(reads_template_and_tokens_from_tokenizer_config),
                cmocka_unit_test(takes_default_and_tool_use_from_a_list_of_templates),
                cmocka_unit_test(prefers_a_template_file_to_tokenizer_config),
                cmocka_unit_test(refuses_a_malformed_template_entry_by_name),
                cmocka_unit_test(reads_a_named_template_file_alone),
                cmocka_unit_test(reads_templates_from_a_folder_without_a_model),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
