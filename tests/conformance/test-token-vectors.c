/*
 * Ids of published texts, with the vocabularies of real models: `real/vectors`.
 *
 * Its README says which of them equal the ids of the reference libraries; the others are left out.
 * SAMOVAR_DATA says where the files are; without it there is nothing to test.
 */
#include "tests/unit/texts.h"

#include "daemon/files/vocabulary.h"
#include "json/reader.h"

#define NODES_MAX (1u << 16)

/* A text a line, or one text, and a line of ids for each. */
static const struct vector {
        const char *texts, *ids, *vocabulary;
        unsigned count; /* of texts */
} vectors[] = {
        { "utf8", "tokenizers/utf8_tokens_gpt_neox", "gpt-neox-redpajama-7b", 1 },
        { "mixed", "tokenizers/mixed_tokens_gpt_neox", "gpt-neox-redpajama-7b", 120 },
        { "utf8", "tokenizers/utf8_tokens_mpt", "gpt-neox-redpajama-7b", 1 },
        { "utf8", "tokenizers/utf8_tokens_gemma4", "ggml-vocab/ggml-vocab-gemma-4.gguf", 1 },
        { "mixed", "tokenizers/mixed_tokens_gemma4", "ggml-vocab/ggml-vocab-gemma-4.gguf", 120 },
        { "utf8", "tokenizers/utf8_tokens_llama2", "llama-2-7b-hf", 1 },
        { "utf8", "tokenizers/utf8_tokens_mistral01", "mistral-7b-instruct-v0.2", 1 },
        { "utf8", "sentencepiece/utf8_tokens_mistral01", "mistral-spm/tokenizer.model.v1", 1 },
        { "utf8", "tokenizers/utf8_tokens_llama32", "llama-3-tiktoken", 1 },
};

/* The caller frees it. */
static char *read_file(const char *name, size_t *ret_bytes)
{
        const size_t room = 1u << 20;
        char path[1024], *text = malloc(room);
        FILE *in;

        snprintf(path, sizeof(path), "%s/real/vectors/%s", getenv("SAMOVAR_DATA"), name);
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

static struct tokenizer *open_tokenizer(const char *name)
{
        struct vocabulary *vocabulary = NULL;
        struct tokenizer *tokenizer = NULL;
        char path[1024], why[256];

        snprintf(path, sizeof(path), "%s/real/%s", getenv("SAMOVAR_DATA"), name);
        if (vocabulary_open(path, NULL, &vocabulary, why, sizeof(why)) ||
            tokenizer_open(vocabulary, vocabulary->entry_count, &tokenizer, why, sizeof(why)))
                fail_msg("%s: %s", path, why);
        vocabulary_close(vocabulary);
        return tokenizer;
}

/* The special tokens in a text are read as such. */
static uint32_t *encode(const struct tokenizer *tokenizer, const char *text, size_t bytes,
                        size_t *ret_count)
{
        struct encoding how = { .controls = &text_whole, .control_count = 1 };

        return texts_encode(tokenizer, text, bytes, &how, ret_count);
}

static void check_line(const struct vector *v, const struct tokenizer *tokenizer, unsigned number,
                       const char *text, size_t bytes, char **line)
{
        size_t count, wanted = 0;
        uint32_t *ids = encode(tokenizer, text, bytes, &count);

        while (**line && **line != '\n') {
                uint32_t id = (uint32_t)strtoul(*line, line, 10);

                if (wanted >= count || ids[wanted] != id)
                        fail_msg("%s, text %u: id %zu is %u, not %u", v->ids, number, wanted,
                                 wanted < count ? ids[wanted] : 0, id);
                wanted++;
                *line += strspn(*line, ", ");
        }
        *line += **line == '\n';
        if (wanted != count)
                fail_msg("%s, text %u: %zu ids, not %zu", v->ids, number, count, wanted);
        free(ids);
}

static void check_vector(const struct vector *v)
{
        struct tokenizer *tokenizer = open_tokenizer(v->vocabulary);
        char name[128], *texts, *lines, *text, *line;
        size_t text_bytes, bytes;
        unsigned count = 0;

        snprintf(name, sizeof(name), "%s_input.txt", v->texts);
        text = texts = read_file(name, &text_bytes);
        snprintf(name, sizeof(name), "%s.txt", v->ids);
        line = lines = read_file(name, &bytes);
        while (*text) {
                bytes = v->count == 1 ? text_bytes : strcspn(text, "\n");
                check_line(v, tokenizer, count++, text, bytes, &line);
                text += bytes + (text[bytes] == '\n');
        }
        assert_int_equal(count, v->count);
        assert_int_equal(*line, '\0');
        free(texts);
        free(lines);
        tokenizer_close(tokenizer);
}

static void texts_have_their_published_ids(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
                check_vector(&vectors[i]);
}

static void check_case(const struct json_document *json, uint32_t node,
                       const struct tokenizer *tokenizer)
{
        const char *name = json_string(json, json_member(json, node, "name"), NULL);
        size_t bytes, count, wanted = 0;
        const char *text = json_string(json, json_member(json, node, "text"), &bytes);
        uint32_t *ids;

        assert_non_null(text);
        ids = encode(tokenizer, text, bytes, &count);
        for (uint32_t n = json_first(json, json_member(json, node, "ids")); n != JSON_NONE;
             n = json_next(json, n), wanted++) {
                uint64_t id = UINT64_MAX;

                json_whole(json, n, &id);
                if (wanted >= count || ids[wanted] != id)
                        fail_msg("%s: id %zu is %u, not %u", name, wanted,
                                 wanted < count ? ids[wanted] : 0, (unsigned)id);
        }
        assert_int_equal(wanted, count);
        free(ids);
}

static void llama_3_has_the_ids_of_its_published_cases(void **state)
{
        struct tokenizer *tokenizer = open_tokenizer("llama-3-tiktoken");
        struct json_document *json = NULL;
        unsigned cases = 0;
        size_t bytes;
        char why[256], *text = read_file("llama3-vectors.json", &bytes);

        (void)state;
        assert_int_equal(json_parse(text, bytes, NODES_MAX, &json, why, sizeof(why)), 0);
        for (uint32_t n = json_first(json, json_member(json, 0, "cases")); n != JSON_NONE;
             n = json_next(json, n), cases++)
                if (json_member(json, n, "text") != JSON_NONE)
                        check_case(json, n, tokenizer);
        assert_int_equal(cases, 24);
        json_free(json);
        free(text);
        tokenizer_close(tokenizer);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(texts_have_their_published_ids),
                cmocka_unit_test(llama_3_has_the_ids_of_its_published_cases),
        };

        if (!getenv("SAMOVAR_DATA")) {
                puts("skipped: SAMOVAR_DATA does not say where the vectors are");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
