/*
 * One line per event: `time level event key=value ...` on stderr.  Under systemd, where stderr is
 * the journal, a priority replaces the time.
 *
 * Only the outer layers log; the core and the kernels never do.  Control bytes and quotes in a
 * value are escaped, so that no value can forge a line.  Prompts and texts are never logged.
 * Logging never blocks: a line that stderr does not accept at once is lost, and `status` shows the
 * count of lost lines.
 *
 * A line that a client can cause is written with log_limited(), so that no client can fill the log.
 * Each such place in the code may write a burst of lines, and then a few each second: 10 and 1, at
 * the level debug 1000 and 100.  The lines beyond that are counted.  When the place may write
 * again, a line `suppressed event=peer_lost lines=711990` comes first.
 *
 * A client that tries again and again causes the same line each time.  log_limited_by() has a key
 * for what is the same in them.  It writes the first line of a key, and counts the others for a
 * minute.  Then the next one comes after a line `repeated event=peer_refused lines=41`.
 *
 * Any thread, but only one for each place with log_limited_by().
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_open(enum log_level lowest);
void log_set_level(enum log_level lowest); /* any thread, also while others log */
/* "listening socket=%s pid=%d": the format's first word is the event; %s values are escaped. */
void log_event(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t log_lost(void);

/* One place in the code that writes lines.  All zero: it has written none. */
struct log_limit {
        _Atomic uint64_t full_ns;    /* the time at which a whole burst is there again */
        _Atomic uint64_t suppressed; /* since the last line that was let through */
};

/* May the place write a line at this time?  If so, *ret_suppressed lines were suppressed before. */
bool log_limit_pass(struct log_limit *limit, enum log_level level, uint64_t now_ns,
                    uint64_t *ret_suppressed);
/* The same for a line that would be shown, now; writes the line about those suppressed. */
bool log_may_write(struct log_limit *limit, enum log_level level, const char *format);

/* One place that writes lines with keys, and the keys that it wrote last.  All zero: none. */
#define LOG_KEYS 8
struct log_repeats {
        struct log_repeat {
                uint64_t key, until_ns; /* its lines are counted until then */
                uint64_t count;
        } at[LOG_KEYS];
};

/*
 * May the place write a line with this key at this time?  If so, *ret_repeated lines with it were
 * counted before.  Of more than LOG_KEYS keys, it forgets the one whose minute began first.
 */
bool log_repeats_pass(struct log_repeats *repeats, uint64_t key, uint64_t now_ns,
                      uint64_t *ret_repeated);
/* The same for a line that would be shown, now; writes the line about those counted. */
bool log_may_repeat(struct log_repeats *repeats, uint64_t key, enum log_level level,
                    const char *format);

#define LOG_FORMAT(format, ...) format
#define log_limited(level, ...)                                                                    \
        do {                                                                                       \
                static struct log_limit limit;                                                     \
                if (log_may_write(&limit, level, LOG_FORMAT(__VA_ARGS__, 0)))                      \
                        log_event(level, __VA_ARGS__);                                             \
        } while (0)

#define log_limited_by(key, level, ...)                                                            \
        do {                                                                                       \
                static struct log_repeats repeats;                                                 \
                if (log_may_repeat(&repeats, key, level, LOG_FORMAT(__VA_ARGS__, 0)))              \
                        log_limited(level, __VA_ARGS__);                                           \
        } while (0)

#define log_error(...) log_event(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_event(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_event(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_event(LOG_DEBUG, __VA_ARGS__)

#endif
