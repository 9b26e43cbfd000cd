/*
 * Requests whose prompts are scored, in random lives of the real scheduler: preempted, stalled,
 * cancelled, with prompts that begin alike, beside requests that are not scored.  A host of its own
 * plays the engine.  It knows what each row must want, and how many bytes each record may take.
 * The tokens of some requests come from outside, some steps after their rows; those of others are
 * guessed.
 *
 *      SMV_SCORING_SEEDS=n   lives, from SMV_SCORING_FIRST=n or 1
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/sched.h"

#define SLOTS    4u
#define ROWS     24u
#define CONTEXT  160u
#define REQUESTS 24u
#define CHANNELS 3u
#define USERS    3u
#define DEPTH    2u
#define STEPS    3000u
#define STEP_NS  UINT64_C(1000000)

#define RECORD 100u
#define SCORE  60u

struct asked {
        struct request core; /* first: asked_of() counts on it */
        bool alive, decided, restarts;
        bool outside, held; /* its tokens come from outside; its row has run, and one is due */
        uint32_t channel;
        uint32_t end_at;          /* of its tokens, this one ends it; 0: none */
        uint8_t scores[CONTEXT];  /* of each position, how often it was scored */
        uint32_t scored, planned; /* positions, from the front */
        bool drafts;              /* its tokens are guessed; the guess for the next plan: */
        uint32_t draft_count, draft[SCHED_DRAFT_MAX];
};

struct flown {
        uint64_t number;
        uint32_t count;
        struct plan_row rows[ROWS];
};

static struct host {
        struct sched *sched;
        struct sched_conf conf;
        struct plan plan;
        struct asked requests[REQUESTS];
        struct flown flights[DEPTH];
        uint32_t flight_count;
        uint64_t capacity[CHANNELS], used[CHANNELS];
        uint64_t now_ns, random;
        uint64_t scores, preempted, stalled, ended, invalid, answers, drafted, confirmed;
} host;

static uint32_t below(uint32_t n)
{
        host.random = host.random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        return (uint32_t)((host.random >> 33) % n);
}

static struct asked *asked_of(const struct request *request)
{
        return &host.requests[(const struct asked *)(const void *)request - host.requests];
}

static void note(const struct sched_event *event)
{
        sched_note(host.sched, event, host.now_ns);
        sched_check(host.sched);
}

static void begin(uint64_t seed)
{
        host = (struct host){ .random = seed * UINT64_C(0x9e3779b97f4a7c15) };
        host.conf = (struct sched_conf){
                .blocks = 12 + below(24),
                .slots = SLOTS,
                .rows = ROWS,
                .context = CONTEXT,
                .depth = 1 + below(DEPTH),
                .drafts = below(2) * below(20),
                .requests_max = REQUESTS,
                .channels = CHANNELS,
                .stall_timeout_ns = 1000000 * STEP_NS,
                .stall_preempt_ns = below(2) ? 5 * STEP_NS : 0,
                .preemptions_max = below(3) ? 4 : 0,
                .lead_ns = 3 * STEP_NS,
                .promote_ns = 100 * STEP_NS,
                .prefix = { .swap_blocks = below(2) ? 8 : 0 },
        };
        for (uint32_t i = 0; i < REQUEST_PRIORITY_N; i++)
                host.conf.learned[i] = below(2);
        for (uint32_t i = 0; i < CHANNELS; i++)
                host.capacity[i] = RECORD + below(30 * SCORE);
        assert_int_equal(sched_new(&host.conf, &host.sched), 0);
        assert_int_equal(plan_init(&host.plan, &host.conf), 0);
        host.now_ns = 1;
}

