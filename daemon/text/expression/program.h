/*
 * A tree as steps: which character, or which condition, leads from one step to which.
 *
 * One program holds the expression and its looks; each has a step of its own where it begins, and
 * all end at the step 0.
 */
#ifndef DAEMON_TEXT_EXPRESSION_PROGRAM_H
#define DAEMON_TEXT_EXPRESSION_PROGRAM_H

#include "daemon/text/expression/tree.h"

#define PROGRAM_STEPS_MAX 20000u
#define PROGRAM_MATCH     0u /* the step at which a match ends */

enum step_kind {
        STEP_MATCH,
        STEP_SET,   /* a character of `set` leads to `next` */
        STEP_SPLIT, /* both `next` and `other`; `next` is tried first */
        STEP_HERE,  /* `next`, if the condition holds */
};

struct step {
        uint8_t kind, place;
        bool inverted;
        uint32_t set, look;
        uint32_t next, other;
};

struct program {
        struct step *steps;
        uint32_t count, capacity;
        uint32_t begin;                 /* of the expression */
        uint32_t looks[TREE_LOOKS_MAX]; /* where each look begins */
        uint32_t look_count;
};

/* 0, -EINVAL with the fault in *why, or -ENOMEM. */
int program_make(struct program *ret_program, const struct tree *tree, char *why, size_t why_bytes);
void program_deinit(struct program *program); /* all zero is fine */

#endif
