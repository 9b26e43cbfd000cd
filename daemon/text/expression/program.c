/* Nodes are compiled from the end to the beginning: each is told the step that follows it. */
#include "daemon/text/expression/program.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/errtext.h"

struct compiler {
        const struct tree *tree;
        struct program *program;
        char *why;
        size_t why_bytes;
};

void program_deinit(struct program *program)
{
        free(program->steps);
        *program = (struct program){ 0 };
}

static int add(struct compiler *c, const struct step *step, uint32_t *ret_step)
{
        struct program *program = c->program;

        if (program->count == PROGRAM_STEPS_MAX)
                return error_raise(errtext_set(c->why, c->why_bytes, -EINVAL,
                                               "with its repeats it has more than %u steps",
                                               PROGRAM_STEPS_MAX));
        if (program->count == program->capacity) {
                uint32_t capacity = program->capacity ? 2 * program->capacity : 64;
                struct step *steps = reallocarray(program->steps, capacity, sizeof(*steps));

                if (!steps)
                        return error_raise(-ENOMEM);
                program->steps = steps;
                program->capacity = capacity;
        }
        *ret_step = program->count;
        program->steps[program->count++] = *step;
        return 0;
}

/*
 * Where a part leads.  A part that matched nothing may have to go on elsewhere than one that read
 * characters: see compile_endless().  Otherwise both are the same step.
 */
struct ends {
        uint32_t moved, still;
};

static int compile(struct compiler *c, uint32_t node, struct ends next, uint32_t *ret_begin);

static bool may_be_empty(const struct tree *tree, uint32_t at)
{
        const struct node *node = &tree->nodes[at];
        uint32_t child = node->child;

        switch ((enum node_kind)node->kind) {
        case NODE_SET:
                return false;
        case NODE_HERE:
                return true;
        case NODE_REPEAT:
                return !node->least || may_be_empty(tree, child);
        case NODE_ROW:
                while (child != TREE_NONE && may_be_empty(tree, child))
                        child = tree->nodes[child].next;
                return child == TREE_NONE;
        case NODE_CHOICE:
        default:
                while (child != TREE_NONE && !may_be_empty(tree, child))
                        child = tree->nodes[child].next;
                return child != TREE_NONE;
        }
}

/*
 * Puts a part before `begin`: *begin becomes the steps that begin with the part, if characters were
 * read before it and if none were.
 */
static int prepend(struct compiler *c, uint32_t node, struct ends *begin)
{
        const struct ends next = *begin, moved = { next.moved, next.moved };
        int r = compile(c, node, moved, &begin->moved);

        begin->still = begin->moved;
        return r || next.still == next.moved ? error_pass(r)
                                             : error_pass(compile(c, node, next, &begin->still));
}

static int compile_row(struct compiler *c, uint32_t child, struct ends next, uint32_t *ret_begin)
{
        int r = 0;

        *ret_begin = next.still;
        if (child == TREE_NONE)
                return 0;
        for (; !r && c->tree->nodes[child].next != TREE_NONE; child = c->tree->nodes[child].next)
                r = prepend(c, child, &next);
        return r ? error_pass(r) : error_pass(compile(c, child, next, ret_begin));
}

static int add_split(struct compiler *c, uint32_t inside, uint32_t behind, bool lazy,
                     uint32_t *ret_begin)
{
        const struct step step = { .kind = STEP_SPLIT,
                                   .next = lazy ? behind : inside,
                                   .other = lazy ? inside : behind };

        return error_pass(add(c, &step, ret_begin));
}

static int compile_choice(struct compiler *c, uint32_t child, struct ends next, uint32_t *ret_begin)
{
        uint32_t begin;
        int r = compile(c, child, next, ret_begin);

        for (child = c->tree->nodes[child].next; !r && child != TREE_NONE;
             child = c->tree->nodes[child].next) {
                r = compile(c, child, next, &begin);
                if (!r)
                        r = add_split(c, begin, *ret_begin, false, ret_begin);
        }
        return error_pass(r);
}

/*
 * A round that reads nothing ends the repeating, so that it does not go on for ever.  This is what
 * a matcher does that tries alternatives in order, and it decides which match is the first.
 */
