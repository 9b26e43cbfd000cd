/*
 * Streams and handles that outlive their connection.  A client may be killed at any moment, let go,
 * be robbed or come back from any record: what it has in the end is, bit for bit, what it would have
 * had in one go; and when all is dropped or its time has passed, nothing is left of it.
 */
#include <errno.h>
#include <samovar/client.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/honest.h"

#define RECORDS_MAX 400u
#define TEXT_MAX    64u
#define KEEP_MS     20000u
#define STRANGER    65533u

#define MANY "--ring-bytes", "64K", "--uid-kept", "4096", "--kept", "4096", "--uid-kept-bytes", "1G"

/* ---- what a client notes of a stream, in memory that outlives it ---- */

struct note {
        uint32_t token_count, tokens[4], text_bytes;
        char text[TEXT_MAX];
};

struct notes {
        _Atomic uint64_t kept;  /* 0: the daemon has not said it yet */
        _Atomic uint32_t count; /* records that are noted, the END included */
        _Atomic bool ended;
        bool wrong; /* a record is not the one that was noted before */
        struct smv_event end;
        struct note at[RECORDS_MAX];
};

static struct notes *notes_new(void)
{
        void *at = mmap(NULL, sizeof(struct notes), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        assert_ptr_not_equal(at, MAP_FAILED);
        return at;
}

static struct notes *notes_free(struct notes *notes)
{
        munmap(notes, sizeof(*notes));
        return NULL;
}

/* No assert, for it runs in children, too. */
static void take(struct notes *notes, const struct smv_event *event)
{
        struct note note = { .token_count = (uint32_t)event->token_count,
                             .text_bytes = (uint32_t)event->text_bytes };

        if (event->sequence >= RECORDS_MAX || event->sequence > notes->count ||
            event->token_count > 4 || event->text_bytes > TEXT_MAX) {
                notes->wrong = true;
                return;
        }
        if (event->kind == SMV_EVENT_END) {
                notes->end = *event;
                notes->ended = true;
        }
        for (size_t i = 0; i < event->token_count; i++)
                note.tokens[i] = event->tokens[i];
        if (event->text_bytes)
                memcpy(note.text, event->text, event->text_bytes);
        if (event->sequence < notes->count &&
            memcmp(&notes->at[event->sequence], &note, sizeof(note)))
                notes->wrong = true;
        notes->at[event->sequence] = note;
        if (event->sequence == notes->count)
                notes->count++;
}

static void assert_same_notes(const struct notes *a, const struct notes *b)
{
        assert_false(a->wrong || b->wrong);
        assert_true(a->ended && b->ended);
        assert_int_equal(a->count, b->count);
        for (uint32_t i = 0; i < a->count; i++)
                assert_memory_equal(&a->at[i], &b->at[i], sizeof(a->at[i]));
        assert_int_equal(a->end.reason, b->end.reason);
        assert_int_equal(a->end.code, b->end.code);
        assert_int_equal(a->end.prompt_tokens, b->end.prompt_tokens);
        assert_int_equal(a->end.output_tokens, b->end.output_tokens);
}

/* A model that is quick, so that there is time for many streams. */
static const char *quick_model(const struct house *house)
{
        static char path[96];
        struct ran ran;

        snprintf(path, sizeof(path), "%s/quick.gguf", house->directory);
        ran = RUN(house, NULL, given("BABBLE_MAKER"), path, "--layers", "1", "--width", "32",
                  "--heads", "2", "--kv-heads", "1", "--head-dim", "8", "--ffn", "32");
        assert_int_equal(ran.status, 0);
        ran_free(&ran);
        return path;
}

#define QUICK(house, ...)                                                                          \
        HOUSE(house, FAST, "--threads", "1", "--model", quick_model(house), __VA_ARGS__)

/* ---- clients ---- */

static struct smv_client *meet(const struct house *house, enum smv_doorbell doorbell)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = house->socket,
                                  .transport = talk_transport() == TALK_SOCKET
                                                       ? SMV_TRANSPORT_SOCKET
                                                       : SMV_TRANSPORT_RING,
                                  .doorbell = doorbell };
        struct smv_client *client = NULL;

        return smv_connect(&at, &client) ? NULL : client;
}

