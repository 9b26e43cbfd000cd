/*
 * samovar bench: the servers, the runs, and the report.
 *
 * With two servers each round runs both, one after the other, and the order changes from round to
 * round: so what the machine does meanwhile hits both alike.
 */
#include "cli/bench/bench.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_interrupt(int signal_number)
{
        (void)signal_number;
        load_interrupted = 1;
}

/* The second SIGINT has its default action. */
static void catch_interrupt(void)
{
        const struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESETHAND };

        sigaction(SIGINT, &action, NULL);
}

static int out_of_memory(void)
{
        say("out of memory");
        return CLI_FAILED;
}

/* ---- the report ---- */

static int refuse_file(const char *flag, const char *path)
{
        say("%s %s: %s", flag, path, strerror(errno));
        return CLI_FAILED;
}

/* Before the first request: a long run must not end without its file. */
static int open_file(const char *flag, const char *path, FILE **ret_file)
{
        if (!path)
                return 0;
        *ret_file = fopen(path, "we");
        return *ret_file ? 0 : refuse_file(flag, path);
}

static int close_file(const char *flag, const char *path, FILE **file)
{
        int r = *file ? fclose(*file) : 0;

        *file = NULL;
        return r ? refuse_file(flag, path) : 0;
}

static int write_as(const char *flag, const char *path, FILE **file, const struct report *report,
                    int (*write)(const struct report *report, struct bytes *to))
{
        struct bytes text = { 0 };
        int r = *file ? write(report, &text) : 0;

        if (r)
                r = out_of_memory();
        else if (*file && fwrite(text.at, 1, text.count, *file) != text.count)
                r = refuse_file(flag, path);
        bytes_deinit(&text);
        return r ? r : close_file(flag, path, file);
}

static int show_report(const struct cli *cli, const struct report *report)
{
        struct bytes text = { 0 };
        struct screen screen;
        int r = cli->json ? report_json(report, &text) : report_table(report, &text);

        if (r) {
                bytes_deinit(&text);
                return out_of_memory();
        }
        screen_open(&screen, STDOUT_FILENO);
        r = screen_text(&screen, text.at, text.count);
        bytes_deinit(&text);
        return r;
}

int bench_finish(struct bench *bench)
{
        const struct bench_options *options = &bench->cli->bench;
        const struct report *report = &bench->report;
        uint32_t failed = 0;
        int r = show_report(bench->cli, report);

        if (!r)
                r = write_as("--csv", options->csv, &bench->csv, report, report_csv);
        if (!r)
                r = write_as("--svg", options->svg, &bench->svg, report, report_svg);
        if (!r)
                r = close_file("--raw", options->raw, &bench->raw);
        for (uint32_t i = 0; i < report->count; i++)
                failed += report->runs[i].figures.failed + report->runs[i].figures.unsent;
        return load_interrupted ? CLI_INTERRUPTED : r ? r : failed ? CLI_FAILED : 0;
}

int bench_begin(struct bench *bench)
{
        const struct bench_options *options = &bench->cli->bench;
        struct report *report = &bench->report;
        const struct plan *plan = &bench->plan;
        int r;

        *report = (struct report){ .rounds = plan->rounds,
                                   .by_rate = plan->rate_count,
                                   .open = plan->rate_count || plan->load.times,
                                   .slo = plan->slo,
                                   .seed = plan->seed };
        host_read(&report->host);
        snprintf(report->workload, sizeof(report->workload), "%s", plan->workload_words);
        plan_say_load(plan, report->load, sizeof(report->load));
        r = open_file("--raw", options->raw, &bench->raw);
        if (!r)
                r = open_file("--csv", options->csv, &bench->csv);
        return r ? r : open_file("--svg", options->svg, &bench->svg);
}

/* ---- runs ---- */

static int write_raw(struct bench *bench, const struct report_run *run,
                     const struct samples *samples)
{
        struct bytes text = { 0 };
        int r = 0;

        if (!bench->raw)
                return 0;
        r = report_raw(&bench->report, run, samples, &text);
        if (r)
                r = out_of_memory();
        else if (fwrite(text.at, 1, text.count, bench->raw) != text.count) {
                r = refuse_file("--raw", bench->cli->bench.raw);
        }
        bytes_deinit(&text);
        return r;
}

int bench_run(struct bench *bench, struct target *target, const struct load *load, uint32_t level,
              const char *label, uint32_t server, uint32_t round)
{
        struct report_run *run = report_add(&bench->report);
        struct load_result result = { .seconds = 0 };
        char name[RUN_NAME_MAX];
        int r;

        if (!run)
                return out_of_memory();
        snprintf(run->label, sizeof(run->label), "%s", label);
        run->server = server;
        run->round = round;
        run->concurrency = level;
        run->rate = load->rate;
        report_run_name(&bench->report, run, name);
        r = load_run(load, &bench->plan.workload, target, isatty(STDERR_FILENO) ? name : NULL,
                     &result);
        if (!r)
                r = figures_of(&result, &bench->report.slo, &run->figures);
        memcpy(run->why, result.samples.why, sizeof(run->why));
        r = r ? out_of_memory() : write_raw(bench, run, &result.samples);
        load_result_deinit(&result);
        return r;
}

/* ---- servers ---- */

