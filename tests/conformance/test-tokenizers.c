/*
 * Compares widely used tokenizers with ids that their makers' programs computed: llama.cpp's
 * pairs of texts and ids, a novel, and bytes that are not valid text.
 *
 * SAMOVAR_DATA says where the files are; without it there is nothing to test. SMV_TEST_SCALE
 * multiplies the number of random texts; SMV_TEST_SEED is their seed.
 */
#include "tests/unit/texts.h"

#include "daemon/files/vocabulary.h"

#define PAIRS     47u
#define SEPARATOR "\n__ggml_vocab_test__\n"
#define TEXTS     10000u

#define OLD  "tokenizers/ggml-vocab/ggml-vocab-"
#define MORE "real/ggml-vocab/ggml-vocab-"

static const struct kind {
        const char *name;
        const char *pairs; /* its texts and ids, without ".gguf.inp" and ".gguf.out" */
        const char *path, *splitter;
        bool lacks;    /* it has no tokens for bytes that no UTF-8 has */
        bool composes; /* (NFC), so that some texts do not come back */
} kinds[] = {
        { "gpt-2", OLD "gpt-2", OLD "gpt-2.gguf", NULL },
        { "llama-spm", OLD "llama-spm", OLD "llama-spm.gguf", NULL },
        { "llama-bpe", OLD "llama-bpe", "tokenizers/llama3.2/encoder.json", "llama3" },
        { "qwen2", OLD "qwen2", "tokenizers/qwen2.5/vocab.json", "qwen2", false, true },
        { "command-r", MORE "command-r", MORE "command-r.gguf", NULL },
        { "deepseek-coder", MORE "deepseek-coder", MORE "deepseek-coder.gguf", NULL, true },
        { "falcon", MORE "falcon", MORE "falcon.gguf", NULL, true },
        { "mpt", MORE "mpt", MORE "mpt.gguf", NULL, true },
        { "phi-3", MORE "phi-3", MORE "phi-3.gguf", NULL },
        { "qwen35", MORE "qwen35", MORE "qwen35.gguf", NULL },
        { "gemma-4", MORE "gemma-4", MORE "gemma-4.gguf", NULL },
};

static char *read_file(const char *format, const char *name, size_t *ret_bytes)
{
        char path[1024], tail[512];
        size_t room = 8u << 20;
        char *text = malloc(room);
        FILE *in;

        snprintf(tail, sizeof(tail), format, name);
        snprintf(path, sizeof(path), "%s/%s", getenv("SAMOVAR_DATA"), tail);
        in = fopen(path, "rb");
        if (!in)
                fail_msg("%s cannot be read", path);
        assert_non_null(text);
        *ret_bytes = fread(text, 1, room - 1, in);
        assert_true(feof(in));
        text[*ret_bytes] = '\0';
        fclose(in);
        return text;
}

/* normalises: as the vocabulary says; else it takes texts as they are. */
static struct tokenizer *open_kind(const struct kind *kind, bool normalises)
{
        struct vocabulary *vocabulary = NULL;
        struct tokenizer *tokenizer = NULL;
        char path[1024], why[256];

        snprintf(path, sizeof(path), "%s/%s", getenv("SAMOVAR_DATA"), kind->path);
        if (vocabulary_open(path, kind->splitter, &vocabulary, why, sizeof(why)))
                fail_msg("%s: %s", path, why);
        assert_int_equal(vocabulary->normal_count, kind->composes);
        if (!normalises)
                vocabulary->normal_count = 0;
        if (tokenizer_open(vocabulary, vocabulary->entry_count, &tokenizer, why, sizeof(why)))
                fail_msg("%s: %s", path, why);
        vocabulary_close(vocabulary);
        return tokenizer;
}

/* Compares the ids of one line with the text's; the last text is empty and has no line. */
static void check_pair(const struct kind *kind, const struct tokenizer *tokenizer, unsigned number,
                       const char *text, size_t bytes, char **line)
{
        size_t count, wanted = 0;
        uint32_t *ids = texts_encode(tokenizer, text, bytes, NULL, &count);

        while (**line && **line != '\n') {
                uint32_t id = (uint32_t)strtoul(*line, line, 10);

                if (wanted >= count || ids[wanted] != id)
                        fail_msg("%s, text %u '%.*s': id %zu is %u, not %u", kind->name, number,
                                 (int)bytes, text, wanted, wanted < count ? ids[wanted] : 0, id);
                wanted++;
                *line += strspn(*line, " ");
        }
        *line += **line == '\n';
        if (wanted != count)
                fail_msg("%s, text %u: %zu ids, not %zu", kind->name, number, count, wanted);
        free(ids);
}

static void tokenizes_the_text_pairs_of_llama_cpp(void **state)
{
        (void)state;
        for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
                struct tokenizer *tokenizer = open_kind(&kinds[k], true);
                size_t bytes;
                char *texts = read_file("%s.gguf.inp", kinds[k].pairs, &bytes);
                char *lines = read_file("%s.gguf.out", kinds[k].pairs, &bytes);
                char *text = texts, *line = lines;
                unsigned count = 0;

                while (text) {
                        char *end = strstr(text, SEPARATOR);

                        bytes = end ? (size_t)(end - text) : strlen(text);
                        check_pair(&kinds[k], tokenizer, count++, text, bytes, &line);
                        text = end ? end + strlen(SEPARATOR) : NULL;
                }
                assert_in_range(count, PAIRS - 1, PAIRS + 4);
                assert_int_equal(*line, '\0');
                free(texts);
                free(lines);
                tokenizer_close(tokenizer);
        }
}

static void a_novel_survives_tokenize_and_detokenize(void **state)
{
        size_t bytes;
        char *text = read_file("corpora/%s", "war-and-peace.txt", &bytes);

        (void)state;
        assert_true(bytes > 3000000);
        for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
                struct tokenizer *tokenizer = open_kind(&kinds[k], true);

                texts_come_back(tokenizer, text, bytes);
                tokenizer_close(tokenizer);
        }
        free(text);
}

static void invalid_utf8_survives_tokenize_and_detokenize(void **state)
{
        const char *scale = getenv("SMV_TEST_SCALE"), *start = getenv("SMV_TEST_SEED");
        unsigned long texts = scale ? TEXTS * strtoul(scale, NULL, 10) : TEXTS;
        uint64_t seed = start ? strtoull(start, NULL, 10) : 1;

        (void)state;
        for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
                struct tokenizer *tokenizer;

                if (kinds[k].lacks)
                        continue;
                tokenizer = open_kind(&kinds[k], !kinds[k].composes);
                for (unsigned long i = 0; i < texts; i++) {
                        char text[200];
                        size_t bytes = texts_any(text, sizeof(text), &seed);

                        texts_come_back(tokenizer, text, bytes);
                }
                tokenizer_close(tokenizer);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tokenizes_the_text_pairs_of_llama_cpp),
                cmocka_unit_test(a_novel_survives_tokenize_and_detokenize),
                cmocka_unit_test(invalid_utf8_survives_tokenize_and_detokenize),
        };

        if (!getenv("SAMOVAR_DATA")) {
                puts("skipped: SAMOVAR_DATA does not say where the vocabularies are");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
