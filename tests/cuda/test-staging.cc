/*
 * Staging: pieces of pinned memory used in a cycle.  Several threads fill them while other
 * pieces are being sent.  The device is late, so if a thread fills a piece too early, it sends
 * wrong data for some seed among 20.
 */
#include "tests/cuda/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <set>

#include "kernels/cuda/device-emu.h"
#include "kernels/cuda/staging.h"

#define SEEDS  20u
#define PIECES 3u
#define BYTES  64u /* of a piece */
#define ROUNDS 25u /* of a thread */
#define CROWD  5u  /* threads: more than pieces */

struct fixture {
        struct device *device;
        struct staging *staging;
        uint8_t *there; /* CROWD * ROUNDS pieces */
};

static fixture begin(uint64_t seed)
{
        fixture w = {};

        device_emu_seed(seed);
        assert_int_equal(device_open(0, &w.device), 0);
        assert_int_equal(device_new(w.device, CROWD * ROUNDS * BYTES, (void **)&w.there), 0);
        assert_int_equal(staging_new(w.device, PIECES, BYTES, &w.staging), 0);
        assert_int_equal(staging_bytes(w.staging), BYTES);
        return w;
}

static void end(fixture *w)
{
        staging_free(w->staging);
        device_delete(w->device, w->there);
        device_close(w->device);
}

static uint8_t number(uint32_t round, uint32_t byte)
{
        return (uint8_t)(round * 7 + byte * 13 + 1);
}

static int send(fixture *w, stream stream, uint32_t round, bool wait)
{
        piece *piece;
        int r = staging_take(w->staging, &piece);

        if (r)
                return r;
        for (uint32_t i = 0; i < BYTES; i++)
                piece->at[i] = number(round, i);
        r = staging_upload(w->staging, stream, piece, w->there + round * BYTES, BYTES, 0, BYTES, 1);
        if (!r && wait)
                r = staging_wait(w->staging, piece);
        staging_give(w->staging, piece);
        return r;
}

static bool arrived(const fixture *w, uint32_t round)
{
        uint8_t is[BYTES];

        device_emu_peek(is, w->there + round * BYTES, BYTES);
        for (uint32_t i = 0; i < BYTES; i++)
                if (is[i] != number(round, i))
                        return false;
        return true;
}

/* ---- one thread ---- */

static void returning_a_piece_does_not_wait_for_its_upload(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);

                for (uint32_t round = 0; round < ROUNDS; round++)
                        assert_int_equal(send(&w, STREAM_LOADS, round, round == ROUNDS - 1), 0);
                for (uint32_t round = 0; round < ROUNDS; round++)
                        assert_true(arrived(&w, round));
                end(&w);
        }
}

static void waits_for_the_stream_that_last_used_a_piece(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);

                for (uint32_t round = 0; round < ROUNDS; round++)
                        assert_int_equal(send(&w, round % 3 ? STREAM_LOADS : STREAM_STEPS, round,
                                              round + 2 >= ROUNDS),
                                         0);
                for (uint32_t round = 0; round < ROUNDS; round++)
                        assert_true(arrived(&w, round));
                end(&w);
        }
}

static void data_is_on_the_device_after_the_wait(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);

                for (uint32_t round = 0; round < PIECES; round++) {
                        assert_int_equal(send(&w, STREAM_LOADS, round, true), 0);
                        assert_true(arrived(&w, round));
                }
                end(&w);
        }
}

static void pieces_do_not_overlap_and_return_in_order(void **)
{
        fixture w = begin(1);
        piece *pieces[PIECES];
        std::set<uint8_t *> places;

        for (uint32_t i = 0; i < PIECES; i++) {
                assert_int_equal(staging_take(w.staging, &pieces[i]), 0);
                memset(pieces[i]->at, 0, BYTES);
                for (uint8_t *place : places)
                        assert_true(place + BYTES <= pieces[i]->at ||
                                    pieces[i]->at + BYTES <= place);
                places.insert(pieces[i]->at);
        }
        /* They come back in the order they are given. */
        staging_give(w.staging, pieces[1]);
        staging_give(w.staging, pieces[0]);
        staging_give(w.staging, pieces[2]);
        for (uint32_t i = 0; i < PIECES; i++) {
                piece *piece;

                assert_int_equal(staging_take(w.staging, &piece), 0);
                assert_ptr_equal(piece, pieces[i == 0 ? 1 : i == 1 ? 0 : 2]);
        }
        for (uint32_t i = 0; i < PIECES; i++)
                staging_give(w.staging, pieces[i]);
        end(&w);
}

