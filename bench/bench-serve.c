/*
 * Eight clients at once, measured from their side:
 *
 *      bench-serve [-r ROUNDS] SAMOVARD MODEL [FLAG OF SAMOVARD ...]
 *
 * A ninth client comes and goes while the eight are being served.
 *
 * The daemon is started by the program, with eight connections.  Prompts are token ids drawn at
 * random, so none is cached unless caching is measured.  contrib/bench/cpu runs the same
 * requests on another server, and takes the rows by their names.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/own-daemon.h"
#include "bench/table.h"

#define CLIENTS    8u
#define SHARED     2048u
#define PROMPT_MAX (SHARED + 128)
#define FIRST_ID   256u /* ids that every vocabulary has, and none of them ends a text */
#define IDS        700u
#define SILENCE_MS 600000
#define VISITS     100u  /* of the ninth */
#define LASTING    2000u /* tokens: more than come meanwhile */

struct course { /* of one client in a wave, in seconds after the wave began */
        double first, last;
        uint32_t stream, tokens;
        bool ended;
};

struct wave {
        uint32_t clients, shared, prompt, tokens; /* prompt: without the shared tokens */
        const char *constraint;                   /* it never lets an answer end; or NULL */
        enum smv_ask asks;                        /* all tokens are legal, and taken as drawn */
        uint32_t row_top;
        int whole_row;
        double seconds; /* all of it */
        struct course courses[CLIENTS];
};

static struct {
        struct smv_client *clients[CLIENTS];
        uint32_t shared[SHARED];
        uint64_t dice;
        double began;
        float largest; /* of all logits that were looked at */
} b;

static void die(const char *what)
{
        fprintf(stderr, "bench-serve: %s\n", what);
        own_daemon_stop();
        exit(1);
}

static double now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void draw(uint32_t *ids, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                b.dice = b.dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                ids[i] = FIRST_ID + (uint32_t)(b.dice >> 33) % IDS;
        }
}

/* ---- waves ---- */

static void ask(struct wave *w, uint32_t client)
{
        uint32_t ids[PROMPT_MAX];
        const struct smv_generate options = {
                SMV_SIZE(smv_generate),
                .tokens = ids,
                .token_count = w->shared + w->prompt,
                .max_tokens = w->tokens,
                .ignore_eos = !w->constraint,
                .set = SMV_SET_TEMPERATURE,
                .constraint = w->constraint,
                .ask = w->asks,
                .row_top = w->row_top,
                .whole_row = w->whole_row,
        };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        memcpy(ids, b.shared, w->shared * sizeof(*ids));
        draw(ids + w->shared, w->prompt);
        if (!smv_generate(b.clients[client], &options, &w->courses[client].stream))
                return;
        smv_error(b.clients[client], &problem);
        die(problem.message);
}

/* With whole rows the client looks at each logit. */
static void answer(const struct wave *w, uint32_t client, const struct smv_event *question)
{
        uint32_t stream = w->courses[client].stream;
        int r;

        for (size_t i = 0; question->row && i < question->row->logit_count; i++)
                b.largest =
                        question->row->logits[i] > b.largest ? question->row->logits[i] : b.largest;
        r = w->asks == SMV_ASK_MASK
                    ? smv_answer_mask(b.clients[client], stream, NULL, 0)
                    : smv_answer_token(b.clients[client], stream, SMV_TOKEN_AS_DRAWN);
        if (r)
                die("an answer is refused");
}

/* All that has come for it. */
static void take(struct wave *w, uint32_t client)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct course *c = &w->courses[client];
        int r;

        while (!c->ended && (r = smv_next(b.clients[client], &event, 0))) {
                if (r < 0)
                        die(strerror(-r));
                if (event.kind == SMV_EVENT_END) {
                        if (event.reason != SMV_END_LENGTH && event.reason != SMV_END_CANCELLED)
                                die(smv_reason_name(event.reason));
                        c->ended = true;
                } else if (event.kind == SMV_EVENT_ASK) {
                        answer(w, client, &event);
                } else {
                        c->last = now() - b.began;
                        if (!c->tokens)
                                c->first = c->last;
                        c->tokens += (uint32_t)event.token_count;
                }
        }
}

static struct smv_client *reach(void)
{
        char why[256] = "";
        const struct smv_connect options = {
                SMV_SIZE(smv_connect), .socket = own_daemon_socket(), .any_uid = 1,
                .message = why,        .message_bytes = sizeof(why),  .ask_slots = 1,
                .whole_rows = 1
        };
        struct smv_client *client;

        if (smv_connect(&options, &client))
                die(why);
        return client;
}

static void begin(struct wave *w)
{
        memset(w->courses, 0, sizeof(w->courses));
        b.began = now();
        for (uint32_t i = 0; i < w->clients; i++)
                ask(w, i);
}

