/*
 * Which names the prefix index finds, and the hash that names are made with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"
#include "base/siphash.h"
#include "tests/unit/prefix-rig.h"

/*
 * What openssl says of SipHash with 16 bytes of result.
 *
 *      openssl mac -macopt hexkey:000102030405060708090A0B0C0D0E0F -macopt size:16 \
 *              -in FILE SIPHASH
 *
 * FILE has the bytes 00 01 02 ... ff 00 ..., as many as `count` says.
 */
static const struct {
        size_t count;
        unsigned char hash[17];
} vectors[] = {
        { 0, "\xa3\x81\x7f\x04\xba\x25\xa8\xe6\x6d\xf6\x72\x14\xc7\x55\x02\x93" },
        { 1, "\xda\x87\xc1\xd8\x6b\x99\xaf\x44\x34\x76\x59\x11\x9b\x22\xfc\x45" },
        { 7, "\xa1\xf1\xeb\xbe\xd8\xdb\xc1\x53\xc0\xb8\x4a\xa6\x1f\xf0\x82\x39" },
        { 8, "\x3b\x62\xa9\xba\x62\x58\xf5\x61\x0f\x83\xe2\x64\xf3\x14\x97\xb4" },
        { 15, "\x54\x93\xe9\x99\x33\xb0\xa8\x11\x7e\x08\xec\x0f\x97\xcf\xc3\xd9" },
        { 16, "\x6e\xe2\xa4\xca\x67\xb0\x54\xbb\xfd\x33\x15\xbf\x85\x23\x05\x77" },
        { 63, "\x51\x50\xd1\x77\x2f\x50\x83\x4a\x50\x3e\x06\x9a\x97\x3f\xbd\x7c" },
        { 256, "\x67\xa0\x03\x04\xd3\x83\x4c\x46\x12\xea\xee\x7b\x5f\x57\x9a\xcb" },
        { 300, "\xce\x00\x5a\x40\x6d\x14\xb3\x6d\x53\x86\xb5\xf7\xa7\xe1\xb3\x11" },
};

static void expect_hash(const uint64_t key[2], const unsigned char *bytes, size_t count,
                        const unsigned char *expected)
{
        uint64_t hash[2];

        siphash(key, bytes, count, hash);
        for (unsigned i = 0; i < 16; i++)
                assert_int_equal(hash[i / 8] >> i % 8 * 8 & 0xff, expected[i]);
}

static void siphash_matches_its_published_vectors(void **state)
{
        const uint64_t key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
        unsigned char bytes[301];

        (void)state;
        for (unsigned odd = 0; odd < 2; odd++) /* at any address */
                for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
                        for (size_t k = 0; k < vectors[i].count; k++)
                                bytes[odd + k] = (unsigned char)k;
                        expect_hash(key, bytes + odd, vectors[i].count, vectors[i].hash);
                }
}

/* hexkey:FFEEDDCCBBAA99887766554433221100, and FILE is 15 bytes of ff. */
static void siphash_handles_bytes_with_the_high_bit_set(void **state)
{
        const uint64_t key[2] = { 0x8899aabbccddeeff, 0x0011223344556677 };
        unsigned char bytes[15];

        (void)state;
        memset(bytes, 0xff, sizeof(bytes));
        expect_hash(key, bytes, sizeof(bytes),
                    (const unsigned char *)"\x90\xcd\xa9\xd0\x5a\x01\x8c\x6b"
                                           "\xd2\x44\xb8\x31\xa5\x55\x49\x5c");
}

static void an_empty_index_finds_nothing(void **state)
{
        (void)state;
        open_pool(4);
        expect_counts(4, 0, 0);
        expect_found(1, "", NULL, 0, 0);
        expect_found(1, "Y", NULL, 0, 0);
        expect_found(1, YOU URN, NULL, 0, 0);
        prefix_allocate(&prefix, 1); /* it has no name */
        expect_found(1, YOU URN, NULL, 0, 0);
        close_pool();
}

