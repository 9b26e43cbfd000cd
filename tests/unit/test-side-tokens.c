/* Added tokens in the other files of a folder, for each kind of vocabulary that lacks them. */
#include "tests/unit/vocabulary-made.h"

#include <unistd.h>

#include "daemon/text/tokenizer.h"

static const char *const names[] = { "tokenizer.model",
                                     "vocab.json",
                                     "merges.txt",
                                     "vocab.txt",
                                     "tokenizer_config.json",
                                     "added_tokens.json",
                                     "special_tokens_map.json" };

static const char six[] = "YQ== 0\nYg== 1\nYw== 2\nYWI= 3\nYmM= 4\nYWJjZA== 5";

/* Four pieces of SentencePiece: <unk>, <s>, a, ab. */
static const char model[] = "\x0A\x09\x0A\x05<unk>\x18\x02\x0A\x07\x0A\x03<s>\x18\x03"
                            "\x0A\x03\x0A\x01\x61\x0A\x04\x0A\x02\x61\x62\x12\x02\x18\x02";

static void path_of(const char *folder, const char *name, char to[256])
{
        snprintf(to, 256, "%s/%s", folder, name);
}

/* Opens `file` in a folder of the texts, which have the order of `names`; NULL: no such file. */
static int open_folder(const char *file, const char *const texts[7])
{
        char folder[] = "/tmp/samovar-side-XXXXXX", path[256];
        int r;

        assert_non_null(mkdtemp(folder));
        for (size_t i = 0; i < 7; i++) {
                FILE *to;

                if (!texts[i])
                        continue;
                path_of(folder, names[i], path);
                to = fopen(path, "w");
                assert_non_null(to);
                assert_int_equal(fwrite(texts[i], 1, strlen(texts[i]), to), strlen(texts[i]));
                fclose(to);
        }
        path_of(folder, file, path);
        made = NULL;
        r = vocabulary_open(path, strcmp(file, "vocab.txt") && texts[0] != model ? "qwen2" : NULL,
                            &made, why, sizeof(why));
        for (size_t i = 0; i < 7; i++) {
                path_of(folder, names[i], path);
                unlink(path);
        }
        rmdir(folder);
        return r;
}

static int open_ranks(const char *config, const char *added, const char *map)
{
        return open_folder("tokenizer.model",
                           (const char *const[7]){ six, NULL, NULL, NULL, config, added, map });
}

static int open_model(const char *config, const char *added, const char *map)
{
        return open_folder("tokenizer.model",
                           (const char *const[7]){ model, NULL, NULL, NULL, config, added, map });
}

static int open_pair(const char *config, const char *added, const char *map)
{
        return open_folder("vocab.json",
                           (const char *const[7]){ NULL, "{\"a\":0,\"b\":1,\"ab\":2,\"[E]\":3}",
                                                   "a b\n", NULL, config, added, map });
}

static int open_words(const char *config, const char *added, const char *map)
{
        return open_folder("vocab.txt",
                           (const char *const[7]){ NULL, NULL, NULL, "[UNK]\n[CLS]\na\n##b\n",
                                                   config, added, map });
}

#define LIST(tokens, more) "{\"added_tokens_decoder\":{" tokens "}" more "}"

static void ranks_take_tokens_and_ends_from_the_files_beside_them(void **state)
{
        (void)state;
        good(open_ranks(LIST("\"7\":{\"content\":\"[EOS]\",\"special\":true,\"rstrip\":true},"
                             "\"6\":{\"content\":\"<x>\",\"single_word\":true}",
                             ",\"eos_token\":{\"content\":\"[EOS]\"},\"bos_token\":\"a\","
                             "\"add_bos_token\":true,\"add_eos_token\":true"),
                        "{\"<y>\":8,\"<x>\":6}", NULL));
        assert_int_equal(made->entry_count, 9);
        check_entry(0, "a", ENTRY_CONTROL);
        check_entry(6, "<x>", ENTRY_USER);
        check_entry(7, "[EOS]", ENTRY_CONTROL);
        check_entry(8, "<y>", ENTRY_USER);
        assert_int_equal(made->entries[6].matching, ENTRY_ALONE | ENTRY_NORMALISED);
        assert_int_equal(made->entries[7].matching, ENTRY_STRIPS_RIGHT);
        assert_int_equal(made->eos, 7);
        assert_true(made->add_bos && made->bos == 0);
        assert_true(made->end_count == 1 && made->ends[0] == 7);
        vocabulary_close(made);
        good(open_ranks(NULL, NULL, NULL));
        assert_int_equal(made->entry_count, 6);
        vocabulary_close(made);
}

