/*
 * Public names in the prefix index: who finds a published text, who owns which part of it, and
 * which blocks go when it is revoked.  Users are 1 and 2; EVERYONE and STAFF are public.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"
#include "tests/unit/prefix-rig.h"

#define EVERYONE PREFIX_EVERYONE
#define STAFF    PREFIX_GROUP(1)

static void open_public(uint32_t blocks)
{
        struct prefix_conf conf = plain;

        conf.pins = 4;
        assert_int_equal(prefix_init(&prefix, &conf, blocks), 0);
}

/* A text that is published with this pin, and not referenced. */
static struct text publish(uint64_t domain, const char *words, uint32_t pin)
{
        struct text text = put(domain, words);

        prefix_publish(&prefix, pin, text.blocks[text.count - 1]);
        release(&text);
        return text;
}

static void revoke(uint32_t pin)
{
        prefix_set_pin(&prefix, pin, BLOCK_NONE);
        prefix_check(&prefix);
}

static struct prefix_hit find(const struct prefix_reader *reader, const char *words,
                              block_t *ret_blocks)
{
        uint32_t tokens[TEXT_MAX], count = tokens_of(words, tokens);
        struct prefix_hit hit;

        prefix_find(&prefix, reader, tokens, count, ret_blocks, &hit);
        return hit;
}

static void expect(const struct prefix_reader *reader, const char *words, uint32_t positions)
{
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS];
        struct prefix_hit hit = find(reader, words, blocks);

        assert_int_equal(prefix_hit_positions(&hit), positions);
}

/*
 * A user continues behind the blocks that it found.  It holds all of them, and the rest is its
 * own.
 */
static struct text go_on(const struct prefix_reader *reader, const char *words)
{
        uint32_t tokens[TEXT_MAX], count = tokens_of(words, tokens);
        struct prefix_hit hit;
        struct text text;

        prefix_find(&prefix, reader, tokens, count, text.blocks, &hit);
        text.count = hit.whole_count;
        for (uint32_t i = 0; i < text.count; i++)
                prefix_ref(&prefix, text.blocks[i]);
        while (text.count * BLOCK_POSITIONS < count) {
                uint32_t at = text.count * BLOCK_POSITIONS;
                block_t own = prefix_allocate(&prefix, reader->domains[0]);

                prefix_insert(&prefix, reader->domains[0],
                              at ? text.blocks[text.count - 1] : BLOCK_NONE, own, tokens + at,
                              count - at < BLOCK_POSITIONS ? count - at : BLOCK_POSITIONS);
                text.blocks[text.count++] = own;
        }
        prefix_check(&prefix);
        return text;
}

static void only_readers_of_its_group_find_a_published_text(void **state)
{
        (void)state;
        open_public(8);
        publish(EVERYONE, YOU URN "ea", 1);
        publish(STAFF, TEA POT, 2);
        expect(READER(2, STAFF, EVERYONE), YOU URN "east", 34);
        expect(READER(2, EVERYONE), YOU URN "east", 34);
        expect(READER(2), YOU URN "east", 0);
        expect(READER(2, STAFF, EVERYONE), TEA POT, 32);
        expect(READER(2, EVERYONE), TEA POT, 0);
        expect(READER(2, PREFIX_GROUP(2), EVERYONE), TEA POT, 0);
        close_pool();
}

static void only_the_publisher_finds_a_text_before_it_is_published(void **state)
{
        struct text text;

        (void)state;
        open_public(8);
        text = put(EVERYONE, YOU URN "ea");
        expect(READER(2, EVERYONE), YOU URN "ea", 0);
        expect(READER(EVERYONE), YOU URN "ea", 34); /* the publisher, too */
        prefix_publish(&prefix, 1, text.blocks[1]);
        expect(READER(2, EVERYONE), YOU URN "ea", 32);
        prefix_publish(&prefix, 2, text.blocks[2]);
        expect(READER(2, EVERYONE), YOU URN "ea", 34);
        release(&text);
        close_pool();
}

