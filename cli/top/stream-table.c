#include "cli/top/stream-table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/amounts.h"
#include "cli/work-reader.h"
#include "json/plural.h"

#define TEXT_BYTES  320
#define FACTS_CELLS 36u /* with fewer, the reason is a word */

enum column {
        COLUMN_USER,
        COLUMN_CLASS,
        COLUMN_STATE,
        COLUMN_PREFILL,
        COLUMN_RATE,
        COLUMN_TOKENS,
        COLUMN_CACHED,
        COLUMN_AGE,
        COLUMN_PROCESS,
        COLUMN_NUMBER,
        COLUMN_WAITS,
        COLUMN_COUNT,
};

/*
 * A column is shown if the screen is at least `least` cells wide; from `roomy` on, it has its full
 * width.  The last column takes what is left.
 */
static const struct {
        const char *head;
        unsigned least, width, roomy, full;
        bool right;
} columns[COLUMN_COUNT] = {
        [COLUMN_USER] = { "user", 0, 12, 110, 24, false },
        [COLUMN_CLASS] = { "class", 50, 6, 100, 11, false },
        [COLUMN_STATE] = { "state", 28, 8, 0, 8, false },
        [COLUMN_PREFILL] = { "prompt", 58, 6, 0, 6, true },
        [COLUMN_RATE] = { "tok/s", 20, 6, 0, 6, true },
        [COLUMN_TOKENS] = { "tokens", 66, 7, 0, 7, true },
        [COLUMN_CACHED] = { "cached", 74, 6, 0, 6, true },
        [COLUMN_AGE] = { "age", 36, 6, 0, 6, true },
        [COLUMN_PROCESS] = { "process", 120, 8, 0, 8, true },
        [COLUMN_NUMBER] = { "number", 150, 20, 0, 20, true },
        [COLUMN_WAITS] = { "waits for", 70, 1, 0, 1, false },
};

static unsigned column_width(const struct frame *frame, enum column column)
{
        if (frame->columns < columns[column].least)
                return 0;
        if (column == COLUMN_WAITS)
                return frame->columns > frame->cell ? frame->columns - frame->cell : 0;
        return frame->columns >= columns[column].roomy && columns[column].roomy
                       ? columns[column].full
                       : columns[column].width;
}

/* How much of the prompt is read.  Afterwards all of it is. */
static void add_prompt(const struct stream_row *row, char *to)
{
        double part = 100;

        if (!row->has_prompt)
                snprintf(to, TEXT_BYTES, "-");
        else if (row->prompt > 0)
                part = 100 * (double)row->prompt_done / (double)row->prompt;
        if (row->has_prompt)
                snprintf(to, TEXT_BYTES, "%.0f%%", part > 100 ? 100 : part);
}

static void add_rate(const struct stream_row *row, char *to)
{
        if (row->rate > 0)
                snprintf(to, TEXT_BYTES, row->rate < 999.95 ? "%.1f" : "%.0f", row->rate);
        else
                snprintf(to, TEXT_BYTES, "-");
}

static const char *short_class(const struct stream_row *row)
{
        return !strcmp(row->priority, "interactive")  ? "inter."
               : !strcmp(row->priority, "background") ? "backg."
                                                      : row->priority;
}

/* "blocks, 2 pauses": the line below the table has the whole text for the selected stream. */
static void add_short_facts(const struct view *view, const struct stream_row *row, char *to)
{
        uint64_t pauses = work_number(view->snapshot->work, row->node, "preemptions");
        size_t used;

        snprintf(to, TEXT_BYTES, "%.32s", row->waits_for);
        used = strlen(to);
        if (pauses)
                snprintf(to + used, TEXT_BYTES - used, "%s%" PRIu64 " pause%s", used ? ", " : "",
                         pauses, plural(pauses));
}

