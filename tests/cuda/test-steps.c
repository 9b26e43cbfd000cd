/*
 * Random steps of the backend for GPUs.  The reported tokens, pages and tables must match a
 * simple record that the host keeps of them.
 *
 * Sequences grow, are forked with their last page copied, and begin anew.  Pages of some go
 * to the swap, others are written over them, and later they come back elsewhere.  Tables change by
 * differences, some of them twice.  They change all at once when sequences change slots. Tokens
 * come from the host, and from picks of the last two steps, which have not been collected yet.
 * Some of those picks are not finite.  All of this runs again with captured steps, whose operators
 * the test does not call.
 */
#include "tests/cuda/backend-fixture.h"
#include "tests/cuda/known-model.h"

#define MY_ROWS  32u
#define MY_WANTS 16u
#define MY_SLOTS 32u
#define MY_TABLE 64u /* entries: all tables are more than an upload can have (steps.cc) */
#define MY_PAGES 128u
#define MY_SWAP  24u
#define LENGTH   70u /* about as long as a sequence grows */
#define CHANGES  (3 * MY_SLOTS * MY_TABLE)
#define LOGPROBS 6u
#define STEPS    120u
#define WINDOW   19u

struct line { /* a sequence */
        uint32_t length;
        bool swapped; /* `pages` are swap pages */
        uint32_t pages[MY_TABLE];
};

struct past { /* a step, kept for later comparison */
        uint64_t number;
        uint32_t want_count, want[MY_WANTS];
        uint32_t tokens[MY_WANTS];
        struct pick picks[MY_WANTS];
        bool collected;
};

static struct {
        struct line lines[MY_SLOTS];
        uint32_t sharers[MY_PAGES];
        uint32_t pages[MY_PAGES + MY_SWAP][PAGE_POSITIONS]; /* tokens */
        bool swap_used[MY_SWAP];
        struct past past[STEPS_BACK + 1];

        struct step step;
        struct step_row rows[MY_ROWS];
        struct step_run runs[MY_ROWS];
        struct step_page changes[CHANGES];
        struct step_copy copies[MY_PAGES];
        uint32_t want[MY_WANTS], tokens[MY_ROWS];
} my;

static struct past *past_of(uint64_t number)
{
        return &my.past[number % (STEPS_BACK + 1)];
}

/* ---- tables and pages ---- */

static void change(uint32_t slot, uint32_t index, uint32_t page)
{
        assert_true(my.step.page_count < CHANGES);
        my.changes[my.step.page_count++] = (struct step_page){ slot, index, page };
}

static uint32_t free_pages(void)
{
        uint32_t count = 0;

        for (uint32_t page = 0; page < MY_PAGES; page++)
                count += !my.sharers[page];
        return count;
}

static uint32_t page_new(uint32_t slot, uint32_t index)
{
        uint32_t page = random_below(MY_PAGES);

        while (my.sharers[page])
                page = (page + 1) % MY_PAGES;
        my.sharers[page] = 1;
        my.lines[slot].pages[index] = page;
        change(slot, index, page);
        return page;
}

static uint32_t pages_of(const struct line *line)
{
        return (line->length + PAGE_POSITIONS - 1) / PAGE_POSITIONS;
}

static void begin_anew(uint32_t slot)
{
        struct line *line = &my.lines[slot];

        for (uint32_t i = 0; i < pages_of(line); i++)
                if (line->swapped)
                        my.swap_used[line->pages[i] - MY_PAGES] = false;
                else
                        my.sharers[line->pages[i]]--;
        line->length = 0;
        line->swapped = false;
}

static void copy_page(uint32_t from, uint32_t to)
{
        my.copies[my.step.copy_count++] = (struct step_copy){ from, to };
        memcpy(my.pages[to], my.pages[from], sizeof(my.pages[to]));
}

/* The page's content moves to a swap page.  If others share it, it stays as well. */
static uint32_t swap_out(uint32_t page)
{
        uint32_t at = random_below(MY_SWAP);

        while (my.swap_used[at])
                at = (at + 1) % MY_SWAP;
        my.swap_used[at] = true;
        copy_page(page, MY_PAGES + at);
        my.sharers[page]--;
        return MY_PAGES + at;
}

