/*
 * Readers of vocabularies: what small good files become, and what is said of bad ones.
 * A bad one is a good one with one place changed; the sentence names the fault.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/gguf-maker.h"
#include "tests/unit/texts.h"

#include "daemon/files/gguf.h"
#include "daemon/files/vocabulary.h"

static struct vocabulary *made;
static char why[256];

static void said(int r, const char *what)
{
        assert_int_equal(r, -EINVAL);
        if (!strstr(why, what))
                fail_msg("'%s' is not said in: %s", what, why);
        for (const char *c = why; *c; c++)
                assert_in_range(*c, ' ', '~');
}

static void good(int r)
{
        if (r)
                fail_msg("%s", why);
}

static void check_entry(uint32_t id, const char *text, enum entry_kind kind)
{
        assert_true(id < made->entry_count);
        assert_int_equal(made->entries[id].count, strlen(text));
        assert_memory_equal(made->entries[id].bytes, text, strlen(text));
        assert_int_equal(made->entries[id].kind, kind);
}

static void check_merge(uint32_t rank, uint32_t left, uint32_t right, uint32_t result)
{
        assert_true(rank < made->merge_count);
        assert_int_equal(made->merges[rank].left, left);
        assert_int_equal(made->merges[rank].right, right);
        assert_int_equal(made->merges[rank].result, result);
}

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

static void a_byte_level_tokenizer_json_is_read(void **state)
{
        (void)state;
        good(from_json(json_letters, NULL));
        assert_int_equal(made->kind, VOCABULARY_BYTE_LEVEL);
        assert_int_equal(made->splitter, SPLITTER_LLAMA3);
        assert_int_equal(made->normaliser, NORMALISER_NFC);
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
        assert_int_equal(made->entries[5].strips, ENTRY_STRIPS_RIGHT);
        check_merge(0, 1, 0, 2); /* merges in both spellings */
        check_merge(1, 2, 0, 7);
        vocabulary_close(made);
        good(from_json(json_letters, "gpt2"));
        assert_int_equal(made->splitter, SPLITTER_GPT2);
        vocabulary_close(made);
}

static void a_tokenizer_json_of_characters_is_read(void **state)
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
        said(from_json(json_bars, "gpt2"), "no use for");
}

static void metaspace_makes_bars_where_no_normalizer_does(void **state)
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
        vocabulary_close(made);
        bad = changed(text, "\"split\":false", "\"split\":true");
        said(from_json(bad, NULL), "its pre_tokenizer has 'Metaspace'");
        free(bad);
        bad = changed(text, "first", "last");
        said(from_json(bad, NULL), "its pre_tokenizer has 'Metaspace'");
        free(bad);
        free(text);
        text = changed(json_bars, whole, "\"normalizer\":null");
        said(from_json(text, NULL), "nothing in it makes bars");
        free(text);
}

