#include "bridge/offline/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/sys.h"
#include "json/plural.h"

#define NS_PER_S   1e9
#define CELLS      20
#define LINE_BYTES 256u

void progress_init(struct progress *progress)
{
        *progress = (struct progress){ .terminal = isatty(STDERR_FILENO) == 1 };
}

static void clear(struct progress *progress)
{
        if (progress->drawn)
                fputs("\r\x1b[K", stderr);
        progress->drawn = false;
}

void progress_say(struct progress *progress, const char *format, ...)
{
        va_list values;

        clear(progress);
        fputs("samovar batch: ", stderr);
        va_start(values, format);
        vfprintf(stderr, format, values);
        va_end(values);
        fputc('\n', stderr);
}

/* Appends to a line of `size` bytes; what does not fit is left out. */
__attribute__((format(printf, 3, 4))) static void add(char *line, size_t size, const char *format,
                                                      ...)
{
        size_t used = strlen(line);
        va_list values;

        va_start(values, format);
        vsnprintf(line + used, size - used, format, values);
        va_end(values);
}

static void add_bar(char *line, size_t size, double part)
{
        static const char full[] = "####################";

        _Static_assert(sizeof(full) == CELLS + 1, "a cell each");
        add(line, size, "[%-*.*s] %3d%%", CELLS, (int)(part * CELLS), full, (int)(part * 100));
}

/* A line that is longer than the terminal is wide would leave rests behind. */
static void draw(struct progress *progress, const char *line)
{
        struct winsize size = { .ws_col = 80 };

        if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 2)
                size.ws_col = 80;
        clear(progress);
        fprintf(stderr, "%.*s", size.ws_col - 1, line);
        progress->drawn = true;
}

void progress_prepares(struct progress *progress, const char *what, double part)
{
        char line[LINE_BYTES] = "";

        if (!progress->terminal)
                return;
        add(line, sizeof(line), "%s ", what);
        add_bar(line, sizeof(line), part);
        draw(progress, line);
}

void progress_begin(struct progress *progress)
{
        clear(progress);
        progress->begun_ns = sys_clock_ns();
}

static double seconds_since(const struct progress *progress)
{
        double seconds = (double)(sys_clock_ns() - progress->begun_ns) / NS_PER_S;

        return seconds > 1e-3 ? seconds : 1e-3;
}

/* 7:05, 1:07:05 */
static const char *write_time(double seconds, char *to, size_t size)
{
        uint64_t s = (uint64_t)(seconds + 0.5);

        if (s < 3600)
                snprintf(to, size, "%u:%02u", (unsigned)(s / 60), (unsigned)(s % 60));
        else
                snprintf(to, size, "%" PRIu64 ":%02u:%02u", s / 3600, (unsigned)(s / 60 % 60),
                         (unsigned)(s % 60));
        return to;
}

void progress_show(struct progress *progress, uint32_t in_flight, const char *waits)
{
        uint64_t done = progress->lines_before + progress->lines;
        uint64_t failed = progress->failed_before + progress->failed;
        double seconds = seconds_since(progress);
        char line[LINE_BYTES] = "", left[32];

        if (!progress->terminal || !progress->total)
                return;
        add_bar(line, sizeof(line), (double)done / (double)progress->total);
        add(line, sizeof(line), " %" PRIu64 " of %" PRIu64, done, progress->total);
        if (failed)
                add(line, sizeof(line), ", %" PRIu64 " failed", failed);
        if (waits)
                add(line, sizeof(line), ", waiting: %s", waits);
        else if (progress->lines)
                add(line, sizeof(line), ", %.0f tokens/s, %s left",
                    (double)progress->tokens / seconds,
                    write_time((double)(progress->total - done) * seconds / (double)progress->lines,
                               left, sizeof(left)));
        else
                add(line, sizeof(line), ", %u asked", in_flight);
        draw(progress, line);
}

void progress_end(struct progress *progress)
{
        uint64_t done = progress->lines_before + progress->lines;
        double seconds = seconds_since(progress);
        char before[48] = "", took[32];

        if (progress->lines_before)
                snprintf(before, sizeof(before), ", %" PRIu64 " of them before",
                         progress->lines_before);
        progress_say(
                progress,
                "%" PRIu64 " of %" PRIu64 " line%s answered%s, %" PRIu64 " failed; %s, %" PRIu64
                " tokens of prompts and %" PRIu64 " of answers, %.1f tokens/s",
                done, progress->total, plural(progress->total), before,
                progress->failed + progress->failed_before, write_time(seconds, took, sizeof(took)),
                progress->prompt_tokens, progress->tokens, (double)progress->tokens / seconds);
}
