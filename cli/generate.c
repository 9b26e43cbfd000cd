/*
 * ask and complete print tokens as they are generated; attach does so for a stream of an earlier
 * command (--keep).  If there are many streams, one is printed as it comes.  The text of the others
 * waits for its turn, or until the best is known.  With JSON, each line says which stream it is of.
 *
 * The first SIGINT cancels the streams, whose ENDs still come; the second has its default
 * action.  The handler only writes a byte to a pipe, which the loop polls together with the
 * client.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/answer-lines.h"

static int interrupt_pipe[2] = { -1, -1 };

static void on_interrupt(int signal_number)
{
        int saved = errno;
        ssize_t n;

        (void)signal_number;
        n = write(interrupt_pipe[1], "", 1);
        (void)n;
        errno = saved;
}

static int catch_interrupt(void)
{
        struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESETHAND };

        if (pipe2(interrupt_pipe, O_CLOEXEC | O_NONBLOCK) < 0 ||
            sigaction(SIGINT, &action, NULL) < 0) {
                say("cannot watch for interrupts: %s", strerror(errno));
                return CLI_FAILED;
        }
        return 0;
}

/* The answer of one stream. */
struct answer {
        struct bytes text;     /* text that waits to be shown */
        bool ended, line_open; /* its text does not end with a newline */
        double logprobs;       /* the sum over its tokens */
        size_t token_count;
};

#define NO_ANSWER UINT32_MAX

struct streaming {
        struct cli *cli;
        struct screen screen, thoughts;
        bool thinks; /* the last that was shown is reasoning */
        struct answer_lines lines;
        uint32_t first; /* the first stream; the ids of the others follow */
        uint32_t count, ended;
        uint32_t shown; /* the index in `answers` that is shown now; NO_ANSWER: none */
        struct answer *answers;
        int status; /* the highest exit status of the streams */
        bool interrupted;
};

static uint32_t index_of(const struct streaming *s, const struct smv_event *event)
{
        return event->stream - s->first;
}

static int out_of_memory(void)
{
        say("out of memory");
        return CLI_FAILED;
}

static int show_text(struct streaming *s, uint32_t number, const char *text, size_t bytes)
{
        struct answer *answer = &s->answers[number];

        if (bytes)
                answer->line_open = text[bytes - 1] != '\n';
        if (number == s->shown)
                return screen_text(&s->screen, text, bytes);
        return bytes_add(&answer->text, text, bytes) ? out_of_memory() : 0;
}

/* Shows reasoning on stderr; what follows it begins on a new line there. */
static int on_reasoning(struct streaming *s, uint32_t number, const char *text, size_t bytes)
{
        if (number != s->shown)
                return 0;
        s->thinks = true;
        return screen_text(&s->thoughts, text, bytes);
}

static int end_reasoning(struct streaming *s, uint32_t number)
{
        if (number != s->shown || !s->thinks)
                return 0;
        s->thinks = false;
        return screen_text(&s->thoughts, "\n", 1);
}

/* A call is a line of its own: NAME(ARGUMENTS). */
static int on_call(struct streaming *s, uint32_t number, const struct smv_part *part,
                   const char *text)
{
        struct answer *answer = &s->answers[number];
        int r = 0;

        if (part->kind == SMV_PART_CALL && answer->line_open)
                r = show_text(s, number, "\n", 1);
        if (!r)
                r = show_text(s, number, text, part->bytes);
        if (!r && part->kind == SMV_PART_CALL)
                r = show_text(s, number, "(", 1);
        if (!r && part->kind == SMV_PART_CALL_END)
                r = show_text(s, number, part->flags & SMV_PARTS_CUT ? "\n" : ")\n",
                              part->flags & SMV_PARTS_CUT ? 1 : 2);
        return r;
}

static int on_parts(struct streaming *s, const struct smv_event *event)
{
        uint32_t number = index_of(s, event);
        const char *text = event->text;
        int r = 0;

        for (size_t i = 0; !r && i < event->part_count; i++) {
                const struct smv_part *part = &event->parts[i];

                if (part->kind == SMV_PART_REASONING) {
                        r = on_reasoning(s, number, text, part->bytes);
                } else {
                        r = end_reasoning(s, number);
                        if (!r)
                                r = part->kind == SMV_PART_TEXT
                                            ? show_text(s, number, text, part->bytes)
                                            : on_call(s, number, part, text);
                }
                text += part->bytes;
        }
        return r;
}