/* The text of the row in that column. */
static const char *field(const struct view *view, const struct stream_row *row, enum column column,
                         unsigned width, char to[TEXT_BYTES])
{
        char age[AMOUNT_BYTES];

        switch (column) {
        case COLUMN_USER:
                return row->user;
        case COLUMN_CLASS:
                return width < columns[COLUMN_CLASS].full ? short_class(row) : row->priority;
        case COLUMN_STATE:
                return row->state;
        case COLUMN_PREFILL:
                add_prompt(row, to);
                break;
        case COLUMN_RATE:
                add_rate(row, to);
                break;
        case COLUMN_TOKENS:
                snprintf(to, TEXT_BYTES, "%" PRIu64, row->tokens);
                break;
        case COLUMN_CACHED:
                snprintf(to, TEXT_BYTES, row->has_cached ? "%" PRIu64 : "-", row->cached);
                break;
        case COLUMN_AGE:
                snprintf(to, TEXT_BYTES, "%s", amount_age(row->age_ms, age));
                break;
        case COLUMN_PROCESS:
                snprintf(to, TEXT_BYTES, row->pid ? "%" PRIu64 : "-", row->pid);
                break;
        case COLUMN_NUMBER:
                snprintf(to, TEXT_BYTES, "%" PRIu64, row->number);
                break;
        default:
                if (width < FACTS_CELLS)
                        add_short_facts(view, row, to);
                else
                        work_facts(view->snapshot->work, row->node, to);
        }
        return to;
}

static void draw_head(struct frame *frame)
{
        frame_line_style(frame, FRAME_TITLE);
        for (enum column column = 0; column < COLUMN_COUNT; column++) {
                unsigned width = column_width(frame, column);

                if (width) {
                        frame_column(frame, columns[column].head, width, columns[column].right);
                        frame_add(frame, FRAME_PLAIN, " ");
                }
        }
        frame_end_line(frame);
}

static enum frame_style style_of(const struct stream_row *row)
{
        if (!strcmp(row->state, "prefill") || !strcmp(row->state, "encoding"))
                return FRAME_BUSY;
        if (!strcmp(row->state, "running"))
                return FRAME_GOOD;
        if (!strcmp(row->state, "waiting") || !strcmp(row->state, "paused"))
                return FRAME_WARNING;
        return FRAME_FAINT;
}

static void draw_row(const struct view *view, struct frame *frame, const struct stream_row *row)
{
        char text[TEXT_BYTES], cell[TEXT_BYTES];

        if (row->number == view->selected)
                frame_line_style(frame, FRAME_SELECTED);
        for (enum column column = 0; column < COLUMN_COUNT; column++) {
                unsigned width = column_width(frame, column);

                if (!width)
                        continue;
                if (column == COLUMN_STATE) {
                        snprintf(cell, sizeof(cell), "%-8.8s", row->state);
                        frame_add(frame, style_of(row), "%s", cell);
                } else {
                        frame_column(frame, field(view, row, column, width, text), width,
                                     columns[column].right);
                }
                frame_add(frame, FRAME_PLAIN, " ");
        }
        frame_end_line(frame);
}

/* Moves the first row so that the selected one is among those that are shown. */
static void scroll(struct view *view)
{
        const struct snapshot *snapshot = view->snapshot;
        size_t at = snapshot_find(snapshot, view->selected);

        if (at < snapshot->stream_count) {
                if (at < view->first)
                        view->first = at;
                if (view->page && at >= view->first + view->page)
                        view->first = at - view->page + 1;
        }
        if (view->first + view->page > snapshot->stream_count)
                view->first = snapshot->stream_count > view->page
                                      ? snapshot->stream_count - view->page
                                      : 0;
}

void stream_table_draw(struct view *view, struct frame *frame, unsigned below)
{
        const struct snapshot *snapshot = view->snapshot;
        unsigned left;

        draw_head(frame);
        left = frame_left(frame) > below ? frame_left(frame) - below : 0;
        view->page = left < snapshot->stream_count ? left : snapshot->stream_count;
        scroll(view);
        for (size_t i = 0; i < view->page; i++)
                draw_row(view, frame, &snapshot->streams[view->first + i]);
}
