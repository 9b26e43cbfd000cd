#include "cli/bench/draws.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP UINT64_C(0x9e3779b97f4a7c15) /* an odd number near 2^64 / the golden ratio */

static uint64_t mix(uint64_t x)
{
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
}

struct draws draws_begin(uint64_t seed, uint64_t which)
{
        return (struct draws){ .state = mix(mix(seed + STEP) ^ (which * STEP)) };
}

uint64_t draws_bits(struct draws *draws)
{
        draws->state += STEP;
        return mix(draws->state);
}

double draws_uniform(struct draws *draws)
{
        return ((double)(draws_bits(draws) >> 11) + 0.5) / 9007199254740992.0;
}

uint32_t draws_below(struct draws *draws, uint32_t n)
{
        return (uint32_t)(((draws_bits(draws) >> 32) * n) >> 32);
}

double draws_normal(struct draws *draws)
{
        double radius = sqrt(2 * draws_exponential(draws));

        return radius * cos(2 * M_PI * draws_uniform(draws));
}

double draws_exponential(struct draws *draws)
{
        return -log(draws_uniform(draws));
}

/* The method of Marsaglia and Tsang; a shape below 1 is made of the next larger one. */
double draws_gamma(struct draws *draws, double shape)
{
        double d, c, x, v, scale = 1;

        if (shape < 1) {
                scale = pow(draws_uniform(draws), 1 / shape);
                shape += 1;
        }
        d = shape - 1.0 / 3;
        c = 1 / sqrt(9 * d);
        for (;;) {
                x = draws_normal(draws);
                v = 1 + c * x;
                if (v <= 0)
                        continue;
                v = v * v * v;
                if (log(draws_uniform(draws)) < x * x / 2 + d - d * v + d * log(v))
                        return scale * d * v;
        }
}

/* ---- lengths ---- */

/* Reads a number that ends with the character `end`, and moves *at behind that. */
static int read_number(const char **at, char end, double *ret_number)
{
        char *behind;

        if (**at < '0' || **at > '9')
                return -EINVAL;
        *ret_number = strtod(*at, &behind);
        if (*behind != end || *ret_number > LENGTH_MAX)
                return -EINVAL;
        *at = end ? behind + 1 : behind;
        return 0;
}

static int read_range(const char *text, struct lengths *ret_lengths)
{
        double low, high;
        int r;

        r = read_number(&text, strchr(text, '-') ? '-' : '\0', &low);
        if (r)
                return r;
        high = low;
        if (*text || text[-1] == '-')
                r = read_number(&text, '\0', &high);
        if (r || low < 1 || high < low || low != floor(low) || high != floor(high))
                return -EINVAL;
        *ret_lengths = (struct lengths){ .kind = low < high ? LENGTHS_UNIFORM : LENGTHS_FIXED,
                                         .low = (uint32_t)low,
                                         .high = (uint32_t)high };
        return 0;
}

int lengths_read(const char *text, struct lengths *ret_lengths)
{
        static const struct {
                const char *name;
                enum lengths_kind kind;
        } names[] = { { "normal:", LENGTHS_NORMAL },
                      { "lognormal:", LENGTHS_LOGNORMAL },
                      { "exp:", LENGTHS_EXPONENTIAL } };
        struct lengths lengths = { .kind = LENGTHS_FIXED };
        int r = 0;

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (!strncmp(text, names[i].name, strlen(names[i].name))) {
                        lengths.kind = names[i].kind;
                        text += strlen(names[i].name);
                }
        if (lengths.kind == LENGTHS_FIXED)
                return read_range(text, ret_lengths);
        r = read_number(&text, lengths.kind == LENGTHS_EXPONENTIAL ? '\0' : ':', &lengths.mean);
        if (!r && lengths.kind != LENGTHS_EXPONENTIAL)
                r = read_number(&text, '\0', &lengths.deviation);
        if (r || lengths.mean < 1)
                return -EINVAL;
        *ret_lengths = lengths;
        return 0;
}

static double draw_lognormal(const struct lengths *lengths, struct draws *draws)
{
        double ratio = lengths->deviation / lengths->mean;
        double variance = log(1 + ratio * ratio);

        return exp(log(lengths->mean) - variance / 2 + sqrt(variance) * draws_normal(draws));
}

uint32_t lengths_draw(const struct lengths *lengths, struct draws *draws)
{
        double length = lengths->low;

        switch (lengths->kind) {
        case LENGTHS_FIXED:
                break;
        case LENGTHS_UNIFORM:
                return lengths->low + draws_below(draws, lengths->high - lengths->low + 1);
        case LENGTHS_NORMAL:
                length = lengths->mean + lengths->deviation * draws_normal(draws);
                break;
        case LENGTHS_LOGNORMAL:
                length = draw_lognormal(lengths, draws);
                break;
        case LENGTHS_EXPONENTIAL:
                length = lengths->mean * draws_exponential(draws);
                break;
        }
        length = round(length);
        return length < 1 ? 1 : length > LENGTH_MAX ? LENGTH_MAX : (uint32_t)length;
}
