/*
 * A house of one's own: a real samovard in a fresh directory, on a socket of its own, with a
 * model that babbles.  A story starts it, does something to it, and ends with house_stop(): the
 * daemon must be back at rest, as its own `status` tells, and end in order.  Whatever else
 * happens, nothing is left behind: no process, no file.
 *
 * Programs come from the environment: SAMOVARD, SAMOVAR, BABBLE, BABBLE_MAKER, SOURCES.
 * SMV_TEST_CUDA_LIBRARY, if set, is a library that the daemon is to compute with; SMV_TEST_GPU_LAYERS how many
 * layers.
 * SMV_TEST_SCALE, 20 or 1/10, multiplies the counts that a test may have more or fewer of;
 * SMV_TEST_SEED is the seed that a failing test has printed.
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

/* What must be as it was when a story is over.  The asking connection is counted in it. */
#define GAUGE_N 32
struct gauges {
        uint64_t at[GAUGE_N]; /* in the order of the table in harness.c */
};

struct house {
        char directory[64], socket[96], log[96];
        pid_t pid; /* of its samovard; 0: none */
        struct gauges rest;
        bool fine;      /* nothing has failed since it was started */
        bool sanitized; /* it runs under a sanitizer: mappings are not compared */
};

int house_set_up(void **state);
int house_tear_down(void **state);

/* NULL-ended flags beside --model and --socket; returns when it answers, warmed up and at rest. */
void house_start(struct house *house, const char *const *flags);
#define HOUSE(house, ...) house_start(house, (const char *const[]){ __VA_ARGS__, NULL })

/* The daemon with no more than these flags; its output goes to house->log. */
pid_t house_spawn(struct house *house, const char *const *flags, int fd);

/* Waits until everything is as it was at the start, for seconds, or fails naming what is not. */
void house_rest(struct house *house);
/* At rest, then SIGTERM: exit code 0, no sanitizer has reported, no process is left. */
void house_stop(struct house *house);
/* The exit status of the daemon, -signal if one killed it; fails if it does not end in time. */
int house_wait(struct house *house);
/* Its log has this in it. */
bool house_said(const struct house *house, const char *words);
/* The whole file, NUL-ended; the caller's to free. */
char *file_text(const char *path);

/* Of a process: its exit status, -signal; fails if it does not end in time. */
int process_wait(pid_t pid);
/* Runs `argv`, with stdin from `input` (NULL: empty); its exit status. */
struct ran {
        int status; /* as process_wait() */
        char *out, *err;
        size_t out_bytes;
};
struct ran run(const struct house *house, const char *input, const char *const *argv);
#define RUN(house, input, ...) run(house, input, (const char *const[]){ __VA_ARGS__, NULL })
void ran_free(struct ran *ran);
/* Nobody whom we started, or who was started by them, is alive or unburied. */
void assert_no_process_left(void);

/* A program or file named by the environment; skips the whole test program if it is not there. */
const char *given(const char *name);
void need(const char *const *names);

/*
 * Makes a model that is quick, with a context of so many tokens: its path.  In the long one a stream
 * of ENDLESS tokens has no end by itself, however quick the machine is and whoever is held up: who
 * is to do something to a stream that runs begins one of those.
 */
#define CONTEXT_LONG "1048576"
#define ENDLESS      1000000u
const char *quick_model(const struct house *house, const char *context);
#define QUICK_HOUSE(house, ...) HOUSE(house, "--model", quick_model(house, "2048"), __VA_ARGS__)
#define ENDLESS_HOUSE(house, ...)                                                                  \
        HOUSE(house, "--model", quick_model(house, CONTEXT_LONG), "--kv-bytes", "512M", __VA_ARGS__)

/*
 * What has not come by then never will.  Sanitizers and busy machines are slow, and a virtual
 * machine may stand still for ten seconds and more while its clock goes on.  But less than the
 * daemon's --stall-ms: what comes then was not let go because a reader had stalled.
 */
#define PATIENCE_MS 50000
uint64_t now_ms(void);
void sleep_ms(uint32_t ms);

/* A generator whose seed is printed by every test program that uses it. */
void random_begin(void);
uint32_t random_below(uint32_t n);

#endif
