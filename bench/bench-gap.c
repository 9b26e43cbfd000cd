/*
 * What a long prompt does to those who are being served:
 *
 *      bench-gap [-r ROUNDS] [-s STREAMS] SAMOVARD MODEL [FLAG OF SAMOVARD ...]
 *
 * Some streams run; the gaps between their tokens are taken as they are alone, and
 * then while a prompt as long as the context is read.  The bound that --gap-ms
 * promises is the larger of twice the gap alone and --gap-ms; what it costs is how
 * much slower the prompt is read than alone.  A daemon of its own for each setting
 * and round, settings in turns, so that what else the machine does falls on all.
 * A gap is seen by the client, so waking it is part of it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/own-daemon.h"

#define STREAMS_MAX 64u
#define ROUNDS_MAX  32u
#define SAMPLES_MAX (1u << 20)
#define ALONE_S     2.0 /* long enough for a 99th percentile of a slow step */
#define WARM_S      0.5
#define PROMPT      16u
#define SILENCE_MS  120000

/* 0: prompts take all that decodes leave; the others are bounds. */
static const uint32_t settings[] = { 0, 5, 10, 20, 50, 100 };
#define SETTINGS (sizeof(settings) / sizeof(*settings))

struct figures { /* of one round, in ms, and tokens a second */
        double alone_half, alone_99, during_half, during_99, during_most;
        double rate;
};

static struct bench {
        const char *program, *model;
        char **more;
        uint32_t rounds, streams, vocab, context;
        struct figures figures[SETTINGS][ROUNDS_MAX];
        double rate_alone[ROUNDS_MAX];

        /* of the daemon that runs */
        struct smv_client *client;
        uint32_t stream_ids[STREAMS_MAX];
        double last[STREAMS_MAX];
        double *gaps;
        size_t gap_count;
        uint32_t *ids;
        uint64_t random;
} b;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
        va_list values;

        fputs("bench-gap: ", stderr);
        va_start(values, format);
        vfprintf(stderr, format, values);
        va_end(values);
        fputc('\n', stderr);
        own_daemon_stop();
        exit(1);
}

static double now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t any_token(void)
{
        b.random = b.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(b.random >> 33) % b.vocab;
}

static uint32_t ask(uint32_t prompt, uint32_t most)
{
        struct smv_generate options = {
                SMV_SIZE(smv_generate), .tokens = b.ids, .token_count = prompt,
                .max_tokens = most,     .ignore_eos = 1,
        };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        uint32_t stream;

        for (uint32_t i = 0; i < prompt; i++)
                b.ids[i] = any_token();
        if (!smv_generate(b.client, &options, &stream))
                return stream;
        smv_error(b.client, &problem);
        die("%s", problem.message);
}

static void begin_stream(uint32_t i)
{
        b.stream_ids[i] = ask(PROMPT, b.context - PROMPT - 1);
        b.last[i] = 0;
}

static void take_gap(const struct smv_event *event)
{
        double at = now();

        for (uint32_t i = 0; i < b.streams; i++) {
                if (b.stream_ids[i] != event->stream)
                        continue;
                if (event->kind == SMV_EVENT_END) { /* at the context's end: another one */
                        begin_stream(i);
                        return;
                }
                if (b.last[i] != 0 && b.gap_count < SAMPLES_MAX)
                        b.gaps[b.gap_count++] = (at - b.last[i]) * 1e3;
                b.last[i] = at;
        }
}

/* Takes what comes until then, or until this stream has ended. */
static void listen_until(double end, uint32_t stream)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        while (now() < end) {
                int r = smv_next(b.client, &event, SILENCE_MS);

                if (r <= 0)
                        die("nothing comes: %s", r ? strerror(-r) : "silence");
                take_gap(&event);
                if (event.kind == SMV_EVENT_END && event.stream == stream)
                        return;
        }
}

static int by_size(const void *x, const void *y)
{
        double one = *(const double *)x, other = *(const double *)y;

        return (one > other) - (one < other);
}

static double part(double *of, size_t count, double share)
{
        if (!count)
                die("no samples");
        qsort(of, count, sizeof(*of), by_size);
        return of[(size_t)((double)(count - 1) * share + 0.5)];
}

static uint32_t told(const char *json, const char *name)
{
        const char *model = strstr(json, "\"model\":"), *at;
        char quoted[32];

        snprintf(quoted, sizeof(quoted), "\"%s\":", name);
        at = model ? strstr(model, quoted) : NULL;
        if (!at)
                die("status does not tell %s", name);
        return (uint32_t)strtoul(at + strlen(quoted), NULL, 10);
}