static void what_a_tokenizer_json_asks_for_and_is_not_done_is_refused_by_name(void **state)
{
        static const struct {
                const char *text, *from, *to, *said;
        } cases[] = {
                { json_letters, "{\"added", "[\"added", "byte" },
                { json_letters, "\"BPE\"", "\"Unigram\"", "'Unigram'" },
                { json_letters, "\"NFC\"", "\"NFKC\"", "its normalizer has 'NFKC'" },
                { json_letters, "{1,3}", "{1,4}", "its pre_tokenizer splits by" },
                { json_letters, "Isolated", "Removed", "its pre_tokenizer has 'Split'" },
                { json_letters, "\"invert\":false", "\"invert\":true", "'Split'" },
                { json_letters, "\"Split\"", "\"Digits\"", "'Digits'" },
                { json_letters, "\"add_prefix_space\":false", "\"add_prefix_space\":true",
                  "its pre_tokenizer has 'ByteLevel'" },
                { json_letters, "\"use_regex\":false", "\"use_regex\":true", "'ByteLevel'" },
                { json_letters, "{\"type\":\"ByteLevel\"},\"model", "null,\"model", "its decoder" },
                { json_letters, "{\"type\":\"ByteLevel\"},\"model",
                  "{\"type\":\"WordPiece\"},\"model", "its decoder has 'WordPiece'" },
                { json_letters, "\"TemplateProcessing\"", "\"BertProcessing\"",
                  "'BertProcessing'" },
                { json_letters, "[5]", "[5,5]", "its post_processor" },
                { json_letters, "[5]", "[8]", "its post_processor" },
                { json_letters, "{\"Sequence\":{\"id\":\"A\"}}",
                  "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"<e>\"}}",
                  "its post_processor" },
                { json_letters, "\"dropout\":null", "\"dropout\":0.1", "'dropout'" },
                { json_letters, "\"dropout\":null", "\"end_of_word_suffix\":\"</w>\"",
                  "'end_of_word_suffix'" },
                { json_letters, "\"unk_token\":null", "\"unk_token\":\"x\"", "'unk_token'" },
                { json_letters, "\"unk_token\":null", "\"byte_fallback\":true", "'byte_fallback'" },
                { json_letters, "\"single_word\":false", "\"single_word\":true", "'single_word'" },
                { json_letters, "<e>\",\"single", "\xC3\xA9\",\"normalized\":true,\"single",
                  "twice" },
                { json_letters, "\"content\":\"<e>\",", "", "without 'content'" },
                { json_letters, "\"id\":5", "\"id\":-5", "without 'content' or 'id'" },
                { json_letters, "\"id\":5", "\"id\":4194304", "token id 4194304" },
                { json_letters, "\"id\":5", "\"id\":4", "token id 4 is there twice" },
                { json_letters, "\"a\":0", "\"a\":1", "token id 1 is there twice" },
                { json_letters, "\"a\":0", "\"a\":4194304", "the id of token 'a'" },
                { json_letters, "\"a\":0", "\"a\":\"0\"", "the id of token 'a'" },
                { json_letters, "\"a\":0", "\"\\u001b[31m\":-1", "the id of token '?[31m'" },
                { json_letters, "\"vocab\":{", "\"vocab\":7,\"words\":{", "no object" },
                { json_letters, "\xC4\xA0 a", "\xC4\xA0", "merge 0 is not two tokens" },
                { json_letters, "\xC4\xA0 a", "\xC4\xA0  a", "merge 0 is not two tokens" },
                { json_letters, "\xC4\xA0 a", "a a", "merge 0 has or makes what is no token" },
                { json_letters, ",[\"\xC4\xA0", ",[\"a\",\"\xC4\xA0", "merge 1 is neither" },
                { json_letters,
                  "[\"\xC4\xA0"
                  "a\",\"a\"]",
                  "7", "merge 1 is neither" },
                { json_bars, "\"Prepend\"", "\"Lowercase\"", "its normalizer has 'Lowercase'" },
                { json_bars, "\"String\":\" \"", "\"String\":\"a\"",
                  "its normalizer has 'Replace'" },
                { json_bars, "\"Replace\"", "\"Prepend\"", "its normalizer has 'Prepend'" },
                { json_bars, "\"Prepend\",\"prepend\":\"\xE2\x96\x81\"},", "\"NFC\"},",
                  "its normalizer has 'NFC'" },
                { json_bars, "\"pre_tokenizer\":null", "\"pre_tokenizer\":{\"type\":\"Metaspace\"}",
                  "its pre_tokenizer has 'Metaspace'" },
                { json_bars, "\"Fuse\"", "\"BPEDecoder\"", "its decoder has 'BPEDecoder'" },
                { json_bars, "<0x0A>", "<0x0G>", "token 1 is a byte" },
                { json_bars, "\"normalized\":false", "\"normalized\":true", "'normalized'" },
                { json_bars, "\"merges\":[\"\xE2\x96\x81 a\"]", "\"merges\":[]", "no merges" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                char *text = changed(cases[i].text, cases[i].from, cases[i].to);

                said(from_json(text, NULL), cases[i].said);
                free(text);
        }
        said(from_json(json_letters, "falcon"), "the splitter 'falcon'");
}

/* ---- a vocabulary and its merges ---- */

static int from_pair(const char *vocab, const char *merges, const char *splitter)
{
        made = NULL;
        return vocabulary_from_pair(vocab, strlen(vocab), merges, strlen(merges), splitter, &made,
                                    why, sizeof(why));
}

static void a_vocabulary_and_merges_are_read(void **state)
{
        static const char vocab[] =
                "{\"a\":0,\"b\":1,\"ab\":2,\"#version\":3,\"\xC4\x8A\":4,\"<x y>\":5}";

        (void)state;
        good(from_pair(vocab, "#version: 0.2\r\na b\r\n\n", "qwen2"));
        assert_int_equal(made->merge_count, 1);
        assert_int_equal(made->splitter, SPLITTER_QWEN2);
        assert_false(made->whole_wins);
        check_merge(0, 0, 1, 2);
        check_entry(4, "\n", ENTRY_NORMAL);
        check_entry(5, "<x y>", ENTRY_UNUSED); /* not written in letters: no text makes it */
        vocabulary_close(made);
        good(from_pair(vocab, "a b", "llama3"));
        assert_true(made->whole_wins && made->merge_count == 1);
        vocabulary_close(made);
        said(from_pair(vocab, "a b", NULL), "must be named");
        said(from_pair(vocab, "a b", "x\n"), "the splitter 'x?'");
        said(from_pair(vocab, "a b\nb a", "gpt2"), "merge 1 has or makes");
        said(from_pair(vocab, "a b\n#version a", "gpt2"), "merge 1 has or makes");
        said(from_pair(vocab, "ab", "gpt2"), "merge 0 is not two tokens");
        said(from_pair("[]", "a b", "gpt2"), "no object");
        said(from_pair("{}", "", "gpt2"), "a vocabulary of 0 tokens");
        said(from_pair("{\"a\":0", "", "gpt2"), "byte");
}

/* ---- tokenizer.model ---- */

struct message {
        uint8_t bytes[512];
        size_t count;
};

static void put_varint(struct message *m, unsigned field, uint64_t value)
{
        m->bytes[m->count++] = (uint8_t)(field << 3 & 0x7F) | (field > 15 ? 0x80 : 0);
        if (field > 15)
                m->bytes[m->count++] = (uint8_t)(field >> 4);
        for (; value > 127; value >>= 7)
                m->bytes[m->count++] = (uint8_t)(value | 0x80);
        m->bytes[m->count++] = (uint8_t)value;
}

static void put_bytes(struct message *m, unsigned field, const void *bytes, size_t count)
{
        m->bytes[m->count++] = (uint8_t)(field << 3 | 2);
        m->bytes[m->count++] = (uint8_t)count;
        memcpy(m->bytes + m->count, bytes, count);
        m->count += count;
}

static void put_piece(struct message *m, const char *text, float score, unsigned type)
{
        struct message piece = { .count = 0 };

        put_bytes(&piece, 1, text, strlen(text));
        piece.bytes[piece.count++] = 2 << 3 | 5;
        memcpy(piece.bytes + piece.count, &score, 4);
        piece.count += 4;
        if (type != 1)
                put_varint(&piece, 3, type);
        put_bytes(m, 1, piece.bytes, piece.count);
}

struct model {
        uint64_t type, suffix, squeezes, escapes;
        const char *rules;
        unsigned kind; /* of the last piece */
        const char *name;
};

static void write_model(const struct model *model, struct message *m)
{
        struct message trainer = { .count = 0 }, normaliser = { .count = 0 };

        *m = (struct message){ .count = 0 };
        put_piece(m, "<unk>", 0, 2);
        put_piece(m, "<s>", 0, 3);
        put_piece(m, "\xE2\x96\x81x", -1.5, 1);
        put_piece(m, model->name, 0, model->kind);
        put_varint(&trainer, 3, model->type);
        put_varint(&trainer, 24, model->suffix);
        put_varint(&trainer, 42, UINT64_MAX);
        put_bytes(m, 2, trainer.bytes, trainer.count);
        put_bytes(&normaliser, 1, "identity", 8);
        put_bytes(&normaliser, 2, model->rules, strlen(model->rules));
        put_varint(&normaliser, 4, model->squeezes);
        put_varint(&normaliser, 5, model->escapes);
        put_bytes(m, 3, normaliser.bytes, normaliser.count);
        put_varint(m, 15, 7); /* a field nobody asks for */
}

static int from_model(const void *bytes, size_t count)
{
        char *exact = malloc(count + !count);
        int r;

        memcpy(exact, bytes, count);
        made = NULL;
        r = vocabulary_from_model(exact, count, &made, why, sizeof(why));
        free(exact);
        return r;
}

static const struct model model_good = { 2, 0, 0, 1, "", 6, "<0x41>" };

static void a_tokenizer_model_is_read(void **state)
{
        struct message m;

        (void)state;
        write_model(&model_good, &m);
        good(from_model(m.bytes, m.count));
        assert_int_equal(made->kind, VOCABULARY_CHARACTERS);
        assert_int_equal(made->blank, BLANK_FIRST);
        assert_int_equal(made->merge_count, 0);
        check_entry(0, "<unk>", ENTRY_UNKNOWN);
        check_entry(1, "<s>", ENTRY_CONTROL);
        check_entry(2, " x", ENTRY_NORMAL);
        check_entry(3, "A", ENTRY_BYTE);
        assert_true(made->entries[2].score == -1.5f);
        assert_int_equal(made->unknown, 0);
        assert_int_equal(made->bos, 1);
        assert_int_equal(made->eos, VOCABULARY_NONE);
        assert_true(made->unknown_run && made->add_bos && !made->squeezes);
        vocabulary_close(made);
}

static void a_bad_tokenizer_model_is_refused_by_its_fault(void **state)
{
        static const struct {
                struct model model;
                const char *said;
        } cases[] = {
                { { 1, 0, 0, 1, "", 6, "<0x41>" }, "its model type is 1" },
                { { 2, 1, 0, 1, "", 6, "<0x41>" }, "behind a text" },
                { { 2, 0, 0, 0, "", 6, "<0x41>" }, "blanks as bars" },
                { { 2, 0, 0, 1, "x", 6, "<0x41>" }, "rules of normalisation" },
                { { 2, 0, 0, 1, "", 6, "<0x-1>" }, "token 3 is a byte" },
                { { 2, 0, 0, 1, "", 6, "<0x411" }, "token 3 is a byte" },
                { { 2, 0, 0, 1, "", 7, "x" }, "the type of token 3" },
                { { 2, 0, 0, 1, "", 0, "x" }, "the type of token 3" },
        };
        static const uint8_t broken[][8] = { { 0x0A, 0x05, 0x0A }, /* longer than the file */
                                             { 0x0B },             /* a group */
                                             { 0x00, 0x00 },       /* field 0 */
                                             { 0x0A, 0x80 },
                                             { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF } };
        struct message m;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                write_model(&cases[i].model, &m);
                said(from_model(m.bytes, m.count), cases[i].said);
        }
        said(from_model("", 0), "a vocabulary of 0 tokens");
        for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
                said(from_model(broken[i], i == 4 ? 8 : i == 0 ? 3 : i == 1 ? 1 : 2), "field");
        write_model(&model_good, &m);
        for (size_t cut = 0; cut < m.count; cut++)
                if (!from_model(m.bytes, cut))
                        vocabulary_close(made); /* between two fields: fewer of them */
                else
                        assert_true(strlen(why) > 0);
}

