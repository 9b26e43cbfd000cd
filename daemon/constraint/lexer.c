#include "daemon/constraint/lexer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PARTS_A_STATE 8u /* on average: the tables are made for so many */
#define BUCKETS       8192u

uint32_t lexer_lexeme(struct lexer *lexer, uint32_t term, bool is_tail)
{
        for (uint32_t i = lexer->lexeme_count; i-- > 0;)
                if (lexer->lexemes[i].term == term && lexer->lexemes[i].is_tail == is_tail)
                        return i;
        if (lexer->lexeme_count == lexer->lexeme_size) {
                uint32_t size = lexer->lexeme_size ? 2 * lexer->lexeme_size : 64;
                struct lexeme *more = realloc(lexer->lexemes, size * sizeof(*more));

                if (!more)
                        return UINT32_MAX;
                lexer->lexemes = more;
                lexer->lexeme_size = size;
        }
        lexer->lexemes[lexer->lexeme_count] = (struct lexeme){ term, is_tail };
        return lexer->lexeme_count++;
}

int lexer_seal(struct lexer *lexer, uint32_t states_max)
{
        lexer->classes = regex_classes(lexer->pool, lexer->class_of);
        for (unsigned byte = 256; byte-- > 0;)
                lexer->example[lexer->class_of[byte]] = byte;
        lexer->states_max = states_max;
        lexer->parts_max = states_max * PARTS_A_STATE + 2 * lexer->lexeme_count;
        lexer->states = calloc(states_max, sizeof(*lexer->states));
        lexer->next = calloc((size_t)states_max * lexer->classes, sizeof(*lexer->next));
        lexer->parts = calloc(lexer->parts_max, sizeof(*lexer->parts));
        lexer->accepts = calloc(lexer->parts_max, sizeof(*lexer->accepts));
        lexer->buckets = calloc(BUCKETS, sizeof(*lexer->buckets));
        lexer->scratch = calloc(lexer->lexeme_count + 1, sizeof(*lexer->scratch));
        if (!lexer->states || !lexer->next || !lexer->parts || !lexer->accepts || !lexer->buckets ||
            !lexer->scratch)
                return error_raise(-ENOMEM);
        lexer->state_count = 1; /* LEXER_DEAD, whose row is all DEAD */
        return 0;
}

void lexer_deinit(struct lexer *lexer)
{
        free(lexer->lexemes);
        free(lexer->states);
        free(lexer->next);
        free(lexer->parts);
        free(lexer->accepts);
        free(lexer->buckets);
        free(lexer->scratch);
}

static uint32_t hash_parts(const struct lexer_part *parts, uint32_t count)
{
        uint32_t hash = 2166136261u;

        for (uint32_t i = 0; i < count; i++) {
                hash = (hash ^ parts[i].lexeme) * 0x9e3779b1u;
                hash = (hash ^ parts[i].rest ^ hash >> 15) * 0x85ebca6bu;
        }
        return (hash ^ hash >> 13) % BUCKETS;
}

/* The state with these parts, which are alive. */
static uint32_t intern(struct lexer *lexer, const struct lexer_part *parts, uint32_t count)
{
        uint32_t *bucket = &lexer->buckets[hash_parts(parts, count)], at;
        struct lexer_state *state;

        if (count == 0)
                return LEXER_DEAD;
        for (at = *bucket; at; at = lexer->states[at].chain)
                if (lexer->states[at].count == count &&
                    memcmp(lexer->parts + lexer->states[at].first, parts, count * sizeof(*parts)) ==
                            0)
                        return at;
        if (lexer->state_count == lexer->states_max || lexer->parts_max - lexer->part_count < count)
                return LEXER_SPENT;
        at = lexer->state_count++;
        state = &lexer->states[at];
        *state = (struct lexer_state){ .first = lexer->part_count,
                                       .count = count,
                                       .accept = lexer->accept_count,
                                       .chain = *bucket,
                                       .plain = LEXER_UNKNOWN,
                                       .more = LEXER_UNKNOWN };
        memcpy(lexer->parts + state->first, parts, count * sizeof(*parts));
        lexer->part_count += count;
        for (uint32_t i = 0; i < count; i++) {
                if (!regex_nullable(lexer->pool, parts[i].rest))
                        continue;
                if (lexer->lexemes[parts[i].lexeme].is_tail)
                        state->tail_ends = true;
                else
                        lexer->accepts[lexer->accept_count++] = parts[i].lexeme;
        }
        state->accept_count = lexer->accept_count - state->accept;
        for (unsigned class = 0; class < lexer->classes; class ++)
                lexer->next[(size_t)at * lexer->classes + class] = LEXER_UNKNOWN;
        return *bucket = at;
}

