#include "tests/e2e/daemon-fixture.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"

#define ARGV_MAX 64
#define SKIPPED  77

static uint64_t count_segments(const struct daemon_fixture *fixture);

/*
 * The things that a daemon holds, and how many an idle daemon holds.  Those without `count` have
 * their names in status.  status has the number of all mappings, too, but malloc maps and unmaps
 * memory at any time.  So we count only the mappings of segments, in /proc/PID/maps.
 */
#define AS_BEFORE UINT64_MAX
static const struct {
        const char *path;
        uint64_t idle;
        uint64_t (*count)(const struct daemon_fixture *fixture); /* NULL: status has it */
} gauges[] = {
        { "requests.open", 0 },
        { "requests.submitted", 0 },
        { "requests.waiting", 0 },
        { "requests.running", 0 },
        { "requests.stalled", 0 },
        { "requests.ending", 0 },
        { "text_jobs", 0 },
        { "model.references", 0 },
        { "blocks.in_use", 0 },
        { "blocks.reserved", 0 },
        { "connections.open", 1 },
        { "channels.active", 0 },
        { "channels.allocated", 0 },
        { "users.0.connections", 1 },
        { "users.0.requests", 0 },
        { "users.0.prompt_bytes", 0 },
        { "users.0.ring_bytes", 0 },
        { "users.0.handles", 0 },
        { "users.0.pinned_blocks", 0 },
        { "users.0.resumable", 0 },
        { "users.0.resumable_bytes", 0 },
        { "users.0.constraint_bytes", 0 },
        { "users.0.blocks", 0 },
        { "resumable.open", 0 },
        { "resumable.bytes", 0 },
        { "handles.open", 0 },
        { "handles.expiring", 0 },
        { "handles.tokens", 0 },
        { "handles.bytes", 0 },
        { "numeric_faults", 0 },
        { "descriptors", AS_BEFORE },
        { "threads", AS_BEFORE },
        { "mapped segments", 0, count_segments },
};
#define GAUGES (sizeof(gauges) / sizeof(*gauges))

/* ---- small things ---- */

uint64_t now_ms(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void sleep_ms(uint32_t ms)
{
        poll(NULL, 0, (int)ms);
}

static uint64_t random_state;

void random_begin(void)
{
        const char *seed = getenv("SMV_TEST_SEED");

        if (seed && *seed)
                random_state = strtoull(seed, NULL, 10);
        else if (getrandom(&random_state, sizeof(random_state), 0) < 0)
                random_state = now_ms();
        printf("# SMV_TEST_SEED=%" PRIu64 "\n", random_state);
}

uint32_t random_below(uint32_t n)
{
        uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (uint32_t)((z ^ (z >> 31)) % n);
}

void random_prompt(uint32_t *tokens, size_t count)
{
        static uint32_t calls;

        for (size_t i = 0; i < count; i++)
                tokens[i] = random_below(256);
        tokens[0] = calls++ % 256;
}

const char *env_path(const char *name)
{
        const char *value = getenv(name);

        if (!value || access(value, R_OK)) {
                printf("1..0 # SKIP %s names nothing that is there\n", name);
                fflush(stdout);
                _exit(SKIPPED);
        }
        return value;
}

void require_env_paths(const char *const *names)
{
        for (; *names; names++)
                env_path(*names);
        prctl(PR_SET_CHILD_SUBREAPER, 1); /* or an orphan would escape us */
        signal(SIGPIPE, SIG_IGN);
}

char *file_text(const char *path)
{
        size_t count = 0, size = 65536;
        char *text = malloc(size);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = 1;

        assert(text);
        while (fd >= 0 && n > 0) {
                if (size - count < 65536)
                        text = realloc(text, size *= 2);
                assert(text);
                n = read(fd, text + count, size - count - 1);
                count += n > 0 ? (size_t)n : 0;
        }
        text[count] = '\0';
        if (fd >= 0)
                close(fd);
        return text;
}

/* ---- processes ---- */

int await_process(pid_t pid)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        int status;

        while (waitpid(pid, &status, WNOHANG) == 0) {
                if (now_ms() > end)
                        fail_msg("process %d has not ended within %u ms", (int)pid, TIMEOUT_MS);
                sleep_ms(2);
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void assert_no_process_left(void)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        pid_t pid;

        while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
                if (now_ms() > end)
                        fail_msg("%s", "a process is left");
                sleep_ms(2);
        }
        assert_int_equal(errno, ECHILD);
}

