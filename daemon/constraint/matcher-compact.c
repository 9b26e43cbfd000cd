/*
 * Removes rows that no position to which the matcher may go back can reach any more, so that memory
 * is bounded by what is open in a text, and not by its length.
 */
#include <assert.h>
#include <string.h>

#include "daemon/constraint/matcher-state.h"

/* Positions before the first mark are forgotten; the first one kept becomes number 0. */
static void forget_positions(struct matcher *matcher)
{
        uint32_t first = matcher->marks[0], threads = matcher_first_thread(matcher, first);

        if (first == 0)
                return;
        matcher->position_count -= first;
        memmove(matcher->positions, matcher->positions + first,
                matcher->position_count * sizeof(*matcher->positions));
        matcher->thread_count -= threads;
        memmove(matcher->threads, matcher->threads + threads,
                matcher->thread_count * sizeof(*matcher->threads));
        for (uint32_t i = 0; i < matcher->position_count; i++)
                matcher->positions[i].threads_end -= threads;
        for (uint32_t i = 0; i < matcher->mark_count; i++)
                matcher->marks[i] -= first;
}

/* Marks the rows that threads, positions and items of marked rows name. */
static void mark_rows(struct matcher *matcher)
{
        uint32_t *marked = matcher->remap;

        memset(marked, 0, matcher->row_count * sizeof(*marked));
        for (uint32_t i = 0; i < matcher->thread_count; i++)
                marked[matcher->threads[i].row] = 1;
        for (uint32_t i = 0; i < matcher->position_count; i++)
                if (matcher->positions[i].row != ROW_NONE)
                        marked[matcher->positions[i].row] = 1;
        for (uint32_t i = matcher->row_count; i-- > 0;) {
                const struct row *row = &matcher->rows[i];

                for (uint32_t j = row->items; j < row->items_end && marked[i]; j++)
                        marked[matcher->items[j].origin] = 1;
        }
}

/* remap[row]: how many marked rows are before it, which is its new number. */
static void move_rows(struct matcher *matcher)
{
        uint32_t rows = 0, items = 0, *remap = matcher->remap;

        for (uint32_t i = 0; i < matcher->row_count; i++) {
                struct row row = matcher->rows[i];
                uint32_t count = row.items_end - row.items;
                bool kept = remap[i];

                remap[i] = rows;
                if (!kept)
                        continue;
                memmove(matcher->items + items, matcher->items + row.items,
                        count * sizeof(*matcher->items));
                row.items = items;
                items += count;
                row.items_end = items;
                for (uint32_t j = row.items; j < items; j++)
                        matcher->items[j].origin = remap[matcher->items[j].origin];
                matcher->rows[rows++] = row;
        }
        for (uint32_t i = 0; i < matcher->thread_count; i++)
                matcher->threads[i].row = remap[matcher->threads[i].row];
        for (uint32_t i = 0; i < matcher->position_count; i++) {
                struct position *position = &matcher->positions[i];

                if (position->row != ROW_NONE)
                        position->row = remap[position->row];
                position->rows_end =
                        position->rows_end < matcher->row_count ? remap[position->rows_end] : rows;
        }
        matcher->row_count = rows;
        matcher->item_count = items;
}

/* The same for registers; number 0 stays. */
static void move_registers(struct matcher *matcher)
{
        uint32_t count = 0, *remap = matcher->remap;
        size_t words = matcher->words;

        memset(remap, 0, matcher->register_count * sizeof(*remap));
        remap[0] = 1;
        for (uint32_t i = 0; i < matcher->item_count; i++)
                if (matcher->items[i].dot & DOT_OBJECT)
                        remap[matcher->items[i].value] = 1;
        for (uint32_t i = 0; i < matcher->register_count; i++) {
                bool kept = remap[i];

                remap[i] = count;
                if (kept)
                        memmove(matcher->registers + count++ * words,
                                matcher->registers + i * words,
                                words * sizeof(*matcher->registers));
        }
        for (uint32_t i = 0; i < matcher->item_count; i++)
                if (matcher->items[i].dot & DOT_OBJECT)
                        matcher->items[i].value = remap[matcher->items[i].value];
        for (uint32_t i = 0; i < matcher->position_count; i++) {
                uint32_t *end = &matcher->positions[i].registers_end;

                *end = *end < matcher->register_count ? remap[*end] : count;
        }
        matcher->register_count = count;
}

void matcher_compact(struct matcher *matcher)
{
        if (matcher->row_count < matcher->rows_max / 2 &&
            matcher->item_count < matcher->limits.items / 2 &&
            matcher->thread_count < matcher->threads_max / 2 &&
            matcher->position_count < matcher->positions_max / 2 &&
            matcher->register_count < matcher->registers_max / 2)
                return;
        forget_positions(matcher);
        mark_rows(matcher);
        move_rows(matcher);
        move_registers(matcher);
}
