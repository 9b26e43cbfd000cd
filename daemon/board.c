/*
 * A turn counter and a table (a seqlock).
 *
 * The writer makes the counter odd, writes the cells, and makes the counter even again.  A reader
 * has a complete table if the counter was even before it read the cells and is unchanged
 * afterwards.
 *
 * Cells are stored with release and loaded with acquire.  Suppose that a reader loads a cell newer
 * than its first look at the counter.  Then it also sees the odd counter that was stored before
 * this cell, and its second look detects the change.  The even counter is stored with release, so a
 * reader that starts from it sees all cells that belong to it.  Relaxed cells and two fences would
 * be enough, but ThreadSanitizer does not understand fences.  On the processors that we know these
 * orders cost nothing.
 */
#include "daemon/board.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "daemon/error.h"

#define LINE  128 /* two cache lines: processors fetch them in pairs */
#define TRIES 16

struct cell {
        _Atomic uint32_t uid, blocks, cached;
};

struct board {
        _Alignas(LINE) _Atomic uint64_t turns; /* odd: a write is in progress */
        _Atomic uint32_t count;
        uint32_t put; /* writer only: rows written so far */
        _Alignas(LINE) uint32_t room;
        uint32_t seen_count;           /* reader only, like all fields below up to `cells` */
        struct board_row *seen, *next; /* a complete table, and space for another */
        _Alignas(LINE) struct cell cells[];
};

int board_new(uint32_t rows, struct board **ret_board)
{
        struct board_row *copies;
        struct board *board;
        size_t bytes;

        assert(rows && rows <= UINT32_MAX / 64);
        bytes = sizeof(*board) + rows * sizeof(struct cell);
        board = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
        copies = calloc(rows, 2 * sizeof(*copies));
        if (!board || !copies) {
                free(copies);
                free(board);
                return error_raise(-ENOMEM);
        }
        *board = (struct board){ .room = rows, .seen = copies, .next = copies + rows };
        *ret_board = board;
        return 0;
}

struct board *board_free(struct board *board)
{
        if (!board)
                return NULL;
        free(board->seen < board->next ? board->seen : board->next);
        free(board);
        return NULL;
}

uint32_t board_room(const struct board *board)
{
        return board->room;
}

void board_begin(struct board *board)
{
        uint64_t turns = atomic_load_explicit(&board->turns, memory_order_relaxed);

        assert(turns % 2 == 0);
        atomic_store_explicit(&board->turns, turns + 1, memory_order_relaxed);
        board->put = 0;
}

void board_put(struct board *board, const struct board_row *row)
{
        struct cell *cell = &board->cells[board->put];

        assert(board->put < board->room);
        atomic_store_explicit(&cell->uid, row->uid, memory_order_release);
        atomic_store_explicit(&cell->blocks, row->blocks, memory_order_release);
        atomic_store_explicit(&cell->cached, row->cached, memory_order_release);
        board->put++;
}

void board_end(struct board *board)
{
        uint64_t turns = atomic_load_explicit(&board->turns, memory_order_relaxed);

        assert(turns % 2);
        atomic_store_explicit(&board->count, board->put, memory_order_release);
        atomic_store_explicit(&board->turns, turns + 1, memory_order_release);
}

/* Copies into `next`; false if the copy may be inconsistent. */
static bool copy(struct board *board, uint32_t *ret_count)
{
        uint64_t turns = atomic_load_explicit(&board->turns, memory_order_acquire);
        uint32_t count = atomic_load_explicit(&board->count, memory_order_acquire);

        if (turns % 2)
                return false;
        for (uint32_t i = 0; i < count; i++) {
                struct cell *cell = &board->cells[i];

                board->next[i] = (struct board_row){
                        .uid = atomic_load_explicit(&cell->uid, memory_order_acquire),
                        .blocks = atomic_load_explicit(&cell->blocks, memory_order_acquire),
                        .cached = atomic_load_explicit(&cell->cached, memory_order_acquire),
                };
        }
        *ret_count = count;
        return atomic_load_explicit(&board->turns, memory_order_relaxed) == turns;
}

uint32_t board_look(struct board *board, const struct board_row **ret_rows)
{
        uint32_t tries = TRIES, count = 0;
        bool whole = false;

        while (!whole && tries--)
                whole = copy(board, &count);
        if (whole) {
                struct board_row *old = board->seen;

                board->seen = board->next;
                board->next = old;
                board->seen_count = count;
        }
        *ret_rows = board->seen;
        return board->seen_count;
}
