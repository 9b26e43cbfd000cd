#include "kernels/cuda/upload-step.h"

#include "kernels/cuda/intrinsics.h"

#define THREADS 256u

KERNEL(THREADS) scatter_step(upload_step_args a)
{
        wait_for_predecessor();
        for (uint32_t i = threadIdx.x; i < *a.upload_page_count; i += THREADS) {
                const step_page page = a.upload_pages[i];

                a.tables[((size_t)page.group * a.slots_max + page.slot) * a.pages_max +
                         page.index] = page.page;
        }
        for (uint32_t i = threadIdx.x; i < a.upload_counts->rows; i += THREADS) {
                const upload_row row = a.upload_rows[i];
                uint32_t token = row.token;

                if (row.from != UPLOAD_OWN_TOKEN) {
                        token = a.picked[row.from];
                        if (token >= PICK_NONE_LEGAL)
                                token = 0;
                }
                a.rows[i] = { row.slot, row.position, token, row.write };
        }
        if (threadIdx.x == 0)
                *a.counts = *a.upload_counts;
}

int upload_step(device *device, const upload_step_args *args)
{
        return device_launch(device, STREAM_STEPS, { 1, 1, 1, THREADS, 0, false }, scatter_step,
                             *args);
}
