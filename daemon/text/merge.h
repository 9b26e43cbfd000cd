/*
 * Merging (BPE): joins neighbouring symbols until no pair can merge.  The pair with the best
 * rank merges first, and of equal ones the leftmost.  O(n log n) in the bytes of a text,
 * whatever they are.
 *
 * The rank of a pair is its position in the list of merges.  If there is no list, it is the
 * position of the resulting entry when all entries are sorted by score.
 */
#ifndef DAEMON_TEXT_MERGE_H
#define DAEMON_TEXT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/wordmap.h"
#include "daemon/model/vocabulary.h"
#include "daemon/text/encoding.h"

struct merge_pair {
        uint32_t right, rank, result;
};

/* The pairs that merge.  Read-only after merge_table_init(). */
struct merge_table {
        /* With a list of merges: a left entry has pairs[first[left] .. first[left + 1]). */
        uint32_t *first;
        struct merge_pair *pairs;
        /* Without one: the rank of every entry.  The entry is looked up by its bytes. */
        uint32_t *ranks;
        /* One bit per pair of bytes: set if they are neighbours in some entry. */
        uint64_t beside[65536 / 64];
};

/*
 * The vocabulary was checked before.  0 or -ENOMEM; after -ENOMEM there is nothing to deinit.
 */
int merge_table_init(struct merge_table *table, const struct vocabulary *vocabulary);
void merge_table_deinit(struct merge_table *table); /* all zero is fine */

/* True if no merge joins these two bytes, so that a text may be cut between them. */
static inline bool merge_never_joins(const struct merge_table *table, char a, char b)
{
        unsigned pair = (unsigned)(uint8_t)a << 8 | (uint8_t)b;

        return !(table->beside[pair / 64] >> pair % 64 & 1);
}

/*
 * A text being merged.  A symbol is identified by its place, the offset of its first byte.
 * ids[place] is its entry or VOCABULARY_NONE; nexts[place] is the place of the next symbol.  The
 * caller fills these two arrays.  Places inside a symbol are not filled.
 */
struct merge_work {
        uint32_t *ids, *nexts;
        uint32_t *befores, *ranks, *results;
        uint64_t *heap; /* a min-heap: the rank in the high 32 bits, the place in the low ones */
        size_t heap_count, capacity;
        void *memory;
};

/* Makes room for a text of `bytes` bytes.  0 or -ENOMEM. */
int merge_work_grow(struct merge_work *work, size_t bytes);
void merge_work_deinit(struct merge_work *work); /* all zero is fine */

/* `words` is used only if the table has no list of merges.  0 or -ECANCELED. */
int merge_run(const struct merge_table *table, const struct wordmap *words, struct merge_work *work,
              const char *text, size_t bytes, struct encoding *how);

#endif
