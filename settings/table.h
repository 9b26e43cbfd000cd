/*
 * The table of a program's settings.
 *
 * A row gives a setting its name, kind, range, default and one line of help.  A flag `--name
 * value`, a line `name = value` of the config file, a line of --help, the manuals and `limits` in
 * `status` come from the same row.  So they cannot disagree.  A default is written like a user's
 * value and parsed by the same code.  So the default in --help is the one in effect.
 *
 * The values are a struct of the program.  Each row names the member that has its value.
 */
#ifndef SETTINGS_TABLE_H
#define SETTINGS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings_place;

/* The most rows of a table. */
#define SETTINGS_MAX 128u

enum setting_kind {
        KIND_TEXT,   /* char *, anything */
        KIND_NAME,   /* char *, one word of `words` */
        KIND_WORD,   /* uint32_t, the index of a word in `words` */
        KIND_MODE,   /* uint32_t, one of `words`, each an octal number with a leading 0 */
        KIND_SWITCH, /* bool; --name alone means yes */
        KIND_INT,    /* int32_t, not negative; without a default it is -1 */
        KIND_COUNT,  /* uint32_t */
        /* uint32_t, a number or one of `words`: the first is UINT32_MAX, the next one less */
        KIND_SOME,
        KIND_BYTES, /* uint64_t, with K, M or G */
};

/* When a setting takes effect. */
enum setting_use {
        AT_START,  /* when the program starts */
        LIVE,      /* also when it reloads its settings; not for texts and names */
        FLAG_ONLY, /* when it starts, and not in a file */
};

#define SETTING_WORDS 8u /* the NULL included */

struct setting {
        const char *name;
        enum setting_kind kind;
        size_t offset;
        const char *initial; /* NULL: none */
        uint64_t low, high;
        /* NULL-terminated; for KIND_TEXT: the name of the value in --help */
        const char *words[SETTING_WORDS];
        enum setting_use use;
        const char *help;
        const char *group; /* the headline of the group that begins here; NULL: the same group */
};

struct settings_table {
        const char *program;  /* "samovard" */
        const char *synopsis; /* of the command line, behind the name of the program */
        const char *file;     /* "samovar.conf", in a folder samovar/ */
        const struct setting *rows;
        size_t count;
        size_t bytes; /* of the struct of values */
        /* Members that every program has: char *, the file to read, and three switches. */
        size_t config, check_config, help, version;
        /* False: this start reads only the file of --config.  NULL: none is so. */
        bool (*looks_for_file)(const void *values);
        /* Rules between settings.  Returns 0, or what settings_refuse() does. */
        int (*check)(const void *values, const struct settings_place *at);
};

#endif
