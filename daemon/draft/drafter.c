#include "daemon/draft/drafter.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/draft/places.h"
#include "daemon/draft/suffix-tree.h"

#define READ_AT_ONCE 64u  /* tokens of a long prompt that a call reads: 6 us */
#define ANCHOR       2u   /* so many last tokens set the cursor again, where it is near */
#define AHEAD        192u /* near: so many tokens ahead ... */
#define BEHIND       64u  /* ... or behind */
#define FIRM         8u   /* tokens that show where the answer is, wherever they are */
#define WEIGHT       (1.0f / 8)
#define RETURN       (1.0f / 512) /* to the first chance, for each token without a row */
#define FORCED_PLACE 3u           /* where the chances of forced tokens begin at 0.7 */

/* Guesses are told apart by the number of tokens before them that are those of their source. */
enum { MATCHES = 6 };
static const uint32_t match_from[MATCHES] = { 1, 2, 3, 5, 9, 17 };
/* The chances that a guess is right, before any was tried; a client expects most of its text. */
static const float first_chance[MATCHES] = { 0.15f, 0.35f, 0.55f, 0.7f, 0.8f, 0.9f };
static const float first_predicted[MATCHES] = { 0.5f, 0.7f, 0.75f, 0.8f, 0.85f, 0.9f };

/* Those of a draft model, by the chance that it gives them. */
static const float model_from[MATCHES] = { 0, 0.3f, 0.5f, 0.7f, 0.85f, 0.95f };

struct drafter {
        struct drafter_text text;
        struct suffix_tree *tree;
        struct places *prediction; /* NULL: there is none */
        uint32_t prediction_count;
        uint32_t cursor, held; /* the last `held` tokens were before the cursor; 0: lost */
        uint32_t home;         /* where the cursor was last, leaving out far and weak places */
        uint32_t seen;         /* tokens that the cursors know */
        uint64_t place;        /* in the answers: the last `alike` tokens were before it */
        uint32_t alike;        /* 0: there is no such place */
        float chance[DRAFT_SOURCE_N][MATCHES];
        float model_chance; /* that the first guess of a draft model has a row, and is right */
        uint8_t model_place[DRAFT_MAX]; /* of each token of its last draft */
        /* The last proposal: */
        enum draft_source source;
        uint32_t match;
        uint32_t own, sure; /* tokens before the forced ones, and bits of sure ones */
        bool passed;        /* it was not worth a row, and its chances know */
};

static uint32_t tree_tokens(uint32_t tokens)
{
        return tokens < DRAFTER_TOKENS_MAX ? tokens : DRAFTER_TOKENS_MAX;
}

size_t drafter_bytes(uint32_t context)
{
        return sizeof(struct drafter) + suffix_tree_bytes(tree_tokens(context));
}

int drafter_new(uint32_t context, struct drafter **ret_drafter)
{
        struct drafter *drafter = calloc(1, sizeof(*drafter));
        int r = drafter ? suffix_tree_new(tree_tokens(context), &drafter->tree)
                        : error_raise(-ENOMEM);

        if (r) {
                free(drafter);
                return error_pass(r);
        }
        *ret_drafter = drafter;
        return 0;
}

struct drafter *drafter_free(struct drafter *drafter)
{
        if (drafter)
                suffix_tree_free(drafter->tree);
        free(drafter);
        return NULL;
}

static const float *first_chances(enum draft_source source)
{
        return source == DRAFT_PREDICTION ? first_predicted : first_chance;
}

void drafter_begin(struct drafter *drafter, const struct drafter_text *text)
{
        assert(text->draft_max && text->draft_max <= DRAFT_MAX);
        suffix_tree_begin(drafter->tree, tree_tokens(text->tokens_max));
        *drafter = (struct drafter){
                .text = *text,
                .tree = drafter->tree,
                .prediction = text->prediction ? text->prediction->places : NULL,
                .prediction_count = text->prediction ? text->prediction->count : 0,
                .seen = text->prompt_count,
                .held = text->prediction ? ANCHOR : 0, /* the answer may begin as it does */
                .model_chance = text->model_chance,
        };
        for (enum draft_source source = DRAFT_NONE; source < DRAFT_SOURCE_N; source++)
                memcpy(drafter->chance[source], first_chances(source), sizeof(first_chance));
}

/* ---- the prediction ---- */

static void set_cursor(struct drafter *drafter, uint64_t position, uint32_t alike, bool is_home)
{
        if (alike < ANCHOR || alike <= drafter->held)
                return;
        drafter->cursor = (uint32_t)position;
        drafter->held = alike;
        if (is_home)
                drafter->home = drafter->cursor;
}

/*
 * Sets the cursor behind the place of the prediction that the last tokens are most alike.  Of equal
 * places it is the next one ahead, if that is near or among the latest of the index.  The home goes
 * along, unless the place is far and only a few tokens speak for it: a phrase that is everywhere
 * must not take the cursor away.
 */
