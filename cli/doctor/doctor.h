/*
 * samovar doctor: checks this machine and the daemon.
 *
 * Each check is a function of a machine (machine.h): what its files say below a folder, and a few
 * facts that only a system call tells.  It makes a finding: ok, warn or fail, what was found, and
 * what to do.  The checks are rows of the table in checks.h; check-*.c have them, a topic each.
 * here.c fills in the facts of the machine that it runs on, and doctor.c prints.  Nothing here
 * changes anything, and no check needs a daemon.
 */
#ifndef CLI_DOCTOR_DOCTOR_H
#define CLI_DOCTOR_DOCTOR_H

#include "cli/cli.h"

/* CLI_FAILED if a check failed, or if printing did. */
int cli_doctor(struct cli *cli);

#endif
