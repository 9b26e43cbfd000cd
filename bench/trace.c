#include "bench/trace.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LENGTH_MAX 10000000u

/* Of trace_make(). */
#define ARRIVALS_PER_SECOND 5.53
#define PROMPT_MEAN         1155
#define OUTPUT_MEAN         211

/* Seconds since 1970; false if the line is not a line of a trace. */
static int read_line(const char *line, double *ret_at, struct trace_request *ret_request)
{
        struct tm day = { 0 };
        int end = 0;
        double s;

        if (sscanf(line, "%4d-%2d-%2d %2d:%2d:%lf,%8u,%8u%n", &day.tm_year, &day.tm_mon,
                   &day.tm_mday, &day.tm_hour, &day.tm_min, &s, &ret_request->prompt,
                   &ret_request->output, &end) != 8)
                return 0;
        day.tm_year -= 1900;
        day.tm_mon -= 1;
        *ret_at = (double)timegm(&day) + s;
        return !line[end + (int)strspn(line + end, "\r\n")] && s >= 0 && s < 61 &&
               ret_request->prompt <= LENGTH_MAX && ret_request->output <= LENGTH_MAX;
}

static int read_all(FILE *file, uint32_t first, uint32_t count, struct trace *trace, char *why,
                    size_t why_bytes)
{
        double at, began = 0, last = 0;
        uint32_t number = 0;
        char line[128];

        if (!fgets(line, sizeof(line), file) || strncmp(line, "TIMESTAMP,", 10)) {
                snprintf(why, why_bytes, "its first line does not begin with TIMESTAMP,");
                return -EBADMSG;
        }
        for (; trace->count < count && fgets(line, sizeof(line), file); number++) {
                struct trace_request *request = &trace->requests[trace->count];

                if (!read_line(line, &at, request) || (number && at < last)) {
                        snprintf(why, why_bytes,
                                 "line %u is not a later time, a prompt's tokens and an answer's",
                                 number + 2);
                        return -EBADMSG;
                }
                last = at;
                if (number < first)
                        continue;
                if (number == first)
                        began = at;
                request->at = at - began;
                trace->count++;
        }
        if (trace->count == count)
                return 0;
        snprintf(why, why_bytes, "it has %u requests; %u from number %u on are wanted", number,
                 count, first);
        return -ERANGE;
}

int trace_read(const char *path, uint32_t first, uint32_t count, struct trace *ret_trace, char *why,
               size_t why_bytes)
{
        struct trace trace = { .requests = calloc(count, sizeof(*trace.requests)) };
        FILE *file = fopen(path, "r");
        int r;

        if (file && trace.requests) {
                r = read_all(file, first, count, &trace, why, why_bytes);
        } else {
                r = file ? -ENOMEM : -errno;
                snprintf(why, why_bytes, "%s", strerror(-r));
        }
        if (file)
                fclose(file);
        if (r)
                trace_deinit(&trace);
        else
                *ret_trace = trace;
        return r;
}

void trace_deinit(struct trace *trace)
{
        free(trace->requests);
        *trace = (struct trace){ .count = 0 };
}

double trace_divisor(const struct trace *trace, uint32_t context)
{
        uint64_t longest = 0;

        assert(context > 2);
        for (uint32_t i = 0; i < trace->count; i++) {
                uint64_t length = (uint64_t)trace->requests[i].prompt + trace->requests[i].output;

                longest = length > longest ? length : longest;
        }
        /* Prompt and answer are both rounded up. */
        return fmax(1, (double)longest / (context - 2));
}

static uint32_t divided(uint32_t length, double divisor)
{
        double n = ceil(length / divisor);

        return n > 1 ? (uint32_t)n : 1;
}

void trace_shrink(struct trace *trace, double divisor)
{
        assert(divisor >= 1);
        for (uint32_t i = 0; i < trace->count; i++) {
                trace->requests[i].prompt = divided(trace->requests[i].prompt, divisor);
                trace->requests[i].output = divided(trace->requests[i].output, divisor);
        }
}

double trace_stretch(struct trace *trace, double per_second)
{
        double last, factor;

        assert(trace->count >= 2 && per_second > 0);
        last = trace->requests[trace->count - 1].at;
        factor = last > 0 ? (trace->count - 1) / per_second / last : 1;
        for (uint32_t i = 0; i < trace->count; i++)
                trace->requests[i].at *= factor;
        return factor;
}

/* SplitMix64. */
static uint64_t draw(uint64_t *state)
{
        uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

/* An exponential number with mean 1: 53 bits give a number above 0 and at most 1. */
static double draw_exponential(uint64_t *state)
{
        return -log(((double)(draw(state) >> 11) + 1) / 0x1p53);
}

int trace_make(uint64_t seed, uint32_t count, struct trace *ret_trace)
{
        struct trace trace = { .requests = calloc(count, sizeof(*trace.requests)), .count = count };
        double at = 0;

        if (!trace.requests)
                return -ENOMEM;
        for (uint32_t i = 0; i < count; i++) {
                struct trace_request *request = &trace.requests[i];

                request->at = at;
                request->prompt = 1 + (uint32_t)(PROMPT_MEAN * draw_exponential(&seed));
                request->output = 1 + (uint32_t)(OUTPUT_MEAN * draw_exponential(&seed));
                at += draw_exponential(&seed) / ARRIVALS_PER_SECOND;
        }
        *ret_trace = trace;
        return 0;
}

void trace_prompt(uint64_t seed, uint32_t request, uint32_t vocab, uint32_t *ids, uint32_t count)
{
        uint64_t state = seed ^ (uint64_t)request << 32;

        for (uint32_t i = 0; i < count; i++)
                ids[i] = (uint32_t)(draw(&state) % vocab);
        if (count)
                ids[0] = request % vocab;
}
