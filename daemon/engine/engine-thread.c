#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/pool-map.h"
#include "daemon/engine/engine-state.h"
#include "daemon/engine/model.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "daemon/text/tokenizer.h"

#define MASK_LOOK_NS UINT64_C(100000) /* with nothing else to do: looks for masks so often */

/*
 * A reader's head is impossible: nothing more is written, the channel's requests end, and the loop
 * hangs up.
 */
static void shut_channel(struct engine *engine, struct channel *channel)
{
        channel->shut = true;
        channel_raise(&channel->broken);
        publish_call_loop(engine->publish, channel);
        engine_cancel_all(engine, channel, SMV_END_CANCELLED, SMV_OK);
}

static void report_free_bytes(struct engine *engine)
{
        for (uint32_t i = 0; i < engine->active_count; i++) {
                struct channel *channel = engine->active[i];
                /* for a shut channel: records that are never written always fit */
                uint64_t free_bytes = UINT64_MAX / 2;

                if (!channel->shut && publish_free_bytes(channel, &free_bytes))
                        shut_channel(engine, channel);
                engine_note(engine, &(struct sched_event){ .kind = SCHED_SPACE,
                                                           .channel = channel->number,
                                                           .free_bytes = free_bytes });
        }
}

/*
 * Moves the average by an eighth towards this request's time in its slot.  The loop uses it to
 * estimate when others get a slot.  The time that a client takes for its answers says nothing about
 * them.
 */
static void learn_slot_time(const struct engine *engine, const struct request *request)
{
        counter *slot_ns = &engine->conf.stats->slot_ns;
        uint64_t known = counter_get(slot_ns), seen;

        if (!request->first_row_ns || request->asking)
                return;
        seen = engine_now(engine) - request->first_row_ns;
        counter_set(slot_ns, known ? known - known / 8 + seen / 8 : seen);
}

static void retire(struct engine *engine, struct request *request)
{
        struct channel *channel = request->channel;
        uint32_t at = 0;

        questions_forget(engine->questions, request);
        drafts_forget(engine->drafts, request);
        learn_slot_time(engine, request);
        timings_end(engine->conf.stats, request, engine_now(engine));
        engine->requests[request->number] = NULL;
        channel->retired++;
        engine_post_retired(engine, request);
        if (--channel->live_count)
                return;
        while (engine->active[at] != channel)
                at++;
        engine->active[at] = engine->active[--engine->active_count];
        if (channel->hung_up)
                engine->gone[engine->gone_count++] = channel;
}

/*
 * Writes the ENDs of requests that the scheduler has released.  A client that reads an END finds
 * everything free that the request had.  ENDs without ring space stay, in order.
 */
static void write_ends(struct engine *engine)
{
        uint32_t left = 0;

        for (uint32_t i = 0; i < engine->end_count; i++)
                channel_lower(&engine->ends[i].request->channel->end_blocked);
        for (uint32_t i = 0; i < engine->end_count; i++) {
                const struct plan_end end = engine->ends[i];
                struct channel *channel = end.request->channel;
                uint64_t pending_bytes = sched_pending_bytes(engine->sched, channel->number);
                bool freed = end.request->state == REQUEST_RETIRED &&
                             masks_is_idle(engine->masks, end.request);

                if (freed && !publish_end(engine->publish, end.request, end.reason, end.code,
                                          pending_bytes)) {
                        /* The tokens of a row that is not finite may be wrong. */
                        if (end.code != SMV_NUMERIC)
                                drafts_keep(engine->drafts, end.request);
                        retire(engine, end.request);
                        continue;
                }
                if (freed)
                        channel_raise(&channel->end_blocked);
                engine->ends[left++] = end;
        }
        engine->end_count = left;
}

/* Tokens that were drawn since the last flush have become visible now, and their readers know. */
static void note_delivery(struct engine *engine)
{
        uint32_t count = engine->drawn_count;

        if (!count)
                return;
        histogram_add_many(&engine->conf.stats->delivery, engine_now(engine) - engine->drawn_ns,
                           count);
        engine->drawn_count = 0;
}

/*
 * Handles the plan's ENDs; then makes everything written so far visible.  The request's own state
 * says which of the ENDs are retired.
 */
static void finish_plan(struct engine *engine)
{
        const struct plan *plan = &engine->plan;

        for (uint32_t i = 0; i < plan->end_count; i++) {
                assert(engine->end_count < engine->conf.sched.requests_max);
                engine->ends[engine->end_count++] = plan->ends[i];
                if (plan->ends[i].code == SMV_NUMERIC)
                        counter_add(&engine->conf.stats->numeric_faults, 1);
        }
        counter_add(&engine->conf.stats->streams_ended, plan->end_count);

        write_ends(engine);
        publish_flush(engine->publish);
        note_delivery(engine);

        for (uint32_t i = 0; i < engine->gone_count; i++)
                engine_post(engine, MAIL_CHANNEL_GONE, engine->gone[i], 0);
        engine->gone_count = 0;
}

