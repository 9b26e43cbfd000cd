/* Reads inputs, and asks or obeys them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/chat/commands.h"
#include "cli/chat/files.h"
#include "cli/chat/state.h"
#include "cli/chat/turn.h"
#include "cli/cli.h"

#define SIGNAL_STATUS 128 /* the status that a shell reports is this and the signal */

/* Fills the first branch: by --messages, or with --system; and with --tools. */
static int begin_branch(struct cli *cli, struct branch *branch)
{
        if (cli->messages && !files_read_branch(cli->messages, branch))
                return CLI_FAILED;
        if (cli->system && branch_set_system(branch, cli->system, strlen(cli->system)))
                return CLI_FAILED;
        return cli->tools && !files_read_tools(cli->tools, branch) ? CLI_FAILED : 0;
}

/* ---- one question, without a terminal ---- */

static int pack(struct cli *cli, const struct bytes *json, struct smv_packed *ret_packed,
                struct bytes *to)
{
        const char *wrong = NULL;

        if (!json->count)
                return 0;
        if (cli_pack_json(json->at, json->count, to, &wrong)) {
                say("the conversation cannot be sent: it %s", wrong);
                return CLI_FAILED;
        }
        *ret_packed = (struct smv_packed){ to->at, to->count };
        (void)cli;
        return 0;
}

/* Asks the conversation as `ask` does. */
static int ask_branch(struct cli *cli, const struct branch *branch)
{
        struct bytes json = { 0 }, messages = { 0 }, tools = { 0 }, vars = { 0 };
        int r = branch_messages(branch, 0, &json) ? CLI_FAILED : 0;

        if (!r)
                r = pack(cli, &json, &cli->generate.packed_messages, &messages);
        if (!r)
                r = pack(cli, &branch->tools, &cli->generate.packed_tools, &tools);
        if (!r)
                r = pack(cli, &branch->vars, &cli->generate.packed_vars, &vars);
        if (!r)
                r = cli_answer_form(cli);
        cli->generate.parts = cli->generate.clamp = 1;
        if (!cli->generate.max_tokens)
                cli->generate.max_tokens = UINT32_MAX;
        if (!r)
                r = cli_generate(cli);
        bytes_deinit(&json);
        bytes_deinit(&messages);
        bytes_deinit(&tools);
        bytes_deinit(&vars);
        return r;
}

static int ask_once(struct cli *cli)
{
        struct branch *branch = calloc(1, sizeof(*branch));
        struct message message;
        int r = branch ? begin_branch(cli, branch) : CLI_FAILED;

        if (!r && (message_make(&message, MESSAGE_USER, cli->input.at, cli->input.count) ||
                   branch_add(branch, &message)))
                r = CLI_FAILED;
        if (!r)
                r = ask_branch(cli, branch);
        branch_free(branch);
        return r;
}

/* ---- the conversation ---- */

static void prompt_of(const struct chat *chat, char *prompt, size_t bytes)
{
        if (chat->session.count > 1)
                snprintf(prompt, bytes, "%s >>> ", session_branch(&chat->session)->name);
        else
                snprintf(prompt, bytes, ">>> ");
}

static void obey(struct chat *chat, struct input *input)
{
        if (!input->text.count || !input->text.at[strspn(input->text.at, " \t\n")])
                return;
        if (!input->block && commands_is(input->text.at))
                commands_run(chat, input->text.at);
        else
                turn_ask(chat, input->text.at, input->text.count);
}

/* Reads and obeys until the user leaves; an exit status. */
static int loop(struct chat *chat)
{
        while (!chat->leave) {
                char prompt[64];
                struct input input;
                enum line_result r;

                prompt_of(chat, prompt, sizeof(prompt));
                r = reading_input(&chat->reading, prompt, &input);
                if (r == LINE_READ)
                        obey(chat, &input);
                bytes_deinit(&input.text);
                if (r == LINE_TOLD_TO_END)
                        return SIGNAL_STATUS + chat->terminal.ended_by;
                if (r == LINE_FAILED)
                        return CLI_FAILED;
                chat->leave = chat->leave || r == LINE_END;
        }
        return CLI_GOOD;
}

static void greet(const struct chat *chat)
{
        const struct smv_model *model = &chat->link.model;

        note("%s, context of %u tokens.  /help lists the commands, ^D leaves.", model->name,
             model->context);
        if (!model->chat)
                note("This model has no chat template: it cannot answer in a conversation.");
}

static int begin(struct chat *chat)
{
        int r = terminal_open(&chat->terminal);

        if (r) {
                say("the terminal cannot be used: %s", strerror(-r));
                return CLI_FAILED;
        }
        link_begin(&chat->link, chat->cli, &chat->terminal);
        if (session_init(&chat->session, &chat->link))
                return CLI_FAILED;
        reading_open(&chat->reading, &chat->terminal, !chat->cli->chat.no_history,
                     commands_complete, chat);
        return begin_branch(chat->cli, session_branch(&chat->session));
}

static void end(struct chat *chat)
{
        reading_close(&chat->reading);
        session_deinit(&chat->session);
        bytes_deinit(&chat->withdrawn);
        bytes_deinit(&chat->saved_as);
        while (chat->texts) {
                struct kept_text *next = chat->texts->next;

                free(chat->texts);
                chat->texts = next;
        }
        terminal_close(&chat->terminal);
}

static int converse(struct cli *cli)
{
        struct chat chat = { .cli = cli };
        int r;

        cli_wait_until_loaded(cli);
        r = begin(&chat);
        if (!r) {
                greet(&chat);
                if (cli->input.count)
                        turn_ask(&chat, cli->input.at, cli->input.count);
                r = loop(&chat);
        }
        end(&chat);
        return r;
}

int cli_chat(struct cli *cli)
{
        return isatty(STDIN_FILENO) ? converse(cli) : ask_once(cli);
}
