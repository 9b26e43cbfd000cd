/*
 * Any expression on any text, compared with a matcher that tries one alternative after another.
 *
 *      kind and inverted | the expression | 0 | the text: all the rest
 *
 * The matcher walks the tree of the expression, so the parser is not checked by it: Oniguruma's
 * pieces do that (tests/golden/test-expressions.c).  It gives up after STEPS_MAX steps.
 *
 * Also: matches come in order, the pieces of a cutter are the text, and a text takes steps in
 * proportion to its length and to that of the expression.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/text/cutter.h"
#include "daemon/text/expression.h"
#include "daemon/text/expression/parser.h"
#include "daemon/text/expression/program.h"
#include "daemon/text/unicode.h"

#define PATTERN_MAX 256u
#define TEXT_MAX    4096u
#define SHORT_MAX   40u /* of a text that is compared */
#define STEPS_MAX   4000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct matcher {
        const struct tree *tree;
        const char *text;
        size_t bytes, end;
        unsigned steps;
        bool gave_up;
};

/* The nodes that must match behind the one that is being tried. */
struct rest {
        enum { REST_ROW, REST_REPEAT } kind;
        uint32_t node; /* the next one of a row, or the repeat */
        uint32_t count;
        size_t begin; /* where the last round began */
        const struct rest *more;
};

static bool try(struct matcher *m, uint32_t at, size_t from, const struct rest *rest);
static bool try_round(struct matcher *m, uint32_t at, uint32_t count, size_t from,
                      const struct rest *rest);

static uint32_t code_at(const struct matcher *m, size_t at, size_t *ret_behind)
{
        uint32_t code;

        *ret_behind = at + unicode_next(m->text + at, m->bytes - at, &code);
        return code == UNICODE_INVALID ? CHARSET_INVALID : code;
}

/* CHARSET_END at the begin. */
static uint32_t code_before(const struct matcher *m, size_t at)
{
        uint32_t code = CHARSET_END;

        for (size_t from = 0; from < at;)
                code = code_at(m, from, &from);
        return code;
}

static bool looks(struct matcher *m, uint32_t look, size_t at)
{
        struct matcher inner = *m;
        bool is = try(&inner, m->tree->looks[look], at, NULL);

        m->steps = inner.steps;
        m->gave_up = m->gave_up || inner.gave_up;
        return is;
}

static bool holds(struct matcher *m, const struct node *node, size_t at)
{
        static const struct charset none;
        const struct charset *set = m->tree->set_count ? &m->tree->sets[node->set] : &none;
        size_t behind;
        uint32_t next = at < m->bytes ? code_at(m, at, &behind) : CHARSET_END;
        uint32_t last = code_before(m, at);

        switch ((enum place_kind)node->place) {
        case PLACE_NEXT:
                return charset_has(set, next);
        case PLACE_LAST:
                return charset_has(set, last);
        case PLACE_BEGIN:
                return !at;
        case PLACE_END:
                return at == m->bytes;
        case PLACE_LINE_BEGIN:
                return !at || (last == '\n' && at < m->bytes);
        case PLACE_LINE_END:
                return at == m->bytes || next == '\n';
        case PLACE_WORD:
                return charset_has(set, last) != charset_has(set, next);
        case PLACE_LOOK:
                return looks(m, node->look, at);
        }
        abort();
}

static bool go_on(struct matcher *m, size_t from, const struct rest *rest)
{
        const struct node *node;

        if (!rest) {
                m->end = from;
                return true;
        }
        if (rest->kind == REST_ROW)
                return try(m, rest->node, from, rest->more);
        node = &m->tree->nodes[rest->node];
        /* A round that reads nothing ends the repeating. */
        if (node->most == TREE_NONE && rest->count > node->least && rest->begin == from)
                return go_on(m, from, rest->more);
        return try_round(m, rest->node, rest->count, from, rest->more);
}

static bool try_round(struct matcher *m, uint32_t at, uint32_t count, size_t from,
                      const struct rest *rest)
{
        const struct node *node = &m->tree->nodes[at];
        const struct rest round = { REST_REPEAT, at, count + 1, from, rest };
        bool may = node->most == TREE_NONE || count < node->most;

        if (count < node->least)
                return try(m, node->child, from, &round);
        if (!node->lazy && may && try(m, node->child, from, &round))
                return true;
        if (go_on(m, from, rest))
                return true;
        return node->lazy && may && try(m, node->child, from, &round);
}

/* The children up to this one; they stand in the list from the last to the first. */
static bool try_row(struct matcher *m, uint32_t child, size_t from, const struct rest *rest)
{
        const struct rest last = { REST_ROW, child, 0, 0, rest };

        if (child == TREE_NONE)
                return go_on(m, from, rest);
        return try_row(m, m->tree->nodes[child].next, from, &last);
}

