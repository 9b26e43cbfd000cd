/*
 * Streams and handles that outlive their connection.  At any moment a client may be killed, let go
 * of a stream, lose it to another client, or come back from any record.  In the end it has, bit for
 * bit, what it would have had in one connection.
 */
#include <errno.h>
#include <fcntl.h>
#include <samovar/client.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/e2e/notes.h"

/* ---- kill -9 ---- */

/* Begins the stream or continues it, notes each record, and dies after `most` of them.  It runs in
 * a child, so it uses no cmocka. */
static int be_a_reader(const struct house *house, const struct smv_generate *ask,
                       struct notes *notes, enum smv_doorbell doorbell, uint32_t most)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client = kept_meet(house, doorbell);
        uint32_t stream;

        if (!client)
                return 2;
        if (notes->kept) {
                if (smv_attach(client, notes->kept, notes->count, &stream))
                        return 3;
        } else {
                if (smv_generate(client, ask, &stream))
                        return 4;
                notes->kept = smv_kept(client, stream);
        }
        do {
                if (smv_next(client, &event, 60000) != 1)
                        return 5;
                notes_take(notes, &event);
                if (notes->count >= most)
                        kill(getpid(), SIGKILL);
        } while (event.kind != SMV_EVENT_END);
        return 0;
}

/* Returns how often the reader was killed. */
static uint32_t read_by_mortals(const struct house *house, const struct smv_generate *ask,
                                struct notes *notes)
{
        uint32_t killed = 0;
        int status;

        do {
                uint32_t most = notes->count + 1 + random_below(60);
                enum smv_doorbell doorbell = random_below(3);
                bool at_any_moment = !random_below(4);
                pid_t pid = fork();

                if (!pid) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        _exit(be_a_reader(house, ask, notes, doorbell, most));
                }
                if (at_any_moment) {
                        usleep(random_below(20000));
                        kill(pid, SIGKILL);
                }
                status = process_wait(pid);
                if (status && status != -SIGKILL)
                        fail_msg("a reader ended with %d", status);
                killed += status != 0;
        } while (status && notes->kept && !notes->ended);
        return killed;
}

static void killed_at_any_moment_it_goes_on_with_the_next_token(void **state)
{
        uint32_t times = scaled(60, 4000), killed = 0, unknown = 0, records = 0;
        struct house *house = *state;
        struct smv_client *client;

        QUICK(house, MANY);
        client = kept_connect(house);
        for (uint32_t i = 0; i < times; i++) {
                struct notes *whole = notes_new(), *parts = notes_new();
                struct smv_generate ask = kept_draw();

                killed += read_by_mortals(house, &ask, parts);
                if (parts->kept) {
                        notes_read_whole(client, &ask, whole);
                        notes_assert_same(whole, parts);
                        kept_drop(client, parts->kept);
                        records += whole->count;
                } else {
                        /* The reader died before it was told the number; the stream lasts as long
                         * as its time. */
                        unknown++;
                }
                notes_free(whole);
                notes_free(parts);
        }
        printf("# %u streams of %u records, their readers killed %u times, %u before the first "
               "answer\n",
               times - unknown, records, killed, unknown);
        assert_true(killed > times / 2);
        smv_close(client);
        kept_wait_status(house, "kept.open", 0);
        house_stop(house);
}

/* ---- attach, detach, take over ---- */

/* One reader with a few connections, which moves between them. */
struct restless {
        const struct house *house;
        struct smv_client *clients[3];
        uint32_t streams[3]; /* 0: it is not attached there */
        uint64_t kept;
        struct notes *notes;
};

/* The earlier connection still gets the records that it has not read; after them it is told of the
 * move. */
static void expect_moved(struct restless *r, uint32_t at)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        do {
                assert_int_equal(smv_next(r->clients[at], &event, 60000), 1);
                if (event.kind == SMV_EVENT_TOKENS || event.code != SMV_MOVED)
                        notes_take(r->notes, &event);
        } while (event.kind != SMV_EVENT_END);
        /* The stream may have had its END before it was taken over. */
        assert_true(event.code == SMV_MOVED || event.code == SMV_OK);
        r->streams[at] = 0;
}

static uint32_t attached_at(const struct restless *r)
{
        uint32_t at = 0;

        while (at < 3 && !r->streams[at])
                at++;
        return at;
}

static void attach_at(struct restless *r, uint32_t at)
{
        uint32_t before = attached_at(r), from = random_below(r->notes->count + 1);
        uint32_t stream;
        int error;

        if (random_below(2))
                from = r->notes->count;
        if (r->notes->ended && from == r->notes->count)
                from--;
        error = smv_attach(r->clients[at], r->kept, from, &stream);
        assert_int_equal(error, 0);
        if (before == at) { /* taken over by the same connection */
                struct smv_event event = { SMV_SIZE(smv_event) };
                bool moved = false, gone = false;

                r->streams[at] = stream;
                while (!moved && !gone) {
                        assert_int_equal(smv_next(r->clients[at], &event, 60000), 1);
                        moved = event.kind == SMV_EVENT_END && event.code == SMV_MOVED;
                        if (!moved)
                                notes_take(r->notes, &event);
                        gone = event.kind == SMV_EVENT_END && event.stream != stream && !moved;
                }
                return;
        }
        r->streams[at] = stream;
        if (before < 3)
                expect_moved(r, before);
}