static struct smv_client *connect_to(const struct house *house)
{
        struct smv_client *client = meet(house, SMV_DOORBELL_KICK);

        assert_non_null(client);
        return client;
}

static struct smv_generate draw_ask(void)
{
        static const char *const prompts[] = { "Tea", "Once upon a time", "Why", "A samovar is" };
        static const char *const stops[] = { "qx" };

        return (struct smv_generate){ SMV_SIZE(smv_generate),
                                      .prompt = prompts[random_below(4)],
                                      .max_tokens = 1 + random_below(RECORDS_MAX - 2) /
                                                                (1 + random_below(6)),
                                      .temperature = (float)random_below(3) / 2,
                                      .set = SMV_SET_TEMPERATURE | SMV_SET_SEED,
                                      .seed = random_below(1000),
                                      .stops = stops,
                                      .stop_count = random_below(2),
                                      .keep_ms = KEEP_MS };
}

static void refused(struct smv_client *client, int r, enum smv_code code, const char *said)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        assert_int_equal(r, -EREMOTEIO);
        smv_error(client, &problem);
        if (problem.code != code || !strstr(problem.message, said))
                fail_msg("%u: %s", problem.code, problem.message);
}

static void drop(struct smv_client *client, uint64_t kept)
{
        assert_int_equal(smv_drop(client, kept), 0);
        refused(client, smv_drop(client, kept), SMV_NO_KEPT, "there is no kept stream");
}

/* Up to so many events; true: the END was one of them. */
static bool read_some(struct smv_client *client, struct notes *notes, uint32_t most)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        while (most--) {
                if (smv_next(client, &event, 60000) != 1)
                        fail_msg("nothing came");
                take(notes, &event);
                if (event.kind == SMV_EVENT_END)
                        return true;
        }
        return false;
}

/* In one go, and not kept. */
static void read_whole(struct smv_client *client, const struct smv_generate *ask,
                       struct notes *notes)
{
        struct smv_generate plain = *ask;
        uint32_t stream;

        plain.keep_ms = 0;
        assert_int_equal(smv_generate(client, &plain, &stream), 0);
        assert_int_equal(smv_kept(client, stream), 0);
        assert_true(read_some(client, notes, UINT32_MAX));
}

static uint64_t begin_kept(struct smv_client *client, const struct smv_generate *ask)
{
        uint32_t stream;

        assert_int_equal(smv_generate(client, ask, &stream), 0);
        assert_true(smv_kept(client, stream) != 0);
        return smv_kept(client, stream);
}

static void wait_status(const struct house *house, const char *path, uint64_t value)
{
        for (uint64_t end = now_ms() + 60000; house_status(house, path) != value; sleep_ms(10))
                assert_true(now_ms() < end);
}

/* ---- kill -9 ---- */

/* Begins the stream, or goes on with it, noting each record, and dies of so many; a child's, and no
 * test. */
static int be_a_reader(const struct house *house, const struct smv_generate *ask,
                       struct notes *notes, enum smv_doorbell doorbell, uint32_t most)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client = meet(house, doorbell);
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
                take(notes, &event);
                if (notes->count >= most)
                        kill(getpid(), SIGKILL);
        } while (event.kind != SMV_EVENT_END);
        return 0;
}

/* How often it was killed. */
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
                status = process_wait(pid, 60000);
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
        client = connect_to(house);
        for (uint32_t i = 0; i < times; i++) {
                struct notes *whole = notes_new(), *parts = notes_new();
                struct smv_generate ask = draw_ask();

                killed += read_by_mortals(house, &ask, parts);
                if (parts->kept) {
                        read_whole(client, &ask, whole);
                        assert_same_notes(whole, parts);
                        drop(client, parts->kept);
                        records += whole->count;
                } else {
                        unknown++; /* it died before it was told; the stream has its time */
                }
                notes_free(whole);
                notes_free(parts);
        }
        printf("# %u streams of %u records, their readers killed %u times, %u before the first "
               "answer\n",
               times - unknown, records, killed, unknown);
        assert_true(killed > times / 2);
        smv_close(client);
        wait_status(house, "kept.open", 0);
        house_stop(house);
}

/* ---- come, go, rob ---- */

/* One reader, of a few connections, who is never where he was. */
struct restless {
        const struct house *house;
        struct smv_client *clients[3];
        uint32_t streams[3]; /* 0: it is not attached there */
        uint64_t kept;
        struct notes *notes;
};

