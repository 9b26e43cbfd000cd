/* The machine that the program runs on. */
#ifndef CLI_DOCTOR_HERE_H
#define CLI_DOCTOR_HERE_H

#include "cli/cli.h"
#include "cli/doctor/machine.h"

/*
 * Fills in the facts of this machine.  Asks the daemon, systemctl and samovar-http, each for as long
 * as --timeout says at most; says on stderr, if that is a terminal, what it waits for.
 */
void machine_here(const struct cli *cli, struct machine *ret_machine);

#endif
