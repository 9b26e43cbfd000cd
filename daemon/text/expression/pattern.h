/*
 * A pattern that is being read: its text, the flags that hold at this place, and the tree that is
 * made of it.  parser.c and class.c share it.
 */
#ifndef DAEMON_TEXT_EXPRESSION_PATTERN_H
#define DAEMON_TEXT_EXPRESSION_PATTERN_H

#include <errno.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/text/expression/tree.h"

struct pattern_flags {
        bool folds;     /* (?i) */
        bool dot_lines; /* (?m) of Ruby, (?s) of others: . matches a newline, too */
};

struct pattern {
        struct tree *tree;
        const char *at;
        size_t left;
        struct pattern_flags flags;
        unsigned depth;
        /* The letters before this place that are to match without regard to case: at most three. */
        uint32_t letters[3];
        unsigned letter_count;
        char *why;
        size_t why_bytes;
};

#define PATTERN_LETTERS                                                                            \
        "under (?i) it has a character that equals several letters, such as U+00DF and 'ss'; "     \
        "this is not supported"

#define pattern_refuse(p, ...)                                                                     \
        error_raise(errtext_set((p)->why, (p)->why_bytes, -EINVAL, __VA_ARGS__))

static inline void pattern_skip(struct pattern *p, size_t bytes)
{
        p->at += bytes;
        p->left -= bytes;
}

/* Moves the set into the tree.  0, -EINVAL or -ENOMEM. */
int pattern_keep_set(struct pattern *p, struct charset *set, uint32_t *ret_set);

#endif
