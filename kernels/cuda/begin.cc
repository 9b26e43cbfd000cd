#include "kernels/cuda/begin.h"

#include "kernels/cuda/lane.h"

#define THREADS 256u

KERNEL(THREADS) spread(begin_args a)
{
        wait_for_predecessor();
        for (uint32_t i = threadIdx.x; i < *a.sent_page_count; i += THREADS) {
                const step_page page = a.sent_pages[i];

                a.tables[(size_t)page.slot * a.pages_max + page.index] = page.page;
        }
        for (uint32_t i = threadIdx.x; i < a.sent_counts->rows; i += THREADS) {
                const sent_row row = a.sent_rows[i];
                uint32_t token = row.token;

                if (row.from != SENT_TOKEN) {
                        token = a.kept[row.from];
                        if (token == PICK_NOT_FINITE)
                                token = 0;
                }
                a.rows[i] = { row.slot, row.position, token, row.write };
        }
        if (threadIdx.x == 0)
                *a.counts = *a.sent_counts;
}

int begin(device *device, const begin_args *args)
{
        return device_launch(device, STREAM_STEPS, { 1, 1, 1, THREADS, 0, false }, spread, *args);
}
