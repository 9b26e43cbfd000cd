#include "cli/chat/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/chat/facts.h"
#include "cli/chat/state.h"
#include "cli/cli.h"
#include "json/plural.h"
#include "json/reader.h"

#define NODES_MAX 1000000u

/* "~/" is the user's home, as in a shell.  False: the path is too long. */
static bool find_path(const char *given, char *path, size_t bytes)
{
        const char *home = getenv("HOME");
        bool is_home = !strncmp(given, "~/", 2) && home;

        return (size_t)snprintf(path, bytes, "%s%s", is_home ? home : "",
                                is_home ? given + 1 : given) < bytes;
}

bool files_read_branch(const char *path, struct branch *branch)
{
        struct bytes text = { 0 };
        char why[256];
        int r = input_file(path, &text);

        if (!r) {
                r = branch_read(branch, &text, why, sizeof(why));
                if (r)
                        note("%s: %s", path, why);
        }
        bytes_deinit(&text);
        return !r;
}

bool files_read_tools(const char *path, struct branch *branch)
{
        struct json_document *json = NULL;
        struct bytes text = { 0 };
        struct json_builder builder;
        char why[256] = "it is no list of tools";
        int r = input_file(path, &text);

        if (r)
                return false;
        r = json_parse(text.at, text.count, NODES_MAX, &json, why, sizeof(why));
        if (!r && json_kind(json, 0) != JSON_ARRAY)
                r = -EINVAL;
        if (!r) {
                branch->tools.count = 0;
                builder = json_build(&branch->tools);
                json_put_node(&builder, json, 0);
                r = json_put_end(&builder);
        }
        if (r)
                note("%s: %s", path, why);
        json_free(json);
        bytes_deinit(&text);
        return !r;
}

/* ---- /save ---- */

/* Writes a new file beside it, and renames it: the old one stays whole until the new one is. */
static int write_file(const char *path, const struct bytes *text)
{
        char temporary[PATH_MAX];
        int fd, r = 0;

        if ((size_t)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= sizeof(temporary))
                return -ENAMETOOLONG;
        fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        for (size_t at = 0; !r && at < text->count;) {
                ssize_t n = write(fd, text->at + at, text->count - at);

                if (n < 0)
                        r = -errno;
                else
                        at += (size_t)n;
        }
        if (fsync(fd) < 0 && !r)
                r = -errno;
        close(fd);
        if (!r && rename(temporary, path) < 0)
                r = -errno;
        if (r)
                unlink(temporary);
        return r;
}

static bool may_write(struct chat *chat, const char *path)
{
        char question[192];

        if (access(path, F_OK) < 0 || (chat->saved_as.count && !strcmp(chat->saved_as.at, path)))
                return true;
        snprintf(question, sizeof(question), "%.120s is there already.  Overwrite it?", path);
        return reading_yes(&chat->reading, question, false);
}

static void note_file(struct chat *chat, const char *path)
{
        chat->saved_as.count = 0;
        if (bytes_add(&chat->saved_as, path, strlen(path) + 1))
                chat->saved_as.count = 0;
}

void files_save(struct chat *chat, char *arguments)
{
        const struct branch *branch = session_branch(&chat->session);
        struct bytes text = { 0 };
        char path[PATH_MAX];
        int r;

        if (!*arguments && chat->saved_as.count)
                arguments = chat->saved_as.at;
        if (!*arguments || !find_path(arguments, path, sizeof(path))) {
                note("/save needs the name of a file.");
                return;
        }
        if (!may_write(chat, path))
                return;
        r = branch_write(branch, &text);
        if (!r)
                r = write_file(path, &text);
        bytes_deinit(&text);
        if (r) {
                note("%s cannot be written: %s", path, strerror(-r));
                return;
        }
        note("Saved: %zu message%s in %s", branch->count, plural(branch->count), path);
        note_file(chat, path);
}

/* ---- /load ---- */

/* Puts the loaded branch in place of one without messages; else it is a new one. */
static bool place(struct chat *chat, struct branch *branch, const char *path)
{
        struct session *session = &chat->session;
        const char *slash = strrchr(path, '/');
        char name[BRANCH_NAME_MAX + 1];
        size_t empty = session->current;
        bool replaces = !branch_turns(session->branches[empty]);

        snprintf(name, sizeof(name), "%.24s", slash ? slash + 1 : path);
        name[strcspn(name, ". \t\n")] = '\0';
        if (*name >= '0' && *name <= '9')
                *name = '\0';
        if (session_add(session, branch, name)) {
                note("There is no room for another branch; /branches drop makes some.");
                return false;
        }
        if (replaces)
                session_remove(session, empty);
        return true;
}

void files_load(struct chat *chat, char *arguments)
{
        struct branch *branch = calloc(1, sizeof(*branch));
        char path[PATH_MAX];

        if (!branch || !*arguments || !find_path(arguments, path, sizeof(path))) {
                note("/load needs the name of a file.");
                branch_free(branch);
                return;
        }
        if (!files_read_branch(path, branch) || !place(chat, branch, path)) {
                branch_free(branch);
                return;
        }
        chat->withdrawn.count = 0;
        note_file(chat, path);
        note("Loaded: %zu message%s, as branch %s.", branch->count, plural(branch->count),
             branch->name);
        facts_print_turns(chat, 2);
        if (branch->count && branch->messages[branch->count - 1].role == MESSAGE_USER)
                note("It ends with a question; /retry asks it.");
}

/* ---- /tools ---- */

void files_tools(struct chat *chat, char *arguments)
{
        struct branch *branch = session_branch(&chat->session);
        char path[PATH_MAX];

        if (*arguments && !strcmp(arguments, "off")) {
                branch->tools.count = 0;
                session_close_handle(&chat->session);
        } else if (*arguments) {
                if (!find_path(arguments, path, sizeof(path)) || !files_read_tools(path, branch))
                        return;
                session_close_handle(&chat->session);
                if (chat->link.model.tool_dialect && !*chat->link.model.tool_dialect)
                        note("This model writes calls in no way that the daemon can read.");
        }
        if (branch->tools.count)
                facts_print_tools(branch);
        else
                note("There are no tools.");
}
