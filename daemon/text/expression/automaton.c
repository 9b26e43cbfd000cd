/*
 * A state is a list of steps and a context.  The context is the class of the character on the side
 * from which the automaton comes, so far as a condition may ask for it.
 *
 * Forward, the steps are those at which the program may be, in the order in which they are tried.
 * They are followed through splits and conditions only when the next character is known.
 *
 * Backward, the steps are those of sets that have the character just read, and from which a match
 * can be reached.
 */
#include "daemon/text/expression/automaton.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/siphash.h"

/* Steps followed for one automaton, and entries of its keys.  Real ones need a hundredth. */
#define WORK_MAX (UINT64_C(1) << 25)
#define KEYS_MAX (UINT64_C(1) << 24)

/* A key: the context, then the steps. */
struct state {
        uint32_t *key;
        uint32_t count; /* of the key, 1 and more */
};

struct builder {
        const struct program *program;
        const struct classes *classes;
        struct automaton *automaton;
        bool backward;
        struct state *states;
        uint32_t state_capacity, next_capacity;
        uint32_t *slots; /* a hash table of states, 0 is empty: the dead state is not in it */
        uint32_t slot_count;
        uint32_t contexts[CLASSES_MAX + 1]; /* a class that stands for all of the same context */
        /* for one transition */
        uint32_t *key, *stack, *visits, visit;
        uint8_t *alive;   /* backward: by step, whether a match can be reached */
        uint8_t *reached; /* backward: by step, whether it belongs to the look */
        uint64_t work, key_entries;
        char *why;
        size_t why_bytes;
};

void automaton_deinit(struct automaton *automaton)
{
        free(automaton->next);
        *automaton = (struct automaton){ 0 };
}

/* ---- conditions ---- */

static bool in(const struct builder *b, uint32_t set, uint32_t class)
{
        return class < b->classes->count && classes_in(b->classes, set, class);
}

/* last, next: classes; classes->count: there is none.  bits: of the looks here. */
static bool holds(const struct builder *b, const struct step *step, uint32_t last, uint32_t next,
                  uint32_t bits)
{
        bool no_last = last == b->classes->count, no_next = next == b->classes->count, is;

        switch ((enum place_kind)step->place) {
        case PLACE_NEXT:
                is = in(b, step->set, next);
                break;
        case PLACE_LAST:
                is = in(b, step->set, last);
                break;
        case PLACE_BEGIN:
                is = no_last;
                break;
        case PLACE_END:
                is = no_next;
                break;
        case PLACE_LINE_BEGIN:
                is = no_last || (in(b, step->set, last) && !no_next);
                break;
        case PLACE_LINE_END:
                is = no_next || in(b, step->set, next);
                break;
        case PLACE_WORD:
                is = in(b, step->set, last) != in(b, step->set, next);
                break;
        case PLACE_LOOK:
        default:
                is = bits >> step->look & 1;
                break;
        }
        return is != step->inverted;
}

/* Whether a condition that asks for the character on our side can tell two classes apart. */
static bool differs(const struct builder *b, const struct step *step, uint32_t one, uint32_t other)
{
        enum place_kind place = (enum place_kind)step->place;
        bool sets = place == PLACE_WORD ||
                    (b->backward ? place == PLACE_NEXT || place == PLACE_LINE_END
                                 : place == PLACE_LAST || place == PLACE_LINE_BEGIN);
        bool borders = b->backward ? place == PLACE_END || place == PLACE_LINE_END ||
                                             place == PLACE_LINE_BEGIN
                                   : place == PLACE_BEGIN || place == PLACE_LINE_BEGIN;

        if (step->kind != STEP_HERE)
                return false;
        if (sets && in(b, step->set, one) != in(b, step->set, other))
                return true;
        return borders && (one == b->classes->count) != (other == b->classes->count);
}

static int refuse_work(const struct builder *b)
{
        return error_raise(errtext_set(b->why, b->why_bytes, -EINVAL,
                                       "its automaton takes too much work or memory to make"));
}

static int find_contexts(struct builder *b)
{
        for (uint32_t class = 0; class <= b->classes->count; class ++) {
                uint32_t like = 0;

                for (bool same = false; !same; like += !same) {
                        same = true;
                        for (uint32_t i = 0; same && i < b->program->count; i++) {
                                same = !differs(b, &b->program->steps[i], class, like);
                                b->work++;
                        }
                        if (b->work > WORK_MAX)
                                return error_pass(refuse_work(b));
                }
                b->contexts[class] = like;
        }
        return 0;
}

