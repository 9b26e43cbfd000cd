/*
 * The table of settings: how each is written, checked and stored.  config.c describes the table,
 * and config-read.c reads files and flags by it.  Other modules include config.h.
 */
#ifndef DAEMON_START_CONFIG_TABLE_H
#define DAEMON_START_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/start/config-values.h"

enum config_kind {
        KIND_TEXT,   /* char *, anything */
        KIND_NAME,   /* char *, one word of `words` */
        KIND_WORD,   /* uint32_t, the index of a word in `words` */
        KIND_MODE,   /* uint32_t, one of `words`, each an octal number with a leading 0 */
        KIND_SWITCH, /* bool; --name alone means yes */
        KIND_INT,    /* int32_t */
        KIND_COUNT,  /* uint32_t */
        /* uint32_t, a number or one of `words`: the first is UINT32_MAX, the next one less */
        KIND_SOME,
        KIND_BYTES, /* uint64_t, with K, M or G */
};

/* When a setting takes effect. */
enum config_use {
        AT_START,  /* when the daemon starts */
        LIVE,      /* also when it reloads its settings */
        FLAG_ONLY, /* when it starts, and not in a file */
};

struct setting {
        const char *name;
        enum config_kind kind;
        size_t offset;
        const char *initial; /* NULL: none */
        uint64_t low, high;
        const char *words[6]; /* NULL-terminated; for KIND_TEXT: the name of the value in --help */
        enum config_use use;
        const char *help;
        const char *group; /* the headline of the group that begins here; NULL: the same group */
};

extern const struct setting config_settings[];
extern const size_t config_setting_count;

/* Where an error is reported: at a flag, or at a line of a file. */
struct config_place {
        const char *file; /* NULL: the command line */
        uint32_t line;
        char *why;
        size_t why_bytes;
};

/* Writes a message about this place to *why.  Returns -EINVAL. */
int config_refuse(const struct config_place *at, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
/* The same for a name that is no setting: with the nearest name that is one, if one is near. */
int config_refuse_name(const struct config_place *at, const char *name, size_t bytes);

/* The name as written at this place: kv_bytes in a file, --kv-bytes as a flag. */
const char *config_shown(const struct config_place *at, const char *name, char *to, size_t bytes);

/* The setting of this name, as it is written at this place; NULL: there is none. */
const struct setting *config_find(const struct config_place *at, const char *name, size_t bytes);

/* Parses a value and sets it, or refuses it. */
int config_set(struct config *config, const struct setting *setting, const struct config_place *at,
               const char *value);

/* Writes 65536 as 64K, if it divides evenly and the setting is a size. */
const char *config_sized(enum config_kind kind, uint64_t n, char *to, size_t bytes);

#endif
