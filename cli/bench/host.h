/* What this machine is, for reports: a figure without its machine says nothing. */
#ifndef CLI_BENCH_HOST_H
#define CLI_BENCH_HOST_H

#include <stdint.h>

struct host {
        char name[65], processor[128], system[200], time[32];
        uint32_t processors;
        uint64_t memory_bytes;
        double load; /* average of the last minute; -1: unknown */
};

void host_read(struct host *host);

#endif
