#include "kernels/cuda/emu.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES  (64u << 10)
#define THREADS_MAX  1024u
#define SHARED_ALIGN 128u
#define POISON       0xff
#define COPY_BYTES   16u

enum fiber_state { READY, MEETING, AT_BARRIER, AT_PREDECESSOR, ENDED };

struct copy {
        void *to;
        const void *from;
};

struct fiber {
        void *stack_pointer;
        fiber_state state;
        bool waited; /* whether it has waited for the kernel's predecessor */
        unsigned lane, warp;
        emu_index index;
        std::vector<copy> open;
        std::vector<std::vector<copy>> batches;
};

/*
 * The numbers that lanes give, twice: slow lanes still read one array while others fill the next.
 */
struct warp {
        uint32_t there, alive;
        unsigned exchange_count;
        /* `bytes` and `last` are those of the current meeting. */
        size_t bytes;
        void (*last)(emu_exchanged *given);
        alignas(16) emu_exchanged given[2];
};

struct predecessor {
        void (*run)(void *arg); /* NULL: there is none, or it has run */
        void *arg;
};

struct block {
        std::vector<fiber> fibers;
        std::vector<warp> warps;
        unsigned alive, at_barrier, at_predecessor;
        size_t first_stack; /* the index in `stacks` of the first fiber's stack */
        void (*kernel)(const void *args);
        const void *args;
        bool early;
        struct predecessor predecessor;
};

/* The fibers' stacks of a host thread, until it ends. */
struct fiber_stacks {
        std::vector<uint8_t *> all;

        ~fiber_stacks()
        {
                for (uint8_t *stack : all)
                        free(stack);
        }
};

__thread emu_index emu_thread, emu_block, emu_block_size, emu_grid_size;
__thread uint8_t *emu_shared;

static thread_local unsigned schedule;
static thread_local uint64_t random_state;
static thread_local block *here;
static thread_local fiber *now;
static thread_local predecessor next_predecessor;
static thread_local size_t stacks_taken; /* by the blocks of kernels that have begun */
static thread_local void *scheduler_stack_pointer;
static thread_local fiber_stacks stacks;

void emu_set_schedule(unsigned number)
{
        schedule = number;
}

void emu_begin_early(void (*predecessor)(void *arg), void *arg)
{
        next_predecessor = { predecessor, arg };
}

unsigned emu_lane(void)
{
        return now->lane;
}

/* ---- fibers ---- */

/*
 * Saves the callee-saved registers on the current stack, and continues on the other stack, where
 * that was left.
 */
__attribute__((naked, noinline)) static void switch_stacks(void **, void *)
{
        __asm__ volatile("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
                         "movq %rsp, (%rdi); movq %rsi, %rsp\n"
                         "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret");
}

#ifdef __SANITIZE_ADDRESS__
static thread_local const void *scheduler_stack;
static thread_local size_t scheduler_stack_bytes;
#endif

static void leave(bool for_good)
{
        fiber *self = now;

#ifdef __SANITIZE_ADDRESS__
        void *fake = nullptr;

        __sanitizer_start_switch_fiber(for_good ? nullptr : &fake, scheduler_stack,
                                       scheduler_stack_bytes);
#else
        (void)for_good;
#endif
        switch_stacks(&self->stack_pointer, scheduler_stack_pointer);
#ifdef __SANITIZE_ADDRESS__
        __sanitizer_finish_switch_fiber(fake, &scheduler_stack, &scheduler_stack_bytes);
#endif
}