/* ---- GGUF ---- */

struct gguf_file {
        struct file file;
        uint64_t pairs;
};

static void put_key(struct gguf_file *f, const char *key, uint32_t type)
{
        char whole[128];

        snprintf(whole, sizeof(whole), "tokenizer.ggml.%s", key);
        file_string(&f->file, whole);
        file_int(&f->file, type, 4);
        f->pairs++;
}

static void put_text(struct gguf_file *f, const char *key, const char *text)
{
        put_key(f, key, 8);
        file_string(&f->file, text);
}

static void put_texts(struct gguf_file *f, const char *key, const char *const *texts)
{
        uint64_t count = 0;

        while (texts[count])
                count++;
        put_key(f, key, 9);
        file_int(&f->file, 8, 4);
        file_int(&f->file, count, 8);
        for (uint64_t i = 0; i < count; i++)
                file_string(&f->file, texts[i]);
}

static void put_numbers(struct gguf_file *f, const char *key, uint32_t type, const void *numbers,
                        uint64_t count)
{
        put_key(f, key, 9);
        file_int(&f->file, type, 4);
        file_int(&f->file, count, 8);
        file_put(&f->file, numbers, count * 4);
}

static int from_gguf(struct gguf_file *f, const char *splitter)
{
        struct gguf *gguf;
        int r;

        memcpy(f->file.bytes + 16, &f->pairs, 8);
        good(gguf_parse(f->file.bytes, f->file.count, f->file.count, &gguf, why, sizeof(why)));
        made = NULL;
        r = vocabulary_from_gguf(gguf, splitter, &made, why, sizeof(why));
        gguf_close(gguf);
        return r;
}

