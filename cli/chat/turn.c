#include "cli/chat/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/chat/answer.h"
#include "cli/chat/facts.h"
#include "cli/chat/state.h"
#include "cli/cli.h"
#include "json/plural.h"

/* An answer for which less is left than this, or than so much of the context, is not begun. */
#define SPACE_TOKENS 256u
#define SPACE_SHARE  8u

static void out_of_memory(void)
{
        note("There is not enough memory.");
}

/* ---- what is asked ---- */

static int fill_options(struct chat *chat, struct smv_generate *options, struct bytes *packed)
{
        const struct branch *branch = session_branch(&chat->session);
        const char *given = chat->cli->generate.constraint, *wrong = NULL;
        int r;

        chat->cli->constraint.count = 0;
        r = cli_answer_form(chat->cli);
        *options = chat->cli->generate;
        chat->cli->generate.constraint = given;
        if (!r && branch->tools.count)
                r = cli_pack_json(branch->tools.at, branch->tools.count, packed, &wrong);
        if (r)
                return r;
        if (packed->count)
                options->packed_tools = (struct smv_packed){ packed->at, packed->count };
        options->handle = branch->handle;
        options->parts = options->progress = options->clamp = 1;
        options->sample_index = chat->tries;
        if (!options->max_tokens)
                options->max_tokens = UINT32_MAX;
        if (options->priority == SMV_PRIORITY_NORMAL)
                options->priority = SMV_PRIORITY_INTERACTIVE;
        return 0;
}

static bool has_space(const struct chat *chat)
{
        size_t context = chat->link.model.context, space = context / SPACE_SHARE;

        if (space > SPACE_TOKENS)
                space = SPACE_TOKENS;
        return !context || session_branch(&chat->session)->length + space <= context;
}

/* Brings the history up to date; if the daemon is gone, once more with the next one. */
static enum outcome prepare(struct chat *chat)
{
        enum outcome o = session_prepare(&chat->session);

        if (o == OUTCOME_LOST) {
                note("The daemon is gone; its connection was lost.");
                o = session_prepare(&chat->session);
        }
        return o == OUTCOME_DONE && !has_space(chat) ? OUTCOME_TOO_LONG : o;
}

static enum outcome generate(struct chat *chat, struct answer *answer)
{
        struct smv_generate options;
        struct bytes packed = { 0 };
        enum outcome o = fill_options(chat, &options, &packed)
                                 ? OUTCOME_FAILED
                                 : answer_run(&chat->link, &options, answer);

        bytes_deinit(&packed);
        if (!chat->cli->client)
                session_lose_handles(&chat->session);
        return o;
}

/* ---- how it ends ---- */

/* Takes the messages from `from` on back.  A question among them can be asked again. */
static void withdraw(struct chat *chat, size_t from)
{
        const struct branch *branch = session_branch(&chat->session);
        const struct message *first = &branch->messages[from];

        if (from < branch->count && first->role == MESSAGE_USER) {
                chat->withdrawn.count = 0;
                if (bytes_add(&chat->withdrawn, first->text.at, first->text.count + 1))
                        out_of_memory();
                else
                        note("The question is taken back; /retry asks it again.");
        }
        session_cut(&chat->session, from, false);
}

/* Says why an answer ended, unless the model ended it. */
static void say_end(const struct chat *chat, const struct answer *answer)
{
        const struct smv_event *end = &answer->end;
        uint32_t context = chat->link.model.context;

        if (answer->interrupted || end->reason == SMV_END_EOS || end->reason == SMV_END_STOP)
                return;
        if (end->reason == SMV_END_LENGTH && end->prompt_tokens + end->output_tokens >= context)
                note("The context is full: it has %u tokens.  The answer ends here.", context);
        else if (end->reason == SMV_END_LENGTH && chat->cli->generate.max_tokens &&
                 end->output_tokens >= chat->cli->generate.max_tokens)
                note("The answer has max-tokens, %u tokens, and ends here; /set max-tokens N "
                     "changes it.",
                     end->output_tokens);
        else if (end->reason == SMV_END_LENGTH)
                note("No more tokens fit: the answer ends here, after %u.", end->output_tokens);
        else if (end->reason == SMV_END_ERROR)
                note("The answer failed: %s (%s).", smv_code_text(end->code),
                     smv_code_name(end->code));
        else
                note("The daemon ended the answer: %s.", smv_reason_name(end->reason));
}

static void say_outcome(struct chat *chat, enum outcome o)
{
        if (o == OUTCOME_REFUSED && chat->link.problem.code == SMV_NO_TEMPLATE)
                note("This model has no chat template, so it cannot answer; samovar complete "
                     "continues a text.");
        else if (o == OUTCOME_REFUSED)
                link_say(&chat->link);
        else if (o == OUTCOME_LOST)
                note("The daemon is gone.  The conversation is kept; the next question connects "
                     "again.");
}

/* Adds what has come of the answer.  False: it is nothing, or there is no memory. */
static bool keep_answer(struct chat *chat, const struct answer *answer, enum outcome o)
{
        struct branch *branch = session_branch(&chat->session);
        bool whole =
                o == OUTCOME_DONE && !answer->interrupted && answer->end.reason != SMV_END_ERROR;
        struct message message;

        if (!whole && !answer->text.count && !answer->call_count)
                return false;
        if (message_make_answer(&message, &answer->text, &answer->reasoning, answer->calls,
                                answer->call_count) ||
            branch_add(branch, &message)) {
                out_of_memory();
                return false;
        }
        if (o == OUTCOME_DONE)
                session_answered(&chat->session, &answer->end);
        chat->end = answer->end;
        chat->accepted = answer->accepted;
        chat->withdrawn.count = 0;
        return true;
}

