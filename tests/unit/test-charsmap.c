/*
 * Compiled rules of SentencePiece: a table built here in the layout of Darts-clone, and tables that
 * no builder makes.  Also the clusters to which `tokenizers` applies them.
 */
#include <errno.h>

#include "tests/unit/texts.h"

#include "daemon/text/charsmap.h"
#include "daemon/text/clusters.h"

#define UNITS 4096u

/* ---- a builder: each state has a block of 256 units to itself ---- */

struct blob {
        uint32_t size;
        uint32_t units[UNITS];
        char texts[256];
        size_t text_bytes;
        uint32_t blocks; /* in use */
};

static struct blob blob;

static void blob_begin(void)
{
        memset(&blob, 0, sizeof(blob));
        blob.blocks = 2;
        blob.units[0] = 256u << 10; /* the root's state is block 1 */
        blob.size = sizeof(blob.units);
}

static void blob_rule(const char *from, const char *to)
{
        uint32_t base = 256;

        for (; *from; from++) {
                uint32_t at = base ^ (uint8_t)*from, *unit = &blob.units[at];

                if (!*unit) {
                        uint32_t next = 256 * blob.blocks++;

                        assert_true(next + 256 <= UNITS);
                        *unit = (at ^ next) << 10 | (uint8_t)*from;
                }
                base = at ^ *unit >> 10;
                if (!from[1]) {
                        *unit |= 1u << 8;
                        blob.units[base] = 1u << 31 | (uint32_t)blob.text_bytes;
                }
        }
        memcpy(blob.texts + blob.text_bytes, to, strlen(to) + 1);
        blob.text_bytes += strlen(to) + 1;
}

static char why[256];

static int blob_open(struct charsmap **ret)
{
        char bytes[4 + sizeof(blob.units) + sizeof(blob.texts)];

        memcpy(bytes, &blob.size, 4);
        memcpy(bytes + 4, blob.units, sizeof(blob.units));
        memcpy(bytes + 4 + sizeof(blob.units), blob.texts, blob.text_bytes);
        return charsmap_open(bytes, 4 + sizeof(blob.units) + blob.text_bytes, ret, why,
                             sizeof(why));
}

static void expect(const struct charsmap *map, const struct trie *kept, bool clusters,
                   const char *text, const char *wanted)
{
        size_t bytes = strlen(text), count;
        char *to = malloc(charsmap_growth(map) * bytes + 1);
        uint64_t steps = 0;

        count = clusters ? charsmap_run_clusters(map, text, bytes, to, &steps)
                         : charsmap_run(map, kept, text, bytes, to, &steps);
        to[count] = '\0';
        assert_string_equal(to, wanted);
        assert_in_range(steps, bytes ? 1 : 0, 8 * bytes);
        free(to);
}

static void make_rules(struct charsmap **ret_map)
{
        blob_begin();
        blob_rule("a", "A");
        blob_rule("abc", "[abc]");
        blob_rule("x", "");
        blob_rule("\r", " ");
        blob_rule("e\xCC\x81", "\xC3\xA9");
        blob_rule("o", "0");
        assert_int_equal(blob_open(ret_map), 0);
}

static void the_longest_rule_at_each_place_replaces(void **state)
{
        struct charsmap *map;

        (void)state;
        make_rules(&map);
        assert_int_equal(charsmap_growth(map), 2); /* [abc] for abc */
        expect(map, NULL, false, "", "");
        expect(map, NULL, false, "abab", "AbAb");
        expect(map, NULL, false, "aabcx", "A[abc]");
        expect(map, NULL, false,
               "\xFF"
               "a\xC3",
               "\xFF"
               "A\xC3");
        expect(map, NULL, false, "ee\xCC\x81o\xCC\x81",
               "e\xC3\xA9"
               "0\xCC\x81");
        charsmap_close(map);
}

static void words_that_are_kept_stay_as_they_are(void **state)
{
        struct trie_word words[] = { { "xa", 2, 0 } };
        struct charsmap *map;
        struct trie *kept;

        (void)state;
        make_rules(&map);
        assert_int_equal(trie_new(words, 1, &kept), 0);
        expect(map, kept, false, "axaxxa", "Axaxa");
        trie_free(kept);
        charsmap_close(map);
}

static void clusters_are_replaced_whole_by_the_shortest_rule(void **state)
{
        struct charsmap *map;

        (void)state;
        make_rules(&map);
        expect(map, NULL, true, "abc", "Abc"); /* each letter is a cluster */
        expect(map, NULL, true, "\r\nb", " b");
        expect(map, NULL, true, "e\xCC\x81o",
               "\xC3\xA9"
               "0");
        expect(map, NULL, true, "o\xCC\x81", "0"); /* the rule is shorter than the cluster */
        /* A cluster of six bytes is replaced character by character. */
        expect(map, NULL, true, "oo\xCC\x81\xCC\x81\xCC\x81", "00\xCC\x81\xCC\x81\xCC\x81");
        charsmap_close(map);
}

static void said(const char *bytes, size_t count, const char *what)
{
        struct charsmap *map;

        assert_int_equal(charsmap_open(bytes, count, &map, why, sizeof(why)), -EINVAL);
        if (!strstr(why, what))
                fail_msg("'%s' is not said in: %s", what, why);
}

