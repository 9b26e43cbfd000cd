/*
 * The emulator runs a kernel as plain C++ on the CPU, thread by thread.
 *
 * A kernel's source is compiled twice: by nvcc for a GPU, and by g++ with this header.  Here each
 * thread of the kernel is a fiber, and the emulator chooses their order.  A fiber runs until it
 * waits for others (a barrier, a shuffle, a matrix instruction); then the schedule chooses which
 * fiber continues.  On a GPU any order may happen, so a kernel must compute the same bits under
 * all of them.  A kernel that lacks a barrier will compute different bits under some schedule.
 *
 * The emulator also detects:
 *      - reads of shared memory before writes: before each block it is poisoned with bytes that are
 *        NaN in any format
 *      - overruns of shared memory: it is a heap allocation of exactly the size asked for, so
 *        AddressSanitizer sees its end
 *      - copies that are not waited for, and writes that come too early: async_copy() of
 *        intrinsics.h
 *        poisons the destination at once, and the data is copied only when it is waited for
 *      - a barrier that some threads of a block do not reach: all wait, and the program aborts with
 *        a message
 *      - a kernel that may begin before its predecessor has ended, and has a thread that does not
 *        wait for it: the program aborts.  See emu_begin_early() for reads that come too early
 *
 * It does not detect time, bank conflicts, or writes that other blocks see late.  Blocks run one
 * after the other, in an order of the schedule; a block that waits for another one hangs.
 *
 * Only one launch at a time per host thread.  For x86-64, where tests run.
 */
#ifndef KERNELS_CUDA_EMU_H
#define KERNELS_CUDA_EMU_H

#include <stddef.h>
#include <stdint.h>

struct emu_index {
        unsigned x, y, z;
};

struct emu_shape {
        emu_index grid, block; /* number of blocks; threads of each, 1024 at most */
        size_t shared;         /* in bytes, for each block */
        bool early;            /* may begin before its predecessor has ended */
};

/*
 * 0: warps in lockstep, first lanes first.  1: the same in reverse order.  2: each warp runs as
 * far as it can.  3: the same in reverse order.  4 and more: random.  Applies to the calling host
 * thread.
 */
#define EMU_SCHEDULES 6u
void emu_set_schedule(unsigned schedule);

/* Returns when all blocks have run.  Aborts with a message if they cannot. */
void emu_run(const emu_shape *shape, void (*kernel)(const void *args), const void *args);

/*
 * The next emu_run() of this host thread begins before its predecessor has run.  The threads of
 * the first block run until they wait for the predecessor.  Then predecessor() is called, which
 * may run another kernel; then they continue.  So a kernel that reads its predecessor's results
 * before it waits reads the old contents.
 */
void emu_begin_early(void (*predecessor)(void *arg), void *arg);

/* ---- for kernels, through intrinsics.h ---- */

/* Not thread_local: each access to that would check whether the variable must be initialised. */
extern __thread emu_index emu_thread, emu_block, emu_block_size, emu_grid_size;
extern __thread uint8_t *emu_shared;

unsigned emu_lane(void);
void emu_barrier(void);
void emu_wait_for_predecessor(void);

#define EMU_LANES 32u
/* The most bytes that a lane passes to emu_exchange(). */
#define EMU_BYTES 64u
typedef uint8_t emu_exchanged[EMU_LANES][EMU_BYTES];

/*
 * The lanes of a warp meet: all lanes that have not ended.  Each passes some bytes and gets those
 * of all lanes.  If `last` is not NULL, the lane that arrives last calls it once all are there,
 * and it may change the bytes.
 */
const emu_exchanged *emu_exchange(const void *mine, size_t bytes,
                                  void (*last)(emu_exchanged *given));

/*
 * Copies of 16 bytes (zeros, if `from` is NULL), in batches.  emu_copy_wait() waits until at
 * most `left` batches are in progress.
 */
void emu_copy(void *to, const void *from);
void emu_copy_commit(void);
void emu_copy_wait(unsigned left);

#endif
