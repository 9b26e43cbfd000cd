/*
 * Rules: what a request asks of its draws besides the cuts, in the form that the engine needs.
 *
 * They are biases, penalties, and tokens or texts that are not legal.  The loop makes the rules of
 * a request at admission.  Its siblings and forks share them, so it counts references; only the
 * loop changes the count.  All else is read-only once the rules are sealed.
 *
 *      rules_new(&conf, &rules);
 *      rules_bias(), rules_allow(), rules_ban() ...       what was asked, in any order
 *      rules_seal(rules);
 */
#ifndef DAEMON_DRAW_RULES_H
#define DAEMON_DRAW_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/protocol.h>

#include "daemon/draw/banned-texts.h"
#include "kernels/kernels.h"

/* A pick has an edit for each bias, and for each token in the windows of penalties, at most. */
#define RULES_EDITS_MAX (SMV_BIASES_MAX + SMV_WINDOW_MAX)

/*
 * The answer of a request is the tokens behind those that it was submitted with; a fork has the
 * answer of its parent.
 *
 *      repetition      theta of the edits of all tokens in the last repeat_window
 *      presence,       after = presence + frequency * n for tokens that occur n times in the
 *      frequency       answer, of which the last SMV_WINDOW_MAX tokens count
 *      dry             A token's length is that of the longest end of the last dry_window tokens
 *                      that occurs earlier in them and is followed by this token.  No breaker is in
 *                      it.  If the length is at least dry_allowed, `after` grows by
 *                      dry_multiplier * dry_base^(length - dry_allowed), but by 1e30 at most, and
 *                      with no power above floor(88.7 / log(dry_base)); unless the token is a
 *                      breaker itself.  A breaker is a token whose piece has one of the given
 *                      texts.
 *      no_repeat_ngram bans tokens that would complete as many tokens that occurred before
 *      min_tokens      bans the tokens that would end the answer while it has fewer tokens
 */
struct penalties {
        float presence, frequency; /* 0: off */
        float repetition;          /* 1: off */
        uint32_t repeat_window;
        float dry_multiplier; /* 0: off */
        float dry_base;
        uint32_t dry_allowed, dry_window; /* at least 1 */
        uint32_t no_repeat_ngram;         /* 0: off */
        uint32_t min_tokens;
};

struct rules_conf {
        const struct piece_order *order; /* outlives the rules; its tokenizer has the pieces */
        struct penalties penalties;
        bool guided; /* a guide, or the client, may have a mask, too */
        uint32_t bias_count;
        bool allows; /* only tokens that rules_allow() names are legal */
        bool bans;   /* rules_ban() will be called */
        uint32_t text_count, breaker_count;
        size_t text_bytes; /* of all texts and breakers */
};

struct rules {
        uint32_t references;
        struct penalties penalties;
        const struct piece_order *order;
        bool guided;
        uint32_t mask_words;
        struct pick_edit *biases; /* in ascending order of tokens */
        uint32_t bias_count;
        uint32_t *mask;  /* legal tokens, as struct pick has them; NULL: all are */
        uint32_t *early; /* the same while the answer has fewer than min_tokens; NULL: the same */
        struct rule_text *texts, *breakers;
        uint32_t text_count, breaker_count;
        size_t bytes; /* of all its memory */
        char *text_memory;
        size_t text_used;
};

/* One reference is the caller's.  0 or -ENOMEM. */
int rules_new(const struct rules_conf *conf, struct rules **ret_rules);
void rules_bias(struct rules *rules, uint32_t token, float bias);
void rules_allow(struct rules *rules, uint32_t token);
void rules_ban(struct rules *rules, uint32_t token);
/* A token that would end the answer. */
void rules_end(struct rules *rules, uint32_t token);
/* These copy the text, which has at most SMV_STOP_BYTES_MAX bytes. */
void rules_ban_text(struct rules *rules, const char *text, uint32_t bytes);
void rules_break(struct rules *rules, const char *text, uint32_t bytes);

enum rules_outcome {
        RULES_E_EMPTY = 1, /* no token is legal */
        RULES_E_TWICE = 2, /* a token has two biases */
};
int rules_seal(struct rules *rules);

struct rules *rules_ref(struct rules *rules);   /* takes NULL */
struct rules *rules_unref(struct rules *rules); /* takes NULL */

/*
 * Does a draw depend on the tokens before it, or on a second mask?  Otherwise it depends on the
 * number of these tokens at most.
 */
bool rules_need_history(const struct rules *rules);

#endif
