/* Derivatives, and the two searches that stand on them. */
#include <assert.h>
#include <string.h>

#include "daemon/constraint/regex-terms.h"
#include "daemon/constraint/regex-pool.h"

static uint32_t derive_children(struct regex_pool *pool, uint32_t at, uint8_t byte)
{
        const struct term *term = &pool->terms[at];
        uint32_t base = pool->scratch_count;

        for (uint32_t i = 0; i < term->b; i++)
                if (!pool_push(pool, regex_derive(pool, pool->children[term->a + i], byte)))
                        break;
        return pool_combine(pool, term->kind, base);
}

/* Along a sequence as long as what is in front may be empty; a loop, since sequences are long. */
static uint32_t derive_sequence(struct regex_pool *pool, uint32_t at, uint8_t byte)
{
        uint32_t base = pool->scratch_count;

        while (pool->terms[at].kind == TERM_CONCAT) {
                const struct term *term = &pool->terms[at];
                uint32_t rest = regex_derive(pool, term->a, byte);

                if (!pool_push(pool, regex_concat(pool, rest, term->b)))
                        break;
                if (!pool->terms[term->a].nullable)
                        return pool_combine(pool, TERM_OR, base);
                at = term->b;
        }
        pool_push(pool, regex_derive(pool, at, byte));
        return pool_combine(pool, TERM_OR, base);
}

static uint32_t derive_number(struct regex_pool *pool, const struct term *term, uint8_t byte)
{
        struct number_state state = { term->b, term->c };
        uint32_t range = term->a;

        if (!number_step(&pool->numbers[range], &state, byte))
                return REGEX_NONE;
        return pool_number(pool, range, state);
}

static uint32_t derive_repeat(struct regex_pool *pool, const struct term *term, uint8_t byte)
{
        uint32_t child = term->a, min = term->b ? term->b - 1 : 0;
        uint32_t max = term->c == REGEX_FOREVER ? REGEX_FOREVER : term->c - 1;

        return regex_concat(pool, regex_derive(pool, child, byte),
                            regex_repeat(pool, child, min, max));
}

static uint32_t derive(struct regex_pool *pool, uint32_t at, uint8_t byte)
{
        const struct term *term = &pool->terms[at];

        switch ((enum term_kind)term->kind) {
        case TERM_NONE:
        case TERM_EMPTY:
                return REGEX_NONE;
        case TERM_SET:
                return byte_set_has(&pool->sets[term->a], byte) ? REGEX_EMPTY : REGEX_NONE;
        case TERM_CONCAT:
                return derive_sequence(pool, at, byte);
        case TERM_OR:
        case TERM_AND:
                return derive_children(pool, at, byte);
        case TERM_NOT:
                return regex_not(pool, regex_derive(pool, term->a, byte));
        case TERM_REPEAT:
                return derive_repeat(pool, term, byte);
        case TERM_NUMBER:
                return derive_number(pool, term, byte);
        }
        assert(false);
        return REGEX_NONE;
}

uint32_t regex_derive(struct regex_pool *pool, uint32_t term, uint8_t byte)
{
        struct memo *memo = &pool->memo[(term * 0x9e3779b1u + byte * 0x85ebca6bu) % MEMO_SLOTS];
        uint32_t result;

        if (term <= REGEX_EMPTY)
                return REGEX_NONE;
        if (memo->term == term && memo->byte == byte)
                return memo->result;
        if (pool->spent != REGEX_FINE || !regex_burn(pool, 1))
                return REGEX_NONE;
        result = derive(pool, term, byte);
        if (pool->spent == REGEX_FINE)
                *memo = (struct memo){ term, byte, result };
        return result;
}

/* A class that has bytes inside and outside of the set is split. */
static void split_classes(struct regex_pool *pool, const struct byte_set *set)
{
        int16_t split[256];

        memset(split, -1, sizeof(split));
        for (unsigned byte = 0; byte < 256; byte++)
                if (!byte_set_has(set, byte))
                        split[pool->class_of[byte]] = pool->class_of[byte];
        for (unsigned byte = 0; byte < 256; byte++) {
                unsigned class = pool->class_of[byte];

                if (!byte_set_has(set, byte) || split[class] < 0)
                        continue;
                if (split[class] == (int)class)
                        split[class] = pool->classes++;
                pool->class_of[byte] = split[class];
        }
}

unsigned regex_classes(struct regex_pool *pool, uint8_t class_of[256])
{
        if (pool->classes == 0)
                pool->classes = 1;
        for (; pool->classed_sets < pool->set_count; pool->classed_sets++)
                split_classes(pool, &pool->sets[pool->classed_sets]);
        for (unsigned i = 0; i < 11 && pool->number_count && !pool->classed_numbers; i++) {
                struct byte_set set = { 0 };

                byte_set_add(&set, "0123456789."[i], "0123456789."[i]);
                split_classes(pool, &set);
        }
        pool->classed_numbers = pool->number_count > 0;
        memcpy(class_of, pool->class_of, sizeof(pool->class_of));
        return pool->classes;
}

/*
 * Searches for a text that matches, breadth first.  `queue` is on the scratch stack.  Terms that
 * are seen are marked DEAD until the search is over: if nothing is found, none of them matches
 * anything.
 */
