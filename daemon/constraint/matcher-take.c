#include "daemon/constraint/matcher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/constraint/matcher-state.h"

#define REGISTER_WORDS (1u << 16) /* of all registers, if objects are not larger */

const struct matcher_limits matcher_limits_default = {
        .items = 40000,
        .row_items = 2000,
        .back_max = 64,
        .depth = 1024,
        .fuel = 4000000,
};

static uint32_t power_of_two(uint32_t least)
{
        uint32_t power = 16;

        while (power < least)
                power *= 2;
        return power;
}

static bool allocate(struct matcher *matcher)
{
        const struct grammar *grammar = matcher->grammar;

        matcher->rows = calloc(matcher->rows_max, sizeof(*matcher->rows));
        matcher->items = calloc(matcher->limits.items, sizeof(*matcher->items));
        matcher->threads = calloc(matcher->threads_max, sizeof(*matcher->threads));
        matcher->positions = calloc(matcher->positions_max, sizeof(*matcher->positions));
        matcher->registers = calloc((size_t)matcher->registers_max * matcher->words,
                                    sizeof(*matcher->registers));
        matcher->marks = calloc(matcher->limits.back_max + 1ul, sizeof(*matcher->marks));
        matcher->seen = calloc(matcher->seen_mask + 1ul, sizeof(*matcher->seen));
        matcher->lexeme_stamps =
                calloc(grammar->lexer.lexeme_count + 1ul, sizeof(*matcher->lexeme_stamps));
        matcher->expected = calloc(grammar->lexer.lexeme_count + 1ul, sizeof(*matcher->expected));
        matcher->rule_stamps = calloc(grammar->rule_count, sizeof(*matcher->rule_stamps));
        matcher->remap =
                calloc((size_t)matcher->rows_max + matcher->registers_max, sizeof(*matcher->remap));
        return inside_init(&matcher->inside, matcher->trie->words) && matcher->rows &&
               matcher->items && matcher->threads && matcher->positions && matcher->registers &&
               matcher->marks && matcher->seen && matcher->lexeme_stamps && matcher->expected &&
               matcher->rule_stamps && matcher->remap;
}

struct matcher *matcher_new(struct grammar *grammar, const struct token_trie *trie,
                            const struct matcher_limits *limits)
{
        struct matcher *matcher = calloc(1, sizeof(*matcher));

        if (!matcher)
                return NULL;
        matcher->grammar = grammar;
        matcher->trie = trie;
        matcher->limits = *limits;
        matcher->rows_max = limits->items / 2;
        matcher->threads_max = limits->items;
        matcher->positions_max = limits->items;
        matcher->words = grammar->register_words ? grammar->register_words : 1;
        matcher->registers_max = REGISTER_WORDS / matcher->words + 256;
        matcher->seen_mask = power_of_two(2 * limits->row_items) - 1;
        return allocate(matcher) ? matcher : matcher_free(matcher);
}

struct matcher *matcher_free(struct matcher *matcher)
{
        if (!matcher)
                return NULL;
        free(matcher->rows);
        free(matcher->items);
        free(matcher->threads);
        free(matcher->positions);
        free(matcher->registers);
        free(matcher->marks);
        free(matcher->seen);
        free(matcher->lexeme_stamps);
        free(matcher->rule_stamps);
        free(matcher->expected);
        free(matcher->remap);
        inside_deinit(&matcher->inside);
        free(matcher);
        return NULL;
}

size_t matcher_bytes(const struct matcher *matcher)
{
        const struct lexer *lexer = &matcher->grammar->lexer;

        return sizeof(*matcher) + inside_bytes(&matcher->inside) +
               matcher->rows_max * sizeof(*matcher->rows) +
               matcher->limits.items * sizeof(*matcher->items) +
               matcher->threads_max * sizeof(*matcher->threads) +
               matcher->positions_max * sizeof(*matcher->positions) +
               ((size_t)matcher->registers_max * (matcher->words + 1) + matcher->rows_max +
                matcher->limits.back_max + 2ul * lexer->lexeme_count +
                matcher->grammar->rule_count) *
                       sizeof(uint32_t) +
               (matcher->seen_mask + 1ul) * sizeof(*matcher->seen);
}

void matcher_reset(struct matcher *matcher)
{
        matcher->row_count = matcher->item_count = matcher->thread_count = 0;
        matcher->position_count = matcher->register_count = 0;
        matcher->why = NULL;
        regex_refuel(matcher->grammar->pool, matcher->limits.fuel);
        matcher_push_first(matcher);
        matcher->marks[0] = 0;
        matcher->mark_count = 1;
}

enum push matcher_spend(struct matcher *matcher, const char *why)
{
        if (!matcher->why)
                matcher->why = why;
        return PUSH_SPENT;
}