/* What the one before has not read is his to have, and behind it he is told. */
static void expect_moved(struct restless *r, uint32_t at)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        do {
                assert_int_equal(smv_next(r->clients[at], &event, 60000), 1);
                if (event.kind == SMV_EVENT_TOKENS || event.code != SMV_MOVED)
                        take(r->notes, &event);
        } while (event.kind != SMV_EVENT_END);
        /* It may have had its END before it was robbed. */
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
        if (before == at) { /* robbed by itself */
                struct smv_event event = { SMV_SIZE(smv_event) };
                bool moved = false, gone = false;

                r->streams[at] = stream;
                while (!moved && !gone) {
                        assert_int_equal(smv_next(r->clients[at], &event, 60000), 1);
                        moved = event.kind == SMV_EVENT_END && event.code == SMV_MOVED;
                        if (!moved)
                                take(r->notes, &event);
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
                r->clients[at] = connect_to(r->house);
                r->streams[at] = 0;
                break;
        default:
                if (read_some(r->clients[at], r->notes, 1 + random_below(30)))
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
        drop(r->clients[0], r->kept);
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
        plain = connect_to(house);
        for (uint32_t i = 0; i < 3; i++)
                r.clients[i] = connect_to(house);
        for (uint32_t i = 0; i < times; i++) {
                struct notes *whole = notes_new();
                struct smv_generate ask = draw_ask();

                r.notes = notes_new();
                wander(&r, &ask);
                read_whole(plain, &ask, whole);
                assert_same_notes(whole, r.notes);
                notes_free(whole);
                notes_free(r.notes);
        }
        for (uint32_t i = 0; i < 3; i++)
                smv_close(r.clients[i]);
        smv_close(plain);
        assert_int_equal(house_status(house, "kept.open"), 0);
        house_stop(house);
}

/* ---- time, numbers, limits ---- */

static void with_nobody_attached_its_time_passes(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 1900,
                                    .ignore_eos = 1, .keep_ms = 400 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct house *house = *state;
        struct smv_client *client, *other;
        uint32_t stream, last;
        uint64_t kept;

        QUICK(house, "--depth", "1");
        client = connect_to(house);
        other = connect_to(house);
        kept = begin_kept(client, &ask);
        smv_close(client);
        wait_status(house, "kept.open", 0);
        refused(other, smv_attach(other, kept, 0, &stream), SMV_NO_KEPT, "no kept stream");
        assert_int_equal(house_status(house, "requests.alive"), 0);

        /* Not while somebody is; and from its END on anew. */
        ask.max_tokens = 5;
        kept = begin_kept(other, &ask);
        sleep_ms(600);
        while (event.kind != SMV_EVENT_END)
                assert_int_equal(smv_next(other, &event, 10000), 1);
        last = event.sequence;
        ask.keep_ms = 60000;
        kept = begin_kept(other, &ask);
        for (event.kind = SMV_EVENT_NONE; event.kind != SMV_EVENT_END;)
                assert_int_equal(smv_next(other, &event, 10000), 1);
        wait_status(house, "kept.open", 1); /* the one before is gone */
        assert_int_equal(smv_attach(other, kept, last, &stream), 0);
        assert_int_equal(smv_next(other, &event, 10000), 1);
        assert_int_equal(event.kind, SMV_EVENT_END);
        assert_int_equal(event.reason, SMV_END_LENGTH);
        refused(other, smv_attach(other, kept, last + 1, &stream), SMV_BAD_VALUE,
                "its END included");
        drop(other, kept);

        /* One that runs is cancelled, and who is attached has its END. */
        ask.max_tokens = 1900;
        kept = begin_kept(other, &ask);
        refused(other, smv_attach(other, kept, 100000, &stream), SMV_BAD_VALUE, "so far");
        drop(other, kept);
        for (event.kind = SMV_EVENT_NONE; event.kind != SMV_EVENT_END;)
                assert_int_equal(smv_next(other, &event, 10000), 1);
        assert_int_equal(event.reason, SMV_END_CANCELLED);
        smv_close(other);
        house_stop(house);
}

static void what_may_be_kept_is_limited(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 100,
                                    .ignore_eos = 1, .keep_ms = 60000 };
        struct house *house = *state;
        struct smv_client *client;
        uint64_t kept[3], charged;
        uint32_t stream;

        QUICK(house, "--uid-kept", "2", "--kept", "3", "--uid-kept-bytes", "32K");
        client = connect_to(house);
        kept[0] = begin_kept(client, &ask);
        charged = house_status(house, "charges.0.kept_bytes");
        assert_true(charged > 100 * 32);
        assert_int_equal(house_status(house, "charges.0.kept"), 1);
        kept[1] = begin_kept(client, &ask);
        refused(client, smv_generate(client, &ask, &stream), SMV_QUOTA, "limit of 2 kept");
        ask.keep_ms = 0;
        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        for (uint32_t ends = 0; ends < 3;) {
                struct smv_event event = { SMV_SIZE(smv_event) };

                assert_int_equal(smv_next(client, &event, 10000), 1);
                ends += event.kind == SMV_EVENT_END;
        }
        assert_true(house_status(house, "charges.0.kept_bytes") <= 2 * charged);
        assert_int_equal(house_status(house, "kept.bytes"),
                         house_status(house, "charges.0.kept_bytes"));
        assert_int_equal(house_status(house, "kept.ended"), 2);
        drop(client, kept[0]);
        ask.keep_ms = 60000;
        ask.max_tokens = 1900;
        refused(client, smv_generate(client, &ask, &stream), SMV_QUOTA,
                "limit of 32768 kept_bytes");
        ask.max_tokens = 100;
        kept[2] = begin_kept(client, &ask);
        drop(client, kept[1]);
        drop(client, kept[2]);
        smv_close(client);
        house_stop(house);
}