static bool try_choice(struct matcher *m, uint32_t child, size_t from, const struct rest *rest)
{
        uint32_t before = m->tree->nodes[child].next;

        if (before != TREE_NONE && try_choice(m, before, from, rest))
                return true;
        return try(m, child, from, rest);
}

static bool try(struct matcher *m, uint32_t at, size_t from, const struct rest *rest)
{
        const struct node *node = &m->tree->nodes[at];
        size_t behind;

        if (m->gave_up || ++m->steps > STEPS_MAX) {
                m->gave_up = true;
                return true;
        }
        switch ((enum node_kind)node->kind) {
        case NODE_SET:
                return from < m->bytes &&
                       charset_has(&m->tree->sets[node->set], code_at(m, from, &behind)) &&
                       go_on(m, behind, rest);
        case NODE_HERE:
                return holds(m, node, from) != node->inverted && go_on(m, from, rest);
        case NODE_ROW:
                return try_row(m, node->child, from, rest);
        case NODE_CHOICE:
                return try_choice(m, node->child, from, rest);
        case NODE_REPEAT:
                return try_round(m, at, 0, from, rest);
        }
        abort();
}

/* ---- checks ---- */

/* Steps for each character: a block that is read in vain, and each step of the program once. */
static void check_steps(const struct tree *tree, uint64_t steps, size_t bytes)
{
        struct program program;
        char why[256];

        assert(!program_make(&program, tree, why, sizeof(why)));
        assert(steps <= (bytes + 1) * (140 + 8 * (uint64_t)program.count));
        program_deinit(&program);
}

static bool compare(const struct tree *tree, const char *text, size_t bytes, size_t from,
                    bool found, size_t begin, size_t end)
{
        struct matcher m = { .tree = tree, .text = text, .bytes = bytes };
        uint32_t code;

        for (size_t at = from; at <= bytes;) {
                bool is = try(&m, tree->root, at, NULL);

                if (m.gave_up)
                        return false;
                if (is) {
                        assert(found && begin == at && end == m.end);
                        return true;
                }
                if (at == bytes)
                        break;
                at += unicode_next(text + at, bytes - at, &code);
        }
        assert(!found);
        return true;
}

static void check_matches(const struct expression *expression, const struct tree *tree,
                          const char *text, size_t bytes)
{
        struct expression_search search = { 0 };
        bool compares = bytes <= SHORT_MAX;
        uint64_t steps = 0;
        size_t from = 0, begin = 0, end = 0;

        assert(!expression_begin(&search, expression, text, bytes, &steps));
        while (from <= bytes) {
                bool found = expression_next(&search, from, &begin, &end) == 1;

                assert(!found || (from <= begin && begin <= end && end <= bytes));
                compares = compares && compare(tree, text, bytes, from, found, begin, end);
                if (!found)
                        break;
                from = end;
                if (begin == end) {
                        uint32_t code;

                        from += end < bytes ? unicode_next(text + end, bytes - end, &code) : 1;
                }
        }
        check_steps(tree, steps, bytes);
        expression_search_deinit(&search);
}

static void check_pieces(const struct vocabulary_cut *cut, const char *text, size_t bytes)
{
        struct cutting cutting = { 0 };
        struct cutter cutter;
        uint64_t steps = 0;
        size_t last = 0, begin, end;
        char why[256];

        assert(!cutter_open(&cutter, cut, 1, why, sizeof(why)));
        assert(!cutting_begin(&cutting, &cutter, text, bytes, &steps));
        while (cutting_next(&cutting, &begin, &end) == 1) {
                assert(begin < end && end <= bytes);
                assert(cut->kind == CUT_DROP ? begin >= last : begin == last);
                last = end;
        }
        assert(cut->kind == CUT_DROP || last == bytes);
        cutting_deinit(&cutting);
        cutter_close(&cutter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const uint8_t *zero = size > 2 ? memchr(data + 1, 0, size - 1) : NULL;
        struct vocabulary_cut cut = { (const char *)data + 1, CUT_APART, false };
        struct expression *expression;
        char why[256] = "", *text;
        struct tree tree;
        size_t bytes;

        if (!zero || zero - data > PATTERN_MAX)
                return 0;
        cut.kind = data[0] / 2 % CUT_KIND_N;
        cut.inverted = data[0] & 1;
        bytes = size - (size_t)(zero + 1 - data);
        bytes = bytes < TEXT_MAX ? bytes : TEXT_MAX;
        if (expression_open(cut.expression, &expression, why, sizeof(why))) {
                assert(*why);
                return 0;
        }
        assert(!tree_parse(&tree, cut.expression, why, sizeof(why)));
        text = malloc(bytes); /* not a byte more */
        if (bytes)
                memcpy(text, zero + 1, bytes);
        check_matches(expression, &tree, text, bytes);
        check_pieces(&cut, text, bytes);
        free(text);
        tree_deinit(&tree);
        expression_close(expression);
        return 0;
}