static void finds_whole_blocks_from_the_beginning_only(void **state)
{
        struct text text;

        (void)state;
        open_pool(8);
        text = put(1, YOU URN TEA);
        expect_found(1, "", &text, 0, 0);
        expect_found(1, YOU, &text, 1, 0);
        expect_found(1, YOU URN, &text, 2, 0);
        expect_found(1, YOU URN TEA, &text, 3, 0);
        expect_found(1, YOU URN TEA " me!", &text, 3, 0);
        expect_found(1, YOU TEA, &text, 1, 0);
        expect_found(1, URN TEA, &text, 0, 0); /* not from the middle */
        close_pool();
}

static void finds_the_common_part_of_a_partial_block(void **state)
{
        struct text text;

        (void)state;
        open_pool(8);
        text = put(1, YOU "l pot, a");
        expect_found(1, YOU "l", &text, 1, 1);
        expect_found(1, YOU "l p", &text, 1, 3);
        expect_found(1, YOU "l pot, a", &text, 1, 8);
        expect_found(1, YOU "l pot, and then", &text, 1, 8); /* not beyond what it holds */
        expect_found(1, YOU URN TEA, &text, 1, 2);
        expect_found(1, YOU "lamp", &text, 1, 1);
        expect_found(1, YOU "L pot, a", &text, 1, 0); /* not with another first token */
        close_pool();
}

static void finds_the_common_part_of_a_whole_block(void **state)
{
        struct text text;

        (void)state;
        open_pool(8);
        text = put(1, YOU URN);
        expect_found(1, "Y", &text, 0, 1);
        expect_found(1, "You are a helpf", &text, 0, 15);
        expect_found(1, POT, &text, 0, 10);
        expect_found(1, POT URN, &text, 0, 10);
        expect_found(1, YOU "l urn. What is it?", &text, 1, 15);
        expect_found(1, YOU "l urn. What is  t?", &text, 1, 15);
        expect_found(1, YOU CUP TEA, &text, 1, 2);
        close_pool();
}

/* ... in whatever order they came. */
static void finds_the_longest_of_several_partial_matches(void **state)
{
        static const char *const parts[] = { "l", "l pot, a", "l pond", "l po", "l urn" };

        (void)state;
        for (uint32_t turned = 0; turned < 5; turned++) {
                struct text texts[5];

                open_pool(16);
                for (uint32_t i = 0; i < 5; i++) {
                        char words[TEXT_MAX] = YOU;
                        uint32_t which = (i + turned) % 5;

                        strcat(words, parts[which]);
                        texts[which] = put(1, words);
                }
                expect_counts(10, 0, 6);
                expect_found(1, YOU "l pot, and so on", &texts[1], 1, 8);
                expect_found(1, YOU "l pot", &texts[1], 1, 5);
                expect_found(1, YOU "l pond", &texts[2], 1, 6);
                expect_found(1, YOU URN, &texts[4], 1, 5);
                close_pool();
        }
}

/* ... but only a limited number is examined: the newest one, and every whole match, are found. */
static void finds_the_newest_and_every_whole_match_among_very_many(void **state)
{
        struct text first, text = { .count = 0 };

        (void)state;
        open_pool(512);
        first = put(1, YOU);
        for (unsigned i = 0; i < 300; i++) {
                char words[] = "Your 000 cups of";

                words[5] = (char)('0' + i / 100);
                words[6] = (char)('0' + i / 10 % 10);
                words[7] = (char)('0' + i % 10);
                words[i % 2 ? 16 : 11] = 0;
                text = put(1, words);
                expect_found(1, words, &text, i % 2, i % 2 ? 0 : 11);
        }
        expect_found(1, YOU, &first, 1, 0);
        close_pool();
}