/* Of a hundred tokens that it might have had it has one, and is charged for no more. */
static void what_has_ended_is_charged_for_what_it_became(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 1,
                                    .set = SMV_SET_TEMPERATURE, .ignore_eos = 1 };
        struct notes *alone = notes_new(), *notes = notes_new();
        struct house *house = *state;
        struct smv_client *client;
        uint64_t kept;

        QUICK(house, NULL);
        client = connect_to(house);
        read_whole(client, &ask, alone);
        ask.max_tokens = 100;
        ask.stop_tokens = alone->at[0].tokens;
        ask.stop_token_count = 1;
        ask.keep_ms = 60000;
        kept = begin_kept(client, &ask);
        assert_true(read_some(client, notes, UINT32_MAX));
        assert_int_equal(notes->end.reason, SMV_END_STOP);
        assert_int_equal(notes->end.output_tokens, 1);
        assert_in_range(house_status(house, "charges.0.kept_bytes"), 1, 100 * 32);
        drop(client, kept);
        notes_free(alone);
        notes_free(notes);
        smv_close(client);
        house_stop(house);
}

/* Its numbers are not there for him, in the same words as one that never was. */
static int be_a_stranger(const struct house *house, uint64_t kept, uint64_t handle)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = house->socket };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_client *client;
        uint32_t stream;

        if (setresgid(STRANGER, STRANGER, STRANGER) || setresuid(STRANGER, STRANGER, STRANGER))
                return 2;
        if (smv_connect(&at, &client))
                return 3;
        if (smv_attach(client, kept, 0, &stream) != -EREMOTEIO)
                return 4;
        smv_error(client, &problem);
        if (problem.code != SMV_NO_KEPT || strncmp(problem.message, "there is no kept stream", 23))
                return 5;
        if (smv_attach(client, kept + 1000, 0, &stream) != -EREMOTEIO)
                return 6;
        smv_error(client, &problem);
        if (problem.code != SMV_NO_KEPT || strncmp(problem.message, "there is no kept stream", 23))
                return 7;
        if (smv_drop(client, kept) != -EREMOTEIO || smv_handle_close(client, handle) != -EREMOTEIO)
                return 8;
        smv_close(client);
        return 0;
}

