/*
 * Texts of amounts for people: bytes, durations and ages, as several commands show them.  Each
 * function writes into `to`, of AMOUNT_BYTES bytes, and returns it.
 */
#ifndef CLI_AMOUNTS_H
#define CLI_AMOUNTS_H

#include <stdint.h>

#define AMOUNT_BYTES 32

/* "3.7 MiB", "812 bytes" */
const char *amount_bytes(double count, char to[AMOUNT_BYTES]);
/* A measured duration, to two or three digits: "42 ms", "1.5 s", "12 min". */
const char *amount_duration(double seconds, char to[AMOUNT_BYTES]);
/* How long something will take: "45 s", "1 min 34 s", "2 h 5 min". */
const char *amount_wait(uint64_t seconds, char to[AMOUNT_BYTES]);
/* The time since a start: "45 s", "12 min", "3 h 5 min", "4 days 2 h". */
const char *amount_uptime(uint64_t seconds, char to[AMOUNT_BYTES]);
/* The same for a column of a table, with two units: "45s", "3m12s", "2h05m", "4d03h". */
const char *amount_age(uint64_t ms, char to[AMOUNT_BYTES]);

#endif
