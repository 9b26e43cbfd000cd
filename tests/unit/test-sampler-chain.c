/* The words for what the draws of a request do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/draw/rules.h"
#include "daemon/edge/sampler-chain.h"
#include "daemon/model/served.h"

static struct served served = { .traits.vocab = 1000 };
static struct rules rules;

/* Draws from all tokens, under rules that change nothing. */
static struct request make_request(void)
{
        rules = (struct rules){ .penalties = { .repetition = 1, .dry_base = 1.75f } };
        return (struct request){ .model = &served,
                                 .rules = &rules,
                                 .sampling = { .temperature = 1, .top_p = 1, .xtc_least = 0.1f } };
}

static void check(const struct request *request, const char *wanted)
{
        char chain[SMV_CHAIN_BYTES];

        sampler_chain(request, chain);
        assert_string_equal(chain, wanted);
}

static void leaves_out_what_changes_nothing(void **state)
{
        struct request request = make_request();

        (void)state;
        check(&request, "draw");
        request.sampling.top_k = 1000;
        request.sampling.typical = 1;
        check(&request, "draw");
        request.rules = NULL;
        check(&request, "draw");
}

static void names_all_samplers_in_their_order(void **state)
{
        static uint32_t mask[32];
        static char opaque;
        struct request request = make_request();

        (void)state;
        rules.mask = mask;
        rules.bias_count = 1;
        rules.penalties.frequency = 0.5f;
        rules.penalties.dry_multiplier = 0.8f;
        request.reasoning_limit = (struct reasoning_limit *)(void *)&opaque;
        request.sampling = (struct sampling){ .temperature = 0.5f,
                                              .n_sigma = 1,
                                              .top_k = 40,
                                              .typical = 0.5f,
                                              .top_p = 0.9f,
                                              .min_p = 0.1f,
                                              .mirostat_tau = 5,
                                              .xtc_chance = 0.5f,
                                              .temperature_range = 1 };
        check(&request, "reasoning_limit mask bias penalties dry n_sigma dynamic_temperature top_k "
                        "typical top_p min_p mirostat xtc draw");
        request.sampling.temperature_last = true;
        request.sampling.temperature_range = 0;
        check(&request, "reasoning_limit mask bias penalties dry n_sigma top_k typical top_p min_p "
                        "mirostat xtc temperature draw");
        request.sampling.temperature = 0;
        check(&request, "reasoning_limit mask bias penalties dry greedy");
}

static void each_reason_for_a_mask_is_one(void **state)
{
        static uint32_t mask[32];
        static char opaque;
        struct request request = make_request();

        (void)state;
        rules.early = mask;
        check(&request, "mask draw");
        rules.early = NULL;
        rules.penalties.no_repeat_ngram = 3;
        check(&request, "mask draw");
        rules.penalties.no_repeat_ngram = 0;
        request.guide = (struct guide *)(void *)&opaque;
        check(&request, "mask draw");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(leaves_out_what_changes_nothing),
                cmocka_unit_test(names_all_samplers_in_their_order),
                cmocka_unit_test(each_reason_for_a_mask_is_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
