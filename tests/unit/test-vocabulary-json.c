/* Vocabularies in JSON: tokenizer.json, and vocab.json with its merges. */
#include <math.h>

#include "daemon/files/vocabulary-bert.h"
#include "tests/unit/vocabulary-made.h"

/* ---- tokenizer.json ---- */

static const char json_letters[] =
        "{\"added_tokens\":[{\"id\":5,\"content\":\"<e>\",\"single_word\":false,\"lstrip\":false,"
        "\"rstrip\":true,\"normalized\":false,\"special\":true},"
        "{\"id\":4,\"content\":\"u u\",\"normalized\":false,\"special\":false}],"
        "\"normalizer\":{\"type\":\"NFC\"},"
        "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
        "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
        "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| "
        "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|"
        "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},"
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},"
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
        "\"<e>\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"<e>\":{\"ids\":[5]}}},"
        "\"decoder\":{\"type\":\"ByteLevel\"},"
        "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"ignore_merges\":true,"
        "\"vocab\":{\"a\":0,\"\xC4\xA0\":1,\"\xC4\xA0"
        "a\":2,\"\xC4\xA0"
        "aa\":7},"
        "\"merges\":[\"\xC4\xA0 a\",[\"\xC4\xA0"
        "a\",\"a\"]]}}";

static const char json_bars[] =
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"normalized\":false,\"special\":true}]"
        ","
        "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["
        "{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}]},"
        "\"pre_tokenizer\":null,\"post_processor\":null,"
        "\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"},\"content\":\" \"},"
        "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
        "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
        "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":"
        "true,"
        "\"vocab\":{\"<unk>\":0,\"<0x0A>\":1,\"\xE2\x96\x81\":2,\"a\":3,\"\xE2\x96\x81"
        "a\":4},"
        "\"merges\":[\"\xE2\x96\x81 a\"]}}";

/* As old files of T5 have it: without the type of the model, or the scheme of Metaspace. */
static const char json_scored[] =
        "{\"added_tokens\":[{\"id\":0,\"content\":\"</s>\",\"normalized\":false,\"special\":true},"
        "{\"id\":1,\"content\":\"<unk>\",\"normalized\":false,\"special\":true},"
        "{\"id\":5,\"content\":\"<b>\",\"normalized\":false}],"
        "\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"},"
        "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"}"
        ","
        "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"add_prefix_space\":true}]},"
        "\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"<b>\",5],\"sep\":[\"</"
        "s>\",0]},"
        "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\"},"
        "\"model\":{\"unk_id\":1,\"byte_fallback\":true,\"vocab\":[[\"</s>\",0.0],[\"<unk>\",0.0],"
        "[\"\xE2\x96\x81"
        "a\",-2.5],[\"<0x41>\",0],[\"b\",-3.1234567890123456]]}}";

static const char json_plain[] =
        "{\"added_tokens\":[{\"id\":0,\"content\":\"[CLS]\",\"normalized\":false,\"special\":true},"
        "{\"id\":9,\"content\":\"<b>\",\"normalized\":false,\"special\":false}],"
        "\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
        "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",2],"
        "\"cls\":[\"[CLS]\",0]},"
        "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
        "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
        "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":9,"
        "\"vocab\":{\"[UNK]\":1,\"[SEP]\":2,\"tea\":3,\"##pot\":4,\".\":5,\"##.\":6}}}";

static int from_json(const char *text, const char *splitter)
{
        made = NULL;
        why[0] = '\0';
        return vocabulary_from_json(text, strlen(text), splitter, &made, why, sizeof(why));
}

