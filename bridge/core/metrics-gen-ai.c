#include "bridge/core/metrics-gen-ai.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX    32u
#define MODEL_BYTES 128u
#define NS_PER_S    1e9
#define OTHER       "_OTHER"

/* Those that the conventions recommend. */
static const struct histogram_bounds durations = {
        14, { .01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92 }
};
static const struct histogram_bounds first_token = {
        16, { .001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10 }
};
static const struct histogram_bounds per_token = {
        13, { .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5 }
};
static const struct histogram_bounds tokens = { 14,
                                                { 1, 4, 16, 64, 256, 1024, 4096, 16384, 65536,
                                                  262144, 1048576, 4194304, 16777216, 67108864 } };

/* Requests with the same labels. */
struct row {
        const char *operation; /* NULL: the entry is free */
        char model[MODEL_BYTES];
        unsigned status;
        struct histogram request, operation_time, first, per_token, input, output;
};

struct gen_ai {
        struct row rows[ROWS_MAX]; /* the last one is of all that found no other */
};

struct gen_ai *gen_ai_new(void)
{
        return calloc(1, sizeof(struct gen_ai));
}

struct gen_ai *gen_ai_free(struct gen_ai *metrics)
{
        free(metrics);
        return NULL;
}

static struct row *row_of(struct gen_ai *metrics, const struct gen_ai_request *request)
{
        struct row *at = metrics->rows, *last = &metrics->rows[ROWS_MAX - 1];

        while (at < last && at->operation &&
               (strcmp(at->operation, request->operation) || strcmp(at->model, request->model) ||
                at->status != request->status))
                at++;
        if (at->operation)
                return at;
        at->operation = at < last ? request->operation : OTHER;
        at->status = at < last ? request->status : 0;
        snprintf(at->model, sizeof(at->model), "%s", at < last ? request->model : OTHER);
        return at;
}

void gen_ai_note(struct gen_ai *metrics, const struct gen_ai_request *request)
{
        struct row *row = row_of(metrics, request);

        histogram_note(&row->request, &durations, (double)request->took_ns / NS_PER_S);
        histogram_note(&row->operation_time, &durations, (double)request->asked_ns / NS_PER_S);
        if (request->status)
                return;
        if (request->first_ns)
                histogram_note(&row->first, &first_token, (double)request->first_ns / NS_PER_S);
        if (request->decoded)
                histogram_note(&row->per_token, &per_token,
                               (double)request->decode_ns / NS_PER_S / request->decoded);
        histogram_note(&row->input, &tokens, (double)request->input);
        histogram_note(&row->output, &tokens, (double)request->output);
}

static void put(struct metrics_writer *w, const char *name, const char *more, const struct row *row,
                const struct histogram *histogram, const struct histogram_bounds *bounds)
{
        char labels[3 * MODEL_BYTES + 256], model[2 * MODEL_BYTES], error[48] = "";

        if (!histogram->count)
                return;
        metrics_escape(row->model, model, sizeof(model));
        if (row->status)
                snprintf(error, sizeof(error), ",error_type=\"%u\"", row->status);
        snprintf(labels, sizeof(labels),
                 "gen_ai_operation_name=\"%s\",gen_ai_provider_name=\"samovar\","
                 "gen_ai_request_model=\"%s\",gen_ai_response_model=\"%s\"%s%s",
                 row->operation, model, model, error, more);
        metrics_put_histogram(w, name, labels, histogram, bounds);
}

/* One metric of all rows. */
#define PUT_ALL(w, metrics, name, help, member, bounds)                                            \
        do {                                                                                       \
                metrics_put_head(w, name, "histogram", help);                                      \
                for (size_t i = 0; i < ROWS_MAX && (metrics)->rows[i].operation; i++)              \
                        put(w, name, "", &(metrics)->rows[i], &(metrics)->rows[i].member, bounds); \
        } while (0)

void gen_ai_write(const struct gen_ai *metrics, struct bytes *to, int *result)
{
        struct metrics_writer w = { .prefix = "gen_ai_", .to = to, .result = *result };

        PUT_ALL(&w, metrics, "server_request_duration_seconds",
                "From a request to the end of its answer.", request, &durations);
        PUT_ALL(&w, metrics, "server_time_to_first_token_seconds",
                "From a request to the first piece of its answer.", first, &first_token);
        PUT_ALL(&w, metrics, "server_time_per_output_token_seconds",
                "Time of a token behind the first one.", per_token, &per_token);
        PUT_ALL(&w, metrics, "client_operation_duration_seconds",
                "From the question to samovard to the end of its answer.", operation_time,
                &durations);
        metrics_put_head(&w, "client_token_usage", "histogram", "Tokens of a request.");
        for (size_t i = 0; i < ROWS_MAX && metrics->rows[i].operation; i++) {
                put(&w, "client_token_usage", ",gen_ai_token_type=\"input\"", &metrics->rows[i],
                    &metrics->rows[i].input, &tokens);
                put(&w, "client_token_usage", ",gen_ai_token_type=\"output\"", &metrics->rows[i],
                    &metrics->rows[i].output, &tokens);
        }
        *result = w.result;
}
