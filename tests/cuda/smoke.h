/*
 * Smoke tests for the first minute on a GPU, from the driver up to steps of a model.
 *
 *      smoke --list
 *      smoke [--library FILE] TEST
 *
 * Each test uses one thing more than the tests before it, so the first one that fails names the
 * fault. contrib/gpu/check runs each test as a separate process. A test prints one line with its
 * result and exits with 0, or it says on stderr what is wrong and exits with 1.  --library names
 * the backend's library, which the last tests open as the daemon does.
 */
#ifndef TESTS_CUDA_SMOKE_H
#define TESTS_CUDA_SMOKE_H

#include <stddef.h>

struct smoke_test {
        const char *name;
        void (*run)(const char *library);
};

/* smoke-device.cc, smoke-backend.cc: in the order in which they run. */
extern const smoke_test smoke_device_tests[], smoke_backend_tests[];
extern const size_t smoke_device_test_count, smoke_backend_test_count;

/* Prints the message and ends the program. */
void smoke_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