static void start(uint32_t gap_ms)
{
        const char *flags[32] = { "--model", b.model, "--log-level", "warn", "--gap-ms" };
        char value[16], why[256] = "";
        const char *json;
        size_t count = 6;

        snprintf(value, sizeof(value), "%u", gap_ms);
        flags[5] = value;
        for (char **more = b.more; *more && count < 31; more++)
                flags[count++] = *more;
        if (own_daemon_start(b.program, flags, &b.client, why, sizeof(why)))
                die("%s", why);
        if (smv_status(b.client, &json))
                die("there is no status");
        b.vocab = told(json, "vocab");
        b.context = told(json, "context");
        free(b.ids);
        b.ids = calloc(b.context, sizeof(*b.ids));
        if (!b.ids)
                die("out of memory");
        listen_until(now() + SILENCE_MS, ask(PROMPT, 1)); /* the weights are there */
}

/* Tokens of a prompt as long as the context, a second. */
static double read_long(void)
{
        uint32_t length = b.context - 1;
        double begin = now();

        listen_until(begin + SILENCE_MS, ask(length, 1));
        return length / (now() - begin);
}

static void run(uint32_t setting, uint32_t round)
{
        struct figures *figures = &b.figures[setting][round];

        start(settings[setting]);
        if (!settings[setting])
                b.rate_alone[round] = read_long();
        for (uint32_t i = 0; i < b.streams; i++)
                begin_stream(i);
        listen_until(now() + WARM_S, 0);
        b.gap_count = 0;
        listen_until(now() + ALONE_S, 0);
        figures->alone_half = part(b.gaps, b.gap_count, 0.5);
        figures->alone_99 = part(b.gaps, b.gap_count, 0.99);
        b.gap_count = 0;
        figures->rate = read_long();
        figures->during_half = part(b.gaps, b.gap_count, 0.5);
        figures->during_99 = part(b.gaps, b.gap_count, 0.99);
        figures->during_most = part(b.gaps, b.gap_count, 1);
        own_daemon_stop();
}

/* The median over rounds of one figure. */
static double over_rounds(const double *first, size_t step)
{
        double values[ROUNDS_MAX];

        for (uint32_t i = 0; i < b.rounds; i++)
                values[i] = *(const double *)((const char *)first + i * step);
        return part(values, b.rounds, 0.5);
}

#define MEDIAN(setting, member)                                                                    \
        over_rounds(&b.figures[setting][0].member, sizeof(b.figures[setting][0]))

static void print(void)
{
        double alone = over_rounds(b.rate_alone, sizeof(double));

        printf("%u streams; a prompt of %u tokens; alone it is read at %.0f tokens/s\n\n",
               b.streams, b.context - 1, alone);
        printf("| --gap-ms | gap alone, median | p99 | while it is read, median | p99 | most | "
               "bound "
               "| prompt, tokens/s | of alone |\n|---|---|---|---|---|---|---|---|---|\n");
        for (uint32_t i = 0; i < SETTINGS; i++) {
                double twice = 2 * MEDIAN(i, alone_99), gap = settings[i];

                printf("| %u%s | %.2f ms | %.2f | %.2f | %.2f | %.2f | %.2f | %.0f | %.0f %% |\n",
                       settings[i], settings[i] ? "" : " (none)", MEDIAN(i, alone_half),
                       MEDIAN(i, alone_99), MEDIAN(i, during_half), MEDIAN(i, during_99),
                       MEDIAN(i, during_most), twice > gap ? twice : gap, MEDIAN(i, rate),
                       100 * MEDIAN(i, rate) / alone);
        }
}

int main(int argc, char **argv)
{
        int c;

        b.rounds = 3;
        b.streams = 4;
        while ((c = getopt(argc, argv, "+r:s:")) > 0) {
                uint32_t value = c == '?' ? 0 : (uint32_t)strtoul(optarg, NULL, 10);

                if (!value || (c == 'r' ? value > ROUNDS_MAX : value > STREAMS_MAX))
                        die("-r 1 to %u, -s 1 to %u", ROUNDS_MAX, STREAMS_MAX);
                *(c == 'r' ? &b.rounds : &b.streams) = value;
        }
        if (argc - optind < 2)
                die("usage: bench-gap [-r ROUNDS] [-s STREAMS] SAMOVARD MODEL [FLAG ...]");
        b.program = argv[optind];
        b.model = argv[optind + 1];
        b.more = argv + optind + 2;
        b.random = 1;
        b.gaps = calloc(SAMPLES_MAX, sizeof(*b.gaps));
        if (!b.gaps)
                die("out of memory");
        for (uint32_t round = 0; round < b.rounds; round++)
                for (uint32_t i = 0; i < SETTINGS; i++)
                        run((i + round) % SETTINGS, round);
        print();
        free(b.ids);
        free(b.gaps);
        return 0;
}
