#include "cli/chat/answer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/clock.h"
#include "json/plural.h"

#define SILENT_MS 1000 /* then the user is told what is waited for */
#define AGAIN_MS  200

struct streaming {
        struct link *link;
        struct answer *answer;
        struct screen text, thoughts;
        uint32_t stream;
        bool ended, thinks;
        bool line_open, thought_open; /* the last that was shown was no newline */
        bool begun;                   /* the request is accepted */
        uint32_t read, prompt;        /* tokens */
        uint64_t begin_ms;
};

/* ---- the line about the progress ---- */

static void show_status(struct streaming *s)
{
        const struct smv_accepted *accepted = &s->answer->accepted;
        char text[80];

        if (s->line_open || s->thought_open || clock_ms() - s->begin_ms < SILENT_MS)
                return;
        if (s->answer->interrupted)
                snprintf(text, sizeof(text), "stopping; ^C again does not wait");
        else if (!s->begun)
                snprintf(text, sizeof(text), "waiting for the daemon; ^C gives up");
        else if (s->read)
                snprintf(text, sizeof(text), "reading: %u of %u tokens", s->read, s->prompt);
        else
                snprintf(text, sizeof(text), "waiting: %u request%s before this one",
                         accepted->queue_position, plural(accepted->queue_position));
        terminal_status(s->link->terminal, text);
}

/* ---- what is shown ---- */

static int dim(struct streaming *s, const char *code)
{
        ssize_t n = 0;

        if (s->thoughts.terminal && s->link->terminal->colours)
                n = write(STDERR_FILENO, code, strlen(code));
        return n < 0 ? CLI_FAILED : 0;
}

static int add(struct bytes *to, const char *text, size_t bytes)
{
        int r = bytes_add(to, text, bytes);

        if (!r)
                r = bytes_add(to, "", 1);
        if (!r)
                to->count--;
        return r;
}

static int show(struct streaming *s, const char *text, size_t bytes)
{
        if (bytes)
                s->line_open = text[bytes - 1] != '\n';
        return screen_text(&s->text, text, bytes);
}

static int think(struct streaming *s, const char *text, size_t bytes)
{
        int r = s->thinks ? 0 : dim(s, "\x1b[2m");

        s->thinks = true;
        if (bytes)
                s->thought_open = text[bytes - 1] != '\n';
        return r ? r : screen_text(&s->thoughts, text, bytes);
}

static int end_thought(struct streaming *s)
{
        int r = 0;

        if (!s->thinks)
                return 0;
        s->thinks = false;
        if (s->thought_open)
                r = screen_text(&s->thoughts, "\n", 1);
        s->thought_open = false;
        if (!r)
                r = dim(s, "\x1b[0m");
        return r ? r : screen_text(&s->thoughts, "\n", 1);
}

static int begin_call(struct streaming *s, const char *name, size_t bytes)
{
        struct answer *answer = s->answer;
        struct message_call *call;
        int r = s->line_open ? show(s, "\n", 1) : 0;

        if (answer->call_count < ANSWER_CALLS_MAX) {
                call = &answer->calls[answer->call_count++];
                snprintf(call->id, sizeof(call->id), "call%05zu", answer->call_count);
                if (!r)
                        r = add(&call->name, name, bytes);
                if (!r)
                        r = add(&call->arguments, "", 0);
        }
        if (!r)
                r = show(s, name, bytes);
        return r ? r : show(s, "(", 1);
}

static int on_call(struct streaming *s, const struct smv_part *part, const char *text)
{
        struct answer *answer = s->answer;
        int r = 0;

        if (part->kind == SMV_PART_CALL)
                return begin_call(s, text, part->bytes);
        if (part->kind == SMV_PART_CALL_END) {
                answer->cut = part->flags & SMV_PARTS_CUT;
                return show(s, answer->cut ? "\n" : ")\n", answer->cut ? 1 : 2);
        }
        if (part->call < answer->call_count)
                r = add(&answer->calls[part->call].arguments, text, part->bytes);
        return r ? r : show(s, text, part->bytes);
}

static int on_part(struct streaming *s, const struct smv_part *part, const char *text)
{
        int r;

        if (part->kind == SMV_PART_REASONING) {
                r = add(&s->answer->reasoning, text, part->bytes);
                return r ? r : think(s, text, part->bytes);
        }
        r = end_thought(s);
        if (r || part->kind != SMV_PART_TEXT)
                return r ? r : on_call(s, part, text);
        r = add(&s->answer->text, text, part->bytes);
        return r ? r : show(s, text, part->bytes);
}

