/*
 * The emulated device.  Work that is put on a stream is done late, and only events bind its order.
 * If a caller forgets one of them, or to wait, it sees a wrong result for some seed among 20.
 */
#include "tests/cuda/fixture.h"

#include <errno.h>
#include <pthread.h>

#include "kernels/cuda/blas.h"
#include "kernels/cuda/device-emu.h"
#include "tests/cuda/device-kernel.h"
#include "tests/skip.h"

#define SEEDS 20u
#define BYTES (NUMBERS * sizeof(uint32_t))

/* The setup of every test: two pieces of the device's memory, and two of pinned memory. */
struct fixture {
        struct device *device;
        uint32_t *a, *b, *in, *out; /* NUMBERS each; a and b are the device's */
        struct event *event, *other;
};

static fixture begin(uint64_t seed)
{
        fixture w = {};

        if (emulated)
                device_emu_seed(seed);
        assert_int_equal(device_open(0, &w.device), 0);
        assert_int_equal(device_new(w.device, BYTES, (void **)&w.a), 0);
        assert_int_equal(device_new(w.device, BYTES, (void **)&w.b), 0);
        assert_int_equal(device_pinned_new(w.device, BYTES, (void **)&w.in), 0);
        assert_int_equal(device_pinned_new(w.device, BYTES, (void **)&w.out), 0);
        assert_int_equal(device_event_new(w.device, &w.event), 0);
        assert_int_equal(device_event_new(w.device, &w.other), 0);
        return w;
}

static void end(fixture *w)
{
        device_event_delete(w->device, w->event);
        device_event_delete(w->device, w->other);
        device_delete(w->device, w->a);
        device_delete(w->device, w->b);
        device_pinned_delete(w->device, w->in);
        device_pinned_delete(w->device, w->out);
        device_close(w->device);
}

static void fill(uint32_t *numbers, uint32_t first)
{
        for (unsigned i = 0; i < NUMBERS; i++)
                numbers[i] = first + i;
}

static bool holds(const uint32_t *numbers, uint32_t first)
{
        for (unsigned i = 0; i < NUMBERS; i++)
                if (numbers[i] != first + i)
                        return false;
        return true;
}

static bool is_poison(const uint32_t *numbers)
{
        for (unsigned i = 0; i < NUMBERS; i++)
                if (numbers[i] != 0xffffffff)
                        return false;
        return true;
}

static void put_step(fixture *w, stream stream, uint32_t *numbers, uint32_t times, uint32_t plus)
{
        step_args args = { numbers, times, plus };

        assert_int_equal(
                device_launch(w->device, stream, { 1, 1, 1, 64, BYTES, false }, step, args), 0);
        memset(&args, 0xff, sizeof(args)); /* it was copied */
}

/* Both ends of a stream, and that the host knows that it is done. */
static void put_in(fixture *w, stream stream, uint32_t *to)
{
        assert_int_equal(device_upload(w->device, stream, to, w->in, BYTES), 0);
}

static void put_out(fixture *w, stream stream, const uint32_t *from)
{
        assert_int_equal(device_download(w->device, stream, w->out, from, BYTES), 0);
}

static void mark_and_wait(fixture *w, stream stream)
{
        assert_int_equal(device_event_record(w->device, stream, w->event), 0);
        assert_int_equal(device_event_wait(w->device, w->event), 0);
}

/* ---- one stream ---- */

static void work_runs_in_order_and_only_when_waited_for(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);

                fill(w.in, 100);
                put_in(&w, STREAM_STEPS, w.a);
                put_step(&w, STREAM_STEPS, w.a, 1, 1);
                assert_int_equal(device_copy(w.device, STREAM_STEPS, w.b, w.a, BYTES), 0);
                assert_int_equal(device_clear(w.device, STREAM_STEPS, w.a, BYTES), 0);
                put_step(&w, STREAM_STEPS, w.b, 1, 7);
                put_out(&w, STREAM_STEPS, w.b);
                fill(w.in, 1000); /* too early: it is read later */
                assert_true(is_poison(w.out));
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 1008));
                put_out(&w, STREAM_STEPS, w.a);
                mark_and_wait(&w, STREAM_STEPS);
                for (unsigned i = 0; i < NUMBERS; i++)
                        assert_int_equal(w.out[i], 0);
                end(&w);
        }
}

