#include "daemon/edge/sampler-chain.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "daemon/draw/asking.h"
#include "daemon/draw/rules.h"
#include "daemon/model/served.h"

struct word {
        bool is_in;
        const char *name;
};

static void add(char *chain, const struct word *words, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                size_t bytes = strlen(chain);

                if (!words[i].is_in)
                        continue;
                assert(bytes + 1 + strlen(words[i].name) < SMV_CHAIN_BYTES);
                snprintf(chain + bytes, SMV_CHAIN_BYTES - bytes, "%s%s", bytes ? " " : "",
                         words[i].name);
        }
}

static void add_rules(const struct request *request, char *chain)
{
        static const struct rules none = { .penalties = { .repetition = 1 } };
        const struct rules *rules = request->rules ? request->rules : &none;
        const struct penalties *p = &rules->penalties;
        const struct word words[] = {
                { request->reasoning_limit, "reasoning_limit" },
                { request->guide || (request->asking && request->asking->mask) || rules->mask ||
                          rules->early || p->no_repeat_ngram,
                  "mask" },
                { rules->bias_count, "bias" },
                { p->presence != 0 || p->frequency != 0 || p->repetition != 1, "penalties" },
                { p->dry_multiplier > 0, "dry" },
        };

        add(chain, words, sizeof(words) / sizeof(*words));
}

static void add_cuts(const struct request *request, char *chain)
{
        const struct sampling *s = &request->sampling;
        const uint32_t vocab = request->model->traits.vocab;
        bool is_changed = s->temperature != 1 || s->temperature_range > 0;
        const char *temperature = s->temperature_range > 0 ? "dynamic_temperature" : "temperature";
        const struct word words[] = {
                { s->n_sigma > 0, "n_sigma" },
                { is_changed && !s->temperature_last, temperature },
                { s->top_k && s->top_k < vocab, "top_k" },
                { s->typical > 0 && s->typical < 1, "typical" },
                { s->top_p < 1, "top_p" },
                { s->min_p > 0, "min_p" },
                { s->mirostat_tau > 0, "mirostat" },
                { s->xtc_chance > 0, "xtc" },
                { is_changed && s->temperature_last, temperature },
                { true, "draw" },
        };

        add(chain, words, sizeof(words) / sizeof(*words));
}

void sampler_chain(const struct request *request, char ret_chain[SMV_CHAIN_BYTES])
{
        static const struct word greedy = { true, "greedy" };

        *ret_chain = '\0';
        add_rules(request, ret_chain);
        if (request->sampling.temperature == 0)
                add(ret_chain, &greedy, 1);
        else
                add_cuts(request, ret_chain);
}
