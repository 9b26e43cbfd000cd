/*
 * Every limit of the daemon, decided at start.
 *
 * One table (config-table.c) gives each setting its name, kind, range, default and one line of
 * help.  A flag `--name value`, a line `name = value` of the config file, a line of `samovard
 * --help`, the manuals and `limits` in `status` come from the same row.  So they cannot disagree.
 * Flags win over the file.
 */
#ifndef DAEMON_START_CONFIG_H
#define DAEMON_START_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/start/config-values.h"

/*
 * Reads the defaults, then a config file, then flags, then checks the rules between settings.  The
 * file is that of --config, else the first one that is there of samovar/samovar.conf in
 * $XDG_CONFIG_HOME (or ~/.config) and in /etc.  A start that does not serve a socket reads only the
 * file of --config.  Returns 0, or -EINVAL, -ENOMEM, or the error of reading the file.  On error
 * *why has one line, and there is nothing to deinit.
 */
int config_read(struct config *config, int argc, char **argv, char *why, size_t why_bytes);
void config_deinit(struct config *config);

/*
 * Reads the same sources again, and takes over the settings that may change while the daemon
 * serves.  *why has the names of the others that have changed, with commas between them; "": none.
 * Returns as config_read(); on error nothing is changed.
 */
int config_reload(struct config *config, int argc, char **argv, char *why, size_t why_bytes);

/* Prints the text of --help, made from the table. */
void config_help(FILE *to);

/* A row of the table, for a page of reference. */
struct config_row {
        const char *group;   /* the headline of the group that begins here; NULL: the same group */
        const char *name;    /* as in a file; a flag has dashes and two more before it */
        const char *value;   /* "SIZE"; "": the flag alone means yes */
        char values[128];    /* "64K to 4M", "auto, off"; "": anything */
        const char *initial; /* the default; "": none, or no */
        const char *help;
        bool flag_only;
        bool live; /* config_reload() takes it over */
};

/* Row `index`; false after the last one. */
bool config_describe(size_t index, struct config_row *ret_row);

/*
 * The next setting from *index on that is a number, a size, or yes (1) or no (0), and may be in a
 * file; false after the last one.
 */
bool config_limit(const struct config *config, uint32_t *index, const char **ret_name,
                  uint64_t *ret_value);

/* Sets the defaults.  Returns 0, or -ENOMEM and then there is nothing to deinit. */
int config_init(struct config *config);

/* Parses the text of one file on top of the current values; returns the same as config_read(). */
int config_parse(struct config *config, const char *text, size_t bytes, char *why,
                 size_t why_bytes);

#endif
