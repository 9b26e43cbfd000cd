#include "cli/chat/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/chat/settings.h"
#include "cli/chat/state.h"
#include "cli/cli.h"
#include "json/plural.h"
#include "json/reader.h"

#define NODES_MAX 1000000u

static void print(const char *label, const char *text)
{
        note("%-12s %s", label, text);
}

static void show_model(const struct chat *chat)
{
        const struct smv_model *model = &chat->link.model;
        char text[256];

        if (!chat->cli->client) {
                print("daemon", "not connected; the next question connects");
                return;
        }
        snprintf(text, sizeof(text), "%.80s%s%.40s%s%.40s", model->name,
                 *model->architecture ? ", " : "", model->architecture,
                 *model->quantisation ? ", " : "", model->quantisation);
        print("model", text);
        snprintf(text, sizeof(text), "%u tokens", model->context);
        print("context", text);
        print("daemon", *chat->link.place ? chat->link.place : "a private samovard");
}

/* The text of a message goes through the screen: it may be a model's, and longer than a note. */
static void print_message(const struct message *message)
{
        struct screen screen;

        screen_open(&screen, STDERR_FILENO);
        screen_text(&screen, message_role_name(message->role),
                    strlen(message_role_name(message->role)));
        screen_text(&screen, ": ", 2);
        screen_text(&screen, message->text.at, message->text.count);
        screen_text(&screen, "\n", 1);
}

void facts_print_turns(const struct chat *chat, size_t count)
{
        const struct branch *branch = session_branch(&chat->session);
        size_t turns = branch_turns(branch);

        for (size_t i = branch_turn(branch, turns > count ? turns - count : 0); i < branch->count;
             i++)
                print_message(&branch->messages[i]);
}

void facts_print_tools(const struct branch *branch)
{
        struct json_document *json = NULL;
        char why[128];

        if (!branch->tools.count ||
            json_parse(branch->tools.at, branch->tools.count, NODES_MAX, &json, why, sizeof(why)))
                return;
        for (uint32_t node = json_first(json, 0); node != JSON_NONE; node = json_next(json, node)) {
                uint32_t function = json_member(json, node, "function");
                uint32_t tool = function == JSON_NONE ? node : function;
                const char *name = json_string(json, json_member(json, tool, "name"), NULL);
                const char *what = json_string(json, json_member(json, tool, "description"), NULL);

                note("%-12s %s%s%s", "tool", name ? name : "?", what ? ": " : "", what ? what : "");
        }
        json_free(json);
}

void facts_show(struct chat *chat, char *arguments)
{
        const struct branch *branch = session_branch(&chat->session);
        const struct message *system = branch_system(branch);
        size_t turns = branch_turns(branch);
        char text[256], *end = arguments;
        unsigned long count = strtoul(arguments, &end, 10);

        if (*arguments && (*end || !count)) {
                note("/show %.40s: it may be a number of turns, from 1 on.", arguments);
                return;
        }
        if (count) {
                facts_print_turns(chat, count);
                return;
        }
        show_model(chat);
        snprintf(text, sizeof(text), "%s, %zu turn%s", branch->name, turns, plural(turns));
        print("branch", text);
        if (system)
                print("system", system->text.at);
        facts_print_tools(branch);
        settings_print_changed(chat);
}

struct span {
        char text[24];
};

static struct span span(uint64_t ns)
{
        struct span span;

        snprintf(span.text, sizeof(span.text), ns < 1000000000 ? "%.1f ms" : "%.2f s",
                 (double)ns / (ns < 1000000000 ? 1e6 : 1e9));
        return span;
}

/* Tokens a second; 0: there is nothing to divide. */
static double rate(uint32_t tokens, uint64_t ns)
{
        return ns ? (double)tokens * 1e9 / (double)ns : 0;
}

void facts_line(const struct chat *chat)
{
        const struct smv_event *end = &chat->end;

        note("[%u token%s, %.1f/s; cached %u of %u; context %zu of %u]", end->output_tokens,
             plural(end->output_tokens), rate(end->output_tokens, end->decode_ns),
             end->cached_tokens, end->prompt_tokens, session_branch(&chat->session)->length,
             chat->link.model.context);
}

static void show_answer(const struct chat *chat)
{
        const struct smv_event *end = &chat->end;
        uint32_t read = end->prompt_tokens - end->cached_tokens;
        char text[256];

        snprintf(text, sizeof(text), "%u token%s: cached %u, read %u in %s (%.0f/s)",
                 end->prompt_tokens, plural(end->prompt_tokens), end->cached_tokens, read,
                 span(end->prefill_ns).text, rate(read, end->prefill_ns));
        print("prompt", text);
        snprintf(text, sizeof(text), "%u token%s in %s (%.1f/s)%s", end->output_tokens,
                 plural(end->output_tokens), span(end->decode_ns).text,
                 rate(end->output_tokens, end->decode_ns),
                 end->reasoning_tokens ? ", reasoning among them" : "");
        print("answer", text);
        snprintf(text, sizeof(text), "%u request%s before this one, %s",
                 chat->accepted.queue_position, plural(chat->accepted.queue_position),
                 span(end->queued_ns).text);
        print("queue", text);
        snprintf(text, sizeof(text), "temperature %g, top-k %u, top-p %g, min-p %g",
                 (double)chat->accepted.temperature, chat->accepted.top_k,
                 (double)chat->accepted.top_p, (double)chat->accepted.min_p);
        print("sampling", text);
        snprintf(text, sizeof(text), "%llu", (unsigned long long)chat->accepted.seed);
        print("seed", text);
}

void facts_stats(struct chat *chat, char *arguments)
{
        const struct branch *branch = session_branch(&chat->session);
        const struct session *session = &chat->session;
        uint32_t context = chat->link.model.context;
        char text[256];

        (void)arguments;
        if (!chat->end.reason) {
                print("answer", "none yet");
        } else {
                show_answer(chat);
        }
        if (branch->handle && context)
                snprintf(text, sizeof(text), "%zu of %u tokens (%.0f %%)", branch->length, context,
                         100.0 * (double)branch->length / context);
        else
                snprintf(text, sizeof(text), "the next question opens a handle");
        print("context", text);
        snprintf(text, sizeof(text), "opened %u time%s, %u turn%s appended; %u connection%s",
                 session->opened, plural(session->opened), session->appended,
                 plural(session->appended), chat->link.connections, plural(chat->link.connections));
        print("handle", text);
}
