/*
 * A private samovar-http in front of the daemon at a socket, at a free port of 127.0.0.1.  There is
 * one at a time, and it dies with the program that started it.
 */
#ifndef BENCH_OWN_BRIDGE_H
#define BENCH_OWN_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

/* Returns when it is connected to the daemon: 0, or a negative errno and the reason. */
int own_bridge_start(const char *program, const char *socket, char *why, size_t why_bytes);
void own_bridge_stop(void); /* does nothing if there is none */

uint16_t own_bridge_port(void);
int own_bridge_pid(void);

/* Processor time of all its threads, and its memory. */
uint64_t own_bridge_ns(void);
uint64_t own_bridge_bytes(void);

#endif
