/*
 * samovar top: a live view of the daemon: its pool, its queue, its speed, its users, and a row for
 * each stream.
 *
 * top.c is the loop: it waits for keys, signals, the time and the daemon.  link.c asks the daemon
 * and connects again when it is lost.  snapshot.c makes rows of its replies, and rates of two looks
 * in a row.  view.c draws them into a frame (frame.c), of as many lines and cells as the terminal
 * has; stream-table.c draws the streams.  terminal.c owns the terminal, and keys.c reads what a
 * person types.  report.c prints one look as JSON.
 */
#ifndef CLI_TOP_TOP_H
#define CLI_TOP_TOP_H

#include "cli/cli.h"

/*
 * Without --once it needs a terminal.  Returns an exit status; ends by the signal if one ends it.
 * `cli` must be connected.
 */
int cli_top(struct cli *cli);

#endif