static void new_memory_is_poisoned_and_aligned_to_256_bytes(void **)
{
        fixture w = begin(1);

        assert_int_equal((uintptr_t)w.a % 256, 0);
        assert_int_equal((uintptr_t)w.in % 256, 0);
        assert_true(is_poison(w.in));
        fill(w.out, 1);
        put_out(&w, STREAM_STEPS, w.a);
        mark_and_wait(&w, STREAM_STEPS);
        assert_true(is_poison(w.out));
        end(&w);
}

static void a_download_is_complete_only_after_a_later_moment(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);

                fill(w.in, 5);
                put_in(&w, STREAM_STEPS, w.a);
                assert_int_equal(device_event_record(w.device, STREAM_STEPS, w.other), 0);
                put_out(&w, STREAM_STEPS, w.a);
                assert_int_equal(device_event_record(w.device, STREAM_STEPS, w.event), 0);
                assert_int_equal(device_event_wait(w.device, w.other), 0);
                assert_true(is_poison(w.out)); /* done or not */
                assert_int_equal(device_event_wait(w.device, w.event), 0);
                assert_true(holds(w.out, 5));
                put_step(&w, STREAM_STEPS, w.a, 1, 1);
                put_out(&w, STREAM_STEPS, w.a);
                assert_true(is_poison(w.out));                             /* again */
                assert_int_equal(device_event_wait(w.device, w.event), 0); /* of the first time */
                assert_true(is_poison(w.out));
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 6));
                end(&w);
        }
}

static void waiting_for_an_unmarked_moment_returns_at_once(void **)
{
        fixture w = begin(3);

        put_step(&w, STREAM_STEPS, w.a, 0, 1);
        assert_int_equal(device_event_wait(w.device, w.event), 0);
        assert_int_equal(device_stream_wait(w.device, STREAM_LOADS, w.event), 0);
        assert_int_equal(device_event_record(w.device, STREAM_LOADS, w.event), 0);
        assert_int_equal(device_event_wait(w.device, w.event), 0);
        end(&w);
}

static void a_launch_without_blocks_does_nothing(void **)
{
        fixture w = begin(3);
        step_args args = { nullptr, 0, 0 };

        assert_int_equal(
                device_launch(w.device, STREAM_STEPS, { 1, 0, 1, 64, BYTES, false }, step, args),
                0);
        mark_and_wait(&w, STREAM_STEPS);
        end(&w);
}

/* Several copies use the same swap memory before the host has waited for any of them. */
static void swap_memory_is_used_in_the_order_of_the_stream(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);
                uint32_t *swap;

                assert_int_equal(device_swap_new(w.device, BYTES, (void **)&swap), 0);
                fill(w.in, 100);
                put_in(&w, STREAM_STEPS, w.a);
                assert_int_equal(device_swap_out(w.device, STREAM_STEPS, swap, w.a, BYTES), 0);
                put_step(&w, STREAM_STEPS, w.a, 1, 1);
                assert_int_equal(device_swap_in(w.device, STREAM_STEPS, w.b, swap, BYTES), 0);
                assert_int_equal(device_swap_out(w.device, STREAM_STEPS, swap, w.a, BYTES), 0);
                put_step(&w, STREAM_STEPS, w.b, 1, 5);
                put_out(&w, STREAM_STEPS, w.b);
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 105));
                assert_int_equal(device_swap_in(w.device, STREAM_STEPS, w.b, swap, BYTES), 0);
                put_out(&w, STREAM_STEPS, w.b);
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 101));
                device_swap_delete(w.device, swap);
                device_swap_delete(w.device, nullptr);
                end(&w);
        }
}

/* ---- two streams ---- */

struct links {
        bool there, back; /* steps follow loads; then loads follow steps */
};

/*
 * Loads bring numbers, steps work on them, loads take them away, five times.  True: the result was
 * right.  The host waits only for the stream of loads, which waits for steps only by events that it
 * waited for.
 */