uint32_t lexer_start(struct lexer *lexer, const uint32_t *lexemes, uint32_t count)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < count; i++)
                if (regex_alive(lexer->pool, lexer->lexemes[lexemes[i]].term))
                        lexer->scratch[kept++] =
                                (struct lexer_part){ lexemes[i], lexer->lexemes[lexemes[i]].term };
        if (regex_spent(lexer->pool) != REGEX_FINE)
                return LEXER_SPENT;
        return intern(lexer, lexer->scratch, kept);
}

uint32_t lexer_extend(struct lexer *lexer, uint32_t state, unsigned class)
{
        const struct lexer_state *from = &lexer->states[state];
        uint32_t kept = 0, next;

        for (uint32_t i = 0; i < from->count; i++) {
                struct lexer_part part = lexer->parts[from->first + i];

                part.rest = regex_derive(lexer->pool, part.rest, lexer->example[class]);
                if (regex_alive(lexer->pool, part.rest))
                        lexer->scratch[kept++] = part;
        }
        if (regex_spent(lexer->pool) != REGEX_FINE)
                return LEXER_SPENT;
        next = intern(lexer, lexer->scratch, kept);
        if (next != LEXER_SPENT)
                lexer->next[(size_t)state * lexer->classes + class] = next;
        return next;
}

static bool find_next(struct lexer *lexer, uint32_t state)
{
        const struct lexer_state *at = &lexer->states[state];
        bool ended = true;

        for (uint32_t i = 0; i < at->count; i++)
                ended = ended && lexer->parts[at->first + i].rest == REGEX_EMPTY;
        for (unsigned class = 0; class < lexer->classes && !ended; class ++)
                if (lexer_next(lexer, state, lexer->example[class]) != LEXER_DEAD)
                        return true;
        return false;
}

bool lexer_goes_on(struct lexer *lexer, uint32_t state)
{
        if (lexer->states[state].accept_count == 0)
                return true; /* a state that is alive has to end yet */
        if (lexer->states[state].more == LEXER_UNKNOWN)
                lexer->states[state].more = find_next(lexer, state);
        return lexer->states[state].more;
}

#define STAYS_MAX 64u /* states that are looked at */

bool lexer_stays(struct lexer *lexer, uint32_t state, const struct byte_set *bytes)
{
        uint32_t queue[STAYS_MAX] = { state }, count = 1, classes = 0;
        uint8_t examples[256];
        bool asked[256] = { 0 };

        for (unsigned byte = 0; byte < 256; byte++) {
                bool *is_asked = &asked[lexer->class_of[byte]];

                if (!byte_set_has(bytes, byte) || *is_asked)
                        continue;
                examples[classes++] = byte;
                *is_asked = true;
        }
        for (uint32_t at = 0; at < count; at++) {
                for (uint32_t i = 0; i < classes; i++) {
                        uint32_t next = lexer_next(lexer, queue[at], examples[i]), known = 0;

                        if (next == LEXER_DEAD || next == LEXER_SPENT)
                                return false;
                        while (known < count && queue[known] != next)
                                known++;
                        if (known == STAYS_MAX)
                                return false;
                        if (known == count)
                                queue[count++] = next;
                }
        }
        return true;
}

uint32_t lexer_plain(struct lexer *lexer, uint32_t state)
{
        struct lexer_state *at = &lexer->states[state];
        uint32_t most = 0;

        if (at->plain != LEXER_UNKNOWN)
                return at->plain;
        for (uint32_t i = 0; i < at->count; i++) {
                uint32_t count = regex_plain(lexer->pool, lexer->parts[at->first + i].rest);

                if (count > most)
                        most = count;
        }
        if (regex_spent(lexer->pool) == REGEX_FINE)
                at->plain = most;
        return most;
}
