#include "daemon/draw/rules.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/draw/mask.h"

/* Memory for `count` members; NULL and no failure if there are none. */
static void *make(struct rules *rules, size_t count, size_t size, bool *failed)
{
        void *memory = count ? calloc(count, size) : NULL;

        rules->bytes += count * size;
        *failed |= count && !memory;
        return memory;
}

int rules_new(const struct rules_conf *conf, struct rules **ret_rules)
{
        uint32_t words = (conf->order->count + 31) / 32;
        bool masks = conf->allows || conf->bans || conf->text_count;
        struct rules *rules = calloc(1, sizeof(*rules));
        bool failed = !rules;

        if (failed)
                return error_raise(-ENOMEM);
        assert(conf->bias_count <= SMV_BIASES_MAX);
        assert(conf->penalties.repeat_window <= SMV_WINDOW_MAX);
        assert(conf->penalties.dry_window <= SMV_WINDOW_MAX && conf->penalties.repetition > 0);
        *rules = (struct rules){ .references = 1,
                                 .penalties = conf->penalties,
                                 .order = conf->order,
                                 .guided = conf->guided,
                                 .mask_words = words,
                                 .bytes = sizeof(*rules) };
        rules->biases = make(rules, conf->bias_count, sizeof(*rules->biases), &failed);
        rules->mask = make(rules, masks ? words : 0, sizeof(uint32_t), &failed);
        rules->early =
                make(rules, conf->penalties.min_tokens ? words : 0, sizeof(uint32_t), &failed);
        rules->texts = make(rules, conf->text_count, sizeof(*rules->texts), &failed);
        rules->breakers = make(rules, conf->breaker_count, sizeof(*rules->breakers), &failed);
        rules->text_memory = make(rules, conf->text_bytes, 1, &failed);
        if (failed) {
                rules_unref(rules);
                return error_raise(-ENOMEM);
        }
        if (masks && !conf->allows)
                memset(rules->mask, 0xff, words * sizeof(uint32_t));
        if (rules->early)
                memset(rules->early, 0xff, words * sizeof(uint32_t));
        *ret_rules = rules;
        return 0;
}

struct rules *rules_ref(struct rules *rules)
{
        if (rules)
                rules->references++;
        return rules;
}

struct rules *rules_unref(struct rules *rules)
{
        if (!rules || --rules->references)
                return NULL;
        free(rules->biases);
        free(rules->mask);
        free(rules->early);
        free(rules->texts);
        free(rules->breakers);
        free(rules->text_memory);
        free(rules);
        return NULL;
}

void rules_bias(struct rules *rules, uint32_t token, float bias)
{
        rules->biases[rules->bias_count++] =
                (struct pick_edit){ .token = token, .bias = bias, .theta = 1 };
}

void rules_allow(struct rules *rules, uint32_t token)
{
        mask_set(rules->mask, token);
}

void rules_ban(struct rules *rules, uint32_t token)
{
        mask_clear(rules->mask, token);
}

void rules_end(struct rules *rules, uint32_t token)
{
        mask_clear(rules->early, token);
}

static struct rule_text copy(struct rules *rules, const char *text, uint32_t bytes)
{
        char *to = rules->text_memory + rules->text_used;

        assert(bytes && bytes <= SMV_STOP_BYTES_MAX);
        memcpy(to, text, bytes);
        rules->text_used += bytes;
        return (struct rule_text){ to, bytes };
}

void rules_ban_text(struct rules *rules, const char *text, uint32_t bytes)
{
        rules->texts[rules->text_count++] = copy(rules, text, bytes);
}

void rules_break(struct rules *rules, const char *text, uint32_t bytes)
{
        rules->breakers[rules->breaker_count++] = copy(rules, text, bytes);
}

static int by_token(const void *a, const void *b)
{
        uint32_t one = ((const struct pick_edit *)a)->token;
        uint32_t other = ((const struct pick_edit *)b)->token;

        return (one > other) - (one < other);
}

/* Is a token of the vocabulary legal?  The last word may have bits behind it. */
static bool has_legal(const struct rules *rules, const uint32_t *mask)
{
        uint32_t vocab = rules->order->count, whole = vocab / 32;

        for (uint32_t i = 0; i < whole; i++)
                if (mask[i])
                        return true;
        return vocab % 32 && mask[whole] & ((UINT32_C(1) << vocab % 32) - 1);
}

int rules_seal(struct rules *rules)
{
        if (rules->bias_count)
                qsort(rules->biases, rules->bias_count, sizeof(*rules->biases), by_token);
        for (uint32_t i = 1; i < rules->bias_count; i++)
                if (rules->biases[i].token == rules->biases[i - 1].token)
                        return RULES_E_TWICE;
        if (rules->text_count)
                banned_texts_ban_whole(rules->texts, rules->text_count, rules->order, rules->mask);
        for (uint32_t i = 0; rules->early && rules->mask && i < rules->mask_words; i++)
                rules->early[i] &= rules->mask[i];
        if ((rules->mask && !has_legal(rules, rules->mask)) ||
            (rules->early && !has_legal(rules, rules->early)))
                return RULES_E_EMPTY;
        return 0;
}

bool rules_need_history(const struct rules *rules)
{
        const struct penalties *p = &rules->penalties;

        return p->presence != 0 || p->frequency != 0 || p->repetition != 1 ||
               p->dry_multiplier > 0 || p->no_repeat_ngram || rules->text_count ||
               (rules->guided && (rules->mask || rules->early));
}
