#include "daemon/edge/asked-rules.h"

#include <string.h>

#include "base/error.h"
#include "daemon/edge/msgpack-reader.h"
#include "daemon/edge/wire.h"

/* As in llama.cpp. */
static const char *const usual_breakers[] = { "\n", ":", "\"", "*" };

/* Of no values: an empty one. */
static struct cursor cursor_of(const struct wire_values *values)
{
        const uint8_t *end = values->bytes ? values->bytes + values->size : NULL;

        return (struct cursor){ values->bytes, end };
}

/* Reads a bias: an array of an id and a number. */
static void next_bias(struct cursor *cursor, uint32_t *ret_id, float *ret_bias)
{
        struct item item;

        item_next(cursor, &item);
        item_next(cursor, &item);
        *ret_id = (uint32_t)item.u;
        item_next(cursor, &item);
        *ret_bias = (float)(item.kind == ITEM_FLOAT      ? item.number
                            : item.kind == ITEM_NEGATIVE ? (double)item.negative
                                                         : (double)item.u);
}

static uint32_t next_id(struct cursor *cursor)
{
        struct item item;

        item_next(cursor, &item);
        return (uint32_t)item.u;
}

static struct item next_text(struct cursor *cursor)
{
        struct item item;

        item_next(cursor, &item);
        return item;
}

static int check_id(const struct served *served, uint32_t id, uint32_t index, enum wire_field field,
                    const struct wire_request *asked, struct wire_problem *ret_problem)
{
        const char *name = wire_row(field)->name;

        if (id < served->traits.vocab)
                return 0;
        return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, name,
                           "%s has %u at index %u; the largest id is %u", name, id, index,
                           served->traits.vocab - 1);
}

static int check_ids(const struct served *served, const struct wire_values *ids,
                     enum wire_field field, const struct wire_request *asked,
                     struct wire_problem *ret_problem)
{
        struct cursor cursor = cursor_of(ids);
        int r = 0;

        for (uint32_t i = 0; !r && i < ids->count; i++)
                r = check_id(served, next_id(&cursor), i, field, asked, ret_problem);
        return error_pass(r);
}

static bool has_reasoning(const struct served *served)
{
        return served->dialect && dialect_has_reasoning(served->dialect);
}

int asked_rules_check(const struct served *served, const struct wire_request *asked,
                      struct wire_problem *ret_problem)
{
        struct cursor biases = cursor_of(&asked->logit_bias);
        int r = 0;

        for (uint32_t i = 0; !r && i < asked->logit_bias.count; i++) {
                uint32_t id;
                float bias;

                next_bias(&biases, &id, &bias);
                r = check_id(served, id, i, WIRE_F_LOGIT_BIAS, asked, ret_problem);
        }
        if (!r)
                r = check_ids(served, &asked->allowed_tokens, WIRE_F_ALLOWED_TOKENS, asked,
                              ret_problem);
        if (!r)
                r = check_ids(served, &asked->banned_tokens, WIRE_F_BANNED_TOKENS, asked,
                              ret_problem);
        if (!r && wire_has(asked, WIRE_F_REASONING_MAX) && !has_reasoning(served))
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "reasoning_max",
                                "the model has no reasoning that could be limited: no marks of it "
                                "are known");
        return error_pass(r);
}

static size_t bytes_of(const struct wire_values *texts)
{
        struct cursor cursor = cursor_of(texts);
        size_t bytes = 0;

        for (uint32_t i = 0; i < texts->count; i++)
                bytes += next_text(&cursor).count;
        return bytes;
}

static bool asks_for_any(const struct wire_request *asked)
{
        const struct penalties *p = &asked->penalties;

        return asked->logit_bias.count || asked->allowed_tokens.count ||
               asked->banned_tokens.count || asked->banned_texts.count || p->presence != 0 ||
               p->frequency != 0 || (p->repetition > 0 && p->repetition != 1) ||
               p->dry_multiplier > 0 || p->no_repeat_ngram || p->min_tokens;
}

static struct rules_conf conf_of(const struct served *served, const struct wire_request *asked)
{
        bool breaks = asked->penalties.dry_multiplier > 0;
        bool usual = breaks && !wire_has(asked, WIRE_F_DRY_BREAKERS);
        const size_t usual_count = sizeof(usual_breakers) / sizeof(*usual_breakers);
        struct rules_conf conf = {
                .order = served->piece_order,
                .penalties = asked->penalties,
                /* Whether calls are constrained is known when their tools are read. */
                .guided = asked->constraint.count || asked->chat.tools.count ||
                          asked->ask == SMV_ASK_MASK,
                .bias_count = asked->logit_bias.count,
                .allows = asked->allowed_tokens.count,
                .bans = asked->banned_tokens.count,
                .text_count = asked->banned_texts.count,
                .text_bytes = bytes_of(&asked->banned_texts),
        };

