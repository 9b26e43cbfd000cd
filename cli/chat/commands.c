#include "cli/chat/commands.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/chat/branching.h"
#include "cli/chat/chat.h"
#include "cli/chat/facts.h"
#include "cli/chat/files.h"
#include "cli/chat/settings.h"
#include "cli/chat/state.h"
#include "cli/chat/turn.h"
#include "json/distance.h"

#define WORD_MAX 24u
#define INDENT   22u /* of the right column of /help */

enum completion { NOTHING, COMMANDS, SETTINGS, BRANCHES, FILES };

/* The arguments are without blanks around them; "" if there are none. */
typedef void run_fn(struct chat *chat, char *arguments);

static run_fn help, bye, retry;

/* clang-format off */
static const struct command {
        const char *name, *arguments, *help;
        run_fn *run;
        enum completion completion;
} table[] = {
        { "/help",     "[COMMAND]",     "list the commands and keys, or explain a command", help, COMMANDS },
        { "/bye",      "",              "leave, as ^D does; /exit and /quit, too", bye, NOTHING },
        { "/clear",    "",              "begin a new conversation in this branch; the system message and the tools stay", branching_clear, NOTHING },
        { "/system",   "[TEXT | \"\"]", "show or set the system message; \"\" removes it", settings_system, NOTHING },
        { "/set",      "[NAME [VALUE]]", "list the settings, or set one, as the flag --NAME does; VALUE default takes it back", settings_set, SETTINGS },
        { "/show",     "[N]",           "show the model, the branch and what is set; with N, the last N turns", facts_show, NOTHING },
        { "/undo",     "",              "take the last question and its answer back", branching_undo, NOTHING },
        { "/retry",    "",              "ask the last question again, for another answer", retry, NOTHING },
        { "/fork",     "[NAME]",        "continue in a copy of this conversation, a branch of this name", branching_fork, NOTHING },
        { "/branches", "[WHICH | name NAME | drop WHICH]", "list the branches, go to one by its name or number, name this one, or drop one", branching_branches, BRANCHES },
        { "/save",     "FILE",          "write the conversation to a file that samovar ask --messages takes, too", files_save, FILES },
        { "/load",     "FILE",          "continue the conversation of such a file, in a new branch", files_load, FILES },
        { "/tools",    "[FILE | off]",  "list the tools, load them from a JSON list, or take them away; you type what they return", files_tools, FILES },
        { "/stats",    "",              "show what the last answer cost, what was cached, and how full the context is", facts_stats, NOTHING },
};
/* clang-format on */

#define COUNT (sizeof(table) / sizeof(*table))

static const struct {
        const char *name, *meaning;
} keys[] = {
        { "^C", "stop the answer; at the prompt, clear the line" },
        { "^D", "leave; while an answer comes, leave behind it" },
        { "^G", "edit the line in $VISUAL or $EDITOR" },
        { "^R", "search in what was typed before" },
        { "Alt-Enter", "a new line in the question; a paste may have several lines, too" },
        { "\\ at the end", "the question goes on in the next line" },
        { "\"\"\"", "begins and ends a text of several lines" },
};

bool chat_describe_command(size_t index, struct chat_row *ret_row)
{
        if (index >= COUNT)
                return false;
        *ret_row =
                (struct chat_row){ table[index].name, table[index].arguments, table[index].help };
        return true;
}

/* The command of this name, with or without its slash; NULL: there is none. */
static const struct command *find(const char *name)
{
        if (*name == '/')
                name++;
        if (!strcmp(name, "exit") || !strcmp(name, "quit"))
                name = "bye";
        if (!strcmp(name, "?"))
                name = "help";
        for (size_t i = 0; i < COUNT; i++)
                if (!strcmp(table[i].name + 1, name))
                        return &table[i];
        return NULL;
}

