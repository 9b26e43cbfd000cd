/*
 * Pieces into which the library `tokenizers`, and Oniguruma in it, cut texts
 * (contrib/reference/expressions.py).
 *
 * EXPRESSIONS names another file of them.  A line of the file is one of these; expressions and
 * texts are in hexadecimal, and - stands for an empty one:
 *
 *      cut KIND INVERTED EXPRESSION    one more cut; a cut behind a text begins a new list
 *      maybe                           the cuts before it may be refused, and then are left out
 *      splitter NAME                   the cuts of daemon/files/splitters.c
 *      text TEXT LENGTH...             its pieces; a negative length is of bytes in no piece
 *      set EXPRESSION COUNT HASH       which characters, of all, the expression matches
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/files/splitters.h"
#include "daemon/text/cutter.h"
#include "daemon/text/unicode.h"

#define LINE_BYTES      (1u << 20)
#define DIFFERENCES_MAX 20u /* that are shown */
#define CODES           0x110000u

struct golden {
        char line[LINE_BYTES], shown[1024];
        char expressions[VOCABULARY_CUTS_MAX][LINE_BYTES / 16];
        struct vocabulary_cut cuts[VOCABULARY_CUTS_MAX];
        uint32_t cut_count;
        bool is_complete, may_refuse, is_refused;
        struct cutter cutter;
        struct cutting cutting;
        unsigned texts, sets, refused, differences;
};

static size_t read_hex(const char *hex, char *to)
{
        size_t count = strcspn(hex, " \n"), bytes = 0;

        if (*hex == '-')
                return 0;
        for (size_t i = 0; i + 1 < count; i += 2) {
                char two[3] = { hex[i], hex[i + 1], '\0' };

                to[bytes++] = (char)strtoul(two, NULL, 16);
        }
        return bytes;
}

static void differ(struct golden *g, const char *line, const char *how)
{
        if (g->differences++ < DIFFERENCES_MAX)
                print_error("%s: %s: %.400s\n", g->shown, how, line);
}

/* ---- cuts ---- */

static void begin_list(struct golden *g)
{
        cutter_close(&g->cutter);
        g->cut_count = 0;
        g->is_complete = g->may_refuse = g->is_refused = false;
        g->shown[0] = '\0';
}

static void read_cut(struct golden *g, const char *line)
{
        static const struct {
                const char *name;
                enum cut_kind kind;
        } kinds[] = { { "isolated", CUT_APART },
                      { "removed", CUT_DROP },
                      { "contiguous", CUT_RUNS },
                      { "merged_with_previous", CUT_TO_LAST },
                      { "merged_with_next", CUT_TO_NEXT } };
        char name[32], *expression;
        int inverted = 0, at = 0;

        if (g->is_complete)
                begin_list(g);
        assert_in_range(g->cut_count, 0, VOCABULARY_CUTS_MAX - 1);
        assert_int_equal(sscanf(line, "cut %31s %d %n", name, &inverted, &at), 2);
        expression = g->expressions[g->cut_count];
        assert_in_range(strlen(line + at), 0, 2 * sizeof(g->expressions[0]) - 2);
        expression[read_hex(line + at, expression)] = '\0';
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
                if (!strcmp(kinds[i].name, name))
                        g->cuts[g->cut_count].kind = (uint8_t)kinds[i].kind;
        g->cuts[g->cut_count].inverted = inverted;
        g->cuts[g->cut_count++].expression = expression;
        snprintf(g->shown + strlen(g->shown), sizeof(g->shown) - strlen(g->shown), "%s %s%.400s",
                 name, inverted ? "not " : "", expression);
}

static void take_splitter(struct golden *g, const char *line)
{
        const struct splitter *splitter;
        char name[64] = "";

        begin_list(g);
        sscanf(line, "splitter %63s", name);
        splitter = splitter_named(name);
        assert_non_null(splitter);
        g->cut_count = splitter->cut_count;
        memcpy(g->cuts, splitter->cuts, splitter->cut_count * sizeof(*g->cuts));
        snprintf(g->shown, sizeof(g->shown), "splitter %s", name);
}

/* The cuts have all been read: opens them before their first text. */
static void complete(struct golden *g)
{
        char why[512] = "";

        if (g->is_complete)
                return;
        g->is_complete = true;
        if (!cutter_open(&g->cutter, g->cuts, g->cut_count, why, sizeof(why)))
                return;
        g->is_refused = true;
        g->refused++;
        if (g->may_refuse)
                print_message("left out: %s\n", why);
        else
                differ(g, why, "refused");
}

/* ---- texts ---- */

