#include "daemon/engine/draft-model.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/engine/model.h"

#define PRIVATE 2u   /* private pages of a slot: the tail, and the block behind it */
#define READING 128u /* rows of a step, besides one for each slot: so much of a prompt is read */

static_assert(DRAFT_MAX <= PAGE_POSITIONS, "the newest token and its guesses are in two pages");

/* The part of a slot's sequence that is in the draft model's pool. */
struct lane {
        uint32_t done;        /* positions whose KV is there, of tokens that are known */
        uint32_t tail;        /* the index of the first block that is in a private page */
        uint32_t guess_count; /* ... and so many guesses behind them */
        uint32_t guess[DRAFT_MAX];
};

struct draft_model {
        struct model *model;
        uint32_t blocks, slots, context, vocab, own_vocab, rows_max;
        uint32_t table_max; /* entries of a slot's tables */
        uint32_t pages_max; /* changes of tables in a step */
        struct lane *lanes;
        bool *full;       /* by shadow page */
        uint32_t *tables; /* (slots, table_max): the blocks of the sequence */
        uint32_t *set;    /* the same, as the backend has it: pages */
        struct step step; /* points into these: */
        struct step_row *rows;
        struct step_run *runs;
        struct step_page *pages;
        struct step_copy *copies;
        uint32_t *want;
        struct pick *picks;
        struct draft_ask **asked; /* by wanted row */
        uint32_t *tokens;
};

/* ---- sizes ---- */

static uint32_t rows_of(const struct sched_conf *sched)
{
        return sched->slots + READING;
}

static uint32_t table_of(const struct sched_conf *sched)
{
        return blocks_for(sched->context);
}

struct model_conf draft_model_sizes(const struct sched_conf *sched, uint32_t context,
                                    enum kv_type kv)
{
        return (struct model_conf){ .context = context,
                                    .rows_max = rows_of(sched),
                                    .wants_max = sched->slots,
                                    .blocks = sched->blocks + PRIVATE * sched->slots,
                                    .kv = kv };
}

/* Each lane may need its private pages, and a row a block; one lane may need a whole table. */
static uint32_t changes_of(const struct sched_conf *sched)
{
        return table_of(sched) + rows_of(sched) + PRIVATE * sched->slots;
}

size_t draft_model_bytes(const struct sched_conf *sched)
{
        return sizeof(struct draft_model) + sched->slots * sizeof(struct lane) + sched->blocks +
               (size_t)2 * sched->slots * table_of(sched) * sizeof(uint32_t) +
               changes_of(sched) * sizeof(struct step_page) +
               rows_of(sched) * (sizeof(struct step_row) + sizeof(struct step_run)) +
               sched->slots * (PRIVATE * sizeof(struct step_copy) + sizeof(struct pick) +
                               sizeof(struct draft_ask *) + 2 * sizeof(uint32_t));
}

static int make_arrays(struct draft_model *dm)
{
        size_t table = (size_t)dm->slots * dm->table_max;

        dm->lanes = calloc(dm->slots, sizeof(*dm->lanes));
        dm->full = calloc(dm->blocks, sizeof(*dm->full));
        dm->tables = malloc(table * sizeof(*dm->tables));
        dm->set = malloc(table * sizeof(*dm->set));
        dm->rows = calloc(dm->rows_max, sizeof(*dm->rows));
        dm->runs = calloc(dm->rows_max, sizeof(*dm->runs));
        dm->pages = calloc(dm->pages_max, sizeof(*dm->pages));
        dm->copies = calloc((size_t)PRIVATE * dm->slots, sizeof(*dm->copies));
        dm->want = calloc(dm->slots, sizeof(*dm->want));
        dm->picks = calloc(dm->slots, sizeof(*dm->picks));
        dm->asked = calloc(dm->slots, sizeof(struct draft_ask *));
        dm->tokens = calloc(dm->slots, sizeof(*dm->tokens));
        if (!dm->lanes || !dm->full || !dm->tables || !dm->set || !dm->rows || !dm->runs ||
            !dm->pages || !dm->copies || !dm->want || !dm->picks || !dm->asked || !dm->tokens)
                return error_raise(-ENOMEM);
        memset(dm->tables, 0xff, table * sizeof(*dm->tables));
        memset(dm->set, 0xff, table * sizeof(*dm->set));
        return 0;
}