static void nothing_is_found_across_domains(void **state)
{
        (void)state;
        for (int colliding = 0; colliding < 2; colliding++) {
                struct text one, two;

                open_with(8, colliding ? 0 : UINT64_MAX, colliding ? 0 : UINT64_MAX);
                one = put(1000, YOU "l pot");
                expect_found(1001, YOU "l pot", NULL, 0, 0);
                expect_found(0, YOU "l pot", NULL, 0, 0);
                expect_found(1000 + (UINT64_C(1) << 32), YOU "l pot", NULL, 0, 0);
                expect_found(PREFIX_PRINCIPALS + 1000, YOU "l pot", NULL, 0, 0);
                expect_found(1001, "You", NULL, 0, 0);

                two = put(1001, YOU "l pot");
                expect_counts(4, 0, 4); /* and nothing is one of both */
                expect_found(1000, YOU "l pot", &one, 1, 5);
                expect_found(1001, YOU "l pot", &two, 1, 5);
                close_pool();
        }
}

/* The numbers of principals begin above those of all groups. */
static void a_principal_is_a_user_and_not_public(void **state)
{
        (void)state;
        assert_false(prefix_is_public(UINT32_MAX));
        assert_true(prefix_is_public(PREFIX_EVERYONE));
        assert_true(prefix_is_public(PREFIX_GROUP(UINT32_MAX)));
        assert_false(prefix_is_public(PREFIX_PRINCIPALS));
        assert_false(prefix_is_public(UINT64_MAX));
}

static void does_not_find_a_block_after_a_different_prefix(void **state)
{
        (void)state;
        for (int colliding = 0; colliding < 2; colliding++) {
                struct text one, two;

                open_with(8, colliding ? 0 : UINT64_MAX, colliding ? 0 : UINT64_MAX);
                one = put(1, YOU URN "ea?");
                two = put(1, POT);
                expect_found(1, POT URN, &two, 1, 0);
                expect_found(1, POT "l", &two, 1, 0);
                expect_found(1, URN, NULL, 0, 0);
                expect_found(1, "l urn", NULL, 0, 0);
                expect_found(1, YOU URN URN, &one, 2, 0);
                expect_found(1, YOU "ea?", &one, 1, 0);

                two = put(1, POT URN);
                assert_int_not_equal(two.blocks[1], one.blocks[1]);
                expect_found(1, POT URN, &two, 2, 0);
                expect_found(1, YOU URN, &one, 2, 0);
                close_pool();
        }
}

static void a_hash_collision_is_not_a_hit(void **state)
{
        static const uint64_t masks[][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 }, { UINT64_MAX, 0 } };

        (void)state;
        for (int i = 0; i < 4; i++) {
                struct text one, two;

                open_with(8, masks[i][0], masks[i][1]);
                one = put(1, YOU URN);
                for (int k = 0; k < 2; k++) {
                        const struct prefix_node *node = &prefix.nodes[one.blocks[k]];

                        assert_true(!(node->hash[0] & ~masks[i][0]));
                        assert_true(!(node->hash[1] & ~masks[i][1]));
                }
                for (uint32_t other = 1; other < BLOCK_POSITIONS; other++) {
                        char words[] = YOU URN;

                        words[other] ^= 1;
                        expect_found(1, words, &one, 0, other);
                        words[other] ^= 1;
                        words[BLOCK_POSITIONS + other] ^= 1;
                        expect_found(1, words, &one, 1, other);
                }
                two = put(1, POT URN);
                expect_counts(4, 0, 4);
                expect_found(1, YOU URN, &one, 2, 0);
                expect_found(1, POT URN, &two, 2, 0);
                prefix_invalidate(&prefix, two.blocks[0]);
                expect_found(1, YOU URN, &one, 2, 0);
                close_pool();
        }
}

/* As a block that is dealt anew has another, nothing that followed it before is a hit. */
static void ignores_children_of_an_older_generation_of_a_block(void **state)
{
        struct text text;

        (void)state;
        open_pool(4);
        text = put(1, YOU URN "ea");
        prefix.nodes[text.blocks[0]].generation++;
        expect_found(1, YOU URN, &text, 1, 0);
        expect_found(1, YOU "l ur", &text, 1, 0);
        prefix.nodes[text.blocks[0]].generation--;
        expect_found(1, YOU URN "ea", &text, 2, 2);
        close_pool();
}