static void refuses_a_table_that_is_not_whole(void **state)
{
        static char large[CHARSMAP_BYTES_MAX + 1];

        (void)state;
        said("", 0, "0 bytes");
        said("\0\0\0\0", 4, "a table of 0");
        said("\4\0\0\0abc", 7, "a table of 4");
        said("\3\0\0\0abcd", 8, "a table of 3");
        said("\xFF\xFF\xFF\xFF", 4, "a table of 4294967295");
        said(large, sizeof(large), "the limit is");
}

/* Any bytes: what they replace is within the growth, and in linear time. */
static void a_hostile_table_finds_what_it_can(void **state)
{
        static char bytes[4 + 4 * 1024 + 512], text[4096];
        uint64_t seed = 1;

        (void)state;
        for (unsigned i = 0; i < 300; i++) {
                struct charsmap *map;
                uint64_t steps = 0;
                uint32_t table = 4 * 1024;
                char *to;

                memcpy(bytes, &table, 4);
                for (size_t k = 4; k < sizeof(bytes); k++)
                        bytes[k] = (char)texts_random(&seed);
                /* Units that lead to near places, and whose labels are letters. */
                for (size_t k = 0; i % 3 && k < 1024; k++) {
                        uint32_t unit = ((uint32_t)texts_random(&seed) % 1024) << 10 |
                                        (texts_random(&seed) & 1) << 8 | (k & 0xFF);

                        memcpy(bytes + 4 + 4 * k, &unit, 4);
                }
                assert_int_equal(charsmap_open(bytes, sizeof(bytes), &map, why, sizeof(why)), 0);
                to = malloc(charsmap_growth(map) * sizeof(text));
                for (size_t k = 0; k < sizeof(text); k++)
                        text[k] =
                                (char)(i % 2 ? texts_random(&seed) : 'a' + texts_random(&seed) % 2);
                charsmap_run(map, NULL, text, sizeof(text), to, &steps);
                charsmap_run_clusters(map, text, sizeof(text), to, &steps);
                assert_in_range(steps, sizeof(text), (CHARSMAP_KEY_MAX + 10) * sizeof(text));
                free(to);
                charsmap_close(map);
        }
}

/* A state that leads to itself: a rule for a text of any length, which is cut off. */
static void a_table_that_goes_in_circles_ends(void **state)
{
        static char text[4096], to[4096];
        struct charsmap *map;
        uint64_t steps = 0;

        (void)state;
        blob_begin();
        blob.units[256 ^ 'a'] = (uint32_t)'a' << 10 | 'a' | 1u << 8;
        blob.units[256] = 1u << 31;
        memcpy(blob.texts, "b", 2);
        blob.text_bytes = 2;
        assert_int_equal(blob_open(&map), 0);
        memset(text, 'a', sizeof(text));
        assert_int_equal(charsmap_run(map, NULL, text, sizeof(text), to, &steps),
                         sizeof(text) / CHARSMAP_KEY_MAX);
        assert_in_range(steps, 1, 2 * sizeof(text));
        charsmap_close(map);
}

/* ---- clusters ---- */

static void a_cluster_is_what_a_reader_sees_as_one_character(void **state)
{
        static const char *const clusters[] = {
                "a",
                "\r\n",
                "\n",
                "\r",
                "e\xCC\x81\xCC\xA3",
                "\xE0\xA4\x95\xE0\xA5\x8D\xE0\xA4\xB7\xE0\xA4\xBF", /* ka, virama, ssa, i */
                "\xE0\xB8\x81\xE0\xB8\xB3",                         /* Thai: ko kai, sara am */
                "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8",             /* Hangul letters */
                "\xEA\xB0\x80\xE1\x86\xA8",                         /* a syllable and a letter */
                "\xEA\xB0\x81",
                "\xD8\x80"
                "1", /* the Arabic number sign goes before its number */
                "\xC2\xA9\xE2\x80\x8D\xE2\x98\xBA", /* pictures with a joiner between them */
                "\xC2\xA9\xE2\x80\x8D",
                "b\xE2\x80\x8D",
                "\xE2\x98\xBA",
                "\x01",
                "\xC2\xA9\xE2\x80\x8D\xE2\x80\x8D", /* two joiners join nothing */
                "\xE2\x98\xBA",
                "\xFF",
                "\xCC\x81",
        };
        char text[256] = "";
        size_t at = 0;

        (void)state;
        for (size_t i = 0; i < sizeof(clusters) / sizeof(*clusters); i++)
                strcat(text, clusters[i]);
        for (size_t i = 0; i < sizeof(clusters) / sizeof(*clusters); i++) {
                size_t n = cluster_next(text + at, strlen(text) - at);

                if (n != strlen(clusters[i]))
                        fail_msg("cluster %zu has %zu bytes", i, n);
                at += n;
        }
        assert_int_equal(at, strlen(text));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_longest_rule_at_each_place_replaces),
                cmocka_unit_test(words_that_are_kept_stay_as_they_are),
                cmocka_unit_test(clusters_are_replaced_whole_by_the_shortest_rule),
                cmocka_unit_test(refuses_a_table_that_is_not_whole),
                cmocka_unit_test(a_hostile_table_finds_what_it_can),
                cmocka_unit_test(a_table_that_goes_in_circles_ends),
                cmocka_unit_test(a_cluster_is_what_a_reader_sees_as_one_character),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
