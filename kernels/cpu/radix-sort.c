#include "kernels/cpu/radix-sort.h"

#include <errno.h>
#include <string.h>

#include "kernels/memory.h"

#define DIGIT_BITS     11u
#define DIGIT_BITS_FEW 8u /* if there are fewer candidates than digits */
#define DIGITS         (1u << DIGIT_BITS)
#define FEW            32u /* candidates */
#define SHIFT          (32 - 2 * DIGIT_BITS)

int pick_scratch_init(struct pick_scratch *s, uint32_t vocab_max)
{
        const uint32_t blocks = round_up(logit_blocks_of(vocab_max), LOGITS_BLOCK);

        *s = (struct pick_scratch){
                .a = memory_new(vocab_max, sizeof(*s->a)),
                .b = memory_new(vocab_max, sizeof(*s->b)),
                .chances = memory_new(vocab_max, sizeof(*s->chances)),
                .weights = memory_new(blocks, LOGITS_BLOCK * sizeof(*s->weights)),
                .block_weights = memory_new(blocks, sizeof(*s->block_weights)),
                .listed_ids = memory_new(blocks + 1, LOGITS_BLOCK * sizeof(*s->listed_ids)),
                .listed_weights = memory_new(blocks + 1, LOGITS_BLOCK * sizeof(*s->listed_weights)),
                .group_maxima = memory_new(blocks / LOGITS_BLOCK, sizeof(*s->group_maxima)),
                .bounds = memory_new(blocks, sizeof(*s->bounds)),
                .group_bounds = memory_new(round_up(blocks / LOGITS_BLOCK, LOGITS_BLOCK),
                                           sizeof(*s->group_bounds)),
                .edited = memory_new(vocab_max, sizeof(*s->edited)),
        };
        if (s->a && s->b && s->chances && s->weights && s->block_weights && s->listed_ids &&
            s->listed_weights && s->group_maxima && s->bounds && s->group_bounds && s->edited)
                return 0;
        pick_scratch_deinit(s);
        return -ENOMEM;
}

void pick_scratch_deinit(struct pick_scratch *s)
{
        memory_free(s->a);
        memory_free(s->b);
        memory_free(s->chances);
        memory_free(s->weights);
        memory_free(s->block_weights);
        memory_free(s->listed_ids);
        memory_free(s->listed_weights);
        memory_free(s->group_maxima);
        memory_free(s->bounds);
        memory_free(s->group_bounds);
        memory_free(s->edited);
        *s = (struct pick_scratch){ 0 };
}

static void sort_few(struct candidate *c, uint32_t count)
{
        for (uint32_t i = 1; i < count; i++) {
                struct candidate one = c[i];
                uint32_t at = i;

                for (; at && one.key < c[at - 1].key; at--)
                        c[at] = c[at - 1];
                c[at] = one;
        }
}

/* One pass of the sort, by `bits` bits of the key from `shift` on. */
static void sort_pass(const struct candidate *from, struct candidate *to, uint32_t count,
                      uint32_t shift, uint32_t bits)
{
        uint32_t starts[DIGITS], start = 0;

        memset(starts, 0, sizeof(*starts) << bits);
        for (uint32_t i = 0; i < count; i++)
                starts[from[i].key >> shift & ((1u << bits) - 1)]++;
        for (uint32_t d = 0; d < 1u << bits; d++) {
                uint32_t n = starts[d];

                starts[d] = start;
                start += n;
        }
        for (uint32_t i = 0; i < count; i++)
                to[starts[from[i].key >> shift & ((1u << bits) - 1)]++] = from[i];
}

struct candidate *candidates_sort(struct candidate *c, struct candidate *spare, uint32_t count)
{
        uint32_t bits = count < DIGITS ? DIGIT_BITS_FEW : DIGIT_BITS;

        if (count <= FEW) {
                sort_few(c, count);
                return c;
        }
        for (uint32_t shift = 0; shift < 32; shift += bits) {
                struct candidate *sorted = spare;

                sort_pass(c, sorted, count, shift, bits);
                spare = c;
                c = sorted;
        }
        return c;
}

/* The two highest digits of the key of the count-th largest of these logits. */
static uint32_t border(const float *logits, uint32_t n, uint32_t count)
{
        uint32_t counts[DIGITS], digits[2] = { 0, 0 };

        for (uint32_t d = 0; d < 2; d++) {
                uint32_t digit = 0;

                memset(counts, 0, sizeof(counts));
                for (uint32_t i = 0; i < n; i++) {
                        uint32_t key = sort_key(logits[i]);

                        if (d == 0)
                                counts[key >> (32 - DIGIT_BITS)]++;
                        else if (key >> (32 - DIGIT_BITS) == digits[0])
                                counts[key >> SHIFT & (DIGITS - 1)]++;
                }
                while (counts[digit] < count)
                        count -= counts[digit++];
                digits[d] = digit;
        }
        return digits[0] << DIGIT_BITS | digits[1];
}

static uint32_t least(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

/*
 * If the maxima of n blocks are not below some border, then at least n logits are not below it.
 * The same holds for the maxima of groups of blocks.
 */
uint32_t candidates_select(struct pick_scratch *s, const float *logits, uint32_t vocab,
                           const float *largest, uint32_t count)
{
        const uint32_t blocks = logit_blocks_of(vocab), groups = logit_blocks_of(blocks);
        uint32_t last = UINT32_MAX, n = 0;

        if (count <= groups)
                last = border(s->group_maxima, groups, count);
        else if (count <= blocks)
                last = border(largest, blocks, count);
        else if (count < vocab)
                last = border(logits, vocab, count);

        for (uint32_t g = 0; g < groups; g++) {
                if (sort_key(s->group_maxima[g]) >> SHIFT > last)
                        continue;
                for (uint32_t b = g * LOGITS_BLOCK; b < least(blocks, (g + 1) * LOGITS_BLOCK);
                     b++) {
                        if (sort_key(largest[b]) >> SHIFT > last)
                                continue;
                        for (uint32_t i = b * LOGITS_BLOCK;
                             i < least(vocab, (b + 1) * LOGITS_BLOCK); i++) {
                                uint32_t key = sort_key(logits[i]);

                                s->a[n] = (struct candidate){ key, i };
                                n += key >> SHIFT <= last;
                        }
                }
        }
        return n;
}
