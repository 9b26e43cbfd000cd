#include "daemon/engine/drafts.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "daemon/draft/answers.h"
#include "daemon/draft/deal.h"
#include "daemon/constraint/guide.h"
#include "daemon/draft/drafter.h"
#include "daemon/engine/draft-queries.h"

#define INDEX_AT_ONCE 128u /* tokens of answers that a call indexes: 3 us */

static_assert(DRAFT_MAX == SCHED_DRAFT_MAX, "the core has space for a draft");
static_assert(DRAFT_MAX == SMV_DRAFT_TOKENS_MAX, "requests may ask for a whole draft");

/* A slot, and the request that has had rows in it. */
struct seat {
        struct request *request; /* NULL: none, or it has retired */
        uint64_t last_plan;
        uint32_t plan_rows; /* that it has in that plan */
        struct drafter *drafter;
        bool begun; /* the drafter is of this request */
        /* With a guide: the guess behind so many tokens. */
        struct draft guess;
        uint32_t guess_at;
};

struct drafts {
        struct stats *stats;
        struct step_costs costs; /* none, if a row need not pay */
        bool always;
        uint32_t rows_max, drafts_max, seat_count;
        uint32_t decodes; /* rows of the last step without those of drafts */
        struct seat *seats;
        struct answers *answers; /* NULL: none are kept */
        /* Of the seats that may have a draft now, in order: */
        struct draft *guesses;
        struct deal *deals;
        struct request **asked;
        struct draft_queries *queries; /* to the draft model, if there is one */
        uint64_t forgot_at;            /* plan behind which they were made to forget a little */
};

static int make_seats(struct drafts *drafts, const struct sched_conf *conf)
{
        int r = 0;

        drafts->seats = calloc(conf->slots, sizeof(*drafts->seats));
        drafts->guesses = calloc(conf->slots, sizeof(*drafts->guesses));
        drafts->deals = calloc(conf->slots, sizeof(*drafts->deals));
        drafts->asked = calloc(conf->slots, sizeof(struct request *));
        if (!drafts->seats || !drafts->guesses || !drafts->deals || !drafts->asked)
                return error_raise(-ENOMEM);
        drafts->seat_count = conf->slots;
        for (uint32_t i = 0; i < conf->slots && conf->drafts && !r; i++)
                r = drafter_new(conf->context, &drafts->seats[i].drafter);
        return error_pass(r);
}

size_t drafts_bytes(uint32_t slots, uint32_t context, uint32_t pool)
{
        return slots * drafter_bytes(context) + (pool ? answers_bytes(pool) : 0);
}

int drafts_new(const struct drafts_conf *conf, struct drafts **ret_drafts)
{
        struct drafts *drafts = calloc(1, sizeof(*drafts));
        int r = drafts ? make_seats(drafts, conf->sched) : error_raise(-ENOMEM);

        if (!r && conf->sched->drafts && conf->pool)
                r = answers_new(conf->pool, &drafts->answers);
        if (!r)
                r = draft_queries_new(conf->model, conf->sched->slots, conf->clock_ns,
                                      &drafts->queries);
        if (r) {
                drafts_free(drafts);
                return error_pass(r);
        }
        drafts->stats = conf->stats;
        drafts->always = conf->always;
        drafts->rows_max = conf->sched->rows;
        drafts->drafts_max = conf->sched->drafts;
        *ret_drafts = drafts;
        return 0;
}

struct drafts *drafts_free(struct drafts *drafts)
{
        if (!drafts)
                return NULL;
        for (uint32_t i = 0; i < drafts->seat_count; i++)
                drafter_free(drafts->seats[i].drafter);
        answers_free(drafts->answers);
        draft_queries_free(drafts->queries);
        free(drafts->seats);
        free(drafts->guesses);
        free(drafts->deals);
        free(drafts->asked);
        free(drafts);
        return NULL;
}

static struct seat *seat_of(const struct drafts *drafts, const struct request *request)
{
        return &drafts->seats[request->sequence.slot];
}

void drafts_rows(struct drafts *drafts, struct request *request, uint64_t number)
{
        struct seat *seat = seat_of(drafts, request);

        if (seat->request != request)
                seat->begun = false;
        seat->plan_rows = seat->last_plan == number ? seat->plan_rows + 1 : 1;
        seat->request = request;
        seat->last_plan = number;
}