static int open_output(const char *path)
{
        return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

struct run_result run(const struct daemon_fixture *fixture, const char *input,
                      const char *const *argv)
{
        char out[96], err[96], in[96];
        struct stat file;
        struct run_result ran;
        pid_t pid;
        FILE *f;

        snprintf(out, sizeof(out), "%s/run-out", fixture->directory);
        snprintf(err, sizeof(err), "%s/run-err", fixture->directory);
        snprintf(in, sizeof(in), "%s/run-in", fixture->directory);
        unlink(out);
        unlink(err);
        f = fopen(in, "w");
        assert(f);
        fputs(input ? input : "", f);
        fclose(f);

        pid = fork();
        if (!pid) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                dup2(open(in, O_RDONLY), 0);
                dup2(open_output(out), 1);
                dup2(open_output(err), 2);
                setenv("SAMOVAR_SOCKET", fixture->socket, 1);
                execv(argv[0], (char *const *)argv);
                _exit(126);
        }
        ran.status = await_process(pid);
        ran.out = file_text(out);
        ran.err = file_text(err);
        ran.out_bytes = stat(out, &file) ? 0 : (size_t)file.st_size;
        return ran;
}

void run_result_free(struct run_result *ran)
{
        free(ran->out);
        free(ran->err);
}

/* ---- the fixture ---- */

int fixture_set_up(void **state)
{
        struct daemon_fixture *fixture = calloc(1, sizeof(*fixture));

        assert(fixture);
        snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/samovar-e2e-XXXXXX");
        if (!mkdtemp(fixture->directory))
                return 1;
        snprintf(fixture->socket, sizeof(fixture->socket), "%s/in/sock", fixture->directory);
        snprintf(fixture->log, sizeof(fixture->log), "%s/log", fixture->directory);
        fixture->healthy = true;
        *state = fixture;
        return 0;
}

static void remove_all(const char *path)
{
        DIR *directory = opendir(path);
        struct dirent *entry;
        char inner[512];

        while (directory && (entry = readdir(directory))) {
                if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
                        continue;
                snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
                if (unlink(inner))
                        remove_all(inner);
        }
        if (directory)
                closedir(directory);
        rmdir(path);
}

int fixture_tear_down(void **state)
{
        struct daemon_fixture *fixture = *state;

        if (fixture->pid || !fixture->healthy) {
                char *log = file_text(fixture->log);

                fprintf(stderr, "--- what samovard has said:\n%s---\n", log);
                free(log);
        }
        if (fixture->pid)
                kill(fixture->pid, SIGKILL);
        if (fixture->pid)
                waitpid(fixture->pid, NULL, 0);
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        remove_all(fixture->directory);
        free(fixture);
        return 0;
}

pid_t fixture_spawn(struct daemon_fixture *fixture, const char *const *flags, int fd)
{
        const char *argv[ARGV_MAX] = { env_path("SAMOVARD") };
        size_t count = 1;
        pid_t pid;

        while (*flags) {
                argv[count++] = *flags++;
                assert(count < ARGV_MAX);
        }
        pid = fork();
        if (!pid) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                dup2(open("/dev/null", O_RDONLY), 0);
                dup2(open_output(fixture->log), 1);
                dup2(1, 2);
                if (fd == 3)
                        fcntl(fd, F_SETFD, 0);
                else if (fd >= 0)
                        dup2(fd, 3);
                execv(argv[0], (char *const *)argv);
                _exit(126);
        }
        assert(pid > 0);
        return pid;
}

const char *make_quick_model(const struct daemon_fixture *fixture, const char *context)
{
        static char path[96];
        struct run_result ran;

        snprintf(path, sizeof(path), "%s/quick.gguf", fixture->directory);
        ran = RUN(fixture, NULL, env_path("TOY_MODEL_MAKER"), path, "--context", context,
                  "--layers", "1", "--width", "32", "--heads", "2", "--kv-heads", "1", "--head-dim",
                  "8", "--ffn", "32");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        return path;
}

/* Returns how many mappings of segments it shares with clients a daemon has. */
static uint64_t count_segments(const struct daemon_fixture *fixture)
{
        char path[64], *maps, *at;
        uint64_t count = 0;

        snprintf(path, sizeof(path), "/proc/%d/maps", (int)fixture->pid);
        maps = file_text(path);
        assert_true(strstr(maps, "samovard")); /* the file was readable */
        for (at = maps; (at = strstr(at, "/memfd:samovar-")); at++)
                count++;
        free(maps);
        return count;
}

/* Returns whether status tells of other users than ours as well. */
static bool read_gauges(const struct daemon_fixture *fixture, struct raw_client *client,
                        struct gauges *ret_now)
{
        struct reply *reply = raw_client_call(client, "op=s", "status");
        char path[64];

        assert_true(reply->ok);
        for (size_t i = 0; i < GAUGES; i++) {
                snprintf(path, sizeof(path), "status.%s", gauges[i].path);
                ret_now->at[i] =
                        gauges[i].count ? gauges[i].count(fixture) : reply_uint(reply, path);
        }
        return reply_shows_others(reply);
}

/* Makes the things that the daemon makes once, at the first request of a kind, before we count. */
static void warm_up(const struct daemon_fixture *fixture)
{
        const struct want want = { .prompt = "warm", .max_tokens = 4 };
        struct raw_client *client = raw_client_greet(fixture);

        raw_client_complete(client, &want);
        raw_client_call(client, "op=s text=s", "tokenize", "warm");
        raw_client_close(client);
}

