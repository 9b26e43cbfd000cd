/*
 * A step begins: spreads the data that the host sent to where kernels read it (step.h).
 *
 *      tables[page.slot][page.index] = page.page
 *      a row's token is its own, or a token that was picked in an earlier step and never left the
 *      device: kept[from].  If that pick was not finite, the token is 0
 *
 *      grid    one block: there are only some hundred numbers
 */
#ifndef KERNELS_CUDA_BEGIN_H
#define KERNELS_CUDA_BEGIN_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/step.h"

#define SENT_TOKEN UINT32_MAX /* the token is the row's own */

struct sent_row {
        uint32_t slot, position, token, write;
        uint32_t from; /* into kept, or SENT_TOKEN */
};

/* They lie in one piece of memory, each at its offset. */
struct begin_args {
        const step_counts *sent_counts;
        const sent_row *sent_rows;
        const step_page *sent_pages;
        const uint32_t *sent_page_count;
        const uint32_t *kept; /* tokens picked before */
        uint32_t *tables;
        uint32_t pages_max;
        step_counts *counts;
        seen_row *rows;
};

int begin(device *device, const begin_args *args);

#endif