static void find_anchor(struct drafter *drafter, const uint32_t *end, uint32_t made)
{
        const struct places *places = drafter->prediction;
        uint32_t home = drafter->home, alike;
        uint64_t at = 0;

        alike = places_scan(places, home + 1, home + 1 + AHEAD, end, made, &at);
        set_cursor(drafter, at, alike, true);
        alike = places_scan(places, home > BEHIND ? home - BEHIND : 0, home + 1, end, made, &at);
        set_cursor(drafter, at, alike, true);
        alike = places_find(places, end, made, home, &at);
        set_cursor(drafter, at, alike, alike >= FIRM);
}

/*
 * The token differs from the one at the cursor.  Most often it replaces that one, so the cursor
 * goes on behind it once, though nothing speaks for the place.
 */
static void lose_cursor(struct drafter *drafter)
{
        bool may_replace = drafter->held >= ANCHOR && drafter->cursor < drafter->prediction_count;

        drafter->held = may_replace;
        drafter->cursor += may_replace;
}

/* Follows the tokens of the answer that are new. */
static void move_cursor(struct drafter *drafter, const uint32_t *tokens, uint32_t count)
{
        bool lost = false;

        for (uint32_t i = drafter->seen; i < count; i++) {
                bool at_home = drafter->cursor == drafter->home;

                if (drafter->held &&
                    places_token(drafter->prediction, drafter->cursor) == tokens[i]) {
                        drafter->cursor++;
                        drafter->held++;
                } else {
                        lost = true;
                        lose_cursor(drafter);
                }
                if (drafter->held && (at_home || drafter->held >= FIRM))
                        drafter->home = drafter->cursor;
        }
        if (lost || !drafter->held)
                find_anchor(drafter, tokens + count, count - drafter->text.prompt_count);
}

/* ---- earlier answers ---- */

/*
 * Follows the tokens that are new.  The place is stale if its tokens gave way: then no token is
 * there, and another place is looked for.
 */
static void move_place(struct drafter *drafter, const struct places *answers,
                       const uint32_t *tokens, uint32_t count)
{
        for (uint32_t i = drafter->seen; i < count && drafter->alike; i++) {
                bool follows = places_token(answers, drafter->place) == tokens[i];

                drafter->place++;
                drafter->alike = follows ? drafter->alike + 1 : 0;
        }
        if (!drafter->alike || places_token(answers, drafter->place) == PLACES_GAP)
                drafter->alike =
                        places_find(answers, tokens + count, count, UINT64_MAX, &drafter->place);
}

/* ---- proposals ---- */

static uint32_t place_of_match(uint32_t match)
{
        uint32_t i = MATCHES - 1;

        while (i && match < match_from[i])
                i--;
        return i;
}

/* The chance of token i of the last proposal, if those before are right.  NULL: it is sure. */
static float *chance_of(struct drafter *drafter, uint32_t i)
{
        float *chances = drafter->chance[drafter->source];

        if (drafter->sure >> i & 1)
                return NULL;
        if (i >= drafter->own)
                return &drafter->chance[DRAFT_FORCED][FORCED_PLACE];
        if (drafter->source == DRAFT_MODEL)
                return &chances[drafter->model_place[i]];
        return &chances[place_of_match(drafter->match + i)];
}

static void tell_chances(struct drafter *drafter, struct draft *draft)
{
        float survival = 1;

        for (uint32_t i = 0; i < draft->count; i++) {
                const float *chance = chance_of(drafter, i);

                survival *= chance ? *chance : 1;
                draft->survival[i] = survival;
        }
}

static uint32_t draft_prediction(struct drafter *drafter, struct draft *draft)
{
        if (!drafter->held)
                return 0;
        draft->count = places_read(drafter->prediction, drafter->cursor, drafter->text.draft_max,
                                   draft->tokens);
        draft->source = draft->count ? DRAFT_PREDICTION : DRAFT_NONE;
        return draft->count ? drafter->held : 0;
}

/* No longer than the match and one more: behind a short match, guesses are soon wrong. */
static uint32_t most_behind(const struct drafter *drafter, uint32_t match)
{
        return match < drafter->text.draft_max ? match + 1 : drafter->text.draft_max;
}

static uint32_t draft_repeat(struct drafter *drafter, const uint32_t *tokens, struct draft *draft)
{
        uint32_t match = suffix_tree_match(drafter->tree);

        draft->count = suffix_tree_draft(drafter->tree, tokens, most_behind(drafter, match),
                                         draft->tokens);
        draft->source = draft->count ? DRAFT_REPEAT : DRAFT_NONE;
        return draft->count ? match : 0;
}

static uint32_t draft_answers(struct drafter *drafter, const struct places *answers,
                              struct draft *draft)
{
        draft->count = places_read(answers, drafter->place, most_behind(drafter, drafter->alike),
                                   draft->tokens);
        draft->source = draft->count ? DRAFT_ANSWERS : DRAFT_NONE;
        return draft->count ? drafter->alike : 0;
}