/* ---- states ---- */

static uint32_t *slot_of(const struct builder *b, const uint32_t *key, uint32_t count)
{
        static const uint64_t secret[2];
        uint64_t at = siphash_short(secret, key, count * sizeof(*key));

        for (;; at++) {
                uint32_t *slot = &b->slots[at & (b->slot_count - 1)];
                const struct state *state = &b->states[*slot];

                if (!*slot ||
                    (state->count == count && !memcmp(state->key, key, count * sizeof(*key))))
                        return slot;
        }
}

static int grow_slots(struct builder *b)
{
        free(b->slots);
        b->slot_count = b->slot_count ? 2 * b->slot_count : 64;
        b->slots = calloc(b->slot_count, sizeof(*b->slots));
        if (!b->slots)
                return error_raise(-ENOMEM);
        for (uint32_t i = 1; i < b->automaton->states; i++)
                *slot_of(b, b->states[i].key, b->states[i].count) = i;
        return 0;
}

static int grow_states(struct builder *b)
{
        uint32_t capacity = b->state_capacity ? 2 * b->state_capacity : 64;
        uint32_t columns = b->automaton->columns;
        struct state *states;
        uint32_t *next;

        if (b->automaton->states == AUTOMATON_STATES_MAX ||
            (size_t)b->automaton->states * columns * sizeof(*next) > AUTOMATON_BYTES_MAX)
                return error_raise(errtext_set(b->why, b->why_bytes, -EINVAL,
                                               "its automaton has more than %u states",
                                               b->automaton->states));
        states = reallocarray(b->states, capacity, sizeof(*states));
        if (!states)
                return error_raise(-ENOMEM);
        b->states = states;
        next = reallocarray(b->automaton->next, (size_t)capacity * columns, sizeof(*next));
        if (!next)
                return error_raise(-ENOMEM);
        b->automaton->next = next;
        b->state_capacity = capacity;
        return 0;
}

/* The state of b->key, a new one if there is none yet. */
static int find_state(struct builder *b, uint32_t count, uint32_t *ret_state)
{
        uint32_t *slot;
        int r = 0;

        if (!b->backward && count == 1) {
                *ret_state = AUTOMATON_DEAD;
                return 0;
        }
        if (2 * b->automaton->states >= b->slot_count)
                r = grow_slots(b);
        if (!r && b->automaton->states == b->state_capacity)
                r = grow_states(b);
        if (r)
                return error_pass(r);
        slot = slot_of(b, b->key, count);
        *ret_state = *slot;
        if (*slot)
                return 0;
        b->states[b->automaton->states] = (struct state){ malloc(count * sizeof(*b->key)), count };
        if (!b->states[b->automaton->states].key)
                return error_raise(-ENOMEM);
        memcpy(b->states[b->automaton->states].key, b->key, count * sizeof(*b->key));
        b->key_entries += count;
        *ret_state = *slot = b->automaton->states++;
        return 0;
}

/* ---- forward ---- */

/*
 * Follows one step through splits and conditions, in the order of trying.  Sets that have the next
 * character add the step behind them to b->key.  True: a match ends here, so later steps do not
 * count.
 */
static bool follow(struct builder *b, uint32_t from, uint32_t last, uint32_t next, uint32_t bits,
                   uint32_t *count)
{
        uint32_t depth = 0;

        b->stack[depth++] = from;
        while (depth) {
                uint32_t at = b->stack[--depth];
                const struct step *step = &b->program->steps[at];

                b->work++;
                if (b->visits[at] == b->visit)
                        continue;
                b->visits[at] = b->visit;
                if (step->kind == STEP_MATCH)
                        return true;
                if (step->kind == STEP_SPLIT) {
                        b->stack[depth++] = step->other;
                        b->stack[depth++] = step->next;
                } else if (step->kind == STEP_HERE) {
                        if (holds(b, step, last, next, bits))
                                b->stack[depth++] = step->next;
                } else if (in(b, step->set, next)) {
                        b->key[(*count)++] = step->next;
                }
        }
        return false;
}

