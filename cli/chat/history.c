#include "cli/chat/history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/chat/terminal.h"
#include "cli/cli.h"

#define ENTRIES_MAX 1000u      /* so many of the newest are kept ... */
#define BYTES_MAX   (1u << 20) /* ... when the file is opened and is larger than this */
#define ENTRY_MAX   (1u << 16) /* a longer input is not kept */

/* Makes all folders of the path that are missing. */
static int make_folders(char *path)
{
        for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                int r;

                *slash = '\0';
                r = mkdir(path, 0700);
                *slash = '/';
                if (r < 0 && errno != EEXIST)
                        return -errno;
        }
        return 0;
}

static bool find_path(char *path, size_t bytes)
{
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        int n;

        if (state && *state == '/')
                n = snprintf(path, bytes, "%s/samovar/chat-history", state);
        else if (home && *home == '/')
                n = snprintf(path, bytes, "%s/.local/state/samovar/chat-history", home);
        else
                return false;
        return n > 0 && (size_t)n < bytes;
}

/* An input is a line of the file: its newlines are \n, and its backslashes \\. */
static int add_entry(struct bytes *to, const char *text)
{
        int r = 0;

        for (; *text && !r; text++)
                r = *text == '\n'   ? bytes_add(to, "\\n", 2)
                    : *text == '\\' ? bytes_add(to, "\\\\", 2)
                                    : bytes_add(to, text, 1);
        return r ? r : bytes_add(to, "\n", 1);
}

/* Undoes that in place. */
static void decode(char *entry)
{
        char *to = entry;

        for (; *entry; entry++) {
                if (*entry == '\\' && entry[1]) {
                        entry++;
                        *to++ = *entry == 'n' ? '\n' : *entry;
                } else {
                        *to++ = *entry;
                }
        }
        *to = '\0';
}

/* The newest entries: where they begin. */
static char *newest(struct bytes *text)
{
        char *at = text->at + text->count;
        size_t entries = 0;

        while (at > text->at && entries <= ENTRIES_MAX)
                entries += *--at == '\n';
        return entries > ENTRIES_MAX ? strchr(at, '\n') + 1 : at;
}

/* Writes the newest entries over the file, which others do not use meanwhile. */
static void shorten(struct history *history, const char *from, size_t bytes)
{
        if (pwrite(history->fd, from, bytes, 0) == (ssize_t)bytes &&
            ftruncate(history->fd, (off_t)bytes) < 0)
                note("The history cannot be shortened: %s", strerror(errno));
}

static void note_last(struct history *history, const char *text)
{
        size_t bytes = strnlen(text, sizeof(history->last) - 1);

        memcpy(history->last, text, bytes);
        history->last[bytes] = '\0';
}

static int load(struct history *history, void (*remember)(void *arg, const char *text), void *arg)
{
        struct bytes text = { 0 };
        char *from, *end;
        int r;

        if (flock(history->fd, LOCK_EX) < 0)
                return -errno;
        r = input_read(history->fd, "the history", &text);
        if (!r) {
                from = newest(&text);
                if (text.count > BYTES_MAX)
                        shorten(history, from, (size_t)(text.at + text.count - from));
                for (; (end = strchr(from, '\n')); from = end + 1) {
                        *end = '\0';
                        decode(from);
                        remember(arg, from);
                        note_last(history, from);
                }
        }
        flock(history->fd, LOCK_UN);
        bytes_deinit(&text);
        return r ? -EIO : 0;
}

/* Opens the file for its owner only.  A link, or a file of another user, is refused. */
static int open_file(struct history *history, char *path)
{
        struct stat file;
        int r = make_folders(path);

        if (r)
                return r;
        history->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (history->fd < 0 || fstat(history->fd, &file) < 0)
                return -errno;
        if (!S_ISREG(file.st_mode) || file.st_uid != geteuid())
                return -EPERM;
        return fchmod(history->fd, 0600) < 0 ? -errno : 0;
}

void history_none(struct history *history)
{
        *history = (struct history){ .fd = -1 };
}

void history_open(struct history *history, void (*remember)(void *arg, const char *text), void *arg)
{
        char path[PATH_MAX];
        int r;

        history_none(history);
        if (!find_path(path, sizeof(path)))
                return;
        r = open_file(history, path);
        if (!r)
                r = load(history, remember, arg);
        if (r) {
                note("No history: %s: %s; --no-history goes without", path, strerror(-r));
                history_close(history);
        }
}

bool history_add(struct history *history, const char *text)
{
        struct bytes line = { 0 };
        ssize_t n = 0;

        if (*text == ' ' || strlen(text) > ENTRY_MAX || !text[strspn(text, " \t\n")] ||
            (strlen(text) < sizeof(history->last) && !strcmp(text, history->last)))
                return false;
        note_last(history, text);
        if (history->fd < 0)
                return true;
        if (!add_entry(&line, text)) {
                flock(history->fd, LOCK_EX);
                n = lseek(history->fd, 0, SEEK_END);
                if (n >= 0)
                        n = write(history->fd, line.at, line.count);
                flock(history->fd, LOCK_UN);
        }
        if (n < 0) {
                note("The history cannot be written any more: %s", strerror(errno));
                history_close(history);
        }
        bytes_deinit(&line);
        return true;
}

void history_close(struct history *history)
{
        if (history->fd >= 0)
                close(history->fd);
        history->fd = -1;
}
