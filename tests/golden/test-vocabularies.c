/*
 * Texts and ids that the makers' own programs computed (contrib/reference/tokens.py).
 *
 * A golden names its vocabulary: one beside it, or one in the folder SAMOVAR_DATA; without that
 * folder these goldens are left out.  GOLDENS names another folder of them.
 */
#include <glob.h>

#include "tests/unit/texts.h"

#include "daemon/files/vocabulary.h"

#define LINE_BYTES (1u << 20)
#define PARTS_MAX  64u

struct golden {
        char path[1024], file[1024], splitter[64];
        /* controls: control tokens are found in all of the text; parted: only in every other
         * part */
        bool controls, parted;
        bool decoded; /* the text is what the ids give */
        struct tokenizer *tokenizer;
        unsigned texts;
};

static const char *folder;

static void open_golden(struct golden *g)
{
        struct vocabulary *vocabulary = NULL;
        char why[256];

        if (vocabulary_open(g->file, *g->splitter ? g->splitter : NULL, &vocabulary, why,
                            sizeof(why)) ||
            tokenizer_open(vocabulary, vocabulary->entry_count, &g->tokenizer, why, sizeof(why)))
                fail_msg("%s: %s", g->file, why);
        vocabulary_close(vocabulary);
}

static size_t read_hex(const char *hex, size_t count, char *to)
{
        size_t bytes = 0;

        if (count == 1 && *hex == '-')
                return 0;
        for (size_t i = 0; i + 1 < count; i += 2) {
                char two[3] = { hex[i], hex[i + 1], '\0' };

                to[bytes++] = (char)strtoul(two, NULL, 16);
        }
        return bytes;
}

/* The parts alternate between the template's and given ones, with a / between them. */
static size_t read_parts(const char *hex, size_t count, char *to, struct encoding *how)
{
        static struct text_part parts[PARTS_MAX];
        size_t bytes = 0, at = 0;

        how->controls = parts;
        for (bool given = false; at <= count; given = !given) {
                size_t n = strcspn(hex + at, "/ "), part = read_hex(hex + at, n, to + bytes);

                assert_true(how->control_count < PARTS_MAX);
                if (!given && part)
                        parts[how->control_count++] = (struct text_part){ bytes, bytes + part };
                bytes += part;
                at += n + 1;
        }
        return bytes;
}

static void check_text(struct golden *g, char *line)
{
        size_t hex = strcspn(line, " "), count, wanted = 0;
        struct encoding how = { .controls = &text_whole, .control_count = g->controls };
        char *text = malloc(hex + 1), *at = line + hex, *end;
        size_t bytes = g->parted ? read_parts(line, hex, text, &how) : read_hex(line, hex, text);
        uint32_t *ids = texts_encode(g->tokenizer, text, bytes, &how, &count);

        g->texts++;
        for (;; at = end) {
                uint32_t id = (uint32_t)strtoul(at, &end, 10);

                if (end == at)
                        break;
                if (wanted >= count || ids[wanted] != id)
                        fail_msg("%s: %.200s: id %zu of %zu is %u, not %u", g->path, line, wanted,
                                 count, wanted < count ? ids[wanted] : 0, id);
                wanted++;
        }
        if (wanted != count)
                fail_msg("%s: %.200s: %zu ids, not %zu", g->path, line, count, wanted);
        free(text);
        free(ids);
}

/* The text of the ids of a line. */
static void check_decoded(struct golden *g, char *line)
{
        size_t hex = strcspn(line, " "), bytes, used = 0, n;
        char *wanted = malloc(hex + 1), *text = malloc(LINE_BYTES), *at = line + hex, *end;
        bool lead = tokenizer_adds_blank(g->tokenizer);

        bytes = read_hex(line, hex, wanted);
        g->texts++;
        for (;; at = end) {
                uint32_t id = (uint32_t)strtoul(at, &end, 10);
                const char *piece;

                if (end == at)
                        break;
                piece = tokenizer_piece(g->tokenizer, id, &n);
                assert_true(used + n < LINE_BYTES);
                if (lead && n && *piece == ' ')
                        piece++, n--, lead = false;
                lead = lead && !n;
                memcpy(text + used, piece, n);
                used += n;
        }
        if (used != bytes || memcmp(text, wanted, bytes))
                fail_msg("%s: %.200s: the text is '%.*s'", g->path, line, (int)used, text);
        free(wanted);
        free(text);
}

