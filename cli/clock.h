/* The time since the machine was started, for durations. */
#ifndef CLI_CLOCK_H
#define CLI_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void);
uint64_t clock_ms(void);
double clock_s(void);

#endif
