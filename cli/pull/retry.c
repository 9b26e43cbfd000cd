#include "cli/pull/retry.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/clock.h"

#define FIRST_MS 500u
#define LAST_MS  30000u

bool retry_later(struct retry *retry, uint32_t after_s)
{
        uint64_t now = clock_ms(), wait_ms = LAST_MS;

        if (++retry->failures > retry->limit || after_s > RETRY_AFTER_MAX_S)
                return false;
        if (retry->failures < 7)
                wait_ms = (uint64_t)FIRST_MS << (retry->failures - 1);
        if (wait_ms > LAST_MS)
                wait_ms = LAST_MS;
        if (after_s)
                wait_ms = (uint64_t)after_s * 1000;
        /* Many who lost the same server should not come back in the same moment. */
        retry->at_ms = now + wait_ms + now % (wait_ms / 4 + 1);
        return true;
}

void retry_progress(struct retry *retry)
{
        retry->failures = 0;
}

bool retry_is_temporary(int status)
{
        return status == 408 || status == 425 || status == 429 || status >= 500;
}

static uint32_t seconds(unsigned long number)
{
        return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

/* The number of a parameter such as "; t=55"; false: the field does not have it. */
static bool parameter(const char *field, char name, unsigned long *ret_value)
{
        const char *at = field;

        while ((at = strchr(at, ';'))) {
                at += 1 + strspn(at + 1, " ");
                if (at[0] == name && at[1] == '=' && at[2] >= '0' && at[2] <= '9') {
                        *ret_value = strtoul(at + 2, NULL, 10);
                        return true;
                }
        }
        return false;
}

/* Until requests are allowed again, and a second more: the server's clock is not ours. */
static uint32_t rate_limit_s(const char *field)
{
        unsigned long remaining, until;

        if (!parameter(field, 'r', &remaining) || remaining || !parameter(field, 't', &until))
                return 0;
        return until < UINT32_MAX ? seconds(until + 1) : UINT32_MAX;
}

static uint32_t after_s(const char *field)
{
        struct tm when = { 0 };
        char *end;
        unsigned long number;
        time_t now = time(NULL), then;

        number = strtoul(field, &end, 10);
        if (*field >= '0' && *field <= '9' && !*end)
                return seconds(number);
        end = strptime(field, "%a, %d %b %Y %H:%M:%S GMT", &when);
        then = end && !*end ? timegm(&when) : 0;
        return then > now ? seconds((unsigned long)(then - now)) : 0;
}

uint32_t retry_after_s(const char *after, const char *rate_limit)
{
        uint32_t wait = after ? after_s(after) : 0;

        return wait || !rate_limit ? wait : rate_limit_s(rate_limit);
}
