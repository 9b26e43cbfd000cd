/*
 * Shared by tests of a GPU's kernels: cmocka, a kernel run at once under a schedule, random
 * numbers, and functions that must kill the program.
 */
#ifndef TESTS_CUDA_FIXTURE_H
#define TESTS_CUDA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "kernels/cuda/device.h"
#include "kernels/cuda/intrinsics.h"
#include "tests/skip.h"

/*
 * A GPU has no schedules and no poison, and does nothing later than it must.  A test about
 * these is skipped there, and still listed by its name.
 */
#ifdef ON_GPU
static const bool emulated = false;

static inline void skip_on_gpu(void **)
{
        skip_because("a GPU has no schedules and no poison");
}

#define emulator_only(test)                                                                        \
        {                                                                                          \
#test, skip_on_gpu, nullptr, nullptr, nullptr                                      \
        }
#else
static const bool emulated = true;
#define emulator_only(test) cmocka_unit_test(test)
#endif

#ifdef __SANITIZE_ADDRESS__
#define WITH_ASAN      true
#define SCHEDULES_STEP 3u /* lockstep, and one warp after the other: a sanitizer makes runs slow */
#else
#define WITH_ASAN      false
#define SCHEDULES_STEP 1u
#endif

template <class Args>
static inline void run_now(unsigned schedule, const launch &launch, void (*kernel)(Args),
                           const Args &args)
{
        emu_set_schedule(schedule);
        DEVICE_RUN(Args)(&launch, (const void *)kernel, &args);
}

static inline launch one_block(unsigned threads, size_t shared)
{
        return { 1, 1, 1, threads, shared, false };
}

static inline uint64_t next_random(uint64_t *state)
{
        uint64_t z = *state += 0x9e3779b97f4a7c15u;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

/*
 * Runs `deed` in a child process.  True: the child died, and it had printed `word` if that is
 * not NULL.
 */
static inline bool aborts_with(void (*deed)(void), const char *word)
{
        FILE *said = tmpfile();
        char text[4096];
        size_t length;
        int status;
        pid_t child;

        assert_non_null(said);
        fflush(nullptr);
        child = fork();
        if (!child) {
                dup2(fileno(said), 2);
                alarm(20);
                deed();
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        rewind(said);
        length = fread(text, 1, sizeof(text) - 1, said);
        text[length] = 0;
        fclose(said);
        if (WIFEXITED(status) && !WEXITSTATUS(status))
                return false;
        if (word && !strstr(text, word))
                print_message("it said: %s\n", text);
        return !word || strstr(text, word);
}

#endif
