#include "bridge/core/identifier.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/siphash.h"
#include "base/sys.h"

#define CHARACTERS 24u
#define DERIVED    20u

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/*
 * 62 does not divide 256, so bytes of 248 and more are skipped.  If the system has no random bytes,
 * which only happens in tests, the clock must do.
 */
void identifier_make(const char *prefix, char *to, size_t size)
{
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

void identifier_derive(const char *prefix, const uint64_t key[2], uint64_t number, char *to,
                       size_t size)
{
        size_t at = strlen(prefix);
        uint64_t hash[2];

        assert(at + CHARACTERS < size);
        siphash(key, &number, sizeof(number), hash);
        memcpy(to, prefix, at);
        /* 62 ^ 10 is less than 2 ^ 64 */
        for (size_t i = 0; i < DERIVED; i++) {
                uint64_t *half = &hash[i >= DERIVED / 2];

                to[at++] = digits[*half % 62];
                *half /= 62;
        }
        to[at] = '\0';
}
