/*
 * --stats: how many requests waited before this one, how much of the prompt was cached, why no
 * more was cached, how often the stream was preempted and what that cost, whether its reasoning was
 * ended, which stop string ended it, and the times.
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json/utf8.h"
#include "json/writer.h"
#include "json/plural.h"

enum { NAME_MAX_BYTES = 200 };

static bool is_text(const char *bytes, size_t count)
{
        size_t length = 0;

        for (size_t at = 0; at < count; at += length)
                if (utf8_next(bytes + at, count - at, &length) < 0)
                        return false;
        return count > 0;
}

/* Names a token: its text in quotes; or its number, if it has none or is part of a character. */
static void name_token(struct cli *cli, uint32_t token, char name[NAME_MAX_BYTES])
{
        const struct smv_piece *piece;
        struct bytes quoted = { 0 };
        struct json_writer json = { .to = &quoted };

        snprintf(name, NAME_MAX_BYTES, "token %u", token);
        if (smv_pieces(cli->client, cli->model, &token, 1, &piece) ||
            !is_text(piece->bytes, piece->count))
                return;
        json_write_text(&json, piece->bytes, piece->count);
        if (!json_write_end(&json) && quoted.count < NAME_MAX_BYTES)
                memcpy(name, quoted.at, quoted.count + 1);
        bytes_deinit(&quoted);
}

static void say_preemptions(const struct smv_event *end)
{
        char full[48] = "", again[48] = "", back[48] = "";

        if (!end->preemptions)
                return;
        if (end->blocks_lost)
                snprintf(full, sizeof(full), ", %u of them because the pool was full",
                         end->blocks_lost);
        if (end->recomputed)
                snprintf(again, sizeof(again), ", %u token%s computed again", end->recomputed,
                         plural(end->recomputed));
        if (end->restored)
                snprintf(back, sizeof(back), ", %u token%s restored", end->restored,
                         plural(end->restored));
        say("pauses: preempted %u time%s%s%s%s", end->preemptions, plural(end->preemptions), full,
            again, back);
}

/* The command that attaches does not know the stop strings, only their order. */
static void say_stop(const struct cli *cli, const struct smv_event *end)
{
        struct bytes quoted = { 0 };
        struct json_writer json = { .to = &quoted };
        const char *text = "";

        if (end->stopped_by != SMV_STOPPED_BY_STRING)
                return;
        if (end->stop_index < cli->generate.stop_count) {
                json_write_raw(&json, ", ");
                json_write_text(&json, cli->generate.stops[end->stop_index],
                                strlen(cli->generate.stops[end->stop_index]));
                text = json_write_end(&json) ? "" : quoted.at;
        }
        say("stop: string %u%s", end->stop_index + 1, text);
        bytes_deinit(&quoted);
}

/* "; by depth 40/52 31/40": of the first token of a guess, of the second, ... */
static const char *describe_depths(const struct smv_event *end, char *text, size_t size)
{
        size_t at = (size_t)snprintf(text, size, "; by depth");

        for (uint32_t i = 0; i < SMV_DRAFT_TOKENS_MAX && end->drafted_by_depth[i]; i++)
                at += (size_t)snprintf(text + at, size - at, " %u/%u",
                                       end->drafts_right_by_depth[i], end->drafted_by_depth[i]);
        /* An older daemon does not say. */
        return end->drafted_by_depth[0] ? text : "";
}

static void say_drafts(const struct smv_event *end)
{
        static const char *const reasons[] = {
                [SMV_DRAFTS_ASKED] = "the client is asked before each token",
                [SMV_DRAFTS_MIROSTAT] = "mirostat learns from each token",
        };
        char depths[16 + SMV_DRAFT_TOKENS_MAX * 24];
        size_t why = end->no_drafts;

        if (end->drafted)
                say("drafts: %u of %u guessed token%s right, in %u step%s%s", end->drafts_right,
                    end->drafted, plural(end->drafted), end->draft_steps, plural(end->draft_steps),
                    describe_depths(end, depths, sizeof(depths)));
        else if (why < sizeof(reasons) / sizeof(*reasons) && reasons[why])
                say("drafts: none, because %s", reasons[why]);
}

static void say_reasoning(const struct smv_event *end)
{
        if (end->parts_flags & SMV_PARTS_LIMIT)
                say("reasoning: ended by --reasoning-max");
}

void cli_say_stats(struct cli *cli, const struct smv_event *end)
{
        char cached[NAME_MAX_BYTES], given[NAME_MAX_BYTES];
        struct smv_accepted accepted = { SMV_SIZE(smv_accepted) };

        smv_accepted(cli->client, &accepted);
        if (cli->command != CLI_ATTACH) /* another command waited for that stream */
                say("queue: %u request%s before this one, about %" PRIu64 " ms to the first token",
                    accepted.queue_position, plural(accepted.queue_position), accepted.wait_ms);
        if (cli->command != CLI_ATTACH)
                say("sampling: temperature %g, top-k %u, top-p %g, min-p %g, seed %" PRIu64,
                    (double)accepted.temperature, accepted.top_k, (double)accepted.top_p,
                    (double)accepted.min_p, accepted.seed);
        if (cli->command != CLI_ATTACH && *accepted.chain)
                say("chain: %s", accepted.chain);
        if (!end->prompt_tokens)
                return; /* the daemon is gone and has counted nothing */
        if (end->diverged_at) {
                name_token(cli, end->diverged_cached_token, cached);
                name_token(cli, end->diverged_prompt_token, given);
                say("cache: %u of %u token%s; position %u was %s, now %s", end->cached_tokens,
                    end->prompt_tokens, plural(end->prompt_tokens), end->diverged_at, cached,
                    given);
        } else {
                say("cache: %u of %u token%s", end->cached_tokens, end->prompt_tokens,
                    plural(end->prompt_tokens));
        }
        say_preemptions(end);
        say_reasoning(end);
        say_drafts(end);
        say_stop(cli, end);
        say("time: %.1f ms waiting, %.1f ms to the first token, %.1f ms to the last of %u",
            (double)end->queued_ns / 1e6, (double)end->prefill_ns / 1e6,
            (double)end->decode_ns / 1e6, end->output_tokens);
}
