#include "tests/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/count-alloc.h"

void *sim_need(size_t count, size_t size)
{
        void *bytes = calloc(count ? count : 1, size);

        assert_non_null(bytes);
        return bytes;
}

void sim_open(struct sim *sim, const struct sched_conf *conf, uint64_t seed, bool trace)
{
        uint32_t places = conf->blocks + conf->prefix.swap_blocks;
        static bool counting;
        unsigned long allocs;

        *sim = (struct sim){ .conf = *conf, .seed = seed, .random = sim_mix(seed) };
        assert_true(conf->depth <= SIM_DEPTH && conf->channels <= SIM_CHANNELS);
        assert_true(conf->requests_max <= SIM_REQUESTS);
        if (!counting)
                count_allocs();
        counting = true;
        allocs = alloc_count;
        assert_int_equal(sched_new(conf, &sim->sched), 0);
        assert_true(alloc_count > allocs); /* otherwise the counter does not work */
        assert_int_equal(plan_init(&sim->plan, conf), 0);
        assert_int_equal(forecast_init(&sim->forecast, conf->slots + 1,
                                       conf->preempt_target * (FORECAST_ONE / 1000)),
                         0);

        sim->step_ns = 10 * SIM_MS;
        sim->table_blocks = blocks_for(conf->context);
        sim->requests = sim_need(conf->requests_max, sizeof(*sim->requests));
        for (uint32_t i = 0; i < conf->requests_max; i++) {
                sim->requests[i].truth = sim_need(conf->context, sizeof(uint32_t));
                sim->requests[i].chain = sim_need(conf->context, sizeof(uint64_t));
                sim->requests[i].blocks = sim_need(sim->table_blocks, sizeof(block_t));
                sim->requests[i].windows = sim_need(sim->table_blocks, sizeof(uint32_t));
        }
        for (uint32_t i = 0; i < SIM_DEPTH; i++) {
                sim->flights[i].rows = sim_need(conf->rows, sizeof(struct sim_row));
                sim->flights[i].sources = sim_need(conf->slots, sizeof(block_t));
        }
        for (uint32_t i = 0; i < conf->channels; i++)
                sim->channels[i] = (struct sim_channel){ .capacity = 1000, .speed = SIM_FAST };
        sim->tables = sim_need((size_t)conf->slots * sim->table_blocks, sizeof(block_t));
        sim->cells = sim_need((size_t)places * BLOCK_POSITIONS, sizeof(uint64_t));
        sim->window_tables = sim_need((size_t)conf->slots * sim->table_blocks, sizeof(uint32_t));
        sim->window_cells =
                sim_need((size_t)conf->prefix.window_pages * BLOCK_POSITIONS, sizeof(uint64_t));
        sim->block_window = sim_need(conf->blocks, sizeof(uint32_t));
        sim->windows = sim_need(conf->prefix.window_pages, sizeof(struct sim_window));
        sim->windows_free = conf->prefix.window_pages;
        sim->block_table_count = sim_need(places, sizeof(uint32_t));
        sim->block_invalid = sim_need(places, sizeof(uint64_t));
        sim->block_copied = sim_need(places, sizeof(uint64_t));
        sim->block_shown = sim_need(places, sizeof(uint64_t));
        sim->contents = sim_need(places, sizeof(struct sim_content));
        sim->lines = sim_need((size_t)places * sim->table_blocks, sizeof(uint64_t));
        sim->soonest_ns = SIM_NEVER;
        sim->block_domain = sim_need(places, sizeof(uint64_t));
        memset(sim->block_domain, 0xff, places * sizeof(uint64_t)); /* SIM_NO_DOMAIN */
        sim->queue_domain = sim_need(conf->blocks, sizeof(uint64_t));
        sim->was_cached = sim_need(conf->blocks, sizeof(bool));
        sim->block_refs = sim_need(conf->blocks, sizeof(uint32_t));
        sim->user_refs = sim_need(conf->blocks, sizeof(uint32_t));
        sim->users = sim_need(conf->blocks + conf->requests_max, sizeof(struct sched_user));
        for (uint32_t i = 0; i < SIM_PUBLISHED_MAX; i++)
                sim->published[i].chain = sim_need(conf->context, sizeof(uint64_t));
        sim->beginnings = sim_need(SIM_BEGINNINGS / 64, sizeof(uint64_t));
        sim->said = sim_need(SIM_BEGINNINGS / 64, sizeof(uint64_t));
        sim->slot_owner = sim_need(conf->slots, sizeof(struct sim_request *));
        if (trace) {
                sim->trace_max = 64 * 1024;
                sim->trace = sim_need(sim->trace_max, 1);
        }
}