static void swap_line_out(uint32_t slot)
{
        struct line *line = &my.lines[slot];
        uint32_t left = 0;

        for (uint32_t i = 0; i < MY_SWAP; i++)
                left += !my.swap_used[i];
        if (line->swapped || left < pages_of(line))
                return;
        for (uint32_t i = 0; i < pages_of(line); i++)
                line->pages[i] = swap_out(line->pages[i]);
        line->swapped = true;
}

static void swap_line_in(uint32_t slot)
{
        struct line *line = &my.lines[slot];

        if (!line->swapped || free_pages() < pages_of(line) + MY_SLOTS)
                return;
        for (uint32_t i = 0; i < pages_of(line); i++) {
                uint32_t from = line->pages[i];

                copy_page(from, page_new(slot, i));
                my.swap_used[from - MY_PAGES] = false;
        }
        line->swapped = false;
}

/* In any order: so a page of either kind may be written in the step that has copied it away. */
static void swap_lines(void)
{
        for (uint32_t n = random_below(4); n; n--) {
                uint32_t slot = random_below(MY_SLOTS);

                if (my.lines[slot].swapped)
                        swap_line_in(slot);
                else
                        swap_line_out(slot);
        }
}

/* Whole pages are shared; of one that still grows there is a copy. */
static void fork_line(uint32_t slot, uint32_t from)
{
        struct line *to = &my.lines[slot];
        const struct line *of = &my.lines[from];
        uint32_t whole = of->length / PAGE_POSITIONS;

        if (slot == from || of->swapped || free_pages() < MY_SLOTS * 2)
                return;
        begin_anew(slot);
        for (uint32_t i = 0; i < whole; i++) {
                my.sharers[of->pages[i]]++;
                to->pages[i] = of->pages[i];
                change(slot, i, of->pages[i]);
        }
        if (of->length % PAGE_POSITIONS)
                copy_page(of->pages[whole], page_new(slot, whole));
        to->length = of->length;
}

/*
 * Sequences move to other slots, so every table changes while steps are under way.  Sometimes
 * each entry is set to some other page before that.
 */
static void change_all(void)
{
        static struct line lines[MY_SLOTS];
        uint32_t by = 1 + random_below(MY_SLOTS - 1);

        memcpy(lines, my.lines, sizeof(lines));
        for (uint32_t slot = 0; slot < MY_SLOTS; slot++)
                my.lines[slot] = lines[(slot + by) % MY_SLOTS];
        for (uint32_t last = random_below(2); last < 2; last++)
                for (uint32_t slot = 0; slot < MY_SLOTS; slot++)
                        for (uint32_t i = 0; i < MY_TABLE; i++)
                                change(slot, i,
                                       last && i < pages_of(&my.lines[slot]) &&
                                                       !my.lines[slot].swapped
                                               ? my.lines[slot].pages[i]
                                               : random_below(MY_PAGES));
}

static void change_tables(void)
{
        for (uint32_t n = random_below(5); n; n--) {
                uint32_t slot = random_below(MY_SLOTS);

                if (my.lines[slot].length > LENGTH || random_below(4) == 0)
                        begin_anew(slot);
                else
                        fork_line(slot, random_below(6));
        }
        if (random_below(12) == 0)
                change_all();
}

/* ---- rows ---- */

/* From the host, or from a pick of one of the last steps. */
static uint32_t take_token(struct step_row *row)
{
        uint64_t back = 1 + random_below(STEPS_BACK);
        struct past *past = past_of(my.step.number - back);
        uint32_t want;

        row->from_row = STEP_TOKEN;
        row->token = random_below(8) ? random_below(KNOWN_TOKENS) : 12; /* the broken one follows */
        if (my.step.number <= back || !past->want_count || random_below(3) == 0)
                return row->token;
        want = random_below(past->want_count);
        row->from_step = past->number;
        row->from_row = past->want[want];
        row->token = 1u << 31; /* never read */
        return past->tokens[want] == PICK_NOT_FINITE ? 0 : past->tokens[want];
}

static void add_row(uint32_t slot, uint32_t position, bool writes)
{
        uint32_t number = my.step.row_count++;
        struct step_row *row = &my.rows[number];

        *row = (struct step_row){ .slot = slot, .position = position, .write = writes };
        my.tokens[number] = take_token(row);
        if (!writes)
                return;
        if (position % PAGE_POSITIONS == 0)
                page_new(slot, position / PAGE_POSITIONS);
        my.pages[my.lines[slot].pages[position / PAGE_POSITIONS]][position % PAGE_POSITIONS] =
                my.tokens[number];
        my.lines[slot].length = position + 1;
}