int draft_model_new(const struct draft_model_conf *conf, struct draft_model **ret_draft_model)
{
        const struct sched_conf *sched = conf->sched;
        struct draft_model *dm = calloc(1, sizeof(*dm));
        int r;

        assert(conf->context <= sched->context);
        if (!dm)
                return error_raise(-ENOMEM);
        *dm = (struct draft_model){ .model = conf->model,
                                    .blocks = sched->blocks,
                                    .slots = sched->slots,
                                    .context = conf->context,
                                    .vocab = conf->vocab,
                                    .own_vocab = conf->own_vocab,
                                    .rows_max = rows_of(sched),
                                    .table_max = table_of(sched),
                                    .pages_max = changes_of(sched) };
        r = make_arrays(dm);
        if (r) {
                draft_model_free(dm);
                return error_pass(r);
        }
        dm->step = (struct step){ .rows = dm->rows,
                                  .runs = dm->runs,
                                  .pages = dm->pages,
                                  .copies = dm->copies,
                                  .want = dm->want,
                                  .picks = dm->picks };
        *ret_draft_model = dm;
        return 0;
}

struct draft_model *draft_model_free(struct draft_model *dm)
{
        if (!dm)
                return NULL;
        free(dm->lanes);
        free(dm->full);
        free(dm->tables);
        free(dm->set);
        free(dm->rows);
        free(dm->runs);
        free(dm->pages);
        free(dm->copies);
        free(dm->want);
        free(dm->picks);
        free(dm->asked);
        free(dm->tokens);
        free(dm);
        return NULL;
}

/* ---- what the served model does ---- */

static uint32_t *table_entry(const struct draft_model *dm, uint32_t slot, uint32_t index)
{
        assert(slot < dm->slots && index < dm->table_max);
        return &dm->tables[(size_t)slot * dm->table_max + index];
}

/* The lane knows the sequence up to this position only. */
static void cut(struct lane *lane, uint32_t position)
{
        if (lane->done <= position)
                return;
        lane->done = position;
        lane->guess_count = 0;
}

void draft_model_begin(struct draft_model *dm, uint32_t slot)
{
        dm->lanes[slot] = (struct lane){ 0 };
}

void draft_model_follow(struct draft_model *dm, const struct step *step)
{
        for (uint32_t i = 0; i < step->page_count; i++) {
                const struct step_page *page = &step->pages[i];
                struct lane *lane = &dm->lanes[page->slot];

                if (page->group != GROUP_BLOCKS)
                        continue;
                *table_entry(dm, page->slot, page->index) = page->page;
                if (page->index < lane->tail)
                        cut(lane, page->index * PAGE_POSITIONS);
        }
        /* Pages of the swap have no shadow. */
        for (uint32_t i = 0; i < step->copy_count; i++)
                if (step->copies[i].group == GROUP_BLOCKS && step->copies[i].to < dm->blocks)
                        dm->full[step->copies[i].to] = false;
        for (uint32_t i = 0; i < step->row_count; i++) {
                const struct step_row *row = &step->rows[i];

                if (row->write)
                        dm->full[*table_entry(dm, row->slot, row->position / PAGE_POSITIONS)] =
                                false;
        }
}

uint32_t draft_model_missing(const struct draft_model *dm, uint32_t slot, uint32_t token_count)
{
        uint32_t done = dm->lanes[slot].done, blocks = (token_count - 1) / PAGE_POSITIONS;

        if (token_count > dm->context)
                return UINT32_MAX;
        while (done % PAGE_POSITIONS == 0 && done / PAGE_POSITIONS < blocks &&
               dm->full[*table_entry(dm, slot, done / PAGE_POSITIONS)])
                done += PAGE_POSITIONS;
        return done < token_count ? token_count - 1 - done : 0;
}

/* ---- a step ---- */

static uint32_t private_page(const struct draft_model *dm, uint32_t slot, uint32_t index)
{
        return dm->blocks + slot * PRIVATE + index % PRIVATE;
}

