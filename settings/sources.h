/*
 * Where settings come from: the command line, and a config file.  settings.h says how they look.
 */
#ifndef SETTINGS_SOURCES_H
#define SETTINGS_SOURCES_H

#include <stddef.h>

#include "settings/refuse.h"
#include "settings/table.h"

/* The longest value in a file, with its NUL. */
#define VALUE_BYTES_MAX 4096u

/* Each returns 0, or a negative errno and a line in *why. */
int sources_flags(const struct settings_table *table, void *values, int argc, char **argv,
                  const struct settings_place *at);
int sources_file(const struct settings_table *table, void *values, const char *path, char *why,
                 size_t why_bytes);
/* The text of a file with this name. */
int sources_parse(const struct settings_table *table, void *values, const char *name,
                  const char *text, size_t bytes, char *why, size_t why_bytes);

#endif
