/*
 * The emulated device.  Work that is put on a stream is done late, and only moments bind its
 * order.  If a caller forgets one of them, or to wait, it sees a wrong result for some seed
 * among 20.
 */
#include "tests/cuda/rig.h"

#include <errno.h>
#include <pthread.h>

#include "kernels/cuda/blas.h"
#include "kernels/cuda/device-emu.h"
#include "tests/cuda/device-kernel.h"

#define SEEDS 20u
#define BYTES (NUMBERS * sizeof(uint32_t))

/* The setup of every test: two pieces of the device's memory, and two of pinned memory. */
struct world {
        struct device *device;
        uint32_t *a, *b, *in, *out; /* NUMBERS each; a and b are the device's */
        struct moment *moment, *other;
};

static world begin(uint64_t seed)
{
        world w = {};

        if (emulated)
                device_emu_seed(seed);
        assert_int_equal(device_open(0, &w.device), 0);
        assert_int_equal(device_new(w.device, BYTES, (void **)&w.a), 0);
        assert_int_equal(device_new(w.device, BYTES, (void **)&w.b), 0);
        assert_int_equal(device_pinned_new(w.device, BYTES, (void **)&w.in), 0);
        assert_int_equal(device_pinned_new(w.device, BYTES, (void **)&w.out), 0);
        assert_int_equal(device_moment_new(w.device, &w.moment), 0);
        assert_int_equal(device_moment_new(w.device, &w.other), 0);
        return w;
}

static void end(world *w)
{
        device_moment_delete(w->device, w->moment);
        device_moment_delete(w->device, w->other);
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

static void put_step(world *w, stream stream, uint32_t *numbers, uint32_t times, uint32_t plus)
{
        step_args args = { numbers, times, plus };

        assert_int_equal(
                device_launch(w->device, stream, { 1, 1, 1, 64, BYTES, false }, step, args), 0);
        memset(&args, 0xff, sizeof(args)); /* it was copied */
}

/* Both ends of a stream, and that the host knows that it is done. */
static void put_in(world *w, stream stream, uint32_t *to)
{
        assert_int_equal(device_upload(w->device, stream, to, w->in, BYTES), 0);
}

static void put_out(world *w, stream stream, const uint32_t *from)
{
        assert_int_equal(device_download(w->device, stream, w->out, from, BYTES), 0);
}

static void mark_and_wait(world *w, stream stream)
{
        assert_int_equal(device_mark(w->device, stream, w->moment), 0);
        assert_int_equal(device_wait(w->device, w->moment), 0);
}

/* ---- one stream ---- */

static void nothing_is_done_before_somebody_waits_and_then_all_in_order(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                world w = begin(seed);

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

static void new_memory_is_poison_at_a_multiple_of_256(void **)
{
        world w = begin(1);

        assert_int_equal((uintptr_t)w.a % 256, 0);
        assert_int_equal((uintptr_t)w.in % 256, 0);
        assert_true(is_poison(w.in));
        fill(w.out, 1);
        put_out(&w, STREAM_STEPS, w.a);
        mark_and_wait(&w, STREAM_STEPS);
        assert_true(is_poison(w.out));
        end(&w);
}

static void what_is_downloaded_is_seen_after_a_moment_behind_it_and_not_before(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                world w = begin(seed);

                fill(w.in, 5);
                put_in(&w, STREAM_STEPS, w.a);
                assert_int_equal(device_mark(w.device, STREAM_STEPS, w.other), 0);
                put_out(&w, STREAM_STEPS, w.a);
                assert_int_equal(device_mark(w.device, STREAM_STEPS, w.moment), 0);
                assert_int_equal(device_wait(w.device, w.other), 0);
                assert_true(is_poison(w.out)); /* done or not */
                assert_int_equal(device_wait(w.device, w.moment), 0);
                assert_true(holds(w.out, 5));
                put_step(&w, STREAM_STEPS, w.a, 1, 1);
                put_out(&w, STREAM_STEPS, w.a);
                assert_true(is_poison(w.out));                        /* again */
                assert_int_equal(device_wait(w.device, w.moment), 0); /* of the first time */
                assert_true(is_poison(w.out));
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 6));
                end(&w);
        }
}

static void a_moment_that_was_never_marked_is_now(void **)
{
        world w = begin(3);

        put_step(&w, STREAM_STEPS, w.a, 0, 1);
        assert_int_equal(device_wait(w.device, w.moment), 0);
        assert_int_equal(device_follow(w.device, STREAM_LOADS, w.moment), 0);
        assert_int_equal(device_mark(w.device, STREAM_LOADS, w.moment), 0);
        assert_int_equal(device_wait(w.device, w.moment), 0);
        end(&w);
}

