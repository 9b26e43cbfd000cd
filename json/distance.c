#include "json/distance.h"

#include <string.h>

#define BYTES_MAX 32u
#define HINT_MAX  3u

static char letter_of(char c)
{
        return c == '-' ? '_' : c;
}

static uint32_t least(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

uint32_t distance(const char *a, size_t a_bytes, const char *b)
{
        uint32_t rows[3][BYTES_MAX + 1];
        size_t b_bytes = strlen(b);

        if (a_bytes > BYTES_MAX || b_bytes > BYTES_MAX)
                return DISTANCE_NONE;
        for (uint32_t j = 0; j <= b_bytes; j++)
                rows[0][j] = j;
        for (uint32_t i = 1; i <= a_bytes; i++) {
                uint32_t *row = rows[i % 3];
                const uint32_t *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
                char letter = letter_of(a[i - 1]);

                row[0] = i;
                for (uint32_t j = 1; j <= b_bytes; j++) {
                        row[j] = above[j - 1] + (letter != letter_of(b[j - 1]));
                        row[j] = least(row[j], least(above[j], row[j - 1]) + 1);
                        if (i > 1 && j > 1 && letter == letter_of(b[j - 2]) &&
                            letter_of(a[i - 2]) == letter_of(b[j - 1]))
                                row[j] = least(row[j], before[j - 2] + 1);
                }
        }
        return rows[a_bytes % 3][b_bytes];
}

bool distance_is_hint(const char *given, size_t given_bytes, const char *name, uint32_t *best)
{
        uint32_t d = distance(given, given_bytes, name);

        if (d > HINT_MAX || 2 * d > strlen(name) || d >= *best)
                return false;
        *best = d;
        return true;
}
