/*
 * A server in Python (tests/e2e/NAME.py), which runs beside one test and prints its port first.
 * It needs no more than Python's standard library.
 */
#ifndef TESTS_E2E_PYTHON_SERVER_H
#define TESTS_E2E_PYTHON_SERVER_H

#include <stdbool.h>

/* `argument` may be NULL.  Returns the first number that it prints.  It dies with this process. */
unsigned python_server_start(const char *name, const char *argument);
void python_server_stop(void); /* no effect if there is none */

/*
 * Prints why tests that need one, and a `samovar` with libcurl, cannot run here; false: they can.
 * `command` is one of samovar's, which says so if it has no libcurl.
 */
bool python_server_is_missing(const char *command);

#endif
