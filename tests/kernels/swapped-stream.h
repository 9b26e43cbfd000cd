/*
 * A stream whose pages go to the swap and come back, in any backend.  Shared by the programs that
 * test the swap of the CPU backends and of the GPU backend.
 */
#ifndef TESTS_KERNELS_SWAPPED_STREAM_H
#define TESTS_KERNELS_SWAPPED_STREAM_H

#include "tests/kernels/small-model.h"

/*
 * Runs a sequence that stays in its pages, and one whose pages are away between its runs.  While
 * they are away, other pages are copied over them, and over the swap pages once they are back.
 * Every row must have the same bits both times.
 */
void swapped_stream_has_the_same_bits(struct kernels *k, enum kv_type type);

/*
 * One step copies page 1 to the swap, another page from the swap over page 1, and a third page to
 * the place in the swap that is now free.  `peek` reads memory of the backend's pool.
 */
void chains_of_copies_keep_all_contents(struct kernels *k,
                                        void (*peek)(void *to, const void *from, size_t bytes));

#endif