/* Of the last guesses, those that became tokens are done. */
static void confirm(struct lane *lane, const struct draft_ask *ask)
{
        uint32_t i = 0;

        while (i < lane->guess_count && lane->done < ask->token_count &&
               ask->tokens[lane->done] == lane->guess[i]) {
                lane->done++;
                i++;
        }
        lane->guess_count = 0;
}

/*
 * Blocks that are whole by now, and computed by the served model, leave the private pages.  One of
 * which this model has not all positions is computed again.
 */
static void move_tail(struct draft_model *dm, struct lane *lane, const struct draft_ask *ask)
{
        uint32_t tail = (ask->token_count - 1) / PAGE_POSITIONS;

        for (; lane->tail < tail; lane->tail++) {
                uint32_t page = *table_entry(dm, ask->slot, lane->tail);

                if (lane->done < (lane->tail + 1) * PAGE_POSITIONS) {
                        cut(lane, lane->tail * PAGE_POSITIONS);
                        lane->tail = tail;
                        return;
                }
                if (dm->full[page])
                        continue;
                dm->full[page] = true;
                dm->copies[dm->step.copy_count++] =
                        (struct step_copy){ .from = private_page(dm, ask->slot, lane->tail),
                                            .to = page };
        }
}

/*
 * The backend's table of the slot follows, from an index up to the block of this position.  False:
 * there is no space.
 */
static bool set_pages(struct draft_model *dm, const struct draft_ask *ask, uint32_t from,
                      uint32_t position)
{
        const struct lane *lane = &dm->lanes[ask->slot];
        uint32_t *set = dm->set + (size_t)ask->slot * dm->table_max;

        for (uint32_t i = from; i <= position / PAGE_POSITIONS; i++) {
                uint32_t page = i < lane->tail ? *table_entry(dm, ask->slot, i)
                                               : private_page(dm, ask->slot, i);

                if (set[i] == page)
                        continue;
                if (dm->step.page_count == dm->pages_max)
                        return false;
                set[i] = page;
                dm->pages[dm->step.page_count++] =
                        (struct step_page){ .slot = ask->slot, .index = i, .page = page };
        }
        return true;
}

static void add_row(struct draft_model *dm, const struct draft_ask *ask, uint32_t position,
                    uint32_t token)
{
        struct step *step = &dm->step;
        struct step_run *run = step->run_count ? &dm->runs[step->run_count - 1] : NULL;

        if (!run || dm->rows[run->row].slot != ask->slot) {
                run = &dm->runs[step->run_count++];
                *run = (struct step_run){ .row = step->row_count };
        }
        run->count++;
        dm->rows[step->row_count++] = (struct step_row){ .slot = ask->slot,
                                                         .position = position,
                                                         .token = token < dm->own_vocab ? token : 0,
                                                         .from_row = STEP_TOKEN,
                                                         .write = true };
}

/* The last row gives a token. */
static void want(struct draft_model *dm, struct draft_ask *ask, uint32_t position)
{
        uint32_t i = dm->step.want_count++;

        dm->want[i] = dm->step.row_count - 1;
        dm->asked[i] = ask;
        dm->picks[i] = ask->pick;
        dm->picks[i].position = position + 1;
        dm->picks[i].logprobs = 1;
}

/* Blocks before the tail whose pages are full need no rows. */
static void skip_full(const struct draft_model *dm, struct lane *lane, uint32_t slot)
{
        while (lane->done < lane->tail * PAGE_POSITIONS &&
               dm->full[*table_entry(dm, slot, lane->done / PAGE_POSITIONS)])
                lane->done += PAGE_POSITIONS;
}

/* Rows of whole blocks before the tail, as many as there is space for. */
static void add_blocks(struct draft_model *dm, struct lane *lane, const struct draft_ask *ask)
{
        while (lane->done < lane->tail * PAGE_POSITIONS &&
               dm->step.row_count + PAGE_POSITIONS <= dm->rows_max) {
                bool *full = &dm->full[*table_entry(dm, ask->slot, lane->done / PAGE_POSITIONS)];

                assert(lane->done % PAGE_POSITIONS == 0);
                /* Another sequence has it by now; rows must follow each other, so it waits. */
                if (*full)
                        return;
                *full = true;
                for (uint32_t i = 0; i < PAGE_POSITIONS; i++, lane->done++)
                        add_row(dm, ask, lane->done, ask->tokens[lane->done]);
        }
}

