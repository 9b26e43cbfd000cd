/*
 * fork-demo: forks a story while it is generated, so that it continues in three ways at once.
 *
 * The first branch is the story itself, which the fork does not affect; the others are its forks.
 * The daemon is ahead of what this program has read.  So the position of a fork's first event
 * says where the branches part.  On a terminal the text is shown more slowly than it comes, so that
 * people can follow it.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/columns.h"
#include "json/plural.h"

#define BRANCHES     FORK_DEMO_BRANCHES
#define FORK_AFTER   6u /* tokens of the story */
#define ATTEMPTS     8u /* a story may end before it is forked, so try again */
#define TICK_MS      40
#define TOKENS_ASKED 120u
#define TEMPERATURE  0.9f
#define MIN_P        0.05f /* among the unlikely tokens of small models are no real words */

/* One continuation.  The first one begins with the story, the others where they branch. */
struct branch {
        uint32_t stream, from; /* from: position of its first token */
        /* All its text; and for each token (uint32_t) the offset where its text ends. */
        struct bytes text, ends;
        uint32_t shown; /* tokens shown */
        bool begun, ended;
        struct smv_event end;
};

struct demo {
        struct cli *cli;
        struct branch branches[BRANCHES];
        uint64_t fork_ns;
        uint64_t copied_before; /* blocks copied before the fork */
};

static uint64_t copied_blocks(struct cli *cli)
{
        const char *json, *blocks, *copied = NULL;

        if (!smv_status(cli->client, &json) && (blocks = strstr(json, "\"blocks\":{")))
                copied = strstr(blocks, "\"copied\":");
        return copied ? strtoull(copied + strlen("\"copied\":"), NULL, 10) : 0;
}

/* ---- reading events ---- */

static uint32_t count_of(const struct branch *branch)
{
        return (uint32_t)(branch->ends.count / sizeof(uint32_t));
}

static int store_event(struct branch *branch, const struct smv_event *event)
{
        if (!branch->begun)
                branch->from =
                        event->kind == SMV_EVENT_END ? event->prompt_tokens : event->position;
        branch->begun = true;
        if (event->kind == SMV_EVENT_END) {
                branch->ended = true;
                branch->end = *event;
                return 0;
        }
        if (bytes_add(&branch->text, event->text, event->text_bytes))
                return -ENOMEM;
        for (size_t i = 0; i < event->token_count; i++) {
                uint32_t end = (uint32_t)branch->text.count;

                if (bytes_add(&branch->ends, &end, sizeof(end)))
                        return -ENOMEM;
        }
        return 0;
}

