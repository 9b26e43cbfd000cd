#include "cli/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "json/utf8.h"
#include "json/writer.h"

#define WIDTH     80u /* if the terminal does not tell its width */
#define WIDTH_MAX 160u
#define GAP       3u /* cells between two columns */

static const char *const colours[COLUMNS_MAX] = { "\x1b[36m", "\x1b[33m", "\x1b[35m" };

static uint32_t screen_width(void)
{
        struct winsize size;

        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20)
                return WIDTH;
        return size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
}

void columns_open(struct columns *columns, uint32_t count)
{
        const char *no_colour = getenv("NO_COLOR");

        *columns = (struct columns){ .count = count, .live = isatty(STDOUT_FILENO) };
        columns->coloured = columns->live && count > 1 && !(no_colour && *no_colour);
        columns->width = (screen_width() - 1 - GAP * (count - 1)) / count;
}

/* ---- lines ---- */

static bool is_break(const char *text, size_t at)
{
        return text[at] == ' ' || text[at] == '\n';
}

/*
 * Finds the line of the text that begins at *at, and returns its end.  A line has at most `width`
 * characters, and breaks at a blank if it has one.  *at moves to the beginning of the next line.
 */
static size_t next_line(const struct bytes *text, size_t *at, uint32_t width)
{
        size_t begin = *at, blank = begin, to = begin, length;
        uint32_t cells = 0;

        while (to < text->count && text->at[to] != '\n' && cells++ < width) {
                if (text->at[to] == ' ')
                        blank = to;
                utf8_next(text->at + to, text->count - to, &length);
                to += length;
        }
        if (to < text->count && !is_break(text->at, to) && blank > begin)
                to = blank;
        *at = to;
        if (*at < text->count && is_break(text->at, *at))
                ++*at;
        return to;
}

/*
 * The number of lines of a text.  *ret_line becomes the line `wanted` if there is one; it points
 * into the text.
 */
static uint32_t count_lines(const struct columns *columns, uint32_t number, uint32_t wanted,
                            struct bytes *ret_line)
{
        const struct bytes *text = &columns->texts[number];
        uint32_t count = 0;

        for (size_t at = 0; at < text->count; count++) {
                size_t begin = at, end = next_line(text, &at, columns->width);

                if (count == wanted)
                        *ret_line = (struct bytes){ .at = text->at + begin, .count = end - begin };
        }
        return count;
}

/* ---- output ---- */

static void put(struct columns *columns, const char *text)
{
        /* Ignore the result: if memory is short, the line is incomplete. */
        (void)bytes_add(&columns->out, text, strlen(text));
}

static void put_number(struct columns *columns, const char *format, uint32_t number)
{
        char text[32];

        snprintf(text, sizeof(text), format, number);
        put(columns, text);
}

static void put_times(struct columns *columns, const char *text, uint32_t times)
{
        while (times--)
                put(columns, text);
}

/* Writes a line in the column's colour; `padded`: fills it to the column's width. */
static void put_line(struct columns *columns, uint32_t number, const struct bytes *line,
                     bool padded)
{
        uint32_t cells = 0;

        if (columns->coloured)
                put(columns, colours[number]);
        for (size_t at = 0, length; at < line->count; at += length, cells++) {
                int32_t point = utf8_next(line->at + at, line->count - at, &length);

                if (point < 0 || utf8_is_control(point))
                        put(columns, "?");
                else
                        (void)bytes_add(&columns->out, line->at + at, length);
        }
        if (columns->coloured)
                put(columns, "\x1b[m");
        if (padded && cells < columns->width)
                put_times(columns, " ", columns->width - cells);
}

static int flush(struct columns *columns)
{
        int r = screen_raw(columns->out.at, columns->out.count);

        columns->out.count = 0;
        return r;
}

/*
 * Redraws one line.  Before and after, the cursor is at the beginning of the row below the last
 * one.
 */
static void draw_line(struct columns *columns, uint32_t number, uint32_t row)
{
        struct bytes line = { 0 };
        uint32_t x = number * (columns->width + GAP);

        (void)count_lines(columns, number, row, &line);
        while (columns->rows <= row) {
                put(columns, "\n");
                columns->rows++;
        }
        put_number(columns, "\x1b[%uA\r", columns->rows - row);
        if (x)
                put_number(columns, "\x1b[%uC", x);
        put_line(columns, number, &line, true);
        put_number(columns, "\x1b[%uB\r", columns->rows - row);
}

int columns_add(struct columns *columns, uint32_t number, const char *text, size_t bytes)
{
        struct bytes *to = &columns->texts[number], unused;
        uint32_t lines, from;

        if (!to->count) /* the text must not begin with blanks */
                while (bytes && (*text == ' ' || *text == '\n'))
                        text++, bytes--;
        if (bytes_add(to, text, bytes)) {
                say("out of memory");
                return CLI_FAILED;
        }
        if (!columns->live || !to->count)
                return 0;
        lines = count_lines(columns, number, UINT32_MAX, &unused);
        from = columns->drawn[number] ? columns->drawn[number] - 1 : 0;
        while (from < lines)
                draw_line(columns, number, from++);
        columns->drawn[number] = lines;
        return flush(columns);
}

/* Prints all columns, row by row. */
static void print_all(struct columns *columns)
{
        uint32_t rows = 0, last;
        struct bytes line;

        for (uint32_t i = 0; i < columns->count; i++) {
                uint32_t lines = count_lines(columns, i, UINT32_MAX, &line);

                rows = lines > rows ? lines : rows;
        }
        for (uint32_t row = 0; row < rows; row++) {
                last = 0;
                for (uint32_t i = 0; i < columns->count; i++)
                        if (count_lines(columns, i, UINT32_MAX, &line) > row)
                                last = i;
                for (uint32_t i = 0; i <= last; i++) {
                        line = (struct bytes){ 0 };
                        (void)count_lines(columns, i, row, &line);
                        put_times(columns, " ", i ? GAP : 0);
                        put_line(columns, i, &line, i < last);
                }
                put(columns, "\n");
        }
}

int columns_close(struct columns *columns)
{
        int r;

        if (!columns->live)
                print_all(columns);
        r = flush(columns);
        for (uint32_t i = 0; i < columns->count; i++)
                bytes_deinit(&columns->texts[i]);
        bytes_deinit(&columns->out);
        return r;
}

int columns_fork(struct columns *columns)
{
        for (uint32_t i = 0; i < columns->count; i++) {
                put(columns, !i ? "├" : i + 1 < columns->count ? "┬" : "┐");
                put_times(columns, "─", i + 1 < columns->count ? columns->width + GAP - 1 : 0);
        }
        put(columns, "\n");
        return flush(columns);
}
