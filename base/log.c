/*
 * The format is parsed here instead of by vsnprintf.  Only so does the code know which bytes of a
 * line came from outside: those of %s and %c.  They are printed bare if they are one plain word,
 * and quoted otherwise.  Every byte that is not printable ASCII becomes \xNN.
 *
 * Writing never blocks.  O_NONBLOCK belongs to the open file description, which we share with the
 * shell that started us, so we cannot set it on stderr.  Instead there are three ways.  A file on
 * disk is written directly.  A socket (the journal) is sent to with MSG_DONTWAIT.  A pipe or a
 * terminal is opened a second time, non-blocking, for us alone; if that is refused, we call poll
 * first.
 *
 * A line begins with the time, UTC with milliseconds.  Under systemd the journal adds the time
 * itself, so a line begins with the priority instead (sd-daemon(3)).
 *
 * The counter of lost lines and the limits of places order no memory: relaxed atomics.
 *
 * A limit is one number, the time at which a whole burst would be there again.  Each line moves it
 * on by the time that one line takes.  If it would come to lie more than a burst ahead of now, the
 * line is suppressed.
 */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/sys.h"

#define LINE_BYTES 1024u
#define CUT        "...\n" /* ends a line that was cut */

/* The lines that a place in the code may write: a burst, and one each so often. */
#define BURST         10u
#define LINE_NS       UINT64_C(1000000000)
#define DEBUG_BURST   1000u
#define DEBUG_LINE_NS UINT64_C(10000000)
/* How long lines with a key that was written are only counted. */
#define REPEAT_NS UINT64_C(60000000000)

enum sink { SINK_POLLED, SINK_PLAIN, SINK_SOCKET };

static _Atomic enum log_level lowest_shown = LOG_INFO;

/* Written only by log_open(), before other threads start. */
static enum sink sink = SINK_POLLED;
static int sink_fd = STDERR_FILENO;
static bool is_journal;

static _Atomic uint64_t lost;

/* The priorities of syslog(3), as the journal reads them. */
static const char *const journal_priorities[] = {
        [LOG_ERROR] = "<3>",
        [LOG_WARN] = "<4>",
        [LOG_INFO] = "<6>",
        [LOG_DEBUG] = "<7>",
};

static const char *const level_names[] = {
        [LOG_ERROR] = "error",
        [LOG_WARN] = "warn",
        [LOG_INFO] = "info",
        [LOG_DEBUG] = "debug",
};

struct log_line {
        char bytes[LINE_BYTES];
        size_t used;
        bool cut;
};

/* systemd tells in $JOURNAL_STREAM which file the journal reads; stderr may be another one. */
static bool leads_to_journal(int fd)
{
        const char *stream = getenv("JOURNAL_STREAM");
        uint64_t identity[2];
        char shown[48];

        if (!stream || sys_fd_identity(fd, identity))
                return false;
        snprintf(shown, sizeof(shown), "%" PRIu64 ":%" PRIu64, identity[0], identity[1]);
        return !strcmp(stream, shown);
}

void log_set_level(enum log_level lowest)
{
        atomic_store_explicit(&lowest_shown, lowest, memory_order_relaxed);
}

void log_open(enum log_level lowest)
{
        uint64_t bytes;
        int fd;

        log_set_level(lowest);
        is_journal = leads_to_journal(STDERR_FILENO);
        if (sink_fd != STDERR_FILENO)
                sys_close(sink_fd);
        sink_fd = STDERR_FILENO;
        sink = SINK_POLLED;

        if (sys_file_size(STDERR_FILENO, &bytes) == 0) {
                sink = SINK_PLAIN;
        } else if (sys_send(STDERR_FILENO, "", 0) != -ENOTSOCK) {
                sink = SINK_SOCKET;
        } else {
                fd = sys_open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY, 0);
                if (fd >= 0) {
                        sink = SINK_PLAIN;
                        sink_fd = fd;
                }
        }
}

uint64_t log_lost(void)
{
        return atomic_load_explicit(&lost, memory_order_relaxed);
}

/* Appends all bytes or none, so that an escape is never cut. */
static void put(struct log_line *line, const char *bytes, size_t count)
{
        if (line->cut || count > LINE_BYTES - sizeof(CUT) - line->used) {
                line->cut = true;
                return;
        }
        memcpy(line->bytes + line->used, bytes, count);
        line->used += count;
}

static void put_escaped(struct log_line *line, const char *text, size_t count)
{
        for (size_t i = 0; i < count && !line->cut; i++) {
                unsigned char c = (unsigned char)text[i];
                char shown[5];

                if (c == '"' || c == '\\')
                        put(line, (char[]){ '\\', (char)c }, 2);
                else if (c >= ' ' && c < 0x7f)
                        put(line, text + i, 1);
                else
                        put(line, shown, (size_t)snprintf(shown, sizeof(shown), "\\x%02x", c));
        }
}