static void refuse(const char *name)
{
        const char *meant = NULL;
        uint32_t best = DISTANCE_NONE;

        for (size_t i = 0; i < COUNT; i++)
                if (distance_is_hint(name, strlen(name), table[i].name, &best))
                        meant = table[i].name;
        if (meant)
                note("There is no command %.24s; is %s meant?", name, meant);
        else
                note("There is no command %.24s; /help lists them.  A blank before it makes it a "
                     "question.",
                     name);
}

static void help(struct chat *chat, char *arguments)
{
        const struct command *command = *arguments ? find(arguments) : NULL;
        char left[64];

        if (command) {
                note("%s %s", command->name, command->arguments);
                note_row(&chat->terminal, "", 2, command->help);
                return;
        }
        if (*arguments) {
                refuse(arguments);
                return;
        }
        for (size_t i = 0; i < COUNT; i++) {
                snprintf(left, sizeof(left), "  %s %s", table[i].name, table[i].arguments);
                note_row(&chat->terminal, left, INDENT, table[i].help);
        }
        note("%s", "");
        for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
                snprintf(left, sizeof(left), "  %s", keys[i].name);
                note_row(&chat->terminal, left, INDENT, keys[i].meaning);
        }
}

static void bye(struct chat *chat, char *arguments)
{
        (void)arguments;
        chat->leave = true;
}

static void retry(struct chat *chat, char *arguments)
{
        (void)arguments;
        turn_again(chat);
}

bool commands_is(const char *text)
{
        size_t letters = 0;

        if (*text != '/' || strchr(text, '\n'))
                return *text == '/' && !strncmp(text, "/system ", 8);
        while (isalpha((unsigned char)text[1 + letters]) || text[1 + letters] == '?')
                letters++;
        return letters && (!text[1 + letters] || text[1 + letters] == ' ');
}

void commands_run(struct chat *chat, char *text)
{
        char *end = text + strcspn(text, " "), *arguments = end;
        const struct command *command;
        size_t bytes;

        if (*end)
                arguments = end + strspn(end, " ");
        *end = '\0';
        bytes = strlen(arguments);
        while (bytes && arguments[bytes - 1] == ' ')
                arguments[--bytes] = '\0';
        command = find(text);
        if (!command)
                refuse(text);
        else if (*arguments && !*command->arguments)
                note("%s takes no argument.", command->name);
        else
                command->run(chat, arguments);
}

/* ---- completion ---- */

/* Keeps the names that begin with the word. */
static void offer(const char *name, const char *word, size_t *count,
                  const char *matches[LINE_MATCHES_MAX])
{
        if (name && *count < LINE_MATCHES_MAX && !strncmp(name, word, strlen(word)))
                matches[(*count)++] = name;
}

static size_t complete_argument(const struct chat *chat, const struct command *command,
                                const char *word, const char *matches[LINE_MATCHES_MAX])
{
        size_t count = 0;

        switch (command->completion) {
        case FILES:
                return LINE_FILES;
        case COMMANDS:
                for (size_t i = 0; i < COUNT; i++)
                        offer(table[i].name + 1, word, &count, matches);
                break;
        case SETTINGS:
                for (size_t i = 0; settings_exists(i); i++)
                        offer(settings_name(i), word, &count, matches);
                break;
        case BRANCHES:
                for (size_t i = 0; i < chat->session.count; i++)
                        offer(chat->session.branches[i]->name, word, &count, matches);
                break;
        case NOTHING:
                break;
        }
        return count;
}

size_t commands_complete(void *arg, const char *line, size_t *ret_word,
                         const char *matches[LINE_MATCHES_MAX])
{
        const char *blank = strchr(line, ' ');
        const struct command *command;
        char name[WORD_MAX];
        size_t count = 0;

        if (*line != '/')
                return 0;
        *ret_word = blank ? (size_t)(strrchr(line, ' ') + 1 - line) : 0;
        if (!blank) {
                for (size_t i = 0; i < COUNT; i++)
                        offer(table[i].name, line, &count, matches);
                return count;
        }
        snprintf(name, sizeof(name), "%.*s", (int)(blank - line), line);
        command = find(name);
        return command ? complete_argument(arg, command, line + *ret_word, matches) : 0;
}
