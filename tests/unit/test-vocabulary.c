/* Vocabularies in tokenizer.model and in GGUF metadata, and which reader is chosen for a path. */
#include <fcntl.h>
#include <float.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/gguf-maker.h"
#include "tests/unit/vocabulary-made.h"

#include "daemon/files/gguf.h"

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
        put_varint(m, 15, 7); /* a field that is never read */
}

static int from_model(const void *bytes, size_t count)
{
        char *exact = malloc(count + !count);
        int r;

        memcpy(exact, bytes, count);
        made = NULL;
        r = vocabulary_from_model(exact, count, NULL, &made, why, sizeof(why));
        free(exact);
        return r;
}

static const struct model model_good = { 2, 0, 0, 1, "", 6, "<0x41>" };

static void reads_a_tokenizer_model(void **state)
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

static void reads_a_tokenizer_model_of_scores(void **state)
{
        struct model scored = { 1, 1, 1, 1, "rules", 4, "\xE2\x96\x81u" };
        struct message m;

        (void)state;
        write_model(&scored, &m);
        good(from_model(m.bytes, m.count));
        assert_int_equal(made->kind, VOCABULARY_UNIGRAM);
        assert_int_equal(made->blank, BLANK_LAST);
        assert_true(made->single_sums && made->squeezes && made->unknown_score == -11.5);
        assert_int_equal(made->normal_count, 1);
        assert_int_equal(made->normals[0].kind, NORMAL_RULES);
        assert_int_equal(made->normals[0].bytes, 5);
        check_entry(3, " u", ENTRY_USER);
        assert_true(made->entries[2].score == -1.5);
        /* Four bytes of the largest score, which is no less than the least float above 0. */
        assert_true(made->entries[3].score == (double)(4 * FLT_MIN) - 0.1);
        vocabulary_close(made);
        scored.name = "u u"; /* a blank that is no bar: no text has it */
        write_model(&scored, &m);
        good(from_model(m.bytes, m.count));
        check_entry(3, "u u", ENTRY_UNUSED);
        vocabulary_close(made);
}

