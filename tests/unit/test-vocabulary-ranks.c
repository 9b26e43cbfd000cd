/* Files of ranks, as tiktoken writes them, and tekken.json. */
#include "tests/unit/vocabulary-made.h"

#include "daemon/files/base64.h"
#include "daemon/text/tokenizer.h"

static int from_ranks(const char *text, const char *splitter)
{
        made = NULL;
        return vocabulary_from_ranks(text, strlen(text), splitter, NULL, &made, why, sizeof(why));
}

static int from_tekken(const char *text)
{
        made = NULL;
        return vocabulary_from_tekken(text, strlen(text), &made, why, sizeof(why));
}

static void decodes_base64_as_rfc_4648_lists_it(void **state)
{
        static const struct {
                const char *text, *bytes;
        } vectors[] = { { "", "" },
                        { "Zg==", "f" },
                        { "Zm8=", "fo" },
                        { "Zm9v", "foo" },
                        { "Zm9vYg==", "foob" },
                        { "Zm9vYmE=", "fooba" },
                        { "Zm9vYmFy", "foobar" } };
        static const char *const wrong[] = {
                "Z", "Zg=", "Zg", "Z===", "Zm9v=", "Z*==", "Zg==Zg=="
        };
        char to[16];
        size_t bytes;

        (void)state;
        for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
                assert_true(base64_decode(vectors[i].text, strlen(vectors[i].text), to, &bytes));
                assert_int_equal(bytes, strlen(vectors[i].bytes));
                assert_memory_equal(to, vectors[i].bytes, bytes);
        }
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
                assert_false(base64_decode(wrong[i], strlen(wrong[i]), to, &bytes));
}

/* a, b, c, ab, bc, abc: of "abc", a and b merge first, because that has the lower rank. */
static const char six[] = "YQ== 0\nYg== 1\r\n\nYw== 2\nYWI= 3\nYmM= 4\nYWJjZA== 5";

static void reads_ranks_and_merges_the_lowest_first(void **state)
{
        struct tokenizer *t;
        uint32_t ids[32];
        size_t count;

        (void)state;
        good(from_ranks(six, "gpt2"));
        assert_int_equal(made->kind, VOCABULARY_BYTE_LEVEL);
        assert_true(made->by_score && made->whole_wins && !made->add_bos);
        assert_int_equal(made->entry_count, 6);
        check_split("gpt2");
        check_entry(3, "ab", ENTRY_NORMAL);
        assert_int_equal(tokenizer_open(made, 6, &t, why, sizeof(why)), 0);
        vocabulary_close(made);
        assert_int_equal(tokenizer_encode(t, "abcbc", 5, NULL, ids, &count), 0);
        assert_int_equal(count, 3);
        assert_true(ids[0] == 3 && ids[1] == 2 && ids[2] == 4);
        tokenizer_close(t);
}

static void refuses_lines_that_are_no_ranks(void **state)
{
        (void)state;
        said(from_ranks(six, NULL), "of 6 ranks does not name its splitter");
        said(from_ranks(six, "no\n"), "the splitter 'no?' is not supported");
        said(from_ranks("", "gpt2"), "it has no token");
        said(from_ranks("tet 0", "gpt2"), "line 1 is not a token in Base64 and its rank");
        said(from_ranks("\nYQ==0", "gpt2"), "line 2 is not a token");
        said(from_ranks("= 0", "gpt2"), "line 1 is not a token");
        said(from_ranks("YQ== ", "gpt2"), "the rank in line 1");
        said(from_ranks("YQ== -1", "gpt2"), "the rank in line 1");
        said(from_ranks("YQ== 18446744073709551616", "gpt2"), "the rank in line 1");
        said(from_ranks("YQ== 4194304", "gpt2"), "the rank in line 1");
        said(from_ranks("YQ== 4194303", "gpt2"), "its largest id is 4194303, but it has 1");
        said(from_ranks("YQ== 0\nYg== 0", "gpt2"), "token id 0 occurs twice");
}