void drafts_forget(struct drafts *drafts, const struct request *request)
{
        for (uint32_t i = 0; i < drafts->seat_count; i++)
                if (drafts->seats[i].request == request)
                        drafts->seats[i].request = NULL;
}

/*
 * Its own user's, never a public one: a request that publishes shows its blocks to others, and its
 * answer, if it had one, would come to them as well.
 */
static uint64_t domain_of(const struct request *request)
{
        return request->uid;
}

void drafts_keep(struct drafts *drafts, const struct request *request)
{
        uint32_t count = request->sequence.token_count;

        if (!drafts->answers || request->publish || count <= request->prompt_count)
                return;
        answers_add(drafts->answers, domain_of(request),
                    request->sequence.tokens + request->prompt_count,
                    count - request->prompt_count);
}

/* Its next row is a decode. */
static bool decodes(const struct drafts *drafts, const struct seat *seat)
{
        const struct request *request = seat->request;

        return request && request->state == REQUEST_DECODE &&
               request->sequence.slot == (uint32_t)(seat - drafts->seats);
}

/* Its client reads, and its masks and tokens are there. */
static bool may_have_row(const struct request *request)
{
        return !request->stalled && !request->held && !request->masks_due;
}

enum smv_no_drafts drafts_missing(const struct request *request)
{
        return !request->draft_max                  ? SMV_DRAFTS_OFF
               : request->asking                    ? SMV_DRAFTS_ASKED
               : request->sampling.mirostat_tau > 0 ? SMV_DRAFTS_MIROSTAT
                                                    : SMV_DRAFTS_POSSIBLE;
}

/* Its masks are known, and a draw needs no more than these, its row and the tokens before. */
static bool may_guess(const struct request *request)
{
        return drafts_missing(request) == SMV_DRAFTS_POSSIBLE && may_have_row(request);
}

static uint32_t least(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

/* The last row of a run may give the last token. */
static uint32_t most_tokens(const struct request *request, uint32_t count)
{
        uint32_t made = request->sequence.token_count - request->prompt_count;

        return least(count, request->max_tokens - made - 1);
}

static void begin(const struct drafts *drafts, struct seat *seat)
{
        const struct request *request = seat->request;
        float chance = draft_queries_begin(drafts->queries, request->sequence.slot);

        drafter_begin(seat->drafter, &(struct drafter_text){ .prompt_count = request->prompt_count,
                                                             .tokens_max = request->tokens_max,
                                                             .draft_max = request->draft_max,
                                                             .prediction = request->prediction,
                                                             .answers = drafts->answers,
                                                             .domain = domain_of(request),
                                                             .model_chance = chance });
        seat->begun = true;
}

/* How many rows the next step has without drafts, which none has from now on. */
static uint32_t count_decodes(struct drafts *drafts)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < drafts->seat_count; i++) {
                if (!decodes(drafts, &drafts->seats[i]))
                        continue;
                drafts->seats[i].request->drafts = false;
                count += may_have_row(drafts->seats[i].request);
        }
        return count;
}

/* A step with more rows than can be measured has no drafts, unless they need not pay. */
static uint32_t count_spare(const struct drafts *drafts, uint32_t decodes)
{
        uint32_t most = drafts->rows_max;

        if (!drafts->always)
                most = least(most, STEP_COSTS_ROWS);
        return most > decodes ? least(drafts->drafts_max, most - decodes) : 0;
}

static void propose(const struct drafts *drafts, struct seat *seat, struct draft *ret_guess)
{
        const struct sequence *sequence = &seat->request->sequence;

        if (!seat->begun)
                begin(drafts, seat);
        drafter_propose(seat->drafter, sequence->tokens, sequence->token_count, ret_guess);
}

static struct draft_step step_of(const struct drafts *drafts)
{
        return (struct draft_step){ .costs = drafts->always ? NULL : &drafts->costs,
                                    .decodes = drafts->decodes,
                                    .spare = count_spare(drafts, drafts->decodes) };
}

static struct draft_query query_of(const struct seat *seat, struct draft *guess, uint32_t most)
{
        return (struct draft_query){
                .request = seat->request, .drafter = seat->drafter, .guess = guess, .most = most
        };
}

/* ---- guesses ---- */