static void refuses_a_malformed_tokenizer_model_with_the_reason(void **state)
{
        static const struct {
                struct model model;
                const char *said;
        } cases[] = {
                { { 3, 0, 0, 1, "", 6, "<0x41>" }, "its model type is 3" },
                { { 2, 0, 0, 0, "", 6, "<0x41>" }, "blanks as bars" },
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
        said(from_model("", 0), "its vocabulary is empty");
        for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
                said(from_model(broken[i], i == 4 ? 8 : i == 0 ? 3 : i == 1 ? 1 : 2), "field");
        write_model(&model_good, &m);
        /* a cut between two fields is a valid file with fewer of them */
        for (size_t cut = 0; cut < m.count; cut++)
                if (!from_model(m.bytes, cut))
                        vocabulary_close(made);
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

static void put_switch(struct gguf_file *f, const char *key, bool on)
{
        put_key(f, key, 7);
        file_int(&f->file, on, 1);
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

/* The values of a file; NULL, or 0 for a count: the file does not give it. */
struct said {
        const char *model, *pre, *merge;
        uint32_t types[3], type_count, score_count, bos;
        const char *tokens[4];
        bool numbers_for_tokens;
        const char *rules;
        uint32_t rules_type;
        bool bars; /* blanks are not written as bars */
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

static const struct said t5_good = { .model = "t5",
                                     .types = { 1, 4, 2 },
                                     .type_count = 3,
                                     .score_count = 3,
                                     .tokens = { "\xE2\x96\x81s", "<u>", "<unk>" },
                                     .rules = "rules",
                                     .rules_type = 0 };
static const struct said bert_good = { .model = "bert",
                                       .types = { 4, 1, 1 },
                                       .type_count = 3,
                                       .bos = 2,
                                       .tokens = { "\xE2\x96\x81<b>", "\xE2\x96\x81tea", "pot" } };
static const struct said bert_capitals = { .model = "bert",
                                           .tokens = { "[UNK]", "\xE2\x96\x81Tea", "pot" } };

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
        if (s->rules) {
                put_key(f, "precompiled_charsmap", 9);
                file_int(&f->file, s->rules_type, 4);
                file_int(&f->file, strlen(s->rules) / (s->rules_type ? 4 : 1), 8);
                file_put(&f->file, s->rules, strlen(s->rules));
                put_switch(f, "remove_extra_whitespaces", true);
                put_switch(f, "add_space_prefix", true);
        }
        if (s->bars)
                put_switch(f, "escape_whitespaces", false);
}

static void reads_a_vocabulary_from_gguf_metadata(void **state)
{
        struct gguf_file f;

        (void)state;
        write_gguf(&gpt2_good, &f);
        good(from_gguf(&f, NULL));
        assert_int_equal(made->kind, VOCABULARY_BYTE_LEVEL);
        check_split("gpt2");
        assert_true(!made->add_bos && made->blank == BLANK_NEVER);
        check_entry(2, " b", ENTRY_NORMAL);
        check_merge(0, 0, 1, 2);
        vocabulary_close(made);
        write_gguf(&gpt2_good, &f);
        good(from_gguf(&f, "llama-bpe"));
        check_split("llama3");
        assert_true(made->whole_wins && made->add_bos);
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

        write_gguf(&t5_good, &f);
        good(from_gguf(&f, NULL));
        assert_int_equal(made->kind, VOCABULARY_UNIGRAM);
        assert_true(!made->add_bos && made->squeezes && !made->single_sums);
        assert_int_equal(made->blank, BLANK_EACH);
        assert_int_equal(made->normals[0].kind, NORMAL_RULES);
        assert_int_equal(made->normals[0].bytes, 5);
        assert_true(made->eos == 1 && made->unknown == 2); /* T5's, if the file has none */
        assert_true(made->end_count == 1 && made->ends[0] == 1);
        assert_true(made->entries[1].score == 0 && made->unknown_score == -10);
        vocabulary_close(made);

        write_gguf(&bert_good, &f);
        good(from_gguf(&f, NULL));
        assert_int_equal(made->kind, VOCABULARY_WORDPIECE);
        assert_true(made->add_bos && made->border == BORDER_FRONT && made->bos == 2);
        assert_int_equal(made->blank, BLANK_NEVER);
        assert_int_equal(made->normal_count, 5);
        check_entry(0, "<b>", ENTRY_USER);
        check_entry(1, " tea", ENTRY_NORMAL);
        check_entry(2, "pot", ENTRY_NORMAL);
        vocabulary_close(made);
        write_gguf(&bert_capitals, &f);
        good(from_gguf(&f, NULL));
        assert_int_equal(made->normal_count, 2); /* nothing makes its texts lower case */
        vocabulary_close(made);

        f = (struct gguf_file){ .pairs = 0 };
        write_gguf(&(struct said){ .model = "bytes" }, &f);
        good(from_gguf(&f, NULL));
        assert_int_equal(made->kind, VOCABULARY_BYTES);
        vocabulary_close(made);
}

static void refuses_malformed_gguf_vocabulary_metadata_with_the_reason(void **state)
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
        REFUSED(gpt2_good, "of the kind 'rwkv'", s.model = "rwkv");
        REFUSED(gpt2_good, "tokenizer.ggml.pre' is missing", s.pre = NULL);
        REFUSED(gpt2_good, "the splitter 'default'", s.pre = "default");
        REFUSED(gpt2_good, "tokenizer.ggml.tokens' is missing", s.tokens[0] = NULL);
        REFUSED(gpt2_good, "tokens' is not an array of strings", s.numbers_for_tokens = true);
        REFUSED(gpt2_good, "tokenizer.ggml.merges' is missing", s.merge = NULL);
        REFUSED(gpt2_good, "merge 0 is not two tokens", s.merge = "b");
        REFUSED(gpt2_good, "merge 0 uses or gives", s.merge = "b b");
        REFUSED(gpt2_good, "2 elements for 3 tokens", s.type_count = 2);
        REFUSED(gpt2_good, "the type of token 1", s.types[1] = 7);
        REFUSED(gpt2_good, "the type of token 1", s.types[1] = UINT32_MAX);
        REFUSED(llama_good, "tokenizer.ggml.scores' is missing", s.score_count = 0);
        REFUSED(llama_good, "2 elements for 3 tokens", s.score_count = 2);
        REFUSED(llama_good, "token 1 is a byte", s.tokens[1] = "<0xf>");
        REFUSED(llama_good, "bos_token_id' is 3", s.bos = 3);
        REFUSED(t5_good, "not an array of bytes", s.rules = "rule", s.rules_type = 4);
        REFUSED(t5_good, "blanks as bars", s.bars = true);
        REFUSED(t5_good, "tokenizer.ggml.scores' is missing", s.score_count = 0);
#undef REFUSED
        write_gguf(&llama_good, &f);
        said(from_gguf(&f, "gpt2"), "uses none");
}

static void refuses_a_token_longer_than_the_limit(void **state)
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

static void the_path_selects_the_reader(void **state)
{
        char folder[] = "/tmp/samovar-vocabulary-XXXXXX", path[128];
        static const char *const names[] = { "tokenizer.json", "tokenizer.model",
                                             "vocab.json",     "merges.txt",
                                             "x.gguf",         "x.bin",
                                             "vocab.txt",      "tokenizer_config.json" };
        static const char pointer[] = "version https://git-lfs.github.com/spec/v1\n"
                                      "oid sha256:00\nsize 17\n";
        static const char vocab[] = "{\"a\":0,\"b\":1,\"ab\":2}";
        static const char json[] =
                "{\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                "\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{"
                "\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}";
        struct gguf_file f;
        struct message m;

        (void)state;
        assert_non_null(mkdtemp(folder));
        assert_int_equal(open_at(folder, "", NULL), -ENOENT);
        assert_non_null(strstr(why,
                               "no tokenizer.json, tekken.json, tokenizer.model, vocab.json or "
                               "vocab.txt is in it"));
        write_file(folder, "vocab.txt", "[UNK]\ntea\n", 10);
        good(open_at(folder, "", NULL));
        assert_int_equal(made->kind, VOCABULARY_WORDPIECE);
        assert_int_equal(made->normal_count, 5);
        vocabulary_close(made);
        write_file(folder, "tokenizer_config.json", "{\"do_lower_case\":false}", 23);
        good(open_at(folder, "vocab.txt", NULL));
        assert_int_equal(made->normal_count, 2);
        vocabulary_close(made);
        said(open_at(folder, "vocab.txt", "gpt2"), "uses none");
        write_file(folder, "tokenizer_config.json", pointer, strlen(pointer));
        said(open_at(folder, "", NULL), "vocab.txt: tokenizer_config.json: it is a pointer to");
        write_file(folder, "tokenizer_config.json", "{}", 2);
        write_file(folder, "vocab.json", vocab, strlen(vocab));
        assert_int_equal(open_at(folder, "", "gpt2"), -ENOENT);
        assert_non_null(strstr(why, "vocab.json: merges.txt, beside it"));
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
        said(open_at(folder, "", "gpt2"), "uses none");
        write_file(folder, "tokenizer.json", json, strlen(json));
        good(open_at(folder, "", NULL));
        assert_int_equal(made->normal_count, 1);
        assert_int_equal(made->normals[0].kind, NORMAL_NFC);
        vocabulary_close(made);

        write_gguf(&gpt2_good, &f);
        memcpy(f.file.bytes + 16, &f.pairs, 8);
        write_file(folder, "x.gguf", (const char *)f.file.bytes, f.file.count);
        good(open_at(folder, "x.gguf", NULL));
        vocabulary_close(made);
        write_file(folder, "x.gguf", pointer, strlen(pointer));
        said(open_at(folder, "x.gguf", NULL), "run 'git lfs pull' in its folder");
        write_file(folder, "x.bin", "", 0);
        said(open_at(folder, "x.bin", NULL), "its name does not end in");
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
                cmocka_unit_test(reads_a_tokenizer_model),
                cmocka_unit_test(reads_a_tokenizer_model_of_scores),
                cmocka_unit_test(refuses_a_malformed_tokenizer_model_with_the_reason),
                cmocka_unit_test(reads_a_vocabulary_from_gguf_metadata),
                cmocka_unit_test(refuses_malformed_gguf_vocabulary_metadata_with_the_reason),
                cmocka_unit_test(refuses_a_token_longer_than_the_limit),
                cmocka_unit_test(the_path_selects_the_reader),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
