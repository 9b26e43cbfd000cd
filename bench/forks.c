/*
 * A stream of 4,000 tokens is forked into eight.
 *
 * It runs over the pipeline, whose model has no numbers, so only the cost of the fork itself
 * remains.  The model stamps each position.  The forks' first tokens are made in the same step
 * as the parent's next token.  The extra time of that step, compared with those before it, is
 * the delay that the fork causes for all streams.  The client measures the time of its call and
 * of the forks' first records.
 */
#include <samovar/client.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/table.h"
#include "base/sys.h"

#define PROMPT    4000u
#define ANSWER    16384u
#define FORKS     8u
#define POSITIONS 65536u
#define TIMES     200u
#define BEFORE    64u /* steps that are looked at before it */

struct shared {
        struct pipeline_facts pipeline;
        counter stamps[POSITIONS];
        uint32_t step[TIMES], call[TIMES], first[TIMES], last[TIMES];
        double blocks_shared, blocks_copied; /* of one fork */
        uint32_t count;
};

struct fork_client {
        struct shared *shared;
        struct smv_client *client;
        uint32_t stream, forks[FORKS];
        uint64_t heard[FORKS]; /* when it first said something; 0: not yet */
        uint32_t tokens, heard_count, ended, branch, cached;
};

static void hear(struct fork_client *forker)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t i = 0;

        bench_must(smv_next(forker->client, &event, 10000) == 1, "smv_next");
        forker->ended += event.kind == SMV_EVENT_END;
        forker->tokens += event.stream == forker->stream && event.token_count;
        while (i < FORKS && forker->forks[i] != event.stream)
                i++;
        if (i == FORKS)
                return;
        if (!forker->heard[i]) {
                forker->heard[i] = sys_clock_ns();
                forker->heard_count++;
                forker->branch = event.position;
        }
        if (event.kind == SMV_EVENT_END)
                forker->cached += event.cached_tokens;
}

static int by_size(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return (x > y) - (x < y);
}

static uint64_t gap(const struct shared *shared, uint32_t position)
{
        return counter_get(&shared->stamps[position]) - counter_get(&shared->stamps[position - 1]);
}

/* How much longer it took than half of those before it. */
static uint32_t longer(const struct shared *shared, uint32_t position)
{
        uint64_t before[BEFORE], this = gap(shared, position);

        for (uint32_t i = 0; i < BEFORE; i++)
                before[i] = gap(shared, position - 1 - i);
        qsort(before, BEFORE, sizeof(*before), by_size);
        return (uint32_t)(this > before[BEFORE / 2] ? this - before[BEFORE / 2] : 0);
}

static void fork_once(struct shared *shared, struct smv_client *client, const uint32_t *prompt)
{
        const struct smv_generate ask = { SMV_SIZE(smv_generate), .tokens = prompt,
                                          .token_count = PROMPT,  .max_tokens = ANSWER,
                                          .set = SMV_SET_SEED,    .seed = 1 };
        const struct smv_fork fork = { SMV_SIZE(smv_fork), .count = FORKS };
        struct fork_client forker = { .shared = shared, .client = client };
        uint64_t copied, from, until, first = UINT64_MAX, last = 0;
        uint32_t at = shared->count;
        int r;

        bench_must(!smv_generate(client, &ask, &forker.stream), "smv_generate");
        while (forker.tokens < 2 * BEFORE)
                hear(&forker);
        copied = counter_get(&shared->pipeline.stats.blocks_copied);
        from = sys_clock_ns();
        r = smv_fork(client, forker.stream, &fork, forker.forks);
        until = sys_clock_ns();
        if (r == -EREMOTEIO) { /* the machine was busy, and it has ended: another time */
                while (!forker.ended)
                        hear(&forker);
                return;
        }
        bench_must(!r, "smv_fork");
        while (forker.heard_count < FORKS)
                hear(&forker);
        smv_cancel(client, forker.stream);
        for (uint32_t i = 0; i < FORKS; i++)
                smv_cancel(client, forker.forks[i]);
        while (forker.ended < FORKS + 1)
                hear(&forker);

        for (uint32_t i = 0; i < FORKS; i++) {
                first = forker.heard[i] < first ? forker.heard[i] : first;
                last = forker.heard[i] > last ? forker.heard[i] : last;
        }
        shared->count++;
        shared->step[at] = longer(shared, forker.branch);
        shared->call[at] = (uint32_t)(until - from);
        shared->first[at] = (uint32_t)(first - from);
        shared->last[at] = (uint32_t)(last - from);
        shared->blocks_shared = forker.cached / 16;
        shared->blocks_copied =
                (double)(counter_get(&shared->pipeline.stats.blocks_copied) - copied);
}

static void fork_many(struct shared *shared, uint32_t times)
{
        const struct smv_connect options = {
                SMV_SIZE(smv_connect),           .socket = bench_socket(),
                .doorbell = SMV_DOORBELL_NONE,   .spin_us = 1000000,
                .transport = SMV_TRANSPORT_RING, .ring_bytes = 1 << 20
        };
        uint32_t *prompt = calloc(PROMPT, sizeof(*prompt));
        struct smv_client *client;

        bench_must(prompt != NULL, "memory");
        for (uint32_t i = 0; i < PROMPT; i++)
                prompt[i] = i * 7 % 251;
        bench_must(!smv_connect(&options, &client), "smv_connect");
        while (shared->count < times)
                fork_once(shared, client, prompt);
        smv_close(client);
        free(prompt);
}

void bench_forks(double scale)
{
        static const char group[] = "fork of 4,000 tokens into 8, us";
        static const char counts[] = "fork of 4,000 tokens into 8, blocks";
        struct shared *shared = bench_shared(sizeof(*shared));
        const struct pipeline_conf conf = {
                .socket = bench_socket(),
                .connections = 4,
                .requests = 16,
                .context = POSITIONS,
                .depth = 1,
                .model = { .cpu = BENCH_SENDER_CPU,
                           .stamps = shared->stamps,
                           .stamp_count = POSITIONS },
                .facts = &shared->pipeline,
        };
        uint32_t times = (uint32_t)(TIMES * scale) + 20;
        int daemon = pipeline_fork(&conf), forker, status = -1;

        bench_must(daemon > 0, "a pipeline");
        forker = fork();
        if (forker == 0) {
                null_pin(BENCH_READER_CPU);
                fork_many(shared, times < TIMES ? times : TIMES);
                _exit(0);
        }
        waitpid(forker, &status, 0);
        bench_must(status == 0, "a client process");
        bench_must(pipeline_stop(daemon) == 0, "the pipeline's end");
        table_add(group, "the step that takes it, beyond others", "100", shared->step,
                  shared->count);
        table_add(group, "smv_fork()", "", shared->call, shared->count);
        table_add(group, "until the first of them has a token", "", shared->first, shared->count);
        table_add(group, "until all of them have", "", shared->last, shared->count);
        table_add_one(counts, "shared", "", shared->blocks_shared);
        table_add_one(counts, "copied", "", shared->blocks_copied);
        bench_unshare(shared, sizeof(*shared));
}
