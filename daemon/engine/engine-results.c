/*
 * What becomes of the rows that have run: tokens, scores, and the masks and answers that the next
 * draws wait for.
 *
 *      collect --> a token --> its record, SCHED_RESULT --> the next masks are asked for
 *         |                        ^                              |
 *         |                        |                              v
 *         +--> SCHED_LATER, and the client is asked      all are there: SCHED_READY
 *                     |            |
 *                     +------------+ its answer: SCHED_TOKEN
 */
#include "daemon/engine/engine-state.h"

#include <assert.h>

#include "base/error.h"
#include "base/log.h"
#include "daemon/constraint/guide.h"
#include "daemon/draw/asking.h"
#include "daemon/draw/mask.h"
#include "daemon/engine/model.h"
#include "daemon/engine/sampler.h"

#define MASK_WAIT_MIN_NS UINT64_C(100000)
#define MASK_WAIT_MAX_NS UINT64_C(1000000)

/* ---- results ---- */

/* Writes the score of one row into the ring, unless its stream is over. */
static void take_score(struct engine *engine, const struct batch *batch, uint32_t want)
{
        struct request *request = batch->want_sequences[want]->request;
        struct logprob logprobs[PICK_ENTRIES_MAX];

        if (engine->tokens[want] == PICK_NOT_FINITE) {
                engine_note(engine,
                            &(struct sched_event){ .kind = SCHED_INVALID, .request = request });
                return;
        }
        if (request->state == REQUEST_ENDING)
                return;
        model_logprobs(engine->conf.served->model, batch->step.number, want, logprobs);
        publish_score(engine->publish, request, logprobs,
                      batch->rows[batch->want[want]].position + 1);
}

static bool asks_for(const struct request *request, enum smv_ask kind)
{
        return request->asking && request->asking->kind == kind;
}

void engine_await_masks(struct engine *engine, struct request *request, uint32_t position)
{
        bool asks = asks_for(request, SMV_ASK_MASK);

        request->masks_due = (request->guide != NULL) + asks;
        if (asks)
                questions_ask(engine->questions, request, position, engine_now(engine));
}

/* Asks for the mask behind these tokens, and for those along a guess at the next ones. */
static void ask_mask(struct engine *engine, struct request *request, const uint32_t *tokens,
                     uint32_t count)
{
        struct masks_take take = { .tokens = tokens, .token_count = count };
        const struct draft *guess;

        guess = drafts_guess(engine->drafts, request, masks_ns(engine->masks), &take.ahead_most);
        take.guesses = guess->tokens;
        take.guess_count = guess->count;
        masks_take(engine->masks, request, &take);
}

/*
 * The scheduler knows these tokens, the last of which is at `position`.  A request that goes on
 * awaits its next masks.
 */
static void go_on(struct engine *engine, struct request *request, const uint32_t *tokens,
                  uint32_t count, uint32_t position)
{
        if (request->state == REQUEST_ENDING)
                return;
        if (request->guide)
                ask_mask(engine, request, tokens, count);
        if (asks_for(request, SMV_ASK_MASK))
                publish_ask(engine->publish, request, position + 1);
        engine_await_masks(engine, request, position + 1);
}

/* Shows the client what the row says, and asks it for the token at `position`. */
static void ask_token(struct engine *engine, struct request *request, uint32_t drawn,
                      uint32_t position, uint64_t now_ns)
{
        request->asking->drawn = drawn;
        publish_ask(engine->publish, request, position);
        questions_ask(engine->questions, request, position, now_ns);
}

/* Writes a row, if the request wants it, for a token that was drawn. */
static void show_row(struct engine *engine, const struct batch *batch, uint32_t want,
                     const struct logprob *entries)
{
        const struct request *request = batch->want_sequences[want]->request;
        const struct pick *pick = &batch->picks[want];
        uint32_t position = batch->rows[batch->want[want]].position + 1;

        if (pick->row)
                asking_show(request->asking, position,
                            model_row(engine->conf.served->model, batch->step.number, want));
        if (request->sampling.row_entries)
                publish_row(engine->publish, request, entries,
                            entries[pick_entries(pick) - 1].logprob, position);
}

/*
 * Writes one row's token into the ring, unless its stream is over; then tells the scheduler.  If
 * the client has to choose the token, it is asked instead.
 */
