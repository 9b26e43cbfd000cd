/*
 * Bounds of the scores of draw.h, a block of logits at a time. Part of loops.inc.
 *
 * The bound of a block is (its largest logit - the row's largest) / temperature plus a number that
 * -log(least) does not exceed. It needs no logarithm. As -log(u) >= 1 - u, the least time is at
 * least d = (~word + 0.5) * 2^-32 / 32. The bits of a float, taken as a whole number, are 2^23
 * times a lower bound of its logarithm to base 2, plus 127. The bits of half = (~word >> 1) stand
 * for d * 2^36, so -log(d) is at most (36 + 127) log(2) - bits * 2^-23 log(2). Where half is 0, the
 * bits are 0, and the bound is larger than any score.
 *
 * The rounding of these few floats is less than 1e-4 near any score that can win, and BOUND_BASE
 * has that added.
 */
#define BOUND_BASE (163 * 0.693147181f + 1e-4f)
#define BOUND_STEP (0.693147181f * 0x1p-23f)

/* The words of draw.h for n to n + 63; n is a multiple of 64. */
static void make_words(const struct draw_key *key, enum draw_purpose purpose, uint32_t n,
                       uint32_t ret_words[64])
{
        const uvec none = { 0 };

        for (uint32_t i = 0; i < 16; i += LANES) {
                uvec a = none + (uint32_t)key->position, b = none + (uint32_t)(key->position >> 32),
                     c = none + key->sample_index,
                     d = (uvec)iota() + ((uint32_t)purpose << 28 | (n / 4 + i));
                uint32_t k = (uint32_t)key->seed, l = (uint32_t)(key->seed >> 32);

                for (uint32_t round = 0; round < 10; round++) {
                        uvec next_a = multiply_high(c, 0xCD9E8D57u) ^ b ^ k;
                        uvec next_c = multiply_high(a, 0xD2511F53u) ^ d ^ l;

                        b = c * 0xCD9E8D57u;
                        d = a * 0xD2511F53u;
                        a = next_a;
                        c = next_c;
                        k += 0x9E3779B9u;
                        l += 0xBB67AE85u;
                }
                memcpy(ret_words + i, &a, sizeof(a));
                memcpy(ret_words + 16 + i, &b, sizeof(b));
                memcpy(ret_words + 32 + i, &c, sizeof(c));
                memcpy(ret_words + 48 + i, &d, sizeof(d));
        }
}

static void bound(const struct bounding *of, float *ret_bounds, const float *largest,
                  uint32_t blocks)
{
        for (uint32_t first = 0; first < blocks; first += 64) {
                uint32_t words[64], count = blocks - first < 64 ? blocks - first : 64;

                make_words(&of->key, DRAW_LEASTS, first, words);
                for (uint32_t i = 0; i < count; i += LANES) {
                        vec below = load(largest + first + i) - of->largest, bits;
                        uvec half;

                        memcpy(&half, words + i, sizeof(half));
                        half = ~half >> 1;
                        bits = __builtin_convertvector((ivec)half, vec);
                        bits = __builtin_convertvector((ivec)bits, vec);
                        store(ret_bounds + first + i,
                              below * of->factor + (BOUND_BASE - BOUND_STEP * bits));
                }
        }
}
