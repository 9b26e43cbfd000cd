/* The table of streams: its columns depend on the width, and the rows that fit on the height. */
#ifndef CLI_TOP_STREAM_TABLE_H
#define CLI_TOP_STREAM_TABLE_H

#include "cli/top/frame.h"
#include "cli/top/view-state.h"

/* Draws the head and the rows, into all lines of the frame but `below`. */
void stream_table_draw(struct view *view, struct frame *frame, unsigned below);

#endif
