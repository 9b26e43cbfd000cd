#include "cli/amounts.h"

#include <stdio.h>

const char *amount_bytes(double count, char to[AMOUNT_BYTES])
{
        static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
        unsigned unit = 0;

        for (; count >= 1000 && unit < 4; unit++)
                count /= 1024;
        snprintf(to, AMOUNT_BYTES, unit ? "%.1f %s" : "%.0f %s", count, units[unit]);
        return to;
}

const char *amount_duration(double seconds, char to[AMOUNT_BYTES])
{
        if (seconds < 0.0995)
                snprintf(to, AMOUNT_BYTES, "%.2g ms", seconds * 1e3);
        else if (seconds < 0.9995)
                snprintf(to, AMOUNT_BYTES, "%.0f ms", seconds * 1e3);
        else if (seconds < 99.5)
                snprintf(to, AMOUNT_BYTES, "%.1f s", seconds);
        else if (seconds < 6000)
                snprintf(to, AMOUNT_BYTES, "%.0f min", seconds / 60);
        else
                snprintf(to, AMOUNT_BYTES, "%.1f h", seconds / 3600);
        return to;
}

const char *amount_wait(uint64_t s, char to[AMOUNT_BYTES])
{
        if (s < 60)
                snprintf(to, AMOUNT_BYTES, "%u s", (unsigned)s);
        else if (s < 3600)
                snprintf(to, AMOUNT_BYTES, "%u min %u s", (unsigned)(s / 60), (unsigned)(s % 60));
        else
                snprintf(to, AMOUNT_BYTES, "%u h %u min", (unsigned)(s / 3600),
                         (unsigned)(s / 60 % 60));
        return to;
}

const char *amount_uptime(uint64_t s, char to[AMOUNT_BYTES])
{
        if (s < 120)
                snprintf(to, AMOUNT_BYTES, "%u s", (unsigned)s);
        else if (s < 7200)
                snprintf(to, AMOUNT_BYTES, "%u min", (unsigned)(s / 60));
        else if (s < 172800)
                snprintf(to, AMOUNT_BYTES, "%u h %u min", (unsigned)(s / 3600),
                         (unsigned)(s / 60 % 60));
        else
                snprintf(to, AMOUNT_BYTES, "%u days %u h", (unsigned)(s / 86400),
                         (unsigned)(s / 3600 % 24));
        return to;
}

const char *amount_age(uint64_t ms, char to[AMOUNT_BYTES])
{
        uint64_t s = ms / 1000;

        if (s < 60)
                snprintf(to, AMOUNT_BYTES, "%us", (unsigned)s);
        else if (s < 3600)
                snprintf(to, AMOUNT_BYTES, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
        else if (s < 86400)
                snprintf(to, AMOUNT_BYTES, "%uh%02um", (unsigned)(s / 3600),
                         (unsigned)(s / 60 % 60));
        else
                snprintf(to, AMOUNT_BYTES, "%ud%02uh", (unsigned)(s / 86400 % 100000),
                         (unsigned)(s / 3600 % 24));
        return to;
}