static bool pass_on(uint64_t seed, links links)
{
        fixture w = begin(seed);
        bool good = true;

        for (uint32_t round = 0; round < 5; round++) {
                fill(w.in, round * 1000);
                put_in(&w, STREAM_LOADS, w.a);
                assert_int_equal(device_event_record(w.device, STREAM_LOADS, w.event), 0);
                if (links.there)
                        assert_int_equal(device_stream_wait(w.device, STREAM_STEPS, w.event), 0);
                put_step(&w, STREAM_STEPS, w.a, 1, 3);
                assert_int_equal(device_event_record(w.device, STREAM_STEPS, w.other), 0);
                if (links.back)
                        assert_int_equal(device_stream_wait(w.device, STREAM_LOADS, w.other), 0);
                put_out(&w, STREAM_LOADS, w.a);
                mark_and_wait(&w, STREAM_LOADS);
                good = good && holds(w.out, round * 1000 + 3);
        }
        end(&w);
        return good;
}

static unsigned count_correct_runs(links links)
{
        unsigned right = 0;

        for (uint64_t seed = 0; seed < SEEDS; seed++)
                right += pass_on(seed, links);
        return right;
}

static void a_stream_that_follows_a_moment_runs_after_it(void **)
{
        assert_int_equal(count_correct_runs({ true, true }), SEEDS);
}

static void exposes_a_stream_that_does_not_follow_a_moment(void **)
{
        assert_true(count_correct_runs({ false, true }) < SEEDS);
        assert_true(count_correct_runs({ true, false }) < SEEDS);
        assert_true(count_correct_runs({ false, false }) < SEEDS);
}

/* Of two streams that know nothing of each other, either may be first, and both may be half-way. */
static void streams_interleave_in_many_orders(void **)
{
        unsigned none = 0, all = 0, some = 0;

        for (uint64_t seed = 0; seed < 3 * SEEDS; seed++) {
                fixture w = begin(seed);
                uint32_t first;

                put_step(&w, STREAM_STEPS, w.a, 0, 0);
                mark_and_wait(&w, STREAM_STEPS);
                for (unsigned i = 0; i < 10; i++)
                        put_step(&w, STREAM_LOADS, w.a, 1, 1);
                put_out(&w, STREAM_STEPS, w.a);
                mark_and_wait(&w, STREAM_STEPS);
                first = w.out[0];
                assert_true(first <= 10);
                none += first == 0;
                all += first == 10;
                some += first > 0 && first < 10;
                end(&w);
        }
        assert_true(none && all && some);
}

/* The host waits for steps, which followed loads: so it knows of both. */
static void waiting_for_a_stream_includes_the_moments_it_followed(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);

                fill(w.in, 50);
                put_in(&w, STREAM_LOADS, w.a);
                put_out(&w, STREAM_LOADS, w.a);
                assert_int_equal(device_event_record(w.device, STREAM_LOADS, w.other), 0);
                put_step(&w, STREAM_LOADS, w.a, 1, 1); /* after the mark */
                assert_int_equal(device_stream_wait(w.device, STREAM_STEPS, w.other), 0);
                device_event_delete(w.device, w.other);
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 50));
                assert_int_equal(device_event_new(w.device, &w.other), 0);
                end(&w);
        }
}

struct side {
        fixture *w;
        enum stream stream;
        uint32_t *memory, *pinned;
        struct event *event;
        uint32_t first, good;
};

/* Without cmocka, which knows one thread. */
static void *work_alone(void *arg)
{
        side *side = (struct side *)arg;
        device *device = side->w->device;

        for (uint32_t round = 0; round < 30; round++) {
                step_args args = { side->memory, 1, round };

                fill(side->pinned, side->first);
                device_upload(device, side->stream, side->memory, side->pinned, BYTES);
                device_launch(device, side->stream, { 1, 1, 1, 64, BYTES, false }, step, args);
                device_event_record(device, side->stream, side->event);
                device_event_wait(device, side->event);
                device_download(device, side->stream, side->pinned, side->memory, BYTES);
                device_event_record(device, side->stream, side->event);
                device_event_wait(device, side->event);
                side->good += holds(side->pinned, side->first + round);
        }
        return nullptr;
}

static void each_stream_may_have_its_own_thread(void **)
{
        fixture w = begin(5);
        side sides[] = { { &w, STREAM_STEPS, w.a, w.in, w.event, 1000, 0 },
                         { &w, STREAM_LOADS, w.b, w.out, w.other, 2000, 0 } };
        pthread_t threads[2];

        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&threads[i], nullptr, work_alone, &sides[i]), 0);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(pthread_join(threads[i], nullptr), 0);
                assert_int_equal(sides[i].good, 30);
        }
        end(&w);
}

/* ---- graphs ---- */