/* Behind a public block each user has blocks of its own. */
static void blocks_after_a_public_text_are_private_to_their_user(void **state)
{
        struct text his, hers;

        (void)state;
        open_public(12);
        publish(EVERYONE, YOU URN, 1);
        his = go_on(READER(1, EVERYONE), YOU URN TEA "!");
        release(&his);
        expect(READER(1, EVERYONE), YOU URN TEA "!", 49);
        expect(READER(2, EVERYONE), YOU URN TEA "!", 32);
        /* it hangs below blocks that the user must not see */
        expect(READER(1), YOU URN TEA "!", 0);
        hers = go_on(READER(2, EVERYONE), YOU URN TEA "?");
        release(&hers);
        assert_int_not_equal(his.blocks[2], hers.blocks[2]);
        expect(READER(2, EVERYONE), YOU URN TEA "?", 49);
        expect(READER(1, EVERYONE), YOU URN TEA "?", 48);
        close_pool();
}

static void the_longest_match_wins_and_of_equal_ones_the_users_own(void **state)
{
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS];
        struct text own, public, staff;
        struct prefix_hit hit;

        (void)state;
        open_public(12);
        own = put_and_release(1, YOU URN "e");
        public = publish(EVERYONE, YOU URN TEA, 1);
        staff = publish(STAFF, YOU, 2);
        hit = find(READER(1, STAFF, EVERYONE), YOU URN, blocks);
        assert_int_equal(hit.whole_count, 2);
        assert_int_equal(blocks[1], own.blocks[1]);
        hit = find(READER(1, STAFF, EVERYONE), YOU URN TEA, blocks);
        assert_int_equal(hit.whole_count, 3);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(blocks[i], public.blocks[i]);
        hit = find(READER(2, STAFF, EVERYONE), YOU "zzz", blocks);
        assert_int_equal(blocks[0], staff.blocks[0]);
        close_pool();
}

/*
 * The public names go, and so do those of users that had continued behind them.  A user's own
 * copy stays.
 */
static void a_revoked_text_is_found_by_no_user(void **state)
{
        struct text his;

        (void)state;
        open_public(12);
        put_and_release(1, YOU URN TEA);
        publish(EVERYONE, YOU URN TEA, 1);
        his = go_on(READER(2, EVERYONE), YOU URN TEA "!");
        revoke(1);
        expect(READER(2, EVERYONE), YOU URN TEA "!", 0);
        expect(READER(1, EVERYONE), YOU URN TEA "!", 48);
        release(&his);
        expect(READER(2, EVERYONE), YOU URN TEA "!", 0);
        expect_counts(9, 3, 0);
        close_pool();
}

/*
 * One text begins with the other: the part that both have published stays until both have
 * revoked it.
 */
static void a_text_of_two_publishers_stays_until_both_revoke_it(void **state)
{
        (void)state;
        open_public(8);
        publish(EVERYONE, YOU URN, 1);
        publish(EVERYONE, YOU URN TEA, 2);
        publish(EVERYONE, YOU CUP, 3);
        expect_counts(4, 4, 0);
        revoke(2);
        expect(READER(2, EVERYONE), YOU URN TEA, 32);
        revoke(1);
        expect(READER(2, EVERYONE), YOU URN TEA, 18); /* "l " is of CUP */
        expect(READER(2, EVERYONE), YOU CUP, 32);
        revoke(3);
        expect_counts(8, 0, 0);

        publish(EVERYONE, YOU URN TEA, 2);
        publish(EVERYONE, YOU, 1);
        revoke(2);
        expect(READER(2, EVERYONE), YOU URN TEA, 16);
        revoke(1);
        expect_counts(8, 0, 0);
        close_pool();
}

/* If a text was evicted in part, only the remaining part is published, and revoked. */
static void revoking_a_partly_evicted_text_is_fine(void **state)
{
        struct text text;

        (void)state;
        open_public(3);
        text = publish(EVERYONE, YOU URN TEA, 1);
        assert_int_equal(prefix_allocate(&prefix, 1), text.blocks[2]);
        prefix_check(&prefix);
        expect(READER(2, EVERYONE), YOU URN TEA, 32);
        revoke(1);
        expect(READER(2, EVERYONE), YOU URN TEA, 0);
        expect_counts(2, 0, 1);

        publish(EVERYONE, YOU URN, 1);
        prefix_allocate(&prefix, 1);
        prefix_allocate(&prefix, 1);
        prefix_check(&prefix);
        revoke(1);
        close_pool();
}