/*
 * Guesses may be worth rows in a step with so many without them.  Such a step must be measured, and
 * there is none while guesses have rows.
 */
static bool may_pay(const struct drafts *drafts, uint32_t rows)
{
        return drafts->always ||
               (step_costs_known(&drafts->costs, rows) && deal_pays(&drafts->costs, rows, rows));
}

/* The last guess has no row, because that was not worth its time. */
static void pass(struct drafts *drafts, struct seat *seat)
{
        if (drafter_pass(seat->drafter))
                draft_queries_learn(drafts->queries, seat->drafter);
}

const struct draft *drafts_guess(struct drafts *drafts, struct request *request, float mask_ns,
                                 uint32_t *ret_most)
{
        static const struct draft none = { .source = DRAFT_NONE };
        uint32_t rows, most, worth;
        struct draft_query query;
        struct draft_step step;
        struct draft *guess;
        struct seat *seat;

        *ret_most = 0;
        /* It may have lost its slot while its client was asked. */
        if (request->state != REQUEST_DECODE || drafts_missing(request) != SMV_DRAFTS_POSSIBLE)
                return &none;
        seat = seat_of(drafts, request);
        if (!decodes(drafts, seat))
                return &none;
        /* The last step may have had none, as the masks of this one were due. */
        drafts->decodes += !drafts->decodes;
        rows = drafts->decodes;
        if (!may_pay(drafts, rows))
                return &none;
        step = step_of(drafts);
        guess = &seat->guess;
        propose(drafts, seat, guess);
        seat->guess_at = request->sequence.token_count;
        most = least(most_tokens(request, request->draft_max), step.spare);
        query = query_of(seat, guess, most);
        query.extra_ns = mask_ns;
        if (draft_queries_wants(drafts->queries, &step, &query)) {
                draft_queries_add(drafts->queries, &query);
                draft_queries_ask(drafts->queries, &step);
        }
        guess->count = least(guess->count, most);
        if (!drafts->always) {
                most = deal_worth(&drafts->costs, rows, rows, mask_ns, NULL, most);
                worth = deal_worth(&drafts->costs, rows, rows, mask_ns, guess,
                                   least(guess->count, most));
                if (guess->count && !worth)
                        pass(drafts, seat);
                guess->count = worth;
        }
        *ret_most = most;
        return guess;
}

/* Masks were made along the guess; the guide has cut it, or added to it. */
static void take_form(struct drafts *drafts, struct seat *seat, struct draft *ret_guess)
{
        const struct guide_ahead *ahead = &seat->request->guide->ahead;

        *ret_guess = (struct draft){ .source = DRAFT_NONE };
        if (seat->begun && seat->guess_at == seat->request->sequence.token_count &&
            drafter_form(seat->drafter,
                         &(struct draft_form){ .tokens = ahead->tokens,
                                               .count = ahead->count,
                                               .forced = ahead->forced,
                                               .sure = ahead->sure },
                         ret_guess))
                draft_queries_learn(drafts->queries, seat->drafter);
}

/*
 * With two plans in flight, the row of a request is planned while its last token is not known.
 * Where a draft behind that token will probably pay, its next row waits for the token.
 */
static void wait_for_token(struct drafts *drafts, struct seat *seat, struct draft *space)
{
        struct draft_step step = step_of(drafts);
        struct draft_query query;

        /* There must be a row, and a token behind the one that is not known. */
        if (seat->request->awaits || seat->plan_rows > 1 || !step.spare ||
            most_tokens(seat->request, 2) < 2)
                return;
        propose(drafts, seat, space);
        query = query_of(seat, space, 1);
        if (draft_queries_wants(drafts->queries, &step, &query)) {
                seat->request->drafts = true;
                return;
        }
        if (space->count > 1)
                space->survival[0] = space->survival[1];
        else if (space->count && seat->request->draft_max == 1)
                space->survival[0] *= space->survival[0];
        else
                return;
        seat->request->drafts =
                deal_worth(&drafts->costs, drafts->decodes, drafts->decodes, 0, space, 1) > 0;
}

/* What repeats is the guess, or the model is asked for another one. */
static void begin_guess(struct drafts *drafts, struct seat *seat, struct draft *guess)
{
        const struct request *request = seat->request;
        struct draft_step step = step_of(drafts);
        uint32_t most = least(most_tokens(request, request->draft_max), step.spare);
        struct draft_query query = query_of(seat, guess, most);

        propose(drafts, seat, guess);
        if (draft_queries_wants(drafts->queries, &step, &query))
                draft_queries_add(drafts->queries, &query);
}

