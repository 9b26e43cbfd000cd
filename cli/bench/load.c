#include "cli/bench/load.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/bench/arrivals.h"
#include "cli/clock.h"

#define WARM_SEED  UINT64_C(0x77617266)
#define SHOW_S     0.2
#define SILENCE_S  600.0 /* with requests in flight; then they are given up */
#define FAILED_MAX 20u   /* so many failures in a row, none of them an answer: the server is gone */
#define CELLS      30

volatile sig_atomic_t load_interrupted;

struct running {
        const struct load *load;
        struct workload *workload;
        struct target *target;
        struct load_result *result;
        struct arrivals arrivals;
        double due; /* of the next request */
        bool have_due;
        uint32_t sent, ended, failed, failed_in_a_row;
        uint64_t tokens;
        double heard, shown;
        const char *progress;
};

static double cpu_s(void)
{
        struct rusage use;

        getrusage(RUSAGE_SELF, &use);
        return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
               (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void on_end(void *arg, struct sample *sample)
{
        struct running *run = arg;

        run->ended++;
        run->heard = sample->ended;
        run->tokens += sample->output;
        if (!*sample->error) {
                run->failed_in_a_row = 0;
                return;
        }
        run->failed++;
        run->failed_in_a_row =
                sample->pieces || strncmp(sample->error, "lost", 5) ? 0 : run->failed_in_a_row + 1;
        if (!*run->result->samples.why)
                snprintf(run->result->samples.why, sizeof(run->result->samples.why), "%s",
                         run->target->why);
}

/* ---- when to send ---- */

static bool is_open(const struct load *load)
{
        return load->rate > 0 || load->times;
}

static bool is_over(const struct running *run)
{
        return load_interrupted || run->target->gone || run->failed_in_a_row >= FAILED_MAX;
}

/* When the next request is due; false: there is none. */
static bool next_due(struct running *run, double now)
{
        const struct load *load = run->load;

        if (run->sent >= load->requests || is_over(run))
                return false;
        if (!run->have_due) {
                if (load->rate > 0)
                        run->due = arrivals_next(&run->arrivals);
                else if (load->times)
                        run->due = run->workload->works[run->sent % run->workload->count].at /
                                   load->speed;
                run->have_due = true;
        }
        if (!is_open(load))
                run->due = now;
        return !load->seconds || run->due < load->seconds;
}

static bool has_place(const struct running *run)
{
        return !run->load->concurrency || run->target->in_flight < run->load->concurrency;
}

static int send_next(struct running *run)
{
        struct sample *sample = samples_add(&run->result->samples);
        struct prompt prompt;
        int r;

        if (!sample)
                return -ENOMEM;
        r = workload_prompt(run->workload, &run->target->encoding, run->load->seed, run->sent,
                            &prompt);
        if (r)
                return r;
        /* In a closed loop a request is due when it can be sent; making it is not the server's. */
        sample->due = is_open(run->load) ? run->due : target_now(run->target);
        run->have_due = false;
        run->sent++;
        r = target_send(run->target, &prompt, sample);
        if (!is_open(run->load))
                sample->due = sample->sent;
        if (run->target->in_flight > run->result->most)
                run->result->most = run->target->in_flight;
        return r;
}

/* ---- progress ---- */

static void show(struct running *run, double now)
{
        static const char full[] = "##############################";
        const struct load *load = run->load;
        double part = load->requests < UINT32_MAX ? run->ended / (double)load->requests
                      : load->seconds             ? fmin(1, now / load->seconds)
                                                  : 0;

        _Static_assert(sizeof(full) == CELLS + 1, "a cell each");
        if (!run->progress || now - run->shown < SHOW_S)
                return;
        run->shown = now;
        fprintf(stderr, "\r%s [%-*.*s] %u answers, %u failed, %.0f tokens/s\x1b[K", run->progress,
                CELLS, (int)(part * CELLS), full, run->ended, run->failed,
                now > 0 ? (double)run->tokens / now : 0);
}

/* ---- a run ---- */

static int drive(struct running *run)
{
        double now = target_now(run->target), until;
        bool more = next_due(run, now);
        int r = 0;

        while (!r && (more || run->target->in_flight)) {
                while (!r && more && has_place(run) && run->due <= now) {
                        r = send_next(run);
                        now = target_now(run->target);
                        more = next_due(run, now);
                }
                if (load_interrupted ||
                    (run->target->in_flight && !more && now - run->heard > SILENCE_S)) {
                        snprintf(run->target->why, sizeof(run->target->why), "%s",
                                 load_interrupted ? "interrupted" : "no answer came for 600 s");
                        target_cancel(run->target);
                }
                if (r || (!more && !run->target->in_flight))
                        break;
                until = more && has_place(run) ? run->due - now : SHOW_S;
                r = target_wait(run->target, fmin(until, SHOW_S));
                now = target_now(run->target);
                more = next_due(run, now);
                show(run, now);
        }
        return r;
}

/* Runs all requests of a load; `result` is empty. */
static int drive_load(const struct load *load, struct workload *workload, struct target *target,
                      const char *progress, struct load_result *result)
{
        struct running run = { .load = load,
                               .workload = workload,
                               .target = target,
                               .result = result,
                               .progress = progress };
        double cpu = cpu_s();
        int r;

        run.arrivals = arrivals_begin(load->arrivals, load->rate, load->burstiness, load->seed);
        target->on_end = on_end;
        target->arg = &run;
        target->zero = clock_s();
        r = drive(&run);
        target->on_end = NULL;
        result->cpu_s = cpu_s() - cpu;
        for (uint32_t i = 0; i < result->samples.count; i++)
                result->seconds = fmax(result->seconds, result->samples.at[i]->ended);
        if (load->requests < UINT32_MAX && !load->seconds)
                result->unsent = load->requests - run.sent;
        if (is_over(&run) && !load_interrupted && !result->unsent)
                result->unsent = load->seconds > 0 && result->seconds < load->seconds;
        return r;
}

static int warm_up(const struct load *load, struct workload *workload, struct target *target)
{
        struct load warm = *load;
        struct load_result result = { .seconds = 0 };
        int r;

        warm.rate = 0;
        warm.times = false;
        warm.seconds = 0;
        warm.requests = load->warm_up;
        warm.concurrency = load->concurrency ? load->concurrency : load->warm_up;
        warm.seed = load->seed ^ WARM_SEED;
        r = drive_load(&warm, workload, target, NULL, &result);
        load_result_deinit(&result);
        return r;
}

int load_run(const struct load *load, struct workload *workload, struct target *target,
             const char *progress, struct load_result *ret_result)
{
        int r = load->warm_up ? warm_up(load, workload, target) : 0;

        *ret_result = (struct load_result){ .seconds = 0 };
        if (!r)
                r = drive_load(load, workload, target, progress, ret_result);
        if (progress)
                fputs("\r\x1b[K", stderr);
        return r;
}

void load_result_deinit(struct load_result *result)
{
        samples_deinit(&result->samples);
}