/* A step that stands in the list twice counts where it stands first. */
static void drop_doubles(struct builder *b, uint32_t *count)
{
        uint32_t kept = 1;

        b->visit++;
        for (uint32_t i = 1; i < *count; i++) {
                if (b->visits[b->key[i]] == b->visit)
                        continue;
                b->visits[b->key[i]] = b->visit;
                b->key[kept++] = b->key[i];
        }
        *count = kept;
}

static int step_forward(struct builder *b, uint32_t state, uint32_t column, uint32_t *ret_next)
{
        uint32_t next = column % (b->classes->count + 1), bits = column / (b->classes->count + 1);
        uint32_t count = 1, to;
        bool matches = false;
        int r;

        b->visit++;
        b->key[0] = b->contexts[next];
        for (uint32_t i = 1; !matches && i < b->states[state].count; i++)
                matches = follow(b, b->states[state].key[i], b->states[state].key[0], next, bits,
                                 &count);
        drop_doubles(b, &count);
        r = find_state(b, count, &to);
        *ret_next = to << 1 | matches;
        return error_pass(r);
}

/* ---- backward ---- */

/* Finds from which steps a match can be reached: b->alive. */
static void find_alive(struct builder *b, const struct state *state, uint32_t last, uint32_t bits)
{
        const struct program *program = b->program;
        bool changed = true;

        memset(b->alive, 0, program->count);
        b->alive[PROGRAM_MATCH] = 1;
        for (uint32_t i = 1; i < state->count; i++)
                b->alive[state->key[i]] = 1;
        while (changed) {
                changed = false;
                b->work += program->count;
                for (uint32_t i = 1; i < program->count; i++) {
                        const struct step *step = &program->steps[i];
                        bool is = false;

                        if (b->alive[i])
                                continue;
                        if (step->kind == STEP_SPLIT)
                                is = b->alive[step->next] || b->alive[step->other];
                        else if (step->kind == STEP_HERE)
                                is = b->alive[step->next] &&
                                     holds(b, step, last, state->key[0], bits);
                        b->alive[i] = is;
                        changed = changed || is;
                }
        }
}

static int step_backward(struct builder *b, uint32_t state, uint32_t begin, uint32_t column,
                         uint32_t *ret_next)
{
        uint32_t last = column % (b->classes->count + 1), bits = column / (b->classes->count + 1);
        uint32_t count = 1, to = 0;
        int r;

        find_alive(b, &b->states[state], last, bits);
        b->key[0] = b->contexts[last];
        for (uint32_t i = 1; i < b->program->count; i++) {
                const struct step *step = &b->program->steps[i];

                if (b->reached[i] && step->kind == STEP_SET && in(b, step->set, last) &&
                    b->alive[step->next])
                        b->key[count++] = i;
        }
        r = find_state(b, count, &to);
        *ret_next = to << 1 | b->alive[begin];
        return error_pass(r);
}

/* ---- the whole ---- */

static void free_builder(struct builder *b)
{
        for (uint32_t i = 1; i < b->automaton->states; i++)
                free(b->states[i].key);
        free(b->states);
        free(b->slots);
        free(b->key);
        free(b->stack);
        free(b->visits);
        free(b->alive);
        free(b->reached);
}

static void find_reached(struct builder *b, uint32_t from)
{
        uint32_t depth = 0;

        b->stack[depth++] = from;
        while (depth) {
                uint32_t at = b->stack[--depth];

                if (b->reached[at])
                        continue;
                b->reached[at] = 1;
                b->stack[depth++] = b->program->steps[at].next;
                if (b->program->steps[at].kind == STEP_SPLIT)
                        b->stack[depth++] = b->program->steps[at].other;
        }
}

static int begin(struct builder *b, uint32_t looks)
{
        uint32_t steps = b->program->count;
        int r;

        b->automaton->columns = (b->classes->count + 1) << looks;
        b->automaton->states = 1; /* the dead one */
        /* A step is pushed at most twice: a split pushes two, and is followed once. */
        b->key = calloc((size_t)steps + 1, sizeof(*b->key));
        b->stack = calloc(2 * (size_t)steps + 2, sizeof(*b->stack));
        b->visits = calloc(steps, sizeof(*b->visits));
        b->alive = calloc(steps, 1);
        b->reached = calloc(steps, 1);
        if (!b->key || !b->stack || !b->visits || !b->alive || !b->reached)
                return error_raise(-ENOMEM);
        r = find_contexts(b);
        return r ? error_pass(r) : error_pass(grow_states(b));
}