static uint32_t or_else(uint32_t asked, uint32_t otherwise)
{
        return asked ? asked : otherwise;
}

void sim_open_small(struct sim *sim, const struct sched_conf *conf)
{
        const struct sched_conf all = {
                .blocks = or_else(conf->blocks, 64),
                .user_blocks = conf->user_blocks,
                .slots = or_else(conf->slots, 4),
                .rows = or_else(conf->rows, 16),
                .context = 256,
                .depth = or_else(conf->depth, 1),
                .drafts = conf->drafts,
                .requests_max = or_else(conf->requests_max, 8),
                .channels = 2,
                .stall_timeout_ns = conf->stall_timeout_ns ? conf->stall_timeout_ns : 50 * SIM_MS,
                .stall_preempt_ns = conf->stall_preempt_ns,
                .preemptions_max = conf->preemptions_max,
                .learned = { conf->learned[0], conf->learned[1], conf->learned[2] },
                .preempt_target = conf->preempt_target,
                .reserve_max = conf->reserve_max,
                .lead_ns = conf->lead_ns ? conf->lead_ns : 1000 * SIM_MS,
                .promote_ns = conf->promote_ns,
                .token_gap_ns = conf->token_gap_ns,
                .batch_size = conf->batch_size,
                .batch_window_ns = conf->batch_window_ns,
                .prefix.pins = 2,
                .prefix.cached_max = conf->prefix.cached_max,
                .prefix.swap_blocks = conf->prefix.swap_blocks,
                .prefix.swap_max = conf->prefix.swap_max,
                .prefix.window = conf->prefix.window,
                .prefix.window_pages = conf->prefix.window_pages,
                .prefix.windows_max = conf->prefix.windows_max,
                .swap_copy_ns = conf->swap_copy_ns,
        };

        sim_open(sim, &all, 1, true);
}

void sim_close(struct sim *sim)
{
        struct sched_counts counts;

        sim_must(sim, sim_alive(sim) == 0 && sim->flight_count == 0, "not everything has ended");
        sched_count(sim->sched, &counts);
        sim_must(sim,
                 counts.blocks_free + counts.blocks_cached == sim->conf.blocks &&
                         counts.windows_free + counts.windows_cached == counts.windows_total &&
                         !counts.blocks_in_use && !counts.blocks_reserved && !counts.waiting &&
                         !counts.running && !counts.stalled && !counts.ending &&
                         !counts.passed_over && !counts.plans_in_flight,
                 "all is over, and not everything is free");
        sched_check(sim->sched);
        sim_free(sim);
}

void sim_free(struct sim *sim)
{
        if (!sim->sched)
                return;
        for (uint32_t i = 0; i < sim->conf.requests_max; i++) {
                free(sim->requests[i].truth);
                free(sim->requests[i].chain);
                free(sim->requests[i].blocks);
                free(sim->requests[i].windows);
                if (sim->requests[i].alive)
                        free(sim->requests[i].core.sequence.tokens);
        }
        for (uint32_t i = 0; i < SIM_DEPTH; i++) {
                free(sim->flights[i].rows);
                free(sim->flights[i].sources);
        }
        free(sim->requests);
        free(sim->tables);
        free(sim->cells);
        free(sim->window_tables);
        free(sim->window_cells);
        free(sim->windows);
        free(sim->block_window);
        free(sim->block_table_count);
        free(sim->block_invalid);
        free(sim->block_copied);
        free(sim->block_shown);
        free(sim->contents);
        free(sim->lines);
        free(sim->block_domain);
        free(sim->was_cached);
        free(sim->queue_domain);
        free(sim->block_refs);
        free(sim->user_refs);
        free(sim->users);
        for (uint32_t i = 0; i < SIM_PUBLISHED_MAX; i++)
                free(sim->published[i].chain);
        free(sim->beginnings);
        free(sim->said);
        free(sim->slot_owner);
        free(sim->trace);
        plan_deinit(&sim->plan);
        forecast_deinit(&sim->forecast);
        sim->sched = sched_free(sim->sched);
}

/* After every step everything is checked; after an event only where time does not matter. */
void sim_note(struct sim *sim, const struct sched_event *event)
{
        unsigned long allocs = alloc_count;

        sched_note(sim->sched, event, sim->now_ns);
        sim_must(sim, alloc_count == allocs, "an event allocates");
        if (event->kind != SCHED_SPACE && (sim->trace || sim->event_count++ % 4 == 0))
                sched_check(sim->sched);
}

void sim_cancel(struct sim *sim, struct sim_request *request)
{
        bool decided = request->decided;

        sim_note(sim, &(struct sched_event){ .kind = SCHED_CANCEL,
                                             .request = &request->core,
                                             .reason = SMV_END_CANCELLED,
                                             .code = SMV_OK });
        if (!decided)
                audit_decide(sim, request, SMV_END_CANCELLED, SMV_OK);
}