/* Prompts of few texts, so that many begin alike; most are scored. */
static void submit(void)
{
        uint32_t count = 1 + below(below(3) ? 40 : 110), text = below(3), number = 0, most;
        bool is_scored = below(3);
        struct asked *asked;

        while (number < REQUESTS && host.requests[number].alive)
                number++;
        most = is_scored && !below(3) ? 0 : 1 + below(20);
        if (number == REQUESTS || sched_fits(&host.conf, count, most) != SMV_OK)
                return;
        asked = &host.requests[number];
        *asked = (struct asked){ .alive = true,
                                 .channel = below(CHANNELS),
                                 .end_at = most ? below(2) * (1 + below(most)) : 0,
                                 .outside = most && !below(4),
                                 .drafts = below(2) };
        asked->core = (struct request){ .number = number,
                                        .uid = below(USERS),
                                        .priority = (enum request_priority)below(3),
                                        .prompt_count = count,
                                        .max_tokens = most,
                                        .prompt_logprobs = is_scored,
                                        .alone = asked->outside,
                                        .drafts = asked->drafts,
                                        .record_bytes_max = most ? RECORD : 0,
                                        .score_bytes_max = is_scored ? SCORE : 0,
                                        .state = REQUEST_WAITING };
        asked->core.sequence = (struct sequence){ .request = &asked->core,
                                                  .token_count = count,
                                                  .slot = SEQUENCE_NO_SLOT };
        asked->core.sequence.tokens = malloc((count + most) * sizeof(uint32_t));
        assert_non_null(asked->core.sequence.tokens);
        for (uint32_t i = 0; i < count; i++)
                asked->core.sequence.tokens[i] = 100 * text + (i > count / 2 ? below(2) : i % 7);
        note(&(struct sched_event){
                .kind = SCHED_SUBMIT, .request = &asked->core, .channel = asked->channel });
}

/* ---- a plan ---- */

static enum plan_want wanted(const struct asked *asked, uint32_t position)
{
        const struct request *request = &asked->core;

        if (position + 1 < request->sequence.token_count)
                return request->prompt_logprobs && position + 1 < request->prompt_count &&
                                       position >= asked->scored
                               ? PLAN_SCORE
                               : PLAN_NOTHING;
        return PLAN_LOGITS;
}

/*
 * A row of a score follows all that were scored before.  After a preemption, rows begin anywhere
 * before the first position that is still to be scored.
 */
static void check_row(struct asked *asked, const struct plan_row *row, bool first)
{
        bool restarts = first && row->position < asked->planned;

        assert_true(asked->alive && !asked->decided && !asked->held);
        if (first && (restarts || row->position > asked->planned))
                asked->planned = row->position;
        assert_int_equal(row->position, asked->planned);
        assert_int_equal(row->want, wanted(asked, row->position));
        if (asked->core.prompt_logprobs && row->position + 1 < asked->core.prompt_count)
                assert_true(row->position <= asked->scored);
        if (row->want == PLAN_SCORE) {
                assert_int_equal(row->position, asked->scored);
                asked->scored++;
        }
        asked->planned++;
}

/* Is it of a draft: behind a row of the same request that gives a token? */
static bool is_drafted(const struct plan_row *row, const struct plan_row *rows)
{
        return row > rows && row[-1].sequence == row->sequence && row[-1].want == PLAN_LOGITS;
}

/* Its position counts only when its token is confirmed. */
static void check_drafted(struct asked *asked, const struct plan_row *row)
{
        uint32_t number = row->position - asked->planned;

        assert_true(asked->alive && !asked->decided && !asked->held);
        assert_true(number < asked->draft_count);
        assert_int_equal(row->position, row[-1].position + 1);
        assert_int_equal(row->want, PLAN_LOGITS);
        assert_int_equal(row->from_row, PLAN_TOKEN);
        assert_int_equal(row->token, asked->draft[number]);
        host.drafted++;
}

static void launch(void)
{
        struct flown *flight = &host.flights[host.flight_count++];
        uint32_t wants = 0, drafted = 0;

        flight->number = host.plan.number;
        flight->count = host.plan.row_count;
        memcpy(flight->rows, host.plan.rows, flight->count * sizeof(*flight->rows));
        for (uint32_t i = 0; i < flight->count; i++) {
                const struct plan_row *row = &flight->rows[i];

                if (is_drafted(row, flight->rows)) {
                        check_drafted(asked_of(row->sequence->request), row);
                        drafted++;
                        continue;
                }
                check_row(asked_of(row->sequence->request), row,
                          !i || row[-1].sequence != row->sequence);
                wants += row->want != PLAN_NOTHING;
        }
        assert_true(wants <= SLOTS && drafted <= host.conf.drafts);
}