static int on_tokens(struct streaming *s, const struct smv_event *event)
{
        struct answer *answer = &s->answers[index_of(s, event)];

        for (size_t i = 0; event->logprobs && i < event->token_count; i++)
                answer->logprobs += (double)event->logprobs[i * (1 + event->top_count)].logprob;
        answer->token_count += event->token_count;
        if (s->cli->json)
                return answer_lines_tokens(&s->lines, event);
        if (event->parts)
                return on_parts(s, event);
        return show_text(s, index_of(s, event), event->text, event->text_bytes);
}

/* `complete` prints the continuation and nothing else. */
static bool ends_line(const struct streaming *s)
{
        return s->cli->command & (CLI_ASK | CLI_CHAT);
}

static double score_of(const struct answer *answer)
{
        return answer->token_count ? answer->logprobs / (double)answer->token_count : -INFINITY;
}

/* All streams have ended: shows the answer with the highest average logprob. */
static int show_best(struct streaming *s)
{
        uint32_t best = 0;
        int r;

        for (uint32_t i = 1; i < s->count; i++)
                if (score_of(&s->answers[i]) > score_of(&s->answers[best]))
                        best = i;
        if (s->cli->json)
                return answer_lines_best(&s->lines, best, score_of(&s->answers[best]));
        r = screen_text(&s->screen, s->answers[best].text.at, s->answers[best].text.count);
        if (!r)
                r = screen_close(&s->screen);
        if (!r && !s->screen.terminal && ends_line(s))
                r = screen_raw("\n", 1);
        return r;
}

/* If there are many answers: prints a heading for the next, and the text that has come so far. */
static int show_next(struct streaming *s)
{
        struct bytes *text = &s->answers[s->shown].text;
        char heading[64];
        int r;

        if (s->count == 1)
                return 0;
        snprintf(heading, sizeof(heading), "%s-- %u of %u --\n", s->shown ? "\n" : "", s->shown + 1,
                 s->count);
        r = screen_raw(heading, strlen(heading));
        return r ? r : screen_text(&s->screen, text->at, text->count);
}

/* While the answer shown now is complete: ends it and shows the next. */
static int show_ended(struct streaming *s)
{
        int r = 0;

        while (!r && s->shown < s->count && s->answers[s->shown].ended) {
                r = screen_close(&s->screen);
                if (!r && !s->screen.terminal && (ends_line(s) || s->count > 1))
                        r = screen_raw("\n", 1);
                if (!r && ++s->shown < s->count)
                        r = show_next(s);
        }
        return r;
}

static int status_of_end(const struct streaming *s, const struct smv_event *event)
{
        switch (event->reason) {
        case SMV_END_EOS:
        case SMV_END_STOP:
        case SMV_END_LENGTH:
                return s->interrupted ? CLI_INTERRUPTED : CLI_GOOD;
        case SMV_END_ERROR:
                say("the stream failed: %s (%s)", smv_code_text(event->code),
                    smv_code_name(event->code));
                return CLI_FAILED;
        default:
                if (s->interrupted)
                        return CLI_INTERRUPTED;
                say("the daemon ended the stream: %s", smv_reason_name(event->reason));
                return CLI_FAILED;
        }
}

static int on_end(struct streaming *s, const struct smv_event *event)
{
        int r, status;

        s->answers[index_of(s, event)].ended = true;
        s->ended++;
        r = end_reasoning(s, index_of(s, event));
        if (!r)
                r = s->cli->json ? answer_lines_end(&s->lines, event) : show_ended(s);
        if (!r && s->cli->best_of && s->ended == s->count)
                r = show_best(s);
        if (r)
                return r;
        if (s->cli->stats)
                cli_say_stats(s->cli, event);
        /* All is printed.  If the drop fails, the daemon forgets the stream after keep_ms. */
        if (s->cli->resume_id && event->code != SMV_MOVED && event->code != SMV_LOST)
                (void)smv_drop(s->cli->client, s->cli->resume_id);
        status = status_of_end(s, event);
        if (status > s->status)
                s->status = status;
        return 0;
}