static void uploads_runs_to_strided_destinations(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);
                uint8_t is[4 * 20];
                piece *piece;

                assert_int_equal(staging_take(w.staging, &piece), 0);
                assert_int_equal(staging_clear(w.staging, STREAM_LOADS, piece, w.there, sizeof(is)),
                                 0);
                for (uint32_t i = 0; i < BYTES; i++)
                        piece->at[i] = number(0, i);
                assert_int_equal(
                        staging_upload(w.staging, STREAM_LOADS, piece, w.there + 2, 20, 5, 8, 4),
                        0);
                assert_int_equal(staging_wait(w.staging, piece), 0);
                device_emu_peek(is, w.there, sizeof(is));
                for (uint32_t i = 0; i < sizeof(is); i++) {
                        bool in = i % 20 >= 2 && i % 20 < 10;

                        assert_int_equal(is[i], in ? number(0, 5 + i / 20 * 8 + i % 20 - 2) : 0);
                }
                staging_give(w.staging, piece);
                end(&w);
        }
}

static void downloaded_data_is_there_after_the_wait(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);
                piece *piece;

                assert_int_equal(send(&w, STREAM_STEPS, 1, false), 0);
                assert_int_equal(staging_take(w.staging, &piece), 0);
                assert_int_equal(
                        staging_download(w.staging, STREAM_STEPS, piece, w.there + BYTES, BYTES),
                        0);
                assert_int_equal(staging_wait(w.staging, piece), 0);
                for (uint32_t i = 0; i < BYTES; i++)
                        assert_int_equal(piece->at[i], number(1, i));
                staging_give(w.staging, piece);
                end(&w);
        }
}

/* ---- several ---- */

struct sender {
        fixture *w;
        uint32_t first;
        int r;
        pthread_t thread;
};

static void *send_all(void *arg)
{
        sender *sender = (struct sender *)arg;

        for (uint32_t i = 0; i < ROUNDS && !sender->r; i++)
                sender->r = send(sender->w, STREAM_LOADS, sender->first + i, i == ROUNDS - 1);
        return nullptr;
}

static void run_crowd(fixture *w, sender *crowd)
{
        for (uint32_t i = 0; i < CROWD; i++) {
                crowd[i] = { w, i * ROUNDS, 0, {} };
                assert_int_equal(pthread_create(&crowd[i].thread, nullptr, send_all, &crowd[i]), 0);
        }
        for (uint32_t i = 0; i < CROWD; i++)
                assert_int_equal(pthread_join(crowd[i].thread, nullptr), 0);
}

static void more_threads_than_pieces_send_all_their_data(void **)
{
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                fixture w = begin(seed);
                sender crowd[CROWD];

                run_crowd(&w, crowd);
                for (uint32_t i = 0; i < CROWD; i++)
                        assert_int_equal(crowd[i].r, 0);
                for (uint32_t round = 0; round < CROWD * ROUNDS; round++)
                        assert_true(arrived(&w, round));
                end(&w);
        }
}

/* The test cannot know whether the thread waits already, but mostly it does. */
static void returning_a_piece_wakes_a_waiting_thread(void **)
{
        fixture w = begin(1);
        sender waits = { &w, 0, 0, {} };
        piece *pieces[PIECES];

        for (piece *&piece : pieces)
                assert_int_equal(staging_take(w.staging, &piece), 0);
        assert_int_equal(pthread_create(&waits.thread, nullptr, send_all, &waits), 0);
        usleep(20000);
        for (piece *piece : pieces)
                staging_give(w.staging, piece);
        assert_int_equal(pthread_join(waits.thread, nullptr), 0);
        assert_int_equal(waits.r, 0);
        end(&w);
}

static void a_lost_device_blocks_no_thread(void **)
{
        for (uint64_t operations = 0; operations < 20; operations++) {
                fixture w = begin(operations);
                sender crowd[CROWD];

                device_emu_lose(operations);
                run_crowd(&w, crowd);
                for (uint32_t i = 0; i < CROWD; i++)
                        assert_int_equal(crowd[i].r, -EIO);
                for (uint32_t i = 0; i < 2 * PIECES; i++)
                        assert_int_equal(send(&w, STREAM_LOADS, 0, false), -EIO);
                device_emu_lose(UINT64_MAX);
                end(&w);
        }
}

static void reports_every_failed_allocation(void **)
{
        struct device *device;
        struct staging *staging;

        assert_int_equal(device_open(0, &device), 0);
        device_emu_refuse(0);
        assert_int_equal(staging_new(device, PIECES, BYTES, &staging), -ENOMEM);
        device_emu_refuse(UINT64_MAX);
        assert_int_equal(staging_new(device, PIECES, BYTES, &staging), 0);
        staging_free(staging);
        staging_free(nullptr);
        device_close(device);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(returning_a_piece_does_not_wait_for_its_upload),
                cmocka_unit_test(waits_for_the_stream_that_last_used_a_piece),
                cmocka_unit_test(data_is_on_the_device_after_the_wait),
                cmocka_unit_test(pieces_do_not_overlap_and_return_in_order),
                cmocka_unit_test(uploads_runs_to_strided_destinations),
                cmocka_unit_test(downloaded_data_is_there_after_the_wait),
                cmocka_unit_test(more_threads_than_pieces_send_all_their_data),
                cmocka_unit_test(returning_a_piece_wakes_a_waiting_thread),
                cmocka_unit_test(a_lost_device_blocks_no_thread),
                cmocka_unit_test(reports_every_failed_allocation),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
