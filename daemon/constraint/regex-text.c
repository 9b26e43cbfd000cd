#include "daemon/constraint/regex-text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/constraint/regex-classes.h"
#include "json/utf8.h"

#define GROUPS_MAX 64u /* within each other */
#define REPEAT_MAX 1000000000ul

/*
 * An expression by its anchors: term[s][e] matches what begins at the beginning of the text (s),
 * and ends at its end (e).
 */
struct piece {
        uint32_t term[2][2];
};

struct text_reader {
        struct regex_pool *pool;
        const char *text;
        size_t bytes, at;
        enum writing writing;
        char *why;
        size_t why_bytes;
};

static const struct piece nothing = { { { REGEX_NONE, REGEX_NONE }, { REGEX_NONE, REGEX_NONE } } };

static struct piece piece_of(uint32_t term)
{
        struct piece piece = nothing;

        piece.term[0][0] = term;
        return piece;
}

static bool is_anchored(struct piece piece)
{
        return piece.term[0][1] != REGEX_NONE || piece.term[1][0] != REGEX_NONE ||
               piece.term[1][1] != REGEX_NONE;
}

static struct piece either(struct text_reader *reader, struct piece one, struct piece other)
{
        for (int start = 0; start < 2; start++)
                for (int end = 0; end < 2; end++)
                        one.term[start][end] = regex_or2(reader->pool, one.term[start][end],
                                                         other.term[start][end]);
        return one;
}

/* A part before the beginning of the text, or behind its end, can only be empty. */
static struct piece sequence(struct text_reader *reader, struct piece first, struct piece second)
{
        struct regex_pool *pool = reader->pool;
        struct piece both = nothing;

        for (int i = 0; i < 16; i++) {
                bool first_start = i & 1, first_end = i & 2, start = i & 4, end = i & 8;
                uint32_t a = first.term[first_start][first_end], b = second.term[start][end];
                uint32_t *to = &both.term[first_start || start][first_end || end], term;

                if (a == REGEX_NONE || b == REGEX_NONE)
                        continue;
                if ((start && !regex_nullable(pool, a)) || (first_end && !regex_nullable(pool, b)))
                        continue;
                term = regex_concat(pool, start ? REGEX_EMPTY : a, first_end ? REGEX_EMPTY : b);
                *to = regex_or2(pool, *to, term);
        }
        return both;
}

static int fault(struct text_reader *reader, const char *what)
{
        return error_raise(errtext_set(reader->why, reader->why_bytes, -EINVAL,
                                       "regular expression, byte %zu: %s", reader->at, what));
}

static bool next_is(const struct text_reader *reader, const char *what)
{
        size_t count = strlen(what);

        return reader->bytes - reader->at >= count &&
               memcmp(reader->text + reader->at, what, count) == 0;
}

static int read_choice(struct text_reader *reader, unsigned depth, struct piece *ret_piece);

/* Behind "(": which group it is. */
static int read_group_kind(struct text_reader *reader)
{
        if (!next_is(reader, "?"))
                return 0;
        if (next_is(reader, "?=") || next_is(reader, "?!") || next_is(reader, "?<=") ||
            next_is(reader, "?<!"))
                return error_pass(fault(reader, "look-around is not supported"));
        if (next_is(reader, "?:")) {
                reader->at += 2;
                return 0;
        }
        if (!next_is(reader, "?<") && !next_is(reader, "?P<"))
                return error_pass(fault(reader, "flags of a group are not supported"));
        while (reader->at < reader->bytes && reader->text[reader->at] != '>')
                reader->at++;
        if (reader->at == reader->bytes)
                return error_pass(fault(reader, "the name of a group has no end"));
        reader->at++;
        return 0;
}

static int read_group(struct text_reader *reader, unsigned depth, struct piece *ret_piece)
{
        int r;

        if (depth == GROUPS_MAX)
                return error_pass(fault(reader, "groups are nested more than 64 deep"));
        reader->at++;
        r = read_group_kind(reader);
        if (r == 0)
                r = read_choice(reader, depth + 1, ret_piece);
        if (r < 0)
                return error_pass(r);
        if (!next_is(reader, ")"))
                return error_pass(fault(reader, "a group has no end"));
        reader->at++;
        return 0;
}

static int read_character(struct text_reader *reader, struct piece *ret_piece)
{
        struct characters set = { 0 };
        const char *wrong = class_read(reader->text, reader->bytes, &reader->at, &set);

        if (wrong)
                return error_pass(fault(reader, wrong));
        *ret_piece = piece_of(characters_regex(reader->pool, &set, reader->writing));
        return 0;
}

static int read_atom(struct text_reader *reader, unsigned depth, struct piece *ret_piece)
{
        *ret_piece = nothing;
        switch (reader->text[reader->at]) {
        case '(':
                return error_pass(read_group(reader, depth, ret_piece));
        case '^':
                reader->at++;
                ret_piece->term[1][0] = REGEX_EMPTY;
                return 0;
        case '$':
                reader->at++;
                ret_piece->term[0][1] = REGEX_EMPTY;
                return 0;
        case '*':
        case '+':
        case '?':
                return error_pass(fault(reader, "there is nothing to repeat"));
        default:
                return error_pass(read_character(reader, ret_piece));
        }
}