/* The first `from` in the text is `to` now. */
static char *changed(const char *text, const char *from, const char *to)
{
        const char *at = strstr(text, from);
        size_t room = strlen(text) + strlen(to) + 1;
        char *out = malloc(room);

        if (!at)
                fail_msg("'%s' is not in it", from);
        assert_non_null(out);
        snprintf(out, room, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
        return out;
}

static void check_cut(uint32_t at, enum cut_kind kind, bool inverted, const char *expression)
{
        assert_true(at < made->cut_count);
        assert_int_equal(made->cuts[at].kind, kind);
        assert_int_equal(made->cuts[at].inverted, inverted);
        assert_string_equal(made->cuts[at].expression, expression);
}

static void reads_a_byte_level_tokenizer_json(void **state)
{
        (void)state;
        good(from_json(json_letters, NULL));
        assert_int_equal(made->kind, VOCABULARY_BYTE_LEVEL);
        check_split("llama3");
        assert_int_equal(made->normal_count, 1);
        assert_int_equal(made->normals[0].kind, NORMAL_NFC);
        assert_int_equal(made->entry_count, 8);
        assert_int_equal(made->merge_count, 2);
        assert_true(made->whole_wins && made->add_bos && made->bos == 5);
        assert_int_equal(made->unknown, VOCABULARY_NONE);
        check_entry(0, "a", ENTRY_NORMAL);
        check_entry(1, " ", ENTRY_NORMAL);
        check_entry(7, " aa", ENTRY_NORMAL);
        check_entry(3, "", ENTRY_UNUSED); /* ids that the file leaves out */
        check_entry(6, "", ENTRY_UNUSED);
        check_entry(5, "<e>", ENTRY_CONTROL);
        check_entry(4, "u u", ENTRY_USER);
        assert_int_equal(made->entries[5].matching, ENTRY_STRIPS_RIGHT);
        check_merge(0, 1, 0, 2); /* merges in both spellings */
        check_merge(1, 2, 0, 7);
        vocabulary_close(made);
        good(from_json(json_letters, "gpt2"));
        check_split("gpt2");
        vocabulary_close(made);
}

static void reads_a_tokenizer_json_of_characters(void **state)
{
        (void)state;
        good(from_json(json_bars, NULL));
        assert_int_equal(made->kind, VOCABULARY_CHARACTERS);
        assert_int_equal(made->blank, BLANK_EACH);
        assert_int_equal(made->unknown, 0);
        assert_true(made->unknown_run && !made->add_bos);
        check_entry(0, "<unk>", ENTRY_CONTROL);
        check_entry(1, "\n", ENTRY_BYTE);
        check_entry(4, " a", ENTRY_NORMAL);
        check_merge(0, 2, 3, 4);
        vocabulary_close(made);
        said(from_json(json_bars, "gpt2"), "uses none");
}

static void metaspace_replaces_blanks_if_no_normalizer_does(void **state)
{
        static const char whole[] = "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["
                                    "{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"},"
                                    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
                                    "\"content\":\"\xE2\x96\x81\"}]},\"pre_tokenizer\":null";
        static const char meta[] =
                "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":"
                "\"\xE2\x96\x81\",\"prepend_scheme\":\"first\",\"split\":false}";
        char *text = changed(json_bars, whole, meta), *bad;

        (void)state;
        good(from_json(text, NULL));
        assert_true(made->blank == BLANK_FIRST && made->blank_once);
        assert_int_equal(made->cut_count, 0);
        vocabulary_close(made);
        bad = changed(text, "\"split\":false", "\"split\":true");
        good(from_json(bad, NULL));
        assert_int_equal(made->cut_count, 1);
        check_cut(0, CUT_TO_NEXT, false, " ");
        vocabulary_close(made);
        free(bad);
        bad = changed(text, "\"prepend_scheme\":\"first\"", "\"add_prefix_space\":false");
        good(from_json(bad, NULL));
        assert_true(made->blank == BLANK_NEVER);
        vocabulary_close(made);
        free(bad);
        bad = changed(text, "first", "last");
        said(from_json(bad, NULL), "its pre_tokenizer has 'Metaspace'");
        free(bad);
        free(text);
        text = changed(json_bars, whole, "\"normalizer\":null");
        said(from_json(text, NULL), "nothing replaces blanks by bars");
        free(text);
}

