/*
 * fork-demo: forks a story while it is generated, so that it continues in three ways at once.
 *
 * The first way is the story itself, which the fork does not affect; the others are its forks.
 * The daemon is ahead of what this program has read.  So the position of a fork's first event
 * tells where the ways branch.  On a terminal the text is shown more slowly than it comes, so that
 * people can follow it.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/columns.h"

#define WAYS         3u
#define FORK_AFTER   6u /* tokens of the story */
#define TRIES        8u /* a story may end before it is forked, so try again */
#define TICK_MS      40
#define TOKENS_ASKED 120u
#define TEMPERATURE  0.9f
#define MIN_P        0.05f /* among the unlikely tokens of small models are no real words */

/* One way to continue.  The first one begins with the story, the others where they branch. */
struct way {
        uint32_t stream, from; /* from: position of its first token */
        /* All its text; and for each token (uint32_t) the offset where its text ends. */
        struct bytes text, ends;
        uint32_t shown; /* tokens shown */
        bool begun, ended;
        struct smv_event end;
};

struct telling {
        struct cli *cli;
        struct way ways[WAYS];
        uint64_t fork_ns;
        uint64_t copied; /* blocks copied before the fork */
};

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t copied_blocks(struct cli *cli)
{
        const char *json, *blocks, *copied = NULL;

        if (!smv_status(cli->client, &json) && (blocks = strstr(json, "\"blocks\":{")))
                copied = strstr(blocks, "\"copied\":");
        return copied ? strtoull(copied + strlen("\"copied\":"), NULL, 10) : 0;
}

/* ---- reading events ---- */

static uint32_t count_of(const struct way *way)
{
        return (uint32_t)(way->ends.count / sizeof(uint32_t));
}

static int take(struct way *way, const struct smv_event *event)
{
        if (!way->begun)
                way->from = event->kind == SMV_EVENT_END ? event->prompt_tokens : event->position;
        way->begun = true;
        if (event->kind == SMV_EVENT_END) {
                way->ended = true;
                way->end = *event;
                return 0;
        }
        if (bytes_add(&way->text, event->text, event->text_bytes))
                return -ENOMEM;
        for (size_t i = 0; i < event->token_count; i++) {
                uint32_t end = (uint32_t)way->text.count;

                if (bytes_add(&way->ends, &end, sizeof(end)))
                        return -ENOMEM;
        }
        return 0;
}

/* Reads one event, if one comes in time.  0, or an exit status. */
static int hear(struct telling *t, int timeout_ms)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        int r = smv_next(t->cli->client, &event, timeout_ms);

        if (r < 0 && r != -ENODATA)
                return say_failed(t->cli, r);
        for (uint32_t i = 0; r > 0 && i < WAYS; i++) {
                if (t->ways[i].stream != event.stream)
                        continue;
                if (take(&t->ways[i], &event)) {
                        say("out of memory");
                        return CLI_FAILED;
                }
                if (event.code == SMV_LOST) {
                        say("%s", smv_code_text(event.code));
                        return CLI_FAILED;
                }
        }
        return 0;
}

static void forget(struct telling *t)
{
        for (uint32_t i = 0; i < WAYS; i++) {
                if (t->ways[i].stream && !t->ways[i].ended)
                        smv_cancel(t->cli->client, t->ways[i].stream);
                bytes_deinit(&t->ways[i].text);
                bytes_deinit(&t->ways[i].ends);
                t->ways[i] = (struct way){ 0 };
        }
}

/* ---- beginning and forking the story ---- */

enum { ENDED_EARLY = -1 };

static bool has_ended_early(const struct telling *t)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        smv_error(t->cli->client, &problem);
        return problem.code == SMV_NO_STREAM;
}

static int fork_story(struct telling *t)
{
        const struct smv_fork fork = { SMV_SIZE(smv_fork), .count = WAYS - 1 };
        uint32_t streams[WAYS - 1];
        uint64_t before;
        int r;

        t->copied = copied_blocks(t->cli);
        before = now_ns();
        r = smv_fork(t->cli->client, t->ways[0].stream, &fork, streams);
        t->fork_ns = now_ns() - before;
        if (r == -EREMOTEIO && has_ended_early(t))
                return ENDED_EARLY;
        if (r)
                return say_failed(t->cli, r);
        for (uint32_t i = 1; i < WAYS; i++)
                t->ways[i].stream = streams[i - 1];
        return 0;
}

