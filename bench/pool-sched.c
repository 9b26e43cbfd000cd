#include "bench/pool-sched.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/core/sched.h"

#define FIRST_UID  1000u
#define FREE_BYTES (UINT64_C(1) << 40) /* readers are never slow */

struct driver {
        const struct pool_world *world;
        const struct pool_sched *setup;
        struct pool_log *log;
        struct sched *sched;
        struct plan plan;
        struct request *requests; /* of the trace */
        uint32_t *reached;        /* of each: positions from the front that have had a row */
        uint32_t *tokens;         /* memory of all sequences */
        uint32_t arrived, retired;
        uint64_t now_ns;
};

static void note(struct driver *driver, const struct sched_event *event)
{
        sched_note(driver->sched, event, driver->now_ns);
}

static void make_requests(struct driver *driver)
{
        const struct trace *trace = driver->world->trace;
        uint32_t *tokens = driver->tokens;

        for (uint32_t i = 0; i < trace->count; i++) {
                const struct trace_request *asked = &trace->requests[i];
                struct request *request = &driver->requests[i];

                assert(driver->setup->max_tokens[i] >= asked->output);
                request->number = i;
                request->uid = FIRST_UID + i % driver->setup->users;
                request->priority = REQUEST_NORMAL;
                request->prompt_count = asked->prompt;
                request->max_tokens = driver->setup->max_tokens[i];
                request->tokens_max = asked->prompt + request->max_tokens;
                request->record_bytes_max = 1;
                request->sequence = (struct sequence){ .request = request,
                                                       .tokens = tokens,
                                                       .token_count = asked->prompt,
                                                       .slot = SEQUENCE_NO_SLOT };
                trace_prompt(driver->setup->seed, i, trace->count, tokens, asked->prompt);
                tokens += asked->prompt + asked->output; /* it ends there, by its verdict */
        }
}

static void submit_arrived(struct driver *driver)
{
        const struct pool_world *world = driver->world;

        while (driver->arrived < world->trace->count &&
               pool_arrival_ns(world, driver->arrived) <= driver->now_ns) {
                struct request *request = &driver->requests[driver->arrived++];

                note(driver, &(struct sched_event){ .kind = SCHED_SUBMIT, .request = request });
        }
}

static void count_recomputed(struct driver *driver, const struct plan_row *row)
{
        uint32_t *reached = &driver->reached[row->sequence->request->number];

        if (row->position < *reached)
                driver->log->recomputed++;
        else
                *reached = row->position + 1;
}

static uint64_t plan_takes(const struct driver *driver)
{
        const struct plan *plan = &driver->plan;
        uint64_t positions = 0;

        /* The last row of each sequence reads the longest context. */
        for (uint32_t i = 0; i < plan->row_count; i++)
                if (i + 1 == plan->row_count || plan->rows[i + 1].slot != plan->rows[i].slot)
                        positions += plan->rows[i].position + 1;
        return step_cost_ns(&driver->world->cost, plan->row_count, positions);
}

static void tell_result(struct driver *driver, uint32_t row)
{
        struct sequence *sequence = driver->plan.rows[row].sequence;
        uint32_t number = sequence->request->number;
        uint32_t made = sequence->token_count - sequence->request->prompt_count + 1;
        bool ends = made == driver->world->trace->requests[number].output;

        if (made == 1)
                driver->log->first_ns[number] = driver->now_ns;
        if (ends)
                driver->log->end_ns[number] = driver->now_ns;
        note(driver, &(struct sched_event){ .kind = SCHED_RESULT,
                                            .plan = driver->plan.number,
                                            .row = row,
                                            .token = made,
                                            .verdict = ends ? SCHED_EOS : SCHED_CONTINUE });
}

static int run_plan(struct driver *driver)
{
        const struct plan *plan = &driver->plan;
        struct pool_step step = { .begin_ns = driver->now_ns, .ns = plan_takes(driver) };
        struct sched_counts counts;

        sched_count(driver->sched, &counts);
        step.running = counts.running;
        step.blocks = counts.blocks_in_use;
        driver->now_ns += step.ns;
        for (uint32_t i = 0; i < plan->row_count; i++) {
                count_recomputed(driver, &plan->rows[i]);
                if (plan->rows[i].want == PLAN_LOGITS)
                        tell_result(driver, i);
        }
        note(driver, &(struct sched_event){ .kind = SCHED_DONE, .plan = plan->number });
        return pool_log_add(driver->log, &step);
}

/* Nothing runs: goes on to the next arrival, or to the time at which the scheduler wants to. */
static void sleep_on(struct driver *driver)
{
        uint64_t at_ns = driver->plan.wake_ns;

        if (driver->arrived < driver->world->trace->count &&
            pool_arrival_ns(driver->world, driver->arrived) < at_ns)
                at_ns = pool_arrival_ns(driver->world, driver->arrived);
        assert(at_ns > driver->now_ns && at_ns != PLAN_SLEEP);
        driver->now_ns = at_ns;
}

static int run_all(struct driver *driver)
{
        struct sched_counts counts;
        int r = 0;

        while (!r) {
                submit_arrived(driver);
                note(driver,
                     &(struct sched_event){ .kind = SCHED_SPACE, .free_bytes = FREE_BYTES });
                sched_next(driver->sched, driver->now_ns, &driver->plan);
                driver->retired += driver->plan.retired_count;
                if (driver->plan.row_count)
                        r = run_plan(driver);
                else if (driver->retired == driver->world->trace->count)
                        break;
                else
                        sleep_on(driver);
        }
        sched_count(driver->sched, &counts);
        driver->log->preemptions = counts.preemptions;
        return r;
}

static int run_new(struct driver *driver)
{
        const struct sched_conf *conf = &driver->setup->conf;
        int r = sched_new(conf, &driver->sched);

        if (r)
                return r;
        r = plan_init(&driver->plan, conf);
        if (!r) {
                make_requests(driver);
                r = run_all(driver);
                plan_deinit(&driver->plan);
        }
        sched_free(driver->sched);
        return r;
}

int pool_sched_run(const struct pool_world *world, const struct pool_sched *setup,
                   struct pool_log *log)
{
        const struct trace *trace = world->trace;
        struct driver driver = { .world = world, .setup = setup, .log = log };
        size_t tokens = 0;
        int r = -ENOMEM;

        assert(setup->conf.depth == 1 && setup->conf.requests_max >= trace->count);
        for (uint32_t i = 0; i < trace->count; i++)
                tokens += (size_t)trace->requests[i].prompt + trace->requests[i].output;
        driver.requests = calloc(trace->count, sizeof(*driver.requests));
        driver.reached = calloc(trace->count, sizeof(*driver.reached));
        driver.tokens = calloc(tokens, sizeof(*driver.tokens));
        if (driver.requests && driver.reached && driver.tokens)
                r = run_new(&driver);
        free(driver.requests);
        free(driver.reached);
        free(driver.tokens);
        return r;
}
