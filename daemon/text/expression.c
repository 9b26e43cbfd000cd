/*
 * Looks ahead are answered before the first match is searched: the automaton of each look reads
 * the text once from its end.
 *
 * An automaton may read far beyond the end of its match before it knows that no longer one comes.
 * If this can happen without end (automaton.overruns), the next match could read the same
 * characters again, and again.  So a search notes some places of an overrun with their states: from
 * such a pair no match ends.  Another one that comes there stops.  (Reps, "Maximal-munch
 * tokenization in linear time", 1998.)
 */
#include "daemon/text/expression.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/text/expression/automaton.h"
#include "daemon/text/expression/classes.h"
#include "daemon/text/expression/parser.h"
#include "daemon/text/expression/program.h"
#include "daemon/text/expression/tree.h"
#include "daemon/text/unicode.h"

/* Bytes.  The first place of each block is noted: each run over the same characters comes there. */
#define NOTED_BLOCK 64u

struct expression {
        struct classes classes;
        struct automaton forward;
        struct automaton looks[TREE_LOOKS_MAX];
        uint32_t look_count;
};

static int build(struct expression *e, const struct tree *tree, char *why, size_t why_bytes)
{
        struct program program = { 0 };
        int r = program_make(&program, tree, why, why_bytes);

        e->look_count = tree->look_count;
        if (!r)
                r = classes_make(&e->classes, tree->sets, tree->set_count, why, why_bytes);
        if (!r)
                r = automaton_forward(&e->forward, &program, &e->classes, why, why_bytes);
        for (uint32_t i = 0; !r && i < tree->look_count; i++)
                r = automaton_backward(&e->looks[i], &program, &e->classes, i, why, why_bytes);
        program_deinit(&program);
        return error_pass(r);
}

int expression_open(const char *pattern, struct expression **ret_expression, char *why,
                    size_t why_bytes)
{
        struct expression *e = calloc(1, sizeof(*e));
        struct tree tree = { 0 };
        int r = e ? 0 : error_raise(-ENOMEM);

        if (!r)
                r = tree_parse(&tree, pattern, why, why_bytes);
        if (!r)
                r = build(e, &tree, why, why_bytes);
        tree_deinit(&tree);
        if (r) {
                if (r == -ENOMEM)
                        errtext_set(why, why_bytes, r, "out of memory");
                expression_close(e);
                return error_pass(r);
        }
        *ret_expression = e;
        return 0;
}

struct expression *expression_close(struct expression *e)
{
        if (!e)
                return NULL;
        for (uint32_t i = 0; i < TREE_LOOKS_MAX; i++)
                automaton_deinit(&e->looks[i]);
        automaton_deinit(&e->forward);
        classes_deinit(&e->classes);
        free(e);
        return NULL;
}

/* ---- looks ---- */

/* The begin of the character that ends at `at`. */
static size_t character_before(const char *text, size_t at)
{
        size_t begin = at - 1;
        uint32_t code;

        while (begin && at - begin < 4 && ((uint8_t)text[begin] & 0xC0) == 0x80)
                begin--;
        return begin + unicode_next(text + begin, at - begin, &code) == at ? begin : at - 1;
}

static uint32_t class_at(const struct expression *e, const char *text, size_t bytes, size_t at,
                         size_t *ret_next)
{
        uint32_t code;

        *ret_next = at + unicode_next(text + at, bytes - at, &code);
        return classes_of(&e->classes, code);
}

/* The class before a place; no class at the begin. */
static uint32_t class_before(const struct expression *e, const char *text, size_t at)
{
        size_t next;

        return at ? class_at(e, text, at, character_before(text, at), &next) : e->classes.count;
}

static void read_look(struct expression_search *search, uint32_t look)
{
        const struct expression *e = search->expression;
        const struct automaton *automaton = &e->looks[look];
        uint32_t state = automaton->start, next;

        for (size_t at = search->bytes;; at = character_before(search->text, at)) {
                uint32_t column = class_before(e, search->text, at) +
                                  search->looks[at] * (e->classes.count + 1);

                next = automaton->next[(size_t)state * automaton->columns + column];
                search->looks[at] = (uint8_t)(search->looks[at] | (next & 1) << look);
                state = next >> 1;
                if (!at)
                        return;
                ++*search->steps;
        }
}

/* Takes no longer than the dead ends took that are forgotten. */
static void forget_dead_ends(struct expression_search *search)
{
        if (search->dead_end_count < search->dead_end_capacity / 16) {
                free(search->dead_ends);
                search->dead_ends = NULL;
                search->dead_end_capacity = 0;
        } else if (search->dead_end_count) {
                memset(search->dead_ends, 0,
                       search->dead_end_capacity * sizeof(*search->dead_ends));
        }
        search->dead_end_count = 0;
}

int expression_begin(struct expression_search *search, const struct expression *expression,
                     const char *text, size_t bytes, uint64_t *steps)
{
        assert(bytes < UINT32_MAX);
        search->expression = expression;
        search->text = text;
        search->bytes = bytes;
        search->steps = steps;
        forget_dead_ends(search);
        if (!expression->look_count)
                return 0;
        if (search->looks_capacity < bytes + 1) {
                uint8_t *looks = realloc(search->looks, 2 * (bytes + 1));

                if (!looks)
                        return error_raise(-ENOMEM);
                search->looks = looks;
                search->looks_capacity = 2 * (bytes + 1);
        }
        memset(search->looks, 0, bytes + 1);
        for (uint32_t i = 0; i < expression->look_count; i++)
                read_look(search, i);
        return 0;
}