/* A sanitizer shows by its shadow memory. */
static bool is_sanitized(pid_t pid)
{
        char path[64], *text, *at;
        bool huge;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        text = file_text(path);
        at = strstr(text, "VmSize:");
        huge = at && strtoull(at + 7, NULL, 10) >> 30; /* a TiB, in KiB */
        free(text);
        return huge;
}

/* A flag may be given once only. */
static bool has_flag(const char *const *flags, const char *name)
{
        for (; *flags; flags++)
                if (!strcmp(*flags, name))
                        return true;
        return false;
}

void fixture_start(struct daemon_fixture *fixture, const char *const *flags)
{
        const char *const usual[] = {
                "--model", env_path("TOY_MODEL"), "--socket", fixture->socket,
                /* Otherwise daemons of tests that run at once would all be on the same cores. */
                "--affinity", "off",
                /* This machine may have a file. */
                "--config", "none"
        };
        const char *all[ARGV_MAX] = { NULL };
        uint64_t end = now_ms() + TIMEOUT_MS;
        const char *library = getenv("SMV_TEST_CUDA_LIBRARY");
        const char *layers = getenv("SMV_TEST_GPU_LAYERS");
        size_t count = 0;
        int fd, status;

        for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i += 2)
                if (!has_flag(flags, usual[i])) {
                        all[count++] = usual[i];
                        all[count++] = usual[i + 1];
                }
        if (library) {
                static const char *const cuda[] = { "--deterministic", "--backend", "cuda",
                                                    "--backend-library" };

                for (size_t i = 0; i < 4; i++)
                        all[count++] = cuda[i];
                all[count++] = library;
        }
        if (layers) {
                all[count++] = "--gpu-layers";
                all[count++] = layers;
        }
        while (*flags) {
                all[count++] = *flags++;
                assert(count < ARGV_MAX);
        }
        fixture->pid = fixture_spawn(fixture, all, -1);
        while ((fd = fixture_connect(fixture)) < 0) {
                if (waitpid(fixture->pid, &status, WNOHANG)) {
                        fixture->pid = 0;
                        fixture->healthy = false;
                        fail_msg("samovard did not start, status %x", (unsigned)status);
                }
                if (now_ms() > end)
                        fail_msg("%s", "samovard does not answer");
                sleep_ms(5);
        }
        close(fd);
        fixture->sanitized = is_sanitized(fixture->pid);
        warm_up(fixture);
        for (size_t i = 0; i < GAUGES; i++)
                fixture->rest.at[i] = AS_BEFORE;
        fixture_await_rest(fixture);
}

static uint64_t wanted(const struct daemon_fixture *fixture, size_t gauge)
{
        return gauges[gauge].idle == AS_BEFORE ? fixture->rest.at[gauge] : gauges[gauge].idle;
}

static bool at_rest(const struct daemon_fixture *fixture, const struct gauges *now, size_t *ret_bad)
{
        for (size_t i = 0; i < GAUGES; i++) {
                *ret_bad = i;
                if (wanted(fixture, i) != AS_BEFORE && now->at[i] != wanted(fixture, i))
                        return false;
        }
        return true;
}

void fixture_await_rest(struct daemon_fixture *fixture)
{
        /* over the socket, because a ring would be counted */
        struct raw_client *client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        uint64_t end = now_ms() + TIMEOUT_MS;
        struct gauges now;
        size_t bad = 0;
        bool others;

        for (;;) {
                others = read_gauges(fixture, client, &now);
                if (at_rest(fixture, &now, &bad) && !others)
                        break;
                if (now_ms() > end && others)
                        fail_msg("%s", "another user has something still");
                if (now_ms() > end)
                        fail_msg("%s is %" PRIu64 "; at rest it is %" PRIu64, gauges[bad].path,
                                 now.at[bad], wanted(fixture, bad));
                sleep_ms(20);
        }
        raw_client_close(client);
        fixture->rest = now;
}

bool fixture_logged(const struct daemon_fixture *fixture, const char *words)
{
        char *log = file_text(fixture->log);
        bool said = strstr(log, words);

        free(log);
        return said;
}

void fixture_clear_log(const struct daemon_fixture *fixture)
{
        if (truncate(fixture->log, 0) && errno != ENOENT)
                fail_msg("%s: %s", fixture->log, strerror(errno));
}

int fixture_await_exit(struct daemon_fixture *fixture)
{
        int status;

        fixture->healthy = false;
        status = await_process(fixture->pid);
        fixture->pid = 0;
        if (fixture_logged(fixture, "Sanitizer") || fixture_logged(fixture, "runtime error:"))
                fail_msg("%s", "a sanitizer has reported");
        fixture->healthy = true;
        return status;
}

void fixture_stop(struct daemon_fixture *fixture)
{
        int status;

        fixture_await_rest(fixture);
        kill(fixture->pid, SIGTERM);
        status = fixture_await_exit(fixture);
        if (status) {
                fixture->healthy = false;
                fail_msg("samovard ended with %d", status);
        }
        assert_int_equal(access(fixture->socket, F_OK), -1);
        assert_no_process_left();
}