/* What a file says; NULL, or 0 for a count: it does not. */
struct said {
        const char *model, *pre, *merge;
        uint32_t types[3], type_count, score_count, bos;
        const char *tokens[4];
        bool numbers_for_tokens;
};

static const struct said gpt2_good = { .model = "gpt2",
                                       .pre = "gpt-2",
                                       .merge = "\xC4\xA0 b",
                                       .types = { 1, 1, 1 },
                                       .type_count = 3,
                                       .tokens = { "\xC4\xA0", "b",
                                                   "\xC4\xA0"
                                                   "b" } };
static const struct said llama_good = { .model = "llama",
                                        .types = { 2, 6, 1 },
                                        .type_count = 3,
                                        .score_count = 3,
                                        .bos = 2,
                                        .tokens = { "<unk>", "<0xFF>", "\xE2\x96\x81s" } };

static void write_gguf(const struct said *s, struct gguf_file *f)
{
        static const float scores[] = { 0, 0.5f, -2 };

        *f = (struct gguf_file){ .pairs = 0 };
        file_put(&f->file, "GGUF", 4);
        file_int(&f->file, 3, 4);
        file_int(&f->file, 0, 8);
        file_int(&f->file, 0, 8);
        if (s->model)
                put_text(f, "model", s->model);
        if (s->pre)
                put_text(f, "pre", s->pre);
        if (s->numbers_for_tokens)
                put_numbers(f, "tokens", 4, s->types, 3);
        else if (s->tokens[0])
                put_texts(f, "tokens", s->tokens);
        if (s->merge)
                put_texts(f, "merges", (const char *const[]){ s->merge, NULL });
        if (s->type_count)
                put_numbers(f, "token_type", 5, s->types, s->type_count);
        if (s->score_count)
                put_numbers(f, "scores", 6, scores, s->score_count);
        if (s->bos) {
                put_key(f, "bos_token_id", 4);
                file_int(&f->file, s->bos, 4);
        }
}

