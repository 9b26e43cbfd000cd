/*
 * Answers come in any order, and leave in the order of their lines.
 *
 * A line enters when it begins, gets its answer later, and leaves when all lines before it have
 * left.  Answers that wait are in memory up to a limit; beyond it, in a file without a name.  So
 * one long answer does not stop the lines behind it.  Loop thread only.
 */
#ifndef BRIDGE_OFFLINE_ANSWER_WINDOW_H
#define BRIDGE_OFFLINE_ANSWER_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "bridge/core/arena.h"
#include "json/bytes.h"

#define WINDOW_LINES_MAX (UINT64_C(1) << 18)

struct answer_window;

/* NULL: out of memory.  `folder` is for the file. */
struct answer_window *answer_window_new(const char *folder, uint64_t memory_bytes);
struct answer_window *answer_window_free(struct answer_window *window); /* takes NULL */

/* False: it is full.  Then no line may enter until one has left. */
bool answer_window_has_space(const struct answer_window *window);
/* 0 and the number of the line: each is one more than the one before, from 0 on; or -ENOMEM. */
int answer_window_enter(struct answer_window *window, uint64_t *ret_number);
/* The answer of a line.  Takes its bytes.  `good`: it is no failure. */
void answer_window_put(struct answer_window *window, uint64_t number, struct bytes *answer,
                       bool good);
/*
 * 1: the next answer that may leave, valid until it has left; 0: it is not there yet; or the
 * negative errno of reading it back.
 */
int answer_window_next(struct answer_window *window, struct text *ret_answer, bool *ret_good);
/* The answer of answer_window_next() leaves. */
void answer_window_leave(struct answer_window *window);

/* Lines that have entered and not left. */
uint64_t answer_window_count(const struct answer_window *window);

#endif