static void one_step(struct restless *r)
{
        uint32_t at = attached_at(r);

        switch (random_below(at < 3 ? 6 : 1)) {
        case 0:
                attach_at(r, random_below(3));
                break;
        case 1:
                assert_int_equal(smv_detach(r->clients[at], r->streams[at]), 0);
                r->streams[at] = 0;
                break;
        case 2:
                smv_close(r->clients[at]);
                r->clients[at] = kept_connect(r->house);
                r->streams[at] = 0;
                break;
        default:
                if (notes_read(r->clients[at], r->notes, 1 + random_below(30)))
                        r->streams[at] = 0;
        }
}

static void wander(struct restless *r, const struct smv_generate *ask)
{
        uint32_t at = random_below(3), steps = 2 + random_below(6);

        memset(r->streams, 0, sizeof(r->streams));
        assert_int_equal(smv_generate(r->clients[at], ask, &r->streams[at]), 0);
        r->kept = smv_kept(r->clients[at], r->streams[at]);
        while (!r->notes->ended || steps--)
                one_step(r);
        for (at = 0; at < 3; at++)
                if (r->streams[at])
                        assert_int_equal(smv_detach(r->clients[at], r->streams[at]), 0);
        kept_drop(r->clients[0], r->kept);
        for (at = 0; at < 3; at++)
                assert_int_equal(
                        smv_next(r->clients[at], &(struct smv_event){ SMV_SIZE(smv_event) }, 0),
                        -ENODATA);
}

static void wherever_it_is_read_and_from_wherever_it_is_the_same(void **state)
{
        uint32_t times = scaled(100, 20000);
        struct house *house = *state;
        struct restless r = { .house = house };
        struct smv_client *plain;

        QUICK(house, MANY);
        plain = kept_connect(house);
        for (uint32_t i = 0; i < 3; i++)
                r.clients[i] = kept_connect(house);
        for (uint32_t i = 0; i < times; i++) {
                struct notes *whole = notes_new();
                struct smv_generate ask = kept_draw();

                r.notes = notes_new();
                wander(&r, &ask);
                notes_read_whole(plain, &ask, whole);
                notes_assert_same(whole, r.notes);
                notes_free(whole);
                notes_free(r.notes);
        }
        for (uint32_t i = 0; i < 3; i++)
                smv_close(r.clients[i]);
        smv_close(plain);
        assert_int_equal(house_status(house, "kept.open"), 0);
        house_stop(house);
}

/* ---- handles ---- */

static void a_handle_that_is_kept_outlives_its_connection(void **state)
{
        struct smv_generate open = { SMV_SIZE(smv_generate), .prompt = "Tea", .keep_ms = 2000 };
        struct smv_generate turn = { SMV_SIZE(smv_generate), .max_tokens = 10, .ignore_eos = 1 };
        struct house *house = *state;
        struct smv_client *client, *other;
        uint64_t handle, forks[3], plain;
        struct notes *notes = notes_new();
        uint32_t stream, named = 0;
        size_t length;
        uint64_t end;

        QUICK(house, "--depth", "1");
        client = kept_connect(house);
        other = kept_connect(house);
        assert_int_equal(smv_handle_open(client, &open, &handle, &length), 0);
        assert_int_equal(length, 4);
        assert_int_equal(smv_handle_fork(client, handle, 1, &plain), 0);
        smv_close(client);
        kept_wait_status(house, "handles.open", 1); /* the fork is gone with its connection */
        assert_int_equal(house_status(house, "handles.kept"), 1);
        kept_refused(other, smv_handle_close(other, plain), SMV_NO_HANDLE, "no handle");

        turn.handle = handle;
        assert_int_equal(smv_generate(other, &turn, &stream), 0);
        assert_true(notes_read(other, notes, UINT32_MAX));
        assert_int_equal(smv_handle_append_text(other, handle, "!", 1, &length), 0);
        assert_int_equal(length, 15);
        for (end = now_ms() + 2500; now_ms() < end; named++) { /* longer than its time */
                sleep_ms(100);
                assert_int_equal(smv_handle_append_text(other, handle, "!", 1, &length), 0);
        }
        assert_int_equal(smv_handle_fork_kept(other, handle, 3, 60000, forks), 0);
        smv_close(other);
        kept_wait_status(house, "handles.open", 3); /* its time has passed, and not the others' */
        other = kept_connect(house);
        for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(smv_handle_append_text(other, forks[i], "", 0, &length), 0);
                assert_int_equal(length, 15 + named);
                assert_int_equal(smv_handle_close(other, forks[i]), 0);
        }
        smv_close(other);
        notes_free(notes);
        house_stop(house);
}

