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

#include "base/sys.h"
#include "tests/e2e/stream-log.h"

#define STARTS_MAX 400u
#define EACH       6u
#define LONG       1900u
#define RESUMABLE  3u

int samovard_main(int argc, char **argv);

/* Shared with the child: true while reads of weights have to wait. */
static _Atomic bool *reads_paused;
static char lost_file[96]; /* once this file exists, the GPU is lost */

static const struct want longest = { .prompt = "Once", .max_tokens = LONG, .ignore_eos = true };
static const char lost_message[] = "samovard: the GPU failed: the emulated device was lost";

/* The layers that the GPU has; as for daemons that the harness starts. */
static const char *layers(void)
{
        const char *asked = getenv("SMV_TEST_GPU_LAYERS");

        return asked ? asked : "all";
}

static void prepare_loss(const struct daemon_fixture *fixture)
{
        snprintf(lost_file, sizeof(lost_file), "%s/lost", fixture->directory);
        setenv("SMV_DEVICE_LOSE", lost_file, 1);
}

static void lose_gpu(void)
{
        close(open(lost_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* The daemon tells the supervisor: with one line for people and one exit status for the program. */
static void assert_exits_for_restart(struct daemon_fixture *fixture)
{
        assert_int_equal(fixture_await_exit(fixture), EX_TEMPFAIL);
        assert_true(fixture_logged(fixture, lost_message));
}

static const struct stream *assert_lost(struct raw_client *client, uint32_t id)
{
        const struct stream *stream = raw_client_await_end(client, id);

        assert_int_equal(stream->end.reason, SMV_END_ERROR);
        assert_int_equal(stream->end.code, SMV_BACKEND);
        return stream;
}

/* The GPU is lost after every number of device operations, from none to all that the start
 * needs. */
static void a_gpu_lost_at_any_moment_of_the_start_ends_the_daemon_with_75(void **state)
{
        struct daemon_fixture *fixture = *state;
        const char *const flags[] = { "--model",           env_path("TOY_MODEL"),
                                      "--socket",          fixture->socket,
                                      "--backend",         "cuda",
                                      "--backend-library", env_path("SMV_TEST_CUDA_LIBRARY"),
                                      "--gpu-layers",      layers(),
                                      "--check",           NULL };
        uint32_t n = 0;
        int status;

        do {
                char operations[16];

                snprintf(operations, sizeof(operations), "%u", n);
                setenv("SMV_DEVICE_LOSE", operations, 1);
                fixture_clear_log(fixture);
                fixture->pid = fixture_spawn(fixture, flags, -1);
                status = fixture_await_exit(fixture);
                assert_true(!status || status == EX_TEMPFAIL);
                assert_int_equal(fixture_logged(fixture, lost_message), status != 0);
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
        while (gettid() != getpid() && !strcmp(call, "pread") && atomic_load(reads_paused))
                usleep(1000);
        return 0;
}

static void be_daemon(const struct daemon_fixture *fixture)
{
        static const int crashes[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
        char *argv[] = { "samovard",
                         "--model",
                         (char *)env_path("TOY_MODEL"),
                         "--socket",
                         (char *)fixture->socket,
                         "--load",
                         "plain",
                         "--backend",
                         "cuda",
                         "--backend-library",
                         (char *)env_path("SMV_TEST_CUDA_LIBRARY"),
                         "--gpu-layers",
                         (char *)layers(),
                         NULL };
        int log = open(fixture->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
                signal(crashes[i], SIG_DFL);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        close(log);
        sys_set_fault(on_call, NULL);
        exit(samovard_main((int)(sizeof(argv) / sizeof(*argv)) - 1, argv));
}

static void a_gpu_lost_while_loading_ends_each_waiting_stream(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint32_t id;
        int fd;

        prepare_loss(fixture);
        atomic_store(reads_paused, true);
        fflush(NULL);
        fixture->pid = fork();
        assert_true(fixture->pid >= 0);
        if (!fixture->pid)
                be_daemon(fixture);
        while ((fd = fixture_connect(fixture)) < 0)
                sleep_ms(2);
        close(fd);
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &longest);
        assert_true(raw_client_await_reply(client, id)->ok);
        assert_int_equal(raw_client_status(client, "loading.bytes"), 0);
        lose_gpu();
        atomic_store(reads_paused, false);
        assert_lost(client, id);
        raw_client_close(client);
        assert_exits_for_restart(fixture);
        assert_false(fixture_logged(fixture, "loaded "));
        assert_true(fixture_logged(
                fixture, "engine_failed error=\"Input/output error\" why=\"the GPU failed"));
}

/* ---- while it serves ---- */

static void begin(struct daemon_fixture *fixture)
{
        fixture_clear_log(fixture);
        unlink(lost_file);
        START_DAEMON(fixture, "--max-seqs", "4", "--step-tokens", "32", "--kv-bytes", "2M");
}

/* True if any stream has a record; which streams run is chance. */
static bool has_begun(struct raw_client *const *clients, size_t count)
{
        for (size_t t = 0; t < count; t++)
                if (clients[t]->stream_count && clients[t]->streams[0]->token_count)
                        return true;
        return false;
}

/* Waits until the daemon is full: four run, all others wait. */
static void await_work(struct raw_client *const *clients, size_t count)
{
        while (raw_client_status(clients[0], "requests.running") < 4 || !has_begun(clients, count))
                raw_clients_poll(clients, count, 10);
        assert_true(raw_client_status(clients[0], "requests.waiting") > 0);
}

static void a_gpu_lost_while_serving_ends_each_stream(void **state)
{
        static const enum raw_client_transport transports[] = { RAW_CLIENT_SOCKET, RAW_CLIENT_KICK,
                                                                RAW_CLIENT_FUTEX };
        struct daemon_fixture *fixture = *state;
        struct raw_client *clients[3];
        uint32_t ids[3][EACH], begun = 0;

        prepare_loss(fixture);
        begin(fixture);
        for (size_t t = 0; t < 3; t++)
                clients[t] = raw_client_greet_over(fixture, transports[t]);
        for (uint32_t i = 0; i < EACH; i++)
                for (size_t t = 0; t < 3; t++)
                        ids[t][i] = raw_client_generate(clients[t], &longest);
        for (uint32_t i = 0; i < EACH; i++)
                for (size_t t = 0; t < 3; t++)
                        assert_true(raw_client_await_reply(clients[t], ids[t][i])->ok);
        await_work(clients, 3);
        lose_gpu();
        for (size_t t = 0; t < 3; t++) {
                for (uint32_t i = 0; i < EACH; i++)
                        begun += assert_lost(clients[t], ids[t][i])->token_count > 0;
                raw_client_await_hangup(clients[t]);
                raw_client_close(clients[t]);
        }
        assert_in_range(begun, 1, 4);
        assert_exits_for_restart(fixture);
        assert_no_process_left();
}

static void a_gpu_lost_while_serving_ends_each_resumable_stream(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = LONG,
                                    .ignore_eos = 1, .keep_ms = 3600000 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client, *other;

        prepare_loss(fixture);
        begin(fixture);
        client = resumable_connect(fixture);
        other = resumable_connect(fixture);
        for (uint32_t i = 0; i < 2 * RESUMABLE; i++)
                resumable_stream_begin(i % 2 ? client : other, &ask);
        smv_close(other);
        do
                assert_int_equal(smv_next(client, &event, 10000), 1);
        while (event.kind != SMV_EVENT_TOKENS);
        lose_gpu();
        for (uint32_t ends = 0; ends < RESUMABLE;) {
                assert_int_equal(smv_next(client, &event, 10000), 1);
                if (event.kind != SMV_EVENT_END)
                        continue;
                assert_int_equal(event.reason, SMV_END_ERROR);
                assert_int_equal(event.code, SMV_BACKEND);
                ends++;
        }
        smv_close(client);
        assert_exits_for_restart(fixture);
        assert_no_process_left();
}

static void a_lost_gpu_disconnects_idle_clients_and_the_next_daemon_serves(void **state)
{
        static const struct want short_one = { .prompt = "Once", .max_tokens = 3 };
        struct daemon_fixture *fixture = *state;
        struct raw_client *idle, *client;
        struct stream *before;

        prepare_loss(fixture);
        begin(fixture);
        idle = raw_client_greet(fixture);
        client = raw_client_greet(fixture);
        before = stream_copy(raw_client_complete(client, &short_one));
        lose_gpu();
        assert_lost(client, raw_client_generate(client, &longest));
        raw_client_await_hangup(idle);
        raw_client_close(idle);
        raw_client_close(client);
        assert_exits_for_restart(fixture);

        begin(fixture);
        client = raw_client_greet(fixture);
        assert_same_stream(raw_client_complete(client, &short_one), before);
        stream_free(before);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_gpu_lost_at_any_moment_of_the_start_ends_the_daemon_with_75),
                DAEMON_TEST(a_gpu_lost_while_loading_ends_each_waiting_stream),
                DAEMON_TEST(a_gpu_lost_while_serving_ends_each_stream),
                DAEMON_TEST(a_gpu_lost_while_serving_ends_each_resumable_stream),
                DAEMON_TEST(a_lost_gpu_disconnects_idle_clients_and_the_next_daemon_serves),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "SMV_TEST_CUDA_LIBRARY", NULL });
        reads_paused = mmap(NULL, sizeof(*reads_paused), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (reads_paused == MAP_FAILED)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