static int begin(struct telling *t)
{
        struct way *story = &t->ways[0];
        int r;

        r = smv_generate(t->cli->client, &t->cli->generate, &story->stream);
        if (r)
                return say_failed(t->cli, r);
        while (!r && !story->ended && count_of(story) < FORK_AFTER)
                r = hear(t, -1);
        if (!r)
                r = story->ended ? ENDED_EARLY : fork_story(t);
        while (!r && !t->ways[1].begun)
                r = hear(t, -1);
        if (!r && t->ways[1].end.code == SMV_NO_STREAM)
                r = ENDED_EARLY;
        return r;
}

/* Tries again, with another seed, if the story ends before the fork. */
static int begin_some(struct telling *t)
{
        int r = ENDED_EARLY;

        for (uint32_t i = 0; r == ENDED_EARLY && i < TRIES; i++) {
                forget(t);
                r = begin(t);
                t->cli->generate.seed += t->cli->generate.set & SMV_SET_SEED ? 1 : 0;
        }
        if (r != ENDED_EARLY)
                return r;
        say("%u stories had ended before they could be forked", TRIES);
        return CLI_FAILED;
}

/* ---- showing the text ---- */

/* Sleeps if `live`, then reads an event if one has come. */
static int tick(struct telling *t, bool live)
{
        const struct timespec pause = { .tv_nsec = TICK_MS * 1000000L };

        if (live)
                nanosleep(&pause, NULL);
        return hear(t, 0);
}

/* Shows the next token of a way, if there is one and its position is before `until`. */
static int show_one(struct columns *columns, uint32_t number, struct way *way, uint32_t until)
{
        const uint32_t *ends = (const uint32_t *)(const void *)way->ends.at;
        uint32_t begin, end;

        if (way->shown == count_of(way) || way->from + way->shown >= until)
                return 0;
        begin = way->shown ? ends[way->shown - 1] : 0;
        end = ends[way->shown++];
        return columns_add(columns, number, way->text.at + begin, end - begin);
}

static int show_trunk(struct telling *t)
{
        struct way *story = &t->ways[0];
        struct columns columns;
        int r;

        columns_open(&columns, 1);
        r = columns_add(&columns, 0, t->cli->generate.prompt, strlen(t->cli->generate.prompt));
        while (!r && story->from + story->shown < t->ways[1].from) {
                r = show_one(&columns, 0, story, t->ways[1].from);
                if (!r)
                        r = tick(t, columns.live);
        }
        return r | columns_close(&columns);
}

static bool is_shown(const struct telling *t)
{
        for (uint32_t i = 0; i < WAYS; i++)
                if (!t->ways[i].ended || t->ways[i].shown < count_of(&t->ways[i]))
                        return false;
        return true;
}

static int show_ways(struct telling *t)
{
        struct columns columns;
        int r;

        columns_open(&columns, WAYS);
        r = columns_fork(&columns);
        while (!r && !is_shown(t)) {
                for (uint32_t i = 0; !r && i < WAYS; i++)
                        r = show_one(&columns, i, &t->ways[i], UINT32_MAX);
                if (!r)
                        r = tick(t, columns.live);
        }
        return r | columns_close(&columns);
}

static void sum_up(struct telling *t)
{
        uint32_t rows = 0, shared = 0;
        const struct way *ways = t->ways;

        for (uint32_t i = 1; i < WAYS; i++) {
                shared += ways[i].end.cached_tokens;
                rows += ways[i].end.prompt_tokens - ways[i].end.cached_tokens;
        }
        printf("\n%u endings in one batch, of %u, %u and %u tokens.\n", WAYS,
               ways[0].end.prompt_tokens + ways[0].end.output_tokens - ways[1].from,
               ways[1].end.output_tokens, ways[2].end.output_tokens);
        printf("Forked behind token %u, in %.2f ms: %u tokens shared, %llu blocks copied,\n"
               "%u rows computed before the forks had tokens of their own.\n",
               ways[1].from, (double)t->fork_ns / 1e6, shared,
               (unsigned long long)(copied_blocks(t->cli) - t->copied), rows);
}

int cli_fork_demo(struct cli *cli)
{
        struct telling t = { .cli = cli };
        int r;

        cli->generate.model = cli->model;
        cli->generate.prompt = cli->input.count ? cli->input.at : "Once upon a time";
        if (!cli->generate.max_tokens)
                cli->generate.max_tokens = TOKENS_ASKED;
        if (cli->generate.temperature == 0 && !(cli->generate.set & SMV_SET_TEMPERATURE))
                cli->generate.temperature = TEMPERATURE;
        if (cli->generate.min_p == 0 && !(cli->generate.set & SMV_SET_MIN_P))
                cli->generate.min_p = MIN_P;
        cli_await_loaded(cli);
        r = begin_some(&t);
        if (!r)
                r = show_trunk(&t);
        if (!r)
                r = show_ways(&t);
        if (!r)
                sum_up(&t);
        forget(&t);
        return r;
}
