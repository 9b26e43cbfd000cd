/*
 * The memory plan: where the layers are, how many blocks there are, and what follows from that.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/sys.h"
#include "daemon/engine/draft-model.h"
#include "daemon/engine/drafts.h"
#include "daemon/model/kv-size.h"
#include "daemon/start/model-setup.h"
#include "kernels/cpu/cgroup-limits.h"

#define MS UINT64_C(1000000) /* in ns */

/*
 * Some steps, so that users do not preempt each other all the time; and a time that a person who
 * waits for a slot hardly notices.
 */
#define LEAD_MS 500u

#define FEW_SEQUENCES 4u

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

static int choose_context(struct model_setup *setup)
{
        struct served *served = &setup->served;

        served->context = setup->config->ctx ? setup->config->ctx : served->traits.context;
        if (served->context > served->traits.context) {
                snprintf(setup->why, sizeof(setup->why),
                         "ctx is %u; the model was made for %u positions", served->context,
                         served->traits.context);
                return -EINVAL;
        }
        return 0;
}

/*
 * Measures the model with a pool of as many blocks as the conf has: in the backend's memory, and in
 * the host's memory for the layers that stay there.
 */
static int measure(struct model_setup *setup, struct kernels *kernels)
{
        char what[256];
        int r = 0;

        if (setup->draft)
                r = model_setup_draft_measure(setup, kernels);
        if (r)
                return error_pass(r);
        if (kernels)
                r = model_measure_in(setup->checkpoint, &setup->served.traits, kernels,
                                     &setup->model_conf, &setup->bytes, &setup->host, what,
                                     sizeof(what));
        else
                model_measure(setup->checkpoint, &setup->served.traits, &setup->model_conf,
                              &setup->bytes);
        return r ? model_setup_fail(setup, setup->path, what, r) : 0;
}

static struct kv_size_memory memory_of(const struct model_bytes *bytes, uint64_t available)
{
        return (struct kv_size_memory){ .block = bytes->block,
                                        .window = bytes->window,
                                        .available = available,
                                        .weights = bytes->weights,
                                        .activations = bytes->activations,
                                        .scratch = bytes->scratch };
}

/* Without the swap, and if it is shorter than the context: then its layers have window pages. */
static uint32_t window_of(const struct model_setup *setup)
{
        return setup->config->swap_bytes
                       ? 0
                       : traits_window(&setup->served.traits, setup->served.context);
}

/* The window pages of a few sequences: with fewer, streams would wait for each other too often. */
static uint32_t windows_least(const struct model_setup *setup)
{
        const struct config *config = setup->config;
        const struct sched_conf conf = { .context = setup->served.context,
                                         .rows = config->step_tokens,
                                         .prefix.window = window_of(setup) };
        uint32_t few = config->max_seqs < FEW_SEQUENCES ? config->max_seqs : FEW_SEQUENCES;
        uint64_t least = sched_window_pages_for(&conf, few);

        return least < UINT32_MAX ? (uint32_t)least : UINT32_MAX;
}

/* A draft model is in the memory of the last layers, with a shadow page for each block. */
static void add_draft(const struct model_setup *setup, struct kv_size_memory *memory)
{
        if (!setup->draft || !memory->block)
                return;
        memory->shadow = setup->draft->setup.bytes.block;
        memory->weights += model_setup_draft_bytes(setup);
}

static struct kv_size_conf pool_of(const struct model_setup *setup, const struct kernels *kernels)
{
        uint64_t memory = cgroup_limits_memory();
        struct kv_size_conf conf = {
                .requested = setup->config->kv_bytes,
                .swap = setup->config->swap_bytes,
                .drafts = setup->drafts,
                .blocks_per_sequence = blocks_for(setup->served.context),
                .sequences = setup->config->max_seqs,
                .windows_least = windows_least(setup),
        };

