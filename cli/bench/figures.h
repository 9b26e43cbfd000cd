/*
 * The figures of one run, made of its samples.  Times are milliseconds.  Pure functions.
 *
 *      ttft        time to first token: from the time at which the request was due
 *      tpot        time per output token behind the first: (end - first) / (tokens - 1).  The end
 *                  and not the last piece, because the token that ends an answer has no text
 *      itl         inter-token latency: between two events with tokens, of all answers together
 *      e2e         end to end: from the time at which the request was due to the end of the answer
 *      ttft_sent   the same from the time at which the request was really sent;
 *      e2e_sent    in a closed loop there is no difference
 *      late        how long after it was due a request was sent
 *
 * Failed requests count in none of them, but only as failed.
 */
#ifndef CLI_BENCH_FIGURES_H
#define CLI_BENCH_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/bench/load.h"
#include "cli/bench/numbers.h"

enum spread { TTFT, TPOT, ITL, E2E, TTFT_SENT, E2E_SENT, LATE, SPREADS };

/* "ttft", and "time to first token". */
extern const char *const spread_names[SPREADS], *const spread_titles[SPREADS];

/* The longest times of a good answer, in milliseconds; 0: any. */
struct slo {
        double ttft, tpot, e2e;
};
bool slo_given(const struct slo *slo);

struct figure_error {
        char name[32];
        uint32_t count;
};

#define FIGURE_ERRORS_MAX 8u
#define CURVE_POINTS      101u /* percentiles 0 to 100 */

struct figures {
        uint32_t answers, failed, unsent, most_in_flight;
        uint32_t shorter; /* answers with usage, than the request demanded */
        uint32_t untold;  /* answers without usage: their pieces count as tokens */
        struct figure_error errors[FIGURE_ERRORS_MAX]; /* the last one counts all others, too */
        uint32_t error_count;
        double seconds;
        uint64_t input_tokens, cached_tokens; /* of the answers with usage */
        uint64_t output_tokens;
        uint64_t drafted, drafts_right; /* guesses that servers tell; 0: none, or they do not */
        /* A second. */
        double requests_s, input_s, output_s;
        /* Answers within the target, and their share of all requests; without a target, all. */
        double good_s, good_output_s, good_share;
        double cached_percent; /* of the tokens of the prompts */
        /* With guesses: the right ones in percent; tokens of answers for each step of a stream. */
        double right_percent, tokens_step;
        double own_cpu; /* of this process, in percent of one core */
        struct numbers spreads[SPREADS];
        double curves[SPREADS][CURVE_POINTS];
};

/* 0 or -ENOMEM. */
int figures_of(const struct load_result *result, const struct slo *slo,
               struct figures *ret_figures);

/* The values of one sample; false: it has none, because it failed or has too few tokens. */
bool sample_value(const struct sample *sample, enum spread spread, double *ret_ms);
bool sample_is_good(const struct sample *sample, const struct slo *slo);

enum metric_needs { NEEDS_NOTHING, NEEDS_USAGE, NEEDS_DRAFTS, NEEDS_SAMPLES };

/* One number of the figures, for tables: its name in files, its title, and where it is. */
struct metric {
        const char *name, *title;
        size_t offset; /* a double in struct figures */
        bool less;     /* less is better */
        enum metric_needs needs;
        enum spread spread; /* of which it needs a sample */
};
extern const struct metric metrics[];
extern const size_t metric_count;
/* False: the run has no such value, because no answer came or the server told no usage. */
bool metric_of(const struct figures *figures, const struct metric *metric, double *ret_value);
const struct metric *metric_find(const char *name); /* it must exist */

#endif
