/*
 * What drafts bring, measured from the side of a client:
 *
 *      bench-drafts [-r ROUNDS] [-n TOKENS] [--part PART] [--processor-time] SAMOVARD MODEL
 *                   [FLAG OF SAMOVARD ...]
 *
 * Each round starts a daemon for each side: without drafts, with the controller (`auto`), and with
 * a fixed number of guesses.  All sides get the same requests, and must give the same answers.
 * docs/internals/bench.md ("Drafts") explains the parts and the tables.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/draft-streams.h"
#include "bench/other-work.h"
#include "bench/own-daemon.h"

#define ROUNDS_MAX    16u
#define PROMPT        96u
#define FIRST_ID      256u /* ids that every vocabulary has, and none of them ends a text */
#define IDS           700u
#define COPIED        200u /* tokens of an answer that copies */
#define QUOTING       256u /* tokens of a prompt that is quoted */
#define QUOTED_WORDS  128u /* words that may occur in it */
#define STEP_TOKENS   12u  /* of each stream, to time a step */
#define ROWS_MAX      17u
#define FRESH_TOKENS  128u
#define FRESH_STREAMS 32u
#define TRIES         2u   /* of a request that other programs disturb, ... */
#define QUIET         0.05 /* ... because they use more of the processors */
#define FRESH_S       3.0  /* at least so long */
#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))

enum { INJECTED = 1, COPYING = 2, FRESH = 4 };

static const struct side {
        const char *name, *draft, *tokens;
        unsigned parts;
} sides[] = {
        { "off", "off", "8", INJECTED | COPYING | FRESH },
        { "auto", "auto", "8", INJECTED | COPYING | FRESH },
        { "auto, 16", "auto", "16", COPYING },
        { "k = 1", "always", "1", INJECTED },
        { "k = 2", "always", "2", INJECTED },
        { "k = 3", "always", "3", INJECTED },
        { "k = 4", "always", "4", INJECTED },
        { "k = 6", "always", "6", INJECTED },
        { "k = 8", "always", "8", INJECTED | COPYING },
};
enum { OFF, AUTO, SIDES = COUNT(sides) };

static const double rights[] = { 0.3, 0.5, 0.7, 0.8, 0.9, 0.95 };
static const uint32_t step_rows[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 17 };
static const char *const copies[] = { "edits, with a prediction", "quotes its prompt" };
static const uint32_t fresh_streams[] = { 1, 8, 32 };

/* Rounds of one request at one side. */
struct cell {
        double rates[ROUNDS_MAX], steps[ROUNDS_MAX]; /* tokens/s; seconds a token */
        uint32_t rounds;
        double tokens, drafted, right, draft_steps; /* added up */
};

static struct {
        const char *program, *flags[64], *side;
        uint32_t flag_count, rounds, tokens;
        unsigned parts;
        bool processor_time;
        bool chats; /* the model has a template */
        uint32_t prompt[PROMPT], quoting[QUOTING];
        struct answer recorded, copied, quoted;
        double others, most_others; /* other programs' part of the processors, added up; the most */
        uint32_t runs;
        struct cell injected[COUNT(rights)][SIDES], copying[COUNT(copies)][SIDES],
                fresh[COUNT(fresh_streams)][SIDES], rows[ROWS_MAX + 1];
} b = { .rounds = 3, .tokens = 128, .parts = INJECTED | COPYING | FRESH };

/* ---- requests ---- */

static void draw_ids(uint32_t *ids, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                ids[i] = FIRST_ID + dice_below(IDS);
}

static struct smv_generate request(const uint32_t *tokens, uint32_t count, uint32_t max_tokens)
{
        return (struct smv_generate){
                SMV_SIZE(smv_generate),
                .tokens = tokens,
                .token_count = count,
                .max_tokens = max_tokens,
                .ignore_eos = 1,
                .set = SMV_SET_TEMPERATURE | SMV_SET_SEED | SMV_SET_TOP_P,
                .temperature = 1,
                .top_p = 1,
                .seed = 1,
                .allowed_tokens = words_tokens(),
                .allowed_token_count = words_count(),
        };
}

/*
 * A quoting answer without a model that can quote: at this temperature a token depends on the seed
 * and its position, and hardly on the text before it.  So a prompt of the same length that has the
 * answer in it is quoted, but for a few tokens.
 */