uint64_t matcher_used(const struct matcher *matcher)
{
        return matcher->limits.fuel - regex_fuel(matcher->grammar->pool);
}

const char *matcher_why(const struct matcher *matcher)
{
        assert(matcher->why);
        return matcher->why;
}

void matcher_cut(struct matcher *matcher, uint32_t position)
{
        const struct position *at = &matcher->positions[position];

        matcher->position_count = position + 1;
        matcher->thread_count = at->threads_end;
        matcher->row_count = at->rows_end;
        matcher->register_count = at->registers_end;
        matcher->item_count = at->rows_end ? matcher->rows[at->rows_end - 1].items_end : 0;
}

static enum matcher_outcome take(struct matcher *matcher, const uint8_t *bytes, size_t count)
{
        uint32_t before = matcher->position_count - 1;

        if (matcher->why)
                return MATCHER_SPENT;
        regex_refuel(matcher->grammar->pool, matcher->limits.fuel);
        matcher_compact(matcher);
        before = matcher->position_count - 1;
        for (size_t i = 0; i < count; i++) {
                enum push pushed = matcher_push(matcher, bytes[i]);

                if (pushed == PUSH_SPENT)
                        return MATCHER_SPENT;
                if (pushed == PUSH_DEAD) {
                        matcher_cut(matcher, before);
                        return MATCHER_ILLEGAL;
                }
        }
        if (matcher->mark_count == matcher->limits.back_max + 1) {
                memmove(matcher->marks, matcher->marks + 1,
                        matcher->limits.back_max * sizeof(*matcher->marks));
                matcher->mark_count--;
        }
        matcher->marks[matcher->mark_count++] = matcher->position_count - 1;
        return MATCHER_FINE;
}

static bool is_control(const struct token_trie *trie, uint32_t token)
{
        for (uint32_t i = 0; i < trie->control_count; i++)
                if (trie->controls[i] == token)
                        return true;
        return false;
}

enum matcher_outcome matcher_take(struct matcher *matcher, uint32_t token)
{
        const struct token_trie *trie = matcher->trie;
        uint8_t control[TOKEN_BYTES];

        assert(token < trie->token_count);
        if (is_control(trie, token)) {
                grammar_token_bytes(token, control);
                return take(matcher, control, TOKEN_BYTES);
        }
        if (trie->offsets[token] == trie->offsets[token + 1])
                return matcher->why ? MATCHER_SPENT : MATCHER_ILLEGAL;
        return take(matcher, (const uint8_t *)trie->texts + trie->offsets[token],
                    trie->offsets[token + 1] - trie->offsets[token]);
}

enum matcher_outcome matcher_take_bytes(struct matcher *matcher, const char *bytes, size_t count)
{
        return take(matcher, (const uint8_t *)bytes, count);
}

uint32_t matcher_back_most(const struct matcher *matcher)
{
        return matcher->mark_count - 1;
}

void matcher_back(struct matcher *matcher, uint32_t count)
{
        assert(count < matcher->mark_count);
        matcher->why = NULL;
        matcher->mark_count -= count;
        matcher_cut(matcher, matcher->marks[matcher->mark_count - 1]);
}

#define COPY(member, count) memcpy(to->member, from->member, (count) * sizeof(*to->member))

void matcher_copy(struct matcher *to, const struct matcher *from)
{
        assert(to->grammar == from->grammar && to->trie == from->trie && to != from);
        assert(memcmp(&to->limits, &from->limits, sizeof(to->limits)) == 0);
        COPY(rows, from->row_count);
        COPY(items, from->item_count);
        COPY(threads, from->thread_count);
        COPY(positions, from->position_count);
        COPY(registers, (size_t)from->register_count * from->words);
        COPY(marks, from->mark_count);
        to->row_count = from->row_count;
        to->item_count = from->item_count;
        to->thread_count = from->thread_count;
        to->position_count = from->position_count;
        to->register_count = from->register_count;
        to->mark_count = from->mark_count;
        to->why = from->why;
}

bool matcher_can_end(const struct matcher *matcher)
{
        const struct position *last = &matcher->positions[matcher->position_count - 1];

        if (last->row != ROW_NONE && matcher->rows[last->row].ends)
                return true;
        for (uint32_t i = matcher_first_thread(matcher, matcher->position_count - 1);
             i < last->threads_end; i++)
                if (matcher->grammar->lexer.states[matcher->threads[i].state].tail_ends)
                        return true;
        return false;
}

bool matcher_must_end(const struct matcher *matcher)
{
        uint32_t last = matcher->position_count - 1;

        return matcher_can_end(matcher) &&
               matcher_first_thread(matcher, last) == matcher->positions[last].threads_end;
}
