/*
 * Compares any text, cut anywhere, with any stop strings, with the oracle.
 *
 *      stop count | each stop: its length less one, its bytes
 *      piece count | a length for each | the text: all the rest
 */
#include <stdint.h>

#include "tests/unit/detok-oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
        const uint8_t *at;
        size_t left;
};

static uint8_t next_byte(struct input *input)
{
        if (!input->left)
                return 0;
        input->left--;
        return *input->at++;
}

static const uint8_t *next_bytes(struct input *input, size_t *count)
{
        const uint8_t *at = input->at;

        if (*count > input->left)
                *count = input->left;
        input->at += *count;
        input->left -= *count;
        return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input input = { data, size };
        const char *stops[SMV_STOPS_MAX];
        uint16_t stop_bytes[SMV_STOPS_MAX];
        uint32_t stop_count = 0, wanted;
        const uint8_t *cuts;
        size_t cut_count;

        for (wanted = next_byte(&input) % (SMV_STOPS_MAX + 1); wanted; wanted--) {
                size_t bytes = next_byte(&input) + 1u;
                const uint8_t *stop = next_bytes(&input, &bytes);

                if (!bytes)
                        break;
                stops[stop_count] = (const char *)stop;
                stop_bytes[stop_count++] = (uint16_t)bytes;
        }
        cut_count = next_byte(&input);
        cuts = next_bytes(&input, &cut_count);
        oracle_check((const char *)input.at, input.left, cuts, cut_count, stops, stop_bytes,
                     stop_count);
        return 0;
}