/* A block that was evicted and dealt anew is another, though it has the number. */
static void does_not_find_an_evicted_block(void **state)
{
        uint32_t generation;
        struct text text;

        (void)state;
        open_pool(2);
        text = put_and_release(1, YOU "l pot");
        generation = prefix.nodes[text.blocks[0]].generation;
        assert_int_equal(prefix_allocate(&prefix, 1), text.blocks[1]);
        expect_found(1, YOU "l pot", &text, 1, 0);
        assert_int_equal(prefix_allocate(&prefix, 1), text.blocks[0]);
        expect_found(1, YOU "l pot", &text, 0, 0);
        assert_int_equal(prefix.evictions, 2);
        assert_int_equal(insert(1, BLOCK_NONE, text.blocks[0], POT), text.blocks[0]);
        expect_found(1, POT "l pot", &text, 1, 0);
        assert_int_not_equal(prefix.nodes[text.blocks[0]].generation, generation);
        close_pool();
}

/* A name depends on the whole text: its owner, where it was computed, and every token before. */
static void a_block_hash_depends_on_the_whole_text_before_it(void **state)
{
        uint64_t names[7][2];
        struct prefix_conf conf;

        (void)state;
        for (int i = 0; i < 7; i++) {
                struct text text;

                conf = plain;
                conf.model_id += i == 1;
                conf.key[0] += i == 2;
                conf.key[1] += i == 3;
                assert_int_equal(prefix_init(&prefix, &conf, 4), 0);
                text = put(i == 4 ? 2 : 1, i == 5 ? POT URN : YOU URN);
                memcpy(names[i], prefix.nodes[text.blocks[1]].hash, sizeof(names[i]));
                close_pool();
        }
        for (int i = 1; i < 6; i++)
                for (int k = 0; k < i; k++) {
                        assert_true(names[i][0] != names[k][0]);
                        assert_true(names[i][1] != names[k][1]);
                }
        assert_memory_equal(names[0], names[6], sizeof(names[0]));
}

static void finds_a_block_as_far_as_it_was_inserted(void **state)
{
        struct text text = { .count = 1 };

        (void)state;
        open_pool(4);
        text.blocks[0] = prefix_allocate(&prefix, 1);
        for (uint32_t count = 1; count <= BLOCK_POSITIONS; count += count == 1 ? 2 : 1) {
                char words[] = YOU;

                words[count] = 0;
                for (int again = 0; again < 2; again++) {
                        assert_int_equal(insert(1, BLOCK_NONE, text.blocks[0], words),
                                         text.blocks[0]);
                        expect_found(1, YOU "l", &text, count == 16, count == 16 ? 0 : count);
                }
        }
        expect_counts(3, 0, 1);
        close_pool();
}

static void inserting_a_duplicate_returns_the_existing_block(void **state)
{
        struct text text;
        block_t second;

        (void)state;
        open_pool(4);
        text = put(1, YOU URN);
        second = prefix_allocate(&prefix, 1);
        prefix_ref(&prefix, text.blocks[0]);
        assert_int_equal(insert(1, text.blocks[0], second, "l urn. Wh"), second);
        assert_int_equal(insert(1, text.blocks[0], second, URN), text.blocks[1]);
        /* The block is reported, not referenced. */
        assert_int_equal(prefix.pool.ref_counts[text.blocks[1]], 1);

        /* Its own has no name any more, and not that of its part. */
        assert_int_equal(prefix.nodes[second].filled, 0);
        expect_found(1, YOU URN, &text, 2, 0);
        expect_found(1, YOU "l urn. W", &text, 1, 8);
        expect_counts(1, 0, 3);
        prefix_unref(&prefix, second);
        prefix_unref(&prefix, text.blocks[0]);
        expect_counts(2, 0, 2);

        /* ... even if the first is cached only. */
        release(&text);
        second = prefix_allocate(&prefix, 1);
        assert_int_equal(insert(1, BLOCK_NONE, second, YOU), text.blocks[0]);
        expect_counts(1, 2, 1);
        close_pool();
}