static void a_vocabulary_in_gguf_metadata_is_read(void **state)
{
        struct gguf_file f;

        (void)state;
        write_gguf(&gpt2_good, &f);
        good(from_gguf(&f, NULL));
        assert_int_equal(made->kind, VOCABULARY_BYTE_LEVEL);
        assert_int_equal(made->splitter, SPLITTER_GPT2);
        assert_true(!made->add_bos && made->blank == BLANK_NEVER);
        check_entry(2, " b", ENTRY_NORMAL);
        check_merge(0, 0, 1, 2);
        vocabulary_close(made);
        write_gguf(&gpt2_good, &f);
        good(from_gguf(&f, "llama-bpe"));
        assert_true(made->splitter == SPLITTER_LLAMA3 && made->whole_wins && made->add_bos);
        vocabulary_close(made);

        write_gguf(&llama_good, &f);
        good(from_gguf(&f, NULL));
        assert_int_equal(made->kind, VOCABULARY_CHARACTERS);
        assert_true(made->add_bos && made->blank == BLANK_EACH && made->bos == 2);
        check_entry(0, "<unk>", ENTRY_UNKNOWN);
        check_entry(1, "\xFF", ENTRY_BYTE);
        check_entry(2, " s", ENTRY_NORMAL);
        assert_true(made->entries[2].score == -2);
        vocabulary_close(made);

        f = (struct gguf_file){ .pairs = 0 };
        write_gguf(&(struct said){ .model = "bytes" }, &f);
        good(from_gguf(&f, NULL));
        assert_int_equal(made->kind, VOCABULARY_BYTES);
        vocabulary_close(made);
}

