/*
 * The report as a picture (SVG).  Several levels: curves over the concurrency or the rate, with the
 * range of the rounds as a band.  One level: the share of requests that took no longer than a time.
 * It is light, and dark if the reader's screen is.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/report.h"

#define WIDE    960.0
#define HIGH    672.0 /* of two rows of panels */
#define PANEL_W 250.0
#define PANEL_H 190.0
#define LEFT    60.0
#define TOP     92.0
#define STEP_X  306.0
#define STEP_Y  270.0
#define INSET   10.0
#define LOOKS   3u
#define TICKS   12u
#define LINES   6u

/* Okabe and Ito's colours, darker on paper; colour-blind readers can distinguish all of them. */
static const struct look {
        const char *name, *light, *dark, *mark;
} looks[LOOKS] = {
        { "first", "#0072b2", "#56b4e9", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z" },
        { "second", "#b35c00", "#e69f00", "M-4 4L4 4L0 -4.5z" },
        { "third", "#a3407f", "#e79ac7", "M-3.5 -3.5H3.5V3.5H-3.5z" },
};

struct scale {
        double low, high;
        bool log;
        double ticks[TICKS];
        uint32_t tick_count;
};

struct picture {
        const struct report *report;
        struct bytes *to;
        int result;
};

/* One curve: a server, or a way of batching. */
struct line {
        char name[120];
        uint32_t server;
        const char *label;
};

static void draw(struct picture *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void draw(struct picture *p, const char *format, ...)
{
        char text[1024];
        va_list values;
        int n;

        va_start(values, format);
        n = vsnprintf(text, sizeof(text), format, values);
        va_end(values);
        if (!p->result && n >= 0)
                p->result = bytes_add(p->to, text,
                                      (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

/* Text of a server may be hostile: only printable ASCII, and nothing that XML would read. */
static void draw_words(struct picture *p, const char *words)
{
        for (; *words; words++) {
                if (*words == '<')
                        draw(p, "&lt;");
                else if (*words == '&')
                        draw(p, "&amp;");
                else if (*words == '>')
                        draw(p, "&gt;");
                else
                        draw(p, "%c", *words < ' ' || *words > '~' ? '?' : *words);
        }
}

static void draw_text(struct picture *p, double x, double y, const char *kind, const char *anchor,
                      int size, const char *words)
{
        draw(p, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\" font-size=\"%d\">", x,
             y, kind, anchor, size);
        draw_words(p, words);
        draw(p, "</text>\n");
}

static void draw_rules(struct picture *p, bool dark)
{
        static const char *const paper[] = { "#ffffff", "#24292f", "#57606a", "#d8dee4",
                                             "#8c959f" };
        static const char *const night[] = { "#0d1117", "#e6edf3", "#9ea7b3", "#30363d",
                                             "#6e7681" };
        const char *const *c = dark ? night : paper;

        draw(p,
             ".page { fill: %s }\n.ink { fill: %s }\n.faint { fill: %s }\n"
             ".grid { stroke: %s }\n.axis { stroke: %s }\n",
             c[0], c[1], c[2], c[3], c[4]);
        for (size_t i = 0; i < LOOKS; i++)
                draw(p, ".%s .line { stroke: %s }\n.%s .full { fill: %s }\n", looks[i].name,
                     dark ? looks[i].dark : looks[i].light, looks[i].name,
                     dark ? looks[i].dark : looks[i].light);
}

static void draw_head(struct picture *p, double high, const char *title)
{
        draw(p,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
             "font-family=\"sans-serif\">\n<title>",
             WIDE, high);
        draw_words(p, title);
        draw(p, "</title>\n<style>\n.line { fill: none; stroke-width: 2 } "
                ".grid, .axis { fill: none }\n.band { opacity: .16 }\n");
        draw_rules(p, false);
        draw(p, "@media (prefers-color-scheme: dark) {\n");
        draw_rules(p, true);
        draw(p, "}\n</style>\n<rect class=\"page\" width=\"%.0f\" height=\"%.0f\"/>\n", WIDE, high);
        draw_text(p, LEFT - 40, 28, "ink", "start", 16, title);
}

/* ---- scales ---- */

/* A step of 1, 2 or 5 times a power of ten, so that about `parts` of them make the span. */
static double round_step(double span, double parts)
{
        double base = pow(10, floor(log10(span / parts)));
        static const double steps[] = { 1, 2, 5 };

        for (size_t i = 0; i < 3; i++)
                if (base * steps[i] * parts >= span)
                        return base * steps[i];
        return base * 10;
}

static struct scale linear_scale(double most)
{
        double top = most > 0 ? most * 1.05 : 1, step = round_step(top, 5);
        struct scale scale = { .high = step * ceil(top / step) };

        for (double at = 0; at <= scale.high * 1.0001 && scale.tick_count < TICKS; at += step)
                scale.ticks[scale.tick_count++] = at;
        return scale;
}

/* Ticks at 1, 2 and 5, or at the powers of ten alone if these are many. */
static struct scale log_scale(double least, double most)
{
        struct scale scale = { .log = true, .low = least, .high = fmax(most, least * 1.5) };
        bool many = scale.high / scale.low > 1e3;

        for (int power = (int)floor(log10(scale.low)); power <= (int)ceil(log10(scale.high));
             power++)
                for (int i = 0; i < (many ? 1 : 3); i++) {
                        double at = pow(10, power) * (i == 0 ? 1 : i == 1 ? 2 : 5);

                        if (at >= scale.low && at <= scale.high && scale.tick_count < TICKS)
                                scale.ticks[scale.tick_count++] = at;
                }
        return scale;
}

static double share_of(const struct scale *scale, double value)
{
        if (scale->log)
                return log(fmax(value, scale->low) / scale->low) / log(scale->high / scale->low);
        return (value - scale->low) / (scale->high - scale->low);
}

/* ---- panels ---- */

struct panel {
        double x, y;
        struct scale across, up;
};

static double place_x(const struct panel *panel, double value)
{
        return panel->x + INSET + share_of(&panel->across, value) * (PANEL_W - 2 * INSET);
}

static double place_y(const struct panel *panel, double value)
{
        return panel->y + PANEL_H * (1 - share_of(&panel->up, value));
}

static void draw_frame(struct picture *p, const struct panel *panel, const char *title,
                       const char *below)
{
        char words[32];

        draw_text(p, panel->x, panel->y - 10, "ink", "start", 13, title);
        for (uint32_t i = 0; i < panel->up.tick_count; i++) {
                double y = place_y(panel, panel->up.ticks[i]);

                draw(p, "<path class=\"grid\" d=\"M%.1f %.1fh%.1f\"/>\n", panel->x, y, PANEL_W);
                snprintf(words, sizeof(words), "%g", panel->up.ticks[i]);
                draw_text(p, panel->x - 6, y + 4, "faint", "end", 11, words);
        }
        for (uint32_t i = 0; i < panel->across.tick_count; i++) {
                double x = place_x(panel, panel->across.ticks[i]);

                draw(p, "<path class=\"grid\" d=\"M%.1f %.1fv%.1f\"/>\n", x, panel->y, PANEL_H);
                snprintf(words, sizeof(words), "%.3g", panel->across.ticks[i]);
                draw_text(p, x, panel->y + PANEL_H + 16, "faint", "middle", 11, words);
        }
        draw(p, "<path class=\"axis\" d=\"M%.1f %.1fv%.1fh%.1f\"/>\n", panel->x, panel->y, PANEL_H,
             PANEL_W);
        draw_text(p, panel->x + PANEL_W / 2, panel->y + PANEL_H + 34, "faint", "middle", 11, below);
}

/* ---- lines ---- */

static uint32_t find_lines(const struct report *report, struct line lines[LINES])
{
        uint32_t count = 0, i;

        for (uint32_t r = 0; r < report->count && count < LOOKS; r++) {
                const struct report_run *run = &report->runs[r];

                for (i = 0; i < count; i++)
                        if (lines[i].server == run->server && !strcmp(lines[i].label, run->label))
                                break;
                if (i < count)
                        continue;
                lines[count] = (struct line){ .server = run->server, .label = run->label };
                if (*run->label)
                        snprintf(lines[count].name, sizeof(lines[count].name), "%s", run->label);
                else
                        snprintf(lines[count].name, sizeof(lines[count].name), "%.60s %.50s",
                                 report->servers[run->server].server,
                                 report->servers[run->server].address);
                count++;
        }
        return count;
}

static void draw_legend(struct picture *p, const struct line *lines, uint32_t count)
{
        double x = LEFT - 40;

        for (uint32_t i = 0; i < count; i++) {
                draw(p,
                     "<g class=\"%s\"><path class=\"line\" d=\"M%.0f 50h26\"/><path "
                     "class=\"full\" transform=\"translate(%.0f 50)\" d=\"%s\"/></g>\n",
                     looks[i].name, x, x + 13, looks[i].mark);
                draw_text(p, x + 34, 54, "ink", "start", 12, lines[i].name);
                x += 60 + 7 * (double)strlen(lines[i].name);
        }
}

static bool is_of(const struct report_run *run, const struct line *line)
{
        return run->server == line->server && !strcmp(run->label, line->label);
}

/* The groups of a line, by level.  Levels come in the order of the command line. */
#define LEVELS_MAX 32u
static uint32_t find_levels(const struct report *report, const struct line *line,
                            const struct report_run *ret_runs[LEVELS_MAX])
{
        const struct report_run *run;
        uint32_t at = 0, count = 0, i;

        while (count < LEVELS_MAX && (run = report_group(report, &at))) {
                if (!is_of(run, line))
                        continue;
                for (i = count++;
                     i && report_level(report, ret_runs[i - 1]) > report_level(report, run); i--)
                        ret_runs[i] = ret_runs[i - 1];
                ret_runs[i] = run;
        }
        return count;
}

static void draw_band(struct picture *p, const struct panel *panel,
                      const struct report_run *const *runs, const struct range *ranges,
                      uint32_t count)
{
        draw(p, "<polygon class=\"band full\" points=\"");
        for (uint32_t i = 0; i < count; i++)
                draw(p, "%s%.1f,%.1f", i ? " " : "",
                     place_x(panel, report_level(p->report, runs[i])),
                     place_y(panel, ranges[i].most));
        for (uint32_t i = count; i--;)
                draw(p, " %.1f,%.1f", place_x(panel, report_level(p->report, runs[i])),
                     place_y(panel, ranges[i].least));
        draw(p, "\"/>\n");
}

static void draw_line(struct picture *p, const struct panel *panel, const struct line *line,
                      const struct look *look, const struct metric *metric)
{
        const struct report_run *runs[LEVELS_MAX];
        struct range ranges[LEVELS_MAX];
        uint32_t found = find_levels(p->report, line, runs), count = 0;

        for (uint32_t i = 0; i < found; i++)
                if (report_range(p->report, runs[i], metric, &ranges[count]))
                        runs[count++] = runs[i];
        draw(p, "<g class=\"%s\">\n", look->name);
        if (p->report->rounds > 1)
                draw_band(p, panel, runs, ranges, count);
        draw(p, "<polyline class=\"line\" points=\"");
        for (uint32_t i = 0; i < count; i++)
                draw(p, "%s%.1f,%.1f", i ? " " : "",
                     place_x(panel, report_level(p->report, runs[i])),
                     place_y(panel, ranges[i].median));
        draw(p, "\"/>\n");
        for (uint32_t i = 0; i < count; i++)
                draw(p, "<path class=\"full\" transform=\"translate(%.1f %.1f)\" d=\"%s\"/>\n",
                     place_x(panel, report_level(p->report, runs[i])),
                     place_y(panel, ranges[i].median), look->mark);
        draw(p, "</g>\n");
}

/* ---- several levels ---- */

static struct scale level_scale(const struct report *report)
{
        double least = INFINITY, most = 0;
        struct scale scale;

        for (uint32_t i = 0; i < report->count; i++) {
                double level = report_level(report, &report->runs[i]);

                least = fmin(least, level);
                most = fmax(most, level);
        }
        if (report->by_rate || !(least > 0))
                return linear_scale(most);
        /* Concurrencies: ticks at the powers of two. */
        scale = (struct scale){ .log = true, .low = least, .high = fmax(most, least * 2) };
        for (double at = 1; at <= scale.high && scale.tick_count < TICKS; at *= 2)
                if (at >= least)
                        scale.ticks[scale.tick_count++] = at;
        return scale;
}

static struct scale metric_scale(const struct report *report, const struct metric *metric)
{
        double most = 0;

        for (uint32_t i = 0; i < report->count; i++) {
                double value;

                if (metric_of(&report->runs[i].figures, metric, &value))
                        most = fmax(most, value);
        }
        return linear_scale(most);
}

static void draw_levels(struct picture *p, const struct line *lines, uint32_t count)
{
        static const struct {
                const char *metric, *title;
        } panels[] = {
                { "output_tokens_per_second", "tokens of answers a second" },
                { "ttft_p50_ms", "time to first token, p50, ms" },
                { "ttft_p99_ms", "time to first token, p99, ms" },
                { "requests_per_second", "requests a second" },
                { "tpot_p50_ms", "time per output token, p50, ms" },
                { "itl_p99_ms", "inter-token latency, p99, ms" },
        };

        for (size_t i = 0; i < sizeof(panels) / sizeof(*panels); i++) {
                const struct metric *metric = metric_find(panels[i].metric);
                struct panel panel = { .x = LEFT + STEP_X * (double)(i % 3),
                                       .y = TOP + STEP_Y * (double)(i / 3),
                                       .across = level_scale(p->report),
                                       .up = metric_scale(p->report, metric) };

                draw_frame(p, &panel, panels[i].title,
                           p->report->by_rate   ? "requests a second that are due"
                           : p->report->batches ? "batch"
                                                : "concurrency");
                for (uint32_t k = 0; k < count; k++)
                        draw_line(p, &panel, &lines[k], &looks[k], metric);
        }
}

/* ---- one level ---- */

static struct scale time_scale(const struct report *report, enum spread spread)
{
        double least = INFINITY, most = 0;

        for (uint32_t i = 0; i < report->count; i++) {
                const struct figures *figures = &report->runs[i].figures;

                if (!figures->spreads[spread].count)
                        continue;
                least = fmin(least, fmax(figures->spreads[spread].least, 1e-3));
                most = fmax(most, figures->spreads[spread].most);
        }
        return log_scale(most > 0 ? least : 1, most > 0 ? most : 10);
}

static void draw_shares(struct picture *p, const struct line *lines, uint32_t count)
{
        static const enum spread spreads[] = { TTFT, ITL, E2E };
        char title[96];

        for (size_t i = 0; i < sizeof(spreads) / sizeof(*spreads); i++) {
                struct panel panel = {
                        .x = LEFT + STEP_X * (double)i,
                        .y = TOP,
                        .across = time_scale(p->report, spreads[i]),
                        .up = { .high = 100, .ticks = { 0, 25, 50, 75, 100 }, .tick_count = 5 }
                };

                snprintf(title, sizeof(title), "%s, share in %%", spread_titles[spreads[i]]);
                draw_frame(p, &panel, title, "milliseconds or less");
                for (uint32_t r = 0; r < p->report->count; r++) {
                        const struct report_run *run = &p->report->runs[r];
                        uint32_t look = 0;

                        while (look < count && !is_of(run, &lines[look]))
                                look++;
                        if (look == count || !run->figures.spreads[spreads[i]].count)
                                continue;
                        draw(p, "<g class=\"%s\"><polyline class=\"line\" points=\"",
                             looks[look].name);
                        for (unsigned k = 0; k < CURVE_POINTS; k++)
                                draw(p, "%s%.1f,%.1f", k ? " " : "",
                                     place_x(&panel, run->figures.curves[spreads[i]][k]),
                                     place_y(&panel, k));
                        draw(p, "\"/></g>\n");
                }
        }
}

/* Lines that fit the width. */
static void draw_foot(struct picture *p, double high)
{
        const struct report *report = p->report;
        const struct host *host = &report->host;
        char words[512];

        snprintf(words, sizeof(words), "%.150s", report->workload);
        draw_text(p, LEFT - 40, high - 44, "faint", "start", 11, words);
        snprintf(words, sizeof(words), "%.150s", report->load);
        draw_text(p, LEFT - 40, high - 29, "faint", "start", 11, words);
        snprintf(words, sizeof(words), "%.60s, %u processors, %.40s, samovar %s, %s",
                 host->processor, host->processors, host->system, smv_version(), host->time);
        draw_text(p, LEFT - 40, high - 14, "faint", "start", 11, words);
}

int report_svg(const struct report *report, struct bytes *to)
{
        struct picture p = { .report = report, .to = to };
        const struct target_facts *facts = &report->servers[0];
        struct line lines[LINES];
        uint32_t count = find_lines(report, lines);
        bool levels = false;
        char words[512];

        for (uint32_t i = 1; i < report->count; i++)
                levels = levels || report_level(report, &report->runs[i]) !=
                                           report_level(report, &report->runs[0]);
        snprintf(words, sizeof(words), "%s%s%s%s%s", report->title, *report->title ? ": " : "",
                 facts->model, *facts->quantisation ? ", " : "", facts->quantisation);
        draw_head(&p, levels ? HIGH : HIGH - STEP_Y, words);
        draw_legend(&p, lines, count);
        if (levels)
                draw_levels(&p, lines, count);
        else
                draw_shares(&p, lines, count);
        draw_foot(&p, levels ? HIGH : HIGH - STEP_Y);
        draw(&p, "</svg>\n");
        return p.result;
}
