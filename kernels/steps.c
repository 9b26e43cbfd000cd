#include "kernels/steps.h"

#include <errno.h>
#include <string.h>

#include "kernels/memory.h"

static int result_init(struct step_result *result, const struct kernels_conf *conf)
{
        const size_t wants = conf->wants_max;

        result->rows = memory_new(wants, sizeof(*result->rows));
        result->tokens = memory_new(wants, sizeof(*result->tokens));
        result->copies = memory_new(wants, sizeof(*result->copies));
        result->first_entries = memory_new(wants + 1, sizeof(*result->first_entries));
        return result->rows && result->tokens && result->copies && result->first_entries ? 0
                                                                                         : -ENOMEM;
}

static void result_deinit(struct step_result *result)
{
        memory_free(result->rows);
        memory_free(result->tokens);
        memory_free(result->first_entries);
        memory_free(result->entries);
        memory_free(result->copies);
        memory_free(result->logits);
}

/* What picks return besides tokens. */
static int result_init_on_host(struct step_result *result, const struct kernels_conf *conf)
{
        const size_t entries = (size_t)conf->wants_max * PICK_ENTRIES_MAX;

        result->entries = memory_new(entries, sizeof(*result->entries));
        if (!result->entries)
                return -ENOMEM;
        if (!conf->row_copies_max)
                return 0;
        result->logits =
                memory_new((size_t)conf->row_copies_max * conf->vocab_max, sizeof(*result->logits));
        return result->logits ? 0 : -ENOMEM;
}

int steps_init_on_device(struct steps *s, const struct kernels_conf *conf)
{
        const size_t groups = conf->groups ? conf->groups : 1;
        const size_t entries = groups * conf->slots_max * conf->pages_max;
        int r = 0;

        assert(groups <= KV_GROUPS_MAX);
        *s = (struct steps){
                .groups = (uint32_t)groups,
                .rows_max = conf->rows_max,
                .slots_max = conf->slots_max,
                .pages_max = conf->pages_max,
                .wants_max = conf->wants_max,
                .row_copies_max = conf->row_copies_max,
                .vocab_max = conf->vocab_max,
                .tokens = memory_new(conf->rows_max, sizeof(*s->tokens)),
                .tables = memory_new(entries, sizeof(*s->tables)),
                .rows = memory_new(conf->rows_max, sizeof(*s->rows)),
                .runs = memory_new(conf->rows_max, sizeof(*s->runs)),
                .picks = memory_new(conf->wants_max, sizeof(*s->picks)),
                .copied = memory_new(conf->row_copies_max, sizeof(*s->copied)),
        };
        for (uint32_t i = 0; i < STEPS_RESULTS && !r; i++)
                r = result_init(&s->result[i], conf);
        if (r || !s->tokens || !s->tables || !s->rows || !s->runs || !s->picks || !s->copied) {
                steps_deinit(s);
                return -ENOMEM;
        }
        for (size_t i = 0; i < entries; i++)
                s->tables[i] = STEPS_NO_PAGE;
        for (uint32_t i = 0; i < conf->row_copies_max; i++)
                s->copied[i] = UINT64_MAX;
        return 0;
}

int steps_init(struct steps *s, const struct kernels_conf *conf)
{
        int r = steps_init_on_device(s, conf);

        for (uint32_t i = 0; i < STEPS_RESULTS && !r; i++)
                r = result_init_on_host(&s->result[i], conf);
        if (r)
                steps_deinit(s);
        return r;
}

void steps_deinit(struct steps *s)
{
        memory_free(s->tokens);
        memory_free(s->tables);
        memory_free(s->rows);
        memory_free(s->runs);
        memory_free(s->picks);
        memory_free(s->copied);
        for (uint32_t i = 0; i < STEPS_RESULTS; i++)
                result_deinit(&s->result[i]);
        *s = (struct steps){ 0 };
}

/*
 * Checks the limits, the order of the rows, and that the runs cover all rows, as kernels.h
 * promises.
 */
static void step_check(const struct steps *s, const struct step *step)
{
        uint32_t row = 0;

        assert(step->row_count <= s->rows_max && step->run_count <= step->row_count);
        assert(step->want_count <= s->wants_max && step->want_count <= step->row_count);

        for (uint32_t i = 0; i < step->run_count; i++) {
                const struct step_run *run = &step->runs[i];
                const struct step_row *first = &step->rows[run->row];

                assert(run->row == row && run->count && run->count <= step->row_count - row);
                assert(first->slot < s->slots_max);
                assert((first->position + (uint64_t)run->count - 1) / PAGE_POSITIONS <
                       s->pages_max);
                for (uint32_t j = 1; j < run->count; j++) {
                        assert(first[j].slot == first->slot);
                        assert(first[j].position == first->position + j);
                }
                row += run->count;
        }
        assert(row == step->row_count);

        for (uint32_t i = 0; i < step->want_count; i++)
                assert(step->want[i] < step->row_count &&
                       (!i || step->want[i] > step->want[i - 1]) &&
                       step->picks[i].logprobs <= PICK_LOGPROBS_MAX &&
                       !(step->picks[i].mirostat && step->picks[i].given) &&
                       step->picks[i].edit_count <= PICK_EDITS_MAX);
}

static const struct step_result *steps_result(const struct steps *s, uint64_t number)
{
        const struct step_result *result = &s->result[number % STEPS_RESULTS];

        assert(result->valid && result->number == number);
        return result;
}

