/*
 * Fault injection: this counts every allocation and every system call of a process, and makes those
 * from the n-th on fail, one or several, with errors that occur in the real world.
 *
 * System calls are reached through the hook of base/sys.h.  Allocations are intercepted
 * below the program.  Without a sanitizer this file defines malloc() and its kin, so that libevent,
 * msgpack and the C library are counted, too.  A sanitizer has its own malloc(), so there the
 * linker's --wrap puts this code between our objects and the sanitizer (FAULTS_WRAP).
 *
 * The counts live in memory that is shared with the children.  The process that forked the process
 * under test sees which calls that process has reached, and can switch its faults off while it
 * checks something.
 */
#ifndef TESTS_E2E_FAULT_INJECTION_H
#define TESTS_E2E_FAULT_INJECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum fault_kind { FAULT_ALLOC, FAULT_CALL, FAULT_KINDS };

struct fault_plan {
        enum fault_kind kind;
        /* The calls [first, first + count) fail; count 0: no call fails, they are only counted. */
        uint32_t first, count;
        uint32_t flavour; /* which of the errnos that a call may fail with */
};

/* Call this once, before anything else. */
void faults_begin(void);
/*
 * A sweep tries every n at this stride.  Sweeps that begin one further each cover all n together,
 * or half of them under a sanitizer, which makes everything slow.  SMV_FAULT_STRIDE=1: each sweep
 * covers all n.
 */
uint32_t faults_stride(void);
/* Arms the faults from here on, in this process and in no other.  Call it before the process starts
 * a thread. */
void faults_arm(const struct fault_plan *plan);
/* Disarms the same process: nothing is counted or failed any more. */
void faults_disarm(void);

/* Any process may call this: while paused, calls of the armed process are neither counted nor
 * failed. */
void faults_pause(bool paused);

/* Since the process was armed: the number of failed calls; whether this call was among them. */
uint32_t faults_failed(void);
bool faults_failed_call(const char *call);
/* True if the first failure was an allocation inside the C library that it can do without, as in
 * qsort(). */
bool faults_failed_in_libc(void);
/* Prints one line for each failed site, with as much as addr2line needs. */
void faults_print(FILE *to);

/* Sums since the beginning. */
struct faults_sum {
        uint64_t failed;
        uint32_t sites_met[FAULT_KINDS], sites_failed[FAULT_KINDS];
};
struct faults_sum faults_sum(void);
/* Prints the sites that were reached and never failed. */
void faults_print_missed(FILE *to);

#endif