static void a_launch_without_blocks_is_nothing(void **)
{
        world w = begin(3);
        step_args args = { nullptr, 0, 0 };

        assert_int_equal(
                device_launch(w.device, STREAM_STEPS, { 1, 0, 1, 64, BYTES, false }, step, args),
                0);
        mark_and_wait(&w, STREAM_STEPS);
        end(&w);
}

/* ---- two streams ---- */

struct links {
        bool there, back; /* steps follow loads; then loads follow steps */
};

/*
 * Loads bring numbers, steps work on them, loads take them away, five times.  True: the result
 * was right.  The host waits only for the stream of loads, which waits for steps only by
 * moments that it followed.
 */
static bool pass_on(uint64_t seed, links links)
{
        world w = begin(seed);
        bool good = true;

        for (uint32_t round = 0; round < 5; round++) {
                fill(w.in, round * 1000);
                put_in(&w, STREAM_LOADS, w.a);
                assert_int_equal(device_mark(w.device, STREAM_LOADS, w.moment), 0);
                if (links.there)
                        assert_int_equal(device_follow(w.device, STREAM_STEPS, w.moment), 0);
                put_step(&w, STREAM_STEPS, w.a, 1, 3);
                assert_int_equal(device_mark(w.device, STREAM_STEPS, w.other), 0);
                if (links.back)
                        assert_int_equal(device_follow(w.device, STREAM_LOADS, w.other), 0);
                put_out(&w, STREAM_LOADS, w.a);
                mark_and_wait(&w, STREAM_LOADS);
                good = good && holds(w.out, round * 1000 + 3);
        }
        end(&w);
        return good;
}

static unsigned times_right(links links)
{
        unsigned right = 0;

        for (uint64_t seed = 0; seed < SEEDS; seed++)
                right += pass_on(seed, links);
        return right;
}

static void who_follows_comes_after(void **)
{
        assert_int_equal(times_right({ true, true }), SEEDS);
}

static void who_forgets_to_follow_is_seen(void **)
{
        assert_true(times_right({ false, true }) < SEEDS);
        assert_true(times_right({ true, false }) < SEEDS);
        assert_true(times_right({ false, false }) < SEEDS);
}

/* Of two streams that know nothing of each other, either may be first, and both may be half-way. */
static void streams_run_beside_each_other_in_many_orders(void **)
{
        unsigned none = 0, all = 0, some = 0;

        for (uint64_t seed = 0; seed < 3 * SEEDS; seed++) {
                world w = begin(seed);
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
static void who_waits_for_a_stream_waits_for_whom_that_has_followed(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                world w = begin(seed);

                fill(w.in, 50);
                put_in(&w, STREAM_LOADS, w.a);
                put_out(&w, STREAM_LOADS, w.a);
                assert_int_equal(device_mark(w.device, STREAM_LOADS, w.other), 0);
                put_step(&w, STREAM_LOADS, w.a, 1, 1); /* after the mark */
                assert_int_equal(device_follow(w.device, STREAM_STEPS, w.other), 0);
                device_moment_delete(w.device, w.other);
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 50));
                assert_int_equal(device_moment_new(w.device, &w.other), 0);
                end(&w);
        }
}

struct side {
        world *w;
        enum stream stream;
        uint32_t *memory, *pinned;
        struct moment *moment;
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
                device_mark(device, side->stream, side->moment);
                device_wait(device, side->moment);
                device_download(device, side->stream, side->pinned, side->memory, BYTES);
                device_mark(device, side->stream, side->moment);
                device_wait(device, side->moment);
                side->good += holds(side->pinned, side->first + round);
        }
        return nullptr;
}

static void each_stream_may_have_a_thread_of_its_own(void **)
{
        world w = begin(5);
        side sides[] = { { &w, STREAM_STEPS, w.a, w.in, w.moment, 1000, 0 },
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

/* ---- recordings ---- */

static void a_recording_is_not_done_but_each_replay_is_on_memory_as_it_is_then(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                world w = begin(seed);
                recording *recording;

                fill(w.in, 10);
                put_in(&w, STREAM_STEPS, w.a);
                assert_false(device_records(w.device, STREAM_STEPS));
                assert_int_equal(device_record(w.device, STREAM_STEPS), 0);
                assert_true(device_records(w.device, STREAM_STEPS));
                assert_false(device_records(w.device, STREAM_LOADS));
                put_step(&w, STREAM_STEPS, w.a, 1, 100);
                assert_int_equal(device_copy(w.device, STREAM_STEPS, w.b, w.a, BYTES), 0);
                assert_int_equal(device_recorded(w.device, STREAM_STEPS, &recording), 0);
                assert_false(device_records(w.device, STREAM_STEPS));
                put_out(&w, STREAM_STEPS, w.a);
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 10));
                assert_int_equal(device_replay(w.device, STREAM_STEPS, recording), 0);
                put_step(&w, STREAM_STEPS, w.a, 1, 1);
                assert_int_equal(device_replay(w.device, STREAM_STEPS, recording), 0);
                device_recording_delete(w.device, recording);
                put_out(&w, STREAM_STEPS, w.b);
                mark_and_wait(&w, STREAM_STEPS);
                assert_true(holds(w.out, 211));
                end(&w);
        }
}