static void take_ends(void)
{
        for (uint32_t i = 0; i < host.plan.end_count; i++) {
                const struct plan_end *end = &host.plan.ends[i];
                struct asked *asked = asked_of(end->request);

                asked->decided = true;
                host.ended++;
                if (end->reason == SMV_END_ERROR || end->reason == SMV_END_CANCELLED ||
                    !asked->core.prompt_logprobs)
                        continue;
                for (uint32_t at = 0; at + 1 < asked->core.prompt_count; at++)
                        assert_int_equal(asked->scores[at], 1);
        }
        for (uint32_t i = 0; i < host.plan.retired_count; i++) {
                struct asked *asked = asked_of(host.plan.retired[i]);

                host.preempted += asked->core.preemptions > 0 && asked->core.prompt_logprobs;
                free(asked->core.sequence.tokens);
                asked->alive = false;
        }
}

/* ---- results ---- */

static void take_bytes(const struct asked *asked, uint32_t most)
{
        uint32_t bytes = most ? 1 + below(most) : 0;

        assert_true(most <= host.capacity[asked->channel] - host.used[asked->channel]);
        host.used[asked->channel] += bytes;
}

static void take_score(struct asked *asked, const struct plan_row *row)
{
        if (asked->core.state == REQUEST_ENDING)
                return;
        if (!below(2000)) {
                host.invalid++;
                note(&(struct sched_event){ .kind = SCHED_INVALID, .request = &asked->core });
                assert_int_equal(asked->core.state, REQUEST_ENDING);
                return;
        }
        take_bytes(asked, SCORE);
        asked->scores[row->position]++;
        host.scores++;
}

static enum sched_verdict judge(const struct asked *asked)
{
        uint32_t made = asked->core.sequence.token_count - asked->core.prompt_count;

        return asked->end_at && made + 1 == asked->end_at ? SCHED_EOS : SCHED_CONTINUE;
}

/* Returns whether the result of the next row is due: its token was guessed, and is this one. */
static bool take_token(const struct flown *flight, uint32_t row, struct asked *asked)
{
        const struct plan_row *rows = flight->rows, *next = &rows[row + 1];
        bool goes_on = row + 1 < flight->count && is_drafted(next, rows) && below(3);
        struct request *request = &asked->core;
        bool is_ending = request->state == REQUEST_ENDING;
        enum sched_verdict verdict = judge(asked);

        asked->held = !is_ending && asked->outside;
        if (!is_ending && !asked->held)
                take_bytes(asked, (uint32_t)request->record_bytes_max);
        if (is_drafted(&rows[row], rows)) {
                asked->planned += !is_ending;
                host.confirmed++;
        }
        note(&(struct sched_event){ .kind = SCHED_RESULT,
                                    .plan = flight->number,
                                    .row = row,
                                    .token = goes_on ? next->token : 300 + below(300),
                                    .verdict = asked->held ? SCHED_LATER : verdict });
        return goes_on && !asked->held && verdict == SCHED_CONTINUE;
}

/* Some of the tokens that are due come; or all of them. */
static void hear_tokens(bool all)
{
        for (uint32_t i = 0; i < REQUESTS; i++) {
                struct asked *asked = &host.requests[i];

                if (!asked->alive || !asked->held || (!all && below(5)))
                        continue;
                asked->held = false;
                host.answers++;
                if (asked->core.state != REQUEST_ENDING)
                        take_bytes(asked, (uint32_t)asked->core.record_bytes_max);
                note(&(struct sched_event){ .kind = SCHED_TOKEN,
                                            .request = &asked->core,
                                            .token = below(300),
                                            .verdict = judge(asked) });
        }
}

static void collect(void)
{
        struct flown flight = host.flights[0];

        for (uint32_t i = 0; i < flight.count; i++) {
                struct asked *asked = asked_of(flight.rows[i].sequence->request);

                if (flight.rows[i].want == PLAN_SCORE)
                        take_score(asked, &flight.rows[i]);
                else if (flight.rows[i].want == PLAN_LOGITS && !take_token(&flight, i, asked))
                        while (i + 1 < flight.count && is_drafted(&flight.rows[i + 1], flight.rows))
                                i++;
        }
        note(&(struct sched_event){ .kind = SCHED_DONE, .plan = flight.number });
        host.flights[0] = host.flights[1];
        host.flight_count--;
}