static int fill(struct builder *b, uint32_t from)
{
        struct automaton *automaton = b->automaton;
        uint32_t next;
        int r = 0;

        memset(automaton->next, 0, automaton->columns * sizeof(*automaton->next));
        for (uint32_t state = 1; !r && state < automaton->states; state++)
                for (uint32_t column = 0; !r && column < automaton->columns; column++) {
                        next = 0;
                        r = b->backward ? step_backward(b, state, from, column, &next)
                                        : step_forward(b, state, column, &next);
                        automaton->next[(size_t)state * automaton->columns + column] = next;
                        if (b->work > WORK_MAX || b->key_entries > KEYS_MAX)
                                return error_pass(refuse_work(b));
                }
        return error_pass(r);
}

/*
 * Looks for a circle of states on which no match ends.  marks: 0 not seen, 1 on the way, 2 done.
 * `way` has the states on the way, and the column from which each goes on.
 */
static int find_overruns(struct automaton *automaton)
{
        uint8_t *marks = calloc(automaton->states, 1);
        uint32_t *way = calloc(2 * (size_t)automaton->states, sizeof(*way));
        int r = marks && way ? 0 : error_raise(-ENOMEM);

        for (uint32_t from = 1; !r && from < automaton->states; from++) {
                uint32_t depth = 0;

                if (marks[from])
                        continue;
                marks[from] = 1;
                way[2 * depth] = from;
                way[2 * depth++ + 1] = 0;
                while (depth) {
                        uint32_t state = way[2 * depth - 2], column = way[2 * depth - 1]++, next;

                        if (column == automaton->columns) {
                                marks[state] = 2;
                                depth--;
                                continue;
                        }
                        next = automaton->next[(size_t)state * automaton->columns + column];
                        if (next & 1 || next >> 1 == AUTOMATON_DEAD || marks[next >> 1] == 2)
                                continue;
                        automaton->overruns = automaton->overruns || marks[next >> 1] == 1;
                        if (marks[next >> 1] == 1)
                                continue;
                        marks[next >> 1] = 1;
                        way[2 * depth] = next >> 1;
                        way[2 * depth++ + 1] = 0;
                }
        }
        free(marks);
        free(way);
        return error_pass(r);
}

int automaton_forward(struct automaton *ret_automaton, const struct program *program,
                      const struct classes *classes, char *why, size_t why_bytes)
{
        struct automaton automaton = { 0 };
        struct builder b = { .program = program,
                             .classes = classes,
                             .automaton = &automaton,
                             .why = why,
                             .why_bytes = why_bytes };
        int r = begin(&b, program->look_count);

        for (uint32_t class = 0; !r && class <= classes->count; class ++) {
                b.key[0] = b.contexts[class];
                b.key[1] = program->begin;
                r = find_state(&b, 2, &automaton.starts[class]);
                automaton.remembers = automaton.remembers || b.contexts[class];
        }
        if (!r)
                r = fill(&b, 0);
        if (!r)
                r = find_overruns(&automaton);
        free_builder(&b);
        if (r) {
                automaton_deinit(&automaton);
                return error_pass(r);
        }
        *ret_automaton = automaton;
        return 0;
}

int automaton_backward(struct automaton *ret_automaton, const struct program *program,
                       const struct classes *classes, uint32_t look, char *why, size_t why_bytes)
{
        struct automaton automaton = { 0 };
        struct builder b = { .program = program,
                             .classes = classes,
                             .automaton = &automaton,
                             .backward = true,
                             .why = why,
                             .why_bytes = why_bytes };
        int r = begin(&b, look);

        if (!r) {
                find_reached(&b, program->looks[look]);
                b.key[0] = b.contexts[classes->count];
                r = find_state(&b, 1, &automaton.start);
        }
        if (!r)
                r = fill(&b, program->looks[look]);
        free_builder(&b);
        if (r) {
                automaton_deinit(&automaton);
                return error_pass(r);
        }
        *ret_automaton = automaton;
        return 0;
}
