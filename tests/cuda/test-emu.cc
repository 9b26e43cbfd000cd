/*
 * The emulator runs every thread of every block, and exposes the typical mistakes in kernels.
 * Each mistake is tested beside the correct kernel, in which nothing must be reported.
 */
#include "tests/cuda/fixture.h"
#include "tests/skip.h"

/* ---- what runs ---- */

struct where_args {
        unsigned *seen; /* (blocks, threads) */
};

static KERNEL(1024) where(where_args a)
{
        unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);

        block_sync();
        a.seen[block * blockDim.x + threadIdx.x] += 1 + lane_number() * 1000;
}

static void each_thread_of_each_block_runs_once(void **)
{
        static const unsigned grids[][3] = { { 1, 1, 1 }, { 5, 1, 1 }, { 2, 3, 4 }, { 1, 1, 7 } };
        static const unsigned sizes[] = { 1, 31, 32, 33, 96, 1024 };

        for (unsigned schedule = 0; schedule < EMU_SCHEDULES + 3; schedule++)
                for (const unsigned *grid : grids)
                        for (unsigned threads : sizes) {
                                unsigned blocks = grid[0] * grid[1] * grid[2];
                                unsigned *seen = (unsigned *)calloc(blocks * threads, 4);

                                run_now(schedule, { grid[0], grid[1], grid[2], threads, 0, false },
                                        where, where_args{ seen });
                                for (unsigned i = 0; i < blocks * threads; i++)
                                        assert_int_equal(seen[i], 1 + i % threads % 32 * 1000);
                                free(seen);
                        }
}

struct order_args {
        unsigned *next, *order;
};

static KERNEL(64) note_order(order_args a)
{
        for (unsigned i = 0; i < 3; i++) {
                a.order[(*a.next)++] = blockIdx.x * 100 + threadIdx.x;
                warp_sync();
        }
}

static void schedules_differ_and_are_reproducible(void **)
{
        unsigned order[EMU_SCHEDULES][2][3 * 64 * 3];

        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++)
                for (unsigned(&once)[3 * 64 * 3] : order[schedule]) {
                        unsigned next = 0;

                        run_now(schedule, { 3, 1, 1, 64, 0, false }, note_order,
                                order_args{ &next, once });
                        assert_int_equal(next, 3 * 64 * 3);
                }
        for (unsigned i = 0; i < EMU_SCHEDULES; i++)
                for (unsigned j = 0; j < EMU_SCHEDULES; j++)
                        assert_int_equal(!memcmp(order[i][0], order[j][1], sizeof(order[i][0])),
                                         i == j);
}

/*
 * Two of three threads leave before the barrier of the block.  All threads of the second warp
 * leave before the barrier of their lanes.
 */
static KERNEL(96) leave_early(where_args a)
{
        unsigned me = threadIdx.x;

        if (me / 32 == 1)
                return;
        warp_sync();
        if (me % 3)
                return;
        warp_sync();
        block_sync();
        a.seen[me]++;
}

static void barriers_do_not_wait_for_threads_that_have_ended(void **)
{
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                unsigned seen[96] = {};

                run_now(schedule, one_block(96, 0), leave_early, where_args{ seen });
                for (unsigned i = 0; i < 96; i++)
                        assert_int_equal(seen[i], i / 32 != 1 && i % 3 == 0);
        }
}

struct peek_args {
        uint8_t *out; /* (blocks, 100) */
};

static KERNEL(32) peek(peek_args a)
{
        if (threadIdx.x)
                return;
        assert_true((uintptr_t)shared() % 128 == 0);
        memcpy(&a.out[blockIdx.x * 100], shared(), 100);
        memset(shared(), 0, 100);
}

static void shared_memory_starts_poisoned_in_each_block(void **)
{
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                uint8_t out[300], poison[300];

                memset(poison, 0xff, sizeof(poison));
                run_now(schedule, { 3, 1, 1, 32, 100, false }, peek, peek_args{ out });
                assert_memory_equal(out, poison, sizeof(out));
        }
}

/* ---- mistakes ---- */

