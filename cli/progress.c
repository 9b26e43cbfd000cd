#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/amounts.h"
#include "cli/clock.h"

#define EVERY_MS  200u
#define SAMPLE_MS 500u
#define CELLS_MAX 40
#define FIGURES   48 /* columns that they may take; so the bar keeps its length */

void progress_begin(struct progress *progress, const char *what, uint64_t total)
{
        *progress = (struct progress){ .terminal = isatty(STDERR_FILENO),
                                       .what = what,
                                       .total = total };
}

/* Bytes a second over the last samples. */
static double rate_of(struct progress *progress, uint64_t now, uint64_t bytes)
{
        unsigned count = progress->sample_count, at = progress->sample_at, oldest;
        unsigned newest = (at + PROGRESS_SAMPLES - 1) % PROGRESS_SAMPLES;

        if (!count || now - progress->samples[newest].ms >= SAMPLE_MS) {
                progress->samples[at].ms = now;
                progress->samples[at].bytes = bytes;
                progress->sample_at = (at + 1) % PROGRESS_SAMPLES;
                progress->sample_count = count < PROGRESS_SAMPLES ? count + 1 : count;
        }
        oldest = progress->sample_count < PROGRESS_SAMPLES ? 0 : progress->sample_at;
        if (now <= progress->samples[oldest].ms || bytes < progress->samples[oldest].bytes)
                return 0;
        return (double)(bytes - progress->samples[oldest].bytes) * 1000 /
               (double)(now - progress->samples[oldest].ms);
}

static int columns(void)
{
        struct winsize size;

        return !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

/* "45 %  1.23 of 4.58 GiB  35.1 MiB/s  1 min 34 s" */
static void write_figures(const struct progress *progress, uint64_t bytes, double rate, char *to,
                          size_t size)
{
        char have[AMOUNT_BYTES], all[AMOUNT_BYTES], speed[AMOUNT_BYTES], left[AMOUNT_BYTES];
        int n;

        if (progress->total)
                n = snprintf(to, size, "%3u %%  %s of %s",
                             (unsigned)((double)bytes * 100 / (double)progress->total),
                             amount_bytes((double)bytes, have),
                             amount_bytes((double)progress->total, all));
        else
                n = snprintf(to, size, "%s", amount_bytes((double)bytes, have));
        if (rate < 1)
                return;
        n += snprintf(to + n, size - (size_t)n, "  %s/s", amount_bytes(rate, speed));
        if (progress->total > bytes)
                snprintf(to + n, size - (size_t)n, "  %s",
                         amount_wait((uint64_t)((double)(progress->total - bytes) / rate) + 1,
                                     left));
}

void progress_show(struct progress *progress, uint64_t bytes)
{
        static const char full[] = "########################################";
        uint64_t now = clock_ms();
        char figures[192];
        int cells, filled, width;

        _Static_assert(sizeof(full) == CELLS_MAX + 1, "a cell each");
        if (!progress->terminal || (progress->drawn && now - progress->last_ms < EVERY_MS))
                return;
        progress->last_ms = now;
        write_figures(progress, bytes, rate_of(progress, now, bytes), figures, sizeof(figures));
        width = columns() - 1;
        cells = width - (int)strlen(progress->what) - FIGURES - 4;
        cells = !progress->total || cells < 5 ? 0 : cells > CELLS_MAX ? CELLS_MAX : cells;
        filled = progress->total ? (int)((double)bytes / (double)progress->total * cells) : 0;
        filled = filled > cells ? cells : filled;
        if (cells)
                fprintf(stderr, "\r%s [%-*.*s] %s\x1b[K", progress->what, cells, filled, full,
                        figures);
        else
                fprintf(stderr, "\r%.*s\x1b[K", width, figures);
        progress->drawn = true;
}

void progress_clear(struct progress *progress)
{
        if (progress->drawn)
                fputs("\r\x1b[K", stderr);
        progress->drawn = false;
}