/* ---- the end ---- */

static void a_device_that_is_lost_stays_lost_and_says_so(void **)
{
        for (uint64_t operations = 0; operations < 5; operations++) {
                world w = begin(operations);
                recording *recording;
                void *memory;

                assert_int_equal(device_record(w.device, STREAM_STEPS), 0);
                assert_int_equal(device_recorded(w.device, STREAM_STEPS, &recording), 0);
                device_emu_lose(operations);
                fill(w.in, 10);
                put_in(&w, STREAM_STEPS, w.a);
                put_step(&w, STREAM_LOADS, w.b, 0, 1);
                put_step(&w, STREAM_STEPS, w.a, 1, 1);
                assert_int_equal(device_mark(w.device, STREAM_LOADS, w.other), 0);
                assert_int_equal(device_follow(w.device, STREAM_STEPS, w.other), 0);
                put_out(&w, STREAM_STEPS, w.a);
                assert_int_equal(device_mark(w.device, STREAM_STEPS, w.moment), 0);
                assert_int_equal(device_wait(w.device, w.moment), -EIO);
                assert_non_null(strstr(device_why(), "lost"));
                assert_true(is_poison(w.out));
                device_emu_lose(UINT64_MAX);
                assert_int_equal(device_wait(w.device, w.moment), -EIO);
                assert_int_equal(device_mark(w.device, STREAM_STEPS, w.moment), -EIO);
                assert_int_equal(device_follow(w.device, STREAM_STEPS, w.moment), -EIO);
                assert_int_equal(device_new(w.device, 1, &memory), -EIO);
                assert_int_equal(device_pinned_new(w.device, 1, &memory), -EIO);
                assert_int_equal(device_clear(w.device, STREAM_STEPS, w.a, BYTES), -EIO);
                assert_int_equal(device_upload(w.device, STREAM_STEPS, w.b, w.in, BYTES), -EIO);
                assert_int_equal(device_record(w.device, STREAM_STEPS), -EIO);
                assert_int_equal(device_replay(w.device, STREAM_STEPS, recording), -EIO);
                device_recording_delete(w.device, recording);
                end(&w);
                w = begin(1); /* another one is well */
                end(&w);
        }
}