#define THREADS 64u
#define STEPS   7u

struct work_args {
        const uint4 *in; /* (STEPS, THREADS) */
        uint32_t *out;   /* (THREADS) */
};

/* Runs a kernel under each schedule.  True: the result is always the same, and equals `right`. */
static bool is_right(void (*kernel)(work_args), size_t shared_bytes, const uint32_t *right)
{
        static uint4 in[STEPS * THREADS];
        bool good = true;

        for (unsigned i = 0; i < STEPS * THREADS; i++)
                in[i] = { i * 3 + 1, i, i, i };
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                uint32_t out[THREADS] = {};

                run_now(schedule, one_block(THREADS, shared_bytes), kernel, work_args{ in, out });
                good = good && !memcmp(out, right, sizeof(out));
        }
        return good;
}

enum mistake { NONE, FIRST_BARRIER, SECOND_BARRIER, WAIT_TOO_FEW, WRITTEN_UNDER_WAY, NO_WAIT };

/* Sums over steps of the numbers that the opposite thread has brought. */
template <mistake M> static KERNEL(THREADS) exchange(work_args a)
{
        uint32_t *board = (uint32_t *)shared(), sum = 0;

        for (unsigned step = 0; step < STEPS; step++) {
                board[threadIdx.x] = a.in[step * THREADS + threadIdx.x].x;
                if (M != FIRST_BARRIER)
                        block_sync();
                sum += board[THREADS - 1 - threadIdx.x];
                if (M != SECOND_BARRIER)
                        block_sync();
        }
        a.out[threadIdx.x] = sum;
}

/* The same among the lanes of a warp. */
template <mistake M> static KERNEL(THREADS) exchange_in_warps(work_args a)
{
        uint32_t *board = (uint32_t *)shared(), sum = 0;

        for (unsigned step = 0; step < STEPS; step++) {
                board[threadIdx.x] = a.in[step * THREADS + threadIdx.x].x;
                if (M != FIRST_BARRIER)
                        warp_sync();
                sum += board[threadIdx.x ^ 31];
                if (M != SECOND_BARRIER)
                        warp_sync();
        }
        a.out[threadIdx.x] = sum;
}

/* The same with copies that run two steps ahead, in three stages. */
template <mistake M> static KERNEL(THREADS) exchange_ahead(work_args a)
{
        uint4 *stages = (uint4 *)shared();
        uint32_t sum = 0;
        auto begin = [&](unsigned step) {
                if (step < STEPS)
                        async_copy(&stages[step % 3 * THREADS + threadIdx.x],
                                   &a.in[step * THREADS + threadIdx.x], true);
                async_copy_commit();
        };

        begin(0);
        begin(1);
        for (unsigned step = 0; step < STEPS; step++) {
                if (M == WAIT_TOO_FEW)
                        async_copy_wait<2>();
                else if (M != NO_WAIT)
                        async_copy_wait<1>();
                if (M != FIRST_BARRIER)
                        block_sync();
                begin(step + (M == WRITTEN_UNDER_WAY ? 3 : 2));
                sum += stages[step % 3 * THREADS + THREADS - 1 - threadIdx.x].x;
        }
        async_copy_wait<0>();
        a.out[threadIdx.x] = sum;
}

/* Writes where a copy is still to arrive. */
template <mistake M> static KERNEL(THREADS) overwrite(work_args a)
{
        uint4 *mine = (uint4 *)shared() + threadIdx.x;

        async_copy(mine, &a.in[threadIdx.x], true);
        async_copy_commit();
        if (M != WRITTEN_UNDER_WAY)
                async_copy_wait<0>();
        mine->x = threadIdx.x;
        async_copy_wait<0>();
        a.out[threadIdx.x] = mine->x;
}

static void sums_across(uint32_t *right, unsigned bits)
{
        for (unsigned i = 0; i < THREADS; i++) {
                right[i] = 0;
                for (unsigned step = 0; step < STEPS; step++)
                        right[i] += (step * THREADS + (i ^ bits)) * 3 + 1;
        }
}