/* ---- tool calls ---- */

/* The user types what each tool returns.  False: not all were given; then none is. */
static bool ask_results(struct chat *chat, const struct answer *answer)
{
        struct branch *branch = session_branch(&chat->session);
        size_t from = branch->count;
        struct bytes result = { 0 };
        struct message message;
        char prompt[96];
        bool given = true;

        note("Type what each tool returns (\"\"\" begins several lines); ^C does not answer.");
        for (size_t i = 0; given && i < answer->call_count; i++) {
                snprintf(prompt, sizeof(prompt), "%.60s returns: ", answer->calls[i].name.at);
                for (char *c = prompt; *c; c++)
                        if ((unsigned char)*c < ' ' || *c == 0x7f)
                                *c = '?';
                result.count = 0;
                given = reading_reply(&chat->reading, prompt, &result) == LINE_READ &&
                        !message_make_result(&message, &answer->calls[i], result.at,
                                             result.count) &&
                        !branch_add(branch, &message);
        }
        bytes_deinit(&result);
        if (!given)
                branch_cut(branch, from);
        return given;
}

/* ---- a full context ---- */

static size_t bytes_from(const struct branch *branch, size_t turn)
{
        size_t bytes = 0;

        for (size_t i = branch_turn(branch, turn); i < branch->count; i++)
                bytes += branch->messages[i].text.count;
        return bytes;
}

/* How many turns to drop: about half of the text before the last question. */
static size_t count_oldest(const struct branch *branch)
{
        size_t turns = branch_turns(branch), count = 1;
        size_t last = turns ? bytes_from(branch, turns - 1) : 0;
        size_t half = turns ? (bytes_from(branch, 0) - last) / 2 : 0;

        while (count + 1 < turns && bytes_from(branch, count) - last > half)
                count++;
        return turns > 1 ? count : 0;
}

/* True if the user agrees, or has agreed to drop turns for this question. */
static bool may_drop(struct chat *chat, size_t count, size_t of, bool *agreed)
{
        char question[160];

        snprintf(question, sizeof(question), "Drop the oldest %zu of %zu earlier turn%s?", count,
                 of, plural(of));
        if (*agreed)
                note("It is still full; %zu more turn%s dropped.", count,
                     count == 1 ? " is" : "s are");
        else
                *agreed = reading_yes(&chat->reading, question, true);
        return *agreed;
}

/* Drops the oldest turns if the user wants that.  Then *from is where the last question is now. */
static bool make_space(struct chat *chat, size_t *from, bool *agreed)
{
        struct branch *branch = session_branch(&chat->session);
        size_t count = count_oldest(branch), turns = branch_turns(branch), first, dropped;

        if (!*agreed)
                note("The context is full: it has %u tokens.", chat->link.model.context);
        if (!count) {
                note("The question alone leaves no space for an answer; ask a shorter one.");
                return false;
        }
        if (!may_drop(chat, count, turns - 1, agreed))
                return false;
        session_close_handle(&chat->session);
        first = branch_turn(branch, 0);
        dropped = branch_turn(branch, count) - first;
        branch_remove(branch, first, dropped);
        *from -= dropped;
        return true;
}

/* ---- the whole turn ---- */

static enum outcome attempt(struct chat *chat, struct answer *answer, size_t *from)
{
        bool agreed = false;
        enum outcome o;

        do {
                *answer = (struct answer){ 0 };
                o = prepare(chat);
                if (o == OUTCOME_DONE)
                        o = generate(chat, answer);
        } while (o == OUTCOME_TOO_LONG && make_space(chat, from, &agreed));
        return o;
}

/* Asks the messages from `from` on, which are new or get a new answer. */
static void run(struct chat *chat, size_t from)
{
        struct answer answer;
        bool more;

        do {
                enum outcome o = attempt(chat, &answer, &from);
                bool kept;

                say_outcome(chat, o);
                kept = keep_answer(chat, &answer, o);
                if (kept && o == OUTCOME_DONE)
                        say_end(chat, &answer);
                else if (!kept)
                        withdraw(chat, from);
                if (kept && chat->cli->stats)
                        facts_line(chat);
                more = kept && o == OUTCOME_DONE && answer.call_count && !answer.cut &&
                       !answer.interrupted;
                from = session_branch(&chat->session)->count;
                more = more && ask_results(chat, &answer);
                answer_deinit(&answer);
        } while (more);
}

void turn_ask(struct chat *chat, const char *question, size_t bytes)
{
        struct branch *branch = session_branch(&chat->session);
        struct message message;

        if (message_make(&message, MESSAGE_USER, question, bytes) || branch_add(branch, &message)) {
                out_of_memory();
                return;
        }
        chat->tries = 0;
        run(chat, branch->count - 1);
}

/* The question that was taken back. */
static void ask_withdrawn(struct chat *chat)
{
        struct bytes question = chat->withdrawn;

        chat->withdrawn = (struct bytes){ 0 };
        turn_ask(chat, question.at, question.count - 1);
        bytes_deinit(&question);
}

void turn_again(struct chat *chat)
{
        struct branch *branch = session_branch(&chat->session);
        size_t turns = branch_turns(branch), keep = branch->count;

        if (chat->withdrawn.count) {
                ask_withdrawn(chat);
                return;
        }
        if (!turns) {
                note("There is no question yet.");
                return;
        }
        while (keep && branch->messages[keep - 1].role == MESSAGE_ASSISTANT)
                keep--;
        chat->tries++;
        session_cut(&chat->session, keep, true);
        run(chat, branch_turn(branch, turns - 1));
}
