/*
 * The board: what each user has of the KV pool, as the engine last wrote it up.
 *
 * The engine writes it every few milliseconds while it runs, and before it sleeps; the loop reads
 * it for `status`.  Neither waits for the other, and neither allocates: who reads while it is being
 * written tries a few times more, and then has what he saw the last time, which was whole.  So a
 * row is never one user's number with another's blocks, and rows are never of two steps.
 *
 * It has as many rows as it was made with, and the engine writes those first who have requests.
 * For whom there is no row left, `status` shows zeros; that is all that comes of it.
 * One writer, one reader.
 */
#ifndef DAEMON_BOARD_H
#define DAEMON_BOARD_H

#include <stdint.h>

struct board;

struct board_row {
        uint32_t uid;
        uint32_t blocks; /* that what runs for him has, or was promised */
        uint32_t cached; /* ... and of his that nobody uses now */
};

int board_new(uint32_t rows, struct board **ret_board); /* 0 or -ENOMEM; no row is written */
struct board *board_free(struct board *board);          /* takes NULL */

uint32_t board_room(const struct board *board); /* the rows there are; anybody may ask */

/* Writer's thread: all rows anew, at most board_room().  What was there is seen until the end. */
void board_begin(struct board *board);
void board_put(struct board *board, const struct board_row *row);
void board_end(struct board *board);

/* Reader's thread: how many rows, and where they stand until it looks again. */
uint32_t board_look(struct board *board, const struct board_row **ret_rows);

#endif