static void add_run(uint32_t slot)
{
        uint32_t length = my.lines[slot].length, count = 1 + random_below(random_below(3) ? 2 : 9);
        struct step_run *run = &my.runs[my.step.run_count];

        if (my.lines[slot].swapped || my.step.row_count + count > MY_ROWS || free_pages() < 2)
                return;
        run->row = my.step.row_count;
        if (length && random_below(5) == 0)
                add_row(slot, length - 1, false);
        else
                for (uint32_t i = 0; i < count; i++)
                        add_row(slot, length + i, true);
        run->count = my.step.row_count - run->row;
        my.step.run_count++;
}

static void add_rows(void)
{
        uint32_t first = random_below(MY_SLOTS);

        for (uint32_t i = 0; i < MY_SLOTS; i++)
                if (random_below(3) == 0)
                        add_run((first + i) % MY_SLOTS);
}

static void add_wants(void)
{
        struct past *past = past_of(my.step.number);

        *past = (struct past){ .number = my.step.number };
        for (uint32_t row = 0; row < my.step.row_count; row++) {
                uint32_t i = my.step.want_count;

                if (i == MY_WANTS || random_below(3) == 0)
                        continue;
                my.want[i] = past->want[i] = row;
                past->tokens[i] = known_model_next(my.tokens[row]);
                past->picks[i] =
                        (struct pick){ .logprobs = random_below(2) ? random_below(LOGPROBS + 1) : 0,
                                       .log_sum = random_below(4) == 0,
                                       .row = random_below(4) ? 0 : MY_WANTS - i };
                my.step.want_count++;
        }
        past->want_count = my.step.want_count;
}

static void make_step(uint64_t number)
{
        my.step = (struct step){ .number = number,
                                 .rows = my.rows,
                                 .runs = my.runs,
                                 .pages = my.changes,
                                 .copies = my.copies,
                                 .want = my.want,
                                 .picks = past_of(number)->picks };
        swap_lines();
        change_tables();
        add_rows();
        add_wants();
}

/* ---- what must be ---- */

static void check_seen(const struct known_model *known_model)
{
        static float a[MY_ROWS * KNOWN_TOKENS];

        known_model->k->get(known_model->k, a, known_model->a, my.step.row_count * KNOWN_TOKENS);
        for (uint32_t i = 0; i < my.step.row_count; i++) {
                uint32_t slot = my.rows[i].slot, own = my.rows[i].position;
                uint32_t first = known_model->window && own >= known_model->window
                                         ? own - known_model->window + 1
                                         : 0;
                uint32_t counts[KNOWN_TOKENS] = { 0 };

                for (uint32_t p = first; p <= own; p++)
                        counts[my.pages[my.lines[slot].pages[p / PAGE_POSITIONS]]
                                       [p % PAGE_POSITIONS]]++;
                for (uint32_t t = 0; t < KNOWN_TOKENS; t++) {
                        double is = (double)a[i * KNOWN_TOKENS + t] / (double)KNOWN_SIZE;

                        if (!(fabs(is * (own + 1 - first) - counts[t]) < 0.4))
                                fail_msg("step %u: slot %u position %u sees token %u %g times, "
                                         "not %u",
                                         (unsigned)my.step.number, slot, own, t,
                                         is * (own + 1 - first), counts[t]);
                }
        }
}

static void check_logprobs(const struct known_model *known_model, const struct past *past,
                           uint32_t want)
{
        const double all = log(exp((double)KNOWN_SIZE) + KNOWN_TOKENS - 1);
        uint32_t token = past->tokens[want];
        const struct pick *pick = &past->picks[want];
        struct logprob told[LOGPROBS + 2];

        memset(told, 0xff, sizeof(told));
        known_model->k->logprobs(known_model->k, past->number, want, told);
        for (uint32_t i = 0; i < pick->logprobs; i++) {
                uint32_t other = i - 2 + (i - 2 >= token); /* equals: the lower one first */

                assert_int_equal(told[i].token, i < 2 ? token : other);
                assert_true(fabs((double)told[i].logprob -
                                 ((i < 2 ? (double)KNOWN_SIZE : 0) - all)) < 1e-5);
        }
        if (pick->log_sum) {
                assert_int_equal(told[pick->logprobs].token, token);
                assert_true(fabs((double)told[pick->logprobs].logprob - all) < 1e-5);
        }
        assert_int_equal(told[pick_entries(pick)].token, UINT32_MAX);
}

