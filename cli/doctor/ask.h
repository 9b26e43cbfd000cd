/* What others say: the daemon, the service manager, samovar-http.  Each has its time to answer. */
#ifndef CLI_DOCTOR_ASK_H
#define CLI_DOCTOR_ASK_H

#include "cli/cli.h"
#include "cli/doctor/machine.h"

/* Fills in `daemon`.  The connection is closed again. */
void ask_daemon(const struct cli *cli, struct machine *machine);
/* Fills in `services`, if there is a systemd. */
void ask_services(struct machine *machine);
/* GET /health at that port of the address. */
void ask_health(uint16_t port, struct http_facts *http);

/* The bytes of all files of a folder, of which a model has no deeper ones. */
uint64_t folder_bytes(const char *path);

#endif