/* The lane follows the sequence.  True: it has no whole blocks to read. */
static bool prepare(struct draft_model *dm, const struct draft_ask *ask)
{
        struct lane *lane = &dm->lanes[ask->slot];

        confirm(lane, ask);
        move_tail(dm, lane, ask);
        skip_full(dm, lane, ask->slot);
        if (lane->done >= ask->token_count)
                lane->done = ask->token_count - 1;
        return lane->done >= lane->tail * PAGE_POSITIONS;
}

/* The tokens that are known, and then its first guess, if there is space for all. */
static void add_known(struct draft_model *dm, struct draft_ask *ask)
{
        struct lane *lane = &dm->lanes[ask->slot];
        uint32_t last = ask->token_count - 1;

        ask->more = set_pages(dm, ask, 0, last);
        if (!ask->more)
                return;
        skip_full(dm, lane, ask->slot);
        add_blocks(dm, lane, ask);
        ask->more = lane->done >= lane->tail * PAGE_POSITIONS &&
                    dm->step.row_count + (last + 1 - lane->done) <= dm->rows_max;
        if (!ask->more)
                return;
        for (; lane->done <= last; lane->done++)
                add_row(dm, ask, lane->done, ask->tokens[lane->done]);
        want(dm, ask, last);
}

/* The last guess, and then the next one. */
static void add_guess(struct draft_model *dm, struct draft_ask *ask)
{
        struct lane *lane = &dm->lanes[ask->slot];
        uint32_t position = ask->token_count - 1 + ask->count, token = ask->guess[ask->count - 1];

        if (dm->step.row_count == dm->rows_max || !set_pages(dm, ask, lane->tail, position)) {
                ask->more = false;
                return;
        }
        lane->guess[lane->guess_count++] = token;
        add_row(dm, ask, position, token);
        want(dm, ask, position);
}

static bool has_space(const struct draft_model *dm, const struct draft_ask *ask)
{
        return ask->count < DRAFT_MAX && ask->token_count + ask->count <= dm->context;
}

static void take_token(struct draft_model *dm, uint32_t i)
{
        struct draft_ask *ask = dm->asked[i];
        struct logprob logprobs[PICK_ENTRIES_MAX];

        if (pick_failed(dm->tokens[i]) || dm->tokens[i] >= dm->vocab) {
                ask->more = false;
                return;
        }
        model_logprobs(dm->model, dm->step.number, i, logprobs);
        ask->guess[ask->count++] = dm->tokens[i];
        ask->chance = expf(logprobs[0].logprob);
}

/* Those that have a prompt to read come last, so that others do not wait for it. */
static void add_rows(struct draft_model *dm, struct draft_ask *asks, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                struct draft_ask *ask = &asks[i];

                ask->more = ask->more && has_space(dm, ask);
                ask->reads = false;
                if (!ask->more)
                        continue;
                if (ask->count)
                        add_guess(dm, ask);
                else if (prepare(dm, ask))
                        add_known(dm, ask);
                else
                        ask->reads = true;
        }
        for (uint32_t i = 0; i < count; i++)
                if (asks[i].reads)
                        add_known(dm, &asks[i]);
}

int draft_model_step(struct draft_model *dm, struct draft_ask *asks, uint32_t count)
{
        struct step *step = &dm->step;
        int r;

        step->row_count = step->run_count = step->want_count = 0;
        step->page_count = step->copy_count = 0;
        add_rows(dm, asks, count);
        assert(step->row_count || (!step->page_count && !step->copy_count));
        if (!step->row_count)
                return 0;
        step->number++;
        r = model_forward(dm->model, step);
        if (!r)
                r = model_collect(dm->model, step->number, dm->tokens);
        if (r)
                return error_pass(r);
        for (uint32_t i = 0; i < step->want_count; i++)
                take_token(dm, i);
        return (int)step->row_count;
}
