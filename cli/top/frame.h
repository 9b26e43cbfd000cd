/*
 * A frame: the lines that a view draws, each cut at the width of the screen.  Text is made safe for
 * a terminal here, so no name can control it.
 *
 * A frame for a screen has escape sequences for the place and the style of its lines, and always
 * covers the whole screen.  A plain frame has lines of text only.
 */
#ifndef CLI_TOP_FRAME_H
#define CLI_TOP_FRAME_H

#include <stdbool.h>

#include "json/bytes.h"

enum frame_style {
        FRAME_PLAIN,
        FRAME_TITLE,    /* the first line, and the heads of tables */
        FRAME_SELECTED, /* the row that keys act on */
        FRAME_LABEL,
        FRAME_FAINT,
        FRAME_GOOD,
        FRAME_BUSY,
        FRAME_WARNING,
        FRAME_BAD,
};

struct frame {
        unsigned rows, columns; /* rows 0: no limit */
        bool plain, coloured;
        unsigned row, cell; /* where the next text comes; the first row is 0 */
        enum frame_style line_style;
        struct bytes text;
        int result; /* 0 or -ENOMEM */
};

/* coloured false: styles that are no colours remain. */
struct frame frame_screen(unsigned rows, unsigned columns, bool coloured);
struct frame frame_plain(unsigned columns);
void frame_deinit(struct frame *frame);

/* Rows that are left. */
unsigned frame_left(const struct frame *frame);

/* Gives the whole line this style, also behind its text; call it at the beginning of a line. */
void frame_line_style(struct frame *frame, enum frame_style style);
void frame_add(struct frame *frame, enum frame_style style, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Appends at most `cells` of the text, filled with blanks up to `cells`: to its right or left. */
void frame_column(struct frame *frame, const char *text, unsigned cells, bool right);
/* Appends blanks up to that cell. */
void frame_skip_to(struct frame *frame, unsigned cell);
void frame_end_line(struct frame *frame);
/* Clears the lines that are left; then `text` is whole. */
void frame_end(struct frame *frame);

#endif
