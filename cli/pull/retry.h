/*
 * When to try again after a failure of the network or the server: after half a second, then after
 * twice as long each time, up to 30 s, or when the server says.
 */
#ifndef CLI_PULL_RETRY_H
#define CLI_PULL_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#define RETRY_AFTER_MAX_S 600u /* a server that wants us to wait longer is given up */

struct retry {
        uint32_t limit; /* failures in a row that are borne */
        uint32_t failures;
        uint64_t at_ms; /* when the next try is due */
};

/*
 * Notes a failure: false: it is one too many.  `after_s` is what the server asked for, 0 if it did
 * not.
 */
bool retry_later(struct retry *retry, uint32_t after_s);
/* Something has come: the count begins again. */
void retry_progress(struct retry *retry);

/* Whether another try may have another answer: 408, 425, 429 and 5xx. */
bool retry_is_temporary(int status);
/*
 * The seconds that a server wants us to wait, by its field Retry-After, which has a number or a
 * date, or else by RateLimit ("api";r=0;t=55), which the hub sends.  NULL: there is no such field.
 * 0: neither says it.
 */
uint32_t retry_after_s(const char *after, const char *rate_limit);

#endif
