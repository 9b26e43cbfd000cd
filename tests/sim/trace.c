/* The trace of a world: a line for each plan, and a report of the state when a test fails. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print(struct sim *sim, const char *format, ...)
{
        va_list args;

        if (!sim->trace)
                return;
        va_start(args, format);
        sim->trace_count += (size_t)vsnprintf(sim->trace + sim->trace_count,
                                              sim->trace_max - sim->trace_count, format, args);
        va_end(args);
        assert_true(sim->trace_count < sim->trace_max);
}

/* Lists the requests that are alive, for the person who looks for the fault. */
static void tell_state(const struct sim *sim)
{
        const struct sched_conf *conf = &sim->conf;

        fprintf(stderr,
                "%u slots, %u rows, %u of drafts, %u blocks, %u of one user, who keeps %u; swap of "
                "%u, %u of one "
                "user, %llu us a copy; depth %u; preemptions "
                "%u "
                "after %llu ms; %u blocks may be reserved; batches of %u in "
                "%llu ms; gap %llu ms; window of %u, %u window pages, %u of one user\n",
                conf->slots, conf->rows, conf->drafts, conf->blocks, conf->user_blocks,
                conf->prefix.cached_max, conf->prefix.swap_blocks, conf->prefix.swap_max,
                (unsigned long long)(conf->swap_copy_ns / 1000), conf->depth, conf->preemptions_max,
                (unsigned long long)(conf->stall_preempt_ns / SIM_MS), conf->reserve_max,
                conf->batch_size, (unsigned long long)(conf->batch_window_ns / SIM_MS),
                (unsigned long long)(conf->token_gap_ns / SIM_MS), conf->prefix.window,
                conf->prefix.window_pages, conf->prefix.windows_max);
        for (uint32_t i = 0; i < sim->plan.move_count; i++)
                fprintf(stderr, "move %u to %u\n", sim->plan.moves[i].from, sim->plan.moves[i].to);
        for (uint32_t i = 0; i < sim->plan.page_count; i++)
                fprintf(stderr, "page %u of slot %u: block %u, window page %d\n",
                        sim->plan.pages[i].index, sim->plan.pages[i].slot, sim->plan.pages[i].block,
                        (int)sim->plan.pages[i].window);
        for (uint32_t i = 0; i < sim->plan.copy_count; i++)
                fprintf(stderr, "copy %u to %u, window page %d to %d\n", sim->plan.copies[i].from,
                        sim->plan.copies[i].to, (int)sim->plan.copies[i].window_from,
                        (int)sim->plan.copies[i].window_to);
        each_request(sim, r)
        {
                fprintf(stderr,
                        "%6s: uid %llu class %d served %llu ns; %s slot %d; %u+%u, worst %u, "
                        "promised "
                        "%u (%u), has %u; at %u "
                        "of "
                        "%u, flying %u; preemptions %u, lost %u%s%s%s%s%s%s%s\n",
                        r->name, (unsigned long long)r->uid, (int)r->priority,
                        (unsigned long long)audit_served(sim, r), request_state_name(r->core.state),
                        (int)r->core.sequence.slot, r->core.prompt_count, r->core.max_tokens,
                        r->worst, r->promised, r->core.promised, r->block_count, r->planned,
                        r->known, r->in_flight, r->preemptions, r->core.blocks_lost,
                        r->core.lacks_block ? ", lacks a block" : "",
                        r->core.held_back ? ", held back" : "", r->admitted ? ", admitted" : "",
                        r->core.stalled ? ", stalled" : "", r->decided ? ", decided" : "",
                        r->unready ? ", unready" : "", r->held ? ", held" : "");
        }
}

void sim_fault(struct sim *sim, const char *file, int line, const char *what, const char *format,
               ...)
{
        char text[512];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        if (sim->trace) {
                fputs(sim->trace, stderr);
                tell_state(sim);
        }
        print_error("%s:%d: seed %llu, step %llu, %llu ms: %s\n        (%s)\n", file, line,
                    (unsigned long long)sim->seed, (unsigned long long)sim->step_count,
                    (unsigned long long)(sim->now_ns / SIM_MS), text, what);
        _fail(file, line);
        abort(); /* not reached */
}

