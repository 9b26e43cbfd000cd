#include "bridge/core/timestamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

/* Without the zone. */
static size_t write_seconds(uint64_t since_1970_s, char to[TIMESTAMP_BYTES])
{
        time_t at = (time_t)since_1970_s;
        struct tm utc = { .tm_year = 70, .tm_mday = 1 };

        gmtime_r(&at, &utc);
        return strftime(to, TIMESTAMP_BYTES, "%Y-%m-%dT%H:%M:%S", &utc);
}

void timestamp_of_s(uint64_t since_1970_s, char to[TIMESTAMP_BYTES])
{
        size_t at = write_seconds(since_1970_s, to);

        snprintf(to + at, TIMESTAMP_BYTES - at, "Z");
}

void timestamp_of_ns(uint64_t since_1970_ns, char to[TIMESTAMP_BYTES])
{
        size_t at = write_seconds(since_1970_ns / NS_PER_S, to);

        snprintf(to + at, TIMESTAMP_BYTES - at, ".%09" PRIu64 "Z", since_1970_ns % NS_PER_S);
}
