/*
 * WordPiece: divides a word into the longest entry from its begin on, then the longest from there
 * on, and so forth, as BERT's tokenizer does.
 *
 * A word has a blank in front, and so have the entries that begin a word.  Takes time linear in the
 * word, whatever the entries are.  Read-only after it is opened; any thread may use it.
 */
#ifndef DAEMON_TEXT_WORDPIECE_H
#define DAEMON_TEXT_WORDPIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/vocabulary.h"
#include "daemon/text/added-tokens.h"

#define WORDPIECE_BYTES_MAX (16u << 20) /* of all its entries, each with a blank and a mark */

struct wordpiece {
        struct added_tokens *begins, *others;
};

/* The vocabulary was checked before.  0, -EINVAL with the fault in *why, or -ENOMEM. */
int wordpiece_open(struct wordpiece *ret_wordpiece, const struct vocabulary *vocabulary, char *why,
                   size_t why_bytes);
void wordpiece_close(struct wordpiece *wordpiece); /* all zero is fine */

/*
 * For a word of at least two bytes with its blank.  The two arrays have room for a number for each
 * byte.  ids[0] is the first entry, and nexts[0] is where the next one begins, and so on.  False:
 * the word is unknown.  *steps grows by the work done.
 */
bool wordpiece_divide(const struct wordpiece *wordpiece, const char *word, size_t bytes,
                      uint32_t *ids, uint32_t *nexts, uint64_t *steps);

#endif
