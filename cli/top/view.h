/*
 * The view: draws a snapshot into a frame, with as many lines as there are.  A small screen shows
 * less of the daemon, and always some streams.
 */
#ifndef CLI_TOP_VIEW_H
#define CLI_TOP_VIEW_H

#include "cli/top/frame.h"
#include "cli/top/view-state.h"

/* The rate of this snapshot becomes the newest of the history. */
void view_remember(struct view *view);

/*
 * Draws all of it.  Also moves `first` so that the selected row is on the screen, and sets `page`.
 */
void view_draw(struct view *view, struct frame *frame);

#endif
