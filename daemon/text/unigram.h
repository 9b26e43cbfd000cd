/*
 * Unigram: divides a text into those entries whose scores have the largest sum (Viterbi).
 *
 * It gives the path of Hugging Face's `tokenizers`, or with `single_sums` that of SentencePiece,
 * whose sums have fewer digits.  Of equal sums the path that was found first wins: the one with the
 * longer last entry.  A character that is no entry may be left unknown, which has a score, too.
 *
 * It takes time linear in the text, times the bytes of the longest entry.  The path is given as
 * soon as all paths share it, so its memory is bounded by the text, and mostly by a few words.
 *
 * Read-only after it is opened; any thread may use it.  The work belongs to one thread.
 */
#ifndef DAEMON_TEXT_UNIGRAM_H
#define DAEMON_TEXT_UNIGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/vocabulary.h"
#include "daemon/text/encoding.h"

struct unigram;

/* The vocabulary was checked before.  0 or -ENOMEM. */
int unigram_new(const struct vocabulary *vocabulary, struct unigram **ret_unigram);
struct unigram *unigram_free(struct unigram *unigram); /* takes NULL */

/* The entry that is exactly this text, or VOCABULARY_NONE. */
uint32_t unigram_find(const struct unigram *unigram, const char *text, size_t bytes);

struct unigram_node {
        double sum;         /* of the best path to this place */
        uint32_t bytes, id; /* of its last entry; bytes 0: no path ends here */
};

/* All zero before the first text; later ones use its memory again. */
struct unigram_work {
        struct unigram_node *nodes;
        size_t capacity;
};
void unigram_work_deinit(struct unigram_work *work);

/*
 * Calls put() for each entry of the best path, in order.  id: the unknown token for a character
 * that is no entry.  0, -ENOMEM or -ECANCELED.
 */
typedef void (*unigram_put_fn)(void *arg, uint32_t id, const char *text, size_t bytes);
int unigram_run(const struct unigram *unigram, struct unigram_work *work, const char *text,
                size_t bytes, struct encoding *how, unigram_put_fn put, void *arg);

#endif
