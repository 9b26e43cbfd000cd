/* The daemon of a trial: its main(), run in the child, with small settings and the faults armed. */
#ifndef TESTS_E2E_FAULT_SWEEP_DAEMON_H
#define TESTS_E2E_FAULT_SWEEP_DAEMON_H

#include "tests/e2e/fault-sweep.h"

/* Call this before the fork, for a scenario that is by_config. */
void trial_write_config(const struct fault_trial *trial);
/* Call this in the child; fd: the child's end, for a scenario that is by_fd. */
_Noreturn void trial_run_daemon(const struct fault_trial *trial, int fd);

#endif