static bool search(struct regex_pool *pool, uint32_t root)
{
        uint8_t class_of[256], example[256];
        unsigned classes = regex_classes(pool, class_of);
        uint32_t base = pool->scratch_count;
        bool found = false;

        for (unsigned byte = 0; byte < 256; byte++)
                example[class_of[byte]] = byte;
        pool_push(pool, root);
        pool->terms[root].life = LIFE_DEAD;
        for (uint32_t at = base; at < pool->scratch_count && !found; at++) {
                found = pool->terms[pool->scratch[at]].nullable;
                for (unsigned class = 0; class < classes && !found; class ++) {
                        uint32_t next = regex_derive(pool, pool->scratch[at], example[class]);

                        if (pool->spent != REGEX_FINE)
                                found = true;
                        else if (pool->terms[next].life == LIFE_ALIVE)
                                found = true;
                        else if (pool->terms[next].life == LIFE_UNKNOWN && pool_push(pool, next))
                                pool->terms[next].life = LIFE_DEAD;
                }
        }
        for (uint32_t at = base; at < pool->scratch_count && found; at++)
                pool->terms[pool->scratch[at]].life = LIFE_UNKNOWN;
        if (found && pool->spent == REGEX_FINE)
                pool->terms[root].life = LIFE_ALIVE;
        pool->scratch_count = base;
        return found;
}

bool regex_alive(struct regex_pool *pool, uint32_t term)
{
        switch ((enum term_life)pool->terms[term].life) {
        case LIFE_ALIVE:
                return true;
        case LIFE_DEAD:
                return false;
        case LIFE_UNKNOWN:
                break;
        }
        if (pool->terms[term].nullable) {
                pool->terms[term].life = LIFE_ALIVE;
                return true;
        }
        return search(pool, term);
}

/* Ranges of bytes that lead through plain characters. */
static const struct plain_range {
        uint8_t count, from[4], to[4];
} plain_ranges[] = {
        { 1, { 0x20 }, { 0x21 } },
        { 1, { 0x23 }, { 0x5b } },
        { 1, { 0x5d }, { 0x7e } },
        { 2, { 0xc2, 0x80 }, { 0xdf, 0xbf } },
        { 3, { 0xe0, 0xa0, 0x80 }, { 0xe0, 0xbf, 0xbf } },
        { 3, { 0xe1, 0x80, 0x80 }, { 0xec, 0xbf, 0xbf } },
        { 3, { 0xed, 0x80, 0x80 }, { 0xed, 0x9f, 0xbf } },
        { 3, { 0xee, 0x80, 0x80 }, { 0xef, 0xbf, 0xbf } },
        { 4, { 0xf0, 0x90, 0x80, 0x80 }, { 0xf0, 0xbf, 0xbf, 0xbf } },
        { 4, { 0xf1, 0x80, 0x80, 0x80 }, { 0xf3, 0xbf, 0xbf, 0xbf } },
        { 4, { 0xf4, 0x80, 0x80, 0x80 }, { 0xf4, 0x8f, 0xbf, 0xbf } },
};

/* Whether the expression is one character, and may be any plain one. */
static bool takes_plain(struct regex_pool *pool, uint32_t term)
{
        for (size_t i = 0; i < sizeof(plain_ranges) / sizeof(*plain_ranges); i++) {
                const struct plain_range *range = &plain_ranges[i];
                uint32_t at = term;

                for (unsigned j = 0; j < range->count; j++) {
                        uint32_t next = regex_derive(pool, at, range->from[j]);

                        for (unsigned byte = range->from[j] + 1u; byte <= range->to[j]; byte++)
                                if (regex_derive(pool, at, byte) != next)
                                        return false;
                        at = next;
                }
                if (at != REGEX_EMPTY)
                        return false;
        }
        return true;
}

static bool repeats_plain(struct regex_pool *pool, const struct term *repeat)
{
        if (repeat->kind != TERM_REPEAT)
                return false;
        if (repeat->a != pool->plain_asked) {
                pool->plain_asked = repeat->a;
                pool->plain_answer = takes_plain(pool, repeat->a);
        }
        return pool->plain_answer;
}

/* Any characters without an end, but for finitely many texts: none of those is the only way on. */
static bool excludes_few(struct regex_pool *pool, const struct term *both)
{
        bool repeats = false;

        for (uint32_t i = 0; i < both->b; i++) {
                const struct term *term = &pool->terms[pool->children[both->a + i]];

                if (term->kind == TERM_NOT && pool->terms[term->a].finite)
                        continue;
                if (repeats || term->c != REGEX_FOREVER || !repeats_plain(pool, term))
                        return false;
                repeats = true;
        }
        return repeats;
}

uint32_t regex_plain(struct regex_pool *pool, uint32_t term)
{
        const struct term *first;

        if (pool->terms[term].kind == TERM_CONCAT) {
                if (!regex_alive(pool, pool->terms[term].b))
                        return 0;
                term = pool->terms[term].a;
        }
        first = &pool->terms[term];
        if (first->kind == TERM_AND)
                return excludes_few(pool, first) ? REGEX_FOREVER : 0;
        return repeats_plain(pool, first) ? first->c : 0;
}
