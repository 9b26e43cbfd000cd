/*
 * A house is a daemon fixture: a real samovard in a fresh directory, on its own socket, with a toy
 * model (babble).  A story (a test) starts it, does something to it, and ends with house_stop():
 * the daemon must be back at rest, as its own `status` tells, and must exit cleanly.  Whatever else
 * happens, nothing is left behind: no process, no file.
 *
 * The paths of programs come from the environment: SAMOVARD, SAMOVAR, BABBLE, BABBLE_MAKER,
 * SOURCES. SMV_TEST_CUDA_LIBRARY, if set, is a library that the daemon is to compute with;
 * SMV_TEST_GPU_LAYERS says how many layers it gets. SMV_TEST_SCALE, 20 or 1/10, multiplies the
 * counts that a test may have more or fewer of; SMV_TEST_SEED is the seed that a failing test has
 * printed.
 */
#ifndef TESTS_E2E_HARNESS_H
#define TESTS_E2E_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "tests/scale.h"

#define STORY(name) cmocka_unit_test_setup_teardown(name, house_set_up, house_tear_down)

/* The numbers that must be as before when a story is over.  The connection that asks is counted in
 * them. */
#define GAUGE_N 32
struct gauges {
        uint64_t at[GAUGE_N]; /* in the order of the table in harness.c */
};

struct house {
        char directory[64], socket[96], log[96];
        pid_t pid; /* of its samovard; 0: there is none */
        struct gauges rest;
        bool fine;      /* nothing has failed since it was started */
        bool sanitized; /* it runs under a sanitizer: mappings are not compared */
};

int house_set_up(void **state);
int house_tear_down(void **state);

/* `flags` are NULL-ended and come after --model and --socket.  Returns when the daemon answers, is
 * warmed up and at rest. */
void house_start(struct house *house, const char *const *flags);
#define HOUSE(house, ...) house_start(house, (const char *const[]){ __VA_ARGS__, NULL })

/* Starts the daemon with no flags but these; its output goes to house->log. */
pid_t house_spawn(struct house *house, const char *const *flags, int fd);

/* Waits for some seconds until everything is as it was at the start; fails naming the
 * difference. */
void house_rest(struct house *house);
/* Waits for rest, then sends SIGTERM.  The daemon must exit with code 0, no sanitizer may have
 * reported, and no process may be left. */
void house_stop(struct house *house);
/* Returns the exit status of the daemon, or -signal if a signal killed it.  Fails if the daemon
 * does not end in time. */
int house_wait(struct house *house);
/* True if the daemon's log contains `words`. */
bool house_said(const struct house *house, const char *words);
/* Returns the whole file, NUL-ended; the caller frees it. */
char *file_text(const char *path);

/* Returns the exit status of a process, or -signal; fails if the process does not end in time. */
int process_wait(pid_t pid);
/* Runs `argv`, with stdin from `input` (NULL: empty), and returns its exit status and output. */
struct ran {
        int status; /* as process_wait() */
        char *out, *err;
        size_t out_bytes;
};
struct ran run(const struct house *house, const char *input, const char *const *argv);
#define RUN(house, input, ...) run(house, input, (const char *const[]){ __VA_ARGS__, NULL })
void ran_free(struct ran *ran);
/* No process that we started, or that those processes started, is alive or still a zombie. */
void assert_no_process_left(void);

/* A program or file named by the environment; skips the whole test program if it is not there. */
const char *given(const char *name);
void need(const char *const *names);

/*
 * Makes a small, fast model with this context, in tokens, and returns its path.  In a context of
 * CONTEXT_LONG a stream of ENDLESS tokens does not end by itself, however fast the machine is and
 * whichever process is delayed.  A test that has to act on a running stream starts such a stream.
 */
#define CONTEXT_LONG "1048576"
#define ENDLESS      1000000u
const char *quick_model(const struct house *house, const char *context);
#define QUICK_HOUSE(house, ...) HOUSE(house, "--model", quick_model(house, "2048"), __VA_ARGS__)
#define ENDLESS_HOUSE(house, ...)                                                                  \
        HOUSE(house, "--model", quick_model(house, CONTEXT_LONG), "--kv-bytes", "512M", __VA_ARGS__)

/*
 * An event that has not come within this time never comes.  Sanitizers and busy machines are slow,
 * and a virtual machine may stand still for ten seconds and more while its clock goes on.  It is
 * less than the daemon's --stall-ms: an event within this time did not come because a reader had
 * stalled and was dropped.
 */
#define PATIENCE_MS 50000
uint64_t now_ms(void);
void sleep_ms(uint32_t ms);

/* A random generator; every test program that uses it prints its seed. */
void random_begin(void);
uint32_t random_below(uint32_t n);

#endif
