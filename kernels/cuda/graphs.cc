/*
 * The operators of a step, captured as CUDA graphs once for each bucket of rows and of wanted rows,
 * so that one call puts a step on its stream.
 *
 * A launch costs the host some microseconds, and a step has hundreds.  A graph costs the same for
 * any number of launches.  It also lets each kernel begin while its predecessor ends. Everything
 * that varies from step to step is read from device memory (step-view.h), where upload-step.h has
 * put it.  So a graph is valid for every step of its bucket.
 *
 * With at most 64 wanted rows, there are 34 graphs for steps of up to 256 rows, and 64 for steps of
 * up to 2048.
 *
 * The warm-up captures all graphs, after the weights have arrived.  It first runs each one once
 * with no rows.  Operators allocate or choose some things when they first run (attention's lists,
 * the algorithms of a library), which must not happen during a capture.  Also, no kernel should be
 * loaded to the device for the first time then.
 */
#include "kernels/cuda/cuda.h"

#include <assert.h>

/*
 * The next bucket is twice as large, or from BUCKET_HALVES on, in turn, 3/2 and 4/3 times
 * as large.
 * Products by a library (linear-blas.h) cost as much as the bucket has rows, not as the step has.
 */
static uint32_t next_bucket(uint32_t bucket)
{
        if (bucket < BUCKET_HALVES)
                return bucket * 2;
        return bucket & (bucket - 1) ? bucket / 3 * 4 : bucket / 2 * 3;
}

uint32_t cuda_bucket(uint32_t count, uint32_t most)
{
        uint32_t bucket = BUCKET_MIN;

        while (bucket < count)
                bucket = next_bucket(bucket);
        return bucket < most ? bucket : most;
}

/* 0 for no rows, 1 for the smallest bucket, and so on. */
static uint32_t level_of(uint32_t bucket)
{
        uint32_t level = bucket != 0;

        for (uint32_t size = BUCKET_MIN; size < bucket; size = next_bucket(size))
                level++;
        assert(level < LEVELS);
        return level;
}

graph *cuda_graph(const struct cuda *cuda)
{
        return cuda->graphs[level_of(cuda->view.rows_max)][level_of(cuda->wants_bucket)];
}

void cuda_graphs_deinit(struct cuda *cuda)
{
        for (auto &of_rows : cuda->graphs)
                for (graph *&graph : of_rows) {
                        device_graph_delete(cuda->device, graph);
                        graph = nullptr;
                }
}

/*
 * Runs the operators with launches for these buckets; the counts on the device say that there are
 * no rows.
 */
static int run(struct cuda *cuda, uint32_t rows, uint32_t wants, int (*operators)(void *arg),
               void *arg)
{
        int r;

        cuda_plans_forget(cuda);
        cuda->view.rows_max = rows;
        cuda->wants_bucket = wants;
        cuda->steps.running = true;
        r = operators(arg);
        cuda->steps.running = false;
        return r;
}

static int capture(struct cuda *cuda, uint32_t rows, uint32_t wants, int (*operators)(void *arg),
                   void *arg)
{
        graph **graph = &cuda->graphs[level_of(rows)][level_of(wants)];
        int r = run(cuda, rows, wants, operators, arg), ended;

        if (!r)
                r = device_capture_begin(cuda->device, STREAM_STEPS);
        if (r)
                return r;
        r = run(cuda, rows, wants, operators, arg);
        ended = device_capture_end(cuda->device, STREAM_STEPS, graph);
        return r ? r : ended;
}

static int capture_all(struct cuda *cuda, int (*operators)(void *arg), void *arg)
{
        const uint32_t rows_most = cuda->conf.rows_max, wants_most = cuda->conf.wants_max;
        uint32_t rows = 0, wants;
        int r;

        do {
                rows = cuda_bucket(rows + 1, rows_most);
                r = capture(cuda, rows, 0, operators, arg);
                wants = 0;
                while (!r && wants < rows && wants < wants_most) {
                        wants = cuda_bucket(wants + 1, wants_most);
                        r = capture(cuda, rows, wants, operators, arg);
                }
        } while (!r && rows < rows_most);
        return r;
}

int cuda_warm_up(struct kernels *k, int (*operators)(void *arg), void *arg)
{
        struct cuda *cuda = cuda_of(k);
        int r = cuda->lost;

        assert(!cuda->steps.running);
        cuda_graphs_deinit(cuda);
        if (!r)
                r = device_clear(cuda->device, STREAM_STEPS, cuda->counts, sizeof(*cuda->counts));
        if (!r)
                r = capture_all(cuda, operators, arg);
        return cuda_check(cuda, r);
}
