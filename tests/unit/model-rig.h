/*
 * A model on a backend, run one step at a time without scheduler or engine.
 *
 * Every slot has its own pages, given out back to front and interleaved, so that a test cannot
 * pass by chance because of neighbours or of the order in memory.
 */
#ifndef TESTS_UNIT_MODEL_RIG_H
#define TESTS_UNIT_MODEL_RIG_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/engine/model.h"

#define RIG_ROWS  64u
#define RIG_SLOTS 3u
#define RIG_SWAP  4u /* swap pages, numbered from the pool's pages on */

struct rig {
        struct checkpoint *checkpoint;
        struct traits traits;
        struct kernels *kernels, *host; /* NULL: all layers are on one backend */
        struct model *model;
        uint32_t pages; /* pages of a slot */
        /*
         * If not 0: layers with a window have pages of their own, so many for each slot, which are
         * used in turns.  Entries of pages that were taken back name no page.
         */
        uint32_t window_pages;
        uint64_t number;
        /* Pages that the next step copies; it empties the list. */
        struct step_copy copies[RIG_ROWS];
        uint32_t copy_count;
        char why[256];
};

/* Some rows of one slot. */
struct rig_part {
        uint32_t slot, position, count;
        const uint32_t *tokens;
};

static inline int rig_load(struct rig *rig)
{
        const struct weights_conf conf = { .threads = 2 };
        enum load_way way;

        return model_load(rig->model, &conf, &way, rig->why, sizeof(rig->why));
}

/* Opens a model whose first `host_layers` layers are on another backend. */
static inline int rig_open_split(struct rig *rig, const char *path, const char *host,
                                 uint32_t host_layers, const char *backend, uint32_t threads,
                                 uint32_t context, enum kv_type kv)
{
        struct kernels_conf conf = {
                .threads = threads,
                .isa = "auto",
                .rows_max = RIG_ROWS,
                .groups = KV_GROUPS_MAX,
                .slots_max = RIG_SLOTS,
                .wants_max = RIG_ROWS,
                .deterministic = true,
                .library = getenv("CUDA_LIBRARY"), /* of "cuda" */
        };
        struct model_conf model = {
                .rows_max = RIG_ROWS,
                .wants_max = RIG_ROWS,
                .kv = kv,
                .host_layers = host_layers,
                .swap_blocks = RIG_SWAP,
        };
        int r;

        *rig = (struct rig){ .pages = (context + PAGE_POSITIONS - 1) / PAGE_POSITIONS };
        r = checkpoint_open(path, &rig->checkpoint, rig->why, sizeof(rig->why));
        if (!r)
                r = checkpoint_traits(rig->checkpoint, &rig->traits, rig->why, sizeof(rig->why));
        conf.pages_max = rig->pages;
        conf.vocab_max = rig->traits.vocab;
        model.blocks = rig->pages * RIG_SLOTS;
        if (!r)
                r = kernels_open(backend, &conf, &rig->kernels);
        if (!r && host_layers)
                r = kernels_open(host, &conf, &rig->host);
        model.host = rig->host;
        if (!r)
                r = model_open(rig->checkpoint, &rig->traits, rig->kernels, &model, &rig->model,
                               rig->why, sizeof(rig->why));
        if (!r)
                r = rig_load(rig);
        return r;
}

static inline int rig_open_kv(struct rig *rig, const char *path, const char *backend,
                              uint32_t threads, uint32_t context, enum kv_type kv)
{
        return rig_open_split(rig, path, NULL, 0, backend, threads, context, kv);
}

static inline int rig_open(struct rig *rig, const char *path, const char *backend, uint32_t threads,
                           uint32_t context)
{
        return rig_open_kv(rig, path, backend, threads, context, KV_F32);
}

/*
 * Opens the model again, with the rig's present traits, and does not load it.  `window_pages` as in
 * the rig.
 */
