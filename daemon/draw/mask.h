/* A mask of legal tokens: bit token % 32 of word token / 32, as struct pick has it. */
#ifndef DAEMON_DRAW_MASK_H
#define DAEMON_DRAW_MASK_H

#include <stdbool.h>
#include <stdint.h>

static inline void mask_set(uint32_t *mask, uint32_t token)
{
        mask[token / 32] |= UINT32_C(1) << token % 32;
}

static inline void mask_clear(uint32_t *mask, uint32_t token)
{
        mask[token / 32] &= ~(UINT32_C(1) << token % 32);
}

static inline bool mask_has(const uint32_t *mask, uint32_t token)
{
        return mask[token / 32] >> token % 32 & 1;
}

#endif