static void a_recording_runs_only_when_replayed_and_reads_current_memory(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);
                graph *graph;

                fill(w.in, 10);
                put_in(&w, STREAM_STEPS, w.a);
                assert_false(device_is_capturing(w.device, STREAM_STEPS));
                assert_int_equal(device_capture_begin(w.device, STREAM_STEPS), 0);
                assert_true(device_is_capturing(w.device, STREAM_STEPS));
                assert_false(device_is_capturing(w.device, STREAM_LOADS));
                put_step(&w, STREAM_STEPS, w.a, 1, 100);
                assert_int_equal(device_copy(w.device, STREAM_STEPS, w.b, w.a, BYTES), 0);
                assert_int_equal(device_capture_end(w.device, STREAM_STEPS, &graph), 0);
                assert_false(device_is_capturing(w.device, STREAM_STEPS));
                put_out(&w, STREAM_STEPS, w.a);
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 10));
                assert_int_equal(device_graph_launch(w.device, STREAM_STEPS, graph), 0);
                put_step(&w, STREAM_STEPS, w.a, 1, 1);
                assert_int_equal(device_graph_launch(w.device, STREAM_STEPS, graph), 0);
                device_graph_delete(w.device, graph);
                put_out(&w, STREAM_STEPS, w.b);
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 211));
                end(&w);
        }
}

/* ---- the end ---- */

static void a_lost_device_stays_lost_and_reports_it(void **)
{
        for (uint64_t operations = 0; operations < 5; operations++) {
                fixture w = begin(operations);
                graph *graph;
                void *memory;

                assert_int_equal(device_capture_begin(w.device, STREAM_STEPS), 0);
                assert_int_equal(device_capture_end(w.device, STREAM_STEPS, &graph), 0);
                device_emu_lose(operations);
                fill(w.in, 10);
                put_in(&w, STREAM_STEPS, w.a);
                put_step(&w, STREAM_LOADS, w.b, 0, 1);
                put_step(&w, STREAM_STEPS, w.a, 1, 1);
                assert_int_equal(device_event_record(w.device, STREAM_LOADS, w.other), 0);
                assert_int_equal(device_stream_wait(w.device, STREAM_STEPS, w.other), 0);
                put_out(&w, STREAM_STEPS, w.a);
                assert_int_equal(device_event_record(w.device, STREAM_STEPS, w.event), 0);
                assert_int_equal(device_event_wait(w.device, w.event), -EIO);
                assert_non_null(strstr(device_errtext(), "lost"));
                assert_true(is_poison(w.out));
                device_emu_lose(UINT64_MAX);
                assert_int_equal(device_event_wait(w.device, w.event), -EIO);
                assert_int_equal(device_event_record(w.device, STREAM_STEPS, w.event), -EIO);
                assert_int_equal(device_stream_wait(w.device, STREAM_STEPS, w.event), -EIO);
                assert_int_equal(device_new(w.device, 1, &memory), -EIO);
                assert_int_equal(device_pinned_new(w.device, 1, &memory), -EIO);
                assert_int_equal(device_clear(w.device, STREAM_STEPS, w.a, BYTES), -EIO);
                assert_int_equal(device_upload(w.device, STREAM_STEPS, w.b, w.in, BYTES), -EIO);
                assert_int_equal(device_capture_begin(w.device, STREAM_STEPS), -EIO);
                assert_int_equal(device_graph_launch(w.device, STREAM_STEPS, graph), -EIO);
                device_graph_delete(w.device, graph);
                end(&w);
                w = begin(1); /* another one is well */
                end(&w);
        }
}

static void memory_can_run_out_and_be_freed(void **)
{
        device *device;
        void *first, *second, *third;

        device_emu_memory(1000);
        assert_int_equal(device_open(0, &device), 0);
        device_emu_memory((size_t)1 << 40);
        assert_int_equal(device_new(device, 600, &first), 0);
        assert_int_equal(device_memory_left(device), 400);
        assert_int_equal(device_new(device, 401, &second), -ENOMEM);
        assert_non_null(strstr(device_errtext(), "memory"));
        assert_int_equal(device_new(device, 400, &second), 0);
        assert_int_equal(device_memory_left(device), 0);
        device_delete(device, first);
        device_delete(device, nullptr);
        assert_int_equal(device_new(device, 500, &third), 0);
        device_delete(device, second);
        device_delete(device, third);
        assert_int_equal(device_memory_left(device), 1000);
        device_close(device);
        device_close(nullptr);
}

