/*
 * How a long prompt delays the streams that are being served:
 *
 *      bench-gap [-r ROUNDS] [-s STREAMS] SAMOVARD MODEL [FLAG OF SAMOVARD ...]
 *
 * Some streams run.  The gaps between their tokens are measured alternately without a prompt,
 * and while a prompt as long as the context is read.  The bound that --gap-ms promises is the
 * larger of twice the gap alone and --gap-ms, both at their 99th percentile.  The cost is how
 * much slower the prompt is read than alone.
 *
 * Each setting and round has its own daemon, and settings alternate, so that other load on the
 * machine affects all of them.  A daemon has read no prompt before its first one is measured,
 * so the time in which it learns is included.  So is the time to wake the client, which
 * measures the gaps.
 *
 * Other load makes gaps longer as well.  So there is a second figure for each: "ours" is a gap
 * without the time that threads of the daemon waited for a processor in it.  If two wait at
 * once, both times are subtracted, so this figure is a lower bound.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/own-daemon.h"
#include "bench/runqueue-wait.h"

#define STREAMS_MAX 64u
#define ROUNDS_MAX  32u
#define SAMPLES_MAX (1u << 20)
#define PROMPTS     3u  /* one after the other, in each daemon */
#define ALONE_S     0.7 /* before each of them */
#define WARM_S      0.5
#define SETTLED_S   0.02 /* when a prompt's first token has come, its last step is over */
#define SAME_STEP_S 0.0002
#define PROMPT      16u
#define SILENCE_MS  120000

/* 0: prompts take all that decodes leave; the others are bounds. */
static const uint32_t settings[] = { 0, 5, 10, 20, 50, 100 };
#define SETTINGS (sizeof(settings) / sizeof(*settings))

struct gap { /* in ms */
        double whole, ours;
};

struct gaps {
        struct gap *at;
        size_t count;
};

/* Of one round. */
struct spread {
        double half, at_99, most;
};

struct figures {
        struct spread alone, alone_ours, during, during_ours;
        double rate; /* tokens of a prompt a second */
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
        double last[STREAMS_MAX], waited[STREAMS_MAX]; /* s; when a token came, and until then */
        struct gaps alone, during, *into;
        double *values; /* SAMPLES_MAX, to be sorted */
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

/* s; not asked anew for each of the streams that have a token of the same step. */
static double waited(double at)
{
        static double asked, told;

        if (at - asked > SAME_STEP_S) {
                asked = at;
                told = (double)runqueue_wait_ns() / 1e9;
        }
        return told;
}

static void add_gap(double whole, double wait)
{
        struct gap gap = { whole * 1e3, (whole > wait ? whole - wait : 0) * 1e3 };

        if (b.into && b.into->count < SAMPLES_MAX)
                b.into->at[b.into->count++] = gap;
}

static void take_gap(const struct smv_event *event)
{
        double at = now(), wait = waited(at);

        for (uint32_t i = 0; i < b.streams; i++) {
                if (b.stream_ids[i] != event->stream)
                        continue;
                if (event->kind == SMV_EVENT_END) { /* at the context's end: another one */
                        begin_stream(i);
                        return;
                }
                if (b.last[i] != 0)
                        add_gap(at - b.last[i], wait - b.waited[i]);
                b.last[i] = at;
                b.waited[i] = wait;
        }
}

/* Takes events until then, or until this stream has ended. */
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
        runqueue_wait_open(own_daemon_pid());
}

/* Seconds that a prompt as long as the context takes. */
static double read_long(void)
{
        double begin = now();

        listen_until(begin + SILENCE_MS, ask(b.context - 1, 1));
        return now() - begin;
}

static double rate(double seconds)
{
        return PROMPTS * (b.context - 1) / seconds;
}

static void take(struct gaps *into, double seconds)
{
        b.into = into;
        listen_until(now() + seconds, 0);
}

static struct spread spread_of(const struct gaps *gaps, bool ours)
{
        for (size_t i = 0; i < gaps->count; i++)
                b.values[i] = ours ? gaps->at[i].ours : gaps->at[i].whole;
        return (struct spread){
                .half = part(b.values, gaps->count, 0.5),
                .at_99 = part(b.values, gaps->count, 0.99),
                .most = part(b.values, gaps->count, 1),
        };
}