/*
 * A user that was told of the other block and kept its own may insert it once the first has gone.
 */
static void a_duplicate_can_be_inserted_once_the_first_block_is_evicted(void **state)
{
        struct text text, mine = { .count = 1 };

        (void)state;
        open_pool(2);
        text = put(1, YOU);
        mine.blocks[0] = prefix_allocate(&prefix, 1);
        assert_int_equal(insert(1, BLOCK_NONE, mine.blocks[0], YOU), text.blocks[0]);
        release(&text);
        assert_int_equal(prefix_allocate(&prefix, 1), text.blocks[0]);
        expect_found(1, YOU, &mine, 0, 0);
        assert_int_equal(insert(1, BLOCK_NONE, mine.blocks[0], YOU), mine.blocks[0]);
        expect_found(1, YOU, &mine, 1, 0);
        close_pool();
}

static void inserts_nothing_behind_an_unindexed_or_partial_block(void **state)
{
        struct text text = { .count = 2 };

        (void)state;
        open_pool(4);
        text.blocks[0] = prefix_allocate(&prefix, 1);
        text.blocks[1] = prefix_allocate(&prefix, 1);
        assert_int_equal(insert(1, text.blocks[0], text.blocks[1], URN), text.blocks[1]);
        expect_found(1, YOU URN, &text, 0, 0);
        expect_found(1, URN, &text, 0, 0);

        /* Nor behind a block that is inserted in part. */
        assert_int_equal(insert(1, BLOCK_NONE, text.blocks[0], "You are a helpf"), text.blocks[0]);
        assert_int_equal(insert(1, text.blocks[0], text.blocks[1], "l"), text.blocks[1]);
        assert_int_equal(insert(1, text.blocks[0], text.blocks[1], URN), text.blocks[1]);
        expect_found(1, YOU URN, &text, 0, 15);

        assert_int_equal(insert(1, BLOCK_NONE, text.blocks[0], YOU), text.blocks[0]);
        expect_found(1, YOU URN, &text, 1, 0);
        prefix_unref(&prefix, text.blocks[1]);
        expect_counts(3, 0, 1); /* it had no name, so it is free */
        close_pool();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(siphash_matches_its_published_vectors),
                cmocka_unit_test(siphash_handles_bytes_with_the_high_bit_set),
                cmocka_unit_test(an_empty_index_finds_nothing),
                cmocka_unit_test(finds_whole_blocks_from_the_beginning_only),
                cmocka_unit_test(finds_the_common_part_of_a_partial_block),
                cmocka_unit_test(finds_the_common_part_of_a_whole_block),
                cmocka_unit_test(finds_the_longest_of_several_partial_matches),
                cmocka_unit_test(finds_the_newest_and_every_whole_match_among_very_many),
                cmocka_unit_test(nothing_is_found_across_domains),
                cmocka_unit_test(a_principal_is_a_user_and_not_public),
                cmocka_unit_test(does_not_find_a_block_after_a_different_prefix),
                cmocka_unit_test(a_hash_collision_is_not_a_hit),
                cmocka_unit_test(ignores_children_of_an_older_generation_of_a_block),
                cmocka_unit_test(does_not_find_an_evicted_block),
                cmocka_unit_test(a_block_hash_depends_on_the_whole_text_before_it),
                cmocka_unit_test(finds_a_block_as_far_as_it_was_inserted),
                cmocka_unit_test(inserting_a_duplicate_returns_the_existing_block),
                cmocka_unit_test(a_duplicate_can_be_inserted_once_the_first_block_is_evicted),
                cmocka_unit_test(inserts_nothing_behind_an_unindexed_or_partial_block),
        };

        return cmocka_run_group_tests_name("prefix", tests, NULL, NULL);
}