static bool is_due(const struct asked *asked)
{
        for (uint32_t i = 0; i < host.flight_count; i++)
                for (uint32_t row = 0; row < host.flights[i].count; row++)
                        if (host.flights[i].rows[row].sequence == &asked->core.sequence)
                                return true;
        return asked->held;
}

/* Tokens of drafts are below those that are not guessed. */
static void draft_some(void)
{
        for (uint32_t i = 0; i < REQUESTS; i++) {
                struct asked *asked = &host.requests[i];

                asked->draft_count = 0;
                if (!asked->alive || !asked->drafts || asked->core.state != REQUEST_DECODE ||
                    is_due(asked) || !below(4))
                        continue;
                asked->draft_count = below(SCHED_DRAFT_MAX + 1);
                for (uint32_t at = 0; at < asked->draft_count; at++)
                        asked->draft[at] = below(300);
                note(&(struct sched_event){ .kind = SCHED_DRAFT,
                                            .request = &asked->core,
                                            .tokens = asked->draft,
                                            .draft_count = asked->draft_count });
        }
}

/* ---- lives ---- */

static void step(bool reads)
{
        hear_tokens(reads);
        for (uint32_t i = 0; i < CHANNELS; i++) {
                if (reads || !below(6))
                        host.used[i] -= below((uint32_t)host.used[i] + 1);
                note(&(struct sched_event){ .kind = SCHED_SPACE,
                                            .channel = i,
                                            .free_bytes = host.capacity[i] - host.used[i] });
        }
        host.now_ns += STEP_NS;
        draft_some();
        sched_next(host.sched, host.now_ns, &host.plan);
        sched_check(host.sched);
        host.stalled += host.plan.stalled > 0;
        take_ends();
        if (host.plan.row_count)
                launch();
        if (host.flight_count && (host.flight_count == host.conf.depth || !host.plan.row_count))
                collect();
}

static void cancel_one(void)
{
        struct asked *asked = &host.requests[below(REQUESTS)];

        if (asked->alive)
                note(&(struct sched_event){ .kind = SCHED_CANCEL,
                                            .request = &asked->core,
                                            .reason = SMV_END_CANCELLED });
}

static uint32_t alive(void)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < REQUESTS; i++)
                count += host.requests[i].alive;
        return count;
}

/* When no more requests come and all readers read, every one ends. */
static void live(uint64_t seed)
{
        uint32_t rest = 0;

        begin(seed);
        for (uint32_t i = 0; i < STEPS; i++) {
                if (!below(4))
                        submit();
                if (!below(60))
                        cancel_one();
                step(false);
        }
        for (; alive(); rest++) {
                if (rest > 40000)
                        fail_msg("seed %llu: %u requests never end", (unsigned long long)seed,
                                 alive());
                step(true);
        }
        plan_deinit(&host.plan);
        sched_free(host.sched);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
        const char *text = getenv(name);

        return text ? strtoull(text, NULL, 0) : otherwise;
}

static void each_token_of_a_prompt_is_scored_exactly_once(void **state)
{
        uint64_t first = number_from("SMV_SCORING_FIRST", 1), scores = 0, preempted = 0,
                 stalled = 0, drafted = 0, confirmed = 0;
        uint64_t last = number_from("SMV_SCORING_SEEDS", 30), ended = 0, invalid = 0, answers = 0;

        (void)state;
        for (uint64_t seed = first; seed <= last; seed++) {
                live(seed);
                scores += host.scores;
                preempted += host.preempted;
                stalled += host.stalled;
                ended += host.ended;
                invalid += host.invalid;
                answers += host.answers;
                drafted += host.drafted;
                confirmed += host.confirmed;
        }
        print_message("# %llu requests, %llu scores, %llu scored requests preempted, %llu plans "
                      "with stalls, %llu not valid, %llu tokens from outside, %llu rows of drafts, "
                      "%llu of them confirmed\n",
                      (unsigned long long)ended, (unsigned long long)scores,
                      (unsigned long long)preempted, (unsigned long long)stalled,
                      (unsigned long long)invalid, (unsigned long long)answers,
                      (unsigned long long)drafted, (unsigned long long)confirmed);
        assert_true(scores && preempted && stalled && invalid && answers && confirmed);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_token_of_a_prompt_is_scored_exactly_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
