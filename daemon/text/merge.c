/*
 * A heap holds pairs as (rank, place of the left symbol).  When a pair merges, the pairs on its
 * left and right change; their old items stay in the heap.  An item is valid if the pair that now
 * begins at its place has the item's rank.  The item may have been added for an earlier pair, but
 * that does not matter: an item for the present pair would be equal to it.
 *
 * Every merge removes one symbol and adds at most two items.  So at most three items per byte are
 * ever added, and at most two per byte are in the heap at once.
 *
 * A pair is looked up in the list of merges by its left entry, then by bisection among the pairs
 * of that entry.  There is no hash table, so no list of merges can make it slow.
 */
#include "daemon/text/merge.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

#define NO_RANK UINT32_MAX

/* ---- the table ---- */

static int by_right(const void *a, const void *b)
{
        const struct merge_pair *x = a, *y = b;

        if (x->right != y->right)
                return x->right < y->right ? -1 : 1;
        return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* A pair that is listed twice has its first rank: bisection finds the first of equal pairs. */
static int list_pairs(struct merge_table *table, const struct vocabulary *v)
{
        table->first = calloc((size_t)v->entry_count + 2, sizeof(*table->first));
        table->pairs = calloc((size_t)v->merge_count + 1, sizeof(*table->pairs));
        if (!table->first || !table->pairs)
                return error_raise(-ENOMEM);
        /* first[left + 2] counts; later first[left + 1] is where the next pair of `left` goes. */
        for (uint32_t i = 0; i < v->merge_count; i++)
                table->first[v->merges[i].left + 2]++;
        for (uint32_t i = 2; i <= v->entry_count; i++)
                table->first[i] += table->first[i - 1];
        for (uint32_t i = 0; i < v->merge_count; i++) {
                const struct merge *m = &v->merges[i];

                table->pairs[table->first[m->left + 1]++] =
                        (struct merge_pair){ m->right, i, m->result };
        }
        for (uint32_t i = 0; i < v->entry_count; i++)
                qsort(table->pairs + table->first[i], table->first[i + 1] - table->first[i],
                      sizeof(*table->pairs), by_right);
        return 0;
}

struct scored {
        double score;
        uint32_t id;
};

static int by_score(const void *a, const void *b)
{
        const struct scored *x = a, *y = b;

        return x->score > y->score ? -1 : x->score < y->score;
}

static int rank_scores(struct merge_table *table, const struct vocabulary *v)
{
        struct scored *scored = calloc((size_t)v->entry_count + 1, sizeof(*scored));
        uint32_t rank = 0;

        table->ranks = calloc((size_t)v->entry_count + 1, sizeof(*table->ranks));
        if (!scored || !table->ranks) {
                free(scored);
                return error_raise(-ENOMEM);
        }
        for (uint32_t i = 0; i < v->entry_count; i++)
                scored[i] = (struct scored){ v->entries[i].score, i };
        qsort(scored, v->entry_count, sizeof(*scored), by_score);
        for (uint32_t i = 0; i < v->entry_count; i++) {
                if (i && scored[i].score != scored[i - 1].score)
                        rank++;
                table->ranks[scored[i].id] = rank;
        }
        free(scored);
        return 0;
}

static void note_neighbours(struct merge_table *table, const struct vocabulary *v)
{
        for (uint32_t i = 0; i < v->entry_count; i++)
                for (uint32_t k = 1; k < v->entries[i].count; k++) {
                        const char *at = v->entries[i].bytes + k;
                        unsigned pair = (unsigned)(uint8_t)at[-1] << 8 | (uint8_t)at[0];

                        table->beside[pair / 64] |= UINT64_C(1) << pair % 64;
                }
}

int merge_table_init(struct merge_table *table, const struct vocabulary *vocabulary)
{
        int r;

        *table = (struct merge_table){ 0 };
        if (vocabulary->merge_count || !vocabulary->by_score)
                r = list_pairs(table, vocabulary);
        else
                r = rank_scores(table, vocabulary);
        if (r)
                merge_table_deinit(table);
        else
                note_neighbours(table, vocabulary);
        return error_pass(r);
}

void merge_table_deinit(struct merge_table *table)
{
        free(table->first);
        free(table->pairs);
        free(table->ranks);
        *table = (struct merge_table){ 0 };
}

/* ---- the work ---- */

int merge_work_grow(struct merge_work *work, size_t bytes)
{
        size_t capacity = bytes < 256 ? 256 : bytes + bytes / 8;
        char *at;

        if (bytes <= work->capacity)
                return 0;
        merge_work_deinit(work);
        at = reallocarray(NULL, capacity, 2 * sizeof(uint64_t) + 5 * sizeof(uint32_t));
        if (!at)
                return error_raise(-ENOMEM);
        *work = (struct merge_work){ .memory = at, .heap = (uint64_t *)at, .capacity = capacity };
        work->ids = (uint32_t *)(work->heap + 2 * capacity);
        work->nexts = work->ids + capacity;
        work->befores = work->nexts + capacity;
        work->ranks = work->befores + capacity;
        work->results = work->ranks + capacity;
        return 0;
}

void merge_work_deinit(struct merge_work *work)
{
        free(work->memory);
        *work = (struct merge_work){ 0 };
}

static void heap_put(struct merge_work *work, uint64_t item, uint64_t *steps)
{
        size_t at = work->heap_count++;

        assert(work->heap_count <= 2 * work->capacity);
        for (; at && work->heap[(at - 1) / 2] > item; at = (at - 1) / 2) {
                work->heap[at] = work->heap[(at - 1) / 2];
                ++*steps;
        }
        work->heap[at] = item;
}

static uint64_t heap_take(struct merge_work *work, uint64_t *steps)
{
        uint64_t *heap = work->heap, least = heap[0], item = heap[--work->heap_count];
        size_t n = work->heap_count, at = 0, child;

        while ((child = 2 * at + 1) < n) {
                child += child + 1 < n && heap[child + 1] < heap[child];
                if (heap[child] >= item)
                        break;
                heap[at] = heap[child];
                at = child;
                ++*steps;
        }
        heap[at] = item;
        return least;
}

struct task {
        const struct merge_table *table;
        const struct wordmap *words;
        struct merge_work *work;
        const char *text;
        size_t bytes;
        uint64_t *steps;
};

static uint32_t find_listed(const struct task *t, uint32_t left, uint32_t right,
                            uint32_t *ret_result)
{
        const struct merge_pair *pairs = t->table->pairs;
        uint32_t low, high, end;

        if (left == VOCABULARY_NONE || right == VOCABULARY_NONE)
                return NO_RANK;
        low = t->table->first[left];
        end = high = t->table->first[left + 1];
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (pairs[middle].right < right)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == end || pairs[low].right != right)
                return NO_RANK;
        *ret_result = pairs[low].result;
        return pairs[low].rank;
}

