#include "bridge/core/metrics-text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void histogram_note(struct histogram *histogram, const struct histogram_bounds *bounds,
                    double value)
{
        size_t i = 0;

        while (i < bounds->count && value > bounds->at[i])
                i++;
        histogram->buckets[i]++;
        histogram->count++;
        histogram->sum += value;
}

void metrics_put(struct metrics_writer *w, const char *format, ...)
{
        char text[512];
        va_list values;
        int count;

        va_start(values, format);
        count = vsnprintf(text, sizeof(text), format, values);
        va_end(values);
        if (count > 0 && !w->result)
                w->result =
                        bytes_add(w->to, text,
                                  (size_t)count < sizeof(text) ? (size_t)count : sizeof(text) - 1);
}

void metrics_put_head(struct metrics_writer *w, const char *name, const char *type,
                      const char *help)
{
        metrics_put(w, "# HELP %s%s %s\n# TYPE %s%s %s\n", w->prefix, name, help, w->prefix, name,
                    type);
}

void metrics_put_value(struct metrics_writer *w, const char *name, double value)
{
        metrics_put(w, "%s%s %.17g\n", w->prefix, name, value);
}

void metrics_put_histogram(struct metrics_writer *w, const char *name, const char *labels,
                           const struct histogram *histogram, const struct histogram_bounds *bounds)
{
        const char *comma = *labels ? "," : "", *open = *labels ? "{" : "";
        const char *close = *labels ? "}" : "";
        uint64_t sum = 0;

        for (size_t i = 0; i < bounds->count; i++) {
                sum += histogram->buckets[i];
                metrics_put(w, "%s%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", w->prefix, name, labels,
                            comma, bounds->at[i], sum);
        }
        metrics_put(w, "%s%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", w->prefix, name, labels, comma,
                    histogram->count);
        metrics_put(w, "%s%s_sum%s%s%s %.17g\n", w->prefix, name, open, labels, close,
                    histogram->sum);
        metrics_put(w, "%s%s_count%s%s%s %" PRIu64 "\n", w->prefix, name, open, labels, close,
                    histogram->count);
}

const char *metrics_escape(const char *text, char *to, size_t size)
{
        size_t at = 0;

        for (; *text && at + 3 <= size; text++) {
                if (*text == '\\' || *text == '"' || *text == '\n')
                        to[at++] = '\\';
                to[at++] = *text == '\n' ? 'n' : *text;
        }
        to[at] = '\0';
        return to;
}
