/* Which tokens, and which bytes, may come next. */
#include <string.h>

#include "daemon/constraint/matcher-state.h"

static void set_bit(uint32_t *bits, uint32_t token)
{
        bits[token >> 5] |= 1u << (token & 31);
}

static void set_token(const struct token_trie *trie, uint32_t *bits, uint32_t token)
{
        for (; token != TOKEN_TRIE_NONE; token = trie->same[token])
                set_bit(bits, token);
}

/*
 * A place of the walk.  It is *quiet* if a single lexeme is being read there and nothing has ended:
 * then a state of the lexer says all, and a step is one look into a table.  Other places are
 * positions of the matcher.
 */
struct place {
        uint32_t position; /* of this place, or of the last one before it that is not quiet */
        uint32_t row, state;
        bool quiet;
};

static struct place last_place(const struct matcher *matcher, uint32_t before)
{
        uint32_t last = matcher->position_count - 1;
        uint32_t first = matcher_first_thread(matcher, last);
        const struct position *position = &matcher->positions[last];
        struct place place = { .position = last };

        if (position->threads_end - first != 1 || (position->row != ROW_NONE && before != ROW_NONE))
                return place;
        place.quiet = true;
        place.position = before == ROW_NONE ? last : before;
        place.row = matcher->threads[first].row;
        place.state = matcher->threads[first].state;
        return place;
}

/* One step by a table, or by the matcher where a lexeme ends or several are read. */
static enum push step(struct matcher *matcher, const struct place *from, uint8_t byte,
                      struct place *to)
{
        struct lexer *lexer = &matcher->grammar->lexer;
        enum push pushed;

        if (from->quiet) {
                uint32_t state = lexer_next(lexer, from->state, byte);

                if (state == LEXER_DEAD)
                        return PUSH_DEAD;
                if (state != LEXER_SPENT && lexer->states[state].accept_count == 0) {
                        *to = (struct place){ from->position, from->row, state, true };
                        return PUSH_FINE;
                }
        }
        matcher_cut(matcher, from->position);
        if (from->quiet && matcher_resume(matcher, from->row, from->state) == PUSH_SPENT)
                return PUSH_SPENT;
        pushed = matcher_push(matcher, byte);
        if (pushed == PUSH_FINE)
                *to = last_place(matcher, from->position);
        return pushed;
}

/* Reads the texts of all tokens of the slice, each common beginning once. */
static enum push walk(struct matcher *matcher, const struct trie_slice *slice, uint32_t *bits)
{
        uint32_t base = matcher->position_count - 1, visited = 0;
        struct place path[TOKEN_TRIE_DEPTH + 1];
        enum push pushed = PUSH_FINE;

        path[0] = last_place(matcher, ROW_NONE);
        for (uint32_t i = 0; i < slice->count && pushed != PUSH_SPENT; visited++) {
                const struct trie_node *node = &slice->nodes[i];

                pushed = step(matcher, &path[node->depth - 1], node->byte, &path[node->depth]);
                if (pushed == PUSH_DEAD) {
                        i += node->subtree;
                        continue;
                }
                if (node->token != TOKEN_TRIE_NONE)
                        set_token(matcher->trie, bits, node->token);
                i++;
        }
        matcher_cut(matcher, base);
        if (pushed != PUSH_SPENT && !regex_burn(matcher->grammar->pool, visited))
                return matcher_spend(matcher, "a mask takes more work than the limit");
        return pushed;
}

/* How many plain characters may follow, whatever they are: the most that a lexeme takes. */
static uint32_t plain_most(struct matcher *matcher)
{
        uint32_t last = matcher->position_count - 1, most = 0;

        for (uint32_t i = matcher_first_thread(matcher, last);
             i < matcher->positions[last].threads_end; i++) {
                uint32_t count = lexer_plain(&matcher->grammar->lexer, matcher->threads[i].state);

                if (count > most)
                        most = count;
        }
        return most;
}

/* Control tokens are few, and their first byte alone says mostly that none is legal. */
static enum push walk_controls(struct matcher *matcher, uint32_t *bits)
{
        const struct token_trie *trie = matcher->trie;
        uint32_t base = matcher->position_count - 1;
        enum push pushed;

        if (trie->control_count == 0)
                return PUSH_FINE;
        pushed = matcher_push(matcher, TOKEN_LEAD);
        matcher_cut(matcher, base);
        for (uint32_t i = 0; i < trie->control_count && pushed == PUSH_FINE; i++) {
                uint8_t bytes[TOKEN_BYTES];
                enum push each = PUSH_FINE;

                grammar_token_bytes(trie->controls[i], bytes);
                for (unsigned j = 0; j < TOKEN_BYTES && each == PUSH_FINE; j++)
                        each = matcher_push(matcher, bytes[j]);
                if (each == PUSH_FINE)
                        set_bit(bits, trie->controls[i]);
                if (each == PUSH_SPENT)
                        return each;
                matcher_cut(matcher, base);
        }
        return pushed;
}

enum matcher_outcome matcher_mask(struct matcher *matcher, uint32_t *ret_bits)
{
        const struct token_trie *trie = matcher->trie;
        uint32_t plain;

        if (matcher->why)
                return MATCHER_SPENT;
        regex_refuel(matcher->grammar->pool, matcher->limits.fuel);
        matcher_compact(matcher);
        memset(ret_bits, 0, trie->words * sizeof(*ret_bits));
        plain = plain_most(matcher);
        for (enum token_slice which = 0; which < SLICE_COUNT; which++) {
                const struct trie_slice *slice = &trie->slices[which];

                if (slice->characters && slice->characters <= plain) {
                        for (uint32_t i = 0; i < trie->words; i++)
                                ret_bits[i] |= slice->bits[i];
                } else if (walk(matcher, slice, ret_bits) == PUSH_SPENT) {
                        return MATCHER_SPENT;
                }
        }
        return walk_controls(matcher, ret_bits) == PUSH_SPENT ? MATCHER_SPENT : MATCHER_FINE;
}

/* The only byte that may follow, or -1; -2: a budget is spent. */
static int only_byte(struct matcher *matcher)
{
        const struct lexer *lexer = &matcher->grammar->lexer;
        uint32_t base = matcher->position_count - 1;
        int only = -1;

        if (matcher_can_end(matcher))
                return -1;
        for (unsigned byte = 0; byte < 256; byte++) {
                enum push pushed;

                if (byte && lexer->class_of[byte] == lexer->class_of[byte - 1] && only < 0)
                        continue;
                pushed = matcher_push(matcher, byte);
                if (pushed == PUSH_SPENT)
                        return -2;
                if (pushed == PUSH_DEAD)
                        continue;
                matcher_cut(matcher, base);
                if (only >= 0)
                        return -1;
                only = byte;
        }
        return only;
}

enum matcher_outcome matcher_forced(struct matcher *matcher, uint8_t *ret_bytes, size_t size,
                                    size_t *ret_count)
{
        uint32_t base;
        int byte = 0;

        *ret_count = 0;
        if (matcher->why)
                return MATCHER_SPENT;
        regex_refuel(matcher->grammar->pool, matcher->limits.fuel);
        matcher_compact(matcher);
        base = matcher->position_count - 1;
        while (*ret_count < size && (byte = only_byte(matcher)) >= 0 && byte != TOKEN_LEAD) {
                ret_bytes[(*ret_count)++] = byte;
                if (matcher_push(matcher, byte) == PUSH_SPENT)
                        return MATCHER_SPENT;
        }
        if (matcher->why)
                return MATCHER_SPENT;
        matcher_cut(matcher, base);
        return MATCHER_FINE;
}