static void reads_a_tokenizer_json_of_scores(void **state)
{
        char *text;

        (void)state;
        good(from_json(json_scored, NULL));
        assert_int_equal(made->kind, VOCABULARY_UNIGRAM);
        assert_true(made->blank == BLANK_EACH && made->blank_once && made->squeezes_all);
        assert_int_equal(made->cut_count, 1);
        check_cut(0, CUT_TO_NEXT, false, " ");
        assert_int_equal(made->normal_count, 1);
        assert_int_equal(made->normals[0].kind, NORMAL_RULES_CLUSTERS);
        assert_int_equal(made->normals[0].bytes, 3);
        assert_int_equal(made->unknown, 1);
        assert_true(made->spelt_bytes && !made->single_sums);
        assert_int_equal(made->entry_count, 6);
        check_entry(0, "</s>", ENTRY_CONTROL);
        check_entry(2, " a", ENTRY_NORMAL);
        check_entry(3, "A", ENTRY_BYTE);
        check_entry(5, "<b>", ENTRY_USER);
        assert_true(made->entries[2].score == -2.5);
        assert_true(made->entries[5].score == -INFINITY); /* it is no piece of the model */
        /* As `tokenizers` reads it: in two steps, each rounded. */
        assert_true(made->entries[4].score == -(31234567890123456.0 / 1e16));
        assert_true(made->unknown_score == made->entries[4].score - 10);
        assert_true(made->add_bos && made->bos == 5);
        assert_int_equal(made->end_count, 1);
        assert_int_equal(made->ends[0], 0);
        vocabulary_close(made);
        text = changed(json_scored, "\"AAAA\"", "null"); /* no rules */
        good(from_json(text, NULL));
        free(text);
        assert_int_equal(made->normal_count, 0);
        vocabulary_close(made);
        said(from_json(json_scored, "gpt2"), "uses none");
}

static void reads_the_tokens_behind_a_text(void **state)
{
        char *text = changed(json_letters, "{\"Sequence\":{\"id\":\"A\"}}",
                             "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"<e>\"}},"
                             "{\"SpecialToken\":{\"id\":\"<e>\"}}");

        (void)state;
        good(from_json(text, NULL));
        free(text);
        assert_true(made->add_bos && made->bos == 5);
        assert_int_equal(made->end_count, 2);
        assert_int_equal(made->ends[1], 5);
        vocabulary_close(made);
}

static void reads_a_tokenizer_json_of_words(void **state)
{
        (void)state;
        good(from_json(json_plain, NULL));
        assert_int_equal(made->kind, VOCABULARY_WORDPIECE);
        assert_int_equal(made->border, BORDER_FRONT);
        assert_int_equal(made->word_max, 9);
        assert_true(made->unknown == 1 && made->add_bos && made->bos == 0);
        assert_int_equal(made->normal_count, 5);
        assert_int_equal(made->cut_count, 2);
        check_entry(0, "[CLS]", ENTRY_CONTROL);
        check_entry(3, " tea", ENTRY_NORMAL);
        check_entry(4, "pot", ENTRY_NORMAL);
        check_entry(5, " .", ENTRY_NORMAL);
        check_entry(6, ".", ENTRY_NORMAL);
        check_entry(9, "<b>", ENTRY_USER);
        assert_int_equal(made->entries[3].matching, 0);
        assert_int_equal(made->entries[5].matching, ENTRY_JOINS);
        assert_int_equal(made->entries[6].matching, 0);
        vocabulary_close(made);
        said(from_json(json_plain, "gpt2"), "uses none");
}

static void words_that_are_not_divided_have_no_mark(void **state)
{
        char *text =
                changed(json_plain, "\"type\":\"WordPiece\",\"unk", "\"type\":\"WordLevel\",\"unk");

        (void)state;
        good(from_json(text, NULL));
        assert_int_equal(made->kind, VOCABULARY_WORDPIECE);
        assert_int_equal(made->word_max, 0);
        check_entry(4, " ##pot", ENTRY_NORMAL);
        vocabulary_close(made);
        free(text);
}