/* The result is the same whether or not another user has anything behind it. */
static void a_divergence_reveals_nothing_of_other_users_behind_a_public_text(void **state)
{
        struct prefix_hit before, after;
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS];
        struct text text;

        (void)state;
        open_public(40);
        publish(EVERYONE, YOU URN "ea", 1);
        before = find(READER(2, EVERYONE), YOU URN TEA, blocks);
        assert_int_equal(before.diverged_at, 0);
        for (uint32_t i = 0; i < 2; i++) {
                text = go_on(READER(1, EVERYONE), i ? YOU URN "early" : YOU URN "ea made up.");
                release(&text);
                after = find(READER(2, EVERYONE), YOU URN TEA, blocks);
                assert_memory_equal(&before, &after, sizeof(before));
        }
        /* A user is told about the published text itself, and about its own. */
        after = find(READER(2, EVERYONE), YOU URN "early", blocks);
        assert_int_equal(prefix_hit_positions(&after), 34);
        assert_int_equal(after.diverged_at, 0);
        after = find(READER(2, EVERYONE), YOU URN "eb", blocks);
        assert_int_equal(after.diverged_at, 33);
        assert_int_equal(after.diverged_cached_token, 'a');
        text = go_on(READER(2, EVERYONE), YOU URN "x-rays");
        release(&text);
        after = find(READER(2, EVERYONE), YOU URN "x-eyes", blocks);
        assert_int_equal(after.diverged_at, 34);
        assert_int_equal(after.diverged_cached_token, 'r');
        after = find(READER(1, EVERYONE), YOU URN "x-eyes", blocks);
        assert_int_equal(prefix_hit_positions(&after), 32);
        assert_int_equal(after.diverged_at, 0);
        close_pool();
}

static void of_equal_divergences_the_public_one_is_reported(void **state)
{
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS];
        struct prefix_hit hit;
        struct text text;

        (void)state;
        open_public(40);
        publish(EVERYONE, YOU URN "ea", 1);
        text = go_on(READER(2, EVERYONE), YOU URN "egg");
        release(&text);
        hit = find(READER(2, EVERYONE), YOU URN "eye", blocks);
        assert_int_equal(hit.diverged_at, 33);
        assert_int_equal(hit.diverged_cached_token, 'a'); /* though the other was inserted later */
        hit = find(READER(2, EVERYONE), YOU URN "ego", blocks);
        assert_int_equal(hit.diverged_at, 34); /* ... unless the user's own text is longer */
        assert_int_equal(hit.diverged_cached_token, 'g');
        close_pool();
}

/* A thousand other texts behind one public block do not make a user's own text harder to find. */
static void many_private_texts_behind_a_public_one_do_not_hide_a_users_own(void **state)
{
        struct text text;

        (void)state;
        open_public(400);
        publish(EVERYONE, YOU, 1);
        text = go_on(READER(1, EVERYONE), YOU URN "mine");
        release(&text);
        for (uint64_t user = 100; user < 230; user++) {
                text = go_on(READER(user, EVERYONE), YOU URN "mine");
                release(&text);
        }
        expect(READER(1, EVERYONE), YOU URN "mine", 36);
        expect(READER(3, EVERYONE), YOU URN "mine", 16);
        close_pool();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_readers_of_its_group_find_a_published_text),
                cmocka_unit_test(only_the_publisher_finds_a_text_before_it_is_published),
                cmocka_unit_test(blocks_after_a_public_text_are_private_to_their_user),
                cmocka_unit_test(the_longest_match_wins_and_of_equal_ones_the_users_own),
                cmocka_unit_test(a_revoked_text_is_found_by_no_user),
                cmocka_unit_test(a_text_of_two_publishers_stays_until_both_revoke_it),
                cmocka_unit_test(revoking_a_partly_evicted_text_is_fine),
                cmocka_unit_test(a_divergence_reveals_nothing_of_other_users_behind_a_public_text),
                cmocka_unit_test(of_equal_divergences_the_public_one_is_reported),
                cmocka_unit_test(many_private_texts_behind_a_public_one_do_not_hide_a_users_own),
        };

        return cmocka_run_group_tests_name("prefix-public", tests, NULL, NULL);
}