static int on_tokens(struct streaming *s, const struct smv_event *event)
{
        const struct smv_part whole = { .bytes = (uint32_t)event->text_bytes };
        const char *text = event->text;
        int r = 0;

        if (event->text_bytes)
                terminal_status(s->link->terminal, "");
        if (!event->parts)
                return event->text_bytes ? on_part(s, &whole, text) : 0;
        for (size_t i = 0; !r && i < event->part_count; i++) {
                r = on_part(s, &event->parts[i], text);
                text += event->parts[i].bytes;
        }
        return r;
}

/* ---- the events ---- */

/* A request that was stopped before it began has no end; this says the same. */
static void end_before_begin(struct streaming *s)
{
        s->answer->end = (struct smv_event){ SMV_SIZE(smv_event), .reason = SMV_END_CANCELLED };
        s->ended = true;
}

static enum outcome on_reply(struct streaming *s, const struct smv_event *event)
{
        if (event->code == SMV_CANCELLED) {
                end_before_begin(s);
                return OUTCOME_DONE;
        }
        if (event->code != SMV_OK)
                return link_failure(s->link, 0);
        s->begun = true;
        s->answer->accepted = (struct smv_accepted){ SMV_SIZE(smv_accepted) };
        smv_accepted(s->link->cli->client, &s->answer->accepted);
        return OUTCOME_DONE;
}

static enum outcome on_event(struct streaming *s, const struct smv_event *event)
{
        int r = 0;

        switch (event->kind) {
        case SMV_EVENT_REPLY:
                return event->stream == s->stream ? on_reply(s, event) : OUTCOME_DONE;
        case SMV_EVENT_PROGRESS:
                s->read = event->prefilled;
                s->prompt = event->prompt_tokens;
                break;
        case SMV_EVENT_TOKENS:
                r = on_tokens(s, event);
                break;
        case SMV_EVENT_END:
                s->answer->end = *event;
                s->ended = true;
                break;
        default:
                break;
        }
        return r ? OUTCOME_FAILED : OUTCOME_DONE;
}

static enum outcome interrupt(struct streaming *s)
{
        if (s->answer->interrupted || s->link->terminal->ended_by)
                return OUTCOME_INTERRUPTED;
        s->answer->interrupted = true;
        s->begin_ms = clock_ms();
        (void)smv_cancel(s->link->cli->client, s->stream); /* the loop sees it if that fails */
        return OUTCOME_DONE;
}

static enum outcome read_answer(struct streaming *s)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        enum outcome o = OUTCOME_DONE;

        while (o == OUTCOME_DONE && !s->ended) {
                o = link_next(s->link, &event, s->link->terminal->status ? AGAIN_MS : SILENT_MS);
                if (o == OUTCOME_DONE)
                        o = on_event(s, &event);
                else if (o == OUTCOME_INTERRUPTED)
                        o = interrupt(s);
                else if (o == OUTCOME_NOTHING)
                        o = OUTCOME_DONE;
                show_status(s);
        }
        return o;
}

/* The daemon died within the answer: the library makes an end for the stream. */
static enum outcome judge(struct streaming *s, enum outcome o)
{
        if (o != OUTCOME_DONE || s->answer->end.code != SMV_LOST)
                return o;
        link_close(s->link);
        return OUTCOME_LOST;
}

enum outcome answer_run(struct link *link, const struct smv_generate *options,
                        struct answer *answer)
{
        struct streaming s = { .link = link, .answer = answer, .begin_ms = clock_ms() };
        enum outcome o;
        int r;

        *answer = (struct answer){ .end = { SMV_SIZE(smv_event) } };
        screen_open(&s.text, STDOUT_FILENO);
        screen_open(&s.thoughts, STDERR_FILENO);
        r = smv_ask_generate(link->cli->client, options, &s.stream);
        o = judge(&s, r ? link_failure(link, r) : read_answer(&s));
        terminal_status(link->terminal, "");
        end_thought(&s);
        if (s.line_open)
                show(&s, "\n", 1);
        if (o == OUTCOME_INTERRUPTED || o == OUTCOME_FAILED)
                link_close(link); /* the stream may still run */
        return o;
}

void answer_deinit(struct answer *answer)
{
        bytes_deinit(&answer->text);
        bytes_deinit(&answer->reasoning);
        for (size_t i = 0; i < answer->call_count; i++) {
                bytes_deinit(&answer->calls[i].name);
                bytes_deinit(&answer->calls[i].arguments);
        }
        answer->call_count = 0;
}