static inline int rig_reopen(struct rig *rig, uint32_t host_layers, enum kv_type kv,
                             uint32_t window_pages)
{
        struct model_conf conf = { .rows_max = RIG_ROWS,
                                   .wants_max = RIG_ROWS,
                                   .blocks = rig->pages * RIG_SLOTS,
                                   .windows = window_pages * RIG_SLOTS,
                                   .kv = kv,
                                   .host_layers = host_layers,
                                   .host = rig->host };

        rig->window_pages = window_pages;
        rig->model = model_close(rig->model);
        return model_open(rig->checkpoint, &rig->traits, rig->kernels, &conf, &rig->model, rig->why,
                          sizeof(rig->why));
}

static inline void rig_close(struct rig *rig)
{
        model_close(rig->model);
        if (rig->kernels)
                rig->kernels->close(rig->kernels);
        if (rig->host)
                rig->host->close(rig->host);
        checkpoint_close(rig->checkpoint);
        *rig = (struct rig){ 0 };
}

/* The page of a slot's entry `index`. */
static inline uint32_t rig_page(const struct rig *rig, uint32_t slot, uint32_t index)
{
        return (rig->pages - 1 - index) * RIG_SLOTS + slot;
}

/* A slot begins the block `index`.  Returns how many entries of page tables that changes. */
static inline uint32_t rig_begin_block(const struct rig *rig, uint32_t slot, uint32_t index,
                                       struct step_page *pages)
{
        uint32_t count = 0;

        pages[count++] = (struct step_page){ slot, index, rig_page(rig, slot, index) };
        if (!rig->window_pages)
                return count;
        pages[count++] =
                (struct step_page){ slot, index, index % rig->window_pages * RIG_SLOTS + slot,
                                    GROUP_WINDOWS };
        if (index >= rig->window_pages)
                pages[count++] = (struct step_page){ slot, index - rig->window_pages, UINT32_MAX,
                                                     GROUP_WINDOWS };
        return count;
}

/* Runs one step.  ret_logits: (rows, vocab), or NULL; ret_tokens: a greedy token for each row. */
static inline int rig_run(struct rig *rig, const struct rig_part *parts, uint32_t part_count,
                          uint32_t *ret_tokens, float *ret_logits)
{
        struct step_row rows[RIG_ROWS];
        struct step_run runs[RIG_SLOTS];
        struct step_page pages[3 * RIG_ROWS];
        uint32_t want[RIG_ROWS];
        struct pick picks[RIG_ROWS] = { 0 };
        struct step step = {
                .number = ++rig->number,
                .run_count = part_count,
                .rows = rows,
                .runs = runs,
                .pages = pages,
                .copies = rig->copies,
                .copy_count = rig->copy_count,
                .want = want,
                .picks = picks,
        };
        int r;

        assert(part_count <= RIG_SLOTS);
        rig->copy_count = 0;
        for (uint32_t p = 0; p < part_count; p++) {
                runs[p] = (struct step_run){ step.row_count, parts[p].count };
                for (uint32_t i = 0; i < parts[p].count; i++) {
                        uint32_t slot = parts[p].slot, position = parts[p].position + i;
                        uint32_t index = position / PAGE_POSITIONS, row = step.row_count++;

                        assert(row < RIG_ROWS && index < rig->pages);
                        rows[row] = (struct step_row){
                                .slot = slot,
                                .position = position,
                                .token = parts[p].tokens[i],
                                .from_row = STEP_TOKEN,
                                .write = 1,
                        };
                        want[row] = row;
                        if (position % PAGE_POSITIONS == 0)
                                step.page_count +=
                                        rig_begin_block(rig, slot, index, &pages[step.page_count]);
                }
        }
        step.want_count = step.row_count;
        if ((r = model_forward(rig->model, &step)) ||
            (r = model_collect(rig->model, step.number, ret_tokens)))
                return r;
        for (uint32_t i = 0; ret_logits && i < step.want_count; i++)
                model_logits(rig->model, i, ret_logits + (size_t)i * rig->traits.vocab);
        return 0;
}

#endif