void bench_target_options(const struct bench *bench, struct target_options *ret_options)
{
        const struct cli *cli = bench->cli;

        *ret_options = (struct target_options){
                .bench = &cli->bench,
                .model = cli->model,
                .set = cli->generate.set & SMV_SET_TEMPERATURE,
                .temperature = cli->generate.temperature,
                .priority = cli->generate.priority,
                .principal = cli->principal,
                .any_uid = cli->any_uid,
                .transport = cli->transport,
                .timeout_s = cli->wait_s,
                .made_up = bench->plan.workload.kind != WORKLOAD_PROMPTS,
                .chat = bench->plan.chat,
        };
}

static bool is_url(const char *name)
{
        return !strncmp(name, "http://", 7) || !strncmp(name, "https://", 8) ||
               !strncmp(name, "unix:", 5);
}

static int open_server(struct bench *bench, uint32_t which, const char *name,
                       struct smv_client *client)
{
        struct target_options options;
        char why[256] = "";
        int r;

        bench_target_options(bench, &options);
        options.key_file = bench->cli->bench.key_file;
        if (which) {
                /* The model's name and the key are those of the first server. */
                options.model = NULL;
                if (bench->cli->bench.url)
                        options.key_file = NULL;
        }
        if (name && (is_url(name) || name == bench->cli->bench.url))
                r = target_open_http(&options, name, &bench->targets[which], why, sizeof(why));
        else
                r = target_open_socket(&options, client, name, &bench->targets[which], why,
                                       sizeof(why));
        if (r) {
                say("%s%s%s", which ? "--against: " : "", *why ? why : strerror(-r), "");
                return r == -ENOENT || r == -ECONNREFUSED ? CLI_NO_DAEMON : CLI_FAILED;
        }
        /* Two addresses may be one daemon, which would find the prompts of one in its cache. */
        bench->targets[which]->encoding.salt = which;
        bench->report.servers[which] = bench->targets[which]->facts;
        bench->report.server_count = which + 1;
        return 0;
}

/* A context that is too short would fail each request: it is told once, before. */
static int check_lengths(const struct bench *bench)
{
        const struct workload *workload = &bench->plan.workload;

        if (workload->kind == WORKLOAD_PROMPTS)
                return 0;
        for (uint32_t s = 0; s < bench->report.server_count; s++) {
                struct load load = plan_load(&bench->plan, 0, 0);
                uint64_t context = bench->report.servers[s].context;
                uint32_t count = load.requests < 10000 ? load.requests : 10000;
                uint64_t longest = workload_longest(workload, load.seed, count);

                if (!context || longest <= context)
                        continue;
                say("a request has %llu tokens with its answer; the context of %s has %llu: %s",
                    (unsigned long long)longest, bench->report.servers[s].address,
                    (unsigned long long)context,
                    workload->kind == WORKLOAD_TRACE ? "shorten all with --divide"
                                                     : "shorten --input or --output");
                return CLI_USAGE;
        }
        return 0;
}

static int run_rounds(struct bench *bench)
{
        uint32_t servers = bench->report.server_count;
        int r = 0;

        for (uint32_t round = 0; round < bench->plan.rounds && !r; round++)
                for (uint32_t level = 0; level < plan_levels(&bench->plan) && !r; level++)
                        for (uint32_t k = 0; k < servers && !r && !load_interrupted; k++) {
                                uint32_t server = (k + round) % servers;
                                struct load load = plan_load(&bench->plan, level, round);

                                r = bench_run(bench, bench->targets[server], &load,
                                              load.concurrency, "", server, round);
                        }
        return r;
}

static int run_servers(struct bench *bench)
{
        const struct bench_options *options = &bench->cli->bench;
        int r = bench_begin(bench);

        if (!r)
                r = open_server(bench, 0, options->url, bench->cli->client);
        if (!r && options->against)
                r = open_server(bench, 1, options->against, NULL);
        if (!r)
                r = check_lengths(bench);
        if (!r)
                r = run_rounds(bench);
        if (!r)
                r = bench_finish(bench);
        for (uint32_t i = 0; i < SERVERS_MAX; i++)
                target_close(bench->targets[i]);
        return r;
}

uint32_t cli_bench_sequences(const struct cli *cli)
{
        struct plan plan;
        uint32_t most = 64;

        if (plan_make(cli, &plan))
                return 1; /* the same mistake is told before a daemon is started */
        for (uint32_t i = 0; i < plan.concurrency_count; i++)
                most = plan.concurrencies[i] > most ? plan.concurrencies[i] : most;
        plan_deinit(&plan);
        return most > 1024 ? 1024 : most;
}

int cli_bench(struct cli *cli)
{
        struct bench bench = { .cli = cli };
        int r = plan_make(cli, &bench.plan);

        if (r)
                return r;
        catch_interrupt();
        if (bench.plan.exercise)
                r = bench_exercises(&bench);
        else
                r = run_servers(&bench);
        /* A run that failed has left them open. */
        close_file("--raw", cli->bench.raw, &bench.raw);
        close_file("--csv", cli->bench.csv, &bench.csv);
        close_file("--svg", cli->bench.svg, &bench.svg);
        report_deinit(&bench.report);
        plan_deinit(&bench.plan);
        return r;
}
