/*
 * Names and values as they are written: finds a row by its name, and parses a value.
 */
#ifndef SETTINGS_VALUES_H
#define SETTINGS_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "settings/refuse.h"
#include "settings/table.h"

/* The row of this name, as it is written at this place; NULL: there is none. */
const struct setting *setting_find(const struct settings_table *table,
                                   const struct settings_place *at, const char *name, size_t bytes);
/* Refuses a name that is no setting: with the nearest name that is one, if one is near. */
int setting_refuse_name(const struct settings_table *table, const struct settings_place *at,
                        const char *name, size_t bytes);

/* Parses a value and sets it, or refuses it. */
int setting_set(void *values, const struct setting *setting, const struct settings_place *at,
                const char *value);

/* Writes 65536 as 64K, if it divides evenly and the setting is a size. */
const char *setting_sized(enum setting_kind kind, uint64_t n, char *to, size_t bytes);

#endif
