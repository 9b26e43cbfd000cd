/* The machine that the program runs on. */
#ifndef CLI_DOCTOR_HERE_H
#define CLI_DOCTOR_HERE_H

#include "cli/cli.h"
#include "cli/doctor/machine.h"

/*
 * Fills in the facts of this machine.  Asks the daemon, for as long as --timeout says, and then
 * systemctl and samovar-http.
 */
void machine_here(const struct cli *cli, struct machine *ret_machine);

#endif