static void a_pair_of_files_takes_them_too(void **state)
{
        (void)state;
        good(open_pair(LIST("\"3\":{\"content\":\"[E]\",\"special\":true},"
                            "\"4\":{\"content\":\"  \",\"lstrip\":true}",
                            ",\"eos_token\":\"[E]\""),
                       NULL, NULL));
        assert_int_equal(made->entry_count, 5);
        check_entry(2, "ab", ENTRY_NORMAL);
        check_entry(3, "[E]", ENTRY_CONTROL);
        check_entry(4, "  ", ENTRY_USER);
        assert_int_equal(made->entries[4].matching, ENTRY_STRIPS_LEFT | ENTRY_NORMALISED);
        assert_true(made->eos == 3 && !made->add_bos && !made->end_count);
        vocabulary_close(made);
}

static void a_file_of_sentencepiece_takes_them_too(void **state)
{
        (void)state;
        good(open_model(LIST("\"0\":{\"content\":\"<unk>\",\"special\":true},"
                             "\"6\":{\"content\":\"<x>\",\"normalized\":true}",
                             ",\"legacy\":true,\"add_bos_token\":false,\"eos_token\":\"<x>\""),
                        NULL, NULL));
        assert_int_equal(made->entry_count, 7);
        check_entry(0, "<unk>", ENTRY_CONTROL);
        check_entry(4, "", ENTRY_UNUSED);
        check_entry(6, "<x>", ENTRY_CONTROL); /* a special token, whatever the list says */
        assert_int_equal(made->blank, BLANK_EACH);
        assert_true(made->bos == 1 && !made->add_bos && made->eos == 6);
        vocabulary_close(made);
        good(open_model("{\"add_prefix_space\":false}", "{\"<y>\":4}", NULL));
        assert_int_equal(made->blank, BLANK_NEVER);
        check_entry(4, "<y>", ENTRY_USER);
        assert_int_equal(made->entries[4].matching, ENTRY_FIRST);
        vocabulary_close(made);
}

static void a_file_of_words_takes_them_too(void **state)
{
        (void)state;
        good(open_words(LIST("\"4\":{\"content\":\"<x>\",\"normalized\":true},"
                             "\"5\":{\"content\":\"<y>\",\"special\":true}",
                             ""),
                        NULL, NULL));
        check_entry(1, "[CLS]", ENTRY_CONTROL);
        check_entry(4, "<x>", ENTRY_USER);
        check_entry(5, "<y>", ENTRY_CONTROL);
        assert_int_equal(made->entries[4].matching, ENTRY_NORMALISED);
        assert_int_equal(made->bos, 1);
        vocabulary_close(made);
}

static void without_a_list_the_map_of_special_tokens_counts_first(void **state)
{
        static const char config[] = "{\"eos_token\":\"a\",\"bos_token\":\"\"}";
        static const char map[] = "{\"eos_token\":{\"content\":\"[E]\",\"lstrip\":true},"
                                  "\"additional_special_tokens\":[\"<x>\",\"not here\"]}";

        (void)state;
        good(open_pair(config, "{\"<x>\":4,\"<y>\":5}", map));
        check_entry(3, "[E]", ENTRY_CONTROL);
        check_entry(4, "<x>", ENTRY_CONTROL);
        check_entry(5, "<y>", ENTRY_USER);
        assert_int_equal(made->entries[3].matching, ENTRY_STRIPS_LEFT);
        assert_true(made->eos == 3 && made->bos == VOCABULARY_NONE);
        vocabulary_close(made);
        good(open_pair(LIST("\"4\":{\"content\":\"<x>\"}", ",\"eos_token\":\"b\""), NULL, map));
        assert_int_equal(made->eos, 1);
        vocabulary_close(made);
        good(open_pair(NULL, NULL, "{\"eos_token\":\"[E]\"}"));
        assert_int_equal(made->eos, 3);
        vocabulary_close(made);
}

