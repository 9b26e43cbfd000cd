/*
 * Each token in one of the windows has a tally, and each token with a bias.  Tallies are sorted by
 * token, as edits are.  A new token is a binary search and at most one move of the tallies behind
 * it.
 */
#include "daemon/draw/history.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/draw/banned-texts.h"
#include "daemon/draw/repeats.h"

enum window_kind { WINDOW_REPEAT, WINDOW_ANSWER, WINDOW_DRY, WINDOW_KINDS };

/* The last `length` tokens, but none before `start`. */
struct window {
        uint32_t start, length;
};

struct tally {
        uint32_t token;
        float bias;
        uint32_t repeat; /* the length of dry; 0: none */
        uint16_t counts[WINDOW_KINDS];
};

struct history {
        const struct rules *rules;
        uint32_t from, seen; /* the tokens [from, seen) are counted */
        uint32_t tally_count, tallies_max;
        struct tally *tallies;
        struct pick_edit *edits;
        uint32_t *mask; /* NULL: that of the rules */
};

static uint32_t tallies_max(const struct rules *rules, uint32_t tokens_max)
{
        return rules->bias_count + (tokens_max < SMV_WINDOW_MAX ? tokens_max : SMV_WINDOW_MAX);
}

static bool needs_mask(const struct rules *rules)
{
        return rules->text_count || rules->penalties.no_repeat_ngram ||
               (rules->guided && (rules->mask || rules->early));
}

size_t history_bytes(const struct rules *rules, uint32_t tokens_max)
{
        size_t tallies = tallies_max(rules, tokens_max);
        size_t words = needs_mask(rules) ? rules->mask_words : 0;

        return sizeof(struct history) + tallies * sizeof(struct tally) +
               tallies * sizeof(struct pick_edit) + words * sizeof(uint32_t);
}

int history_new(const struct rules *rules, uint32_t tokens_max, struct history **ret_history)
{
        struct history *history = calloc(1, history_bytes(rules, tokens_max));

        if (!history)
                return error_raise(-ENOMEM);
        history->rules = rules;
        history->tallies_max = tallies_max(rules, tokens_max);
        history->tallies = (struct tally *)(history + 1);
        history->edits = (struct pick_edit *)(history->tallies + history->tallies_max);
        if (needs_mask(rules))
                history->mask = (uint32_t *)(history->edits + history->tallies_max);
        for (uint32_t i = 0; i < rules->bias_count; i++)
                history->tallies[i] = (struct tally){ .token = rules->biases[i].token,
                                                      .bias = rules->biases[i].bias };
        history->tally_count = rules->bias_count;
        *ret_history = history;
        return 0;
}

struct history *history_free(struct history *history)
{
        free(history);
        return NULL;
}

/* The place of the token's tally, or where it would be. */
static struct tally *find(struct history *history, uint32_t token)
{
        uint32_t low = 0, high = history->tally_count;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (history->tallies[middle].token < token)
                        low = middle + 1;
                else
                        high = middle;
        }
        return &history->tallies[low];
}

static bool is_at(const struct history *history, const struct tally *tally, uint32_t token)
{
        return tally < history->tallies + history->tally_count && tally->token == token;
}

static void count_in(struct history *history, uint32_t token, enum window_kind kind)
{
        struct tally *tally = find(history, token);

        if (!is_at(history, tally, token)) {
                struct tally *end = history->tallies + history->tally_count;

                assert(history->tally_count < history->tallies_max);
                memmove(tally + 1, tally, (size_t)(end - tally) * sizeof(*tally));
                *tally = (struct tally){ .token = token };
                history->tally_count++;
        }
        tally->counts[kind]++;
}

static void count_out(struct history *history, uint32_t token, enum window_kind kind)
{
        struct tally *tally = find(history, token), *end;
        bool used = false;

        assert(is_at(history, tally, token) && tally->counts[kind]);
        tally->counts[kind]--;
        for (int i = 0; i < WINDOW_KINDS; i++)
                used |= tally->counts[i] > 0;
        if (used || tally->bias != 0)
                return;
        end = history->tallies + history->tally_count--;
        memmove(tally, tally + 1, (size_t)(end - tally - 1) * sizeof(*tally));
}

/* The windows; the length of one that no rule looks at is 0. */
static void get_windows(const struct penalties *p, uint32_t answer,
                        struct window ret_windows[WINDOW_KINDS])
{
        bool counts = p->presence != 0 || p->frequency != 0;

        ret_windows[WINDOW_REPEAT] =
                (struct window){ .length = p->repetition != 1 ? p->repeat_window : 0 };
        ret_windows[WINDOW_ANSWER] =
                (struct window){ .start = answer, .length = counts ? SMV_WINDOW_MAX : 0 };
        ret_windows[WINDOW_DRY] =
                (struct window){ .length = p->dry_multiplier > 0 ? p->dry_window : 0 };
}

