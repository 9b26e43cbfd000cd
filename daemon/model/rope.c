#include <assert.h>
#include <math.h>

#include "daemon/model/rope.h"

#define TURN       (2 * 3.14159265358979323846)
#define RAMP_LEAST 0.001 /* so that equal borders give a step instead of a division by 0 */

/* The index, as a fraction, of the pair that makes `times` turns in the trained positions. */
static double pair_that_turns(const struct rope_shape *shape, double times)
{
        return shape->dims * log(shape->trained / (times * TURN)) / (2 * log(shape->base));
}

static double between_0_and_1(double x)
{
        return fmin(fmax(x, 0), 1);
}

/* The share of its own speed that pair i keeps; `frequency` is this speed. */
static double share_kept(const struct rope_shape *shape, uint32_t i, double frequency)
{
        double turns = shape->trained * frequency / TURN, first, last;

        if (shape->scaling == ROPE_LLAMA3)
                return between_0_and_1((turns - shape->low) / (shape->high - shape->low));
        if (shape->scaling == ROPE_LINEAR)
                return 0;
        first = pair_that_turns(shape, shape->high);
        last = pair_that_turns(shape, shape->low);
        if (shape->whole) {
                first = floor(first);
                last = ceil(last);
        }
        first = fmax(first, 0);
        last = fmin(last, shape->dims - 1.0);
        return 1 - between_0_and_1((i - first) / fmax(last - first, RAMP_LEAST));
}

void rope_frequencies(const struct rope_shape *shape, uint32_t context, const float *slower,
                      float *ret_frequency)
{
        const float *table = shape->slower[context > shape->trained];

        assert(shape->dims % 2 == 0 && shape->dims / 2 <= ROPE_PAIRS_MAX && shape->base > 1);
        for (uint32_t i = 0; i < shape->dims / 2; i++) {
                double frequency = pow(shape->base, -2.0 * i / shape->dims);

                if (shape->scaling == ROPE_LONG) {
                        frequency /= table[i];
                } else if (shape->scaling != ROPE_PLAIN) {
                        double kept = share_kept(shape, i, frequency);

                        frequency *= kept + (1 - kept) / shape->factor;
                }
                if (i + shape->still >= shape->dims / 2)
                        frequency = 0;
                ret_frequency[i] = (float)(slower ? frequency / slower[i] : frequency);
        }
}

double rope_attention(double factor, double m)
{
        return factor > 1 ? 0.1 * m * log(factor) + 1 : 1;
}

double rope_long_attention(double factor, double trained)
{
        return factor > 1 && trained > 1 ? sqrt(1 + log(factor) / log(trained)) : 1;
}
