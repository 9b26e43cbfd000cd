/*
 * A line: the right to write on a socket, between two threads that never wait.
 *
 * The loop writes replies, the waker rings doorbells, on one descriptor; a ring
 * in the middle of a reply would be read as part of it.  Whoever finds the line
 * taken leaves word instead, and whoever lets it go finds that word:
 *
 *      loop   holds the line while any of its output is unsent, over turns if the
 *             socket is full; letting go, it rings for the waker who asked.
 *      waker  holds it for one ring; letting go, it calls the loop who asked.
 */
#ifndef DAEMON_LINE_H
#define DAEMON_LINE_H

#include <stdatomic.h>
#include <stdbool.h>

enum line_word {
        LINE_TAKEN = 1,
        LINE_RING = 2, /* the waker's: ring when you let go */
        LINE_CALL = 4, /* the loop's: call me when you let go */
};

struct line {
        atomic_uint word;
};

/* True: it is ours.  False: the other one has it, and has our word. */
static inline bool line_take(struct line *line, enum line_word word)
{
        unsigned is = atomic_load_explicit(&line->word, memory_order_relaxed);

        for (;;) {
                unsigned next = is & LINE_TAKEN ? is | (unsigned)word : LINE_TAKEN;

                if (atomic_compare_exchange_weak_explicit(
                            &line->word, &is, next, memory_order_acq_rel, memory_order_relaxed))
                        return !(is & LINE_TAKEN);
        }
}

/* 0: it is free.  Else the other one's word, now ours to keep; the line is still ours, too. */
static inline unsigned line_let_go(struct line *line)
{
        unsigned is = LINE_TAKEN;

        while (!atomic_compare_exchange_weak_explicit(&line->word, &is,
                                                      is == LINE_TAKEN ? 0 : LINE_TAKEN,
                                                      memory_order_acq_rel, memory_order_relaxed))
                ;
        return is & ~(unsigned)LINE_TAKEN;
}

#endif
