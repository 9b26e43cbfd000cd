/*
 * A trace of production: when requests came, and the lengths of prompts and answers.
 *
 * The form is that of Azure's traces of 2023: a line of column names, then lines
 *
 *      2023-11-16 18:15:46.6805900,374,44
 *
 * of time, tokens of the prompt, tokens of the answer, in the order of time.  Traces do not
 * contain the texts, so trace_prompt() makes up token ids.  A trace was recorded on other
 * machines than ours:  trace_shrink() and trace_stretch() fit it to this one, and change every
 * request alike.
 */
#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct trace_request {
        double at; /* seconds after the first */
        uint32_t prompt, output;
};

struct trace {
        struct trace_request *requests;
        uint32_t count;
};

/* `count` requests from number `first` (of 0) on: 0, or a negative errno and one line in *why. */
int trace_read(const char *path, uint32_t first, uint32_t count, struct trace *ret_trace, char *why,
               size_t why_bytes);
/*
 * Makes a trace up: 0 or -ENOMEM.  Times between arrivals, and lengths, are exponential, with the
 * means of Azure's conversations: 5.53 requests a second, 1155 tokens of prompt and 211 of answer.
 */
int trace_make(uint64_t seed, uint32_t count, struct trace *ret_trace);
void trace_deinit(struct trace *trace);

/* The smallest divisor with which every request fits a context; at least 1. */
double trace_divisor(const struct trace *trace, uint32_t context);

/* Divides lengths and rounds them up, so that none becomes 0. */
void trace_shrink(struct trace *trace, double divisor);

/*
 * Scales times so that `per_second` requests come in a second, on average.  The trace must have
 * at least two requests.
 */
double trace_stretch(struct trace *trace, double per_second);

/*
 * Token ids for a request, drawn from the seed.  No two of `vocab` requests begin alike, so the
 * prefix cache finds nothing of one request in another.
 */
void trace_prompt(uint64_t seed, uint32_t request, uint32_t vocab, uint32_t *ids, uint32_t count);

#endif