/* Tokens that no window can reach are not counted, so a long prompt costs nothing. */
static void catch_up(struct history *history, const uint32_t *tokens, uint32_t count,
                     uint32_t answer)
{
        struct window windows[WINDOW_KINDS];

        assert(count >= history->seen);
        get_windows(&history->rules->penalties, answer, windows);
        if (!history->seen && count > SMV_WINDOW_MAX)
                history->seen = history->from = count - SMV_WINDOW_MAX;
        for (; history->seen < count; history->seen++) {
                uint32_t at = history->seen;

                for (int i = 0; i < WINDOW_KINDS; i++) {
                        const struct window *w = &windows[i];
                        uint32_t start = w->start > history->from ? w->start : history->from;

                        if (w->length && at >= start && at - start >= w->length)
                                count_out(history, tokens[at - w->length], i);
                }
                for (int i = 0; i < WINDOW_KINDS; i++)
                        if (windows[i].length && at >= windows[i].start)
                                count_in(history, tokens[at], i);
        }
}

/* The opposite of catch_up(). */
void history_return(struct history *history, const uint32_t *tokens, uint32_t count,
                    uint32_t answer)
{
        struct window windows[WINDOW_KINDS];

        get_windows(&history->rules->penalties, answer, windows);
        while (history->seen > count) {
                uint32_t at = --history->seen;

                for (int i = 0; i < WINDOW_KINDS; i++)
                        if (windows[i].length && at >= windows[i].start)
                                count_out(history, tokens[at], i);
                for (int i = 0; i < WINDOW_KINDS; i++) {
                        const struct window *w = &windows[i];
                        uint32_t start = w->start > history->from ? w->start : history->from;

                        if (w->length && at >= start && at - start >= w->length)
                                count_in(history, tokens[at - w->length], i);
                }
        }
}

static void on_repeat(void *arg, uint32_t token, uint32_t length)
{
        struct history *history = arg;
        struct tally *tally = find(history, token);

        assert(is_at(history, tally, token));
        if (tally->repeat < length)
                tally->repeat = length;
}

static double after_of(const struct penalties *p, const struct tally *tally)
{
        double after = 0;

        if (tally->counts[WINDOW_ANSWER])
                after = (double)p->presence + (double)p->frequency * tally->counts[WINDOW_ANSWER];
        if (tally->repeat)
                after += repeats_penalty(p, tally->repeat);
        return after;
}

/* Writes the edits that change something; returns how many. */
static uint32_t write_edits(struct history *history, struct pick_edit *edits)
{
        const struct penalties *p = &history->rules->penalties;
        uint32_t count = 0;

        for (uint32_t i = 0; i < history->tally_count; i++) {
                struct tally *tally = &history->tallies[i];
                struct pick_edit edit = { .token = tally->token,
                                          .bias = tally->bias,
                                          .theta = tally->counts[WINDOW_REPEAT] ? p->repetition : 1,
                                          .after = (float)after_of(p, tally) };

                tally->repeat = 0;
                if (edit.bias != 0 || edit.theta != 1 || edit.after != 0)
                        edits[count++] = edit;
        }
        assert(count <= RULES_EDITS_MAX);
        return count;
}

void rules_pick(const struct rules *rules, uint32_t made, struct pick *pick)
{
        bool is_early = rules->early && made < rules->penalties.min_tokens;
        const uint32_t *mask = is_early ? rules->early : rules->mask;

        if (mask)
                pick->mask = mask;
        pick->edits = rules->biases;
        pick->edit_count = rules->bias_count;
}

/* Either mask may be NULL. */
static void write_mask(const struct rules *rules, const uint32_t *a, const uint32_t *b,
                       uint32_t *ret_mask)
{
        for (uint32_t i = 0; i < rules->mask_words; i++)
                ret_mask[i] = (a ? a[i] : UINT32_MAX) & (b ? b[i] : UINT32_MAX);
}

void history_pick(struct history *history, const struct pick_space *space, const uint32_t *tokens,
                  uint32_t count, uint32_t answer, struct pick *pick)
{
        const struct pick_space own = { history->mask, history->edits };
        const struct rules *rules = history->rules;
        const uint32_t *guide = pick->mask;

        if (!space)
                space = &own;
        rules_pick(rules, count - answer, pick);
        if (history->mask) {
                write_mask(rules, pick->mask, guide, space->mask);
                pick->mask = space->mask;
        }
        if (rules->penalties.no_repeat_ngram)
                repeats_ban(rules, tokens, count, space->mask);
        if (rules->text_count)
                banned_texts_ban_rest(rules->texts, rules->text_count, rules->order,
                                      tokens + answer, count - answer, space->mask);
        catch_up(history, tokens, count, answer);
        if (rules->penalties.dry_multiplier > 0)
                repeats_find(rules, tokens, count, on_repeat, history);
        pick->edits = space->edits;
        pick->edit_count = write_edits(history, space->edits);
}
