/*
 * Flags of the command: the tables of flag-table.c, and how values are read (flag-values.c).  Only
 * these two and flags.c include this.
 */
#ifndef CLI_FLAG_H
#define CLI_FLAG_H

#include "cli/cli.h"

/* Groups of commands that take a flag. */
#define ONE_QUESTION (CLI_ASK | CLI_COMPLETE)
#define GENERATE     (ONE_QUESTION | CLI_CHAT)
#define CALLS        (CLI_ASK | CLI_CHAT)
#define TOKENS       (CLI_TOKENIZE | CLI_DETOKENIZE)
#define CONVERSATION (CLI_ASK | CLI_TEMPLATE)
#define STREAM       (GENERATE | CLI_ATTACH)
#define SAMPLING     (GENERATE | CLI_FORK_DEMO)
#define LOOKS        (CLI_STATUS | CLI_MODELS | CLI_PS | CLI_CANCEL | CLI_TOP)
#define ALL          (STREAM | CLI_FORK_DEMO | TOKENS | CLI_TEMPLATE | LOOKS | CLI_BENCH)

struct command {
        const char *name;
        enum cli_command command;
        const char *arguments, *help;
        const char *group; /* the headline of the group that begins here; NULL: the same group */
};

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

extern const struct command command_table[];
extern const struct flag flag_table[];
extern const size_t command_count, flag_count;

/* Prints the help of a command; of the program, if there is none. */
void flag_help(const struct cli *cli);

/* True if the flag takes `next` as its value.  NULL: there is no argument after the flag. */
bool flag_takes(const struct flag *flag, const char *next);

/* Stores a value.  NULL: there is none.  0, or CLI_USAGE after saying what the value may be. */
int flag_set(struct cli *cli, const struct flag *flag, const char *value);
/* Back to the default. */
void flag_unset(struct cli *cli, const struct flag *flag);
/* Writes the value as text; false if it is the default. */
bool flag_show(const struct cli *cli, const struct flag *flag, char *to, size_t bytes);

#endif
