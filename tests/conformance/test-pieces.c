/*
 * Pieces of real vocabularies: the joined pieces of a text's ids are the text again.
 *
 * The texts are those of `vectors`, in many languages, and some that are hard to write with tokens.
 * A vocabulary that composes is compared with the composed text.  One that changes texts otherwise,
 * or divides them into words, is only opened.  SAMOVAR_DATA says where the
 * files are; without it there is nothing to test.
 */
#include <ftw.h>

#include "tests/unit/texts.h"

#include "daemon/files/vocabulary.h"
#include "daemon/text/normaliser.h"
#include "daemon/text/unicode.h"

#define FILES_MAX  400u
#define TEXT_BYTES (1u << 20)
#define TEXTS_MAX  2000u

static char *files[FILES_MAX];
static size_t file_count;
static char *texts[TEXTS_MAX];
static size_t text_count;

static const char *const hard[] = {
        "word",
        "two  blanks, and a tab\tinside",
        "a line\nand another\r\n\n\nend\n",
        "x = {'key': [1, 22, 333]}; /* code */",
        "gr\xC3\xBC\xC3\x9F dich, e\xCC\x81t\xC3\xA9",
        "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 \xF0\x9F\x87\xA9",
        "\xE4\xBD\xA0\xE5\xA5\xBD\xEF\xBC\x8C\xE4\xB8\x96\xE7\x95\x8C",
        "\xF0\x92\x80\x80 is rare, and so is \xF4\x8F\xBF\xBF",
};

static int note_file(const char *path, const struct stat *about, int type, struct FTW *where)
{
        const char *name = path + where->base;
        size_t bytes = strlen(name);

        (void)about;
        if (type != FTW_F ||
            !(!strcmp(name, "tokenizer.json") || !strcmp(name, "vocab.json") ||
              !strncmp(name, "tokenizer.model", 15) || !strcmp(name, "tekken.json") ||
              (bytes > 5 && !strcmp(name + bytes - 5, ".gguf"))))
                return 0;
        assert_true(file_count < FILES_MAX);
        files[file_count++] = strdup(path);
        return 0;
}

static void add_text(const char *text)
{
        assert_true(text_count < TEXTS_MAX);
        /* Blanks in front could be the tokenizer's own; SentencePiece reads its bar as a blank. */
        if (*text && *text != ' ' && !strstr(text, "\xE2\x96\x81"))
                texts[text_count++] = strdup(text);
}

static void read_texts(const char *name, bool by_line)
{
        static char text[TEXT_BYTES];
        char path[1024];
        FILE *in;

        snprintf(path, sizeof(path), "%s/real/vectors/%s", getenv("SAMOVAR_DATA"), name);
        in = fopen(path, "rb");
        if (!in)
                fail_msg("%s cannot be read", path);
        text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
        fclose(in);
        if (!by_line) {
                add_text(text);
                return;
        }
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
                add_text(line);
}

/* The text that the pieces must give. */
static char *normalised(const struct vocabulary *v, const char *text, size_t *ret_bytes)
{
        struct normaliser normaliser;
        size_t bytes = strlen(text), count = 0, n;
        uint64_t steps = 0;
        char *to = NULL, why[256];

        if (normaliser_open(&normaliser, v->normals, v->normal_count, why, sizeof(why)) ||
            normaliser_run(&normaliser, text, bytes, &to, &bytes, &steps))
                fail_msg("%s", why);
        normaliser_close(&normaliser);
        if (!to)
                to = strdup(text);
        *ret_bytes = bytes;
        if (!v->squeezes && !v->squeezes_all)
                return to;
        for (size_t at = 0; at < bytes; at += n) {
                uint32_t code;

                n = unicode_next(to + at, bytes - at, &code);
                if (code != ' ' && !(v->squeezes_all && unicode_blank(code))) {
                        memmove(to + count, to + at, n);
                        count += n;
                } else if (count && to[count - 1] != ' ') {
                        to[count++] = ' ';
                }
        }
        while (count && to[count - 1] == ' ')
                count--;
        *ret_bytes = count;
        return to;
}

/* Whether the pieces of a text promise to be the text, or at most its composed form. */
static bool keeps_texts(const struct vocabulary *v)
{
        for (uint32_t i = 0; i < v->cut_count; i++)
                if (v->cuts[i].kind == CUT_DROP)
                        return false;
        return v->border == BORDER_NONE &&
               (!v->normal_count || (v->normal_count == 1 && v->normals->kind == NORMAL_NFC));
}