static void to_another_user_it_does_not_exist(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 100,
                                    .ignore_eos = 1, .keep_ms = 60000 };
        struct house *house = *state;
        struct smv_client *client;
        uint64_t kept, handle;
        pid_t pid;

        if (getuid())
                skip(); /* only root can be somebody else */
        QUICK(house, "--socket-mode", "0666");
        assert_int_equal(chmod(house->directory, 0711), 0);
        client = connect_to(house);
        kept = begin_kept(client, &ask);
        assert_int_equal(smv_handle_open(client, &ask, &handle, NULL), 0);
        pid = fork();
        if (!pid)
                _exit(be_a_stranger(house, kept, handle));
        assert_int_equal(process_wait(pid, 20000), 0);
        assert_int_equal(smv_handle_close(client, handle), 0);
        drop(client, kept);
        smv_close(client);
        house_stop(house);
}

/* Nobody who reads slowly holds up a kept stream: it ends, and all of it waits for him. */
static void who_does_not_read_stalls_nothing(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate),     .prompt = "Tea",
                                    .max_tokens = 1900,         .ignore_eos = 1,
                                    .set = SMV_SET_TEMPERATURE, .keep_ms = 60000 };
        struct house *house = *state;
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint64_t kept[12];
        uint32_t ends = 0, tokens = 0;

        QUICK(house, "--ring-bytes", "64K");
        client = connect_to(house);
        for (uint32_t i = 0; i < 12; i++)
                kept[i] = begin_kept(client, &ask);
        wait_status(house, "kept.ended", 12);
        assert_int_equal(house_status(house, "requests.alive"), 0);
        while (ends < 12) {
                assert_int_equal(smv_next(client, &event, 10000), 1);
                tokens += (uint32_t)event.token_count;
                ends += event.kind == SMV_EVENT_END;
                if (event.kind == SMV_EVENT_END)
                        assert_int_equal(event.reason, SMV_END_LENGTH);
        }
        assert_int_equal(tokens, 12 * 1900);
        for (uint32_t i = 0; i < 12; i++)
                drop(client, kept[i]);
        smv_close(client);
        house_stop(house);
}

static void a_daemon_that_stops_ends_them_as_all_others(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 1900,
                                    .ignore_eos = 1, .keep_ms = 3600000 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct house *house = *state;
        struct smv_client *client, *other;
        uint64_t handle;

        QUICK(house, "--drain-ms", "1");
        client = connect_to(house);
        other = connect_to(house);
        for (uint32_t i = 0; i < 6; i++)
                begin_kept(i % 2 ? client : other, &ask);
        assert_int_equal(smv_handle_open(other, &ask, &handle, NULL), 0);
        smv_close(other);
        kill(house->pid, SIGTERM);
        for (uint32_t ends = 0; ends < 3; ends += event.kind == SMV_EVENT_END)
                assert_int_equal(smv_next(client, &event, 10000), 1);
        assert_int_equal(event.code, SMV_SHUTTING_DOWN);
        assert_int_equal(house_wait(house), 0);
        smv_close(client);
        assert_no_process_left();
}

/* ---- handles ---- */

static void a_handle_that_is_kept_outlives_its_connection(void **state)
{
        struct smv_generate open = { SMV_SIZE(smv_generate), .prompt = "Tea", .keep_ms = 700 };
        struct smv_generate turn = { SMV_SIZE(smv_generate), .max_tokens = 10, .ignore_eos = 1 };
        struct house *house = *state;
        struct smv_client *client, *other;
        uint64_t handle, forks[3], plain;
        struct notes *notes = notes_new();
        uint32_t stream;
        size_t length;

        QUICK(house, "--depth", "1");
        client = connect_to(house);
        other = connect_to(house);
        assert_int_equal(smv_handle_open(client, &open, &handle, &length), 0);
        assert_int_equal(length, 4);
        assert_int_equal(smv_handle_fork(client, handle, 1, &plain), 0);
        smv_close(client);
        wait_status(house, "handles.open", 1); /* the fork went with it */
        assert_int_equal(house_status(house, "handles.kept"), 1);
        refused(other, smv_handle_close(other, plain), SMV_NO_HANDLE, "no handle");

        turn.handle = handle;
        assert_int_equal(smv_generate(other, &turn, &stream), 0);
        assert_true(read_some(other, notes, UINT32_MAX));
        assert_int_equal(smv_handle_append_text(other, handle, "!", 1, &length), 0);
        assert_int_equal(length, 15);
        for (uint32_t i = 0; i < 10; i++) { /* longer than its time, and named meanwhile */
                sleep_ms(100);
                assert_int_equal(smv_handle_append_text(other, handle, "!", 1, &length), 0);
        }
        assert_int_equal(smv_handle_fork_kept(other, handle, 3, 60000, forks), 0);
        smv_close(other);
        wait_status(house, "handles.open", 3); /* its time has passed, and not theirs */
        other = connect_to(house);
        for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(smv_handle_append_text(other, forks[i], "", 0, &length), 0);
                assert_int_equal(length, 25);
                assert_int_equal(smv_handle_close(other, forks[i]), 0);
        }
        smv_close(other);
        notes_free(notes);
        house_stop(house);
}

