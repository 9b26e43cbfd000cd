#include "daemon/engine/sampler.h"
#include "daemon/model/served.h"

void sampler_pick(const struct request *request, uint32_t position, struct pick *ret_pick)
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
                .logprobs = asked->logprobs,
        };
}

static bool among(const uint32_t *tokens, uint32_t count, uint32_t token)
{
        for (uint32_t i = 0; i < count; i++) {
                if (tokens[i] == token)
                        return true;
        }
        return false;
}

enum sched_verdict sampler_judge(const struct request *request, uint32_t token)
{
        const struct traits *traits = &request->model->traits;

        if (token == PICK_NOT_FINITE)
                return SCHED_NUMERIC;
        if (among(request->stop_tokens, request->stop_token_count, token))
                return SCHED_STOP;
        if (!request->ignore_eos && among(traits->eos, traits->eos_count, token))
                return SCHED_EOS;
        return SCHED_CONTINUE;
}
