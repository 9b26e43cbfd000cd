/*
 * The board: how much of the KV pool each user has, as last written by the engine.
 *
 * The engine writes it every few milliseconds while it runs, and before it sleeps.  The loop reads
 * it for `status`.  Neither thread waits for the other, and neither allocates.  A reader that meets
 * a write in progress tries a few more times; then it returns the table that it read the last time,
 * which was complete.  So a row never mixes one user's uid with another user's blocks, and the rows
 * of one table are always from the same step.
 *
 * The number of rows is fixed by board_new().  The engine writes the users that have requests
 * first.  If there is no row left for a user, `status` shows zeros for that user; nothing else
 * depends on it.  One writer, one reader.
 */
#ifndef DAEMON_BOARD_H
#define DAEMON_BOARD_H

#include <stdint.h>

struct board;

struct board_row {
        uint32_t uid;
        uint32_t blocks; /* blocks that this user's running requests hold or were promised */
        uint32_t cached; /* this user's blocks in the cache that no request uses now */
};

int board_new(uint32_t rows, struct board **ret_board); /* 0 or -ENOMEM; no row is written yet */
struct board *board_free(struct board *board);          /* takes NULL */

uint32_t board_room(const struct board *board); /* the number of rows; any thread */

/*
 * Writer's thread: writes a new table of at most board_room() rows.  The reader sees the old table
 * until board_end().
 */
void board_begin(struct board *board);
void board_put(struct board *board, const struct board_row *row);
void board_end(struct board *board);

/* Reader's thread: returns the row count; *ret_rows stays valid until the next board_look(). */
uint32_t board_look(struct board *board, const struct board_row **ret_rows);

#endif