static void run(uint32_t setting, uint32_t round)
{
        struct figures *figures = &b.figures[setting][round];
        double seconds = 0;

        start(settings[setting]);
        for (uint32_t i = 0; i < PROMPTS && !settings[setting]; i++)
                seconds += read_long();
        b.rate_alone[round] = settings[setting] ? b.rate_alone[round] : rate(seconds);
        for (uint32_t i = 0; i < b.streams; i++)
                begin_stream(i);
        b.alone.count = b.during.count = 0;
        take(NULL, WARM_S);
        seconds = 0;
        for (uint32_t i = 0; i < PROMPTS; i++) {
                take(&b.alone, ALONE_S);
                b.into = &b.during;
                seconds += read_long();
                take(NULL, SETTLED_S);
        }
        figures->rate = rate(seconds);
        figures->alone = spread_of(&b.alone, false);
        figures->alone_ours = spread_of(&b.alone, true);
        figures->during = spread_of(&b.during, false);
        figures->during_ours = spread_of(&b.during, true);
        runqueue_wait_close();
        own_daemon_stop();
}

/* Of one figure over the rounds, at that share of them: 0, 0.5 or 1. */
static double over_rounds(const double *first, size_t step, double share)
{
        double values[ROUNDS_MAX];

        for (uint32_t i = 0; i < b.rounds; i++)
                values[i] = *(const double *)((const char *)first + i * step);
        return part(values, b.rounds, share);
}

#define OVER(setting, member, share)                                                               \
        over_rounds(&b.figures[setting][0].member, sizeof(b.figures[setting][0]), share)
#define MEDIAN(setting, member) OVER(setting, member, 0.5)

static double larger(double one, double other)
{
        return one > other ? one : other;
}

static void print_gaps(uint32_t i)
{
        double gap = settings[i];

        printf("| %u%s | %.2f | %.2f, %.2f | %.1f | %.1f (%.1f-%.1f), %.1f (%.1f-%.1f) ",
               settings[i], settings[i] ? "" : " (none)", MEDIAN(i, alone.half),
               MEDIAN(i, alone.at_99), MEDIAN(i, alone_ours.at_99), MEDIAN(i, during.half),
               MEDIAN(i, during.at_99), OVER(i, during.at_99, 0), OVER(i, during.at_99, 1),
               MEDIAN(i, during_ours.at_99), OVER(i, during_ours.at_99, 0),
               OVER(i, during_ours.at_99, 1));
        if (settings[i])
                printf("| %.1f, %.1f ", larger(gap, 2 * MEDIAN(i, alone.at_99)),
                       larger(gap, 2 * MEDIAN(i, alone_ours.at_99)));
        else
                printf("| ");
}

static void print(void)
{
        double alone = over_rounds(b.rate_alone, sizeof(double), 0.5);

        printf("%u streams; %u times a prompt of %u tokens; alone it is read at %.0f tokens/s\n"
               "gaps in ms: medians over %u rounds (least-most)\n\n"
               "| --gap-ms | alone: median | p99, ours | while it is read: median | p99, ours "
               "| bound, of ours | prompt, tokens/s | of alone |\n"
               "|---|---|---|---|---|---|---|---|\n",
               b.streams, PROMPTS, b.context - 1, alone, b.rounds);
        for (uint32_t i = 0; i < SETTINGS; i++) {
                print_gaps(i);
                printf("| %.0f | %.0f %% |\n", MEDIAN(i, rate), 100 * MEDIAN(i, rate) / alone);
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
        b.alone.at = calloc(SAMPLES_MAX, sizeof(*b.alone.at));
        b.during.at = calloc(SAMPLES_MAX, sizeof(*b.during.at));
        b.values = calloc(SAMPLES_MAX, sizeof(*b.values));
        if (!b.alone.at || !b.during.at || !b.values)
                die("out of memory");
        for (uint32_t round = 0; round < b.rounds; round++)
                for (uint32_t i = 0; i < SETTINGS; i++)
                        run((i + round) % SETTINGS, round);
        print();
        free(b.ids);
        free(b.alone.at);
        free(b.during.at);
        free(b.values);
        return 0;
}