/* What waiting requests wait for. */
static void update_waits(struct stats *stats, const uint32_t waits[REQUEST_WAIT_N])
{
        counter_set(&stats->waits_turn, waits[REQUEST_WAITS_FOR_TURN]);
        counter_set(&stats->waits_slot, waits[REQUEST_WAITS_FOR_SLOT]);
        counter_set(&stats->waits_windows, waits[REQUEST_WAITS_FOR_WINDOWS]);
        counter_set(&stats->waits_blocks, waits[REQUEST_WAITS_FOR_BLOCKS]);
        counter_set(&stats->waits_forecast, waits[REQUEST_WAITS_FOR_FORECAST]);
        counter_set(&stats->waits_share, waits[REQUEST_WAITS_FOR_SHARE]);
        counter_set(&stats->waits_prefix, waits[REQUEST_WAITS_FOR_PREFIX]);
        counter_set(&stats->waits_reader, waits[REQUEST_WAITS_FOR_READER]);
}

static void update_stats(struct engine *engine)
{
        struct stats *stats = engine->conf.stats;
        struct sched_counts counts;

        sched_count(engine->sched, &counts);
        counter_set(&stats->blocks_total, counts.blocks_total);
        counter_set(&stats->blocks_free, counts.blocks_free);
        counter_set(&stats->blocks_cached, counts.blocks_cached);
        counter_set(&stats->blocks_in_use, counts.blocks_in_use);
        counter_set(&stats->blocks_reserved, counts.blocks_reserved);
        counter_set(&stats->blocks_shared, counts.blocks_shared);
        counter_set(&stats->blocks_evicted, counts.evictions);
        counter_set(&stats->blocks_copied, counts.copies);
        counter_set(&stats->windows_total, counts.windows_total);
        counter_set(&stats->windows_free, counts.windows_free);
        counter_set(&stats->windows_cached, counts.windows_cached);
        counter_set(&stats->window_evictions, counts.window_evictions);
        counter_set(&stats->swap_total, counts.swap_total);
        counter_set(&stats->swap_used, counts.swap_used);
        counter_set(&stats->swapped_out, counts.swapped_out);
        counter_set(&stats->swapped_in, counts.swapped_in);
        counter_set(&stats->restored, counts.restored);
        counter_set(&stats->waiting, counts.waiting);
        counter_set(&stats->running, counts.running);
        counter_set(&stats->stalled, counts.stalled);
        counter_set(&stats->passed_over, counts.passed_over);
        counter_set(&stats->submitted, counts.submitted);
        counter_set(&stats->stalls, counts.stalls);
        update_waits(stats, counts.waits);
        counter_set(&stats->preemptions, counts.preemptions);
        counter_set(&stats->blocks_lost, counts.blocks_lost);
        counter_set(&stats->recomputed, counts.recomputed);
        counter_set(&stats->trust, counts.trust);
        counter_set(&stats->prompt_row_ns, counts.prompt_row_ns);
        counter_set(&stats->prompt_far_ns, counts.prompt_far_ns);
        counter_set(&stats->ending, counts.ending);
        counter_set(&stats->ends_unsent, engine->end_count);
        counter_set(&stats->channels_open, engine->active_count);
}

/* At most every USAGE_SNAPSHOT_NS while steps run, but always before the engine sleeps. */
static void write_usage_snapshot(struct engine *engine)
{
        struct usage_snapshot *usage_snapshot = engine->conf.usage_snapshot;
        bool is_idle = !engine->plan.row_count && engine->launched == engine->collected;
        uint64_t now = engine_now(engine);
        uint32_t count;

        if (!is_idle && now - engine->usage_snapshot_ns < USAGE_SNAPSHOT_NS)
                return;
        engine->usage_snapshot_ns = now;
        count = sched_users(engine->sched, engine->users, usage_snapshot_capacity(usage_snapshot));
        usage_snapshot_begin(usage_snapshot);
        for (uint32_t i = 0; i < count; i++)
                usage_snapshot_put(usage_snapshot,
                                   &(struct usage_row){ .uid = engine->users[i].uid,
                                                        .blocks = engine->users[i].blocks,
                                                        .cached = engine->users[i].cached,
                                                        .running = engine->users[i].running,
                                                        .waiting = engine->users[i].waiting });
        usage_snapshot_end(usage_snapshot);
}

/* Fills a part of the map that the loop wants.  True: more of it is to be filled. */
static bool map_pool(struct engine *engine)
{
        struct pool_map *map = engine->pool_map;

        if (!map)
                return false;
        if (!sched_map(engine->sched, map))
                return true;
        engine->pool_map = NULL;
        engine_post(engine, MAIL_POOL_MAPPED, map, 0);
        return false;
}