/* `quoted`: the format already puts the value in quotes. */
static void put_value(struct log_line *line, const char *text, size_t count, bool quoted)
{
        bool word = count > 0;

        for (size_t i = 0; i < count; i++)
                word &= text[i] > ' ' && text[i] < 0x7f && !strchr("\"\\=", text[i]);
        if (word || quoted) {
                put_escaped(line, text, count);
                return;
        }
        put(line, "\"", 1);
        put_escaped(line, text, count);
        put(line, "\"", 1);
}

/* One conversion of the format, parsed. */
struct conversion {
        char spec[24]; /* "%-8lu", passed on to snprintf */
        size_t bytes;  /* its length in the format */
        int stars;     /* number of int arguments before the value */
        bool precision_star;
        int precision; /* -1: none */
        char length;   /* 'l', 'L' for ll, 'z', 'j', 't', or 0 */
        char kind;
};

static struct conversion conversion_read(const char *format)
{
        struct conversion c = { .precision = -1 };
        const char *at = format + 1;

        at += strspn(at, "-+ #0123456789");
        if (*at == '*') {
                c.stars++;
                at++;
        }
        if (*at == '.') {
                c.precision = 0;
                at++;
                if (*at == '*') {
                        c.stars++;
                        c.precision_star = true;
                        at++;
                }
                for (; *at >= '0' && *at <= '9'; at++)
                        c.precision = c.precision * 10 + (*at - '0');
        }
        for (; *at && strchr("hlzjt", *at); at++)
                c.length = c.length == 'l' && *at == 'l' ? 'L' : *at;
        c.kind = *at;
        c.bytes = (size_t)(at + 1 - format);
        assert(c.kind && c.bytes < sizeof(c.spec));
        memcpy(c.spec, format, c.bytes);
        return c;
}

/* The values of the stars precede the value; there are none, one or two. */
#define SHOW(value)                                                                                \
        (c->stars == 2   ? snprintf(to, bytes, c->spec, star[0], star[1], value)                   \
         : c->stars == 1 ? snprintf(to, bytes, c->spec, star[0], value)                            \
                         : snprintf(to, bytes, c->spec, value))

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static int show_number(char *to, size_t bytes, const struct conversion *c, const int *star,
                       va_list *values)
{
        if (c->kind == 'p')
                return SHOW(va_arg(*values, void *));
        if (strchr("aAeEfFgG", c->kind))
                return SHOW(va_arg(*values, double));
        assert(strchr("diouxX", c->kind));
        switch (c->length) {
        case 'l':
                return SHOW(va_arg(*values, long));
        case 'L':
        case 'j':
                return SHOW(va_arg(*values, long long));
        case 'z':
        case 't':
                return SHOW(va_arg(*values, size_t));
        default:
                return SHOW(va_arg(*values, int));
        }
}
#pragma GCC diagnostic pop

static void put_conversion(struct log_line *line, const struct conversion *c, va_list *values)
{
        bool quoted = line->used && line->bytes[line->used - 1] == '"';
        int star[2] = { 0 }, precision = c->precision;
        char shown[64];
        int count;

        for (int i = 0; i < c->stars; i++)
                star[i] = va_arg(*values, int);
        if (c->precision_star)
                precision = star[c->stars - 1];

        if (c->kind == 's') {
                const char *text = va_arg(*values, const char *);

                if (!text)
                        put(line, "-", 1);
                else
                        put_value(line, text,
                                  precision < 0 ? strlen(text) : strnlen(text, (size_t)precision),
                                  quoted);
        } else if (c->kind == 'c') {
                put_value(line, (char[]){ (char)va_arg(*values, int) }, 1, quoted);
        } else {
                count = show_number(shown, sizeof(shown), c, star, values);
                if (count > 0 && (size_t)count < sizeof(shown))
                        put(line, shown, (size_t)count);
                else
                        put(line, "?", 1);
        }
}

static void fill(struct log_line *line, const char *format, va_list *values)
{
        while (*format && !line->cut) {
                size_t plain = strcspn(format, "%");
                struct conversion c;

                put(line, format, plain);
                format += plain;
                if (!*format)
                        break;
                if (format[1] == '%') {
                        put(line, "%", 1);
                        format += 2;
                        continue;
                }
                c = conversion_read(format);
                put_conversion(line, &c, values);
                format += c.bytes;
        }
}

static ssize_t sink_write(const char *bytes, size_t count)
{
        if (sink == SINK_SOCKET)
                return sys_send(sink_fd, bytes, count);
        if (sink == SINK_POLLED && sys_writable(sink_fd) != 1)
                return -EAGAIN;
        return sys_write(sink_fd, bytes, count);
}

