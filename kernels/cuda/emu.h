/*
 * The emulator: a kernel as plain C++, run on the CPU, thread by thread.
 *
 * A kernel's source is compiled twice, by nvcc for a GPU and by g++ with this header.  Here each of
 * its threads is a fiber, and they run in an order of our choice: one may run until it waits
 * for others (a barrier, a shuffle, a matrix instruction), and which goes on then is up to
 * the schedule.  On a GPU any order may happen, so what a kernel computes must be the
 * same bits under all of them; whoever lacks a barrier shows by not being so.
 *
 * What else shows:
 *      shared memory is poisoned before each block with bytes that are NaN in any format, and is a
 *      piece of the heap of just the size asked for, so AddressSanitizer sees its end
 *      a copy that is begun (copy_begin() of lane.h) poisons its destination at once and is
 *      made when it is waited for: neither a wait too few nor a write too early goes unseen
 *      a barrier that some threads of a block do not come to: all wait, and that is told
 *      a kernel that may begin before its predecessor has ended, and has a thread that does not
 *      wait for it: the program aborts.  See emu_begin_early() for reads that come too early
 *
 * What does not: time, bank conflicts, and memory that is seen late by other blocks.  Blocks
 * run one after the other, in an order of the schedule; one that waits for another hangs.
 *
 * One launch at a time per host thread.  For x86-64, where tests run.
 */
#ifndef KERNELS_CUDA_EMU_H
#define KERNELS_CUDA_EMU_H

#include <stddef.h>
#include <stdint.h>

struct emu_index {
        unsigned x, y, z;
};

struct emu_shape {
        emu_index grid, block; /* blocks; threads of each, 1024 at most */
        size_t shared;         /* bytes, for each block */
        bool early;            /* may begin before its predecessor has ended */
};

/*
 * 0: warps in lockstep, first lanes first.  1: the other way round.  2: each warp as far as it can
 * go, 3: the other way round.  From there on: dice.  For the host thread that calls.
 */
#define EMU_SCHEDULES 6u
void emu_use(unsigned schedule);

/* Returns when all blocks have run; aborts, telling why, where they cannot. */
void emu_run(const emu_shape *shape, void (*kernel)(const void *args), const void *args);

/*
 * The next emu_run() of this host thread begins before its predecessor has run.  The threads of the
 * block that comes first run until they wait; then predecessor() is called, which may run another
 * kernel; then they go on.  A kernel that reads its predecessor's results before it waits reads what
 * was there before.
 */
void emu_begin_early(void (*predecessor)(void *arg), void *arg);

/* ---- for kernels, by way of lane.h ---- */

/* Not thread_local, which is asked each time whether it must be made. */
extern __thread emu_index emu_thread, emu_block, emu_block_size, emu_grid_size;
extern __thread uint8_t *emu_shared;

unsigned emu_lane(void);
void emu_barrier(void);
void emu_wait_for_predecessor(void);

#define EMU_LANES 32u
#define EMU_BYTES 64u /* that a lane gives, at most */
typedef uint8_t emu_given[EMU_LANES][EMU_BYTES];

/*
 * The lanes of a warp meet, all that have not ended; each gives something and sees what all gave.
 * `last`, if any, is called once they are all there, by whoever came last, and may change it.
 */
const emu_given *emu_meet(const void *mine, size_t bytes, void (*last)(emu_given *given));

/* Copies of 16 bytes (zeros, if `from` is NULL), in batches; waits until `left` are under way. */
void emu_copy(void *to, const void *from);
void emu_copies_end(void);
void emu_copies_wait(unsigned left);

#endif