static void launch(struct engine *engine)
{
        const struct plan *plan = &engine->plan;
        struct batch *batch = engine_batch(engine, plan->number);
        uint64_t now = engine_now(engine);
        uint32_t prompt_rows = 0;
        int r;

        for (uint32_t i = 0; i < plan->row_count; i++) {
                struct request *request = plan->rows[i].sequence->request;

                timings_row(engine->conf.stats, request, now);
                drafts_rows(engine->drafts, request, plan->number);
                prompt_rows += plan->rows[i].position < request->prompt_count;
        }
        counter_add(&engine->conf.stats->steps, 1);
        counter_add(&engine->conf.stats->rows, plan->row_count);
        step_histogram_add(&engine->conf.stats->step_rows, plan->row_count);
        counter_add(&engine->conf.stats->tokens_in, prompt_rows);
        rate_add(&engine->conf.stats->tokens_in_rate, now, prompt_rows);

        if (engine->launched == engine->collected) {
                engine->busy_from_ns = now;
                (void)drafts_model_ns(engine->drafts);
        }
        batch_build(batch, plan);
        if (engine->draft_model)
                draft_model_follow(engine->draft_model, &batch->step);
        engine->launched = plan->number;
        r = model_forward(engine->conf.served->model, &batch->step);
        if (r)
                engine_fail(engine, error_pass(r));
}

/*
 * Before sleeping: tells every reader that the engine waits for it.  True if a reader has read on
 * meanwhile.
 */
static bool declare_stalls(struct engine *engine)
{
        bool moved = false;

        for (uint32_t i = 0; i < engine->active_count; i++) {
                struct channel *channel = engine->active[i];

                if ((!channel_is_up(&channel->stalled) || channel->asking) && !channel->shut)
                        moved |= !channel_stall(channel);
        }
        return moved;
}

/*
 * Before sleeping, as long as somebody is waited for: the readers that have to read on, and the
 * clients that have to answer, are told that the engine sleeps.  True: one of them has done it.
 */
static bool may_not_sleep(struct engine *engine)
{
        bool moved = (engine->plan.stalled || engine->end_count) && declare_stalls(engine);

        return moved || questions_await(engine->questions);
}

/* When to look again if no mail comes. */
static uint64_t wake_ns(const struct engine *engine)
{
        uint64_t until = questions_until(engine->questions);
        uint64_t wake = masks_are_open(engine->masks) ? engine_now(engine) + MASK_LOOK_NS
                                                      : engine->plan.wake_ns;

        return wake < until ? wake : until;
}

/* One turn.  Returns the time until which there is nothing to do; 0: there is more to do now. */
static uint64_t turn(struct engine *engine)
{
        const struct plan *plan = &engine->plan;
        uint64_t in_flight;
        bool mapping;

        /* Tokens that are heard write records, which the free bytes must not count as free. */
        engine_hear(engine);
        report_free_bytes(engine);
        drafts_offer(engine->drafts, engine->sched, engine->collected, engine_now(engine));
        sched_next(engine->sched, engine_now(engine), &engine->plan);
        finish_plan(engine);
        update_stats(engine);
        write_usage_snapshot(engine);

        assert(plan->row_count || (!plan->move_count && !plan->copy_count));
        if (plan->row_count)
                launch(engine);
        mapping = map_pool(engine);

        in_flight = engine->launched - engine->collected;
        if (in_flight && (in_flight == engine->conf.sched.depth || !plan->row_count)) {
                engine_collect(engine);
                return 0;
        }
        return in_flight || mapping || may_not_sleep(engine) ? 0 : wake_ns(engine);
}

/* While the weights are read: no request starts, but a cancelled or hung-up one gets its END. */
static bool while_loading(void *arg)
{
        struct engine *engine = arg;

        engine_take_mail(engine, 0);
        if (engine->stopped)
                return false;
        (void)turn(engine);
        return true;
}

static void load(struct engine *engine)
{
        int r = 0;

        engine_note(engine, &(struct sched_event){ .kind = SCHED_PAUSE });
        if (engine->conf.draft_model)
                r = loading_run_first(&engine->conf.loading, engine->conf.draft_model,
                                      while_loading, engine);
        if (!r)
                r = loading_run(&engine->conf.loading, engine->conf.served->model,
                                engine->conf.stats, while_loading, engine);
        if (r && !engine->stopped)
                engine_fail(engine, error_pass(r));
        engine_note(engine, &(struct sched_event){ .kind = SCHED_RESUME });
}

/*
 * Time in which there is nothing to run: backs a part of the pool's memory.  False: all of it is
 * backed.  A daemon that is always busy backs it by using it.
 */
