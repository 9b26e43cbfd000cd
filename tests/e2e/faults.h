/*
 * Failing the n-th: every allocation and every system call of a process is counted, and those
 * from n on, one or several, fail as the world would fail them.
 *
 * Calls are asked for through daemon/sys.h's hook.  Allocations are taken from under the program:
 * without a sanitizer this file defines malloc() and its kin, so that libevent, msgpack and the C
 * library are counted, too; a sanitizer has its own, so there the linker's --wrap puts us between
 * our objects and it (FAULTS_WRAP).
 *
 * The counts live in memory that is shared with the children: who forked the process under test
 * sees what it has met, and can switch its faults off while it checks something.
 */
#ifndef TESTS_E2E_FAULTS_H
#define TESTS_E2E_FAULTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum fault_kind { FAULT_ALLOC, FAULT_CALL, FAULT_KINDS };

struct fault_plan {
        enum fault_kind kind;
        uint32_t first,
                count;    /* the calls [first, first + count) fail; count 0: none, only count */
        uint32_t flavour; /* which of the errnos that a call may fail with */
};

/* Once, before anything else. */
void faults_begin(void);
/*
 * A sweep tries every so many-th n.  Sweeps that begin one further each have all of them together, or
 * half under a sanitizer, which makes everything slow.  SMV_FAULT_STRIDE=1: each sweep has all.
 */
uint32_t faults_stride(void);
/* From here on in this process, and in no other; before it starts a thread. */
void faults_arm(const struct fault_plan *plan);
/* The same process again: nothing is counted or failed any more. */
void faults_disarm(void);

/* By any process: what the armed one asks for is neither counted nor failed meanwhile. */
void faults_pause(bool paused);

/* Since it was armed: failed calls; whether this one was among them. */
uint32_t faults_failed(void);
bool faults_failed_call(const char *call);
/* The first one was an allocation of the C library's own, which may do without: qsort() does. */
bool faults_failed_in_libc(void);
/* One line for each, as much as addr2line needs. */
void faults_tell(FILE *to);

/* Since the beginning. */
struct faults_sum {
        uint64_t failed;
        uint32_t sites_met[FAULT_KINDS], sites_failed[FAULT_KINDS];
};
struct faults_sum faults_sum(void);
/* The sites that were met and never failed. */
void faults_tell_missed(FILE *to);

#endif
