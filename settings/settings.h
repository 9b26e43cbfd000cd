/*
 * Settings of a program: flags, a config file, and defaults, by one table (settings/table.h).
 *
 * A config file has lines `name = value`, blank lines, and lines that begin with #.  A value may
 * stand in quotes.  On the command line, a dash replaces each underscore of a name.  Flags win over
 * the file.  `values` is always the struct that the table describes.
 */
#ifndef SETTINGS_SETTINGS_H
#define SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "settings/table.h"

/*
 * Reads the defaults, then a config file, then flags, then checks the rules between settings.  The
 * file is that of --config, else the first one that is there: samovar/ and its name in
 * $XDG_CONFIG_HOME (or ~/.config), or in /etc.  Returns 0, or -EINVAL, -ENOMEM, or the error of
 * reading the file.  On error *why has one line, and there is nothing to deinit.
 */
int settings_read(const struct settings_table *table, void *values, int argc, char **argv,
                  char *why, size_t why_bytes);
/* All texts are NULL afterwards, so a second call does nothing. */
void settings_deinit(const struct settings_table *table, void *values);

/*
 * Reads the same sources again, and takes over the settings that may change while the program
 * runs.  *why has the names of the others that have changed, with commas between them; "": none.
 * Returns as settings_read(); on error nothing is changed.
 */
int settings_reload(const struct settings_table *table, void *values, int argc, char **argv,
                    char *why, size_t why_bytes);

/* Prints what --help, --version or --check-config ask for.  False: none was given. */
bool settings_answer(const struct settings_table *table, const void *values, FILE *to);

/* Prints the text of --help, made from the table. */
void settings_help(const struct settings_table *table, FILE *to);

/* A row of the table, for a page of reference. */
struct settings_row {
        const char *group;   /* the headline of the group that begins here; NULL: the same group */
        const char *name;    /* as in a file; a flag has dashes and two more before it */
        const char *value;   /* "SIZE"; "": the flag alone means yes */
        char values[128];    /* "64K to 4M", "auto, off"; "": anything */
        const char *initial; /* the default; "": none, or no */
        const char *help;
        bool flag_only;
        bool live; /* settings_reload() takes it over */
};

/* Row `index`; false after the last one. */
bool settings_describe(const struct settings_table *table, size_t index,
                       struct settings_row *ret_row);

/*
 * The next setting from *index on that is a number, a size, or yes (1) or no (0), and may be in a
 * file; false after the last one.
 */
bool settings_limit(const struct settings_table *table, const void *values, uint32_t *index,
                    const char **ret_name, uint64_t *ret_value);

/* Sets the defaults.  Returns 0, or -ENOMEM and then there is nothing to deinit. */
int settings_init(const struct settings_table *table, void *values);

/* Parses the text of one file on top of the current values; returns as settings_read(). */
int settings_parse(const struct settings_table *table, void *values, const char *text, size_t bytes,
                   char *why, size_t why_bytes);

#endif