static void exposes_a_missing_barrier(void **)
{
        uint32_t right[THREADS];

        sums_across(right, 63);
        assert_true(is_right(exchange<NONE>, THREADS * 4, right));
        assert_false(is_right(exchange<FIRST_BARRIER>, THREADS * 4, right));
        assert_false(is_right(exchange<SECOND_BARRIER>, THREADS * 4, right));
}

static void exposes_missing_warp_synchronisation(void **)
{
        uint32_t right[THREADS];

        sums_across(right, 31);
        assert_true(is_right(exchange_in_warps<NONE>, THREADS * 4, right));
        assert_false(is_right(exchange_in_warps<FIRST_BARRIER>, THREADS * 4, right));
        assert_false(is_right(exchange_in_warps<SECOND_BARRIER>, THREADS * 4, right));
}

static void exposes_a_wait_for_too_few_copies(void **)
{
        uint32_t right[THREADS];

        sums_across(right, 63);
        assert_true(is_right(exchange_ahead<NONE>, 3 * THREADS * 16, right));
        assert_false(is_right(exchange_ahead<WAIT_TOO_FEW>, 3 * THREADS * 16, right));
        assert_false(is_right(exchange_ahead<NO_WAIT>, 3 * THREADS * 16, right));
        assert_false(is_right(exchange_ahead<FIRST_BARRIER>, 3 * THREADS * 16, right));
}

static void exposes_a_write_or_read_before_a_copy_has_finished(void **)
{
        uint32_t right[THREADS];

        sums_across(right, 63);
        assert_false(is_right(exchange_ahead<WRITTEN_UNDER_WAY>, 3 * THREADS * 16, right));
        for (unsigned i = 0; i < THREADS; i++)
                right[i] = i;
        assert_true(is_right(overwrite<NONE>, THREADS * 16, right));
        assert_false(is_right(overwrite<WRITTEN_UNDER_WAY>, THREADS * 16, right));
}

/* ---- kernels that begin before their predecessor has ended ---- */

#define BROUGHT 3u /* blocks of the predecessor */

struct early_args {
        uint32_t *brought; /* (BROUGHT, THREADS) */
        uint32_t *sums;    /* (2, THREADS) */
};

static KERNEL(THREADS) bring(early_args a)
{
        memset(shared() + threadIdx.x * 4, 0, 4);
        block_sync();
        a.brought[blockIdx.x * THREADS + threadIdx.x] = threadIdx.x + 1;
}

/* Adds up what its predecessor brought; LATE: it reads only after it has waited. */
template <bool LATE> static KERNEL(THREADS) add_brought(early_args a)
{
        uint32_t sum = 0, *mine = (uint32_t *)shared() + threadIdx.x;

        *mine = threadIdx.x;
        if (LATE)
                wait_for_predecessor();
        for (unsigned block = 0; block < BROUGHT; block++)
                sum += a.brought[block * THREADS + (threadIdx.x ^ 63)];
        if (!LATE)
                wait_for_predecessor();
        block_sync();
        a.sums[blockIdx.x * THREADS + threadIdx.x] = sum + *mine - threadIdx.x;
}

static void run_bring(void *args)
{
        run_now(5, { BROUGHT, 1, 1, THREADS, THREADS * 4, false }, bring,
                *(const early_args *)args);
}

static bool adds_what_was_brought(void (*kernel)(early_args), unsigned schedule)
{
        uint32_t brought[BROUGHT * THREADS] = {}, sums[2 * THREADS] = {};
        early_args args = { brought, sums };
        bool right = true;

        emu_begin_early(run_bring, &args);
        run_now(schedule, { 2, 1, 1, THREADS, THREADS * 4, true }, kernel, args);
        for (unsigned i = 0; i < 2 * THREADS; i++)
                right = right && sums[i] == BROUGHT * ((i % THREADS ^ 63) + 1);
        return right;
}

static void exposes_a_read_before_the_predecessor_has_ended(void **)
{
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                assert_true(adds_what_was_brought(add_brought<true>, schedule));
                assert_false(adds_what_was_brought(add_brought<false>, schedule));
        }
}