        if (!kernels) {
                conf.host = memory_of(&setup->bytes, memory);
                add_draft(setup, &conf.host);
                conf.swap = 0; /* without a GPU there is none */
                return conf;
        }
        conf.host = memory_of(&setup->host, memory);
        conf.backend = kernels->name;
        conf.own = memory_of(&setup->bytes, setup->bytes.left);
        add_draft(setup, &conf.own);
        return conf;
}

/* Whether the last `layers` layers fit in the backend, with a usable pool; otherwise *why. */
static int try_layers(struct model_setup *setup, struct kernels *kernels, uint32_t layers,
                      bool *ret_fit, char *why, size_t why_bytes)
{
        struct kv_size_conf conf;
        int r;

        setup->model_conf.host_layers = setup->served.traits.layers - layers;
        r = measure(setup, kernels);
        if (r)
                return error_pass(r);
        conf = pool_of(setup, kernels);
        *ret_fit = !kv_size_fits_backend(&conf, why, why_bytes);
        return 0;
}

/*
 * If the settings give no number, takes as many layers as fit.  More layers take more memory, so
 * this is a binary search.
 */
static int choose_layers(struct model_setup *setup, struct kernels *kernels)
{
        uint32_t layers = setup->served.traits.layers, too_many = layers + 1, asked;
        uint32_t least = layers - traits_split_max(&setup->served.traits), fit = least - 1;
        char why[sizeof(setup->why)];
        int r = 0;

        setup->fewer[0] = '\0';
        asked = setup->config->gpu_layers;
        assert(asked);
        if (asked < least)
                return error_raise(errtext_set(setup->why, sizeof(setup->why), -EINVAL,
                                               "gpu_layers is %" PRIu32 ", and the last %" PRIu32
                                               " layers of this model share keys and values; set "
                                               "gpu_layers to 0 or to at least %" PRIu32,
                                               asked, least, least));
        if (asked != CONFIG_AUTO) {
                setup->model_conf.host_layers = asked < layers ? layers - asked : 0;
                return 0;
        }
        for (uint32_t n = layers; !r && too_many - fit > 1; n = fit + (too_many - fit) / 2) {
                bool fits = false;

                r = try_layers(setup, kernels, n, &fits, why, sizeof(why));
                if (fits)
                        fit = n;
                else
                        too_many = n;
        }
        if (r)
                return error_pass(r);
        if (fit < least)
                return errtext_set(setup->why, sizeof(setup->why), MODEL_SETUP_E_TOO_SMALL, "%s",
                                   why);
        if (fit < layers)
                errtext_set(setup->fewer, sizeof(setup->fewer), 0, "with %u: %s", fit + 1, why);
        setup->model_conf.host_layers = layers - fit;
        return 0;
}

/* Without `kernels` it is not known yet what else will be in the host's memory. */
static int plan_swap(struct model_setup *setup, const struct kernels *kernels)
{
        struct kv_size_conf conf = pool_of(setup, kernels);
        int r;

        if (!kernels) {
                conf.swap = setup->config->swap_bytes;
                conf.host.weights = conf.host.activations = 0;
        }
        r = kv_size_swap(&conf, &setup->model_conf.swap_blocks, setup->why, sizeof(setup->why));
        if (r)
                return error_pass(r);
        setup->host.swap = setup->model_conf.swap_blocks * (setup->bytes.block + setup->host.block);
        return 0;
}

/* Sets the numbers of blocks and window pages.  Without the latter, blocks have all layers. */
static int set_pool(struct model_setup *setup, struct kernels *kernels, const struct kv_size *size)
{
        struct model_conf *conf = &setup->model_conf;
        bool undivided = conf->windows && !size->windows;
        int r = 0;

        conf->blocks = size->blocks;
        conf->windows = size->windows;
        if (undivided)
                r = measure(setup, kernels);
        if (r)
                return error_pass(r);
        setup->bytes.kv = conf->blocks * setup->bytes.block + conf->windows * setup->bytes.window;
        setup->host.kv = conf->blocks * setup->host.block + conf->windows * setup->host.window;
        return 0;
}

