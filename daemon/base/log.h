/*
 * One line per event: `time level event key=value ...` on stderr.  Under systemd, where stderr is
 * the journal, a priority replaces the time.
 *
 * Only the outer layers log; the core and the kernels never do.  Control bytes and quotes in a
 * value are escaped, so that no value can forge a line.  Prompts and texts are never logged.
 * Logging never blocks: a line that stderr does not accept at once is lost, and `status` shows the
 * count of lost lines.  Any thread.
 */
#ifndef DAEMON_BASE_LOG_H
#define DAEMON_BASE_LOG_H

#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_open(enum log_level lowest);
void log_set_level(enum log_level lowest); /* any thread, also while others log */
/* "listening socket=%s pid=%d": the format's first word is the event; %s values are escaped. */
void log_event(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t log_lost(void);

#define log_error(...) log_event(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_event(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_event(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_event(LOG_DEBUG, __VA_ARGS__)

#endif
