#include "cli/chat/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/chat/state.h"
#include "cli/cli.h"

/* Flags of the command that are fixed when it begins, or that have commands of their own. */
static const char *const fixed[] = { "--socket",    "--any-uid", "--principal", "--timeout",
                                     "--model",     "--system",  "--messages",  "--tools",
                                     "--transport", "--parts",   "--no-history" };

bool settings_exists(size_t index)
{
        struct cli_row row;

        return cli_describe_flag(index, &row);
}

const char *settings_name(size_t index)
{
        struct cli_row row;

        if (!cli_describe_flag(index, &row) || !(row.commands & CLI_CHAT))
                return NULL;
        for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
                if (!strcmp(row.name, fixed[i]))
                        return NULL;
        return row.name + 2;
}

static bool is_fixed(const char *name)
{
        for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
                if (!strcmp(fixed[i] + 2, name))
                        return true;
        return false;
}

void settings_print_changed(const struct chat *chat)
{
        char value[512];

        for (size_t i = 0; settings_exists(i); i++)
                if (settings_name(i) && cli_show_flag(chat->cli, i, value, sizeof(value)))
                        note("%-12s %s = %s", "setting", settings_name(i), value);
}

static void list(const struct chat *chat)
{
        size_t columns = terminal_columns(&chat->terminal);
        struct cli_row row;
        char value[512], left[560];

        for (size_t i = 0; cli_describe_flag(i, &row); i++) {
                if (!settings_name(i))
                        continue;
                if (!cli_show_flag(chat->cli, i, value, sizeof(value)))
                        snprintf(value, sizeof(value), "-");
                snprintf(left, sizeof(left), "  %-20s %-6s  ", settings_name(i), value);
                note("%s%.*s", left, columns > strlen(left) ? (int)(columns - strlen(left) - 1) : 0,
                     row.help);
        }
}

/* The flags point at their values.  NULL: out of memory. */
static const char *keep_text(struct chat *chat, const char *text)
{
        struct kept_text *kept = malloc(sizeof(*kept) + strlen(text) + 1);

        if (!kept)
                return NULL;
        strcpy(kept->text, text);
        kept->next = chat->texts;
        chat->texts = kept;
        return kept->text;
}

/* Quotes around a value, for one with blanks at its ends. */
static char *unquote(char *value)
{
        size_t bytes = strlen(value);

        if (bytes < 2 || *value != '"' || value[bytes - 1] != '"')
                return value;
        value[bytes - 1] = '\0';
        return value + 1;
}

/* The row of a setting that takes a value; false: there is none of this name. */
static bool find_row(const char *name, size_t *ret_index, struct cli_row *ret_row)
{
        for (size_t i = 0; cli_describe_flag(i, ret_row); i++) {
                *ret_index = i;
                if (settings_name(i) && !strcmp(settings_name(i), name))
                        return ret_row->value;
        }
        return false;
}

/* Without a value: what it is, and what it means. */
static bool show_setting(const struct chat *chat, const char *name)
{
        struct cli_row row;
        char value[512];
        size_t index;

        if (!find_row(name, &index, &row))
                return false;
        if (!cli_show_flag(chat->cli, index, value, sizeof(value)))
                snprintf(value, sizeof(value), "as by default");
        note("%s is %s: %s. /set %s %s sets it, /set %s default takes that back.", name, value,
             row.help, name, row.value, name);
        return true;
}

/* A file that is read with each question should be there now. */
static bool is_readable(const char *name, const char *path)
{
        if ((strcmp(name, "schema") && strcmp(name, "grammar")) || !access(path, R_OK))
                return true;
        note("%s is not changed: %s: %s.", name, path, strerror(errno));
        return false;
}

void settings_set(struct chat *chat, char *arguments)
{
        char *name = arguments, *value;
        const char *kept = NULL;

        if (!strncmp(name, "parameter ", 10)) /* as in ollama */
                name += 10 + strspn(name + 10, " ");
        if (!strncmp(name, "--", 2))
                name += 2;
        if (!*name) {
                list(chat);
                return;
        }
        value = name + strcspn(name, " ");
        if (*value) {
                *value++ = '\0';
                value += strspn(value, " ");
        }
        if (is_fixed(name)) {
                note("%s cannot change while the chat runs, or has a command: /help.", name);
                return;
        }
        if (!*value && show_setting(chat, name))
                return;
        if (!*value)
                value = (char *)(uintptr_t) "on"; /* only a switch takes that */
        if (strcmp(value, "default")) {
                kept = keep_text(chat, unquote(value));
                if (!kept || !is_readable(name, kept))
                        return;
        }
        if (!cli_set_flag(chat->cli, name, kept))
                note("%s is %s.", name, kept ? kept : "as by default");
}

void settings_system(struct chat *chat, char *arguments)
{
        struct branch *branch = session_branch(&chat->session);
        const struct message *system = branch_system(branch);
        const char *text = strcmp(arguments, "\"\"") ? arguments : "";

        if (!*arguments) {
                note("%s", system ? system->text.at : "There is no system message.");
                return;
        }
        session_close_handle(&chat->session);
        if (branch_set_system(branch, text, strlen(text)))
                note("There is not enough memory.");
        else
                note("%s",
                     *text ? "The system message is set." : "There is no system message any more.");
}