static void go_on(fiber *fiber, uint8_t *stack)
{
        now = fiber;
        emu_thread = fiber->index;
#ifdef __SANITIZE_ADDRESS__
        void *fake;

        __sanitizer_start_switch_fiber(&fake, stack, STACK_BYTES);
#else
        (void)stack;
#endif
        switch_stacks(&scheduler_stack_pointer, fiber->stack_pointer);
#ifdef __SANITIZE_ADDRESS__
        __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

static void open_barrier(void)
{
        here->at_barrier = 0;
        for (fiber &fiber : here->fibers)
                if (fiber.state == AT_BARRIER)
                        fiber.state = READY;
}

/* Opens the meeting if all lanes that have not ended are there. */
static bool open_meeting(warp *warp, unsigned number)
{
        if (!warp->there || (warp->there & warp->alive) != warp->alive)
                return false;
        if (warp->last)
                warp->last(&warp->given[warp->exchange_count & 1]);
        warp->there = 0;
        warp->exchange_count++;
        for (unsigned lane = 0; lane < EMU_LANES; lane++) {
                size_t at = number * EMU_LANES + lane;

                if (at < here->fibers.size() && here->fibers[at].state == MEETING)
                        here->fibers[at].state = READY;
        }
        return true;
}

/* The entry point of a fiber. */
static void live(void)
{
#ifdef __SANITIZE_ADDRESS__
        __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
        here->kernel(here->args);
        assert(now->open.empty() && now->batches.empty()); /* copies that were not waited for */
        assert(now->waited || !here->early);               /* for the predecessor */
        now->state = ENDED;
        here->alive--;
        here->warps[now->warp].alive &= ~(1u << now->lane);
        open_meeting(&here->warps[now->warp], now->warp);
        if (here->alive && here->at_barrier == here->alive)
                open_barrier();
        leave(true);
}

static void prepare(fiber *fiber, uint8_t *stack)
{
        uintptr_t top = ((uintptr_t)stack + STACK_BYTES) & ~(uintptr_t)15;
        void **at = (void **)(top - 16);

#ifdef __SANITIZE_ADDRESS__
        __asan_unpoison_memory_region(stack, STACK_BYTES);
#endif
        *at = (void *)live;
        at -= 6; /* the registers that switch_stacks() restores from there */
        memset(at, 0, 6 * sizeof(*at));
        fiber->stack_pointer = at;
        fiber->state = READY;
}

/* ---- for kernels ---- */

void emu_barrier(void)
{
        if (++here->at_barrier == here->alive) {
                open_barrier();
                return;
        }
        now->state = AT_BARRIER;
        leave(false);
}

void emu_wait_for_predecessor(void)
{
        now->waited = true;
        if (!here->predecessor.run)
                return;
        now->state = AT_PREDECESSOR;
        here->at_predecessor++;
        leave(false);
}

const emu_exchanged *emu_exchange(const void *mine, size_t bytes,
                                  void (*last)(emu_exchanged *given))
{
        warp *warp = &here->warps[now->warp];
        emu_exchanged *given = &warp->given[warp->exchange_count & 1];

        assert(bytes <= EMU_BYTES);
        /* All lanes must execute the same instruction. */
        assert(!warp->there || (bytes == warp->bytes && last == warp->last));
        if (bytes)
                memcpy((*given)[now->lane], mine, bytes);
        warp->there |= 1u << now->lane;
        warp->bytes = bytes;
        warp->last = last;
        if (!open_meeting(warp, now->warp)) {
                now->state = MEETING;
                leave(false);
        }
        return given;
}

void emu_copy(void *to, const void *from)
{
        memset(to, POISON, COPY_BYTES);
        now->open.push_back({ to, from });
}

void emu_copy_commit(void)
{
        now->batches.push_back(std::move(now->open));
        now->open.clear();
}

void emu_copy_wait(unsigned left)
{
        while (now->batches.size() > left) {
                for (const copy &copy : now->batches.front()) {
                        if (copy.from)
                                memcpy(copy.to, copy.from, COPY_BYTES);
                        else
                                memset(copy.to, 0, COPY_BYTES);
                }
                now->batches.erase(now->batches.begin());
        }
}

/* ---- the schedule ---- */

static unsigned random_number(void)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return (unsigned)(random_state >> 20);
}

/* Runs each lane that is ready once.  Returns false if none was ready. */
static bool run_warp(unsigned number)
{
        unsigned turned = schedule >= 4  ? random_number() % EMU_LANES
                          : schedule & 1 ? EMU_LANES - 1
                                         : 0;
        bool ran = false;

        for (unsigned lane = 0; lane < EMU_LANES; lane++) {
                size_t at = number * EMU_LANES + (lane ^ turned);

                if (at >= here->fibers.size() || here->fibers[at].state != READY)
                        continue;
                go_on(&here->fibers[at], stacks.all[here->first_stack + at]);
                ran = true;
        }
        return ran;
}

static bool run_warps(void)
{
        unsigned count = (unsigned)here->warps.size();
        bool ran = false;

        for (unsigned i = 0; i < count; i++) {
                unsigned number = schedule >= 4  ? random_number() % count
                                  : schedule & 1 ? count - 1 - i
                                                 : i;
                unsigned times = schedule < 2   ? 1
                                 : schedule < 4 ? UINT32_MAX
                                                : 1 + random_number() % 64;

                while (times-- && run_warp(number))
                        ran = true;
        }
        return ran;
}