/* A vocabulary of bytes may lack some, and one of characters without an unknown token, too. */
static bool has_bytes(const struct vocabulary *v, const char *text)
{
        bool has[256] = { false };

        for (uint32_t id = 0; id < v->entry_count; id++)
                if (v->entries[id].count == 1 && v->entries[id].kind == ENTRY_NORMAL)
                        has[(uint8_t)*v->entries[id].bytes] = true;
        while (*text && has[(uint8_t)*text])
                text++;
        return !*text || (v->kind != VOCABULARY_BYTE_LEVEL &&
                          !(v->keeps_bars && v->unknown == VOCABULARY_NONE));
}

/* False: a character of the text has no token, so it cannot come back. */
static bool comes_back(const char *path, const struct vocabulary *v, const struct tokenizer *t,
                       const char *text)
{
        size_t count, bytes, n, used = 0, lead = tokenizer_adds_blank(t);
        uint32_t *ids = texts_encode(t, text, strlen(text), NULL, &count);
        char *wanted = normalised(v, text, &bytes);
        char *joined = malloc(count * tokenizer_piece_max(t) + 1);
        bool known = has_bytes(v, text);

        for (size_t i = 0; i < count; i++) {
                const char *piece = tokenizer_spelling(t, ids[i], &n);
                enum entry_kind kind = tokenizer_kind(t, ids[i]);

                /* In tokenizer.json, the unknown token is one of the control tokens. */
                known &= kind != ENTRY_UNKNOWN && kind != ENTRY_CONTROL && ids[i] != v->unknown;
                assert_true(n <= tokenizer_piece_max(t) && (kind != ENTRY_BYTE || n == 1));
                memcpy(joined + used, piece, n);
                used += n;
        }
        if (known && (used != lead + bytes || (lead && *joined != ' ') ||
                      memcmp(joined + lead, wanted, bytes)))
                fail_msg("%s: '%.200s' became '%.*s'", path, text, (int)used, joined);
        free(joined);
        free(wanted);
        free(ids);
        return known;
}

static size_t all_back;

/* False: it is not served. */
static bool check_file(const char *path)
{
        struct vocabulary *vocabulary = NULL;
        struct tokenizer *tokenizer = NULL;
        char why[256];
        size_t back = 0;

        if (vocabulary_open(path, NULL, &vocabulary, why, sizeof(why)))
                return false;
        if (tokenizer_open(vocabulary, vocabulary->entry_count, &tokenizer, why, sizeof(why))) {
                vocabulary_close(vocabulary);
                return false;
        }
        for (size_t i = 0; keeps_texts(vocabulary) && i < text_count; i++)
                back += comes_back(path, vocabulary, tokenizer, texts[i]);
        print_message(
                "%s: %zu of %zu texts come back, the others have unknown tokens or are changed\n",
                path + strlen(getenv("SAMOVAR_DATA")), back, text_count);
        all_back += back;
        tokenizer_close(tokenizer);
        vocabulary_close(vocabulary);
        return true;
}

static void find_files(const char *folder)
{
        char path[1024];

        snprintf(path, sizeof(path), "%s/%s", getenv("SAMOVAR_DATA"), folder);
        assert_int_equal(nftw(path, note_file, 16, FTW_PHYS), 0);
}

static void the_pieces_of_real_vocabularies_join_to_the_text(void **state)
{
        size_t opened = 0;

        (void)state;
        find_files("real");
        find_files("tokenizers");
        for (size_t i = 0; i < sizeof(hard) / sizeof(*hard); i++)
                add_text(hard[i]);
        read_texts("utf8_input.txt", false);
        read_texts("mixed_input.txt", true);
        for (size_t i = 0; i < file_count; i++)
                opened += check_file(files[i]);
        print_message("%zu of %zu files have a vocabulary that is served\n", opened, file_count);
        assert_true(opened > 8 && all_back > 100);
        while (file_count)
                free(files[--file_count]);
        while (text_count)
                free(texts[--text_count]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_pieces_of_real_vocabularies_join_to_the_text),
        };

        if (!getenv("SAMOVAR_DATA")) {
                puts("skipped: SAMOVAR_DATA does not say where the vocabularies are");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