static enum sched_verdict take_result(struct engine *engine, const struct batch *batch,
                                      uint32_t want, uint64_t now_ns)
{
        struct request *request = batch->want_sequences[want]->request;
        uint32_t row = batch->want[want], token = engine->tokens[want];
        uint32_t position = batch->rows[row].position + 1;
        enum sched_verdict verdict = sampler_judge(request, token);
        bool has_token = !sched_has_no_token(verdict);
        bool asks = has_token && asks_for(request, SMV_ASK_TOKEN);

        if (request->state != REQUEST_ENDING) {
                const struct pick *pick = &batch->picks[want];
                struct logprob logprobs[PICK_ENTRIES_MAX];

                if (pick_entries(pick) && has_token)
                        model_logprobs(engine->conf.served->model, batch->step.number, want,
                                       logprobs);
                if (pick->mirostat && has_token)
                        sampler_learn(request, logprobs[pick->logprobs].logprob);
                if (has_token)
                        show_row(engine, batch, want, logprobs);
                if (!asks) {
                        engine_note_token(engine, request, now_ns);
                        verdict = publish_token(engine->publish, request, token, logprobs, position,
                                                verdict);
                }
        }
        engine_note(engine, &(struct sched_event){ .kind = SCHED_RESULT,
                                                   .plan = batch->step.number,
                                                   .row = row,
                                                   .token = token,
                                                   .verdict = asks ? SCHED_LATER : verdict });
        if (asks && request->state != REQUEST_ENDING)
                ask_token(engine, request, token, position, now_ns);
        return asks ? SCHED_LATER : verdict;
}

/*
 * A run: the row of a decode, and those of its draft.  Each result confirms the token of the next
 * row, or is the last one.  Returns how many wanted rows it has.
 */
static uint32_t take_run(struct engine *engine, const struct batch *batch, uint32_t want,
                         uint64_t now_ns)
{
        struct request *request = batch->want_sequences[want]->request;
        const uint32_t *tokens = engine->tokens + want;
        uint32_t position = batch->rows[batch->want[want]].position, count = 1, taken = 0;
        enum sched_verdict verdict;

        while (want + count < batch->step.want_count && !batch->want_scores[want + count] &&
               batch->want_sequences[want + count] == batch->want_sequences[want])
                count++;
        do {
                if (taken && request->guide) /* the mask of this row is there, too */
                        engine_note(engine, &(struct sched_event){ .kind = SCHED_READY,
                                                                   .request = request });
                verdict = take_result(engine, batch, want + taken, now_ns);
                taken++;
        } while (taken < count && verdict == SCHED_CONTINUE && request->state != REQUEST_ENDING &&
                 tokens[taken - 1] == batch->rows[batch->want[want + taken]].token);
        if (count > 1)
                drafts_learn(engine->drafts, request, count - 1, taken - 1);
        if (verdict != SCHED_LATER)
                go_on(engine, request, tokens, taken, position + taken);
        return count;
}

/*
 * Says how much of each prompt is read by now.  A request that was preempted reads its prompt
 * again, and tokens that it has made.
 */
static void tell_progress(struct engine *engine, const struct batch *batch)
{
        for (uint32_t i = 0; i < batch->step.run_count; i++) {
                const struct step_run *run = &batch->runs[i];
                struct request *request = batch->run_sequences[i]->request;
                uint32_t count = batch->rows[run->row + run->count - 1].position + 1;

                if (request->state == REQUEST_ENDING ||
                    request->sequence.token_count > request->prompt_count)
                        continue;
                assert(count <= request->prompt_count);
                request_tell_fact(request, REQUEST_READ, count);
                if (!request->progress)
                        continue;
                publish_progress(engine->publish, request, count,
                                 sched_pending_bytes(engine->sched, request->channel->number));
        }
}

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* Each row is for the next token of a stream, or for a guess.  A prompt's rows may want scores. */
static bool has_only_decodes(const struct batch *batch)
{
        bool only = batch->step.want_count == batch->step.row_count;

        for (uint32_t i = 0; i < batch->step.want_count && only; i++)
                only = !batch->want_scores[i];
        return only;
}

