#include "json/distance.h"

#include <string.h>

#define BYTES_MAX 32u
#define HINT_MAX  3u

uint32_t distance(const char *a, size_t a_bytes, const char *b)
{
        uint32_t row[BYTES_MAX + 1];
        size_t b_bytes = strlen(b);

        if (a_bytes > BYTES_MAX || b_bytes > BYTES_MAX)
                return DISTANCE_NONE;
        for (uint32_t j = 0; j <= b_bytes; j++)
                row[j] = j;
        for (uint32_t i = 1; i <= a_bytes; i++) {
                uint32_t diagonal = row[0];

                row[0] = i;
                for (uint32_t j = 1; j <= b_bytes; j++) {
                        char letter = a[i - 1] == '-' ? '_' : a[i - 1];
                        uint32_t best = diagonal + (letter != (b[j - 1] == '-' ? '_' : b[j - 1]));

                        diagonal = row[j];
                        if (row[j] + 1 < best)
                                best = row[j] + 1;
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        row[j] = best;
                }
        }
        return row[b_bytes];
}

bool distance_is_hint(const char *given, size_t given_bytes, const char *name, uint32_t *best)
{
        uint32_t d = distance(given, given_bytes, name);

        if (d > HINT_MAX || 2 * d > strlen(name) || d >= *best)
                return false;
        *best = d;
        return true;
}