static void check_row(const struct known_model *known_model, const struct past *past, uint32_t want)
{
        const float *row;

        if (!past->picks[want].row)
                return;
        row = known_model->k->row(known_model->k, past->number, want);
        for (uint32_t t = 0; t < KNOWN_TOKENS; t++)
                assert_true(row[t] == (t == past->tokens[want] ? KNOWN_SIZE : 0));
}

static void collect(const struct known_model *known_model, struct past *past)
{
        uint32_t tokens[MY_WANTS];

        if (past->collected || !past->number)
                return;
        past->collected = true;
        assert_int_equal(known_model->k->collect(known_model->k, past->number, tokens), 0);
        for (uint32_t i = 0; i < past->want_count; i++)
                if (tokens[i] != past->tokens[i])
                        fail_msg("step %u: row %u: token %u was picked, not %u",
                                 (unsigned)past->number, past->want[i], tokens[i], past->tokens[i]);
}

/*
 * The oldest of the kept tokens is about to be dropped, so it is checked if it was ever
 * requested.
 */
static void take_leave(const struct known_model *known_model, uint64_t number)
{
        struct past *past = past_of(number);

        if (!past->collected && random_below(4) == 0)
                return;
        collect(known_model, past);
        for (uint32_t i = 0; i < past->want_count; i++)
                if (past->tokens[i] != PICK_NOT_FINITE) {
                        check_logprobs(known_model, past, i);
                        check_row(known_model, past, i);
                }
}

static struct kernels *kernels_new(void)
{
        struct kernels_conf conf = cuda_conf();

        conf.rows_max = MY_ROWS;
        conf.wants_max = conf.row_copies_max = MY_WANTS;
        conf.slots_max = MY_SLOTS;
        conf.pages_max = MY_TABLE;
        conf.vocab_max = KNOWN_TOKENS;
        return cuda_open(&conf);
}

/* At times the host looks at nothing, and steps come as they can be sent. */
static bool looks(uint64_t number)
{
        return number / 12 % 2 == 0;
}

static void look(const struct known_model *known_model, uint64_t number)
{
        /* as late as it may be, or not */
        if (number > 2 && random_below(2))
                collect(known_model, past_of(number - 2));
        if (number > 1 && random_below(4) == 0)
                collect(known_model, past_of(number - 1));
        if (random_below(8) == 0)
                collect(known_model, past_of(number));
}

static void compare_with_host_model(bool rehearsed)
{
        struct kernels *k = kernels_new();
        uint32_t calls;
        struct known_model known_model;

        memset(&my, 0, sizeof(my));
        assert_int_equal(known_model_open(&known_model, k, MY_ROWS, MY_WANTS, MY_PAGES, MY_SWAP),
                         0);
        known_model.window = random_below(2) ? 0 : WINDOW;
        if (rehearsed)
                assert_int_equal(known_model_warm_up(&known_model), 0);
        calls = known_model.calls;
        for (uint64_t number = 1; number <= STEPS; number++) {
                if (!rehearsed)
                        known_model.window = random_below(2) ? 0 : WINDOW;
                if (looks(number))
                        take_leave(&known_model, number);
                make_step(number);
                assert_int_equal(known_model_forward(&known_model, &my.step), 0);
                if (looks(number) && random_below(3) == 0)
                        check_seen(&known_model);
                assert_int_equal(k->step_end(k), 0);
                if (looks(number))
                        look(&known_model, number);
        }
        for (uint64_t number = STEPS - STEPS_BACK; number <= STEPS; number++)
                take_leave(&known_model, number);
        assert_int_equal(known_model.calls - calls, rehearsed ? 0 : STEPS);
        known_model_close(&known_model);
        k->close(k);
}

static void random_steps_match_a_model_on_the_host(void **state)
{
        (void)state;
        compare_with_host_model(false);
}

static void random_rehearsed_steps_match_a_model_on_the_host(void **state)
{
        (void)state;
        compare_with_host_model(true);
}

static int begin_random(void **state)
{
        (void)state;
        random_seed();
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_steps_match_a_model_on_the_host),
                cmocka_unit_test(random_rehearsed_steps_match_a_model_on_the_host),
        };

        return cmocka_run_group_tests(tests, begin_random, NULL);
}