/* Runs another kernel, while the threads of this one's first block wait for it. */
static void run_predecessor(void)
{
        const predecessor predecessor = here->predecessor;
        const emu_index at = emu_block, block_size = emu_block_size, grid_size = emu_grid_size;
        const uint64_t saved_random_state = random_state;
        const unsigned my_schedule = schedule;
        uint8_t *const shared = emu_shared;
        block *const self = here;

        here = nullptr;
        predecessor.run(predecessor.arg);
        here = self;
        emu_shared = shared;
        schedule = my_schedule;
        random_state = saved_random_state;
        emu_grid_size = grid_size;
        emu_block_size = block_size;
        emu_block = at;
        here->predecessor = {};
        here->at_predecessor = 0;
        for (fiber &fiber : here->fibers)
                if (fiber.state == AT_PREDECESSOR)
                        fiber.state = READY;
}

static void run_block(void)
{
        while (here->alive) {
                bool ready = run_warps();

                for (const fiber &fiber : here->fibers)
                        ready |= fiber.state == READY; /* a random order may have missed it */
                if (ready)
                        continue;
                if (here->at_predecessor) {
                        run_predecessor();
                        continue;
                }
                fprintf(stderr,
                        "emu: block %u,%u,%u: deadlock: of %u threads that have not ended, %u are "
                        "at a barrier\n",
                        emu_block.x, emu_block.y, emu_block.z, here->alive, here->at_barrier);
                abort();
        }
}

static void begin_block(const emu_shape *shape, unsigned number)
{
        unsigned at = 0;

        if (shape->shared)
                memset(emu_shared, POISON, shape->shared);
        emu_block = { number % shape->grid.x, number / shape->grid.x % shape->grid.y,
                      number / shape->grid.x / shape->grid.y };
        random_state = 0x9e3779b97f4a7c15u * (schedule + 1) + number;
        here->alive = (unsigned)here->fibers.size();
        here->at_barrier = here->at_predecessor = 0;
        for (warp &warp : here->warps)
                warp.there = warp.alive = warp.exchange_count = 0;
        for (fiber &fiber : here->fibers) {
                fiber.lane = at % EMU_LANES;
                fiber.warp = at / EMU_LANES;
                fiber.index = { at % shape->block.x, at / shape->block.x % shape->block.y,
                                at / shape->block.x / shape->block.y };
                fiber.waited = false;
                here->warps[fiber.warp].alive |= 1u << fiber.lane;
                prepare(&fiber, stacks.all[here->first_stack + at]);
                at++;
        }
}

/* Blocks have no guaranteed order either. */
static unsigned nth_block(unsigned i, unsigned count)
{
        if (schedule < 4)
                return schedule & 1 ? count - 1 - i : i;
        return (i + schedule * (count / 2 + 1)) % count;
}

/*
 * Returns the index of the first stack.  Other kernels may take more stacks while these threads
 * wait.
 */
static size_t take_stacks(unsigned threads)
{
        size_t first = stacks_taken;

        stacks_taken += threads;
        while (stacks.all.size() < stacks_taken) {
                stacks.all.push_back((uint8_t *)aligned_alloc(64, STACK_BYTES));
                assert(stacks.all.back());
        }
        return first;
}

void emu_run(const emu_shape *shape, void (*kernel)(const void *args), const void *args)
{
        unsigned threads = shape->block.x * shape->block.y * shape->block.z;
        unsigned blocks = shape->grid.x * shape->grid.y * shape->grid.z;
        void *shared = nullptr;
        block block;

        assert(!here && threads && threads <= THREADS_MAX);
        block.first_stack = take_stacks(threads);
        if (shape->shared && posix_memalign(&shared, SHARED_ALIGN, shape->shared))
                abort();
        emu_shared = (uint8_t *)shared;
        emu_block_size = shape->block;
        emu_grid_size = shape->grid;
        block.fibers.resize(threads);
        block.warps.resize((threads + EMU_LANES - 1) / EMU_LANES);
        block.kernel = kernel;
        block.args = args;
        block.early = shape->early;
        block.predecessor = next_predecessor;
        next_predecessor = {};
        here = &block;
        for (unsigned i = 0; i < blocks; i++) {
                begin_block(shape, nth_block(i, blocks));
                run_block();
        }
        assert(!block.predecessor.run); /* at least one thread has waited for it */
        here = nullptr;
        stacks_taken -= threads;
        free(shared);
}
