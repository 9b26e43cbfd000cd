/*
 * Reads the reply to `status`.  A number that a reply does not have is 0: an older daemon leaves
 * some out, and other users than root and the user of the daemon see only a part.
 */
#ifndef CLI_STATUS_READER_H
#define CLI_STATUS_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "json/document.h"

/* The member of the section of that name: "blocks", "total". */
double status_number(const struct json_document *status, const char *section, const char *name);
/* A member of the reply itself. */
double status_top_number(const struct json_document *status, const char *name);
/* The member of a map, such as a user's. */
double status_member(const struct json_document *status, uint32_t map, const char *name);
/* A text of a map, or "?". */
const char *status_text(const struct json_document *status, uint32_t map, const char *name);

/* True if the reply has rates, times and all users: it was asked by root or by its user. */
bool status_sees_all(const struct json_document *status);

/*
 * The duration, in seconds, that a part q of all durations of that histogram of `latency` does not
 * exceed.  Inside a bucket, durations are taken as spread evenly, as Prometheus does.  Beyond the
 * last bound, it is that bound.  -1: nothing was counted yet.
 */
double status_quantile(const struct json_document *status, const char *histogram, double q);

/*
 * Why requests wait, with their counts: "1 need blocks, 2 behind others".  "" if none waits, or if
 * the daemon does not say why.
 */
#define STATUS_WAITS_BYTES 256
const char *status_waits(const struct json_document *status, char to[STATUS_WAITS_BYTES]);

/*
 * The KV pool.  A block is in use, cached or free.  The daemon may count a block twice while it
 * moves between these; `free` is what remains here, so the three numbers and their shares add up.
 */
struct status_pool {
        double total, used, cached, free; /* blocks; the total is at least 1 */
        unsigned used_percent, cached_percent, free_percent;
};
struct status_pool status_pool(const struct json_document *status);
/* Draws the pool: '#' is in use, '=' cached, '.' free.  Writes `cells` of them and a NUL. */
void status_pool_bar(const struct status_pool *pool, unsigned cells, char *to);

#endif
