#include "cli/top/frame.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cells.h"

/*
 * A terminal that knows ?2026 shows the frame when it is whole; others ignore that.  The cursor is
 * not drawn, so it may stay anywhere.
 */
#define BEGIN "\x1b[?2026h"
#define END   "\x1b[?2026l"

static void put(struct frame *frame, const char *bytes)
{
        if (!frame->result)
                frame->result = bytes_add(&frame->text, bytes, strlen(bytes));
}

static const char *escape_of(const struct frame *frame, enum frame_style style)
{
        static const char *const plain[] = {
                [FRAME_TITLE] = "\x1b[7m", [FRAME_SELECTED] = "\x1b[7m", [FRAME_LABEL] = "\x1b[1m",
                [FRAME_BAD] = "\x1b[1m",   [FRAME_FAINT] = "\x1b[2m",
        };
        static const char *const colours[] = {
                [FRAME_TITLE] = "\x1b[30;46m", [FRAME_SELECTED] = "\x1b[7m",
                [FRAME_LABEL] = "\x1b[36m",    [FRAME_FAINT] = "\x1b[2m",
                [FRAME_GOOD] = "\x1b[32m",     [FRAME_BUSY] = "\x1b[34m",
                [FRAME_WARNING] = "\x1b[33m",  [FRAME_BAD] = "\x1b[1;31m",
        };
        size_t plain_count = sizeof(plain) / sizeof(plain[0]);

        if (frame->plain || style == FRAME_PLAIN)
                return NULL;
        if (frame->coloured)
                return colours[style];
        return style < plain_count ? plain[style] : NULL;
}

struct frame frame_screen(unsigned rows, unsigned columns, bool coloured)
{
        struct frame frame = { .rows = rows, .columns = columns, .coloured = coloured };

        put(&frame, BEGIN "\x1b[1;1H\x1b[m");
        return frame;
}

struct frame frame_plain(unsigned columns)
{
        return (struct frame){ .columns = columns, .plain = true };
}

void frame_deinit(struct frame *frame)
{
        bytes_deinit(&frame->text);
}

unsigned frame_left(const struct frame *frame)
{
        if (!frame->rows)
                return ~0u;
        return frame->rows > frame->row ? frame->rows - frame->row : 0;
}

static bool is_full(const struct frame *frame)
{
        return !frame_left(frame) || frame->cell >= frame->columns;
}

void frame_line_style(struct frame *frame, enum frame_style style)
{
        const char *escape = escape_of(frame, style);

        if (!frame_left(frame))
                return;
        frame->line_style = style;
        if (escape)
                put(frame, escape);
}

void frame_add(struct frame *frame, enum frame_style style, const char *format, ...)
{
        const char *escape = frame->line_style == FRAME_PLAIN ? escape_of(frame, style) : NULL;
        char text[1024];
        unsigned used = 0;
        va_list values;

        if (is_full(frame))
                return;
        va_start(values, format);
        vsnprintf(text, sizeof(text), format, values);
        va_end(values);
        if (escape)
                put(frame, escape);
        if (!frame->result)
                frame->result = cells_add(&frame->text, text, frame->columns - frame->cell, &used);
        frame->cell += used;
        if (escape)
                put(frame, "\x1b[m");
}

static void add_blanks(struct frame *frame, unsigned count)
{
        for (; count && !is_full(frame); count--, frame->cell++)
                put(frame, " ");
}

void frame_column(struct frame *frame, const char *text, unsigned cells, bool right)
{
        struct bytes cut = { 0 };
        unsigned used = 0;
        int r = cells_add(&cut, text, cells, &used);

        if (!r)
                r = bytes_add(&cut, "", 1);
        if (right)
                add_blanks(frame, cells - used);
        if (r)
                frame->result = r;
        else
                frame_add(frame, FRAME_PLAIN, "%s", cut.at);
        if (!right)
                add_blanks(frame, cells - used);
        bytes_deinit(&cut);
}

void frame_skip_to(struct frame *frame, unsigned cell)
{
        if (cell > frame->cell)
                add_blanks(frame, cell - frame->cell);
}

/* Blanks at the end of a line of text are of no use. */
static void trim(struct frame *frame)
{
        while (frame->text.count && frame->text.at[frame->text.count - 1] == ' ')
                frame->text.count--;
}

void frame_end_line(struct frame *frame)
{
        char place[32];

        if (!frame_left(frame))
                return;
        if (frame->plain) {
                trim(frame);
                put(frame, "\n");
        } else {
                if (frame->line_style != FRAME_PLAIN) {
                        frame_skip_to(frame, frame->columns);
                        put(frame, "\x1b[m");
                }
                /* At the end of a full line the cursor is still on its last cell. */
                if (frame->cell < frame->columns)
                        put(frame, "\x1b[K");
                snprintf(place, sizeof(place), "\x1b[%u;1H", frame->row + 2);
                if (frame->row + 1 < frame->rows)
                        put(frame, place);
        }
        frame->line_style = FRAME_PLAIN;
        frame->cell = 0;
        frame->row++;
}

void frame_end(struct frame *frame)
{
        if (frame->plain)
                return;
        while (frame_left(frame))
                frame_end_line(frame);
        put(frame, END);
}