static void a_bad_vocabulary_in_gguf_metadata_is_refused_by_its_fault(void **state)
{
        struct gguf_file f;
        struct said s;

        (void)state;
#define REFUSED(base, words, ...)                                                                  \
        do {                                                                                       \
                s = base;                                                                          \
                __VA_ARGS__;                                                                       \
                write_gguf(&s, &f);                                                                \
                said(from_gguf(&f, NULL), words);                                                  \
        } while (0)
        REFUSED(gpt2_good, "tokenizer.ggml.model' is missing", s.model = NULL);
        REFUSED(gpt2_good, "of the kind 'bert'", s.model = "bert");
        REFUSED(gpt2_good, "tokenizer.ggml.pre' is missing", s.pre = NULL);
        REFUSED(gpt2_good, "the splitter 'deepseek-llm'", s.pre = "deepseek-llm");
        REFUSED(gpt2_good, "tokenizer.ggml.tokens' is missing", s.tokens[0] = NULL);
        REFUSED(gpt2_good, "tokens' has no strings", s.numbers_for_tokens = true);
        REFUSED(gpt2_good, "tokenizer.ggml.merges' is missing", s.merge = NULL);
        REFUSED(gpt2_good, "merge 0 is not two tokens", s.merge = "b");
        REFUSED(gpt2_good, "merge 0 has or makes", s.merge = "b b");
        REFUSED(gpt2_good, "2 elements for 3 tokens", s.type_count = 2);
        REFUSED(gpt2_good, "the type of token 1", s.types[1] = 7);
        REFUSED(gpt2_good, "the type of token 1", s.types[1] = UINT32_MAX);
        REFUSED(llama_good, "tokenizer.ggml.scores' is missing", s.score_count = 0);
        REFUSED(llama_good, "2 elements for 3 tokens", s.score_count = 2);
        REFUSED(llama_good, "token 1 is a byte", s.tokens[1] = "<0xf>");
        REFUSED(llama_good, "bos_token_id' is 3", s.bos = 3);
#undef REFUSED
        write_gguf(&llama_good, &f);
        said(from_gguf(&f, "gpt2"), "no use for");
}

static void a_token_longer_than_the_limit_is_refused(void **state)
{
        static char name[VOCABULARY_ENTRY_BYTES_MAX + 2];
        struct said s = gpt2_good;
        struct gguf_file f;

        (void)state;
        memset(name, 'b', sizeof(name) - 1);
        s.tokens[3] = NULL;
        s.tokens[1] = name;
        s.merge = "b b";
        write_gguf(&s, &f);
        said(from_gguf(&f, NULL), "token 1 has 1025 bytes");
}

