#include "daemon/constraint/regex-pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/constraint/regex-terms.h"

bool regex_burn(struct regex_pool *pool, uint64_t amount)
{
        if (pool->fuel < amount) {
                pool->fuel = 0;
                pool_fail(pool, REGEX_FUEL_SPENT);
                return false;
        }
        pool->fuel -= amount;
        return true;
}

uint32_t pool_fail(struct regex_pool *pool, enum regex_spent spent)
{
        if (pool->spent == REGEX_FINE)
                pool->spent = spent;
        return REGEX_NONE;
}

static uint32_t hash_words(const uint32_t *words, size_t count)
{
        uint32_t hash = 2166136261u;

        for (size_t i = 0; i < count; i++) {
                hash = (hash ^ words[i]) * 0x9e3779b1u;
                hash ^= hash >> 15;
        }
        return hash;
}

static bool same_term(const struct regex_pool *pool, const struct term *one,
                      const struct term *other, const uint32_t *children)
{
        if (one->kind != other->kind || one->b != other->b || one->c != other->c)
                return false;
        if (one->kind != TERM_OR && one->kind != TERM_AND)
                return one->a == other->a;
        for (uint32_t i = 0; i < one->b; i++)
                if (pool->children[one->a + i] != children[i])
                        return false;
        return true;
}

/* The one term that is equal to this; `children` are those of a union or an intersection. */
static uint32_t make(struct regex_pool *pool, struct term term, const uint32_t *children)
{
        bool has_children = term.kind == TERM_OR || term.kind == TERM_AND;
        uint32_t words[4] = { term.kind, has_children ? 0 : term.a, term.b, term.c };
        uint32_t hash = hash_words(words, 4), *bucket;

        if (has_children)
                hash ^= hash_words(children, term.b);
        bucket = &pool->buckets[hash & pool->bucket_mask];
        for (uint32_t at = *bucket; at; at = pool->terms[at].chain)
                if (same_term(pool, &pool->terms[at], &term, children))
                        return at;
        if (pool->spent != REGEX_FINE || !regex_burn(pool, 1))
                return REGEX_NONE;
        if (term.depth > DEPTH_MAX)
                return pool_fail(pool, REGEX_TOO_DEEP);
        if (pool->term_count == pool->terms_max ||
            (has_children && pool->children_max - pool->child_count < term.b))
                return pool_fail(pool, REGEX_TERMS_SPENT);
        if (has_children) {
                term.a = pool->child_count;
                memcpy(pool->children + term.a, children, term.b * sizeof(*children));
                pool->child_count += term.b;
        }
        term.life = term.complex ? LIFE_UNKNOWN : LIFE_ALIVE;
        term.chain = *bucket;
        pool->terms[pool->term_count] = term;
        return *bucket = pool->term_count++;
}

struct regex_pool *regex_pool_new(uint32_t terms_max)
{
        struct regex_pool *pool = calloc(1, sizeof(*pool));
        uint32_t buckets = 1024, byte, any;

        if (!pool)
                return NULL;
        while (buckets < terms_max / 8)
                buckets *= 2;
        pool->terms_max = terms_max;
        pool->children_max = terms_max * CHILDREN_A_TERM;
        pool->bucket_mask = buckets - 1;
        pool->terms = calloc(terms_max, sizeof(*pool->terms));
        pool->children = calloc(pool->children_max, sizeof(*pool->children));
        pool->buckets = calloc(buckets, sizeof(*pool->buckets));
        pool->sets = calloc(SETS_MAX, sizeof(*pool->sets));
        pool->numbers = calloc(NUMBERS_MAX, sizeof(*pool->numbers));
        pool->memo = calloc(MEMO_SLOTS, sizeof(*pool->memo));
        pool->scratch = calloc(SCRATCH_SIZE, sizeof(*pool->scratch));
        if (!pool->terms || !pool->children || !pool->buckets || !pool->sets || !pool->numbers ||
            !pool->memo || !pool->scratch)
                return regex_pool_free(pool);
        assert(terms_max > 16);
        pool->terms[REGEX_NONE] =
                (struct term){ .kind = TERM_NONE, .life = LIFE_DEAD, .finite = true };
        pool->terms[REGEX_EMPTY] = (struct term){
                .kind = TERM_EMPTY, .life = LIFE_ALIVE, .nullable = true, .finite = true
        };
        pool->term_count = 2;
        pool->fuel = 1000;
        byte = regex_range(pool, 0, 255);
        any = regex_repeat(pool, byte, 0, REGEX_FOREVER);
        assert(byte == REGEX_BYTE && any == REGEX_ANY);
        return pool;
}