static void memory_runs_out_and_comes_back(void **)
{
        device *device;
        void *first, *second, *third;

        device_emu_memory(1000);
        assert_int_equal(device_open(0, &device), 0);
        device_emu_memory((size_t)1 << 40);
        assert_int_equal(device_new(device, 600, &first), 0);
        assert_int_equal(device_memory_left(device), 400);
        assert_int_equal(device_new(device, 401, &second), -ENOMEM);
        assert_non_null(strstr(device_why(), "memory"));
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

static void there_is_one_device_of_four_multiprocessors(void **)
{
        device *device;

        assert_int_equal(device_open(1, &device), -ENODEV);
        assert_non_null(strstr(device_why(), "0"));
        assert_int_equal(device_open(0, &device), 0);
        assert_int_equal(device_processors(device), 4);
        assert_string_equal(device_name(device), "emulated");
        device_close(device);
}

/*
 * Work that was put before the call may still use the freed memory; work that is put later may
 * not.
 */
static void freeing_waits_for_what_was_put_before(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                world w = begin(seed);

                fill(w.in, 20);
                put_in(&w, STREAM_LOADS, w.a);
                assert_int_equal(device_mark(w.device, STREAM_LOADS, w.moment), 0);
                assert_int_equal(device_follow(w.device, STREAM_STEPS, w.moment), 0);
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

static void deed_replay_on_freed_memory(void)
{
        world w = begin(1);
        recording *recording;

        device_record(w.device, STREAM_STEPS);
        put_step(&w, STREAM_STEPS, w.a, 1, 100);
        device_recorded(w.device, STREAM_STEPS, &recording);
        device_delete(w.device, w.a);
        device_replay(w.device, STREAM_STEPS, recording);
        mark_and_wait(&w, STREAM_STEPS);
}

static void deed_look_into_the_device(void)
{
        world w = begin(1);

        put_step(&w, STREAM_STEPS, w.a, 0, 1);
        mark_and_wait(&w, STREAM_STEPS);
        if (*(volatile uint32_t *)w.a == 1)
                _exit(0);
}

static void deed_wrong_memory(void)
{
        world w = begin(1);

        device_upload(w.device, STREAM_STEPS, w.in, w.out, BYTES);
}

static void deed_strange_memory(void)
{
        world w = begin(1);
        uint32_t mine[NUMBERS];

        device_download(w.device, STREAM_STEPS, mine, w.a, BYTES);
}

static void deed_past_its_end(void)
{
        world w = begin(1);

        device_clear(w.device, STREAM_STEPS, w.a + 1, BYTES);
}

static void deed_upload_what_is_under_way(void)
{
        world w = begin(1);

        put_out(&w, STREAM_STEPS, w.a);
        device_upload(w.device, STREAM_STEPS, w.b, w.out + NUMBERS - 1, 4);
}

static void deed_upload_in_a_recording(void)
{
        world w = begin(1);

        device_record(w.device, STREAM_STEPS);
        put_in(&w, STREAM_STEPS, w.a);
}

static void deed_make_memory_in_a_recording(void)
{
        world w = begin(1);
        void *memory;

        device_record(w.device, STREAM_STEPS);
        device_new(w.device, 1, &memory);
}

static void deed_choose_a_product_in_a_recording(void)
{
        const blas_shape shape = { 65, 16, 64, 64, 64, 16, 0, 0 };
        world w = begin(1);
        blas *blas;

        blas_open(w.device, &blas);
        device_record(w.device, STREAM_STEPS);
        blas_serves(blas, &shape);
}

static void deed_multiply_before_it_is_chosen(void)
{
        const blas_shape shape = { 1, 1, 8, 8, 8, 1, 0, 0 };
        world w = begin(1);
        blas *blas;

        blas_open(w.device, &blas);
        blas_multiply(blas, &shape, (float *)w.a, (uint16_t *)w.b, (uint16_t *)w.b, nullptr);
}

static void deed_too_much_shared_memory(void)
{
        world w = begin(1);

        device_launch(w.device, STREAM_STEPS, { 1, 1, 1, 64, (99 << 10) + 1, false }, step,
                      step_args{ w.a, 1, 1 });
}

static void deed_leave_memory_behind(void)
{
        world w = begin(1);

        device_close(w.device);
}

static void what_breaks_the_contract_is_told_at_once(void **)
{
        assert_true(is_deadly(deed_wrong_memory, "!memory.other == !pinned"));
        assert_true(is_deadly(deed_strange_memory, "memory of this device"));
        assert_true(is_deadly(deed_past_its_end, "memory of this device"));
        assert_true(is_deadly(deed_upload_what_is_under_way, "other.fills == fills"));
        assert_true(is_deadly(deed_upload_in_a_recording, "operation->work == LAUNCH"));
        assert_true(is_deadly(deed_make_memory_in_a_recording, "!device->recording"));
        assert_true(is_deadly(deed_choose_a_product_in_a_recording, "device_records("));
        assert_true(is_deadly(deed_multiply_before_it_is_chosen, "is_chosen("));
        assert_true(is_deadly(deed_too_much_shared_memory, "SHARED_MAX"));
        assert_true(is_deadly(deed_leave_memory_behind, "memories.empty()"));
}

static void address_sanitizer_tells_who_uses_freed_memory_or_the_devices(void **)
{
        if (!WITH_ASAN)
                skip();
        assert_true(is_deadly(deed_replay_on_freed_memory, "heap-use-after-free"));
        assert_true(is_deadly(deed_look_into_the_device, "use-after-poison"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                emulator_only(nothing_is_done_before_somebody_waits_and_then_all_in_order),
                emulator_only(new_memory_is_poison_at_a_multiple_of_256),
                emulator_only(what_is_downloaded_is_seen_after_a_moment_behind_it_and_not_before),
                cmocka_unit_test(a_moment_that_was_never_marked_is_now),
                cmocka_unit_test(a_launch_without_blocks_is_nothing),
                cmocka_unit_test(who_follows_comes_after),
                emulator_only(who_forgets_to_follow_is_seen),
                emulator_only(streams_run_beside_each_other_in_many_orders),
                cmocka_unit_test(who_waits_for_a_stream_waits_for_whom_that_has_followed),
                cmocka_unit_test(each_stream_may_have_a_thread_of_its_own),
                cmocka_unit_test(
                        a_recording_is_not_done_but_each_replay_is_on_memory_as_it_is_then),
                emulator_only(a_device_that_is_lost_stays_lost_and_says_so),
                emulator_only(memory_runs_out_and_comes_back),
                emulator_only(there_is_one_device_of_four_multiprocessors),
                cmocka_unit_test(freeing_waits_for_what_was_put_before),
                emulator_only(what_breaks_the_contract_is_told_at_once),
                emulator_only(address_sanitizer_tells_who_uses_freed_memory_or_the_devices),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
