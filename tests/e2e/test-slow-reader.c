/* A client that does not read delays only itself, and for a limited time. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/honest.h"

#define QUIET_MS 200
#define STREAMS  2 /* each by itself is more than a ring and a socket take without a reader */

static struct want lengthy(uint32_t number)
{
        return (struct want){ .prompt = "Once upon a time",
                              .max_tokens = LONG_TOLD,
                              .told = TOLD_MOST,
                              .temperature = 1,
                              .seed = 100 + number,
                              .ignore_eos = true };
}

static struct stream *alone[STREAMS];

/* Records the streams one by one, read as they come; once for all stories, because the daemons
 * answer the same. */
static void record_alone(const struct house *house)
{
        struct talk *talk;

        if (alone[0])
                return;
        talk = talk_greet(house);
        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = lengthy(i);

                alone[i] = stream_copy(talk_whole(talk, &want));
        }
        talk_close(talk);
}

static void forget_alone(void)
{
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
}

/* Begins all streams, and reads nothing. */
static struct talk *ask_all(const struct house *house, uint32_t *ids)
{
        struct talk *talk = talk_greet(house);

        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = lengthy(i);

                ids[i] = talk_generate(talk, &want);
        }
        return talk;
}

/* Waits until status reports that all of them stall, and nothing is computed any more. */
static struct talk *fall_asleep(const struct house *house, uint32_t *ids)
{
        struct talk *talk = ask_all(house, ids), *asking = talk_greet_by(house, TALK_SOCKET);
        uint64_t end = now_ms() + PATIENCE_MS, steps = 0, before;

        do {
                assert_true(now_ms() < end);
                before = steps;
                sleep_ms(QUIET_MS);
                steps = talk_status(asking, "steps");
        } while (talk_status(asking, "requests.stalled") < STREAMS || steps != before);
        talk_close(asking);
        return talk;
}

static void reader_that_wakes_finds_every_token_in_order(void **state)
{
        struct house *house = *state;
        uint32_t ids[STREAMS];
        struct talk *talk;

        QUICK_HOUSE(house, "--threads", "1", "--ring-bytes", "64K");
        record_alone(house);
        talk = fall_asleep(house, ids);
        assert_int_equal(house_status(house, "requests.running"), STREAMS);
        for (uint32_t i = 0; i < STREAMS; i++) {
                assert_same_stream(talk_end(talk, ids[i]), alone[i]);
                assert_true(talk_reply(talk, ids[i])->ok);
        }
        assert_int_equal(talk->stream_count, STREAMS);
        talk_close(talk);
        house_stop(house);
}

/* The client reads bit by bit, with pauses: it stalls and wakes many times. */
static void reader_that_sips_gets_all_of_it(void **state)
{
        struct house *house = *state;
        uint32_t ids[STREAMS];
        struct talk *talk;

        QUICK_HOUSE(house, "--threads", "1", "--ring-bytes", "64K", "--depth", "2");
        record_alone(house);
        talk = fall_asleep(house, ids);
        for (uint32_t i = 0; i < 40; i++) {
                talk_turn(talk, 10);
                sleep_ms(5);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(talk_end(talk, ids[i]), alone[i]);
        talk_close(talk);
        house_stop(house);
}

/* The work of the daemon for a stream whose prompt it has in the cache. */
struct cost {
        uint64_t ms, steps, rows;
};

static struct cost cost_of(struct talk *talk, const struct want *want, const struct stream *same)
{
        uint64_t start = now_ms(), steps = talk_status(talk, "steps"),
                 rows = talk_status(talk, "rows");

        assert_same_stream(talk_whole(talk, want), same);
        return (struct cost){ now_ms() - start, talk_status(talk, "steps") - steps,
                              talk_status(talk, "rows") - rows };
}

static void others_run_as_if_it_were_not_there(void **state)
{
        const struct want want = lengthy(1);
        struct house *house = *state;
        struct cost before, beside;
        struct talk *sleeper, *talk;
        struct stream *first;
        uint32_t ids[STREAMS];

        QUICK_HOUSE(house, "--threads", "1", "--ring-bytes", "64K");
        talk = talk_greet(house);
        first = stream_copy(talk_whole(talk, &want));
        before = cost_of(talk, &want, first);
        sleeper = fall_asleep(house, ids);
        beside = cost_of(talk, &want, first);
        printf("# a stream takes %u ms alone, %u ms beside %u stalled ones\n", (unsigned)before.ms,
               (unsigned)beside.ms, STREAMS);
        assert_int_equal(talk_status(talk, "requests.stalled"), STREAMS);
        assert_int_equal(beside.steps, before.steps);
        assert_int_equal(beside.rows, before.rows);
        talk_close(sleeper);
        talk_close(talk);
        stream_free(first);
        house_stop(house);
}

static void reader_that_never_wakes_is_ended_as_stalled(void **state)
{
        struct house *house = *state;
        struct honest honest;
        uint32_t ids[STREAMS];
        struct talk *talk;
        uint64_t end;
        size_t count = 0;

        QUICK_HOUSE(house, "--threads", "1", "--ring-bytes", "64K", "--stall-ms", "300");
        record_alone(house);
        honest = honest_begin(house);
        talk = ask_all(house, ids);
        honest_look_for(&honest, 400);
        honest_end(&honest);
        for (end = now_ms() + PATIENCE_MS; house_status(house, "requests.live"); sleep_ms(100))
                assert_true(now_ms() < end);
        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct stream *stream = talk_end(talk, ids[i]);

                assert_int_equal(stream->end.reason, SMV_END_STALLED);
                assert_prefix_stream(stream, alone[i]);
                count += stream->token_count;
        }
        assert_true(count > 100);
        assert_int_equal(
                talk_whole(talk,
                           &(struct want){ .prompt = "a", .max_tokens = 3, .ignore_eos = true })
                        ->token_count,
                3);
        talk_close(talk);
        house_stop(house);
}