/* Returns how many tokens before the draft are those of its source. */
static uint32_t choose(struct drafter *drafter, const struct places *answers, bool has_tree,
                       const uint32_t *tokens, struct draft *draft)
{
        uint32_t repeat = has_tree ? suffix_tree_match(drafter->tree) : 0;
        uint32_t alike = answers ? drafter->alike : 0;
        uint32_t other = repeat > alike ? repeat : alike, match = 0;

        if (drafter->held >= ANCHOR || drafter->held >= other)
                match = draft_prediction(drafter, draft);
        if (!match && alike > repeat)
                match = draft_answers(drafter, answers, draft);
        if (!match && repeat)
                match = draft_repeat(drafter, tokens, draft);
        return match;
}

void drafter_propose(struct drafter *drafter, const uint32_t *tokens, uint32_t count,
                     struct draft *ret_draft)
{
        bool has_tree = !suffix_tree_add(drafter->tree, tokens, count, READ_AT_ONCE);
        const struct places *answers =
                drafter->text.answers ? answers_of(drafter->text.answers, drafter->text.domain)
                                      : NULL;
        uint32_t match;

        *ret_draft = (struct draft){ .source = DRAFT_NONE };
        drafter->source = DRAFT_NONE;
        if (drafter->prediction) {
                places_index(drafter->prediction, READ_AT_ONCE);
                move_cursor(drafter, tokens, count);
        }
        if (answers)
                move_place(drafter, answers, tokens, count);
        drafter->seen = count;
        drafter->model_chance += RETURN * (DRAFTER_HOPE - drafter->model_chance);
        match = choose(drafter, answers, has_tree, tokens, ret_draft);
        drafter->source = ret_draft->source;
        drafter->match = match;
        drafter->own = ret_draft->count;
        drafter->sure = 0;
        drafter->passed = false;
        tell_chances(drafter, ret_draft);
}

/* ---- a draft model ---- */

float drafter_expects(const struct drafter *drafter)
{
        return drafter->model_chance;
}

void drafter_take(struct drafter *drafter, uint32_t token, float chance, struct draft *draft)
{
        uint32_t i = MATCHES - 1;

        if (drafter->source != DRAFT_MODEL)
                *draft = (struct draft){ .source = DRAFT_MODEL };
        assert(draft->count < DRAFT_MAX && draft->count < drafter->text.draft_max);
        while (i && !(chance >= model_from[i]))
                i--;
        drafter->source = DRAFT_MODEL;
        drafter->sure = 0;
        drafter->passed = false;
        drafter->model_place[draft->count] = (uint8_t)i;
        draft->tokens[draft->count++] = token;
        drafter->own = draft->count;
        tell_chances(drafter, draft);
}

/* ---- constraints, and what was right ---- */

static void learn_model(struct drafter *drafter, bool right)
{
        drafter->model_chance += WEIGHT * ((float)right - drafter->model_chance);
}

bool drafter_form(struct drafter *drafter, const struct draft_form *form, struct draft *ret_draft)
{
        bool lost;

        assert(form->count <= DRAFT_MAX && form->count - form->forced <= drafter->own);
        drafter->own = form->count - form->forced;
        drafter->sure = form->sure;
        lost = !drafter->own && drafter->source == DRAFT_MODEL && !drafter->passed;
        if (lost)
                learn_model(drafter, false);
        if (!drafter->own)
                drafter->source = form->count ? DRAFT_FORCED : DRAFT_NONE;
        ret_draft->source = drafter->source;
        ret_draft->count = form->count;
        memcpy(ret_draft->tokens, form->tokens, form->count * sizeof(*form->tokens));
        tell_chances(drafter, ret_draft);
        return lost;
}

uint32_t drafter_predicted(const struct drafter *drafter)
{
        return drafter->source == DRAFT_PREDICTION ? drafter->own : 0;
}

/* So a guess that was often wrong is tried again some time. */
static void return_chance(struct drafter *drafter)
{
        const float *firsts = first_chances(drafter->source);
        float *chances = drafter->chance[drafter->source], *chance = chance_of(drafter, 0);

        if (chance)
                *chance += RETURN * (firsts[chance - chances] - *chance);
}

bool drafter_pass(struct drafter *drafter)
{
        bool is_model = drafter->source == DRAFT_MODEL;

        assert(drafter->source != DRAFT_NONE);
        if (drafter->passed)
                return false;
        return_chance(drafter);
        if (is_model)
                learn_model(drafter, false);
        drafter->passed = true;
        return is_model;
}

bool drafter_learn(struct drafter *drafter, uint32_t tried, uint32_t right)
{
        bool is_model = drafter->own && drafter->source == DRAFT_MODEL;

        assert(drafter->source != DRAFT_NONE && tried && right <= tried);
        for (uint32_t i = 0; i < tried && i <= right; i++) {
                float *chance = chance_of(drafter, i);

                if (chance)
                        *chance += WEIGHT * ((i < right) - *chance);
        }
        if (is_model)
                learn_model(drafter, right > 0);
        return is_model;
}