static void emulates_one_device_with_four_multiprocessors(void **)
{
        device *device;

        assert_int_equal(device_open(1, &device), -ENODEV);
        assert_non_null(strstr(device_errtext(), "0"));
        assert_int_equal(device_open(0, &device), 0);
        assert_int_equal(device_processors(device), 4);
        assert_string_equal(device_name(device), "emulated");
        device_close(device);
}

/*
 * Work that was put before the call may still use the freed memory; work that is put later may
 * not.
 */
static void freeing_memory_waits_for_earlier_work(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);

                fill(w.in, 20);
                put_in(&w, STREAM_LOADS, w.a);
                assert_int_equal(device_event_record(w.device, STREAM_LOADS, w.event), 0);
                assert_int_equal(device_stream_wait(w.device, STREAM_STEPS, w.event), 0);
                assert_int_equal(device_copy(w.device, STREAM_STEPS, w.b, w.a, BYTES), 0);
                device_delete(w.device, w.a);
                assert_int_equal(device_new(w.device, BYTES, (void **)&w.a), 0);
                put_out(&w, STREAM_STEPS, w.b);
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 20));
                end(&w);
        }
}

/* ---- mistakes that must end the program ---- */

static void misuse_replay_on_freed_memory(void)
{
        fixture w = begin(1);
        graph *graph;

        device_capture_begin(w.device, STREAM_STEPS);
        put_step(&w, STREAM_STEPS, w.a, 1, 100);
        device_capture_end(w.device, STREAM_STEPS, &graph);
        device_delete(w.device, w.a);
        device_graph_launch(w.device, STREAM_STEPS, graph);
        mark_and_wait(&w, STREAM_STEPS);
}

static void misuse_read_device_memory_on_the_host(void)
{
        fixture w = begin(1);

        put_step(&w, STREAM_STEPS, w.a, 0, 1);
        mark_and_wait(&w, STREAM_STEPS);
        if (*(volatile uint32_t *)w.a == 1)
                _exit(0);
}

static void misuse_wrong_memory(void)
{
        fixture w = begin(1);

        device_upload(w.device, STREAM_STEPS, w.in, w.out, BYTES);
}

static void misuse_upload_swap_memory(void)
{
        fixture w = begin(1);
        void *swap;

        device_swap_new(w.device, BYTES, &swap);
        device_upload(w.device, STREAM_STEPS, w.a, swap, BYTES);
}

static void misuse_swap_to_pinned_memory(void)
{
        fixture w = begin(1);

        device_swap_out(w.device, STREAM_STEPS, w.in, w.a, BYTES);
}

static void misuse_swap_in_a_recording(void)
{
        fixture w = begin(1);
        void *swap;

        device_swap_new(w.device, BYTES, &swap);
        device_capture_begin(w.device, STREAM_STEPS);
        device_swap_in(w.device, STREAM_STEPS, w.a, swap, BYTES);
}

static void misuse_read_swap_memory_on_the_host(void)
{
        fixture w = begin(1);
        void *swap;

        device_swap_new(w.device, BYTES, &swap);
        device_swap_out(w.device, STREAM_STEPS, swap, w.a, BYTES);
        mark_and_wait(&w, STREAM_STEPS);
        if (*(volatile uint32_t *)swap == 1)
                _exit(0);
}

static void misuse_unknown_memory(void)
{
        fixture w = begin(1);
        uint32_t mine[NUMBERS];

        device_download(w.device, STREAM_STEPS, mine, w.a, BYTES);
}

static void misuse_past_the_end_of_memory(void)
{
        fixture w = begin(1);

        device_clear(w.device, STREAM_STEPS, w.a + 1, BYTES);
}

static void misuse_upload_memory_still_in_transfer(void)
{
        fixture w = begin(1);

        put_out(&w, STREAM_STEPS, w.a);
        device_upload(w.device, STREAM_STEPS, w.b, w.out + NUMBERS - 1, 4);
}

static void misuse_upload_in_a_recording(void)
{
        fixture w = begin(1);

        device_capture_begin(w.device, STREAM_STEPS);
        put_in(&w, STREAM_STEPS, w.a);
}

static void misuse_allocate_in_a_recording(void)
{
        fixture w = begin(1);
        void *memory;

        device_capture_begin(w.device, STREAM_STEPS);
        device_new(w.device, 1, &memory);
}

