/*
 * Every limit of the daemon, decided at start.
 *
 * config-table.c has the table of settings, and config.c the rules between them.
 * settings/settings.h reads flags and files by them.
 */
#ifndef DAEMON_START_CONFIG_H
#define DAEMON_START_CONFIG_H

#include <stdbool.h>

#include "daemon/start/config-values.h"
#include "settings/settings.h"

/* Its values are a struct config. */
extern const struct settings_table config_table;

/* The rules of the table: see settings/table.h. */
int config_check_together(const void *values, const struct settings_place *at);
/* A start that does not serve a socket reads only the file of --config. */
bool config_serves_socket(const void *values);

#endif