/* A day's number since 1970 as a date.  Years begin in March here, so that leap days are last. */
static void put_date(struct log_line *line, uint64_t day)
{
        uint64_t shifted = day + 719468; /* days since 0000-03-01 */
        uint64_t era = shifted / 146097, of_era = shifted % 146097;
        uint64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
        uint64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        uint64_t march_month = (5 * of_year + 2) / 153;
        uint64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
        char text[32];
        int count;

        count = snprintf(text, sizeof(text), "%04u-%02u-%02u",
                         (unsigned)(year_of_era + era * 400 + (month <= 2)), (unsigned)month,
                         (unsigned)(of_year - (153 * march_month + 2) / 5 + 1));
        put(line, text, (size_t)count);
}

static void put_prefix(struct log_line *line, enum log_level level)
{
        uint64_t ms = sys_wall_clock_ns() / 1000000, s = ms / 1000;
        char text[32];
        int count;

        if (is_journal) {
                put(line, journal_priorities[level], strlen(journal_priorities[level]));
                return;
        }
        put_date(line, s / 86400);
        count = snprintf(text, sizeof(text), "T%02u:%02u:%02u.%03uZ ", (unsigned)(s / 3600 % 24),
                         (unsigned)(s / 60 % 60), (unsigned)(s % 60), (unsigned)(ms % 1000));
        put(line, text, (size_t)count);
}

void log_event(enum log_level level, const char *format, ...)
{
        struct log_line line = { .used = 0 };
        int saved = errno;
        va_list values;

        if (level > atomic_load_explicit(&lowest_shown, memory_order_relaxed))
                return;
        put_prefix(&line, level);
        put(&line, level_names[level], strlen(level_names[level]));
        put(&line, " ", 1);
        va_start(values, format);
        fill(&line, format, &values);
        va_end(values);

        memcpy(line.bytes + line.used, line.cut ? CUT : "\n", line.cut ? sizeof(CUT) : 2);
        line.used += line.cut ? sizeof(CUT) - 1 : 1;
        if (sink_write(line.bytes, line.used) != (ssize_t)line.used)
                atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
        errno = saved;
}

bool log_limit_pass(struct log_limit *limit, enum log_level level, uint64_t now_ns,
                    uint64_t *ret_suppressed)
{
        uint64_t line_ns = level == LOG_DEBUG ? DEBUG_LINE_NS : LINE_NS;
        uint64_t burst_ns = line_ns * (level == LOG_DEBUG ? DEBUG_BURST : BURST);
        uint64_t full_ns = atomic_load_explicit(&limit->full_ns, memory_order_relaxed), next_ns;

        do {
                next_ns = (full_ns > now_ns ? full_ns : now_ns) + line_ns;
                if (next_ns - now_ns > burst_ns) {
                        atomic_fetch_add_explicit(&limit->suppressed, 1, memory_order_relaxed);
                        return false;
                }
        } while (!atomic_compare_exchange_weak_explicit(
                &limit->full_ns, &full_ns, next_ns, memory_order_relaxed, memory_order_relaxed));
        *ret_suppressed = atomic_exchange_explicit(&limit->suppressed, 0, memory_order_relaxed);
        return true;
}

bool log_may_write(struct log_limit *limit, enum log_level level, const char *format)
{
        uint64_t suppressed;

        if (level > lowest_shown || !log_limit_pass(limit, level, sys_clock_ns(), &suppressed))
                return false;
        if (suppressed)
                log_event(level, "suppressed event=%.*s lines=%llu", (int)strcspn(format, " "),
                          format, (unsigned long long)suppressed);
        return true;
}

bool log_repeats_pass(struct log_repeats *repeats, uint64_t key, uint64_t now_ns,
                      uint64_t *ret_repeated)
{
        struct log_repeat *found = &repeats->at[0];

        for (size_t i = 0; i < LOG_KEYS; i++) {
                struct log_repeat *at = &repeats->at[i];

                if (at->until_ns && at->key == key) {
                        found = at;
                        break;
                }
                if (at->until_ns < found->until_ns)
                        found = at;
        }
        *ret_repeated = 0;
        if (found->until_ns && found->key == key) {
                *ret_repeated = found->count;
                if (now_ns < found->until_ns) {
                        found->count++;
                        return false;
                }
        }
        *found = (struct log_repeat){ .key = key, .until_ns = now_ns + REPEAT_NS };
        return true;
}

bool log_may_repeat(struct log_repeats *repeats, uint64_t key, enum log_level level,
                    const char *format)
{
        uint64_t repeated;

        if (level > lowest_shown || !log_repeats_pass(repeats, key, sys_clock_ns(), &repeated))
                return false;
        if (repeated)
                log_event(level, "repeated event=%.*s lines=%llu", (int)strcspn(format, " "),
                          format, (unsigned long long)repeated);
        return true;
}
