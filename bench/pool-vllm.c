#include "bench/pool-vllm.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/kvpool.h"

struct sequence_state {
        uint32_t known;    /* tokens of the prompt, and of the answer so far */
        uint32_t computed; /* positions whose KV is in the pool */
        uint32_t reached;  /* the most that `computed` ever was */
        uint32_t rows;     /* in this step */
        uint32_t blocks;
};

struct vllm {
        const struct pool_world *world;
        struct pool_log *log;
        struct sequence_state *sequences; /* of each request of the trace */
        uint32_t *running;                /* requests, the oldest first */
        uint32_t running_count;
        /*
         * Waiting requests: those that were preempted, the oldest on top, then those from `next`
         * to `arrived`.  Running requests are older than all of these, so a stack is enough.
         */
        uint32_t *preempted;
        uint32_t preempted_count, next, arrived;
        uint32_t ended, free_blocks;
        uint64_t now_ns;

        /* Of this step. */
        uint32_t rows;
        uint64_t positions;
};

/* Takes the blocks that a sequence needs for this many positions; or none, and returns false. */
static bool take_blocks(struct vllm *vllm, struct sequence_state *sequence, uint32_t positions)
{
        uint32_t more = blocks_for(positions) - sequence->blocks;

        if (more > vllm->free_blocks)
                return false;
        vllm->free_blocks -= more;
        sequence->blocks += more;
        return true;
}

static void free_blocks(struct vllm *vllm, struct sequence_state *sequence)
{
        vllm->free_blocks += sequence->blocks;
        sequence->blocks = 0;
}

static uint32_t preempt_youngest(struct vllm *vllm)
{
        uint32_t request = vllm->running[--vllm->running_count];
        struct sequence_state *sequence = &vllm->sequences[request];

        assert(!sequence->rows); /* rows are given to older ones first */
        free_blocks(vllm, sequence);
        sequence->computed = 0;
        vllm->preempted[vllm->preempted_count++] = request;
        vllm->log->preemptions++;
        return request;
}

static uint32_t rows_due(const struct vllm *vllm, const struct sequence_state *sequence)
{
        uint32_t due = sequence->known - sequence->computed, left = vllm->world->rows - vllm->rows;

        return due < left ? due : left;
}

static void add_rows(struct vllm *vllm, struct sequence_state *sequence, uint32_t rows)
{
        uint32_t end = sequence->computed + rows;

        sequence->rows = rows;
        vllm->rows += rows;
        vllm->positions += end;
        if (sequence->computed < sequence->reached)
                vllm->log->recomputed +=
                        (end < sequence->reached ? end : sequence->reached) - sequence->computed;
}

static void plan_running(struct vllm *vllm)
{
        for (uint32_t i = 0; i < vllm->running_count && vllm->rows < vllm->world->rows; i++) {
                uint32_t request = vllm->running[i];
                struct sequence_state *sequence = &vllm->sequences[request];
                uint32_t rows = rows_due(vllm, sequence);

                while (!take_blocks(vllm, sequence, sequence->computed + rows))
                        if (preempt_youngest(vllm) == request)
                                return; /* it was the youngest itself */
                add_rows(vllm, sequence, rows);
        }
}

static void admit_waiting(struct vllm *vllm)
{
        while (vllm->running_count < vllm->world->slots && vllm->rows < vllm->world->rows &&
               (vllm->preempted_count || vllm->next < vllm->arrived)) {
                uint32_t request = vllm->preempted_count
                                           ? vllm->preempted[vllm->preempted_count - 1]
                                           : vllm->next;
                struct sequence_state *sequence = &vllm->sequences[request];
                uint32_t rows = rows_due(vllm, sequence);

                if (blocks_for(sequence->known) > vllm->free_blocks)
                        return;
                if (vllm->preempted_count)
                        vllm->preempted_count--;
                else
                        vllm->next++;
                take_blocks(vllm, sequence, rows);
                vllm->running[vllm->running_count++] = request;
                add_rows(vllm, sequence, rows);
        }
}

/* The rows of a sequence have run.  Returns whether its answer is complete. */
static bool finish_rows(struct vllm *vllm, uint32_t request)
{
        const struct trace_request *asked = &vllm->world->trace->requests[request];
        struct sequence_state *sequence = &vllm->sequences[request];

        sequence->computed += sequence->rows;
        sequence->rows = 0;
        if (sequence->computed > sequence->reached)
                sequence->reached = sequence->computed;
        if (sequence->computed < sequence->known)
                return false;
        if (sequence->known++ == asked->prompt)
                vllm->log->first_ns[request] = vllm->now_ns;
        if (sequence->known < asked->prompt + asked->output)
                return false;
        vllm->log->end_ns[request] = vllm->now_ns;
        free_blocks(vllm, sequence);
        vllm->ended++;
        return true;
}

static int run_step(struct vllm *vllm)
{
        struct pool_step step = { .begin_ns = vllm->now_ns };
        uint32_t left = 0;

        vllm->rows = 0;
        vllm->positions = 0;
        plan_running(vllm);
        admit_waiting(vllm);
        assert(vllm->rows); /* each request alone fits the pool */

        step.running = vllm->running_count;
        step.blocks = vllm->world->blocks - vllm->free_blocks;
        step.ns = step_cost_ns(&vllm->world->cost, vllm->rows, vllm->positions);
        vllm->now_ns += step.ns;
        for (uint32_t i = 0; i < vllm->running_count; i++)
                if (!finish_rows(vllm, vllm->running[i]))
                        vllm->running[left++] = vllm->running[i];
        vllm->running_count = left;
        return pool_log_add(vllm->log, &step);
}

static int run_all(struct vllm *vllm)
{
        const struct trace *trace = vllm->world->trace;
        int r = 0;

        while (!r && vllm->ended < trace->count) {
                if (vllm->ended == vllm->arrived &&
                    vllm->now_ns < pool_arrival_ns(vllm->world, vllm->arrived))
                        vllm->now_ns = pool_arrival_ns(vllm->world, vllm->arrived);
                while (vllm->arrived < trace->count &&
                       pool_arrival_ns(vllm->world, vllm->arrived) <= vllm->now_ns)
                        vllm->arrived++;
                r = run_step(vllm);
        }
        return r;
}

int pool_vllm_run(const struct pool_world *world, struct pool_log *log)
{
        const struct trace *trace = world->trace;
        struct vllm vllm = { .world = world, .log = log, .free_blocks = world->blocks };
        int r = -ENOMEM;

        vllm.sequences = calloc(trace->count, sizeof(*vllm.sequences));
        vllm.running = calloc(world->slots, sizeof(*vllm.running));
        vllm.preempted = calloc(world->slots, sizeof(*vllm.preempted));
        if (vllm.sequences && vllm.running && vllm.preempted) {
                for (uint32_t i = 0; i < trace->count; i++)
                        vllm.sequences[i].known = trace->requests[i].prompt;
                r = run_all(&vllm);
        }
        free(vllm.sequences);
        free(vllm.running);
        free(vllm.preempted);
        return r;
}
