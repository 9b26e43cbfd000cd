/*
 * The ladder: small programs for the first minute on a GPU, from the driver up to steps of a
 * model.
 *
 *      ladder --list
 *      ladder [--library FILE] RUNG
 *
 * Each rung uses one thing more than the rungs before it, so the first one that fails names the
 * fault.  contrib/gpu/check runs each rung as a separate process.  A rung prints one line with
 * its result and exits with 0, or it says on stderr what is wrong and exits with 1.  --library
 * names the backend's library, which the last rungs open as the daemon does.
 */
#ifndef TESTS_CUDA_LADDER_H
#define TESTS_CUDA_LADDER_H

#include <stddef.h>

struct rung {
        const char *name;
        void (*climb)(const char *library);
};

/* ladder-device.cc, ladder-backend.cc: in the order in which they run. */
extern const rung device_rungs[], backend_rungs[];
extern const size_t device_rung_count, backend_rung_count;

/* Prints the message and ends the program. */
void ladder_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
