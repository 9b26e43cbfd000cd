#include "daemon/engine/sampler.h"

#include <assert.h>

#include "daemon/constraint/guide.h"
#include "daemon/draw/asking.h"
#include "daemon/draw/history.h"
#include "daemon/draw/mask.h"
#include "daemon/draw/reasoning-limit.h"
#include "daemon/model/served.h"

/* The tokens that the draw behind `guesses` tokens may take by its masks; NULL: all. */
static const uint32_t *legal_mask(const struct request *request, uint32_t guesses)
{
        if (request->asking && request->asking->mask)
                return request->asking->mask;
        return request->guide ? guide_mask(request->guide, guesses) : NULL;
}

/* Asks for the numbers that are sent with the token. */
static void show(const struct request *request, struct pick *pick)
{
        const struct sampling *asked = &request->sampling;
        const struct asking *asking = request->asking;

        pick->logprobs =
                asked->row_entries > asked->logprobs ? asked->row_entries : asked->logprobs;
        pick->log_sum = asked->row_entries > 0;
        pick->row = asking && asking->whole_row ? 1 + asking->row_copy : 0;
}

void sampler_draw(const struct request *request, uint32_t position, struct pick *ret_pick)
{
        const struct sampling *asked = &request->sampling;

        *ret_pick = (struct pick){
                .temperature = asked->temperature,
                .top_p = asked->top_p,
                .min_p = asked->min_p,
                .top_k = asked->top_k,
                .seed = asked->seed,
                .sample_index = asked->sample_index,
                .position = position,
                .n_sigma = asked->n_sigma,
                .typical = asked->typical,
                .xtc_chance = asked->xtc_chance,
                .xtc_least = asked->xtc_least,
                .temperature_range = asked->temperature_range,
                .temperature_exponent = asked->temperature_exponent,
                .order = asked->temperature_last ? TEMPERATURE_LAST : TEMPERATURE_FIRST,
                .mirostat = asked->mirostat_tau > 0,
                .mu = request->mu,
        };
}

/* Nothing is drawn. */
static void take(struct pick *pick, uint32_t token)
{
        pick->given = 1 + token;
        pick->mirostat = false;
}

/* A token that is forced is drawn whatever the rules say, if the guide lets it. */
static void force(const struct request *request, uint32_t position, const uint32_t *legal,
                  struct pick *pick)
{
        uint32_t token = reasoning_limit_next(request->reasoning_limit, request->sequence.tokens,
                                              position, request->submitted_count);

        if (token != REASONING_LIMIT_NONE && (!legal || mask_has(legal, token)))
                take(pick, token);
}

void sampler_pick(const struct request *request, const struct pick_space *space, uint32_t position,
                  struct pick *ret_pick)
{
        const struct sequence *sequence = &request->sequence;
        const uint32_t *legal = legal_mask(request, position - sequence->token_count);

        sampler_draw(request, position, ret_pick);
        show(request, ret_pick);
        ret_pick->mask = legal;
        if (request->history) {
                assert(space ? position > sequence->token_count
                             : position == sequence->token_count);
                history_pick(request->history, space, sequence->tokens, position,
                             request->submitted_count, ret_pick);
        } else if (request->rules) {
                rules_pick(request->rules, position - request->submitted_count, ret_pick);
        }
        /* Where the text must end, no rule keeps it from that. */
        if (request->guide && request->guide->state == GUIDE_WHOLE)
                ret_pick->mask = legal;
        if (request->reasoning_limit && position == sequence->token_count + 1)
                reasoning_limit_keep(request->reasoning_limit);
        if (request->reasoning_limit)
                force(request, position, legal, ret_pick);
}

void sampler_return(const struct request *request)
{
        if (request->reasoning_limit)
                reasoning_limit_return(request->reasoning_limit);
        if (request->history)
                history_return(request->history, request->sequence.tokens,
                               request->sequence.token_count, request->submitted_count);
}

void sampler_score(const struct request *request, uint32_t position, struct pick *ret_pick)
{
        sampler_draw(request, position, ret_pick);
        take(ret_pick, request->sequence.tokens[position]);
        ret_pick->logprobs = request->prompt_logprobs;
}

void sampler_learn(struct request *request, float surprise)
{
        const struct sampling *asked = &request->sampling;

        request->mu -= asked->mirostat_eta * (surprise - asked->mirostat_tau);
}

static uint32_t find(const uint32_t *tokens, uint32_t count, uint32_t token)
{
        uint32_t i = 0;

        while (i < count && tokens[i] != token)
                i++;
        return i;
}

uint32_t sampler_stop_token(const struct request *request, uint32_t token)
{
        return find(request->stop_tokens, request->stop_token_count, token);
}

enum sched_verdict sampler_judge(const struct request *request, uint32_t token)
{
        const struct traits *traits = &request->model->traits;

        if (token == PICK_NOT_FINITE)
                return SCHED_NUMERIC;
        if (token == PICK_NONE_LEGAL)
                return SCHED_STUCK;
        if (sampler_stop_token(request, token) < request->stop_token_count)
                return SCHED_STOP;
        if (!request->ignore_eos && find(traits->eos, traits->eos_count, token) < traits->eos_count)
                return SCHED_EOS;
        return SCHED_CONTINUE;
}
