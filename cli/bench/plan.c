#include "cli/bench/plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "cli/bench/files.h"

#define INPUT          "256" /* tokens, unless said otherwise */
#define OUTPUT         "128"
#define BLOCK_TOKENS   512u /* of a hash in Mooncake's traces */
#define REQUESTS_RATE  100u
#define REQUESTS_LEAST 16u
#define REQUESTS_EACH  8u /* for each one in flight */
#define SHARES         "40,70,95"

static int refuse(const char *flag, const char *value, const char *wanted)
{
        say("%s is %.60s; it may be %s", flag, *value ? value : "empty", wanted);
        return CLI_USAGE;
}

/* ---- values ---- */

/* Numbers with commas between them. */
static int read_list(const char *flag, const char *text, double low, double high, bool whole,
                     double *ret_list, uint32_t *ret_count)
{
        char wanted[96], *end;
        const char *at = text;

        *ret_count = 0;
        do {
                double value = strtod(at, &end);

                if (*ret_count == PLAN_LEVELS_MAX || *at < '0' || *at > '9' || end == at ||
                    (*end && *end != ',') || !(value >= low && value <= high) ||
                    (whole && value != floor(value))) {
                        snprintf(wanted, sizeof(wanted),
                                 "up to %u numbers from %.9g to %.9g, with commas between them",
                                 PLAN_LEVELS_MAX, low, high);
                        return refuse(flag, text, wanted);
                }
                ret_list[(*ret_count)++] = value;
                at = end + 1;
        } while (*end == ',');
        return 0;
}

/* "200ms", "1.5s" or "200"; milliseconds. */
static bool read_time(const char *text, size_t bytes, double *ret_ms)
{
        char copy[32], *end;

        if (bytes >= sizeof(copy))
                return false;
        memcpy(copy, text, bytes);
        copy[bytes] = '\0';
        *ret_ms = strtod(copy, &end);
        if (end == copy || *copy == '-')
                return false;
        if (!strcmp(end, "s"))
                *ret_ms *= 1000;
        return (!*end || !strcmp(end, "s") || !strcmp(end, "ms")) && *ret_ms > 0 && *ret_ms < 1e9;
}

/* "ttft=200ms,tpot=50ms" */
static int read_slo(const char *text, struct slo *ret_slo)
{
        const struct {
                const char *name;
                double *to;
        } names[] = { { "ttft=", &ret_slo->ttft },
                      { "tpot=", &ret_slo->tpot },
                      { "e2e=", &ret_slo->e2e } };
        const char *at = text;

        for (;;) {
                size_t bytes = strcspn(at, ","), i = 0;

                while (i < 3 && strncmp(at, names[i].name, strlen(names[i].name)))
                        i++;
                if (i == 3 || !read_time(at + strlen(names[i].name), bytes - strlen(names[i].name),
                                         names[i].to))
                        return refuse("--slo", text,
                                      "like ttft=200ms,tpot=50ms,e2e=2s: one of "
                                      "these or several");
                if (!at[bytes])
                        return 0;
                at += bytes + 1;
        }
}

/* "0.8:512" or "0.8:512:4" */
static int read_prefix(const char *text, struct workload *workload)
{
        double share, count = 1;
        unsigned long tokens;
        char *end;

        share = strtod(text, &end);
        if (end == text || *end != ':' || !(share > 0 && share <= 1))
                goto bad;
        text = end + 1;
        tokens = strtoul(text, &end, 10);
        if (end == text || !tokens || tokens > LENGTH_MAX || (*end && *end != ':'))
                goto bad;
        if (*end) {
                text = end + 1;
                count = strtod(text, &end);
                if (end == text || *end || !(count >= 1 && count <= 1e6))
                        goto bad;
        }
        workload->prefix_share = share;
        workload->prefix_tokens = (uint32_t)tokens;
        workload->prefix_count = (uint32_t)count;
        return 0;
bad:
        return refuse("--prefix", text,
                      "SHARE:TOKENS or SHARE:TOKENS:COUNT, like 0.8:512:4; the "
                      "share is above 0, up to 1");
}

static int read_lengths(const char *flag, const char *text, struct lengths *ret_lengths)
{
        return lengths_read(text, ret_lengths) ? refuse(flag, text, LENGTHS_FORMS) : 0;
}

