#include "cli/chat/plain-reader.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#define PASTE_BEGINS "\x1b[200~"
#define PASTE_ENDS   "\x1b[201~"
#define MARK_BYTES   6u

/* Removes the mark if the bytes at `at` are one. */
static bool take_mark(struct bytes *held, size_t at, const char *mark)
{
        if (held->count - at < MARK_BYTES || memcmp(held->at + at, mark, MARK_BYTES))
                return false;
        memmove(held->at + at, held->at + at + MARK_BYTES, held->count - at - MARK_BYTES);
        held->count -= MARK_BYTES;
        return true;
}

/*
 * Where the first line ends, without the marks around pastes; false: its end has not come.  The
 * newlines of a paste do not end it.
 */
static bool find_end(struct bytes *held, bool *pastes, size_t *at)
{
        for (; *at < held->count; (*at)++) {
                while (take_mark(held, *at, *pastes ? PASTE_ENDS : PASTE_BEGINS))
                        *pastes = !*pastes;
                if (*at == held->count)
                        return false;
                if (held->at[*at] == '\x1b' && held->count - *at < MARK_BYTES)
                        return false; /* the mark may not be complete */
                if (held->at[*at] == '\n' && !*pastes)
                        return true;
        }
        return false;
}

/* Signals that came while the line is read; LINE_READ: go on. */
static enum line_result obey(struct plain_reader *reader, const char *prompt)
{
        unsigned signals = terminal_take(reader->terminal);
        ssize_t n = 0;

        if (signals & TERMINAL_END)
                return LINE_TOLD_TO_END;
        if (signals & TERMINAL_INTERRUPT) {
                reader->held.count = 0;
                n = write(reader->terminal->out, "\n", 1);
                return n < 0 ? LINE_END : LINE_INTERRUPTED;
        }
        if (signals & TERMINAL_STOP) {
                terminal_suspend(reader->terminal);
                n = write(reader->terminal->out, prompt, strlen(prompt));
        }
        return n < 0 ? LINE_END : LINE_READ;
}

static enum line_result read_more(struct plain_reader *reader)
{
        struct bytes *held = &reader->held;
        ssize_t n;

        if (bytes_reserve(held, 4096))
                return LINE_FAILED;
        n = read(STDIN_FILENO, held->at + held->count, held->size - held->count);
        if (n > 0)
                held->count += (size_t)n;
        return n > 0 ? LINE_READ : LINE_END;
}

static enum line_result give_line(struct bytes *held, size_t end, struct bytes *to)
{
        int r = bytes_add(to, held->at, end);

        if (!r)
                r = bytes_add(to, "", 1);
        if (r)
                return LINE_FAILED;
        to->count--;
        held->count -= end + 1;
        memmove(held->at, held->at + end + 1, held->count);
        return LINE_READ;
}

enum line_result plain_reader_read(struct plain_reader *reader, const char *prompt,
                                   struct bytes *to)
{
        static const char begin[] = "\x1b[?2004h", end[] = "\x1b[?2004l";
        int out = reader->terminal->out;
        enum line_result r = LINE_READ;
        bool pastes = false;
        size_t at = 0;

        terminal_usual(reader->terminal);
        if (write(out, begin, sizeof(begin) - 1) < 0 || write(out, prompt, strlen(prompt)) < 0)
                return LINE_END;
        while (r == LINE_READ && !find_end(&reader->held, &pastes, &at)) {
                bool readable = terminal_wait(reader->terminal, STDIN_FILENO, POLLIN, -1);

                r = obey(reader, prompt);
                if (r == LINE_READ && readable)
                        r = read_more(reader);
        }
        if (r == LINE_READ)
                r = give_line(&reader->held, at, to);
        terminal_quiet(reader->terminal);
        return write(out, end, sizeof(end) - 1) < 0 ? LINE_END : r;
}
