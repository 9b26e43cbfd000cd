/*
 * Texts in a prefix index.  A text is a string, each of its letters is a token, and sixteen
 * tokens are a block.
 */
#ifndef TESTS_UNIT_PREFIX_RIG_H
#define TESTS_UNIT_PREFIX_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"

/* Blocks of text, in the order in which they follow each other. */
#define YOU "You are a helpfu"
#define POT "You are a teapot"
#define URN "l urn. What is t"
#define CUP "l cup. What is t"
#define TEA "ea made of? Tell"

enum { TEXT_MAX = 128 };

/* A reader that looks into these domains; the first is its own. */
#define READER(...)                                                                                \
        (&(struct prefix_reader){ .domains = { __VA_ARGS__ },                                      \
                                  .count = sizeof((uint64_t[]){ __VA_ARGS__ }) /                   \
                                           sizeof(uint64_t) })

static struct prefix prefix;

static const struct prefix_conf plain = { .key = { 1, 2 }, .model_id = 3 };

static inline void open_with(uint32_t blocks, uint64_t mask0, uint64_t mask1)
{
        struct prefix_conf conf = plain;

        conf.ignored_hash_bits[0] = ~mask0;
        conf.ignored_hash_bits[1] = ~mask1;
        assert_int_equal(prefix_init(&prefix, &conf, blocks), 0);
        prefix_check(&prefix);
}

static inline void open_pool(uint32_t blocks)
{
        open_with(blocks, UINT64_MAX, UINT64_MAX);
}

static inline void close_pool(void)
{
        prefix_check(&prefix);
        prefix_deinit(&prefix);
}

static inline void expect_counts(uint32_t free, uint32_t cached, uint32_t in_use)
{
        prefix_check(&prefix);
        assert_int_equal(prefix.pool.free.count, free);
        assert_int_equal(prefix.pool.cached_count, cached);
        assert_int_equal(kvpool_in_use(&prefix.pool), in_use);
        assert_int_equal(prefix_available(&prefix), free + cached);
}

static inline uint32_t tokens_of(const char *words, uint32_t tokens[TEXT_MAX])
{
        uint32_t count = (uint32_t)strlen(words);

        assert_true(count <= TEXT_MAX);
        for (uint32_t i = 0; i < count; i++)
                tokens[i] = (unsigned char)words[i];
        return count;
}

/* A text in the pool, referenced. */
struct text {
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS];
        uint32_t count;
};

static inline block_t insert(uint64_t domain, block_t parent, block_t block, const char *words)
{
        uint32_t tokens[TEXT_MAX], count = tokens_of(words, tokens);
        block_t same = prefix_insert(&prefix, domain, parent, block, tokens, count);

        prefix_check(&prefix);
        return same;
}

/* Writes and inserts the text's blocks.  A block that was inserted before is taken instead. */
static inline struct text put(uint64_t domain, const char *words)
{
        struct text text = { .count = 0 };
        size_t length = strlen(words);

        for (size_t at = 0; at < length; at += BLOCK_POSITIONS) {
                block_t parent = at ? text.blocks[text.count - 1] : BLOCK_NONE;
                block_t own = prefix_allocate(&prefix, domain), same;
                char part[BLOCK_POSITIONS + 1] = { 0 };

                memcpy(part, words + at,
                       length - at < BLOCK_POSITIONS ? length - at : BLOCK_POSITIONS);
                same = insert(domain, parent, own, part);
                if (same != own) {
                        prefix_ref(&prefix, same);
                        prefix_unref(&prefix, own);
                }
                text.blocks[text.count++] = same;
        }
        prefix_check(&prefix);
        return text;
}

static inline void release(const struct text *text)
{
        for (uint32_t i = text->count; i--;)
                prefix_unref(&prefix, text->blocks[i]);
        prefix_check(&prefix);
}

static inline struct text put_and_release(uint64_t domain, const char *words)
{
        struct text text = put(domain, words);

        release(&text);
        return text;
}

/*
 * Expects that whole_count blocks of this text are found whole, and tail_count tokens of the
 * next block.
 */
static inline void expect_found(uint64_t domain, const char *words, const struct text *text,
                                uint32_t whole_count, uint32_t tail_count)
{
        uint32_t tokens[TEXT_MAX], count = tokens_of(words, tokens);
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS + 1];
        struct prefix_hit hit;

        for (uint32_t i = 0; i <= TEXT_MAX / BLOCK_POSITIONS; i++)
                blocks[i] = 12345;
        prefix_find(&prefix, READER(domain), tokens, count, blocks, &hit);
        assert_int_equal(hit.whole_count, whole_count);
        for (uint32_t i = 0; i < whole_count; i++)
                assert_int_equal(blocks[i], text->blocks[i]);
        assert_int_equal(blocks[count / BLOCK_POSITIONS], 12345); /* there is no space for it */
        assert_int_equal(hit.tail_count, tail_count);
        assert_int_equal(hit.tail, tail_count ? text->blocks[whole_count] : BLOCK_NONE);
}

#endif