void regex_pool_limit(struct regex_pool *pool, uint32_t more)
{
        if (pool->terms_max - pool->term_count > more)
                pool->terms_max = pool->term_count + more;
        if (pool->children_max - pool->child_count > more * CHILDREN_A_TERM)
                pool->children_max = pool->child_count + more * CHILDREN_A_TERM;
        pool->room = pool->terms_max - pool->term_count;
}

bool regex_is_crowded(const struct regex_pool *pool)
{
        return pool->terms_max - pool->term_count < pool->room / 2 ||
               pool->children_max - pool->child_count < pool->room / 2 ||
               pool->set_count > SETS_MAX / 2 || pool->number_count > NUMBERS_MAX / 2;
}

struct regex_pool *regex_pool_free(struct regex_pool *pool)
{
        if (!pool)
                return NULL;
        free(pool->terms);
        free(pool->children);
        free(pool->buckets);
        free(pool->sets);
        free(pool->numbers);
        free(pool->memo);
        free(pool->scratch);
        free(pool);
        return NULL;
}

enum regex_spent regex_spent(const struct regex_pool *pool)
{
        return pool->spent;
}

uint64_t regex_fuel(const struct regex_pool *pool)
{
        return pool->fuel;
}

void regex_refuel(struct regex_pool *pool, uint64_t fuel)
{
        pool->fuel = fuel;
        if (pool->spent == REGEX_FUEL_SPENT)
                pool->spent = REGEX_FINE;
}

uint32_t regex_terms(const struct regex_pool *pool)
{
        return pool->term_count;
}

size_t regex_pool_bytes(const struct regex_pool *pool)
{
        return sizeof(*pool) + pool->terms_max * sizeof(*pool->terms) +
               (size_t)pool->children_max * sizeof(*pool->children) +
               (pool->bucket_mask + 1ul) * sizeof(*pool->buckets) + SETS_MAX * sizeof(*pool->sets) +
               NUMBERS_MAX * sizeof(*pool->numbers) + MEMO_SLOTS * sizeof(*pool->memo) +
               SCRATCH_SIZE * sizeof(*pool->scratch);
}

bool regex_nullable(const struct regex_pool *pool, uint32_t term)
{
        return pool->terms[term].nullable;
}

uint32_t regex_set(struct regex_pool *pool, const struct byte_set *set)
{
        uint32_t index = 0;

        if (!(set->word[0] | set->word[1] | set->word[2] | set->word[3]))
                return REGEX_NONE;
        while (index < pool->set_count && memcmp(&pool->sets[index], set, sizeof(*set)) != 0)
                index++;
        if (index == SETS_MAX)
                return pool_fail(pool, REGEX_TERMS_SPENT);
        if (index == pool->set_count)
                pool->sets[pool->set_count++] = *set;
        return make(pool, (struct term){ .kind = TERM_SET, .a = index, .depth = 1, .finite = true },
                    NULL);
}

uint32_t regex_range(struct regex_pool *pool, uint8_t from, uint8_t to)
{
        struct byte_set set = { 0 };

        byte_set_add(&set, from, to);
        return regex_set(pool, &set);
}

uint32_t regex_literal(struct regex_pool *pool, const char *bytes, size_t count)
{
        uint32_t term = REGEX_EMPTY;

        while (count--)
                term = regex_concat(pool, regex_range(pool, bytes[count], bytes[count]), term);
        return term;
}

