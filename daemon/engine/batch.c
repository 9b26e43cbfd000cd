#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/engine/batch.h"
#include "daemon/engine/model-conf.h"
#include "daemon/engine/sampler.h"
#include "base/error.h"

static_assert(PLAN_TOKEN == STEP_TOKEN, "both sides mark a known token in the same way");
static_assert(BLOCK_POSITIONS == PAGE_POSITIONS, "a block is a page");

static void place_spaces(struct batch *batch, uint32_t count, uint32_t words)
{
        for (uint32_t i = 0; i < count; i++)
                batch->spaces[i] = (struct pick_space){
                        .mask = batch->space_masks + (size_t)i * words,
                        .edits = batch->space_edits + (size_t)i * RULES_EDITS_MAX,
                };
}

int batch_init(struct batch *batch, const struct sched_conf *conf, uint32_t vocab)
{
        size_t rows = conf->rows, spaces = conf->drafts ? conf->drafts : 1;
        uint32_t words = mask_words(vocab);

        *batch = (struct batch){
                .rows = calloc(rows, sizeof(*batch->rows)),
                .runs = calloc(rows, sizeof(*batch->runs)),
                .pages = calloc((size_t)2 * sched_page_max(conf), sizeof(*batch->pages)),
                .copies = calloc(sched_move_max(conf) + (size_t)2 * conf->slots,
                                 sizeof(*batch->copies)),
                .want = calloc(rows, sizeof(*batch->want)),
                .picks = calloc(rows, sizeof(*batch->picks)),
                .want_sequences = calloc(rows, sizeof(*batch->want_sequences)),
                .want_scores = calloc(rows, sizeof(*batch->want_scores)),
                .run_sequences = calloc(rows, sizeof(*batch->run_sequences)),
                .spaces = calloc(spaces, sizeof(*batch->spaces)),
                .space_edits = calloc(spaces * RULES_EDITS_MAX, sizeof(*batch->space_edits)),
                .space_masks = calloc(spaces * words, sizeof(*batch->space_masks)),
        };
        if (!batch->rows || !batch->runs || !batch->pages || !batch->copies || !batch->want ||
            !batch->picks || !batch->want_sequences || !batch->want_scores ||
            !batch->run_sequences || !batch->spaces || !batch->space_edits || !batch->space_masks) {
                batch_deinit(batch);
                return error_raise(-ENOMEM);
        }
        place_spaces(batch, (uint32_t)spaces, words);
        batch->step = (struct step){
                .rows = batch->rows,
                .runs = batch->runs,
                .pages = batch->pages,
                .copies = batch->copies,
                .want = batch->want,
                .picks = batch->picks,
        };
        return 0;
}

void batch_deinit(struct batch *batch)
{
        free(batch->rows);
        free(batch->runs);
        free(batch->pages);
        free(batch->copies);
        free(batch->want);
        free(batch->picks);
        free(batch->want_sequences);
        free(batch->want_scores);
        free(batch->run_sequences);
        free(batch->spaces);
        free(batch->space_edits);
        free(batch->space_masks);
        *batch = (struct batch){ 0 };
}

/* A row behind that of a decode is of its draft: its pick is not the only one of the request. */
static const struct pick_space *space_of(struct batch *batch, const struct plan_row *row)
{
        if (row->position < row->sequence->token_count)
                return NULL;
        return row->from_row == PLAN_TOKEN ? &batch->spaces[batch->space_count++] : NULL;
}

static void add_row(struct batch *batch, const struct plan_row *row)
{
        struct step *step = &batch->step;
        uint32_t at = step->row_count++;
        struct step_run *run = step->run_count ? &batch->runs[step->run_count - 1] : NULL;

        batch->rows[at] = (struct step_row){
                .slot = row->slot,
                .position = row->position,
                .token = row->token,
                .from_row = row->from_row,
                .from_step = row->from_plan,
                .write = row->write,
        };

        if (run && batch->rows[run->row].slot == row->slot) {
                assert(batch->rows[at - 1].position + 1 == row->position);
                run->count++;
        } else {
                batch->run_sequences[step->run_count] = row->sequence;
                batch->runs[step->run_count++] = (struct step_run){ .row = at, .count = 1 };
        }

        if (row->want != PLAN_NOTHING) {
                const struct request *request = row->sequence->request;
                uint32_t wanted = step->want_count++;

                batch->want[wanted] = at;
                batch->want_sequences[wanted] = row->sequence;
                batch->want_scores[wanted] = row->want == PLAN_SCORE;
                if (row->want == PLAN_SCORE)
                        sampler_score(request, row->position + 1, &batch->picks[wanted]);
                else
                        sampler_pick(request, space_of(batch, row), row->position + 1,
                                     &batch->picks[wanted]);
        }
}

static void add_page(struct batch *batch, const struct plan_page *page)
{
        struct step_page *to = &batch->pages[batch->step.page_count];

        to[0] = (struct step_page){ .slot = page->slot, .index = page->index, .page = page->block };
        batch->step.page_count++;
        if (page->window == WINDOW_NONE)
                return;
        to[1] = (struct step_page){ .slot = page->slot,
                                    .index = page->index,
                                    .page = page->window,
                                    .group = GROUP_WINDOWS };
        batch->step.page_count++;
}

static void add_copy(struct batch *batch, const struct plan_copy *copy)
{
        struct step_copy *to = &batch->copies[batch->step.copy_count];

        to[0] = (struct step_copy){ .from = copy->from, .to = copy->to };
        batch->step.copy_count++;
        if (copy->window_from == WINDOW_NONE)
                return;
        to[1] = (struct step_copy){ .from = copy->window_from,
                                    .to = copy->window_to,
                                    .group = GROUP_WINDOWS };
        batch->step.copy_count++;
}

void batch_build(struct batch *batch, const struct plan *plan)
{
        struct step *step = &batch->step;

        step->number = plan->number;
        step->row_count = step->run_count = step->want_count = 0;
        step->page_count = step->copy_count = 0;
        batch->space_count = 0;
        for (uint32_t i = 0; i < plan->row_count; i++)
                add_row(batch, &plan->rows[i]);
        for (uint32_t i = 0; i < step->run_count && batch->space_count; i++)
                sampler_return(batch->run_sequences[i]->request);

        for (uint32_t i = 0; i < plan->page_count; i++)
                add_page(batch, &plan->pages[i]);
        for (uint32_t i = 0; i < plan->move_count; i++)
                batch->copies[step->copy_count++] =
                        (struct step_copy){ .from = plan->moves[i].from, .to = plan->moves[i].to };
        for (uint32_t i = 0; i < plan->copy_count; i++)
                add_copy(batch, &plan->copies[i]);
}
