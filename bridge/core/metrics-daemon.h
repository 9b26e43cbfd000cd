/*
 * The metrics that come from the daemon's `status`.  A number that it does not tell is left out.
 * The tables of metrics-daemon.c have the names; a new row is a new metric.
 */
#ifndef BRIDGE_CORE_METRICS_DAEMON_H
#define BRIDGE_CORE_METRICS_DAEMON_H

#include "bridge/core/metrics-text.h"

#define METRICS_PREFIX "samovar_" /* of all names but OpenTelemetry's */

struct json_document;

void metrics_daemon_write(struct metrics_writer *w, const struct json_document *json);
/* The numbers of each user, if there are several. */
void metrics_users_write(struct metrics_writer *w, const struct json_document *json);

#endif