/* The ids of Llama 3's control tokens follow its 128,000 ranks. */
static void open_many_ranks(uint32_t ranks)
{
        static const char digits[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        char *text = malloc(ranks * 20), *to = text;

        for (uint32_t i = 0; i < ranks; i++)
                to += sprintf(to, "%c%c%c%c %u\n", digits[i >> 18 & 63], digits[i >> 12 & 63],
                              digits[i >> 6 & 63], digits[i & 63], i);
        good(from_ranks(text, NULL));
        free(text);
}

static void knows_the_control_tokens_of_llama_3_by_its_number_of_ranks(void **state)
{
        const uint32_t ranks = 128000;

        (void)state;
        open_many_ranks(ranks);
        check_split("llama3");
        assert_int_equal(made->entry_count, ranks + 256);
        assert_int_equal(made->bos, ranks);
        assert_int_equal(made->eos, ranks + 1);
        assert_true(made->add_bos);
        check_entry(ranks, "<|begin_of_text|>", ENTRY_CONTROL);
        check_entry(ranks + 2, "<|reserved_special_token_0|>", ENTRY_CONTROL);
        check_entry(ranks + 6, "<|start_header_id|>", ENTRY_CONTROL);
        check_entry(ranks + 9, "<|eot_id|>", ENTRY_CONTROL);
        check_entry(ranks + 12, "<|reserved_special_token_2|>", ENTRY_CONTROL);
        check_entry(ranks + 255, "<|reserved_special_token_245|>", ENTRY_CONTROL);
        vocabulary_close(made);
}

static void knows_qwen_1_by_its_number_of_ranks_and_composes_its_texts(void **state)
{
        const uint32_t ranks = 151643;

        (void)state;
        open_many_ranks(ranks);
        check_split("qwen2");
        assert_int_equal(made->entry_count, ranks + 208);
        assert_true(!made->add_bos && made->eos == ranks);
        check_entry(ranks + 1, "<|im_start|>", ENTRY_CONTROL);
        check_entry(ranks + 207, "<|extra_204|>", ENTRY_CONTROL);
        assert_true(made->normal_count == 1 && made->normals[0].kind == NORMAL_NFC);
        vocabulary_close(made);
}

/* ---- Tekken ---- */

#define TEKKEN(config, vocab, more)                                                                \
        "{\"config\":{\"pattern\":\"\\\\p{L}+\"," config "},\"vocab\":[" vocab "]" more "}"
#define SIZES "\"default_vocab_size\":24,\"default_num_special_tokens\":21"
#define ENTRIES                                                                                    \
        "{\"rank\":0,\"token_bytes\":\"YQ==\"},{\"rank\":1,\"token_bytes\":\"Yg==\"},"             \
        "{\"rank\":2,\"token_bytes\":\"YWI=\"},{\"rank\":3,\"token_bytes\":\"YmI=\"}"

static void reads_tekken_with_its_control_tokens_first(void **state)
{
        (void)state;
        good(from_tekken(TEKKEN(SIZES, ENTRIES, "")));
        assert_int_equal(made->entry_count, 24); /* the fourth entry is beyond the model */
        check_entry(1, "<s>", ENTRY_CONTROL);
        check_entry(9, "[TOOL_CALLS]", ENTRY_CONTROL);
        check_entry(20, "<SPECIAL_20>", ENTRY_CONTROL);
        check_entry(23, "ab", ENTRY_NORMAL);
        assert_true(made->by_score && made->add_bos && made->bos == 1 && made->eos == 2);
        assert_string_equal(made->cuts[0].expression, "\\p{L}+");
        vocabulary_close(made);
        good(from_tekken(TEKKEN(SIZES, ENTRIES,
                                ",\"special_tokens\":[{\"rank\":3,\"token_str\":\"[X]\","
                                "\"is_control\":false},{\"rank\":5,\"token_str\":\"</s>\"}]")));
        check_entry(1, "<SPECIAL_1>", ENTRY_CONTROL);
        check_entry(3, "[X]", ENTRY_USER);
        assert_true(!made->add_bos && made->eos == 5);
        vocabulary_close(made);
}

static void refuses_a_tekken_file_that_does_not_fit_together(void **state)
{
        (void)state;
        said(from_tekken("{}"), "it has no 'config.pattern' or no 'vocab'");
        said(from_tekken(TEKKEN("\"default_vocab_size\":24", ENTRIES, "")),
             "'default_num_special_tokens' is missing");
        said(from_tekken(TEKKEN("\"default_vocab_size\":99,\"default_num_special_tokens\":21",
                                ENTRIES, "")),
             "does not fit 'vocab', which has 4 entries");
        said(from_tekken(TEKKEN("\"default_vocab_size\":2,\"default_num_special_tokens\":21",
                                ENTRIES, "")),
             "does not fit 'vocab'");
        said(from_tekken(TEKKEN(SIZES, "{\"rank\":1,\"token_bytes\":\"YQ==\"},{},{}", "")),
             "entry 0 of 'vocab' has no rank 0");
        said(from_tekken(TEKKEN(SIZES, "{\"rank\":0,\"token_bytes\":\"Y\"},{},{}", "")),
             "entry 0 of 'vocab'");
        said(from_tekken(TEKKEN(SIZES, ENTRIES,
                                ",\"special_tokens\":[{\"rank\":21,\"token_str\":"
                                "\"x\"}]")),
             "no 'rank' below 21");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(decodes_base64_as_rfc_4648_lists_it),
                cmocka_unit_test(reads_ranks_and_merges_the_lowest_first),
                cmocka_unit_test(refuses_lines_that_are_no_ranks),
                cmocka_unit_test(knows_the_control_tokens_of_llama_3_by_its_number_of_ranks),
                cmocka_unit_test(knows_qwen_1_by_its_number_of_ranks_and_composes_its_texts),
                cmocka_unit_test(reads_tekken_with_its_control_tokens_first),
                cmocka_unit_test(refuses_a_tekken_file_that_does_not_fit_together),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
