/*
 * The memory plan: where the layers are, how many blocks there are, and what follows from that.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "daemon/error.h"
#include "daemon/opening.h"
#include "daemon/pool.h"
#include "daemon/sys.h"
#include "daemon/why.h"
#include "kernels/cpu/allowance.h"

#define MS UINT64_C(1000000) /* in ns */

static uint32_t batch_size(const struct config *config)
{
        if (config->batching == BATCHING_CONTINUOUS)
                return 0;
        return config->batch_size ? config->batch_size : config->max_seqs;
}

/* Dynamic and static batches differ only in how long they wait for more requests. */
static uint32_t window_ms(const struct config *config)
{
        if (config->batch_window_ms)
                return config->batch_window_ms;
        return config->batching == BATCHING_STATIC ? 10000 : 50;
}

/* One user's share of the pool: at least one block; 0 means all of it, as in the core. */
static uint32_t share_of(uint64_t blocks, uint32_t percent)
{
        uint64_t share = blocks * percent / 100;

        if (percent == 100)
                return 0;
        return share ? (uint32_t)share : 1;
}

static int choose_context(struct opening *o)
{
        struct served *served = &o->served;

        served->context = o->config->ctx ? o->config->ctx : served->traits.context;
        if (served->context > served->traits.context) {
                snprintf(o->why, sizeof(o->why), "--ctx %u: the model was made for %u positions",
                         served->context, served->traits.context);
                return -EINVAL;
        }
        return 0;
}

/*
 * Measures the model with a pool of as many blocks as the conf has: in the backend's memory, and in
 * the host's memory for the layers that stay there.
 */
static int measure(struct opening *o, struct kernels *kernels)
{
        char what[256];
        int r = 0;

        if (kernels)
                r = model_measure_in(o->checkpoint, &o->served.traits, kernels, &o->model_conf,
                                     &o->bytes, &o->host, what, sizeof(what));
        else
                model_measure(o->checkpoint, &o->served.traits, &o->model_conf, &o->bytes);
        return r ? opening_blame(o, o->path, what, r) : 0;
}

static struct pool_memory memory_of(const struct model_bytes *bytes, uint64_t there)
{
        return (struct pool_memory){ .block = bytes->block,
                                     .there = there,
                                     .weights = bytes->weights,
                                     .activations = bytes->activations,
                                     .scratch = bytes->scratch };
}

static struct pool_conf pool_of(const struct opening *o, const struct kernels *kernels)
{
        uint64_t memory = allowance_memory();
        struct pool_conf conf = {
                .asked = o->config->kv_bytes,
                .blocks_one = blocks_for(o->served.context),
                .sequences = o->config->max_seqs,
        };

        if (!kernels) {
                conf.host = memory_of(&o->bytes, memory);
                return conf;
        }
        conf.host = memory_of(&o->host, memory);
        conf.backend = kernels->name;
        conf.own = memory_of(&o->bytes, o->bytes.left);
        return conf;
}

/* Whether the last `layers` layers fit in the backend, with a usable pool; otherwise *why. */
static int try_layers(struct opening *o, struct kernels *kernels, uint32_t layers, bool *ret_fit,
                      char *why, size_t why_bytes)
{
        struct pool_conf conf;
        int r;

        o->model_conf.host_layers = o->served.traits.layers - layers;
        r = measure(o, kernels);
        if (r)
                return error_pass(r);
        conf = pool_of(o, kernels);
        *ret_fit = !pool_fits_backend(&conf, why, why_bytes);
        return 0;
}

/*
 * If the settings give no number, takes as many layers as fit.  More layers take more memory, so
 * this is a binary search.
 */
static int choose_layers(struct opening *o, struct kernels *kernels)
{
        uint32_t layers = o->served.traits.layers, fit = 0, too_many = layers + 1, asked;
        char why[sizeof(o->why)];
        int r = 0;

        o->fewer[0] = '\0';
        asked = o->config->gpu_layers;
        assert(asked);
        if (asked != CONFIG_AUTO) {
                o->model_conf.host_layers = asked < layers ? layers - asked : 0;
                return 0;
        }
        for (uint32_t n = layers; !r && too_many - fit > 1; n = fit + (too_many - fit) / 2) {
                bool fits = false;

                r = try_layers(o, kernels, n, &fits, why, sizeof(why));
                if (fits)
                        fit = n;
                else
                        too_many = n;
        }
        if (r)
                return error_pass(r);
        if (!fit)
                return why_say(o->why, sizeof(o->why), OPENING_E_NO_ROOM, "%s", why);
        if (fit < layers)
                why_say(o->fewer, sizeof(o->fewer), 0, "with %u: %s", fit + 1, why);
        o->model_conf.host_layers = layers - fit;
        return 0;
}

static int plan_pool(struct opening *o, struct kernels *kernels)
{
        const struct config *config = o->config;
        struct pool_conf conf;
        int r = 0;

        o->host = (struct model_bytes){ 0 };
        o->model_conf = (struct model_conf){ .rows_max = config->step_tokens,
                                             .wants_max = config->max_seqs,
                                             .blocks = 1,
                                             .kv = config->kv };
        if (kernels)
                r = choose_layers(o, kernels);
        if (!r)
                r = measure(o, kernels);
        if (r)
                return r < 0 ? error_pass(r) : r;
        conf = pool_of(o, kernels);
        r = pool_plan(&conf, &o->model_conf.blocks, o->why, sizeof(o->why));
        if (r)
                return error_pass(r);
        o->bytes.kv = o->model_conf.blocks * o->bytes.block;
        o->host.kv = o->model_conf.blocks * o->host.block;
        return 0;
}

/* Computes every size from the config and the model.  Nothing is allocated yet. */
int opening_plan(struct opening *o, struct kernels *kernels)
{
        const struct config *config = o->config;
        uint32_t blocks;
        int r;

        r = choose_context(o);
        if (!r)
                r = plan_pool(o, kernels);
        if (r)
                return r < 0 ? error_pass(r) : r;
        blocks = o->model_conf.blocks;
        o->sched = (struct sched_conf){
                .blocks = blocks,
                .user_blocks = share_of(blocks, config->uid_blocks_percent),
                .slots = config->max_seqs,
                .rows = config->step_tokens,
                .context = o->served.context,
                .depth = config->depth,
                .requests_max = config->requests,
                .channels = config->connections * 2 + 2, /* and the keeper's channels */
                .stall_ns = config->stall_ms * MS,
                .grace_ns = config->grace_ms * MS,
                .parks_max = config->max_parks,
                .gap_ns = config->gap_ms * MS,
                .batch_size = batch_size(config),
                .window_ns = window_ms(config) * MS,
                .prefix = { .world = config->kv,
                            .keeps = share_of(blocks, config->uid_cached_percent),
                            .anchors = config->requests }
        };
        return error_pass(sys_random(o->sched.prefix.key, sizeof(o->sched.prefix.key)));
}