void engine_collect(struct engine *engine)
{
        uint64_t number = engine->collected + 1;
        const struct batch *batch = engine_batch(engine, number);
        uint64_t now;
        int r;

        r = engine->failed ? engine->failed
                           : model_collect(engine->conf.served->model, number, engine->tokens);
        if (r) {
                engine_fail(engine, error_pass(r));
                for (uint32_t i = 0; i < batch->step.want_count; i++)
                        engine->tokens[i] = PICK_NOT_FINITE;
        }
        now = engine_now(engine);
        engine->step_ns = now - engine->busy_from_ns;
        /* With two plans in flight, the draft model works between two collects. */
        engine->step_ns -= least(engine->step_ns, drafts_model_ns(engine->drafts));
        counter_add(&engine->conf.stats->busy_ns, engine->step_ns);
        engine->busy_from_ns = now;
        if (!r)
                tell_progress(engine, batch);
        if (!r && has_only_decodes(batch))
                drafts_step(engine->drafts, batch->step.row_count, engine->step_ns);
        for (uint32_t i = 0; i < batch->step.want_count;) {
                if (batch->want_scores[i])
                        take_score(engine, batch, i++);
                else
                        i += take_run(engine, batch, i, now);
        }
        engine_note(engine, &(struct sched_event){ .kind = SCHED_DONE, .plan = number });
        engine->collected = number;
}
/* ---- masks and answers ---- */

/* How long to wait for masks between two steps: a small part of a step. */
static uint64_t mask_wait_ns(const struct engine *engine)
{
        uint64_t part = engine->step_ns / 16;

        return part < MASK_WAIT_MIN_NS   ? MASK_WAIT_MIN_NS
               : part > MASK_WAIT_MAX_NS ? MASK_WAIT_MAX_NS
                                         : part;
}

/* One more mask of the next token is there. */
static void take_mask(struct engine *engine, struct request *request)
{
        assert(request->masks_due);
        if (--request->masks_due)
                return;
        if (request->guide && asks_for(request, SMV_ASK_MASK))
                asking_narrow(request->asking, request->guide->mask);
        engine_note(engine, &(struct sched_event){ .kind = SCHED_READY, .request = request });
}

/*
 * A stream without end tokens of its model ends where its text is whole.  All others go on until
 * they draw an end token, which is all that is legal then.
 */
static void on_mask(struct engine *engine, struct request *request)
{
        const struct guide *guide = request->guide;

        if (guide->state == GUIDE_SPENT) {
                log_debug("mask_spent stream=%u why=%s", request->stream, guide->why);
                engine_cancel(engine, request, SMV_END_ERROR, SMV_CONSTRAINT);
        } else if (guide->state == GUIDE_WHOLE && !guide->end_count) {
                engine_cancel(engine, request, SMV_END_EOS, SMV_OK);
        } else {
                take_mask(engine, request);
        }
}

static void hear_masks(struct engine *engine)
{
        struct request *request;

        masks_wait(engine->masks, mask_wait_ns(engine));
        while ((request = masks_next(engine->masks)))
                on_mask(engine, request);
}

/* A token of the vocabulary that the guide allows.  The client may break its own rules. */
static bool is_legal(const struct request *request, uint32_t token)
{
        return token < request->asking->vocab &&
               (!request->guide || mask_has(request->guide->mask, token));
}

/* The client has chosen the token of a row that has run; or the daemon has, in its place. */
static void take_token(struct engine *engine, struct request *request, uint32_t token)
{
        uint32_t position = request->asking->position;
        enum sched_verdict verdict = sampler_judge(request, token);

        engine_note_token(engine, request, engine_now(engine));
        verdict = publish_token(engine->publish, request, token, NULL, position, verdict);
        engine_note(engine, &(struct sched_event){ .kind = SCHED_TOKEN,
                                                   .request = request,
                                                   .token = token,
                                                   .verdict = verdict });
        go_on(engine, request, &token, 1, position);
}

static void on_answer(struct engine *engine, const struct heard *heard)
{
        struct request *request = heard->request;
        struct asking *asking = request->asking;
        bool as_drawn = heard->is_late || heard->token == SMV_TOKEN_AS_DRAWN;

        if (heard->is_late)
                counter_add(&engine->conf.stats->answers_late, 1);
        asking->late += heard->is_late && asking->late_draws;
        if (heard->is_late && !asking->late_draws)
                engine_cancel(engine, request, SMV_END_ERROR, SMV_NO_ANSWER);
        else if (asking->kind == SMV_ASK_MASK)
                take_mask(engine, request);
        else if (as_drawn || is_legal(request, heard->token))
                take_token(engine, request, as_drawn ? asking->drawn : heard->token);
        else
                engine_cancel(engine, request, SMV_END_ERROR, SMV_BAD_ANSWER);
}

static void hear_answers(struct engine *engine)
{
        struct heard heard;

        while (questions_next(engine->questions, engine_now(engine), &heard))
                on_answer(engine, &heard);
}

void engine_hear(struct engine *engine)
{
        hear_masks(engine);
        hear_answers(engine);
}
