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

static int compile(struct compiler *c, uint32_t node, uint32_t next, uint32_t *ret_begin);

/* The children of a row: the last one first. */
static int compile_row(struct compiler *c, uint32_t child, uint32_t next, uint32_t *ret_begin)
{
        int r;

        *ret_begin = next;
        if (child == TREE_NONE)
                return 0;
        r = compile_row(c, c->tree->nodes[child].next, next, ret_begin);
        return r ? error_pass(r) : error_pass(compile(c, child, *ret_begin, ret_begin));
}

static int compile_choice(struct compiler *c, uint32_t child, uint32_t next, uint32_t *ret_begin)
{
        struct step split = { .kind = STEP_SPLIT };
        int r = compile(c, child, next, &split.next);

        *ret_begin = split.next;
        if (r || c->tree->nodes[child].next == TREE_NONE)
                return error_pass(r);
        r = compile_choice(c, c->tree->nodes[child].next, next, &split.other);
        return r ? error_pass(r) : error_pass(add(c, &split, ret_begin));
}

static void set_split(struct compiler *c, uint32_t split, uint32_t inside, uint32_t behind,
                      bool lazy)
{
        c->program->steps[split].next = lazy ? behind : inside;
        c->program->steps[split].other = lazy ? inside : behind;
}

/* The part of a repeat that may be left out. */
static int compile_optional(struct compiler *c, const struct node *node, uint32_t next,
                            uint32_t *ret_begin)
{
        const struct step step = { .kind = STEP_SPLIT };
        uint32_t split, inside, behind = next;
        int r = 0;

        if (node->most == TREE_NONE) {
                r = add(c, &step, &split);
                if (!r)
                        r = compile(c, node->child, split, &inside);
                if (!r)
                        set_split(c, split, inside, next, node->lazy);
                *ret_begin = split;
                return error_pass(r);
        }
        for (uint32_t i = node->least; !r && i < node->most; i++) {
                r = compile(c, node->child, behind, &inside);
                if (!r)
                        r = add(c, &step, &split);
                if (r)
                        break;
                set_split(c, split, inside, next, node->lazy);
                behind = split;
        }
        *ret_begin = behind;
        return error_pass(r);
}

static int compile_repeat(struct compiler *c, const struct node *node, uint32_t next,
                          uint32_t *ret_begin)
{
        int r = compile_optional(c, node, next, ret_begin);

        for (uint32_t i = 0; !r && i < node->least; i++)
                r = compile(c, node->child, *ret_begin, ret_begin);
        return error_pass(r);
}

static int compile(struct compiler *c, uint32_t at, uint32_t next, uint32_t *ret_begin)
{
        const struct node *node = &c->tree->nodes[at];
        const struct step step = { .kind = node->kind == NODE_SET ? STEP_SET : STEP_HERE,
                                   .place = node->place,
                                   .inverted = node->inverted,
                                   .set = node->set,
                                   .look = node->look,
                                   .next = next };

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
        uint32_t first;
        int r = add(&compiler, &match, &first);

        if (!r)
                r = compile(&compiler, tree->root, PROGRAM_MATCH, &program.begin);
        for (uint32_t i = 0; !r && i < tree->look_count; i++)
                r = compile(&compiler, tree->looks[i], PROGRAM_MATCH, &program.looks[i]);
        if (r) {
                program_deinit(&program);
                return error_pass(r);
        }
        *ret_program = program;
        return 0;
}