static bool use_idle_time(struct engine *engine)
{
        if (engine->pool_is_backed || engine->failed)
                return false;
        if (model_back_pool(engine->conf.served->model) ||
            (engine->conf.draft_model && model_back_pool(engine->conf.draft_model)))
                return true;
        engine->pool_is_backed = true;
        log_debug("pool_backed");
        return false;
}

static void *engine_main(void *arg)
{
        struct engine *engine = arg;
        uint64_t sleep_until = 0;

        load(engine);
        while (!engine->stopped) {
                engine_take_mail(engine, sleep_until);
                if (!engine->stopped)
                        sleep_until = turn(engine);
                if (sleep_until && use_idle_time(engine))
                        sleep_until = 0;
        }
        engine_post(engine, MAIL_STOPPED, NULL, 0);
        return NULL;
}

static struct engine *engine_free(struct engine *engine)
{
        for (uint32_t i = 0; i < DEPTH_MAX; i++)
                batch_deinit(&engine->batches[i]);
        plan_deinit(&engine->plan);
        publish_free(engine->publish);
        masks_join(engine->masks);
        questions_free(engine->questions);
        drafts_free(engine->drafts);
        draft_model_free(engine->draft_model);
        sched_free(engine->sched);
        free(engine->tokens);
        free(engine->requests);
        free(engine->active);
        free(engine->gone);
        free(engine->ends);
        free(engine->users);
        free(engine);
        return NULL;
}

static int make_drafts(struct engine *engine, const struct engine_conf *conf)
{
        const struct draft_model_conf model = { .model = conf->draft_model,
                                                .sched = &conf->sched,
                                                .context = conf->draft_context,
                                                .vocab = conf->served->traits.vocab,
                                                .own_vocab = conf->draft_vocab };
        int r = 0;

        if (conf->draft_model)
                r = draft_model_new(&model, &engine->draft_model);
        if (!r)
                r = drafts_new(&(struct drafts_conf){ .sched = &conf->sched,
                                                      .stats = conf->stats,
                                                      .pool = conf->draft_pool,
                                                      .always = conf->always_draft,
                                                      .model = engine->draft_model,
                                                      .clock_ns = conf->clock_ns },
                               &engine->drafts);
        return error_pass(r);
}

static int engine_init(struct engine *engine, const struct engine_conf *conf)
{
        const struct publish_conf publish_conf = {
                .requests_max = conf->sched.requests_max,
                .channels = conf->sched.channels,
                .piece_max = tokenizer_piece_max(conf->served->tokenizer),
                .dialect = conf->served->dialect,
                .waker = conf->waker,
                .wake_inline = conf->wake_inline,
        };
        int r;

        engine->conf = *conf;
        engine->pool_is_backed = conf->leave_pool;
        r = sched_new(&conf->sched, &engine->sched);
        if (!r)
                r = plan_init(&engine->plan, &conf->sched);
        if (!r)
                r = publish_new(&publish_conf, &engine->publish);
        if (!r)
                r = masks_start(conf->sched.requests_max, &engine->masks);
        if (!r)
                r = questions_new(conf->sched.requests_max, &engine->questions);
        if (!r)
                r = make_drafts(engine, conf);
        for (uint32_t i = 0; !r && i < conf->sched.depth; i++)
                r = batch_init(&engine->batches[i], &conf->sched, conf->served->traits.vocab);
        if (r)
                return error_pass(r);

        engine->tokens = calloc(conf->sched.rows, sizeof(*engine->tokens));
        engine->requests = calloc(conf->sched.requests_max, sizeof(struct request *));
        engine->active = calloc(conf->sched.channels, sizeof(struct channel *));
        engine->gone = calloc(conf->sched.channels, sizeof(struct channel *));
        engine->ends = calloc(conf->sched.requests_max, sizeof(*engine->ends));
        engine->users =
                calloc(usage_snapshot_capacity(conf->usage_snapshot), sizeof(*engine->users));
        if (!engine->tokens || !engine->requests || !engine->active || !engine->gone ||
            !engine->ends || !engine->users)
                return error_raise(-ENOMEM);
        update_stats(engine);
        return 0;
}

int engine_start(const struct engine_conf *conf, struct engine **ret_engine)
{
        struct engine *engine = calloc(1, sizeof(*engine));
        int r;

        assert(conf->sched.depth >= 1 && conf->sched.depth <= DEPTH_MAX);
        if (!engine)
                return error_raise(-ENOMEM);
        r = engine_init(engine, conf);
        if (!r)
                r = sys_thread(&engine->thread, "smv-engine", engine_main, engine);
        if (r) {
                engine_free(engine);
                return error_pass(r);
        }
        *ret_engine = engine;
        return 0;
}

struct engine *engine_join(struct engine *engine)
{
        if (!engine)
                return NULL;
        pthread_join(engine->thread, NULL);
        return engine_free(engine);
}