/* ---- mistakes that end it ---- */

static KERNEL(THREADS) split_at_barrier(work_args)
{
        if (threadIdx.x % 2)
                block_sync();
        else
                warp_sync();
        warp_sync();
}

static KERNEL(THREADS) warp_without_barrier(work_args a)
{
        if (threadIdx.x < 32)
                block_sync();
        else if (threadIdx.x == 40)
                block_sync();
        else
                a.out[0] = warp_sum(1u);
}

static KERNEL(THREADS) split_lanes(work_args a)
{
        if (threadIdx.x % 2)
                a.out[0] = shuffle_xor(1u, 2);
        else
                warp_sync();
}

static KERNEL(THREADS) forgotten_copy(work_args a)
{
        async_copy((uint4 *)shared() + threadIdx.x, &a.in[threadIdx.x], true);
        async_copy_commit();
}

static KERNEL(THREADS) wait_of_some(work_args)
{
        if (threadIdx.x % 2)
                wait_for_predecessor();
}

static KERNEL(THREADS) read_past_shared(work_args a)
{
        a.out[threadIdx.x] = ((uint32_t *)shared())[threadIdx.x + 1];
}

static uint32_t some[THREADS];

static void misuse_split_at_a_barrier(void)
{
        is_right(split_at_barrier, 0, some);
}

static void misuse_warp_without_barrier(void)
{
        is_right(warp_without_barrier, 0, some);
}

static void misuse_split_lanes(void)
{
        is_right(split_lanes, 0, some);
}

static void misuse_forget_a_copy(void)
{
        is_right(forgotten_copy, THREADS * 16, some);
}

static void misuse_wait_in_some_threads(void)
{
        run_now(0, { 1, 1, 1, THREADS, 0, true }, wait_of_some, work_args{ nullptr, some });
}

static void misuse_read_past_shared_memory(void)
{
        is_right(read_past_shared, THREADS * 4, some);
}

static void reports_a_barrier_that_some_threads_do_not_reach(void **)
{
        assert_true(aborts_with(misuse_split_at_a_barrier, " are at a barrier"));
        assert_true(aborts_with(misuse_warp_without_barrier, " 33 are at a barrier"));
}

static void reports_lanes_that_synchronise_on_different_instructions(void **)
{
        assert_true(aborts_with(misuse_split_lanes, "last == warp->last"));
}

static void reports_a_copy_that_is_never_waited_for(void **)
{
        assert_true(aborts_with(misuse_forget_a_copy, "batches.empty()"));
}

static void reports_a_thread_that_does_not_wait_for_the_predecessor(void **)
{
        assert_true(aborts_with(misuse_wait_in_some_threads, "now->waited"));
}

static void address_sanitizer_reports_reads_past_shared_memory(void **)
{
        if (!WITH_ASAN)
                skip_because("it needs AddressSanitizer");
        assert_true(aborts_with(misuse_read_past_shared_memory, "heap-buffer-overflow"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_thread_of_each_block_runs_once),
                cmocka_unit_test(schedules_differ_and_are_reproducible),
                cmocka_unit_test(barriers_do_not_wait_for_threads_that_have_ended),
                cmocka_unit_test(shared_memory_starts_poisoned_in_each_block),
                cmocka_unit_test(exposes_a_missing_barrier),
                cmocka_unit_test(exposes_missing_warp_synchronisation),
                cmocka_unit_test(exposes_a_wait_for_too_few_copies),
                cmocka_unit_test(exposes_a_write_or_read_before_a_copy_has_finished),
                cmocka_unit_test(exposes_a_read_before_the_predecessor_has_ended),
                cmocka_unit_test(reports_a_barrier_that_some_threads_do_not_reach),
                cmocka_unit_test(reports_lanes_that_synchronise_on_different_instructions),
                cmocka_unit_test(reports_a_copy_that_is_never_waited_for),
                cmocka_unit_test(reports_a_thread_that_does_not_wait_for_the_predecessor),
                cmocka_unit_test(address_sanitizer_reports_reads_past_shared_memory),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
