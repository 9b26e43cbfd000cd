#include "cli/chat/reading.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MARK       "\"\"\""
#define MARK_BYTES 3u
#define MORE       "... "

static void remember(void *arg, const char *text)
{
        struct reading *reading = arg;

        if (reading->editor)
                line_editor_remember(reading->editor, text);
}

void reading_open(struct reading *reading, struct terminal *terminal, bool with_history,
                  line_complete_fn *complete, void *arg)
{
        *reading = (struct reading){ .editor = line_editor_open(terminal, complete, arg),
                                     .plain = { .terminal = terminal } };
        terminal->plain = !reading->editor;
        terminal_quiet(terminal);
        if (with_history)
                history_open(&reading->history, remember, reading);
        else
                history_none(&reading->history);
}

void reading_close(struct reading *reading)
{
        reading->editor = line_editor_close(reading->editor);
        bytes_deinit(&reading->plain.held);
        history_close(&reading->history);
}

static enum line_result read_line(struct reading *reading, const char *prompt, struct bytes *to)
{
        return reading->editor ? line_editor_read(reading->editor, prompt, to)
                               : plain_reader_read(&reading->plain, prompt, to);
}

/* Reads one more line behind a newline.  ^D there drops the input, as ^C does. */
static enum line_result read_next(struct reading *reading, struct bytes *text)
{
        enum line_result r;

        if (bytes_add(text, "\n", 1))
                return LINE_FAILED;
        r = read_line(reading, MORE, text);
        return r == LINE_END ? LINE_INTERRUPTED : r;
}

/* Where a block begins: at the beginning, or behind a command; NULL: there is none. */
static char *find_block(const struct bytes *text)
{
        char *at = text->at;

        if (*at == '/') {
                at++;
                while (isalnum((unsigned char)*at))
                        at++;
                if (*at != ' ')
                        return NULL;
                at += strspn(at, " ");
        }
        return strncmp(at, MARK, MARK_BYTES) ? NULL : at;
}

/* Reads up to the end of the block, and takes its marks away. */
static enum line_result read_block(struct reading *reading, struct input *input, char *begin)
{
        struct bytes *text = &input->text;
        size_t at = (size_t)(begin - text->at);
        enum line_result r = LINE_READ;
        char *end;

        memmove(begin, begin + MARK_BYTES, text->count - at - MARK_BYTES + 1);
        text->count -= MARK_BYTES;
        while (r == LINE_READ && !(end = strstr(text->at + at, MARK)))
                r = read_next(reading, text);
        if (r != LINE_READ)
                return r;
        *end = '\0';
        text->count = (size_t)(end - text->at);
        if (text->at[at] == '\n') { /* behind the first mark */
                memmove(text->at + at, text->at + at + 1, text->count - at);
                text->count--;
        }
        if (text->count > at && text->at[text->count - 1] == '\n') /* before the last mark */
                text->at[--text->count] = '\0';
        input->block = !at;
        return LINE_READ;
}

static enum line_result read_continued(struct reading *reading, struct bytes *text)
{
        enum line_result r = LINE_READ;

        while (r == LINE_READ && text->count && text->at[text->count - 1] == '\\') {
                text->count--;
                r = read_next(reading, text);
        }
        return r;
}

/* The editor shows what is typed by itself; it gets what the file of the history gets. */
static void keep(struct reading *reading, const char *text)
{
        if (history_add(&reading->history, text))
                remember(reading, text);
}

enum line_result reading_input(struct reading *reading, const char *prompt, struct input *input)
{
        enum line_result r;
        char *block;

        *input = (struct input){ 0 };
        r = read_line(reading, prompt, &input->text);
        if (r != LINE_READ)
                return r;
        block = find_block(&input->text);
        r = block ? read_block(reading, input, block) : read_continued(reading, &input->text);
        if (r == LINE_READ)
                keep(reading, input->text.at);
        return r;
}

enum line_result reading_reply(struct reading *reading, const char *prompt, struct bytes *to)
{
        struct input input = { 0 };
        enum line_result r = read_line(reading, prompt, &input.text);
        char *block;

        if (r == LINE_READ) {
                block = find_block(&input.text);
                r = block ? read_block(reading, &input, block)
                          : read_continued(reading, &input.text);
        }
        if (r == LINE_READ && bytes_add(to, input.text.at, input.text.count + 1))
                r = LINE_FAILED;
        else if (r == LINE_READ)
                to->count--;
        bytes_deinit(&input.text);
        return r;
}

bool reading_yes(struct reading *reading, const char *question, bool otherwise)
{
        struct bytes reply = { 0 };
        char prompt[192];
        bool yes = false;

        snprintf(prompt, sizeof(prompt), "%s [%s] ", question, otherwise ? "Y/n" : "y/N");
        if (read_line(reading, prompt, &reply) == LINE_READ)
                yes = reply.count ? (*reply.at | ' ') == 'y' : otherwise;
        bytes_deinit(&reply);
        return yes;
}