/* Waits until each stream has this many tokens, or its END. */
static void wait_for(struct wave *w, uint32_t tokens)
{
        struct pollfd fds[CLIENTS];
        uint32_t left = w->clients;

        while (left) {
                left = 0;
                for (uint32_t i = 0; i < w->clients; i++) {
                        const struct course *c = &w->courses[i];
                        bool waits;

                        take(w, i);
                        waits = !c->ended && c->tokens < tokens;
                        left += waits;
                        fds[i] = (struct pollfd){
                                .fd = waits ? smv_fd(b.clients[i]) : -1,
                                .events = POLLIN,
                        };
                }
                if (left && poll(fds, w->clients, SILENCE_MS) <= 0)
                        die("nothing comes");
        }
}

static void run(struct wave *w)
{
        begin(w);
        wait_for(w, UINT32_MAX);
        w->seconds = now() - b.began;
}

/* ---- figures ---- */

static int by_first(const void *x, const void *y)
{
        double one = ((const struct course *)x)->first, other = ((const struct course *)y)->first;

        return (one > other) - (one < other);
}

static void tell_first_tokens(struct wave *w, const char *first, const char *median,
                              const char *last)
{
        static const char group[] = "ms";
        const struct course *by_turn = w->courses;

        qsort(w->courses, w->clients, sizeof(*w->courses), by_first);
        if (first)
                table_add_one(group, first, "", by_turn->first * 1e3);
        table_add_one(group, median, "", by_turn[w->clients / 2].first * 1e3);
        if (last)
                table_add_one(group, last, "", by_turn[w->clients - 1].first * 1e3);
}

/* How long a running stream takes to end once it is cancelled; it ends between two steps. */
static double cancel_one(struct smv_client *client)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_generate options = {
                SMV_SIZE(smv_generate), .token_count = 1,           .max_tokens = LASTING,
                .ignore_eos = 1,        .set = SMV_SET_TEMPERATURE,
        };
        double asked = 0;
        uint32_t id, stream;

        draw(&id, 1);
        options.tokens = &id;
        if (smv_generate(client, &options, &stream))
                die("the ninth is refused");
        do {
                if (smv_next(client, &event, SILENCE_MS) != 1)
                        die("nothing comes");
                if (!asked && event.kind == SMV_EVENT_TOKENS) {
                        asked = now();
                        smv_cancel(client, stream);
                }
        } while (event.kind != SMV_EVENT_END);
        return now() - asked;
}

static int by_size(const void *x, const void *y)
{
        double one = *(const double *)x, other = *(const double *)y;

        return (one > other) - (one < other);
}

static void tell_visits(double *seconds, uint32_t count, const char *median, const char *late)
{
        static const char group[] = "a ninth, while eight streams run, ms";

        qsort(seconds, count, sizeof(*seconds), by_size);
        table_add_one(group, median, "", seconds[count / 2] * 1e3);
        table_add_one(group, late, "", seconds[count * 99 / 100] * 1e3);
}

/* The loop and its wakers beside an engine that has every core. */
static void measure_visits(void)
{
        struct wave busy = { .clients = CLIENTS, .prompt = 16, .tokens = LASTING };
        double connects[VISITS], cancels[VISITS], began;
        struct smv_client *ninth;
        uint32_t count = 0;

        begin(&busy);
        wait_for(&busy, 1);
        while (count < VISITS && !busy.courses[0].ended) {
                began = now();
                ninth = reach();
                connects[count] = now() - began;
                cancels[count++] = cancel_one(ninth);
                smv_close(ninth);
                take(&busy, 0);
        }
        for (uint32_t i = 0; i < CLIENTS; i++)
                smv_cancel(b.clients[i], busy.courses[i].stream);
        wait_for(&busy, UINT32_MAX);
        tell_visits(connects, count, "connect", "connect, p99");
        tell_visits(cancels, count, "cancel", "cancel, p99");
}

/* Tokens a second of all streams together, between the first token of the last one and the END. */
static double rate_of(const struct wave *w)
{
        double first = 0, last = 0;
        uint32_t tokens = 0;

        for (uint32_t i = 0; i < w->clients; i++) {
                first = w->courses[i].first > first ? w->courses[i].first : first;
                last = w->courses[i].last > last ? w->courses[i].last : last;
                tokens += w->courses[i].tokens - 1;
        }
        return tokens / (last - first);
}