/* Returns of how many the last token is known; these may have a guess. */
static uint32_t ask_drafters(struct drafts *drafts, uint64_t collected)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < drafts->seat_count; i++) {
                struct draft *guess = &drafts->guesses[count];
                struct seat *seat = &drafts->seats[i];
                struct request *request = seat->request;

                if (!decodes(drafts, seat) || !may_guess(request))
                        continue;
                if (seat->last_plan > collected) {
                        wait_for_token(drafts, seat, guess);
                        continue;
                }
                if (request->guide)
                        take_form(drafts, seat, guess);
                else
                        begin_guess(drafts, seat, guess);
                drafts->asked[count++] = request;
        }
        return count;
}

/* Deals for those that have a guess. */
static void make_deals(struct drafts *drafts, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                const struct draft *guess = &drafts->guesses[i];

                drafts->deals[i] = (struct deal){
                        .draft = guess,
                        .most = most_tokens(drafts->asked[i], guess->count),
                };
        }
}

static void tell(const struct deal *deal, struct request *request, struct sched *sched,
                 uint64_t now_ns)
{
        request->drafts = true;
        sched_note(sched,
                   &(struct sched_event){ .kind = SCHED_DRAFT,
                                          .request = request,
                                          .tokens = deal->draft->tokens,
                                          .draft_count = deal->rows },
                   now_ns);
}

uint64_t drafts_model_ns(struct drafts *drafts)
{
        return draft_queries_ns(drafts->queries);
}

void drafts_offer(struct drafts *drafts, struct sched *sched, uint64_t collected, uint64_t now_ns)
{
        struct draft_step step;
        uint32_t rows, count;

        if (!drafts->drafts_max)
                return;
        if (drafts->answers)
                answers_index(drafts->answers, INDEX_AT_ONCE);
        rows = drafts->decodes = count_decodes(drafts);
        if (!rows || !may_pay(drafts, rows))
                return;
        step = step_of(drafts);
        if (drafts->forgot_at != collected)
                draft_queries_forget(drafts->queries);
        drafts->forgot_at = collected;
        count = ask_drafters(drafts, collected);
        draft_queries_ask(drafts->queries, &step);
        make_deals(drafts, count);
        deal_rows(&drafts->costs, rows, rows, step.spare, drafts->deals, count);
        for (uint32_t i = 0; i < count; i++) {
                if (drafts->deals[i].rows)
                        tell(&drafts->deals[i], drafts->asked[i], sched, now_ns);
                else if (drafts->guesses[i].count && !drafts->always)
                        pass(drafts, seat_of(drafts, drafts->asked[i]));
        }
}

void drafts_step(struct drafts *drafts, uint32_t rows, uint64_t ns)
{
        if (!drafts->drafts_max || drafts->always)
                return;
        step_costs_note(&drafts->costs, rows, ns);
}

static void count(struct drafts *drafts, struct request *request, const struct seat *seat,
                  uint32_t tried, uint32_t right)
{
        uint32_t predicted = drafter_predicted(seat->drafter);

        counter_add(&drafts->stats->drafted, tried);
        counter_add(&drafts->stats->drafts_right, right);
        for (uint32_t i = 0; i < tried; i++) {
                counter_add(&drafts->stats->drafted_by_depth[i], 1);
                counter_add(&drafts->stats->drafts_right_by_depth[i], i < right);
                request->drafted_by_depth[i]++;
                request->drafts_right_by_depth[i] += i < right;
        }
        request->draft_steps++;
        request->drafted += tried;
        request->drafts_right += right;
        request->predicted += least(tried, predicted);
        request->predictions_right += least(right, predicted);
}

void drafts_learn(struct drafts *drafts, struct request *request, uint32_t tried, uint32_t right)
{
        struct seat *seat = seat_of(drafts, request);

        count(drafts, request, seat, tried, right);
        if (request->state != REQUEST_DECODE || drafts->always)
                return;
        if (drafter_learn(seat->drafter, tried, right))
                draft_queries_learn(drafts->queries, seat->drafter);
}
