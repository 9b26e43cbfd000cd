/* The daemon in a play: its main(), run in the child, with small settings and the faults armed. */
#ifndef TESTS_E2E_PLAY_DAEMON_H
#define TESTS_E2E_PLAY_DAEMON_H

#include "tests/e2e/play.h"

/* Call this before the fork, for a scene that is by_config. */
void play_write_config(const struct play *play);
/* Call this in the child; fd: the child's end, for a scene that is by_fd. */
_Noreturn void play_be_daemon(const struct play *play, int fd);

#endif