void sim_pause(struct sim *sim, bool held)
{
        sim->held = held;
        sim_note(sim, &(struct sched_event){ .kind = held ? SCHED_PAUSE : SCHED_RESUME });
}

void sim_unpin(struct sim *sim, uint32_t pin)
{
        sim_note(sim, &(struct sched_event){ .kind = SCHED_UNPIN, .pin = pin });
        audit_unpin(sim, pin);
}

/* Simulates a reader's progress up to now, at the speed that it has had so far. */
static void read_on(struct sim *sim, struct sim_channel *channel)
{
        uint64_t ms = (sim->now_ns - channel->read_ns) / SIM_MS;

        if (channel->speed == SIM_FAST || (ms && channel->speed > channel->used / ms))
                channel->used = 0;
        else
                channel->used -= channel->speed * ms;
        channel->read_ns =
                channel->speed == SIM_FAST ? sim->now_ns : channel->read_ns + ms * SIM_MS;
}

void sim_speed(struct sim *sim, uint32_t channel, uint64_t bytes_per_ms)
{
        read_on(sim, &sim->channels[channel]);
        sim->channels[channel].speed = bytes_per_ms;
        sim->channels[channel].read_ns = sim->now_ns;
}

static void tell_rooms(struct sim *sim)
{
        for (uint32_t i = 0; i < sim->conf.channels; i++) {
                struct sim_channel *channel = &sim->channels[i];

                read_on(sim, channel);
                channel->told = channel->capacity - channel->used;
                sim_note(sim, &(struct sched_event){ .kind = SCHED_SPACE,
                                                     .channel = i,
                                                     .free_bytes = channel->told });
        }
}

/*
 * The core must not use it any longer, so its memory is overwritten to expose later uses.  Only its
 * mask and its token may still come before.
 */
static void forget(struct sim *sim, struct sim_request *request)
{
        if (request->unready)
                sim_note(sim,
                         &(struct sched_event){ .kind = SCHED_READY, .request = &request->core });
        audit_forget_token(sim, request);
        free(request->core.sequence.tokens);
        memset(&request->core, 0xa5, sizeof(request->core));
}

static void digest(struct sim *sim)
{
        const struct plan *plan = &sim->plan;
        uint64_t sum = sim_mix(sim->digest ^ plan->number) + plan->end_count;

        for (uint32_t i = 0; i < plan->row_count; i++)
                sum = sim_mix(sum ^ ((uint64_t)plan->rows[i].slot << 32 | plan->rows[i].position));
        for (uint32_t i = 0; i < plan->end_count; i++)
                sum = sim_mix(sum ^ plan->ends[i].reason ^ plan->ends[i].request->number << 8);
        sim->digest = sum;
}

void sim_step(struct sim *sim)
{
        struct sched_counts counts;
        unsigned long allocs;

        audit_tell_tokens(sim);
        tell_rooms(sim);
        audit_tell_masks(sim);
        sim_draft_all(sim);
        audit_before(sim);
        audit_drafts_before(sim);
        allocs = alloc_count;
        sched_next(sim->sched, sim->now_ns, &sim->plan);
        sim_must(sim, alloc_count == allocs, "a plan allocates");
        sim->step_count++;
        digest(sim);
        sched_count(sim->sched, &counts);
        if (sim->trace)
                sim_trace(sim, counts.passed_over);
        audit_plan(sim);
        sched_check(sim->sched);
        for (uint32_t i = 0; i < sim->plan.retired_count; i++)
                forget(sim, sim_of(sim, sim->plan.retired[i]));
        if (sim->plan.row_count)
                sim_launch(sim);
}

/* Whether the engine checks any request's reader for space; preempted requests are among them. */
static bool anybody_is_stalled(const struct sim *sim)
{
        each_request(sim, r)
        {
                if (!r->decided && r->core.stalled)
                        return true;
        }
        return sim->plan.stalled > 0;
}

uint32_t sim_write(struct sim *sim, const struct sim_request *request, uint32_t bytes)
{
        struct sim_channel *channel = &sim->channels[request->channel];

        if (sim->ragged && sim_below(sim, 2))
                bytes = sim_below(sim, bytes + 1);
        sim_must(sim, bytes <= channel->capacity - channel->used,
                 "a token of %s is computed and has no space", request->name);
        channel->used += bytes;
        return bytes;
}

enum sched_verdict sim_verdict(const struct sim_request *request, uint32_t number)
{
        return number == request->end_at ? request->verdict : SCHED_CONTINUE;
}