/* A stream on a handle: both are kept, and a client that comes back finds what the whole gives. */
static void a_kept_stream_on_a_kept_handle_goes_on(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .keep_ms = 60000,
                                    .max_tokens = 300,      .ignore_eos = 1, .seed = 3 };
        struct smv_generate turn = ask;
        struct notes *notes = notes_new(), *whole = notes_new();
        struct house *house = *state;
        struct smv_client *client;
        uint64_t kept, handle;
        uint32_t stream;
        size_t length;

        QUICK(house, "--depth", "1");
        client = kept_connect(house);
        assert_int_equal(smv_handle_open(client, &ask, &handle, NULL), 0);
        turn.prompt = NULL;
        turn.handle = handle;
        kept = kept_begin(client, &turn);
        assert_false(notes_read(client, notes, 20));
        smv_close(client);
        client = kept_connect(house);
        assert_int_equal(smv_attach(client, kept, 20, &stream), 0);
        assert_true(notes_read(client, notes, UINT32_MAX));
        assert_int_equal(smv_handle_append_text(client, handle, "", 0, &length), 0);
        assert_int_equal(length, 304);
        notes_read_whole(client, &ask, whole);
        notes_assert_same(whole, notes);
        kept_drop(client, kept);
        assert_int_equal(smv_handle_close(client, handle), 0);
        smv_close(client);
        notes_free(notes);
        notes_free(whole);
        house_stop(house);
}

static void with_its_handle_a_kept_stream_is_closed(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .keep_ms = 60000,
                                    .max_tokens = ENDLESS, .ignore_eos = 1 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct house *house = *state;
        struct smv_client *client;
        uint64_t kept;

        QUICK_ENDLESS(house, "--depth", "1");
        client = kept_connect(house);
        assert_int_equal(smv_handle_open(client, &ask, &ask.handle, NULL), 0);
        ask.prompt = NULL;
        kept = kept_begin(client, &ask);
        assert_int_equal(smv_next(client, &event, 60000), 1);
        assert_int_equal(smv_handle_close(client, ask.handle), 0);
        while (event.kind != SMV_EVENT_END)
                assert_int_equal(smv_next(client, &event, 60000), 1);
        assert_int_equal(event.reason, SMV_END_CANCELLED);
        assert_true(event.output_tokens > 0);
        kept_drop(client, kept);
        smv_close(client);
        house_stop(house);
}

/* ---- the command ---- */

/* A pipe that takes nothing: a process that prints into it is not done until it is killed. */
static void make_full_pipe(int ends[2])
{
        char page[4096] = { 0 };

        assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        while (write(ends[1], page, sizeof(page)) > 0)
                ;
        assert_int_equal(errno, EAGAIN);
        assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
}

static void the_command_goes_on_where_another_died(void **state)
{
        struct house *house = *state;
        struct ran whole, rest;
        char out[128], number[32] = "", *text, *err;
        unsigned long long kept = 0;
        int ends[2];
        uint64_t end;
        pid_t pid;

        HOUSE(house, FAST, "--threads", "1");
        whole = RUN(house, NULL, given("SAMOVAR"), "complete", "--socket", house->socket, "--temp",
                    "1", "--seed", "5", "--max", "600", "Once");
        assert_int_equal(whole.status, 0);
        snprintf(out, sizeof(out), "%s/err", house->directory);
        make_full_pipe(ends);
        pid = fork();
        if (!pid) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (!freopen(out, "w", stderr) || dup2(ends[1], STDOUT_FILENO) < 0)
                        _exit(9);
                execl(given("SAMOVAR"), "samovar", "complete", "--socket", house->socket, "--temp",
                      "1", "--seed", "5", "--max", "600", "--keep", "60", "Once", (char *)NULL);
                _exit(9);
        }
        for (end = now_ms() + PATIENCE_MS; !kept; sleep_ms(1)) {
                err = file_text(out);
                if (strchr(err, '\n'))
                        sscanf(err, "samovar: kept as %llu", &kept);
                free(err);
                assert_true(now_ms() < end);
        }
        kill(pid, SIGKILL);
        assert_int_equal(process_wait(pid), -SIGKILL);
        close(ends[0]);
        close(ends[1]);
        snprintf(number, sizeof(number), "%llu", kept);
        rest = RUN(house, NULL, given("SAMOVAR"), "attach", "--socket", house->socket, number);
        assert_int_equal(rest.status, 0);
        assert_string_equal(rest.out, whole.out);
        ran_free(&rest);

        /* It was dropped, because all of it was printed. */
        rest = RUN(house, NULL, given("SAMOVAR"), "attach", "--socket", house->socket, number);
        assert_int_equal(rest.status, 1);
        text = strstr(rest.err, "there is no kept stream");
        assert_non_null(text);
        ran_free(&rest);
        ran_free(&whole);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                STORY(killed_at_any_moment_it_goes_on_with_the_next_token),
                STORY(wherever_it_is_read_and_from_wherever_it_is_the_same),
                STORY(a_handle_that_is_kept_outlives_its_connection),
                STORY(a_kept_stream_on_a_kept_handle_goes_on),
                STORY(with_its_handle_a_kept_stream_is_closed),
                STORY(the_command_goes_on_where_another_died),
        };

        need((const char *const[]){ "SAMOVARD", "SAMOVAR", "BABBLE", "BABBLE_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(stories, NULL, NULL);
}
