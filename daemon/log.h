/*
 * One line per event: `level event key=value ...` on stderr.
 *
 * Only borders log; the core and the kernels never do.  A value is printed so
 * that no byte of it can forge a line: control bytes and quotes are escaped.
 * Prompts and texts are never logged.  A sink that does not take a line at once
 * loses it, and the count of lost lines is in status: logging never blocks.
 * Any thread.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_open(enum log_level lowest);
/* "listening socket=%s pid=%d": the format's first word is the event; %s values are escaped. */
void log_event(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t log_lost(void);

#define log_error(...) log_event(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_event(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_event(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_event(LOG_DEBUG, __VA_ARGS__)

#endif