/* ---- the workload ---- */

static int read_file(const struct bench_options *bench, struct plan *plan)
{
        struct workload *workload = &plan->workload;
        const char *path = bench->trace ? bench->trace : bench->prompts;
        struct bytes text = { 0 };
        char why[256];
        int r = input_file(path, &text);

        if (r)
                return r;
        workload->kind = bench->trace ? WORKLOAD_TRACE : WORKLOAD_PROMPTS;
        if (bench->trace)
                r = trace_file_read(text.at, text.count, bench->unit, bench->first, bench->requests,
                                    workload, why, sizeof(why));
        else
                r = prompt_file_read(text.at, text.count, workload, why, sizeof(why));
        bytes_deinit(&text);
        if (r) {
                say("%s %s: %s", bench->trace ? "--trace" : "--prompts", path, why);
                return CLI_FAILED;
        }
        for (uint32_t i = 0; i < workload->count; i++)
                plan->chat = plan->chat || workload->works[i].message_count;
        workload->block_tokens = bench->block_tokens ? bench->block_tokens : BLOCK_TOKENS;
        if (bench->trace && bench->divisor > 0)
                workload_divide(workload, (double)bench->divisor);
        return 0;
}

static const char *last_part(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static void say_workload(const struct bench_options *bench, struct plan *plan)
{
        const struct workload *workload = &plan->workload;
        double input = 0, output = 0;

        for (uint32_t i = 0; i < workload->count; i++) {
                input += workload->works[i].input;
                output += workload->works[i].output;
        }
        if (workload->kind == WORKLOAD_SYNTHETIC)
                snprintf(plan->workload_words, sizeof(plan->workload_words),
                         "synthetic: %.40s tokens in, %.40s out%s%.40s%s",
                         bench->input ? bench->input : INPUT,
                         bench->output ? bench->output : OUTPUT, bench->prefix ? ", prefixes " : "",
                         bench->prefix ? bench->prefix : "",
                         workload->ignore_eos ? "" : " at most");
        else if (workload->kind == WORKLOAD_PROMPTS)
                snprintf(plan->workload_words, sizeof(plan->workload_words),
                         "%u prompts of %.100s, %s%.40s tokens out", workload->count,
                         last_part(bench->prompts), workload->ignore_eos ? "" : "at most ",
                         bench->output ? bench->output : OUTPUT);
        else
                snprintf(plan->workload_words, sizeof(plan->workload_words),
                         "trace %.100s: %u requests, %.0f tokens in and %.0f out on average",
                         last_part(bench->trace), workload->count, input / workload->count,
                         output / workload->count);
}

static int make_workload(const struct cli *cli, struct plan *plan)
{
        const struct bench_options *bench = &cli->bench;
        struct workload *workload = &plan->workload;
        const char *alone = bench->trace ? "--trace" : bench->prompts ? "--prompts" : NULL;
        int r;

        if (bench->trace && bench->prompts) {
                say("--trace and --prompts both say what is asked: leave one of them out");
                return CLI_USAGE;
        }
        if (alone && (bench->input || bench->prefix)) {
                say("%s says what is asked: leave out %s", alone,
                    bench->input ? "--input" : "--prefix");
                return CLI_USAGE;
        }
        if (bench->trace && bench->output) {
                say("--trace says how long answers are: leave out --output");
                return CLI_USAGE;
        }
        if (!bench->trace && (bench->divisor > 0 || bench->first || bench->speed > 0)) {
                say("%s needs --trace", bench->divisor > 0 ? "--divide"
                                        : bench->first     ? "--skip"
                                                           : "--speed");
                return CLI_USAGE;
        }
        workload->ignore_eos = bench->prompts ? cli->ignore_eos : !bench->may_end;
        r = read_lengths("--input", bench->input ? bench->input : INPUT, &workload->input);
        if (!r)
                r = read_lengths("--output", bench->output ? bench->output : OUTPUT,
                                 &workload->output);
        if (!r && bench->prefix)
                r = read_prefix(bench->prefix, workload);
        if (!r && alone)
                r = read_file(bench, plan);
        say_workload(bench, plan);
        return r;
}

/* ---- the load ---- */

static int read_levels(const struct bench_options *bench, struct plan *plan)
{
        const char *text = bench->concurrency;
        double list[PLAN_LEVELS_MAX];
        int r = 0;

        if (!text && plan->exercise)
                text = "1,2,4,8,16,32";
        else if (!text && !bench->rate && !bench->trace)
                text = "8";
        if (text)
                r = read_list("--concurrency", text, 1, 65536, true, list,
                              &plan->concurrency_count);
        for (uint32_t i = 0; i < plan->concurrency_count; i++)
                plan->concurrencies[i] = (uint32_t)list[i];
        if (!r && bench->rate)
                r = read_list("--rate", bench->rate, 0.001, 1e6, false, plan->rates,
                              &plan->rate_count);
        if (!r)
                r = read_list("--loads", bench->loads ? bench->loads : SHARES, 1, 1000, false,
                              plan->shares, &plan->share_count);
        if (!r && plan->concurrency_count > 1 && (bench->rate || (bench->trace && !bench->rate))) {
                say("--concurrency is %s; with %s it is the limit of requests in flight, one "
                    "number",
                    bench->concurrency, bench->rate ? "--rate" : "--trace");
                r = CLI_USAGE;
        }
        return r;
}

static int make_load(const struct bench_options *bench, struct plan *plan)
{
        struct load *load = &plan->load;
        int r = read_levels(bench, plan);

        if (r)
                return r;
        load->arrivals = bench->arrivals;
        load->burstiness = bench->burstiness > 0 ? (double)bench->burstiness : 1;
        if (bench->burstiness > 0)
                load->arrivals = BENCH_GAMMA;
        load->times = bench->trace && !bench->rate;
        load->speed = bench->speed > 0 ? (double)bench->speed : 1;
        load->seconds = (double)bench->seconds;
        load->warm_up = bench->warm_up;
        load->requests = bench->requests;
        if (plan->workload.kind == WORKLOAD_TRACE && !load->requests)
                load->requests = plan->workload.count;
        if (plan->workload.kind == WORKLOAD_TRACE && load->requests > plan->workload.count)
                load->requests = plan->workload.count;
        return 0;
}

static int read_exercise(const struct cli *cli, struct plan *plan)
{
        static const char *const names[] = { NULL, "batch-sizes", "batching", "exercises" };
        const char *given = cli->argument_count ? cli->arguments[0] : NULL;

        plan->exercise = EXERCISE_NONE;
        for (unsigned i = 1; given && i < 4; i++)
                if (!strcmp(given, names[i]))
                        plan->exercise = i;
        if (cli->argument_count > 1 || (given && !plan->exercise)) {
                say("bench takes one argument at most, batch-sizes, batching or exercises, but "
                    "%.40s is one",
                    cli->arguments[plan->exercise ? 1 : 0]);
                return CLI_USAGE;
        }
        return 0;
}

/* An exercise starts daemons of its own. */
static int check_exercise(const struct cli *cli, const struct plan *plan)
{
        const struct bench_options *bench = &cli->bench;
        const char *server = cli->socket      ? "--socket"
                             : bench->url     ? "--url"
                             : bench->against ? "--against"
                                              : NULL;
        const char *other = bench->csv   ? "--csv"
                            : bench->svg ? "--svg"
                            : bench->raw ? "--raw"
                                         : NULL;

        if (plan->exercise && server) {
                say("%s starts private daemons: leave out %s", cli->arguments[0], server);
                return CLI_USAGE;
        }
        if (plan->exercise & EXERCISE_BATCHING && bench->rate) {
                say("%s has rates of its own: leave out --rate, or give --loads",
                    cli->arguments[0]);
                return CLI_USAGE;
        }
        if (plan->exercise == EXERCISE_ALL && other) {
                say("%s needs one exercise: batch-sizes or batching", other);
                return CLI_USAGE;
        }
        return 0;
}

static int check_servers(const struct cli *cli)
{
        const struct bench_options *bench = &cli->bench;

        if (bench->url && (cli->socket || cli->principal)) {
                say("--url names the server: leave out %s",
                    cli->socket ? "--socket" : "--principal");
                return CLI_USAGE;
        }
        if (bench->url && cli->model && daemon_is_file(cli->model) && cli->model[0] == '/') {
                say("--model is %.60s; with --url it is a name that the server lists", cli->model);
                return CLI_USAGE;
        }
        if (bench->key_file && !bench->url && !bench->against) {
                say("--key-file needs --url");
                return CLI_USAGE;
        }
        return 0;
}

/* Another one each time: a command that is repeated must not find its prompts in a cache. */
static uint64_t any_seed(void)
{
        uint32_t seed = 0;

        if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
                seed = (uint32_t)time(NULL);
        return seed % 1000000;
}

int plan_make(const struct cli *cli, struct plan *ret_plan)
{
        const struct bench_options *bench = &cli->bench;
        int r;

        *ret_plan = (struct plan){ .seed = cli->generate.seed };
        if (!(cli->generate.set & SMV_SET_SEED))
                ret_plan->seed = any_seed();
        r = read_exercise(cli, ret_plan);
        if (!r)
                r = check_exercise(cli, ret_plan);
        if (!r)
                r = check_servers(cli);
        if (!r)
                r = make_workload(cli, ret_plan);
        if (!r)
                r = make_load(bench, ret_plan);
        if (!r && bench->slo)
                r = read_slo(bench->slo, &ret_plan->slo);
        ret_plan->rounds = bench->rounds                           ? bench->rounds
                           : bench->against && !ret_plan->exercise ? 3
                                                                   : 1;
        if (r)
                plan_deinit(ret_plan);
        return r;
}

void plan_deinit(struct plan *plan)
{
        workload_deinit(&plan->workload);
}

uint32_t plan_levels(const struct plan *plan)
{
        return plan->rate_count ? plan->rate_count : plan->load.times ? 1 : plan->concurrency_count;
}

/* Enough for percentiles, and for each place to be taken several times. */
static uint32_t usual_requests(const struct plan *plan, const struct load *load)
{
        uint64_t count = (uint64_t)load->concurrency * REQUESTS_EACH;

        if (plan->workload.kind == WORKLOAD_PROMPTS && plan->workload.count)
                return plan->workload.count;
        if (load->rate > 0)
                return REQUESTS_RATE;
        return count < REQUESTS_LEAST ? REQUESTS_LEAST : (uint32_t)count;
}

struct load plan_load(const struct plan *plan, uint32_t level, uint32_t round)
{
        struct load load = plan->load;

        load.seed = plan->seed + (uint64_t)round * 1000003 + level + 1;
        if (plan->rate_count) {
                load.rate = plan->rates[level];
                load.concurrency = plan->concurrency_count ? plan->concurrencies[0] : 0;
        } else {
                load.concurrency = plan->concurrency_count ? plan->concurrencies[level] : 0;
        }
        if (!load.requests)
                load.requests = load.seconds > 0 ? UINT32_MAX : usual_requests(plan, &load);
        return load;
}

void plan_say_load(const struct plan *plan, char *to, size_t bytes)
{
        static const char *const processes[] = { "Poisson", "fixed", "gamma" };
        struct load load = plan_load(plan, 0, 0);
        char amount[96], limit[48] = "", what[96];

        if (load.seconds > 0)
                snprintf(amount, sizeof(amount), "%g s", load.seconds);
        else if (plan_levels(plan) > 1 && !plan->load.requests && !plan->rate_count)
                snprintf(amount, sizeof(amount), "%u requests for each of them, %u or more",
                         REQUESTS_EACH, REQUESTS_LEAST);
        else
                snprintf(amount, sizeof(amount), "%u requests", load.requests);
        if (load.concurrency && (plan->rate_count || load.times))
                snprintf(limit, sizeof(limit), ", up to %u at a time", load.concurrency);
        if (plan->rate_count == 1)
                snprintf(what, sizeof(what), "%g requests a second (%s arrivals, burstiness %g)",
                         load.rate, processes[load.arrivals], load.burstiness);
        else if (plan->rate_count)
                snprintf(what, sizeof(what), "at a rate (%s arrivals, burstiness %g)",
                         processes[load.arrivals], load.burstiness);
        else if (load.times)
                snprintf(what, sizeof(what), "at the times of the trace, %g times as fast",
                         load.speed);
        else if (plan_levels(plan) > 1)
                snprintf(what, sizeof(what), "a number of requests at a time");
        else
                snprintf(what, sizeof(what), "%u requests at a time", load.concurrency);
        snprintf(to, bytes, "%s%s; %s, after %u to warm up; seed %llu", what, limit, amount,
                 load.warm_up, (unsigned long long)plan->seed);
}
