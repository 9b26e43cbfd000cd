/*
 * Merging: neighbours become one, the best pair first, the leftmost of equals, until
 * no pair is left.  O(n log n) in the bytes of a text, whatever they are.
 *
 * A pair's rank is where it stands in the list of merges; without a list, where the
 * score of the entry that it makes stands among all scores.
 */
#ifndef DAEMON_TEXT_MERGE_H
#define DAEMON_TEXT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/text/tokenizer.h"
#include "daemon/vocabulary.h"
#include "daemon/wordmap.h"

struct merge_pair {
        uint32_t right, rank, result;
};

/* Which pairs merge.  Read-only once it is made. */
struct merge_book {
        /* By a list: the pairs of a left entry are pairs[first[left] .. first[left + 1]). */
        uint32_t *first;
        struct merge_pair *pairs;
        /* By score: the rank of every entry.  The entry is looked up by its bytes. */
        uint32_t *ranks;
        /* Two bytes that stand side by side in some entry: a bit each. */
        uint64_t beside[65536 / 64];
};

/* What a vocabulary says, already checked.  0 or -ENOMEM; then there is nothing to deinit. */
int merge_book_init(struct merge_book *book, const struct vocabulary *vocabulary);
void merge_book_deinit(struct merge_book *book); /* all zero is fine */

/* No merge joins these two bytes: a text may be cut between them. */
static inline bool merge_apart(const struct merge_book *book, char a, char b)
{
        unsigned pair = (unsigned)(uint8_t)a << 8 | (uint8_t)b;

        return !(book->beside[pair / 64] >> pair % 64 & 1);
}

/*
 * A text being merged.  A symbol is known by the place of its first byte: ids[place]
 * is its entry or VOCABULARY_NONE, nexts[place] the place behind it.  The caller
 * fills these two; bytes inside a symbol have none.
 */
struct merge_work {
        uint32_t *ids, *nexts;
        uint32_t *befores, *ranks, *results;
        uint64_t *heap; /* the least first: rank above, place below */
        size_t heap_count, room;
        void *memory;
};

/* Room for a text of so many bytes.  0 or -ENOMEM. */
int merge_work_grow(struct merge_work *work, size_t bytes);
void merge_work_deinit(struct merge_work *work); /* all zero is fine */

/* `words` are asked where the book goes by score.  0 or -ECANCELED. */
int merge_run(const struct merge_book *book, const struct wordmap *words, struct merge_work *work,
              const char *text, size_t bytes, struct encoding *how);

#endif