static void a_mark_behind_words_is_a_blank(void **state)
{
        char *text = changed(json_letters, "\"dropout\":null", "\"end_of_word_suffix\":\"a\"");

        (void)state;
        good(from_json(text, NULL));
        assert_int_equal(made->border, BORDER_BEHIND);
        check_entry(0, " ", ENTRY_UNUSED); /* the mark alone */
        check_entry(1, " ", ENTRY_NORMAL);
        check_entry(2, "  ", ENTRY_NORMAL);
        vocabulary_close(made);
        free(text);
        text = changed(json_letters,
                       "\"dropout\":null,\"unk_token\":null,\"ignore_merges\":true,\"vocab\":{",
                       "\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\xC4\xA0\":3,");
        said(from_json(text, NULL), "token 3 ends in a blank, and words end in '</w>'");
        free(text);
}

/* The library that made the file accepts these, too. */
static void accepts_what_has_no_effect_on_ids(void **state)
{
        static const struct {
                const char *text, *from, *to;
        } cases[] = {
                { json_letters, "\"dropout\":null", "\"dropout\":0.1" },
                { json_letters, "\"unk_token\":null", "\"unk_token\":\"x\"" },
                { json_letters, "{\"type\":\"ByteLevel\"},\"model", "null,\"model" },
                { json_letters, "{\"Sequence\":{\"id\":\"A\"}}",
                  "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"<e>\"}}" },
                { json_letters, "\"TemplateProcessing\"",
                  "\"RobertaProcessing\",\"sep\":[\"<e>\",5],\"cls\":[\"<e>\",5]" },
                { json_bars, "\"merges\":[\"\xE2\x96\x81 a\"]", "\"merges\":[]" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                char *text = changed(cases[i].text, cases[i].from, cases[i].to);

                good(from_json(text, NULL));
                assert_int_equal(made->unknown, i < 5 ? VOCABULARY_NONE : 0);
                assert_true(i >= 5 || (made->add_bos && made->bos == 5));
                assert_false(made->by_score);
                vocabulary_close(made);
                free(text);
        }
}

static void of_a_token_that_is_listed_twice_the_last_id_counts(void **state)
{
        char *text = changed(json_letters, "\"vocab\":{", "\"vocab\":{\"a\":6,");

        (void)state;
        good(from_json(text, NULL));
        check_entry(0, "a", ENTRY_NORMAL);
        check_entry(6, "", ENTRY_UNUSED);
        check_merge(0, 1, 0, 2);
        vocabulary_close(made);
        free(text);
        text = changed(json_letters, "\"model\":{", "\"model\":{\"type\":\"BPE\",");
        said(from_json(text, NULL), "duplicate key 'type'");
        free(text);
}

static void a_step_behind_byte_level_sees_letters(void **state)
{
        char *text = changed(json_letters, "\"use_regex\":false}]",
                             "\"use_regex\":false},{\"type\":\"Digits\"}]");

        (void)state;
        good(from_json(text, NULL));
        assert_int_equal(made->cut_count, 2);
        assert_true(!made->cuts[0].letters && made->cuts[1].letters);
        vocabulary_close(made);
        free(text);
        text = changed(json_letters, "\"use_regex\":false}]",
                       "\"use_regex\":false},{\"type\":\"ByteLevel\"}]");
        said(from_json(text, NULL), "its pre_tokenizer has 'ByteLevel'");
        free(text);
}

static void byte_fallback_needs_no_tokens_if_every_byte_is_a_letter(void **state)
{
        char *text = changed(json_letters, "\"dropout\":null", "\"byte_fallback\":false");

        (void)state;
        good(from_json(text, NULL));
        vocabulary_close(made);
        free(text);
        text = changed(json_letters, "\"dropout\":null", "\"byte_fallback\":true");
        said(from_json(text, NULL), "'byte_fallback', and not every byte as a letter");
        free(text);
}

/* ---- vocab.txt ---- */

static int from_words(const char *text, const char *config)
{
        made = NULL;
        why[0] = '\0';
        return vocabulary_from_words(text, strlen(text), config, config ? strlen(config) : 0, NULL,
                                     &made, why, sizeof(why));
}

static void reads_vocab_txt(void **state)
{
        (void)state;
        good(from_words("[PAD]\r\n[UNK]\n[CLS] \ntea\n##pot\ntea\n!", NULL));
        assert_int_equal(made->kind, VOCABULARY_WORDPIECE);
        assert_int_equal(made->entry_count, 7);
        assert_true(made->unknown == 1 && made->add_bos && made->bos == 2);
        assert_int_equal(made->normal_count, 5);
        check_entry(0, "[PAD]", ENTRY_CONTROL);
        check_entry(3, "", ENTRY_UNUSED);
        check_entry(4, "pot", ENTRY_NORMAL);
        check_entry(5, " tea", ENTRY_NORMAL); /* the last of two */
        check_entry(6, " !", ENTRY_NORMAL);
        vocabulary_close(made);
        good(from_words("<u>\ntea\n", "{\"do_lower_case\":false,\"tokenize_chinese_chars\":false,"
                                      "\"unk_token\":{\"content\":\"<u>\"},\"cls_token\":null}"));
        assert_true(made->unknown == 0 && !made->add_bos);
        assert_int_equal(made->normal_count, 1);
        vocabulary_close(made);
        said(from_words("", NULL), "its vocabulary is empty");
        said(from_words("a\n", "[}"), "tokenizer_config.json");
}

static void refuses_an_unsupported_tokenizer_json_feature_by_name(void **state)
{
        static const struct {
                const char *text, *from, *to, *said;
        } cases[] = {
                { json_letters, "{\"added", "[\"added", "byte" },
                { json_letters, "\"NFC\"", "\"ByteLevel\"", "its normalizer has 'ByteLevel'" },
                { json_letters, "Isolated", "Turned", "its pre_tokenizer has 'Split'" },
                { json_letters, "\"Split\"", "\"UnicodeScripts\"", "'UnicodeScripts'" },
                { json_letters, "{\"type\":\"ByteLevel\"},\"model",
                  "{\"type\":\"WordPiece\"},\"model", "its decoder has 'WordPiece'" },
                { json_letters, "\"TemplateProcessing\"", "\"BertProcessing\"",
                  "'BertProcessing'" },
                { json_letters, "[5]", "[5,5]", "its post_processor" },
                { json_letters, "[5]", "[8]", "its post_processor" },
                { json_letters, "{\"Sequence\":{\"id\":\"A\"}}",
                  "{\"Sequence\":{\"id\":\"A\"}},{\"Sequence\":{\"id\":\"B\"}}",
                  "its post_processor" },
                { json_letters, "{\"Sequence\":{\"id\":\"A\"}}",
                  "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"<f>\"}}",
                  "its post_processor" },
                { json_scored, "\"unk_id\":1", "\"unk_id\":5", "'unk_id' is not a token" },
                { json_scored, "\"unk_id\":1", "\"unk_id\":null", "'unk_id' is not a token" },
                { json_scored, "-2.5", "\"-2.5\"", "piece 2 of its model" },
                { json_scored, "-2.5", "-2.5,1", "piece 2 of its model" },
                { json_scored, "\"id\":1", "\"id\":2", "token id 2 is two tokens" },
                { json_scored, "AAAA", "AA-A", "not base64" },
                { json_scored, "\"AAAA\"", "7", "its normalizer has 'Precompiled'" },
                { json_scored, "\"add_prefix_space\":true", "\"add_prefix_space\":false",
                  "its pre_tokenizer has 'Metaspace'" },
                { json_scored, "\"Roberta", "\"Tweet", "its post_processor has 'TweetProcessing'" },
                { json_scored, "[\"</s>\",0]", "[\"</s>\",9]",
                  "its post_processor has 'RobertaProcessing'" },
                { json_letters, "\"dropout\":null", "\"continuing_subword_prefix\":\"##\"",
                  "'continuing_subword_prefix' or 'end_of_word_suffix'" },
                { json_letters, "\"dropout\":null",
                  "\"continuing_subword_prefix\":\"##\",\"end_of_word_suffix\":\"</w>\"",
                  "exclude each other" },
                { json_letters, "\"unk_token\":null", "\"unk_token\":7",
                  "'unk_token' is not a string" },
                { json_letters, "\"BPE\"", "\"WordPiece\"", "its model has words" },
                { json_plain, "_prefix\":\"##\"", "_prefix\":\"\"",
                  "an empty 'continuing_subword_prefix'" },
                { json_plain, "\"prefix\":\"##\"", "\"prefix\":\"#\"",
                  "its decoder has 'WordPiece'" },
                { json_plain, "word\":9,", "word\":0,",
                  "'max_input_chars_per_word' is not a number above 0" },
                { json_plain, "BertPreTokenizer", "Metaspace", "its model has words" },
                { json_plain, "BertPreTokenizer", "Nothing", "its pre_tokenizer has 'Nothing'" },
                { json_letters, "\"unk_token\":null", "\"byte_fallback\":true", "'byte_fallback'" },
                { json_letters, "<e>\",\"single", "\xC3\xA9\",\"normalized\":true,\"single",
                  "duplicate" },
                { json_letters, "\"content\":\"<e>\",", "", "without 'content'" },
                { json_letters, "\"id\":5", "\"id\":-5", "without 'content' or 'id'" },
                { json_letters, "\"id\":5", "\"id\":4194304", "token id 4194304" },
                { json_letters, "\"id\":5", "\"id\":4", "token id 4 occurs twice" },
                { json_letters, "\"id\":5", "\"id\":4194303",
                  "its largest id is 4194303, but it has 6" },
                { json_letters, "\"a\":0", "\"a\":4194303",
                  "its largest id is 4194303, but it has 6" },
                { json_letters, "\"a\":0", "\"a\":1", "token id 1 occurs twice" },
                { json_letters, "\"a\":0", "\"a\":4194304", "the id of token 'a'" },
                { json_letters, "\"a\":0", "\"a\":\"0\"", "the id of token 'a'" },
                { json_letters, "\"a\":0", "\"\\u001b[31m\":-1", "the id of token '?[31m'" },
                { json_letters, "\"vocab\":{", "\"vocab\":7,\"words\":{", "not an object" },
                { json_letters, "\xC4\xA0 a", "\xC4\xA0", "merge 0 is not two tokens" },
                { json_letters, "\xC4\xA0 a", "\xC4\xA0  a", "merge 0 is not two tokens" },
                { json_letters, "\xC4\xA0 a", "a a",
                  "merge 0 uses or gives a text that is not a token" },
                { json_letters, ",[\"\xC4\xA0", ",[\"a\",\"\xC4\xA0", "merge 1 is neither" },
                { json_letters,
                  "[\"\xC4\xA0"
                  "a\",\"a\"]",
                  "7", "merge 1 is neither" },
                { json_bars, "\"String\":\" \"", "\"String\":\"a\"",
                  "its normalizer has 'Replace'" },
                { json_bars, "\"Replace\"", "\"Prepend\"", "its normalizer has 'Prepend'" },
                { json_bars, "\"pre_tokenizer\":null", "\"pre_tokenizer\":{\"type\":\"Metaspace\"}",
                  "its pre_tokenizer has 'Metaspace'" },
                { json_bars, "\"Fuse\"", "\"BPEDecoder\"", "its decoder has 'BPEDecoder'" },
                { json_bars, "<0x0A>", "<0x0G>", "token 1 is a byte" },
                { json_bars, "\"vocab\":{\"<unk>\":0,\"<0x0A>\":1,",
                  "\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"<unk>\":0,",
                  "'continuing_subword_prefix' or 'end_of_word_suffix'" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                char *text = changed(cases[i].text, cases[i].from, cases[i].to);

                said(from_json(text, NULL), cases[i].said);
                free(text);
        }
        said(from_json(json_letters, "fa\ncon"), "the splitter 'fa?con'");
}

static void each_step_of_a_pre_tokenizer_is_a_cut(void **state)
{
        static const char split[] = "{\"type\":\"Split\"";
        char *text;

        (void)state;
        text = changed(json_letters, split,
                       "{\"type\":\"Digits\",\"individual_digits\":true},"
                       "{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"},"
                       "{\"type\":\"Split\",\"pattern\":{\"String\":\"a.b\"},"
                       "\"behavior\":\"MergedWithNext\",\"invert\":true},"
                       "{\"type\":\"WhitespaceSplit\"},{\"type\":\"Split\"");
        good(from_json(text, NULL));
        free(text);
        assert_int_equal(made->cut_count, 5);
        check_cut(0, CUT_APART, false, "\\p{N}");
        check_cut(1, CUT_RUNS, false, vocabulary_sign);
        check_cut(2, CUT_TO_NEXT, true, "a\\.b");
        check_cut(3, CUT_DROP, false, "\\s+");
        vocabulary_close(made);
        text = changed(json_letters, "\"use_regex\":false", "\"use_regex\":true");
        good(from_json(text, NULL));
        free(text);
        assert_int_equal(made->cut_count, 2);
        assert_string_equal(splitter_name_of(made->cuts + 1, 1), "gpt2");
        vocabulary_close(made);
}

/* ---- a vocabulary and its merges ---- */

static int from_pair(const char *vocab, const char *merges, const char *splitter)
{
        made = NULL;
        return vocabulary_from_pair(vocab, strlen(vocab), merges, strlen(merges), splitter, NULL,
                                    &made, why, sizeof(why));
}

static void reads_vocab_json_and_merges(void **state)
{
        static const char vocab[] =
                "{\"a\":0,\"b\":1,\"ab\":2,\"#version\":3,\"\xC4\x8A\":4,\"<x y>\":5}";

        (void)state;
        good(from_pair(vocab, "#version: 0.2\r\na b\r\n\n", "qwen2"));
        assert_int_equal(made->merge_count, 1);
        check_split("qwen2");
        assert_false(made->whole_wins);
        check_merge(0, 0, 1, 2);
        check_entry(4, "\n", ENTRY_NORMAL);
        check_entry(5, "<x y>", ENTRY_UNUSED); /* not written in letters: no text makes it */
        vocabulary_close(made);
        good(from_pair(vocab, "a b", "llama3"));
        assert_true(made->whole_wins && made->merge_count == 1);
        vocabulary_close(made);
        said(from_pair(vocab, "a b", NULL), "does not name its splitter");
        said(from_pair(vocab, "a b", "x\n"), "the splitter 'x?'");
        said(from_pair(vocab, "a b\nb a", "gpt2"), "merge 1 uses or gives");
        said(from_pair(vocab, "a b\n#version a", "gpt2"), "merge 1 uses or gives");
        said(from_pair(vocab, "ab", "gpt2"), "merge 0 is not two tokens");
        said(from_pair("[]", "a b", "gpt2"), "not an object");
        said(from_pair("{}", "", "gpt2"), "its vocabulary is empty");
        said(from_pair("{\"a\":500000}", "", "gpt2"),
             "its largest id is 500000, but it has 1 tokens");
        said(from_pair("{\"a\":0", "", "gpt2"), "byte");
        good(from_pair("{\"a\":5000}", "", "gpt2"));
        assert_int_equal(made->entry_count, 5001);
        vocabulary_close(made);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_a_byte_level_tokenizer_json),
                cmocka_unit_test(reads_a_tokenizer_json_of_characters),
                cmocka_unit_test(each_step_of_a_pre_tokenizer_is_a_cut),
                cmocka_unit_test(metaspace_replaces_blanks_if_no_normalizer_does),
                cmocka_unit_test(reads_a_tokenizer_json_of_scores),
                cmocka_unit_test(reads_the_tokens_behind_a_text),
                cmocka_unit_test(reads_a_tokenizer_json_of_words),
                cmocka_unit_test(words_that_are_not_divided_have_no_mark),
                cmocka_unit_test(a_mark_behind_words_is_a_blank),
                cmocka_unit_test(accepts_what_has_no_effect_on_ids),
                cmocka_unit_test(of_a_token_that_is_listed_twice_the_last_id_counts),
                cmocka_unit_test(a_step_behind_byte_level_sees_letters),
                cmocka_unit_test(byte_fallback_needs_no_tokens_if_every_byte_is_a_letter),
                cmocka_unit_test(reads_vocab_txt),
                cmocka_unit_test(refuses_an_unsupported_tokenizer_json_feature_by_name),
                cmocka_unit_test(reads_vocab_json_and_merges),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
