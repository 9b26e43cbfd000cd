#include "bridge/core/identifier.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/sys.h"

#define CHARACTERS 24u

/*
 * 62 does not divide 256, so bytes of 248 and more are skipped.  If the system has no random bytes,
 * which only happens in tests, the clock must do.
 */
void identifier_make(const char *prefix, char *to, size_t size)
{
        static const char digits[] =
                "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        size_t at = strlen(prefix), end = at + CHARACTERS;
        uint8_t random[64];

        assert(end < size);
        memcpy(to, prefix, at);
        while (at < end) {
                uint64_t clock = sys_clock_ns();

                if (sys_random(random, sizeof(random)))
                        for (size_t i = 0; i < sizeof(random); i++)
                                random[i] = (uint8_t)(clock >> (i % 8 * 8));
                for (size_t i = 0; i < sizeof(random) && at < end; i++)
                        if (random[i] < 248)
                                to[at++] = digits[random[i] % 62];
        }
        to[end] = '\0';
}
