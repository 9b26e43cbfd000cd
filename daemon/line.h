/*
 * A line: the right to write on a socket, shared by two threads that never wait for each other.
 *
 * The loop writes replies and the waker rings doorbells on the same descriptor.  A ring in the
 * middle of a reply would be read as part of the reply.  A thread that finds the line taken sets
 * its flag in the word instead.  The thread that releases the line finds that flag and acts on it:
 *
 *      loop   holds the line while any of its output is unsent, over several turns if the socket is
 *             full.  When it releases the line, it rings for the waker if the waker asked.
 *      waker  holds the line for one ring.  When it releases the line, it calls the loop if asked.
 */
#ifndef DAEMON_LINE_H
#define DAEMON_LINE_H

#include <stdatomic.h>
#include <stdbool.h>

enum line_word {
        LINE_TAKEN = 1,
        LINE_RING = 2, /* set by the waker: ring when you release the line */
        LINE_CALL = 4, /* set by the loop: call me when you release the line */
};

struct line {
        atomic_uint word;
};

/* True: the caller has the line.  False: the other thread has it, and `word` was left for it. */
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

/*
 * Returns 0: the line is free.  Otherwise returns the other thread's word, which the caller must
 * act on; the caller still has the line.
 */
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