/* ---- the front door ---- */

static void write_file(const char *folder, const char *name, const char *text, size_t bytes)
{
        char path[128];
        FILE *out;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        out = fopen(path, "wb");
        assert_non_null(out);
        assert_int_equal(fwrite(text, 1, bytes, out), bytes);
        assert_int_equal(fclose(out), 0);
}

static int open_at(const char *folder, const char *name, const char *splitter)
{
        char path[128];

        snprintf(path, sizeof(path), "%s%s%s", folder, *name ? "/" : "", name);
        made = NULL;
        return vocabulary_open(path, splitter, &made, why, sizeof(why));
}

static void a_path_says_which_reader_it_wants(void **state)
{
        char folder[] = "/tmp/samovar-vocabulary-XXXXXX", path[128];
        static const char *const names[] = { "tokenizer.json", "tokenizer.model", "vocab.json",
                                             "merges.txt",     "x.gguf",          "x.txt" };
        static const char vocab[] = "{\"a\":0,\"b\":1,\"ab\":2}";
        struct gguf_file f;
        struct message m;

        (void)state;
        assert_non_null(mkdtemp(folder));
        said(open_at(folder, "", NULL), "names no format");
        write_file(folder, "vocab.json", vocab, strlen(vocab));
        assert_int_equal(open_at(folder, "", "gpt2"), -ENOENT);
        assert_non_null(strstr(why, "merges.txt, beside it"));
        write_file(folder, "merges.txt", "a b\n", 4);
        good(open_at(folder, "", "gpt2"));
        assert_int_equal(made->merge_count, 1);
        vocabulary_close(made);
        good(open_at(folder, "vocab.json", "gpt2"));
        vocabulary_close(made);

        write_model(&model_good, &m);
        write_file(folder, "tokenizer.model", (const char *)m.bytes, m.count);
        good(open_at(folder, "", NULL)); /* it comes before vocab.json */
        assert_int_equal(made->kind, VOCABULARY_CHARACTERS);
        vocabulary_close(made);
        said(open_at(folder, "", "gpt2"), "no use for");
        write_file(folder, "tokenizer.json", json_letters, strlen(json_letters));
        good(open_at(folder, "", NULL));
        assert_int_equal(made->normaliser, NORMALISER_NFC);
        vocabulary_close(made);

        write_gguf(&gpt2_good, &f);
        memcpy(f.file.bytes + 16, &f.pairs, 8);
        write_file(folder, "x.gguf", (const char *)f.file.bytes, f.file.count);
        good(open_at(folder, "x.gguf", NULL));
        vocabulary_close(made);
        write_file(folder, "x.txt", "", 0);
        said(open_at(folder, "x.txt", NULL), "names no format");
        assert_int_equal(open_at(folder, "absent.json", NULL), -ENOENT);
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
                assert_int_equal(unlink(path), 0);
        }
        assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_byte_level_tokenizer_json_is_read),
                cmocka_unit_test(a_tokenizer_json_of_characters_is_read),
                cmocka_unit_test(metaspace_makes_bars_where_no_normalizer_does),
                cmocka_unit_test(what_a_tokenizer_json_asks_for_and_is_not_done_is_refused_by_name),
                cmocka_unit_test(a_vocabulary_and_merges_are_read),
                cmocka_unit_test(a_tokenizer_model_is_read),
                cmocka_unit_test(a_bad_tokenizer_model_is_refused_by_its_fault),
                cmocka_unit_test(a_vocabulary_in_gguf_metadata_is_read),
                cmocka_unit_test(a_bad_vocabulary_in_gguf_metadata_is_refused_by_its_fault),
                cmocka_unit_test(a_token_longer_than_the_limit_is_refused),
                cmocka_unit_test(a_path_says_which_reader_it_wants),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