void expression_search_deinit(struct expression_search *search)
{
        free(search->looks);
        free(search->dead_ends);
        *search = (struct expression_search){ 0 };
}

/* ---- dead ends ---- */

/* A place and a state; 0 is an empty slot, because the state 0 is dead itself. */
static uint64_t *dead_end_slot(const struct expression_search *search, size_t at, uint32_t state)
{
        uint64_t pair = (uint64_t)at << 16 | state, mix = pair * 0x9E3779B97F4A7C15u;

        for (size_t i = mix >> 20;; i++) {
                uint64_t *slot = &search->dead_ends[i & (search->dead_end_capacity - 1)];

                if (!*slot || *slot == pair)
                        return slot;
        }
}

static bool is_dead_end(const struct expression_search *search, size_t at, uint32_t state)
{
        return search->dead_end_count && *dead_end_slot(search, at, state);
}

static int grow_dead_ends(struct expression_search *search)
{
        uint64_t *before = search->dead_ends;
        size_t count = search->dead_end_capacity;

        search->dead_end_capacity = count ? 2 * count : 64;
        search->dead_ends = calloc(search->dead_end_capacity, sizeof(*before));
        if (!search->dead_ends) {
                search->dead_ends = before;
                search->dead_end_capacity = count;
                return error_raise(-ENOMEM);
        }
        for (size_t i = 0; i < count; i++)
                if (before[i])
                        *dead_end_slot(search, before[i] >> 16, before[i] & 0xFFFF) = before[i];
        free(before);
        return 0;
}

static int note_dead_end(struct expression_search *search, size_t at, uint32_t state)
{
        uint64_t *slot;

        if (2 * search->dead_end_count >= search->dead_end_capacity) {
                int r = grow_dead_ends(search);

                if (r)
                        return error_pass(r);
        }
        slot = dead_end_slot(search, at, state);
        search->dead_end_count += !*slot;
        *slot = (uint64_t)at << 16 | state;
        return 0;
}

/* ---- matches ---- */

/* One run of the automaton. */
struct run {
        size_t from, at, end; /* end: of the last match found */
        uint32_t state;
        bool matched;
};

/* Reads one character, or the end of the text.  False: the run is over. */
static inline bool run_step(const struct expression_search *search, struct run *run)
{
        const struct expression *e = search->expression;
        size_t behind = run->at;
        uint32_t column = e->classes.count, next;

        if (run->at < search->bytes) {
                uint8_t byte = (uint8_t)search->text[run->at];

                if (byte < 0x80) {
                        column = e->classes.ascii[byte];
                        behind = run->at + 1;
                } else {
                        column = class_at(e, search->text, search->bytes, run->at, &behind);
                }
        }
        if (e->look_count)
                column += search->looks[run->at] * (e->classes.count + 1);
        next = e->forward.next[(size_t)run->state * e->forward.columns + column];
        if (next & 1) {
                run->matched = true;
                run->end = run->at;
        }
        run->state = next >> 1;
        if (run->state == AUTOMATON_DEAD || run->at == search->bytes)
                return false;
        run->at = behind;
        return true;
}

static bool begins_block(size_t before, size_t at)
{
        return before / NOTED_BLOCK != at / NOTED_BLOCK;
}

/* The overrun of a run that has ended: it is read again, and noted. */
static int note_overrun(struct expression_search *search, const struct run *run, struct run over)
{
        int r = 0;

        while (!r && over.at < run->at) {
                size_t before = over.at;

                if (!run_step(search, &over))
                        break;
                if (begins_block(before, over.at))
                        r = note_dead_end(search, over.at, over.state);
        }
        return error_pass(r);
}

/* Reads on up to the end of the match, for an automaton that overruns. */
static int run_carefully(struct expression_search *search, struct run *run)
{
        struct run over = *run; /* as it was behind the last match */
        size_t before, end;

        do {
                bool matched = run->matched;

                before = run->at;
                end = run->end;
                if (!run_step(search, run))
                        break;
                if (run->matched && (!matched || run->end != end))
                        over = *run;
        } while (!begins_block(before, run->at) || !is_dead_end(search, run->at, run->state));
        return begins_block(over.at, run->at) ? error_pass(note_overrun(search, run, over)) : 0;
}

static int match_at(struct expression_search *search, size_t from, struct run *ret_run)
{
        const struct expression *e = search->expression;
        uint32_t before = e->forward.remembers ? class_before(e, search->text, from) : 0;
        int r = 0;

        *ret_run = (struct run){ .from = from, .at = from, .state = e->forward.starts[before] };
        if (e->forward.overruns)
                r = run_carefully(search, ret_run);
        else
                while (run_step(search, ret_run))
                        ;
        *search->steps += ret_run->at - from + 1;
        return error_pass(r);
}

int expression_next(struct expression_search *search, size_t from, size_t *ret_begin,
                    size_t *ret_end)
{
        struct run run;
        uint32_t code;
        int r;

        for (size_t at = from;; at += unicode_next(search->text + at, search->bytes - at, &code)) {
                r = match_at(search, at, &run);
                if (r)
                        return error_pass(r);
                if (run.matched) {
                        *ret_begin = at;
                        *ret_end = run.end;
                        return 1;
                }
                if (at == search->bytes)
                        return 0;
        }
}