/* Reads one event, if one comes in time.  0, or an exit status. */
static int read_event(struct demo *demo, int timeout_ms)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        int r = smv_next(demo->cli->client, &event, timeout_ms);

        if (r < 0 && r != -ENODATA)
                return say_failed(demo->cli, r);
        for (uint32_t i = 0; r > 0 && i < BRANCHES; i++) {
                if (demo->branches[i].stream != event.stream)
                        continue;
                if (store_event(&demo->branches[i], &event)) {
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

static void reset(struct demo *demo)
{
        for (uint32_t i = 0; i < BRANCHES; i++) {
                if (demo->branches[i].stream && !demo->branches[i].ended)
                        smv_cancel(demo->cli->client, demo->branches[i].stream);
                bytes_deinit(&demo->branches[i].text);
                bytes_deinit(&demo->branches[i].ends);
                demo->branches[i] = (struct branch){ 0 };
        }
}

/* ---- beginning and forking the story ---- */

enum { ENDED_EARLY = -1 };

static bool has_ended_early(const struct demo *demo)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        smv_error(demo->cli->client, &problem);
        return problem.code == SMV_NO_STREAM;
}

static int fork_story(struct demo *demo)
{
        const struct smv_fork fork = { SMV_SIZE(smv_fork), .count = BRANCHES - 1 };
        uint32_t streams[BRANCHES - 1];
        uint64_t before;
        int r;

        demo->copied_before = copied_blocks(demo->cli);
        before = clock_ns();
        r = smv_fork(demo->cli->client, demo->branches[0].stream, &fork, streams);
        demo->fork_ns = clock_ns() - before;
        if (r == -EREMOTEIO && has_ended_early(demo))
                return ENDED_EARLY;
        if (r)
                return say_failed(demo->cli, r);
        for (uint32_t i = 1; i < BRANCHES; i++)
                demo->branches[i].stream = streams[i - 1];
        return 0;
}

static int begin(struct demo *demo)
{
        struct branch *story = &demo->branches[0];
        int r;

        r = smv_generate(demo->cli->client, &demo->cli->generate, &story->stream);
        if (r)
                return say_failed(demo->cli, r);
        while (!r && !story->ended && count_of(story) < FORK_AFTER)
                r = read_event(demo, -1);
        if (!r)
                r = story->ended ? ENDED_EARLY : fork_story(demo);
        while (!r && !demo->branches[1].begun)
                r = read_event(demo, -1);
        if (!r && demo->branches[1].end.code == SMV_NO_STREAM)
                r = ENDED_EARLY;
        return r;
}

/* Tries again, with another seed, if the story ends before the fork. */
static int begin_until_forked(struct demo *demo)
{
        int r = ENDED_EARLY;

        for (uint32_t i = 0; r == ENDED_EARLY && i < ATTEMPTS; i++) {
                reset(demo);
                r = begin(demo);
                demo->cli->generate.seed += demo->cli->generate.set & SMV_SET_SEED ? 1 : 0;
        }
        if (r != ENDED_EARLY)
                return r;
        say("%u stories ended before they could be forked; try --max-tokens with a larger number",
            ATTEMPTS);
        return CLI_FAILED;
}

/* ---- showing the text ---- */

/* Sleeps if `live`, then reads an event if one has come. */
static int tick(struct demo *demo, bool live)
{
        const struct timespec pause = { .tv_nsec = TICK_MS * 1000000L };

        if (live)
                nanosleep(&pause, NULL);
        return read_event(demo, 0);
}

/* Shows the next token of a branch, if there is one and its position is before `until`. */
static int show_one(struct columns *columns, uint32_t number, struct branch *branch, uint32_t until)
{
        const uint32_t *ends = (const uint32_t *)(const void *)branch->ends.at;
        uint32_t begin, end;

        if (branch->shown == count_of(branch) || branch->from + branch->shown >= until)
                return 0;
        begin = branch->shown ? ends[branch->shown - 1] : 0;
        end = ends[branch->shown++];
        return columns_add(columns, number, branch->text.at + begin, end - begin);
}

static int show_trunk(struct demo *demo)
{
        struct branch *story = &demo->branches[0];
        struct columns columns;
        int r;

        columns_open(&columns, 1);
        r = columns_add(&columns, 0, demo->cli->generate.prompt,
                        strlen(demo->cli->generate.prompt));
        while (!r && story->from + story->shown < demo->branches[1].from) {
                r = show_one(&columns, 0, story, demo->branches[1].from);
                if (!r)
                        r = tick(demo, columns.live);
        }
        return r | columns_close(&columns);
}

static bool all_shown(const struct demo *demo)
{
        for (uint32_t i = 0; i < BRANCHES; i++)
                if (!demo->branches[i].ended ||
                    demo->branches[i].shown < count_of(&demo->branches[i]))
                        return false;
        return true;
}

static int show_branches(struct demo *demo)
{
        struct columns columns;
        int r;

        columns_open(&columns, BRANCHES);
        r = columns_fork(&columns);
        while (!r && !all_shown(demo)) {
                for (uint32_t i = 0; !r && i < BRANCHES; i++)
                        r = show_one(&columns, i, &demo->branches[i], UINT32_MAX);
                if (!r)
                        r = tick(demo, columns.live);
        }
        return r | columns_close(&columns);
}

static void print_summary(struct demo *demo)
{
        uint64_t copied = copied_blocks(demo->cli) - demo->copied_before;
        uint32_t rows = 0, shared = 0;
        const struct branch *branches = demo->branches;

        for (uint32_t i = 1; i < BRANCHES; i++) {
                shared += branches[i].end.cached_tokens;
                rows += branches[i].end.prompt_tokens - branches[i].end.cached_tokens;
        }
        printf("\n%u endings in one batch, of %u, %u and %u token%s.\n", BRANCHES,
               branches[0].end.prompt_tokens + branches[0].end.output_tokens - branches[1].from,
               branches[1].end.output_tokens, branches[2].end.output_tokens,
               plural(branches[2].end.output_tokens));
        printf("Forked behind token %u, in %.2f ms: %u token%s shared, %llu block%s copied,\n"
               "%u row%s computed before the forks had tokens of their own.\n",
               branches[1].from, (double)demo->fork_ns / 1e6, shared, plural(shared),
               (unsigned long long)copied, plural(copied), rows, plural(rows));
}

int cli_fork_demo(struct cli *cli)
{
        struct demo demo = { .cli = cli };
        int r;

        cli->generate.model = cli->model;
        cli->generate.prompt = cli->input.count ? cli->input.at : "Once upon a time";
        if (!cli->generate.max_tokens)
                cli->generate.max_tokens = TOKENS_ASKED;
        if (cli->generate.temperature == 0 && !(cli->generate.set & SMV_SET_TEMPERATURE))
                cli->generate.temperature = TEMPERATURE;
        if (cli->generate.min_p == 0 && !(cli->generate.set & SMV_SET_MIN_P))
                cli->generate.min_p = MIN_P;
        cli_wait_until_loaded(cli);
        r = begin_until_forked(&demo);
        if (!r)
                r = show_trunk(&demo);
        if (!r)
                r = show_branches(&demo);
        if (!r)
                print_summary(&demo);
        reset(&demo);
        return r;
}