/* False: the golden needs files that are not here. */
static bool read_head(struct golden *g, const char *line)
{
        const char *data = getenv("SAMOVAR_DATA");
        bool stored = strstr(g->path, "/data-");
        char name[512];

        if (sscanf(line, "file %511s", name) == 1) {
                if (stored && !data)
                        return false;
                snprintf(g->file, sizeof(g->file), "%s/%s", stored ? data : folder, name);
        } else if (!strcmp(line, "controls")) {
                g->controls = true;
        } else if (!strcmp(line, "parts")) {
                g->parted = true;
        } else if (!strcmp(line, "decoded")) {
                g->decoded = true;
        } else if (*line != '#') {
                sscanf(line, "splitter %63s", g->splitter);
        }
        return true;
}

static unsigned check_golden(const char *path)
{
        struct golden g = { 0 };
        static char line[LINE_BYTES];
        FILE *in = fopen(path, "r");

        assert_non_null(in);
        snprintf(g.path, sizeof(g.path), "%s", path);
        while (fgets(line, sizeof(line), in)) {
                line[strcspn(line, "\n")] = '\0';
                if (!g.tokenizer &&
                    (*line == '#' || strspn(line, "0123456789abcdef-/") != strcspn(line, " "))) {
                        if (!read_head(&g, line))
                                break;
                        continue;
                }
                if (!g.tokenizer)
                        open_golden(&g);
                if (g.decoded)
                        check_decoded(&g, line);
                else
                        check_text(&g, line);
        }
        fclose(in);
        tokenizer_close(g.tokenizer);
        return g.texts;
}

static void tokenizes_as_the_original_tokenizers_do(void **state)
{
        char pattern[1024];
        unsigned texts = 0;
        glob_t found;

        (void)state;
        snprintf(pattern, sizeof(pattern), "%s/*.txt", folder);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++)
                texts += check_golden(found.gl_pathv[i]);
        globfree(&found);
        print_message("%u texts\n", texts);
        assert_true(texts > 200);
}

/* A line for each id: what it is, and its bytes. */
static unsigned check_pieces(const char *path)
{
        static const char *const kinds[] = {
                [ENTRY_NORMAL] = "text",     [ENTRY_USER] = "user",       [ENTRY_BYTE] = "byte",
                [ENTRY_CONTROL] = "control", [ENTRY_UNKNOWN] = "unknown", [ENTRY_UNUSED] = "unused"
        };
        struct golden g = { 0 };
        static char line[LINE_BYTES], wanted[LINE_BYTES];
        FILE *in = fopen(path, "r");
        uint32_t id = 0;

        assert_non_null(in);
        snprintf(g.path, sizeof(g.path), "%s", path);
        while (fgets(line, sizeof(line), in)) {
                size_t kind = strcspn(line, " "), bytes, n;
                const char *piece;

                line[strcspn(line, "\n")] = '\0';
                if (*line == '#' || !strncmp(line, "file ", 5)) {
                        assert_true(read_head(&g, line));
                        continue;
                }
                if (!g.tokenizer)
                        open_golden(&g);
                line[kind] = '\0';
                assert_true(id < tokenizer_vocab(g.tokenizer));
                bytes = read_hex(line + kind + 1, strlen(line + kind + 1), wanted);
                piece = tokenizer_spelling(g.tokenizer, id, &n);
                if (n != bytes || memcmp(piece, wanted, n) ||
                    strcmp(kinds[tokenizer_kind(g.tokenizer, id)], line))
                        fail_msg("%s: id %u is %s '%.*s', not %s '%.*s'", path, id,
                                 kinds[tokenizer_kind(g.tokenizer, id)], (int)n, piece, line,
                                 (int)bytes, wanted);
                id++;
        }
        assert_int_equal(id, tokenizer_vocab(g.tokenizer));
        fclose(in);
        tokenizer_close(g.tokenizer);
        return id;
}

static void pieces_are_those_of_the_original_tokenizers(void **state)
{
        char pattern[1024];
        unsigned pieces = 0;
        glob_t found;

        (void)state;
        snprintf(pattern, sizeof(pattern), "%s/*.pieces", folder);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++)
                pieces += check_pieces(found.gl_pathv[i]);
        globfree(&found);
        print_message("%u pieces\n", pieces);
        assert_true(pieces > 1500);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tokenizes_as_the_original_tokenizers_do),
                cmocka_unit_test(pieces_are_those_of_the_original_tokenizers),
        };
        static char path[1024];
        const char *given = getenv("GOLDENS"), *sources = getenv("SOURCES");

        if (!given && !sources) {
                puts("skipped: neither GOLDENS nor SOURCES says where the goldens are");
                return 77;
        }
        snprintf(path, sizeof(path), given ? "%s" : "%s/tests/golden/tokenizers",
                 given ? given : sources);
        folder = path;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
