/*
 * A daemon whose GPU is lost: at the start, while weights are read, and while it serves.  It ends
 * in order, each stream has its END, and its exit status says that it may be started again.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/sys.h"
#include "tests/e2e/notes.h"

#define STARTS_MAX 400u
#define EACH       6u
#define LONG       1900u
#define KEPT       3u

int samovard_main(int argc, char **argv);

static _Atomic bool *held; /* shared with the child: true while reads of weights have to wait */
static char sign[96];      /* once this file exists, the GPU is lost */

static const struct want longest = { .prompt = "Once", .max_tokens = LONG, .ignore_eos = true };
static const char said[] = "samovard: the GPU failed: the emulated device was lost";

/* The layers that the GPU has; as for daemons that the harness starts. */
static const char *layers(void)
{
        const char *asked = getenv("SMV_TEST_GPU_LAYERS");

        return asked ? asked : "all";
}

static void plan_loss(const struct house *house)
{
        snprintf(sign, sizeof(sign), "%s/lost", house->directory);
        setenv("SMV_DEVICE_LOSE", sign, 1);
}

static void lose(void)
{
        close(open(sign, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* The daemon tells the supervisor: with one line for people and one exit status for the program. */
static void assert_gives_up(struct house *house)
{
        assert_int_equal(house_wait(house), EX_TEMPFAIL);
        assert_true(house_said(house, said));
}

static const struct stream *assert_lost(struct talk *talk, uint32_t id)
{
        const struct stream *stream = talk_end(talk, id);

        assert_int_equal(stream->end.reason, SMV_END_ERROR);
        assert_int_equal(stream->end.code, SMV_BACKEND);
        return stream;
}

/* The GPU is lost after every number of device operations, from none to all that the start
 * needs. */
static void at_any_moment_of_the_start_it_says_so_and_ends(void **state)
{
        struct house *house = *state;
        const char *const flags[] = { "--model",           given("BABBLE"),
                                      "--socket",          house->socket,
                                      "--backend",         "cuda",
                                      "--backend-library", given("SMV_TEST_CUDA_LIBRARY"),
                                      "--gpu-layers",      layers(),
                                      "--check",           NULL };
        uint32_t n = 0;
        int status;

        do {
                char operations[16];

                snprintf(operations, sizeof(operations), "%u", n);
                setenv("SMV_DEVICE_LOSE", operations, 1);
                truncate(house->log, 0);
                house->pid = house_spawn(house, flags, -1);
                status = house_wait(house);
                assert_true(!status || status == EX_TEMPFAIL);
                assert_int_equal(house_said(house, said), status != 0);
        } while (status && ++n < STARTS_MAX);
        assert_int_equal(status, 0);
        assert_true(n > 20);
        print_message("%u operations\n", n);
}

/* ---- while weights are read: the real main() in a child, whose reads wait for this process
 * ---- */

static int on_call(const char *call, void *arg)
{
        (void)arg;
        while (gettid() != getpid() && !strcmp(call, "pread") && atomic_load(held))
                usleep(1000);
        return 0;
}

static void be_daemon(const struct house *house)
{
        static const int crashes[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
        char *argv[] = { "samovard",
                         "--model",
                         (char *)given("BABBLE"),
                         "--socket",
                         (char *)house->socket,
                         "--load",
                         "plain",
                         "--backend",
                         "cuda",
                         "--backend-library",
                         (char *)given("SMV_TEST_CUDA_LIBRARY"),
                         "--gpu-layers",
                         (char *)layers(),
                         NULL };
        int log = open(house->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
                signal(crashes[i], SIG_DFL);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        close(log);
        sys_set_fault(on_call, NULL);
        exit(samovard_main((int)(sizeof(argv) / sizeof(*argv)) - 1, argv));
}

static void while_weights_are_read_who_waits_has_his_end(void **state)
{
        struct house *house = *state;
        struct talk *talk;
        uint32_t id;
        int fd;

        plan_loss(house);
        atomic_store(held, true);
        fflush(NULL);
        house->pid = fork();
        assert_true(house->pid >= 0);
        if (!house->pid)
                be_daemon(house);
        while ((fd = connect_raw(house)) < 0)
                sleep_ms(2);
        close(fd);
        talk = talk_greet(house);
        id = talk_generate(talk, &longest);
        assert_true(talk_reply(talk, id)->ok);
        assert_int_equal(talk_status(talk, "loading.bytes"), 0);
        lose();
        atomic_store(held, false);
        assert_lost(talk, id);
        talk_close(talk);
        assert_gives_up(house);
        assert_false(house_said(house, "loaded "));
        assert_true(house_said(house,
                               "engine_failed error=\"Input/output error\" why=\"the GPU failed"));
}

/* ---- while it serves ---- */

static void begin(struct house *house)
{
        truncate(house->log, 0);
        unlink(sign);
        HOUSE(house, "--max-seqs", "4", "--step-tokens", "32", "--kv-bytes", "2M");
}

/* True if any stream has a record; which streams run is chance. */
static bool has_begun(struct talk *const *talks, size_t count)
{
        for (size_t t = 0; t < count; t++)
                if (talks[t]->stream_count && talks[t]->streams[0]->token_count)
                        return true;
        return false;
}

/* Waits until the daemon is full: four run, all others wait. */
static void await_work(struct talk *const *talks, size_t count)
{
        while (talk_status(talks[0], "requests.running") < 4 || !has_begun(talks, count))
                talks_turn(talks, count, 10);
        assert_true(talk_status(talks[0], "requests.waiting") > 0);
}

static void each_stream_has_its_end(void **state)
{
        static const enum talk_transport transports[] = { TALK_SOCKET, TALK_KICK, TALK_FUTEX };
        struct house *house = *state;
        struct talk *talks[3];
        uint32_t ids[3][EACH], begun = 0;

        plan_loss(house);
        begin(house);
        for (size_t t = 0; t < 3; t++)
                talks[t] = talk_greet_by(house, transports[t]);
        for (uint32_t i = 0; i < EACH; i++)
                for (size_t t = 0; t < 3; t++)
                        ids[t][i] = talk_generate(talks[t], &longest);
        for (uint32_t i = 0; i < EACH; i++)
                for (size_t t = 0; t < 3; t++)
                        assert_true(talk_reply(talks[t], ids[t][i])->ok);
        await_work(talks, 3);
        lose();
        for (size_t t = 0; t < 3; t++) {
                for (uint32_t i = 0; i < EACH; i++)
                        begun += assert_lost(talks[t], ids[t][i])->token_count > 0;
                talk_hangup(talks[t]);
                talk_close(talks[t]);
        }
        assert_in_range(begun, 1, 4);
        assert_gives_up(house);
        assert_no_process_left();
}

static void kept_streams_have_theirs(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = LONG,
                                    .ignore_eos = 1, .keep_ms = 3600000 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct house *house = *state;
        struct smv_client *client, *other;

        plan_loss(house);
        begin(house);
        client = kept_connect(house);
        other = kept_connect(house);
        for (uint32_t i = 0; i < 2 * KEPT; i++)
                kept_begin(i % 2 ? client : other, &ask);
        smv_close(other);
        do
                assert_int_equal(smv_next(client, &event, 10000), 1);
        while (event.kind != SMV_EVENT_TOKENS);
        lose();
        for (uint32_t ends = 0; ends < KEPT;) {
                assert_int_equal(smv_next(client, &event, 10000), 1);
                if (event.kind != SMV_EVENT_END)
                        continue;
                assert_int_equal(event.reason, SMV_END_ERROR);
                assert_int_equal(event.code, SMV_BACKEND);
                ends++;
        }
        smv_close(client);
        assert_gives_up(house);
        assert_no_process_left();
}

static void who_has_nothing_under_way_is_let_go_and_the_next_daemon_serves(void **state)
{
        static const struct want short_one = { .prompt = "Once", .max_tokens = 3 };
        struct house *house = *state;
        struct talk *idle, *talk;
        struct stream *before;

        plan_loss(house);
        begin(house);
        idle = talk_greet(house);
        talk = talk_greet(house);
        before = stream_copy(talk_whole(talk, &short_one));
        lose();
        assert_lost(talk, talk_generate(talk, &longest));
        talk_hangup(idle);
        talk_close(idle);
        talk_close(talk);
        assert_gives_up(house);

        begin(house);
        talk = talk_greet(house);
        assert_same_stream(talk_whole(talk, &short_one), before);
        stream_free(before);
        talk_close(talk);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(at_any_moment_of_the_start_it_says_so_and_ends),
                STORY(while_weights_are_read_who_waits_has_his_end),
                STORY(each_stream_has_its_end),
                STORY(kept_streams_have_theirs),
                STORY(who_has_nothing_under_way_is_let_go_and_the_next_daemon_serves),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", "SMV_TEST_CUDA_LIBRARY", NULL });
        held = mmap(NULL, sizeof(*held), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (held == MAP_FAILED)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