static uint32_t concat_two(struct regex_pool *pool, uint32_t first, uint32_t second)
{
        const struct term *a = &pool->terms[first], *b = &pool->terms[second];
        uint32_t inside = a->depth + 1, behind = b->depth + a->nullable;
        struct term term = {
                .kind = TERM_CONCAT,
                .nullable = a->nullable && b->nullable,
                .complex = a->complex || b->complex,
                .finite = a->finite && b->finite,
                .depth = inside > behind ? inside : behind,
                .a = first,
                .b = second,
        };

        if (first == REGEX_NONE || second == REGEX_NONE)
                return REGEX_NONE;
        if (first == REGEX_EMPTY || second == REGEX_EMPTY)
                return first == REGEX_EMPTY ? second : first;
        if (first == REGEX_ANY &&
            (second == REGEX_ANY || (b->kind == TERM_CONCAT && b->a == first)))
                return second;
        return make(pool, term, NULL);
}

/* Sequences lean to the right: ((ab)c)d and a(b(cd)) are one term. */
uint32_t regex_concat(struct regex_pool *pool, uint32_t first, uint32_t second)
{
        uint32_t base = pool->scratch_count;

        while (pool->terms[first].kind == TERM_CONCAT) {
                if (!pool_push(pool, pool->terms[first].a))
                        break;
                first = pool->terms[first].b;
        }
        second = concat_two(pool, first, second);
        while (pool->scratch_count > base)
                second = concat_two(pool, pool->scratch[--pool->scratch_count], second);
        return second;
}

uint32_t regex_not(struct regex_pool *pool, uint32_t term)
{
        const struct term *a = &pool->terms[term];

        if (term == REGEX_NONE || term == REGEX_ANY)
                return term == REGEX_NONE ? REGEX_ANY : REGEX_NONE;
        if (a->kind == TERM_NOT)
                return a->a;
        return make(pool,
                    (struct term){ .kind = TERM_NOT,
                                   .nullable = !a->nullable,
                                   .complex = true,
                                   .depth = a->depth + 1,
                                   .a = term },
                    NULL);
}

uint32_t regex_repeat(struct regex_pool *pool, uint32_t term, uint32_t min, uint32_t max)
{
        const struct term *a = &pool->terms[term];

        assert(min <= max);
        if (a->nullable)
                min = 0;
        if (max == 0 || term == REGEX_EMPTY || (term == REGEX_NONE && min == 0))
                return REGEX_EMPTY;
        if (term == REGEX_NONE || (min == 1 && max == 1))
                return term;
        if (a->kind == TERM_REPEAT && a->b == 0 && a->c == REGEX_FOREVER)
                return term;
        return make(pool,
                    (struct term){ .kind = TERM_REPEAT,
                                   .nullable = min == 0,
                                   .complex = a->complex,
                                   .finite = a->finite && max != REGEX_FOREVER,
                                   .depth = a->depth + 1,
                                   .a = term,
                                   .b = min,
                                   .c = max },
                    NULL);
}

uint32_t pool_number(struct regex_pool *pool, uint32_t range, struct number_state state)
{
        return make(pool,
                    (struct term){ .kind = TERM_NUMBER,
                                   .nullable = number_complete(&pool->numbers[range], state),
                                   .depth = 1,
                                   .a = range,
                                   .b = state.remainder,
                                   .c = state.packed },
                    NULL);
}

uint32_t regex_number(struct regex_pool *pool, const struct number_range *range)
{
        if (!number_possible(range, number_begin()))
                return REGEX_NONE;
        if (pool->number_count == NUMBERS_MAX)
                return pool_fail(pool, REGEX_TERMS_SPENT);
        pool->numbers[pool->number_count] = *range;
        return pool_number(pool, pool->number_count++, number_begin());
}

bool pool_push(struct regex_pool *pool, uint32_t term)
{
        if (pool->scratch_count == SCRATCH_SIZE) {
                pool_fail(pool, REGEX_TERMS_SPENT);
                return false;
        }
        pool->scratch[pool->scratch_count++] = term;
        return true;
}