static int compile_endless(struct compiler *c, const struct node *node, struct ends *begin)
{
        const struct ends next = *begin;
        bool empty = may_be_empty(c->tree, node->child);
        struct ends round = { 0, next.moved };
        uint32_t inside = 0;
        int r = add_split(c, PROGRAM_MATCH, PROGRAM_MATCH, false, &begin->moved);

        begin->still = round.moved = begin->moved;
        if (!empty)
                round.still = round.moved;
        if (!r)
                r = compile(c, node->child, round, &inside);
        if (r)
                return error_pass(r);
        c->program->steps[round.moved].next = node->lazy ? next.moved : inside;
        c->program->steps[round.moved].other = node->lazy ? inside : next.moved;
        if (next.still == next.moved)
                return 0;
        round.still = next.still;
        if (empty)
                r = compile(c, node->child, round, &inside);
        return r ? error_pass(r)
                 : error_pass(add_split(c, inside, next.still, node->lazy, &begin->still));
}

/* The part of a repeat that may be left out. */
static int compile_optional(struct compiler *c, const struct node *node, struct ends *begin)
{
        const struct ends next = *begin;
        int r = 0;

        if (node->most == TREE_NONE)
                return error_pass(compile_endless(c, node, begin));
        for (uint32_t i = node->least; !r && i < node->most; i++) {
                bool differ = next.still != next.moved;

                r = prepend(c, node->child, begin);
                if (!r)
                        r = add_split(c, begin->moved, next.moved, node->lazy, &begin->moved);
                if (!r && differ)
                        r = add_split(c, begin->still, next.still, node->lazy, &begin->still);
                if (!differ)
                        begin->still = begin->moved;
        }
        return error_pass(r);
}

static int compile_repeat(struct compiler *c, const struct node *node, struct ends next,
                          uint32_t *ret_begin)
{
        bool counted = node->least > 1 || (node->most != TREE_NONE && node->most > 1);
        int r;

        /* Oniguruma counts rounds that read nothing, or not, by the size of the part. */
        if (counted && may_be_empty(c->tree, node->child))
                return error_raise(errtext_set(c->why, c->why_bytes, -EINVAL,
                                               "a part that may be empty is repeated by a number; "
                                               "only *, + and ? are supported there"));
        r = compile_optional(c, node, &next);
        for (uint32_t i = 0; !r && i < node->least; i++)
                r = prepend(c, node->child, &next);
        *ret_begin = next.still;
        return error_pass(r);
}

static int compile(struct compiler *c, uint32_t at, struct ends next, uint32_t *ret_begin)
{
        const struct node *node = &c->tree->nodes[at];
        const struct step step = { .kind = node->kind == NODE_SET ? STEP_SET : STEP_HERE,
                                   .place = node->place,
                                   .inverted = node->inverted,
                                   .set = node->set,
                                   .look = node->look,
                                   .next = node->kind == NODE_SET ? next.moved : next.still };

        switch ((enum node_kind)node->kind) {
        case NODE_ROW:
                return error_pass(compile_row(c, node->child, next, ret_begin));
        case NODE_CHOICE:
                return error_pass(compile_choice(c, node->child, next, ret_begin));
        case NODE_REPEAT:
                return error_pass(compile_repeat(c, node, next, ret_begin));
        case NODE_SET:
        case NODE_HERE:
                break;
        }
        return error_pass(add(c, &step, ret_begin));
}

int program_make(struct program *ret_program, const struct tree *tree, char *why, size_t why_bytes)
{
        struct program program = { .look_count = tree->look_count };
        struct compiler compiler = { tree, &program, why, why_bytes };
        const struct step match = { .kind = STEP_MATCH };
        const struct ends end = { PROGRAM_MATCH, PROGRAM_MATCH };
        uint32_t first;
        int r = add(&compiler, &match, &first);

        if (!r)
                r = compile(&compiler, tree->root, end, &program.begin);
        for (uint32_t i = 0; !r && i < tree->look_count; i++)
                r = compile(&compiler, tree->looks[i], end, &program.looks[i]);
        if (r) {
                program_deinit(&program);
                return error_pass(r);
        }
        *ret_program = program;
        return 0;
}