static bool takes(struct golden *g, size_t *last, const char *at)
{
        size_t begin, end;
        char *behind;

        for (;; at = behind) {
                long length = strtol(at, &behind, 10);

                if (behind == at)
                        break;
                if (length < 0) {
                        *last += (size_t)-length;
                        continue;
                }
                if (cutting_next(&g->cutting, &begin, &end) != 1 || begin != *last ||
                    end != begin + (size_t)length)
                        return false;
                *last = end;
        }
        return !cutting_next(&g->cutting, &begin, &end);
}

static void check_text(struct golden *g, const char *line)
{
        size_t hex = strcspn(line + 5, " \n"), bytes, last = 0;
        char *text = malloc(hex / 2 + 1);
        uint64_t steps = 0;

        assert_non_null(text);
        complete(g);
        bytes = read_hex(line + 5, text);
        g->texts++;
        if (!g->is_refused) {
                assert_int_equal(cutting_begin(&g->cutting, &g->cutter, text, bytes, &steps), 0);
                if (!takes(g, &last, line + 5 + hex)) {
                        char how[64];

                        snprintf(how, sizeof(how), "other pieces from byte %zu on", last);
                        differ(g, line, how);
                }
        }
        free(text);
}

/* ---- sets ---- */

/* All characters; returns the bytes. */
static size_t write_all(char *to)
{
        size_t bytes = 0;

        for (uint32_t code = 0; code < CODES; code++)
                if (code - 0xD800 >= 0x800)
                        bytes += unicode_write(code, to + bytes);
        return bytes;
}

/* FNV-1a of the codes that the expression matches. */
static void hash_set(const struct expression *expression, unsigned long *ret_count,
                     uint64_t *ret_hash)
{
        char *text = malloc((size_t)4 * CODES);
        struct expression_search search = { 0 };
        size_t bytes, begin, end = 0;
        uint64_t steps = 0;
        uint32_t code;

        assert_non_null(text);
        bytes = write_all(text);
        *ret_count = 0;
        *ret_hash = 0xCBF29CE484222325u;
        assert_int_equal(expression_begin(&search, expression, text, bytes, &steps), 0);
        while (expression_next(&search, end, &begin, &end) == 1) {
                assert_int_equal(unicode_next(text + begin, bytes - begin, &code), end - begin);
                ++*ret_count;
                for (unsigned shift = 0; shift < 32; shift += 8)
                        *ret_hash = (*ret_hash ^ (code >> shift & 0xFF)) * 0x100000001B3u;
        }
        expression_search_deinit(&search);
        free(text);
}

static void check_set(struct golden *g, const char *line)
{
        static char pattern[LINE_BYTES];
        unsigned long count, wanted;
        struct expression *expression;
        char why[256], how[64], *behind;
        uint64_t hash;

        pattern[read_hex(line + 4, pattern)] = '\0';
        wanted = strtoul(strchr(line + 4, ' '), &behind, 10);
        snprintf(g->shown, sizeof(g->shown), "%.400s", pattern);
        g->sets++;
        if (expression_open(pattern, &expression, why, sizeof(why))) {
                differ(g, why, "refused");
                return;
        }
        hash_set(expression, &count, &hash);
        if (count != wanted || hash != strtoull(behind, NULL, 16)) {
                snprintf(how, sizeof(how), "%lu characters, %016llx", count,
                         (unsigned long long)hash);
                differ(g, line, how);
        }
        expression_close(expression);
}

static void read_line(struct golden *g)
{
        g->line[strcspn(g->line, "\n")] = '\0';
        if (!strncmp(g->line, "cut ", 4))
                read_cut(g, g->line);
        else if (!strcmp(g->line, "maybe"))
                g->may_refuse = true;
        else if (!strncmp(g->line, "splitter ", 9))
                take_splitter(g, g->line);
        else if (!strncmp(g->line, "text ", 5))
                check_text(g, g->line);
        else if (!strncmp(g->line, "set ", 4))
                check_set(g, g->line);
        else
                assert_int_equal(*g->line, '#');
}

static void cuts_as_tokenizers_and_oniguruma_do(void **state)
{
        const char *path = getenv("EXPRESSIONS");
        char stored[1024];
        struct golden *g = calloc(1, sizeof(*g));
        FILE *in;

        (void)state;
        assert_non_null(g);
        snprintf(stored, sizeof(stored), "%s/tests/golden/texts/expressions.txt",
                 getenv("SOURCES"));
        in = fopen(path ? path : stored, "r");
        assert_non_null(in);
        g->is_complete = true; /* no cut was read yet */
        while (fgets(g->line, sizeof(g->line), in))
                read_line(g);
        fclose(in);
        begin_list(g);
        cutting_deinit(&g->cutting);
        print_message("%u texts, %u sets, %u lists of cuts refused, %u differences\n", g->texts,
                      g->sets, g->refused, g->differences);
        assert_true(g->texts + g->sets > 0);
        assert_int_equal(g->differences, 0);
        free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(cuts_as_tokenizers_and_oniguruma_do),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