/* Finds the rank of the pair that begins at a place, stores it and adds it to the heap. */
static void judge(const struct task *t, uint32_t place)
{
        struct merge_work *work = t->work;
        uint32_t right = work->nexts[place], rank = NO_RANK;

        ++*t->steps;
        if (right < t->bytes && t->table->first) {
                rank = find_listed(t, work->ids[place], work->ids[right], &work->results[place]);
        } else if (right < t->bytes && work->nexts[right] - place <= VOCABULARY_ENTRY_BYTES_MAX) {
                size_t count = work->nexts[right] - place;
                uint32_t id = wordmap_get(t->words, t->text + place, count);

                *t->steps += count / 8;
                work->results[place] = id;
                rank = id == WORDMAP_NONE ? NO_RANK : t->table->ranks[id];
        }
        work->ranks[place] = rank;
        if (rank != NO_RANK)
                heap_put(work, (uint64_t)rank << 32 | place, t->steps);
}

static void join(const struct task *t, uint32_t left)
{
        struct merge_work *work = t->work;
        uint32_t right = work->nexts[left], behind = work->nexts[right];

        work->ids[left] = work->results[left];
        work->nexts[left] = behind;
        work->ranks[right] = NO_RANK; /* no symbol begins here any more */
        if (behind < t->bytes)
                work->befores[behind] = left;
        judge(t, left);
        if (left)
                judge(t, work->befores[left]);
}

int merge_run(const struct merge_table *table, const struct wordmap *words, struct merge_work *work,
              const char *text, size_t bytes, struct encoding *how)
{
        struct task t = { table, words, work, text, bytes, &how->steps };
        uint32_t before = 0;

        assert(bytes <= work->capacity && bytes < UINT32_MAX);
        work->heap_count = 0;
        for (uint32_t at = 0; at < bytes; at = work->nexts[at]) {
                if (encoding_cancelled(how))
                        return -ECANCELED;
                work->befores[at] = before;
                before = at;
                judge(&t, at);
        }
        while (work->heap_count) {
                uint64_t item = heap_take(work, &how->steps);

                if (encoding_cancelled(how))
                        return -ECANCELED;
                if (work->ranks[(uint32_t)item] == (uint32_t)(item >> 32))
                        join(&t, (uint32_t)item);
        }
        return 0;
}