static const char *reason_name(const struct plan_end *end)
{
        static const char *const names[] = { "?",         "eos",     "stop", "length",
                                             "cancelled", "stalled", "error" };

        return end->code == SMV_NUMERIC    ? "numeric"
               : end->code == SMV_NO_TOKEN ? "stuck"
               : end->code == SMV_TIMEOUT  ? "late"
                                           : names[end->reason];
}

/* It had a slot before this plan, and has given it up: for good, or because it is preempted. */
static bool is_preempted_now(const struct sim_request *request)
{
        if (!request->admitted || request->decided || request->core.state == REQUEST_PREEMPTING)
                return false;
        return request->core.state == REQUEST_WAITING || request->preempting ||
               request->core.preemptions > request->preemptions;
}

/* A row of its prompt, or of the known tokens of a request that comes back, before it decodes. */
static bool is_read(struct sim *sim, const struct plan_row *row)
{
        const struct sim_request *owner = sim_of(sim, row->sequence->request);

        return !owner->admitted || is_preempted_now(owner) || !owner->moved ||
               row->position < owner->known;
}

static void trace_rows(struct sim *sim)
{
        const struct plan *plan = &sim->plan;

        for (uint32_t i = 0, n; i < plan->row_count; i += n) {
                const struct plan_row *row = &plan->rows[i];
                const struct sim_request *owner = sim_of(sim, row->sequence->request);

                for (n = 1; i + n < plan->row_count && row[n].slot == row->slot; n++)
                        ;
                if (row->position < owner->core.sequence.token_count && is_read(sim, row))
                        print(sim, "; prefill %s %u..%u%s", owner->name, row->position,
                              row->position + n, row[n - 1].want == PLAN_LOGITS ? "*" : "");
                else if (row->from_row == PLAN_TOKEN && n > 1)
                        print(sim, "; decode %s %u+%u", owner->name, row->position, n - 1);
                else if (row->from_row == PLAN_TOKEN)
                        print(sim, "; decode %s %u", owner->name, row->position);
                else
                        print(sim, "; decode %s %u of %u/%u", owner->name, row->position,
                              (unsigned)row->from_plan, row->from_row);
        }
}

static bool leaves(const struct sim_request *request)
{
        return request->core.state == REQUEST_RETIRED || is_preempted_now(request);
}

/* Blocks that no request has any more once these have left. */
static uint32_t count_released(struct sim *sim)
{
        uint32_t drops = 0;

        each_request(sim, r)
        {
                for (uint32_t b = 0; leaves(r) && b < r->block_count; b++)
                        drops += --sim->block_table_count[r->blocks[b]] == 0;
        }
        each_request(sim, r)
        {
                for (uint32_t b = 0; leaves(r) && b < r->block_count; b++)
                        sim->block_table_count[r->blocks[b]]++;
        }
        return drops;
}

/* "preempt a": it is to give up its slot, once its rows are back.  "preempted a": it has. */
static void trace_preemptions(struct sim *sim)
{
        each_request(sim, r)
        {
                if (r->admitted && !r->preempting && r->core.state == REQUEST_PREEMPTING)
                        print(sim, "; preempt %s", r->name);
                else if (is_preempted_now(r))
                        print(sim, "; preempted %s", r->name);
        }
}

static bool is_over(const struct sim_request *request)
{
        return request->core.state == REQUEST_ENDING || request->core.state == REQUEST_RETIRED;
}

/* Requests whose masks, or whose tokens, are not there. */
static void trace_unready(struct sim *sim)
{
        uint32_t unready = 0, held = 0;

        each_request(sim, r)
        {
                unready += r->unready && !is_over(r);
                held += r->held && !is_over(r);
        }
        if (unready)
                print(sim, "; unready %u", unready);
        if (held)
                print(sim, "; held %u", held);
}