/* Its token comes from outside, unless the row has none; now and then it is there at once. */
static bool comes_later(struct sim *sim, const struct sim_request *owner,
                        enum sched_verdict verdict)
{
        return owner->outside && !sched_has_no_token(verdict) &&
               (!sim->ragged || sim_below(sim, 8));
}

/*
 * One token: its record goes into the ring, for which there must be space; then the scheduler
 * gets the result.  Returns whether it was told: results of a request that is over may be missing.
 */
static bool tell_result(struct sim *sim, struct sim_flight *flight, uint32_t row,
                        enum sched_verdict *ret_verdict)
{
        struct sim_row *result = &flight->rows[row];
        struct sim_request *owner = result->owner;
        enum sched_verdict verdict =
                sim_verdict(owner, result->position + 2 - owner->core.prompt_count);
        bool decided = owner->decided;

        result->pending = false;
        if (decided && sim->ragged) {
                if (sim_below(sim, 2))
                        return false;
                verdict = (enum sched_verdict)sim_below(
                        sim, (owner->outside ? SCHED_LATER : SCHED_STUCK) + 1);
        } else if (comes_later(sim, owner, verdict)) {
                verdict = SCHED_LATER;
                if (!decided)
                        sim_write(sim, owner, (uint32_t)owner->core.asked_bytes_max);
        }
        if (!decided && !sched_has_no_token(verdict))
                sim_write(sim, owner, (uint32_t)owner->core.record_bytes_max);
        *ret_verdict = verdict;
        if (!decided && result->drafted) {
                owner->planned++;
                sim->confirmed++;
                sim->runs_cut += verdict != SCHED_CONTINUE;
        }
        sim_note(sim, &(struct sched_event){ .kind = SCHED_RESULT,
                                             .plan = flight->number,
                                             .row = row,
                                             .token = result->result,
                                             .verdict = verdict });
        if (!decided && verdict == SCHED_LATER)
                audit_hold(sim, owner, result->result);
        else
                audit_result(sim, owner, result->result, verdict);
        return true;
}

void sim_collect(struct sim *sim)
{
        struct sim_flight *flight = &sim->flights[0], done;

        assert_true(sim->flight_count > 0);
        for (uint32_t i = 0; i < flight->row_count; i++) {
                enum sched_verdict verdict = SCHED_CONTINUE;
                uint32_t channel = flight->rows[i].owner->channel;
                bool told;

                if (!flight->rows[i].pending)
                        continue;
                told = tell_result(sim, flight, i, &verdict);
                sim_end_run(sim, flight, i, told, verdict);
                audit_pending_bytes(sim, channel);
                if (sim->between)
                        sim->between(sim);
        }
        sim_note(sim, &(struct sched_event){ .kind = SCHED_DONE, .plan = flight->number });
        audit_charge(sim, flight);

        for (uint32_t i = 0; i < flight->row_count; i++)
                flight->rows[i].owner->in_flight--;
        done = sim->flights[0];
        memmove(sim->flights, sim->flights + 1, (SIM_DEPTH - 1) * sizeof(done));
        sim->flights[SIM_DEPTH - 1] = done;
        sim->flight_count--;
}

void sim_turn(struct sim *sim, uint64_t until_ns)
{
        uint32_t rows;

        sim_step(sim);
        rows = sim->plan.row_count;
        if (sim->flight_count && (sim->flight_count == sim->conf.depth || !rows)) {
                if (sim->now_ns < sim->flights[0].done_ns)
                        sim->now_ns = sim->flights[0].done_ns;
                sim_collect(sim);
        } else if (!sim->flight_count) {
                uint64_t wake = sim->plan.wake_ns < until_ns ? sim->plan.wake_ns : until_ns;
                uint64_t mask_ns = audit_next_mask_ns(sim);
                uint64_t token_ns = audit_next_token_ns(sim);

                wake = mask_ns < wake ? mask_ns : wake;
                wake = token_ns < wake ? token_ns : wake;
                /* A reader that reads on after a stall wakes the engine; it looks each ms. */
                for (uint32_t i = 0; i < sim->conf.channels; i++)
                        if (anybody_is_stalled(sim) && sim->channels[i].used &&
                            sim->channels[i].speed && wake > sim->now_ns + SIM_MS)
                                wake = sim->now_ns + SIM_MS;
                if (wake > sim->now_ns)
                        sim->now_ns = wake;
        }
}

void sim_run(struct sim *sim, uint64_t until_ms)
{
        while (sim->now_ns < until_ms * SIM_MS)
                sim_turn(sim, until_ms * SIM_MS);
}

uint32_t sim_alive(const struct sim *sim)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < sim->conf.requests_max; i++)
                count += sim->requests[i].alive;
        return count;
}