uint32_t steps_pick_index(const struct steps *s, const struct step_row *row)
{
        const struct step_result *result = steps_result(s, row->from_step);
        uint32_t low = 0, high = result->count;

        assert(row->from_step < s->step.number && s->step.number - row->from_step <= STEPS_BACK);
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (result->rows[middle] < row->from_row)
                        low = middle + 1;
                else
                        high = middle;
        }
        assert(low < result->count && result->rows[low] == row->from_row);
        return low;
}

static uint32_t row_token(const struct steps *s, const struct step_row *row)
{
        const struct step_result *result;
        uint32_t token;

        if (row->from_row == STEP_TOKEN)
                return row->token;
        result = steps_result(s, row->from_step);
        assert(result->picked);
        token = result->tokens[steps_pick_index(s, row)];
        return pick_failed(token) ? 0 : token;
}

static void steps_copy(void *to, const void *from, uint32_t count, size_t bytes)
{
        if (count)
                memcpy(to, from, count * bytes);
}

/* Checks that no other pick of this step has the same copy of a row. */
static void check_copy(struct steps *s, uint32_t copy, uint64_t number)
{
        assert(copy <= s->row_copies_max && s->copied[copy - 1] != number);
        s->copied[copy - 1] = number;
}

/* Copies the picks, and decides where the entries of each one are. */
static void copy_picks(struct steps *s, struct step_result *result, const struct step *step)
{
        uint32_t entry = 0;

        for (uint32_t i = 0; i < step->want_count; i++) {
                s->picks[i] = step->picks[i];
                s->picks[i].first_entry = result->first_entries[i] = entry;
                entry += pick_entries(&step->picks[i]);
                result->copies[i] = step->picks[i].row;
                if (step->picks[i].row)
                        check_copy(s, step->picks[i].row, step->number);
        }
        result->first_entries[step->want_count] = entry;
}

void steps_begin_on_device(struct steps *s, const struct step *step)
{
        struct step_result *result = &s->result[step->number % STEPS_RESULTS];

        assert(!s->running);
        step_check(s, step);
        for (uint32_t i = 0; i < STEPS_RESULTS; i++)
                assert(!s->result[i].valid || s->result[i].number < step->number);

        result->valid = true;
        result->number = step->number;
        result->picked = false;
        result->count = step->want_count;

        copy_picks(s, result, step);
        steps_copy(result->rows, step->want, step->want_count, sizeof(*step->want));
        steps_copy(s->rows, step->rows, step->row_count, sizeof(*step->rows));
        steps_copy(s->runs, step->runs, step->run_count, sizeof(*step->runs));
        s->step = (struct step){
                .number = step->number,
                .row_count = step->row_count,
                .run_count = step->run_count,
                .want_count = step->want_count,
                .rows = s->rows,
                .runs = s->runs,
                .want = result->rows,
                .picks = s->picks,
        };

        for (uint32_t i = 0; i < step->page_count; i++) {
                const struct step_page *page = &step->pages[i];

                assert(page->slot < s->slots_max && page->index < s->pages_max);
                s->tables[steps_tables_of(s, page->group) + (size_t)page->slot * s->pages_max +
                          page->index] = page->page;
        }
        s->running = true;
}

void steps_begin(struct steps *s, const struct step *step)
{
        steps_begin_on_device(s, step);
        for (uint32_t i = 0; i < step->row_count; i++)
                s->tokens[i] = row_token(s, &s->rows[i]);
}

uint32_t *steps_tokens_out(struct steps *s)
{
        struct step_result *result = &s->result[s->step.number % STEPS_RESULTS];

        assert(s->running);
        result->picked = true;
        return result->tokens;
}

struct logprob *steps_entries_out(struct steps *s, uint32_t want)
{
        struct step_result *result = &s->result[s->step.number % STEPS_RESULTS];

        assert(s->running && want < result->count);
        return result->entries + result->first_entries[want];
}

void steps_copy_row(struct steps *s, uint32_t want, const float *logits, uint32_t vocab)
{
        struct step_result *result = &s->result[s->step.number % STEPS_RESULTS];

        assert(s->running && want < result->count);
        if (result->copies[want])
                memcpy(result->logits + steps_copy_of(s, result, want), logits,
                       vocab * sizeof(*logits));
}

void steps_end(struct steps *s)
{
        assert(s->running);
        s->running = false;
}

void steps_collect(const struct steps *s, uint64_t number, uint32_t *ret_tokens)
{
        const struct step_result *result = steps_result(s, number);

        assert(!s->running || number != s->step.number);
        assert(result->picked || !result->count);
        steps_copy(ret_tokens, result->tokens, result->count, sizeof(*ret_tokens));
}

/* A result of a row that can have entries and a copy: its step is over, and its pick is fine. */
static const struct step_result *steps_picked(const struct steps *s, uint64_t number, uint32_t want)
{
        const struct step_result *result = steps_result(s, number);

        assert(!s->running || number != s->step.number);
        assert(want < result->count && result->picked && !pick_failed(result->tokens[want]));
        return result;
}

void steps_logprobs(const struct steps *s, uint64_t number, uint32_t want,
                    struct logprob *ret_logprobs)
{
        const struct step_result *result = steps_picked(s, number, want);

        steps_copy(ret_logprobs, result->entries + result->first_entries[want],
                   steps_entry_count(result, want), sizeof(*ret_logprobs));
}

const float *steps_row(const struct steps *s, uint64_t number, uint32_t want)
{
        const struct step_result *result = steps_picked(s, number, want);

        return result->logits + steps_copy_of(s, result, want);
}