/* A stream on a handle: both are kept, and who comes back finds what the whole gives. */
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
        client = connect_to(house);
        assert_int_equal(smv_handle_open(client, &ask, &handle, NULL), 0);
        turn.prompt = NULL;
        turn.handle = handle;
        kept = begin_kept(client, &turn);
        assert_false(read_some(client, notes, 20));
        smv_close(client);
        client = connect_to(house);
        assert_int_equal(smv_attach(client, kept, 20, &stream), 0);
        assert_true(read_some(client, notes, UINT32_MAX));
        assert_int_equal(smv_handle_append_text(client, handle, "", 0, &length), 0);
        assert_int_equal(length, 304);
        read_whole(client, &ask, whole);
        assert_same_notes(whole, notes);
        drop(client, kept);

        kept = begin_kept(client, &turn);
        assert_int_equal(smv_handle_close(client, handle), 0);
        struct smv_event event = { SMV_SIZE(smv_event) };
        while (event.kind != SMV_EVENT_END)
                assert_int_equal(smv_next(client, &event, 10000), 1);
        assert_int_equal(event.reason, SMV_END_CANCELLED);
        drop(client, kept);
        smv_close(client);
        notes_free(notes);
        notes_free(whole);
        house_stop(house);
}

/* ---- the command ---- */

static void the_command_goes_on_where_another_died(void **state)
{
        struct house *house = *state;
        struct ran whole, rest;
        char out[128], number[32] = "", *text, *err;
        unsigned long long kept = 0;
        uint64_t end;
        pid_t pid;

        HOUSE(house, FAST, "--threads", "1");
        whole = RUN(house, NULL, given("SAMOVAR"), "complete", "--socket", house->socket, "--temp",
                    "1", "--seed", "5", "--max", "600", "Once");
        assert_int_equal(whole.status, 0);
        snprintf(out, sizeof(out), "%s/err", house->directory);
        pid = fork();
        if (!pid) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (!freopen(out, "w", stderr) || !freopen("/dev/null", "w", stdout))
                        _exit(9);
                execl(given("SAMOVAR"), "samovar", "complete", "--socket", house->socket, "--temp",
                      "1", "--seed", "5", "--max", "600", "--keep", "60", "Once", (char *)NULL);
                _exit(9);
        }
        for (end = now_ms() + 20000; !kept; sleep_ms(1)) {
                err = file_text(out);
                if (strchr(err, '\n'))
                        sscanf(err, "samovar: kept as %llu", &kept);
                free(err);
                assert_true(now_ms() < end);
        }
        kill(pid, SIGKILL);
        assert_int_equal(process_wait(pid, 5000), -SIGKILL);
        snprintf(number, sizeof(number), "%llu", kept);
        rest = RUN(house, NULL, given("SAMOVAR"), "attach", "--socket", house->socket, number);
        assert_int_equal(rest.status, 0);
        assert_string_equal(rest.out, whole.out);
        ran_free(&rest);

        /* It was dropped, for all of it was printed. */
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
                STORY(with_nobody_attached_its_time_passes),
                STORY(what_may_be_kept_is_limited),
                STORY(what_has_ended_is_charged_for_what_it_became),
                STORY(to_another_user_it_does_not_exist),
                STORY(who_does_not_read_stalls_nothing),
                STORY(a_daemon_that_stops_ends_them_as_all_others),
                STORY(a_handle_that_is_kept_outlives_its_connection),
                STORY(a_kept_stream_on_a_kept_handle_goes_on),
                STORY(the_command_goes_on_where_another_died),
        };

        need((const char *const[]){ "SAMOVARD", "SAMOVAR", "BABBLE", "BABBLE_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(stories, NULL, NULL);
}