/* What masks cost: the same streams without and with a constraint, which is known by then. */
static void measure_constrained(void)
{
        static const char schema[] =
                "{\"schema\":{\"type\":\"array\",\"minItems\":1000000,\"items\":{\"type\":"
                "\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":20},"
                "\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":150},\"kind\":{"
                "\"enum\":[\"cat\",\"dog\",\"bird\"]}},\"required\":[\"name\",\"age\","
                "\"kind\"],\"additionalProperties\":false}}}";
        struct wave loose = { .clients = CLIENTS, .prompt = 16, .tokens = 128 }, bound = loose;

        bound.constraint = schema;
        run(&bound);
        run(&loose);
        run(&bound);
        table_add_one("tokens/s", "eight streams, free", "", rate_of(&loose));
        table_add_one("tokens/s", "eight streams, constrained", "", rate_of(&bound));
        table_add_one("percent", "constrained, of free", "",
                      100 * rate_of(&bound) / rate_of(&loose));
}

/* What questions cost: the same streams, free and asked. */
static void measure_asked(uint32_t clients, const char *free_row)
{
        static const struct {
                const char *row;
                enum smv_ask asks;
                uint32_t row_top;
                int whole_row;
        } kinds[] = {
                { "shows 20 tokens", SMV_ASK_NOTHING, 20, 0 },
                { "shows 256 tokens", SMV_ASK_NOTHING, 256, 0 },
                { "asks for masks", SMV_ASK_MASK, 0, 0 },
                { "asks for tokens", SMV_ASK_TOKEN, 20, 0 },
                { "asks for tokens, shows whole rows", SMV_ASK_TOKEN, 0, 1 },
        };
        struct wave loose = { .clients = clients, .prompt = 16, .tokens = 128 };
        static char rows[2][sizeof(kinds) / sizeof(*kinds)][96]; /* the table keeps them */
        double rate;

        run(&loose);
        rate = rate_of(&loose);
        table_add_one("tokens/s", free_row, "", rate);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
                struct wave asked = loose;
                char *row = rows[clients > 1][i];

                if (kinds[i].whole_row && clients > 1)
                        continue; /* the daemon shows those of four streams */
                asked.asks = kinds[i].asks;
                asked.row_top = kinds[i].row_top;
                asked.whole_row = kinds[i].whole_row;
                run(&asked);
                snprintf(row, sizeof(rows[0][0]), "%s %s, of free", free_row, kinds[i].row);
                table_add_one("percent", row, "", 100 * rate_of(&asked) / rate);
        }
}

static void measure(void)
{
        static const char rate[] = "tokens/s";
        struct wave one = { .clients = 1, .prompt = 128, .tokens = 64 }, eight = one,
                    first = { .clients = 1, .shared = SHARED, .prompt = 16, .tokens = 16 },
                    later = first;
        const struct course *c = one.courses;

        run(&one);
        table_add_one(rate, "one stream", "", (c->tokens - 1) / (c->last - c->first));
        tell_first_tokens(&one, NULL, "one stream, first token", NULL);
        eight.clients = CLIENTS;
        run(&eight);
        table_add_one(rate, "eight streams, over all", "", CLIENTS * eight.tokens / eight.seconds);
        tell_first_tokens(&eight, "eight streams, the first first token",
                          "eight streams, first token", "eight streams, the last first token");
        draw(b.shared, SHARED);
        run(&first);
        tell_first_tokens(&first, NULL, "2048 to be shared, first token", NULL);
        later.clients = CLIENTS;
        run(&later);
        tell_first_tokens(&later, NULL, "2048 shared by eight, first token",
                          "2048 shared by eight, the last first token");
        later.clients = 1;
        run(&later);
        tell_first_tokens(&later, NULL, "2048 shared once more, first token", NULL);
        measure_visits();
        measure_constrained();
        measure_asked(1, "one stream");
        measure_asked(CLIENTS, "eight streams");
}

int main(int argc, char **argv)
{
        const char *flags[64] = { "--model", NULL };
        struct wave warm = { .clients = CLIENTS, .prompt = 16, .tokens = 8 };
        uint32_t rounds = 3, count = 2;
        struct smv_client *first; /* the daemon's own; it is closed with it */
        char why[256];
        int option;

        while ((option = getopt(argc, argv, "+r:")) == 'r' && atoi(optarg) > 0)
                rounds = (uint32_t)atoi(optarg);
        if (option != -1 || optind + 2 > argc || argc - optind > 60) {
                fputs("usage: bench-serve [-r ROUNDS] SAMOVARD MODEL [FLAG ...]\n", stderr);
                return 2;
        }
        flags[1] = argv[optind + 1];
        for (int i = optind + 2; i < argc; i++)
                flags[count++] = argv[i];
        if (own_daemon_start(argv[optind], flags, &first, why, sizeof(why)))
                die(why);
        for (uint32_t i = 0; i < CLIENTS; i++)
                b.clients[i] = reach();
        run(&warm);
        for (uint32_t i = 0; i < rounds; i++)
                measure();
        table_print();
        for (uint32_t i = 0; i < CLIENTS; i++)
                smv_close(b.clients[i]);
        own_daemon_stop();
        return 0;
}