uint64_t model_setup_drafts(const struct config *config, uint32_t context)
{
        if (!config_draft_rows(config))
                return 0;
        return drafts_bytes(config->max_seqs, context, config->draft_pool);
}

static int plan_pool(struct model_setup *setup, struct kernels *kernels)
{
        const struct config *config = setup->config;
        struct kv_size_conf conf;
        struct kv_size size;
        int r = 0;

        setup->host = (struct model_bytes){ 0 };
        setup->model_conf =
                (struct model_conf){ .context = setup->served.context,
                                     .rows_max = config->step_tokens,
                                     .wants_max = config->max_seqs + config_draft_rows(config),
                                     .blocks = 1,
                                     .windows = window_of(setup) > 0,
                                     .kv = config->kv };
        if (kernels)
                r = choose_layers(setup, kernels);
        if (!r)
                r = measure(setup, kernels);
        if (!r)
                r = plan_swap(setup, kernels);
        if (r)
                return r < 0 ? error_pass(r) : r;
        conf = pool_of(setup, kernels);
        r = kv_size_plan(&conf, &size, setup->why, sizeof(setup->why));
        if (!r)
                r = set_pool(setup, kernels, &size);
        return error_pass(r);
}

/* Computes every size from the config and the model.  Nothing is allocated yet. */
int model_setup_plan(struct model_setup *setup, struct kernels *kernels)
{
        const struct config *config = setup->config;
        uint32_t blocks, swap_blocks, windows;
        int r;

        r = choose_context(setup);
        setup->drafts = model_setup_drafts(config, setup->served.context);
        if (setup->draft)
                setup->drafts += draft_model_bytes(&(struct sched_conf){
                        .slots = config->max_seqs, .context = setup->served.context });
        if (!r)
                r = plan_pool(setup, kernels);
        if (r)
                return r < 0 ? error_pass(r) : r;
        blocks = setup->model_conf.blocks;
        swap_blocks = setup->model_conf.swap_blocks;
        windows = setup->model_conf.windows;
        setup->sched = (struct sched_conf){
                .blocks = blocks,
                .user_blocks = share_of(blocks, config->uid_blocks_percent),
                .slots = config->max_seqs,
                .rows = config->step_tokens,
                .context = setup->served.context,
                .depth = config->pipeline_depth,
                .drafts = config_draft_rows(config),
                .requests_max = config->requests,
                .channels = config->connections * 2 + 2, /* and those of edge/resumable.c */
                .stall_timeout_ns = config->stall_timeout_ms * MS,
                .stall_preempt_ns = config->stall_preempt_ms * MS,
                .preemptions_max = config->max_preemptions,
                .reserve_max = share_of(blocks, config->reserve_percent),
                .preempt_target = config->preempt_target * 10,
                .lead_ns = LEAD_MS * MS,
                .promote_ns = config->promote_ms * MS,
                .token_gap_ns = config->gap_ms * MS,
                .batch_size = batch_size(config),
                .batch_window_ns = window_ms(config) * MS,
                .prefix = { .model_id = config->kv,
                            .cached_max = share_of(blocks, config->uid_cached_percent),
                            .pins = config->requests,
                            .swap_blocks = swap_blocks,
                            .swap_max = share_of(swap_blocks, config->uid_cached_percent),
                            .window = windows ? window_of(setup) : 0,
                            .window_pages = windows,
                            .windows_max = share_of(windows, config->uid_cached_percent) }
        };
        for (int i = 0; i < REQUEST_PRIORITY_N; i++)
                setup->sched.learned[i] = config->admission[i] == CONFIG_ADMISSION_LEARNED;
        return error_pass(sys_random(setup->sched.prefix.key, sizeof(setup->sched.prefix.key)));
}
