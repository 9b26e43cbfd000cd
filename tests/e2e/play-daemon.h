/* The daemon in a play: its main(), run in the child, with small settings and the faults armed. */
#ifndef TESTS_E2E_PLAY_DAEMON_H
#define TESTS_E2E_PLAY_DAEMON_H

#include "tests/e2e/play.h"

/* Before the fork, of a scene by_config. */
void play_write_config(const struct play *play);
/* In the child; fd: its end, of a scene by_fd. */
_Noreturn void play_be_daemon(const struct play *play, int fd);

#endif