static void misuse_choose_a_product_in_a_recording(void)
{
        const blas_shape shape = { 65, 16, 64, 64, 64, 16, 0, 0 };
        fixture w = begin(1);
        blas *blas;

        blas_open(w.device, &blas);
        device_capture_begin(w.device, STREAM_STEPS);
        blas_serves(blas, &shape);
}

static void misuse_multiply_before_it_is_chosen(void)
{
        const blas_shape shape = { 1, 1, 8, 8, 8, 1, 0, 0 };
        fixture w = begin(1);
        blas *blas;

        blas_open(w.device, &blas);
        blas_multiply(blas, &shape, 1, (float *)w.a, (uint16_t *)w.b, (uint16_t *)w.b, nullptr);
}

static void misuse_too_much_shared_memory(void)
{
        fixture w = begin(1);

        device_launch(w.device, STREAM_STEPS, { 1, 1, 1, 64, (99 << 10) + 1, false }, step,
                      step_args{ w.a, 1, 1 });
}

static void misuse_leak_memory(void)
{
        fixture w = begin(1);

        device_close(w.device);
}

static void misuse_of_the_device_aborts_at_once(void **)
{
        assert_true(aborts_with(misuse_wrong_memory, "memory.kind == kind"));
        assert_true(aborts_with(misuse_upload_swap_memory, "memory.kind == kind"));
        assert_true(aborts_with(misuse_swap_to_pinned_memory, "memory.kind == kind"));
        assert_true(aborts_with(misuse_swap_in_a_recording, "operation->work == LAUNCH"));
        assert_true(aborts_with(misuse_unknown_memory, "memory of this device"));
        assert_true(aborts_with(misuse_past_the_end_of_memory, "memory of this device"));
        assert_true(aborts_with(misuse_upload_memory_still_in_transfer, "other.fills == fills"));
        assert_true(aborts_with(misuse_upload_in_a_recording, "operation->work == LAUNCH"));
        assert_true(aborts_with(misuse_allocate_in_a_recording, "!device->graph"));
        assert_true(aborts_with(misuse_choose_a_product_in_a_recording, "device_is_capturing("));
        assert_true(aborts_with(misuse_multiply_before_it_is_chosen, "is_chosen("));
        assert_true(aborts_with(misuse_too_much_shared_memory, "SHARED_MAX"));
        assert_true(aborts_with(misuse_leak_memory, "memories.empty()"));
}

static void address_sanitizer_reports_use_of_freed_or_device_memory(void **)
{
        if (!WITH_ASAN)
                skip_because("it needs AddressSanitizer");
        assert_true(aborts_with(misuse_replay_on_freed_memory, "heap-use-after-free"));
        assert_true(aborts_with(misuse_read_device_memory_on_the_host, "use-after-poison"));
        assert_true(aborts_with(misuse_read_swap_memory_on_the_host, "use-after-poison"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                emulator_only(work_runs_in_order_and_only_when_waited_for),
                emulator_only(new_memory_is_poisoned_and_aligned_to_256_bytes),
                emulator_only(a_download_is_complete_only_after_a_later_moment),
                cmocka_unit_test(swap_memory_is_used_in_the_order_of_the_stream),
                cmocka_unit_test(waiting_for_an_unmarked_moment_returns_at_once),
                cmocka_unit_test(a_launch_without_blocks_does_nothing),
                cmocka_unit_test(a_stream_that_follows_a_moment_runs_after_it),
                emulator_only(exposes_a_stream_that_does_not_follow_a_moment),
                emulator_only(streams_interleave_in_many_orders),
                cmocka_unit_test(waiting_for_a_stream_includes_the_moments_it_followed),
                cmocka_unit_test(each_stream_may_have_its_own_thread),
                cmocka_unit_test(a_recording_runs_only_when_replayed_and_reads_current_memory),
                emulator_only(a_lost_device_stays_lost_and_reports_it),
                emulator_only(memory_can_run_out_and_be_freed),
                emulator_only(emulates_one_device_with_four_multiprocessors),
                cmocka_unit_test(freeing_memory_waits_for_earlier_work),
                emulator_only(misuse_of_the_device_aborts_at_once),
                emulator_only(address_sanitizer_reports_use_of_freed_or_device_memory),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