static int compare(const void *one, const void *other)
{
        uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

        return (a > b) - (a < b);
}

/* Sets of a union or an intersection become one. */
static uint32_t merge_sets(struct regex_pool *pool, enum term_kind kind, uint32_t *list,
                           uint32_t count)
{
        struct byte_set set = { 0 };
        uint32_t kept = 0, sets = 0;

        if (kind == TERM_AND)
                byte_set_add(&set, 0, 255);
        for (uint32_t i = 0; i < count; i++) {
                const struct term *term = &pool->terms[list[i]];

                if (term->kind != TERM_SET) {
                        list[kept++] = list[i];
                        continue;
                }
                sets++;
                for (int word = 0; word < 4; word++)
                        set.word[word] = kind == TERM_AND
                                                 ? set.word[word] & pool->sets[term->a].word[word]
                                                 : set.word[word] | pool->sets[term->a].word[word];
        }
        if (sets)
                list[kept++] = regex_set(pool, &set);
        return kept;
}

static uint32_t combined(struct regex_pool *pool, enum term_kind kind, const uint32_t *list,
                         uint32_t count)
{
        struct term term = { .kind = kind, .nullable = kind == TERM_AND, .b = count };

        term.complex = kind == TERM_AND;
        term.finite = true;
        for (uint32_t i = 0; i < count; i++) {
                const struct term *child = &pool->terms[list[i]];

                term.nullable = kind == TERM_AND ? term.nullable && child->nullable
                                                 : term.nullable || child->nullable;
                term.complex |= child->complex;
                term.finite = term.finite && child->finite;
                if (term.depth <= child->depth)
                        term.depth = child->depth + 1;
        }
        return make(pool, term, list);
}

uint32_t pool_combine(struct regex_pool *pool, enum term_kind kind, uint32_t base)
{
        uint32_t zero = kind == TERM_OR ? REGEX_ANY : REGEX_NONE; /* absorbs all others */
        uint32_t unit = kind == TERM_OR ? REGEX_NONE : REGEX_ANY;
        uint32_t *list = pool->scratch + base, count, kept = 0;

        for (uint32_t i = base, end = pool->scratch_count; i < end; i++) {
                const struct term *term = &pool->terms[pool->scratch[i]];

                if (term->kind != kind)
                        continue;
                for (uint32_t j = 0; j < term->b; j++)
                        pool_push(pool, pool->children[term->a + j]);
                pool->scratch[i] = unit;
        }
        count = merge_sets(pool, kind, list, pool->scratch_count - base);
        pool->scratch_count = base;
        qsort(list, count, sizeof(*list), compare);
        for (uint32_t i = 0; i < count; i++) {
                if (list[i] == zero)
                        return zero;
                if (list[i] != unit && (kept == 0 || list[kept - 1] != list[i]))
                        list[kept++] = list[i];
        }
        if (!regex_burn(pool, count / 4))
                return REGEX_NONE;
        if (kept < 2)
                return kept ? list[0] : unit;
        return combined(pool, kind, list, kept);
}

static uint32_t combine_list(struct regex_pool *pool, enum term_kind kind, const uint32_t *terms,
                             uint32_t count)
{
        uint32_t base = pool->scratch_count;

        for (uint32_t i = 0; i < count; i++)
                pool_push(pool, terms[i]);
        return pool_combine(pool, kind, base);
}

uint32_t regex_or(struct regex_pool *pool, const uint32_t *terms, uint32_t count)
{
        return combine_list(pool, TERM_OR, terms, count);
}

uint32_t regex_and(struct regex_pool *pool, const uint32_t *terms, uint32_t count)
{
        return combine_list(pool, TERM_AND, terms, count);
}

uint32_t regex_or2(struct regex_pool *pool, uint32_t one, uint32_t other)
{
        return regex_or(pool, (uint32_t[]){ one, other }, 2);
}

uint32_t regex_and2(struct regex_pool *pool, uint32_t one, uint32_t other)
{
        return regex_and(pool, (uint32_t[]){ one, other }, 2);
}