static void reader_that_goes_while_it_stalls_leaves_nothing(void **state)
{
        struct house *house = *state;
        uint32_t ids[STREAMS];

        QUICK_HOUSE(house, "--threads", "1", "--ring-bytes", "64K");
        for (uint32_t i = 0; i < 3; i++) {
                talk_close(fall_asleep(house, ids));
                house_rest(house);
        }
        house_stop(house);
}

/* Drops the bytes that can not be sent at once; true while the daemon listens. */
static bool shout(int fd, const struct bytes_out *bytes)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
        size_t at = 0;

        while (at < bytes->count) {
                ssize_t n =
                        send(fd, bytes->at + at, bytes->count - at, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n > 0)
                        at += (size_t)n;
                else if (errno != EAGAIN)
                        return false;
                else if (poll(&poll_fd, 1, 10000) <= 0)
                        fail_msg("%s", "the daemon neither listens nor hangs up");
        }
        return true;
}

static uint64_t resident_kib(pid_t pid)
{
        char path[64], *text, *at;
        uint64_t kib;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        text = file_text(path);
        at = strstr(text, "VmRSS:");
        kib = at ? strtoull(at + 6, NULL, 10) : 0;
        free(text);
        return kib;
}

static void asking_for_ever_without_reading_is_bounded(void **state)
{
        struct house *house = *state;
        struct honest honest;
        uint64_t before, after, most = 0;
        struct talk *talk;
        uint32_t pairs = 0;
        bool listens = true;

        QUICK_HOUSE(house, "--threads", "1", "--ring-bytes", "64K");
        honest = honest_begin(house);
        before = resident_kib(house->pid);
        talk = talk_greet(house);
        while (listens && pairs < 1000000) {
                struct bytes_out all = { 0 };

                for (uint32_t i = 0; i < 20; i++, pairs++) {
                        frame_put(&all, "op=s id=u prompt=s", "generate", 10 + 2 * pairs, "Once");
                        frame_put(&all, "op=s id=u stream=u", "cancel", 11 + 2 * pairs,
                                  10 + 2 * pairs);
                }
                listens = shout(talk->fd, &all);
                free(all.at);
                honest_look(&honest);
                after = resident_kib(house->pid);
                most = after > most ? after : most;
        }
        printf("# hung up after %u pairs; %u MiB more at most\n", pairs,
               (unsigned)((most > before ? most - before : 0) >> 10));
        assert_false(listens);
        talk_hangup(talk); /* everything sent before is whole frames, as always */
        talk_close(talk);
        honest_end(&honest);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(reader_that_wakes_finds_every_token_in_order),
                STORY(reader_that_sips_gets_all_of_it),
                STORY(others_run_as_if_it_were_not_there),
                STORY(reader_that_never_wakes_is_ended_as_stalled),
                STORY(reader_that_goes_while_it_stalls_leaves_nothing),
                STORY(asking_for_ever_without_reading_is_bounded),
        };

        int failed;

        need((const char *const[]){ "SAMOVARD", "BABBLE", "BABBLE_MAKER", NULL });
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        forget_alone();
        return failed;
}
