#include "cli/status-reader.h"

#include <stdio.h>

double status_member(const struct json_document *status, uint32_t map, const char *name)
{
        double real = 0;

        json_real(status, json_member(status, map, name), &real);
        return real;
}

double status_number(const struct json_document *status, const char *section, const char *name)
{
        return status_member(status, json_member(status, 0, section), name);
}

double status_top_number(const struct json_document *status, const char *name)
{
        return status_member(status, 0, name);
}

const char *status_text(const struct json_document *status, uint32_t map, const char *name)
{
        const char *found = json_string(status, json_member(status, map, name), NULL);

        return found ? found : "?";
}

bool status_sees_all(const struct json_document *status)
{
        return json_member(status, 0, "latency") != JSON_NONE;
}

double status_quantile(const struct json_document *status, const char *name, double q)
{
        uint32_t latency = json_member(status, 0, "latency");
        uint32_t histogram = json_member(status, latency, name);
        uint32_t bound = json_first(status, json_member(status, latency, "le"));
        uint32_t bucket = json_first(status, json_member(status, histogram, "buckets"));
        double low = 0, high = 0, below = 0, up_to = 0, rank = 0;

        json_real(status, json_member(status, histogram, "count"), &rank);
        if (rank <= 0)
                return -1;
        rank *= q;
        while (json_real(status, bound, &high) && json_real(status, bucket, &up_to)) {
                if (up_to >= rank && up_to > below)
                        return low + (high - low) * (rank - below) / (up_to - below);
                low = high;
                below = up_to;
                bound = json_next(status, bound);
                bucket = json_next(status, bucket);
        }
        return low;
}

const char *status_waits(const struct json_document *status, char to[STATUS_WAITS_BYTES])
{
        static const char *const why[][2] = {
                { "blocks", "need blocks" },
                { "forecast", "would outgrow the pool" },
                { "slot", "need a slot" },
                { "windows", "need window pages" },
                { "share", "of a user with its share" },
                { "turn", "behind others" },
                { "prefix", "for a common beginning" },
                { "reader", "of clients that do not read" },
        };
        size_t used = 0;

        to[0] = '\0';
        for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
                double count = status_number(status, "waits", why[i][0]);

                if (count > 0 && used < STATUS_WAITS_BYTES)
                        used += (size_t)snprintf(to + used, STATUS_WAITS_BYTES - used, "%s%.0f %s",
                                                 used ? ", " : "", count, why[i][1]);
        }
        return to;
}

struct status_pool status_pool(const struct json_document *status)
{
        struct status_pool pool = { .total = status_number(status, "blocks", "total"),
                                    .used = status_number(status, "blocks", "in_use"),
                                    .cached = status_number(status, "blocks", "cached") };
        unsigned to_cached;

        pool.total = pool.total > 0 ? pool.total : 1;
        pool.free = pool.total > pool.used + pool.cached ? pool.total - pool.used - pool.cached : 0;
        pool.used_percent = (unsigned)(100 * pool.used / pool.total + 0.5);
        to_cached = (unsigned)(100 * (pool.used + pool.cached) / pool.total + 0.5);
        pool.cached_percent = to_cached - pool.used_percent;
        pool.free_percent = to_cached < 100 ? 100 - to_cached : 0;
        return pool;
}

void status_pool_bar(const struct status_pool *pool, unsigned cells, char *to)
{
        for (unsigned i = 0; i < cells; i++) {
                double at = (i + 0.5) / cells * pool->total;

                to[i] = at < pool->used ? '#' : at < pool->used + pool->cached ? '=' : '.';
        }
        to[cells] = '\0';
}