static struct smv_generate quoting_request(void)
{
        struct smv_generate options = request(b.quoting, QUOTING, COPIED);

        options.temperature = 100;
        options.allowed_token_count = QUOTED_WORDS;
        return options;
}

/* ---- cells ---- */

static void note(struct cell *cell, const struct course *course, double seconds, uint32_t tokens)
{
        fprintf(stderr, "# %s: %.1f tokens/s\n", b.side, tokens / seconds);
        cell->rates[cell->rounds] = tokens / seconds;
        cell->steps[cell->rounds++] = course->step;
        cell->tokens += tokens;
        cell->drafted += course->drafted;
        cell->right += course->right;
        cell->draft_steps += course->draft_steps;
}

static int by_value(const void *x, const void *y)
{
        double one = *(const double *)x, other = *(const double *)y;

        return (one > other) - (one < other);
}

static double median(const double *values, uint32_t count)
{
        double sorted[ROUNDS_MAX];

        memcpy(sorted, values, count * sizeof(*values));
        qsort(sorted, count, sizeof(*sorted), by_value);
        return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static double rate(const struct cell *cell)
{
        return median(cell->rates, cell->rounds);
}

static void print_spread(const struct cell *cell)
{
        double least = cell->rates[0], most = cell->rates[0];

        for (uint32_t i = 1; i < cell->rounds; i++) {
                least = cell->rates[i] < least ? cell->rates[i] : least;
                most = cell->rates[i] > most ? cell->rates[i] : most;
        }
        printf(" %.1f (%.1f-%.1f) |", rate(cell), least, most);
}

/* The share of the other side's speed, in the same round. */
static double ratio(const struct cell *cell, const struct cell *other)
{
        double ratios[ROUNDS_MAX];

        for (uint32_t i = 0; i < cell->rounds; i++)
                ratios[i] = cell->rates[i] / other->rates[i];
        return median(ratios, cell->rounds);
}

static double steps_of(const struct cell *cell)
{
        return cell->tokens - cell->right;
}

/* T(rows), between two that were measured if need be. */
static double step_seconds(double rows)
{
        uint32_t i = 1;
        double low, high, from, to;

        while (i + 1 < COUNT(step_rows) && step_rows[i] < rows)
                i++;
        from = step_rows[i - 1];
        to = step_rows[i];
        low = median(b.rows[step_rows[i - 1]].steps, b.rows[step_rows[i - 1]].rounds);
        high = median(b.rows[step_rows[i]].steps, b.rows[step_rows[i]].rounds);
        return low + (high - low) * (rows - from) / (to - from);
}

/* E/T of what END reports. */
static double predicted(const struct cell *cell)
{
        double with = cell->draft_steps, without = steps_of(cell) - with;
        double seconds = without * step_seconds(1);

        if (with > 0)
                seconds += with * step_seconds(1 + cell->drafted / with);
        return cell->tokens / seconds;
}

/* ---- parts ---- */

static void must_equal(const struct answer *answer, const struct answer *recorded)
{
        if (answer->count != recorded->count ||
            memcmp(answer->tokens, recorded->tokens, answer->count * sizeof(*answer->tokens)))
                draft_die("drafts have changed an answer");
}

/* The try that was disturbed least. */
static void run_quietly(struct smv_client *client, const struct smv_generate *options,
                        uint32_t count, struct course *ret_course, struct answer *ret_answer)
{
        uint32_t tries = b.processor_time ? 1 : TRIES;
        double least = 2; /* above any share */

        *ret_course = (struct course){ 0 };
        for (uint32_t i = 0; i < tries && least > QUIET; i++) {
                struct other_work work;
                struct course course;
                double share;

                other_work_begin(&work, own_daemon_pid());
                streams_run(client, options, count, &course, ret_answer);
                share = other_work_share(&work);
                if (share < least) {
                        *ret_course = course;
                        least = share;
                }
        }
        b.others += least;
        b.most_others = least > b.most_others ? least : b.most_others;
        b.runs++;
}

/* One stream; counts from its first token on. */
static void measure_one(struct smv_client *client, const struct smv_generate *options,
                        const struct answer *recorded, struct cell *cell)
{
        static struct answer answer;
        struct course course;

        run_quietly(client, options, 1, &course, &answer);
        must_equal(&answer, recorded);
        note(cell, &course, course.decode, course.tokens - 1);
}

static void measure_injected(struct smv_client *client, uint32_t side)
{
        struct smv_generate options = request(b.prompt, PROMPT, b.tokens);
        static struct answer spoilt;

        for (uint32_t i = 0; i < COUNT(rights); i++) {
                dice_begin(i);
                answer_spoil(&b.recorded, 1 - rights[i], &spoilt);
                options.prediction = words_text(client, &spoilt);
                measure_one(client, &options, &b.recorded, &b.injected[i][side]);
        }
}

/* The streams continue one prompt, as the rows of a draft do. */
static void measure_steps(struct smv_client *client)
{
        for (uint32_t i = 0; i < COUNT(step_rows); i++) {
                struct smv_generate options = request(b.prompt, PROMPT, STEP_TOKENS);
                struct course course;

                options.n = step_rows[i];
                run_quietly(client, &options, 1, &course, NULL);
                note(&b.rows[step_rows[i]], &course, course.seconds, course.tokens);
        }
}

static void measure_copying(struct smv_client *client, uint32_t side)
{
        struct smv_generate options = request(b.prompt, PROMPT, COPIED);
        static struct answer edited;

        dice_begin(1);
        answer_edit(&b.copied, &edited);
        options.prediction = words_text(client, &edited);
        measure_one(client, &options, &b.copied, &b.copying[0][side]);
        options = quoting_request();
        measure_one(client, &options, &b.quoted, &b.copying[1][side]);
}

static const char *const subjects[] = { "rain",    "bread", "a river",  "iron",
                                        "a clock", "salt",  "the moon", "a bridge" };
static const char *const questions[] = {
        "What is %s?",
        "Tell me something about %s that I may not know.",
        "Write a short story about %s.",
        "How would you explain %s to a child?",
};

/* Chat, or random tokens for a model without a template. */
static void measure_fresh_streams(struct smv_client *client, uint32_t count, struct cell *cell)
{
        static struct smv_generate options[FRESH_STREAMS];
        static struct smv_message messages[FRESH_STREAMS];
        static char texts[FRESH_STREAMS][96];
        static uint32_t ids[FRESH_STREAMS][16];
        uint32_t at_once = b.chats ? FRESH_STREAMS : count > 1 ? count : 2;
        struct course course, all = { 0 };

        dice_begin(2);
        for (uint32_t i = 0; i < at_once; i++) {
                options[i] = request(ids[i], COUNT(ids[i]), FRESH_TOKENS);
                options[i].allowed_token_count = 0;
                options[i].seed = i + 1;
                draw_ids(ids[i], COUNT(ids[i]));
                if (!b.chats)
                        continue;
                snprintf(texts[i], sizeof(texts[i]), questions[i / COUNT(subjects)],
                         subjects[i % COUNT(subjects)]);
                messages[i] = (struct smv_message){ "user", texts[i], strlen(texts[i]) };
                options[i].tokens = NULL;
                options[i].token_count = 0;
                options[i].messages = &messages[i];
                options[i].message_count = 1;
                options[i].ignore_eos = 0;
        }
        for (uint32_t i = 0; i < at_once || all.seconds < FRESH_S; i += count) {
                run_quietly(client, options + i % at_once, count, &course, NULL);
                all.seconds += b.chats ? course.seconds : course.decode;
                all.tokens += course.tokens - (b.chats ? 0 : count);
                all.drafted += course.drafted;
                all.right += course.right;
                all.draft_steps += course.draft_steps;
        }
        note(cell, &all, all.seconds, all.tokens);
}

/* ---- rounds ---- */

/* The page cache, the allocator, and the controller, which learns how long steps take. */
static void warm_up(struct smv_client *client)
{
        struct smv_generate options = request(b.prompt, PROMPT, b.tokens);
        struct course course;

        if (!b.recorded.count)
                return;
        options.prediction = words_text(client, &b.recorded);
        streams_run(client, &options, 1, &course, NULL);
}

static struct smv_client *start(const struct side *side)
{
        const char **end = b.flags + b.flag_count;

        /* Without earlier answers: each round asks the same. */
        memcpy(end,
               (const char *[]){ "--draft", side->draft, "--draft-tokens", side->tokens,
                                 "--draft-pool", "0", NULL },
               7 * sizeof(*end));
        return draft_client(b.program, b.flags);
}

static void record(void)
{
        struct smv_client *client = start(&sides[OFF]);
        struct smv_generate options;
        struct smv_message message = { "user", "?", 1 };
        struct course course;
        const char *text;
        size_t bytes;

        words_find(client);
        dice_begin(3);
        draw_ids(b.prompt, PROMPT);
        draw_ids(b.quoting, QUOTING);
        options = request(NULL, 0, 0);
        options.messages = &message;
        options.message_count = 1;
        b.chats = !smv_template(client, &options, &text, &bytes, NULL, NULL);
        options = request(b.prompt, PROMPT, b.tokens);
        streams_run(client, &options, 1, &course, &b.recorded);
        if (b.parts & COPYING) {
                options.max_tokens = COPIED;
                streams_run(client, &options, 1, &course, &b.copied);
                options = quoting_request();
                streams_run(client, &options, 1, &course, &b.quoted);
                memcpy(b.quoting + 32, b.quoted.tokens, COPIED * sizeof(*b.quoting));
                streams_run(client, &options, 1, &course, &b.quoted);
        }
        own_daemon_stop();
}

static void measure(uint32_t side)
{
        unsigned parts = b.parts & sides[side].parts;
        struct smv_client *client;

        if (!parts)
                return;
        b.side = sides[side].name;
        client = start(&sides[side]);
        warm_up(client);
        if (parts & INJECTED && side != OFF)
                measure_injected(client, side);
        if (parts & INJECTED && side == OFF) {
                struct smv_generate options = request(b.prompt, PROMPT, b.tokens);

                measure_one(client, &options, &b.recorded, &b.injected[0][OFF]);
                measure_steps(client);
        }
        if (parts & COPYING)
                measure_copying(client, side);
        for (uint32_t i = 0; parts & FRESH && i < COUNT(fresh_streams); i++)
                measure_fresh_streams(client, fresh_streams[i], &b.fresh[i][side]);
        own_daemon_stop();
}

/* ---- report ---- */

static void print_guesses(const struct cell *cell)
{
        printf(" %.0f | %.0f | %.2f |", cell->drafted / cell->rounds, cell->right / cell->rounds,
               cell->tokens / steps_of(cell));
}

static void print_steps(void)
{
        printf("\nms of a step, and its tokens/s if each row brings one\n\n| rows |");
        for (uint32_t i = 0; i < COUNT(step_rows); i++)
                printf(" %u |", step_rows[i]);
        printf("\n|---|");
        for (uint32_t i = 0; i < COUNT(step_rows); i++)
                printf("---|");
        printf("\n| ms |");
        for (uint32_t i = 0; i < COUNT(step_rows); i++)
                printf(" %.2f |", step_seconds(step_rows[i]) * 1e3);
        printf("\n| tokens/s |");
        for (uint32_t i = 0; i < COUNT(step_rows); i++)
                printf(" %.0f |", step_rows[i] / step_seconds(step_rows[i]));
        printf("\n");
}

static void print_injected(void)
{
        const struct cell *off = &b.injected[0][OFF];

        print_steps();
        printf("\n| a | side | tokens/s, median (least-most of rounds) | of off | guesses | right "
               "| tokens a step | predicted tokens/s | measured / predicted |\n"
               "|---|---|---|---|---|---|---|---|---|\n| | off |");
        print_spread(off);
        printf(" 1 | | | 1 | %.1f | %.2f |\n", predicted(off), rate(off) / predicted(off));
        for (uint32_t i = 0; i < COUNT(rights); i++) {
                for (uint32_t side = AUTO; side < SIDES; side++) {
                        const struct cell *cell = &b.injected[i][side];

                        if (!cell->rounds)
                                continue;
                        printf("| %g | %s |", rights[i], sides[side].name);
                        print_spread(cell);
                        printf(" %.2f |", ratio(cell, off));
                        print_guesses(cell);
                        printf(" %.1f | %.2f |\n", predicted(cell), rate(cell) / predicted(cell));
                }
        }
        printf("\n| a | best fixed | of off | auto, of off | auto / best fixed |\n|---|---|---|---|"
               "---|\n");
        for (uint32_t i = 0; i < COUNT(rights); i++) {
                uint32_t best = OFF;
                const struct cell *cell = off;

                for (uint32_t side = AUTO + 1; side < SIDES; side++) {
                        const struct cell *other = &b.injected[i][side];

                        if (!other->rounds || rate(other) <= rate(cell))
                                continue;
                        best = side;
                        cell = other;
                }
                printf("| %g | %s | %.2f | %.2f | %.2f |\n", rights[i], sides[best].name,
                       ratio(cell, off), ratio(&b.injected[i][AUTO], off),
                       ratio(&b.injected[i][AUTO], cell));
        }
}

static void print_cells(const char *name, const struct cell *cells)
{
        for (uint32_t side = 0; side < SIDES; side++) {
                if (!cells[side].rounds)
                        continue;
                printf("| %s | %s |", name, sides[side].name);
                print_spread(&cells[side]);
                printf(" %.2f |", ratio(&cells[side], &cells[OFF]));
                print_guesses(&cells[side]);
                printf("\n");
        }
}

static void print_heading(const char *what)
{
        printf("\n| %s | side | tokens/s, median (least-most of rounds) | of off | guesses | right "
               "| tokens a step |\n|---|---|---|---|---|---|---|\n",
               what);
}

static void print_report(void)
{
        char name[48];

        printf("\nOther programs used %.1f %% of the processors on average, %.1f %% at most.\n",
               100 * b.others / b.runs, 100 * b.most_others);
        if (b.parts & INJECTED)
                print_injected();
        if (b.parts & COPYING) {
                print_heading("copying");
                for (uint32_t i = 0; i < COUNT(copies); i++)
                        print_cells(copies[i], b.copying[i]);
        }
        if (!(b.parts & FRESH))
                return;
        print_heading("nothing to guess");
        for (uint32_t i = 0; i < COUNT(fresh_streams); i++) {
                snprintf(name, sizeof(name), "%s, streams: %u", b.chats ? "chat" : "random tokens",
                         fresh_streams[i]);
                print_cells(name, b.fresh[i]);
        }
}

/* ---- the program ---- */

static int part_of(const char *name)
{
        return !strcmp(name, "injected")  ? INJECTED
               : !strcmp(name, "copying") ? COPYING
               : !strcmp(name, "fresh")   ? FRESH
                                          : -1;
}

static int parse(int argc, char **argv)
{
        static const struct option options[] = { { "part", required_argument, NULL, 'p' },
                                                 { "processor-time", no_argument, NULL, 't' },
                                                 { 0 } };
        int option;

        while ((option = getopt_long(argc, argv, "+n:r:", options, NULL)) != -1) {
                uint32_t n = (uint32_t)strtoul(optarg ? optarg : "", NULL, 10);

                if (option == 'p' && part_of(optarg) > 0)
                        b.parts = (unsigned)part_of(optarg);
                else if (option == 't')
                        b.processor_time = true;
                else if (option == 'n' && n >= 16 && n <= ANSWER_MAX)
                        b.tokens = n;
                else if (option == 'r' && n >= 1 && n <= ROUNDS_MAX)
                        b.rounds = n;
                else
                        return -1;
        }
        return argc - optind >= 2 && argc - optind < 40 ? 0 : -1;
}

int main(int argc, char **argv)
{
        static const char *const first[] = { "--ctx", "1024", "--max-seqs", "32", "--model" };

        if (parse(argc, argv)) {
                fputs("usage: bench-drafts [-r ROUNDS] [-n TOKENS] [--part injected|copying|fresh] "
                      "[--processor-time] SAMOVARD MODEL [FLAG ...]\n",
                      stderr);
                return 2;
        }
        if (b.processor_time)
                draft_count_processor_time();
        b.program = argv[optind];
        memcpy(b.flags, first, sizeof(first));
        b.flag_count = COUNT(first);
        for (int i = optind + 1; i < argc; i++)
                b.flags[b.flag_count++] = argv[i];
        record();
        for (uint32_t round = 0; round < b.rounds; round++) {
                for (uint32_t i = 0; i < SIDES; i++)
                        measure((i + round) % SIDES);
                fprintf(stderr, "# round %u of %u is over; others use %.1f %% of the processors\n",
                        round + 1, b.rounds, 100 * b.others / b.runs);
        }
        print_report();
        return 0;
}
