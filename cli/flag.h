/*
 * A flag of the command: its row in the table of flags.c, and how its value is read.  Only flags.c
 * and flag-values.c include this.
 */
#ifndef CLI_FLAG_H
#define CLI_FLAG_H

#include "cli/cli.h"

enum flag_kind {
        FLAG_TEXT,
        FLAG_SWITCH, /* bool; takes no value */
        FLAG_COUNT,  /* uint32_t, at least 1 */
        FLAG_UINT32,
        FLAG_UINT64,
        FLAG_FLOAT,
        FLAG_SECONDS, /* double; the value may be left out, which is one second */
        FLAG_WORD,    /* an enum: the index of the value in `words` */
        FLAG_STOP,
        FLAG_BAN,
        FLAG_CHOICE,
        FLAG_TOOL,
};

struct flag {
        const char *name, *value;
        unsigned commands;
        enum flag_kind kind;
        size_t offset; /* in struct cli */
        uint32_t set;  /* enum smv_set */
        const char *help;
        const char *group; /* the headline of the group that begins here; NULL: the same group */
        /* The numbers that it may be; `high` 0: all of its type.  `above`: not `low` itself. */
        double low, high;
        bool above;
        const char *const *words; /* NULL-terminated */
};

/* True if the flag takes `next` as its value.  NULL: there is no argument after the flag. */
bool flag_takes(const struct flag *flag, const char *next);

/* Stores a value.  NULL: there is none.  0, or CLI_USAGE after saying what the value may be. */
int flag_set(struct cli *cli, const struct flag *flag, const char *value);

#endif
