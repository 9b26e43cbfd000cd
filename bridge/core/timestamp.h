/* Times as RFC 3339 writes them, in UTC.  Pure functions. */
#ifndef BRIDGE_CORE_TIMESTAMP_H
#define BRIDGE_CORE_TIMESTAMP_H

#include <stdint.h>

#define TIMESTAMP_BYTES 40u

/* "2026-11-27T10:00:00Z" */
void timestamp_of_s(uint64_t since_1970_s, char to[TIMESTAMP_BYTES]);
/* "2026-11-27T10:00:00.123456789Z" */
void timestamp_of_ns(uint64_t since_1970_ns, char to[TIMESTAMP_BYTES]);

#endif