        if (usual) {
                conf.breaker_count = usual_count;
                conf.text_bytes += usual_count; /* each has one byte */
        } else if (breaks) {
                conf.breaker_count = asked->dry_breakers.count;
                conf.text_bytes += bytes_of(&asked->dry_breakers);
        }
        return conf;
}

static void add_lists(struct rules *rules, const struct wire_request *asked)
{
        struct cursor biases = cursor_of(&asked->logit_bias);
        struct cursor allowed = cursor_of(&asked->allowed_tokens);
        struct cursor banned = cursor_of(&asked->banned_tokens);
        struct cursor texts = cursor_of(&asked->banned_texts);

        for (uint32_t i = 0; i < asked->logit_bias.count; i++) {
                uint32_t id;
                float bias;

                next_bias(&biases, &id, &bias);
                rules_bias(rules, id, bias);
        }
        for (uint32_t i = 0; i < asked->allowed_tokens.count; i++)
                rules_allow(rules, next_id(&allowed));
        for (uint32_t i = 0; i < asked->banned_tokens.count; i++)
                rules_ban(rules, next_id(&banned));
        for (uint32_t i = 0; i < asked->banned_texts.count; i++) {
                struct item text = next_text(&texts);

                rules_ban_text(rules, text.bytes, text.count);
        }
}

static void add_breakers(struct rules *rules, const struct wire_request *asked)
{
        struct cursor breakers = cursor_of(&asked->dry_breakers);

        if (asked->penalties.dry_multiplier <= 0)
                return;
        for (size_t i = 0; i < sizeof(usual_breakers) / sizeof(*usual_breakers); i++)
                if (!wire_has(asked, WIRE_F_DRY_BREAKERS))
                        rules_break(rules, usual_breakers[i], 1);
        for (uint32_t i = 0; i < asked->dry_breakers.count; i++) {
                struct item text = next_text(&breakers);

                rules_break(rules, text.bytes, text.count);
        }
}

/* The model's end tokens, unless they are ignored, and the request's stop tokens. */
static void add_ends(struct rules *rules, const struct served *served,
                     const struct wire_request *asked)
{
        if (!asked->penalties.min_tokens)
                return;
        for (uint32_t i = 0; !asked->ignore_eos && i < served->traits.eos_count; i++)
                rules_end(rules, served->traits.eos[i]);
        for (uint32_t i = 0; i < asked->stop_token_count; i++)
                rules_end(rules, asked->stop_tokens[i]);
}

int asked_rules_make(const struct served *served, const struct wire_request *asked,
                     struct rules **ret_rules, struct wire_problem *ret_problem)
{
        struct rules_conf conf;
        struct rules *rules;
        int r;

        *ret_rules = NULL;
        if (!asks_for_any(asked))
                return 0;
        conf = conf_of(served, asked);
        r = rules_new(&conf, &rules);
        if (r)
                return error_pass(r);
        add_lists(rules, asked);
        add_breakers(rules, asked);
        add_ends(rules, served, asked);
        r = rules_seal(rules);
        if (!r) {
                *ret_rules = rules;
                return 0;
        }
        rules_unref(rules);
        if (r == RULES_E_TWICE)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "logit_bias",
                                   "logit_bias has a token twice");
        return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id,
                           conf.allows       ? "allowed_tokens"
                           : conf.bans       ? "banned_tokens"
                           : conf.text_count ? "banned_texts"
                                             : "min_tokens",
                           "no token of the model is left that may be drawn");
}

int asked_limit_make(const struct served *served, const struct wire_request *asked,
                     struct reasoning_limit **ret_limit)
{
        const struct reasoning_limit_conf conf = {
                .dialect = served->dialect,
                .tokenizer = served->tokenizer,
                .tokens_max = asked->reasoning_max,
                .calls_wanted = wire_wants_calls(asked),
                .message = asked->reasoning_end.bytes,
                .message_bytes = asked->reasoning_end.count,
        };

        *ret_limit = NULL;
        if (!wire_has(asked, WIRE_F_REASONING_MAX))
                return 0;
        return error_pass(reasoning_limit_new(&conf, ret_limit));
}