/* Cancels the streams at the first SIGINT. */
static int check_interrupt(struct streaming *s)
{
        char byte;
        int r = 0;

        if (s->interrupted || read(interrupt_pipe[0], &byte, 1) != 1)
                return 0;
        s->interrupted = true;
        for (uint32_t i = 0; !r && i < s->count; i++)
                r = smv_cancel(s->cli->client, s->first + i);
        /* If the daemon is gone, smv_next() finds out and makes the missing ENDs. */
        return r && r != -ENOTCONN ? say_failed(s->cli, r) : 0;
}

static void wait_for_input(struct streaming *s)
{
        struct pollfd fds[2] = { { .fd = smv_fd(s->cli->client), .events = POLLIN },
                                 { .fd = interrupt_pipe[0], .events = POLLIN } };

        poll(fds, 2, -1);
}

static int read_streams(struct streaming *s)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        int r;

        while (s->ended < s->count) {
                r = smv_next(s->cli->client, &event, 0);
                if (r < 0)
                        return say_failed(s->cli, r);
                if (!r)
                        wait_for_input(s);
                else if (event.kind == SMV_EVENT_END)
                        r = on_end(s, &event);
                else
                        r = on_tokens(s, &event);
                if (!r)
                        r = check_interrupt(s);
                if (r)
                        return r;
        }
        return s->status;
}

/* The command that attaches did not begin the stream, and an older daemon says nothing. */
static void set_chain(struct streaming *s)
{
        struct smv_accepted accepted = { SMV_SIZE(smv_accepted) };

        if (s->cli->command == CLI_ATTACH)
                return;
        smv_accepted(s->cli->client, &accepted);
        memcpy(s->lines.chain, accepted.chain, sizeof(s->lines.chain));
}

static int show_streams(struct streaming *s)
{
        int r;

        s->answers = calloc(s->count, sizeof(*s->answers));
        if (!s->answers)
                return out_of_memory();
        screen_open(&s->screen, STDOUT_FILENO);
        screen_open(&s->thoughts, STDERR_FILENO);
        s->lines = (struct answer_lines){ .first = s->first,
                                          .count = s->count,
                                          .sequence = s->cli->resume_id };
        set_chain(s);
        r = catch_interrupt();
        if (s->cli->best_of)
                s->shown = NO_ANSWER;
        else if (!r && !s->cli->json)
                r = show_next(s);
        if (!r)
                r = read_streams(s);
        for (uint32_t i = 0; i < s->count; i++)
                bytes_deinit(&s->answers[i].text);
        free(s->answers);
        bytes_deinit(&s->lines.out);
        return r;
}

static void give_prompt(struct cli *cli)
{
        cli->generate.prompt = cli->input.at;
        cli->generate.prompt_bytes = cli->input.count;
        cli->generate.messages = NULL;
        cli->generate.message_count = 0;
}

/* A model without a chat template cannot answer, but it can continue the text. */
static bool may_continue(const struct cli *cli)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        smv_error(cli->client, &problem);
        return cli->generate.messages && !cli->system && !cli->answer &&
               problem.code == SMV_NO_TEMPLATE;
}

int cli_generate(struct cli *cli)
{
        struct streaming s = { .cli = cli, .count = cli->generate.n ? cli->generate.n : 1 };
        int r;

        cli->generate.model = cli->model;
        if (cli->command == CLI_COMPLETE)
                give_prompt(cli);
        cli_wait_until_loaded(cli);
        if (cli->beam.width)
                return cli_beams(cli);
        r = smv_generate(cli->client, &cli->generate, &s.first);
        if (r == -EREMOTEIO && may_continue(cli)) {
                say("this model has no chat template: it continues the text");
                give_prompt(cli);
                r = smv_generate(cli->client, &cli->generate, &s.first);
        }
        if (r)
                return say_failed(cli, r);

        cli->resume_id = smv_resume_id(cli->client, s.first);
        if (cli->resume_id)
                say("to resume: samovar attach %llu", (unsigned long long)cli->resume_id);
        return show_streams(&s);
}

int cli_attach(struct cli *cli)
{
        struct streaming s = { .cli = cli, .count = 1 };
        int r = smv_attach(cli->client, cli->resume_id, cli->from, &s.first);

        return r ? say_failed(cli, r) : show_streams(&s);
}