/* Requests that are short of blocks, now or some day. */
static void trace_want(struct sim *sim)
{
        uint32_t lack = 0, held_back = 0;

        each_request(sim, r)
        {
                lack += !r->decided && r->core.lacks_block;
                held_back += !r->decided && r->core.held_back;
        }
        if (lack)
                print(sim, "; lack %u", lack);
        if (held_back)
                print(sim, "; hold back %u", held_back);
}

/* Pages of blocks that hold something already. */
static uint32_t count_found(struct sim *sim)
{
        uint32_t found = 0;

        for (uint32_t i = 0; i < sim->plan.page_count; i++) {
                const struct plan_page *page = &sim->plan.pages[i];

                found += audit_page_is_found(sim, page);
        }
        return found;
}

static uint32_t count_fetched(const struct sim *sim)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < sim->plan.move_count; i++)
                count += sim->plan.moves[i].to < sim->conf.blocks;
        return count;
}

/* "[ 10] prefill a 0..64; decode b 10; end c length; retire c; take 2 drop 0" */
void sim_trace(struct sim *sim, uint32_t passed_over)
{
        const struct plan *plan = &sim->plan;
        uint32_t drops = count_released(sim), found = count_found(sim);
        size_t line, begin;

        if (sim->trace_count > sim->trace_max / 2) { /* the older half goes */
                size_t half = sim->trace_count / 2;

                memmove(sim->trace, sim->trace + half, sim->trace_count - half + 1);
                sim->trace_count -= half;
        }
        line = sim->trace_count;
        print(sim, "[%3u]", (unsigned)(sim->now_ns / SIM_MS));
        begin = sim->trace_count;
        trace_rows(sim);
        trace_preemptions(sim);
        if (passed_over)
                print(sim, "; pass over %u", passed_over);
        if (plan->stalled)
                print(sim, "; stalled %u", plan->stalled);
        trace_want(sim);
        trace_unready(sim);
        for (uint32_t i = 0; i < plan->end_count; i++)
                print(sim, "; end %s %s", sim_of(sim, plan->ends[i].request)->name,
                      reason_name(&plan->ends[i]));
        for (uint32_t i = 0; i < plan->retired_count; i++)
                print(sim, "; retire %s", sim_of(sim, plan->retired[i])->name);
        if (plan->page_count || drops)
                print(sim, "; take %u drop %u", plan->page_count - found, drops);
        if (found || plan->copy_count)
                print(sim, "; share %u copy %u", found, plan->copy_count);
        if (plan->move_count)
                print(sim, "; swap out %u in %u", plan->move_count - count_fetched(sim),
                      count_fetched(sim));
        if (!plan->row_count && !sim->flight_count && plan->wake_ns != PLAN_SLEEP)
                print(sim, "; sleep until %u", (unsigned)(plan->wake_ns / SIM_MS));

        if (sim->trace_count == begin ||
            (!plan->row_count && !strcmp(sim->trace + begin, sim->idle))) {
                sim->trace_count = line; /* nothing to tell, or nothing new */
                sim->trace[line] = 0;
        } else {
                snprintf(sim->idle, sizeof(sim->idle), "%s",
                         plan->row_count ? "" : sim->trace + begin);
                sim->trace[begin] = ' ';
                memmove(sim->trace + begin + 1, sim->trace + begin + 2,
                        sim->trace_count - begin - 1);
                sim->trace[sim->trace_count - 1] = '\n';
                sim->trace[sim->trace_count] = 0;
        }
}

void sim_expect(struct sim *sim, const char *text)
{
        bool same = !strcmp(sim->trace, text);

        if (!same)
                fprintf(stderr, "expected:\n%s\nand it was:\n%s", text, sim->trace);
        assert_true(same);
        sim->trace_count = 0;
        sim->trace[0] = 0;
}