static bool read_count(struct text_reader *reader, size_t *at, uint32_t *ret_count)
{
        unsigned long count = 0;
        size_t begin = *at;

        for (; *at < reader->bytes && reader->text[*at] >= '0' && reader->text[*at] <= '9'; ++*at)
                if (count <= REPEAT_MAX)
                        count = count * 10 + (reader->text[*at] - '0');
        *ret_count = count < REPEAT_MAX ? count : REPEAT_MAX;
        return *at > begin;
}

/* 1: there are counts; 0: a brace that is a character. */
static int read_braces(struct text_reader *reader, uint32_t *ret_min, uint32_t *ret_max)
{
        size_t at = reader->at + 1;

        if (!read_count(reader, &at, ret_min))
                return 0;
        *ret_max = *ret_min;
        if (at < reader->bytes && reader->text[at] == ',') {
                at++;
                if (!read_count(reader, &at, ret_max))
                        *ret_max = REGEX_FOREVER;
        }
        if (at == reader->bytes || reader->text[at] != '}')
                return 0;
        reader->at = at + 1;
        return 1;
}

static int read_quantifier(struct text_reader *reader, uint32_t *ret_min, uint32_t *ret_max)
{
        *ret_min = 0;
        *ret_max = REGEX_FOREVER;
        if (next_is(reader, "*") || next_is(reader, "+") || next_is(reader, "?")) {
                *ret_min = next_is(reader, "+");
                *ret_max = next_is(reader, "?") ? 1 : REGEX_FOREVER;
                reader->at++;
        } else if (!next_is(reader, "{") || read_braces(reader, ret_min, ret_max) == 0) {
                return 0;
        }
        if (*ret_min > *ret_max)
                return error_pass(fault(reader, "the counts are in the wrong order"));
        if (next_is(reader, "?")) /* lazy: it matches the same texts */
                reader->at++;
        else if (next_is(reader, "+"))
                return error_pass(fault(reader, "possessive quantifiers are not supported"));
        return 1;
}

static int read_repeated(struct text_reader *reader, unsigned depth, struct piece *ret_piece)
{
        uint32_t min, max;
        int r = read_atom(reader, depth, ret_piece);

        if (r < 0)
                return error_pass(r);
        r = read_quantifier(reader, &min, &max);
        if (r <= 0)
                return r;
        if (!is_anchored(*ret_piece)) {
                *ret_piece = piece_of(regex_repeat(reader->pool, ret_piece->term[0][0], min, max));
        } else if (min == 0 && max == 1) {
                *ret_piece = either(reader, *ret_piece, piece_of(REGEX_EMPTY));
        } else if (min != 1 || max != 1) {
                return error_pass(fault(reader, "an anchor cannot be repeated"));
        }
        return 0;
}

static int read_sequence(struct text_reader *reader, unsigned depth, struct piece *ret_piece)
{
        *ret_piece = piece_of(REGEX_EMPTY);
        while (reader->at < reader->bytes && !next_is(reader, "|") && !next_is(reader, ")")) {
                struct piece next;
                int r = read_repeated(reader, depth, &next);

                if (r < 0)
                        return error_pass(r);
                *ret_piece = sequence(reader, *ret_piece, next);
        }
        return 0;
}

static int read_choice(struct text_reader *reader, unsigned depth, struct piece *ret_piece)
{
        int r = read_sequence(reader, depth, ret_piece);

        while (r == 0 && next_is(reader, "|")) {
                struct piece next;

                reader->at++;
                r = read_sequence(reader, depth, &next);
                if (r == 0)
                        *ret_piece = either(reader, *ret_piece, next);
        }
        return error_pass(r);
}

int regex_text_read(struct regex_pool *pool, const char *text, size_t bytes, enum writing writing,
                    enum regex_scope scope, uint32_t *ret_term, char *why, size_t why_bytes)
{
        struct text_reader reader = { pool, text, bytes, 0, writing, why, why_bytes };
        uint32_t any = REGEX_EMPTY;
        struct piece piece;
        int r;

        if (utf8_valid(text, bytes) != bytes)
                return error_pass(fault(&reader, "it is not UTF-8"));
        r = read_choice(&reader, 0, &piece);
        if (r < 0)
                return error_pass(r);
        if (reader.at < bytes)
                return error_pass(fault(&reader, "a parenthesis closes no group"));
        if (scope == REGEX_SEARCH)
                any = regex_repeat(pool, characters_any(pool, writing), 0, REGEX_FOREVER);
        *ret_term = REGEX_NONE;
        for (int start = 0; start < 2; start++) {
                for (int end = 0; end < 2; end++) {
                        uint32_t term = piece.term[start][end];

                        term = end ? term : regex_concat(pool, term, any);
                        term = start ? term : regex_concat(pool, any, term);
                        *ret_term = regex_or2(pool, *ret_term, term);
                }
        }
        return 0;
}
