#include "cli/chat/branching.h"

#include <stdio.h>
#include <string.h>

#include "cli/chat/state.h"
#include "json/plural.h"

void branching_clear(struct chat *chat, char *arguments)
{
        const struct branch *branch = session_branch(&chat->session);

        (void)arguments;
        session_close_handle(&chat->session);
        session_cut(&chat->session, branch_system(branch) ? 1 : 0, false);
        chat->withdrawn.count = 0;
        note("A new conversation begins.");
}

void branching_undo(struct chat *chat, char *arguments)
{
        const struct branch *branch = session_branch(&chat->session);
        size_t turns = branch_turns(branch), last;

        (void)arguments;
        if (!turns) {
                note("There is no question to take back.");
                return;
        }
        last = branch_turn(branch, turns - 1);
        note("Taken back: %.60s%s", branch->messages[last].text.at,
             branch->messages[last].text.count > 60 ? " ..." : "");
        session_cut(&chat->session, last, false);
        chat->withdrawn.count = 0;
}

/* The words of /branches are no names, and a name must not look like a number. */
static bool is_name(const char *name)
{
        size_t bytes = strlen(name);

        if (bytes <= BRANCH_NAME_MAX && !strpbrk(name, " \t\n") && strcmp(name, "name") &&
            strcmp(name, "drop") && !(*name >= '0' && *name <= '9'))
                return true;
        note("A branch cannot have the name %.40s: it may have %u bytes and no blanks, must not "
             "begin with a digit, and is neither \"name\" nor \"drop\".",
             name, BRANCH_NAME_MAX);
        return false;
}

static bool is_free(const struct chat *chat, const char *name)
{
        if (session_find(&chat->session, name) == chat->session.count)
                return true;
        note("There is a branch %s already.", name);
        return false;
}

void branching_fork(struct chat *chat, char *arguments)
{
        if (!is_name(arguments) || (*arguments && !is_free(chat, arguments)))
                return;
        if (session_fork(&chat->session, arguments) == OUTCOME_DONE)
                note("This is branch %s now; /branches lists all and goes back.",
                     session_branch(&chat->session)->name);
}

static void list(const struct chat *chat)
{
        for (size_t i = 0; i < chat->session.count; i++) {
                const struct branch *branch = chat->session.branches[i];
                size_t turns = branch_turns(branch), last = branch_turn(branch, turns - 1);
                char tokens[48] = "";

                if (branch->handle)
                        snprintf(tokens, sizeof(tokens), ", %zu token%s", branch->length,
                                 plural(branch->length));
                note("%c %zu %-12s %zu turn%s%s%s%.40s", i == chat->session.current ? '*' : ' ',
                     i + 1, branch->name, turns, plural(turns), tokens, turns ? ": " : "",
                     turns ? branch->messages[last].text.at : "");
        }
}

static void rename_current(struct chat *chat, const char *name)
{
        struct branch *branch = session_branch(&chat->session);

        if (!*name || !is_name(name) || !is_free(chat, name))
                return;
        snprintf(branch->name, sizeof(branch->name), "%s", name);
        note("This branch is %s now.", name);
}

static bool find(const struct chat *chat, const char *which, size_t *ret_index)
{
        *ret_index = session_find(&chat->session, which);
        if (*ret_index < chat->session.count)
                return true;
        note("There is no branch %.40s; /branches lists them.", which);
        return false;
}

static void drop(struct chat *chat, const char *which)
{
        size_t index;

        if (!find(chat, which, &index))
                return;
        if (chat->session.count == 1) {
                note("This is the only branch; /clear empties it.");
                return;
        }
        session_remove(&chat->session, index);
        chat->withdrawn.count = 0;
        list(chat);
}

void branching_branches(struct chat *chat, char *arguments)
{
        size_t index;

        if (!*arguments) {
                list(chat);
        } else if (!strncmp(arguments, "name ", 5)) {
                rename_current(chat, arguments + 5);
        } else if (!strncmp(arguments, "drop ", 5)) {
                drop(chat, arguments + 5);
        } else if (find(chat, arguments, &index)) {
                chat->session.current = index;
                chat->withdrawn.count = 0;
                list(chat);
        }
}
