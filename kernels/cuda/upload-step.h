/*
 * Begins a step: copies the data that the host has uploaded to where kernels read it (step-view.h).
 *
 *      tables[page.group][page.slot][page.index] = page.page
 *      a row's token is its own, or a token that was picked in an earlier step and never left the
 *      device: picked[from].  If that pick failed, the token is 0
 *
 *      grid    one block: there are only some hundred numbers
 */
#ifndef KERNELS_CUDA_UPLOAD_STEP_H
#define KERNELS_CUDA_UPLOAD_STEP_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/step-view.h"

#define UPLOAD_OWN_TOKEN UINT32_MAX /* the token is the row's own */

struct upload_row {
        uint32_t slot, position, token, write;
        uint32_t from; /* into picked, or UPLOAD_OWN_TOKEN */
};

/* They lie in one piece of memory, each at its offset. */
struct upload_step_args {
        const step_counts *upload_counts;
        const upload_row *upload_rows;
        const step_page *upload_pages;
        const uint32_t *upload_page_count;
        const uint32_t *picked; /* tokens picked before */
        uint32_t *tables;
        uint32_t slots_max, pages_max;
        step_counts *counts;
        view_row *rows;
};

int upload_step(device *device, const upload_step_args *args);

#endif