static void a_list_can_rename_a_token(void **state)
{
        (void)state;
        good(open_pair(
                LIST("\"3\":{\"content\":\"<end>\",\"special\":true}", ",\"eos_token\":\"<end>\""),
                NULL, NULL));
        assert_int_equal(made->entry_count, 4);
        check_entry(3, "<end>", ENTRY_CONTROL);
        assert_int_equal(made->eos, 3);
        vocabulary_close(made);
}

static void the_class_of_qwen_composes_texts(void **state)
{
        (void)state;
        good(open_pair("{\"tokenizer_class\":\"Qwen2Tokenizer\"}", NULL, NULL));
        assert_true(made->normal_count == 1 && made->normals[0].kind == NORMAL_NFC);
        vocabulary_close(made);
        good(open_pair("{\"tokenizer_class\":\"Qwen2TokenizerFast\"}", NULL, NULL));
        assert_int_equal(made->normal_count, 1);
        vocabulary_close(made);
        good(open_pair("{\"tokenizer_class\":\"Qwen2TokenizerFaster\"}", NULL, NULL));
        assert_int_equal(made->normal_count, 0);
        vocabulary_close(made);
        good(open_pair("{\"tokenizer_class\":[\"Qwen2Tokenizer\"]}", NULL, NULL));
        assert_int_equal(made->normal_count, 0);
        vocabulary_close(made);
}

static void refuses_files_that_contradict_the_vocabulary(void **state)
{
        (void)state;
        said(open_ranks("{\"added_tokens_decoder\":{\"x\":{\"content\":\"a\"}}}", NULL, NULL),
             "tokenizer_config.json, beside it: 'added_tokens_decoder' has an id");
        said(open_ranks(NULL, "{\"a\":-1}", NULL), "added_tokens.json, beside it: the id of 'a'");
        said(open_ranks(LIST("\"999999\":{\"content\":\"x\"}", ""), NULL, NULL),
             "the largest id beside it is 999999, but it has 6 tokens");
        said(open_pair(LIST("\"4\":{\"content\":\"ab\"}", ""), NULL, NULL),
             "the token 'ab' has the id 2, but 4 in the files beside it");
        said(open_model(NULL, "{\"a\":7}", NULL), "the token 'a' has the id 2, but 7");
}

/* A file of ranks needs them for its control tokens; the other kinds have some. */
static void only_ranks_are_refused_beside_a_file_that_is_no_json(void **state)
{
        (void)state;
        said(open_ranks("{", NULL, NULL), "tokenizer_config.json, beside it: ");
        said(open_ranks(NULL, NULL, "{"), "special_tokens_map.json, beside it: ");
        good(open_model("{", "{\"<y>\":4}", NULL));
        assert_int_equal(made->entry_count, 5);
        vocabulary_close(made);
        good(open_pair(NULL, "{", "{\"eos_token\":\"[E]\"}"));
        assert_int_equal(made->eos, 3);
        vocabulary_close(made);
        good(open_words(NULL, "{", "{"));
        vocabulary_close(made);
        said(open_words("{", NULL, NULL), "tokenizer_config.json: byte 1");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ranks_take_tokens_and_ends_from_the_files_beside_them),
                cmocka_unit_test(a_pair_of_files_takes_them_too),
                cmocka_unit_test(a_file_of_sentencepiece_takes_them_too),
                cmocka_unit_test(a_file_of_words_takes_them_too),
                cmocka_unit_test(without_a_list_the_map_of_special_tokens_counts_first),
                cmocka_unit_test(a_list_can_rename_a_token),
                cmocka_unit_test(the_class_of_qwen_composes_texts),
                cmocka_unit_test(refuses_files_that_contradict_the_vocabulary),
                cmocka_unit_test(only_ranks_are_refused_beside_a_file_that_is_no_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
