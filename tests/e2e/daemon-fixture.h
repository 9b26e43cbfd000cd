/*
 * The daemon fixture: a real samovard in a fresh directory, on its own socket, with a toy model.  A
 * test starts it, does something to it, and ends with fixture_stop(): the daemon must be back at
 * rest, as its own `status` reports, and must exit cleanly.  The fixture leaves no process and no
 * file behind, even if the test fails.
 *
 * The paths of programs come from the environment: SAMOVARD, SAMOVAR, TOY_MODEL, TOY_MODEL_MAKER,
 * SOURCES. SMV_TEST_CUDA_LIBRARY, if set, is a library that the daemon is to compute with;
 * SMV_TEST_GPU_LAYERS says how many layers it gets. SMV_TEST_SCALE, 20 or 1/10, multiplies the
 * counts that a test may have more or fewer of; SMV_TEST_SEED is the seed that a failing test has
 * printed.
 */
#ifndef TESTS_E2E_DAEMON_FIXTURE_H
#define TESTS_E2E_DAEMON_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "tests/scale.h"

#define DAEMON_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

/* The numbers that must be as before when a test is over.  The connection that asks is counted in
 * them. */
#define GAUGE_N 33
struct gauges {
        uint64_t at[GAUGE_N]; /* in the order of the table in daemon-fixture.c */
};

struct daemon_fixture {
        char directory[64], socket[96], log[96];
        pid_t pid; /* of its samovard; 0: there is none */
        struct gauges rest;
        bool healthy;   /* nothing has failed since it was started */
        bool sanitized; /* it runs under a sanitizer */
};

int fixture_set_up(void **state);
int fixture_tear_down(void **state);

/* `flags` are NULL-ended and come after --model and --socket.  Returns when the daemon answers, is
 * warmed up and at rest. */
void fixture_start(struct daemon_fixture *fixture, const char *const *flags);
#define START_DAEMON(fixture, ...)                                                                 \
        fixture_start(fixture, (const char *const[]){ __VA_ARGS__, NULL })

/* Starts the daemon with no flags but these; its output goes to fixture->log. */
pid_t fixture_spawn(struct daemon_fixture *fixture, const char *const *flags, int fd);

/* Waits for some seconds until everything is as it was at the start; fails naming the
 * difference. */
void fixture_await_rest(struct daemon_fixture *fixture);
/* Waits for rest, then sends SIGTERM.  The daemon must exit with code 0, no sanitizer may have
 * reported, and no process may be left. */
void fixture_stop(struct daemon_fixture *fixture);
/* Returns the exit status of the daemon, or -signal if a signal killed it.  Fails if the daemon
 * does not end in time. */
int fixture_await_exit(struct daemon_fixture *fixture);
/* True if the daemon's log contains `words`. */
bool fixture_logged(const struct daemon_fixture *fixture, const char *words);
/* Empties the log, so that words of an earlier daemon are not found; there may be none yet. */
void fixture_clear_log(const struct daemon_fixture *fixture);
/* Returns the whole file, NUL-ended; the caller frees it. */
char *file_text(const char *path);

/* Returns the exit status of a process, or -signal; fails if the process does not end in time. */
int await_process(pid_t pid);
/* Runs `argv`, with stdin from `input` (NULL: empty), and returns its exit status and output. */
struct run_result {
        int status; /* as await_process() */
        char *out, *err;
        size_t out_bytes;
};
struct run_result run(const struct daemon_fixture *fixture, const char *input,
                      const char *const *argv);
#define RUN(fixture, input, ...) run(fixture, input, (const char *const[]){ __VA_ARGS__, NULL })
void run_result_free(struct run_result *ran);
/* No process that we started, or that those processes started, is alive or still a zombie. */
void assert_no_process_left(void);

/* A program or file named by the environment; skips the whole test program if it is not there. */
const char *env_path(const char *name);
void require_env_paths(const char *const *names);

/*
 * Makes a small, fast model with this context, in tokens, and returns its path.  In a context of
 * CONTEXT_LONG a stream of ENDLESS tokens does not end by itself, however fast the machine is and
 * whichever process is delayed.  A test that has to act on a running stream starts such a stream.
 */
#define CONTEXT_LONG "1048576"
#define ENDLESS      1000000u
const char *make_quick_model(const struct daemon_fixture *fixture, const char *context);
#define START_QUICK_DAEMON(fixture, ...)                                                           \
        START_DAEMON(fixture, "--model", make_quick_model(fixture, "2048"), __VA_ARGS__)
#define START_ENDLESS_DAEMON(fixture, ...)                                                         \
        START_DAEMON(fixture, "--model", make_quick_model(fixture, CONTEXT_LONG), "--kv-bytes",    \
                     "512M", __VA_ARGS__)

/*
 * An event that has not come within this time never comes.  Sanitizers and busy machines are slow,
 * and a virtual machine may stand still for ten seconds and more while its clock goes on.  It is
 * less than the daemon's --stall-timeout-ms: an event within this time did not come because a
 * reader had stalled and was dropped.
 */
#define TIMEOUT_MS 50000
uint64_t now_ms(void);
void sleep_ms(uint32_t ms);

/* A random generator; every test program that uses it prints its seed. */
void random_begin(void);
uint32_t random_below(uint32_t n);

/*
 * Random byte tokens of the toy model, neither bos nor eos.  No two of 256 calls begin with the
 * same token, so no prompt finds the first token of another in a cache.
 */
void random_prompt(uint32_t *tokens, size_t count);

#endif
