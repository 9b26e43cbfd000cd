#include "tests/e2e/harness.h"

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

#include "tests/e2e/talk.h"

#define ARGV_MAX 64
#define SKIPPED  77

/* The things that a daemon holds, by their names in status, and how many an idle daemon holds. */
#define AS_BEFORE UINT64_MAX
static const struct {
        const char *path;
        uint64_t idle;
} gauges[] = {
        { "requests.alive", 0 },
        { "requests.live", 0 },
        { "requests.waiting", 0 },
        { "requests.running", 0 },
        { "requests.stalled", 0 },
        { "requests.ending", 0 },
        { "jobs", 0 },
        { "model.holds", 0 },
        { "blocks.held", 0 },
        { "blocks.promised", 0 },
        { "connections.open", 1 },
        { "channels.open", 0 },
        { "channels.made", 0 },
        { "charges.0.connections", 1 },
        { "charges.0.requests", 0 },
        { "charges.0.prompt_bytes", 0 },
        { "charges.0.ring_bytes", 0 },
        { "charges.0.handles", 0 },
        { "charges.0.held_blocks", 0 },
        { "charges.0.kept", 0 },
        { "charges.0.kept_bytes", 0 },
        { "charges.0.blocks", 0 },
        { "kept.open", 0 },
        { "kept.bytes", 0 },
        { "handles.open", 0 },
        { "handles.kept", 0 },
        { "handles.tokens", 0 },
        { "handles.bytes", 0 },
        { "numeric_faults", 0 },
        { "descriptors", AS_BEFORE },
        { "mappings", AS_BEFORE },
        { "threads", AS_BEFORE },
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

const char *given(const char *name)
{
        const char *value = getenv(name);

        if (!value || access(value, R_OK)) {
                printf("1..0 # SKIP %s names nothing that is there\n", name);
                fflush(stdout);
                _exit(SKIPPED);
        }
        return value;
}

void need(const char *const *names)
{
        for (; *names; names++)
                given(*names);
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

int process_wait(pid_t pid)
{
        uint64_t end = now_ms() + PATIENCE_MS;
        int status;

        while (waitpid(pid, &status, WNOHANG) == 0) {
                if (now_ms() > end)
                        fail_msg("process %d has not ended within %u ms", (int)pid, PATIENCE_MS);
                sleep_ms(2);
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void assert_no_process_left(void)
{
        uint64_t end = now_ms() + PATIENCE_MS;
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

struct ran run(const struct house *house, const char *input, const char *const *argv)
{
        char out[96], err[96], in[96];
        struct stat file;
        struct ran ran;
        pid_t pid;
        FILE *f;

        snprintf(out, sizeof(out), "%s/run-out", house->directory);
        snprintf(err, sizeof(err), "%s/run-err", house->directory);
        snprintf(in, sizeof(in), "%s/run-in", house->directory);
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
                setenv("SAMOVAR_SOCKET", house->socket, 1);
                execv(argv[0], (char *const *)argv);
                _exit(126);
        }
        ran.status = process_wait(pid);
        ran.out = file_text(out);
        ran.err = file_text(err);
        ran.out_bytes = stat(out, &file) ? 0 : (size_t)file.st_size;
        return ran;
}

void ran_free(struct ran *ran)
{
        free(ran->out);
        free(ran->err);
}

/* ---- the house ---- */

int house_set_up(void **state)
{
        struct house *house = calloc(1, sizeof(*house));

        assert(house);
        snprintf(house->directory, sizeof(house->directory), "/tmp/samovar-e2e-XXXXXX");
        if (!mkdtemp(house->directory))
                return 1;
        snprintf(house->socket, sizeof(house->socket), "%s/in/sock", house->directory);
        snprintf(house->log, sizeof(house->log), "%s/log", house->directory);
        house->fine = true;
        *state = house;
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

int house_tear_down(void **state)
{
        struct house *house = *state;

        if (house->pid || !house->fine) {
                char *log = file_text(house->log);

                fprintf(stderr, "--- what samovard has said:\n%s---\n", log);
                free(log);
        }
        if (house->pid)
                kill(house->pid, SIGKILL);
        if (house->pid)
                waitpid(house->pid, NULL, 0);
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        remove_all(house->directory);
        free(house);
        return 0;
}

pid_t house_spawn(struct house *house, const char *const *flags, int fd)
{
        const char *argv[ARGV_MAX] = { given("SAMOVARD") };
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
                dup2(open_output(house->log), 1);
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

const char *quick_model(const struct house *house, const char *context)
{
        static char path[96];
        struct ran ran;

        snprintf(path, sizeof(path), "%s/quick.gguf", house->directory);
        ran = RUN(house, NULL, given("BABBLE_MAKER"), path, "--context", context, "--layers", "1",
                  "--width", "32", "--heads", "2", "--kv-heads", "1", "--head-dim", "8", "--ffn",
                  "32");
        assert_int_equal(ran.status, 0);
        ran_free(&ran);
        return path;
}

/* Returns whether status tells of other users than ours as well. */
static bool read_gauges(struct talk *talk, struct gauges *ret_now)
{
        struct reply *reply = talk_ask(talk, "op=s", "status");
        char path[64];

        assert_true(reply->ok);
        for (size_t i = 0; i < GAUGES; i++) {
                snprintf(path, sizeof(path), "status.%s", gauges[i].path);
                ret_now->at[i] = reply_uint(reply, path);
        }
        return reply_shows_others(reply);
}

/* Makes the things that the daemon makes once, at the first request of a kind, before we count. */
static void warm_up(const struct house *house)
{
        const struct want want = { .prompt = "warm", .max_tokens = 4 };
        struct talk *talk = talk_greet(house);

        talk_whole(talk, &want);
        talk_ask(talk, "op=s text=s", "tokenize", "warm");
        talk_close(talk);
}

/* A sanitizer shows by its shadow memory.  Memory that its allocator has mapped is never given
 * back. */
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

void house_start(struct house *house, const char *const *flags)
{
        /* Without this, daemons of tests that run at once would all be on the same cores. */
        const char *all[ARGV_MAX] = { "--model",     given("BABBLE"), "--socket",
                                      house->socket, "--pin",         "off" };
        uint64_t end = now_ms() + PATIENCE_MS;
        const char *library = getenv("SMV_TEST_CUDA_LIBRARY");
        const char *layers = getenv("SMV_TEST_GPU_LAYERS");
        size_t count = 6;
        int fd, status;

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
        house->pid = house_spawn(house, all, -1);
        while ((fd = connect_raw(house)) < 0) {
                if (waitpid(house->pid, &status, WNOHANG)) {
                        house->pid = 0;
                        house->fine = false;
                        fail_msg("samovard did not start, status %x", (unsigned)status);
                }
                if (now_ms() > end)
                        fail_msg("%s", "samovard does not answer");
                sleep_ms(5);
        }
        close(fd);
        house->sanitized = is_sanitized(house->pid);
        warm_up(house);
        for (size_t i = 0; i < GAUGES; i++)
                house->rest.at[i] = AS_BEFORE;
        house_rest(house);
}

static uint64_t wanted(const struct house *house, size_t gauge)
{
        return gauges[gauge].idle == AS_BEFORE ? house->rest.at[gauge] : gauges[gauge].idle;
}

static bool at_rest(const struct house *house, const struct gauges *now, size_t *ret_bad)
{
        for (size_t i = 0; i < GAUGES; i++) {
                *ret_bad = i;
                if (house->sanitized && !strcmp(gauges[i].path, "mappings"))
                        continue;
                if (wanted(house, i) != AS_BEFORE && now->at[i] != wanted(house, i))
                        return false;
        }
        return true;
}

void house_rest(struct house *house)
{
        struct talk *talk = talk_greet_by(house, TALK_SOCKET); /* a ring would be held */
        uint64_t end = now_ms() + PATIENCE_MS;
        struct gauges now;
        size_t bad = 0;
        bool others;

        for (;;) {
                others = read_gauges(talk, &now);
                if (at_rest(house, &now, &bad) && !others)
                        break;
                if (now_ms() > end && others)
                        fail_msg("%s", "another user has something still");
                if (now_ms() > end)
                        fail_msg("%s is %" PRIu64 "; at rest it is %" PRIu64, gauges[bad].path,
                                 now.at[bad], wanted(house, bad));
                sleep_ms(20);
        }
        talk_close(talk);
        house->rest = now;
}

bool house_said(const struct house *house, const char *words)
{
        char *log = file_text(house->log);
        bool said = strstr(log, words);

        free(log);
        return said;
}

int house_wait(struct house *house)
{
        int status;

        house->fine = false;
        status = process_wait(house->pid);
        house->pid = 0;
        if (house_said(house, "Sanitizer") || house_said(house, "runtime error:"))
                fail_msg("%s", "a sanitizer has reported");
        house->fine = true;
        return status;
}

void house_stop(struct house *house)
{
        int status;

        house_rest(house);
        kill(house->pid, SIGTERM);
        status = house_wait(house);
        if (status) {
                house->fine = false;
                fail_msg("samovard ended with %d", status);
        }
        assert_int_equal(access(house->socket, F_OK), -1);
        assert_no_process_left();
}
