#include "bridge/offline/id-check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "base/sys.h"
#include "bridge/offline/nameless-file.h"

#define RUN_MAX  (1u << 19)
#define PART_MAX 1024u /* hashes of a run that are in memory while runs are merged */

struct entry {
        uint64_t hash[2];
        uint64_t line;
};

/* A sorted run, while all of them are merged. */
struct run {
        uint64_t at, end; /* entries of the file that were not read yet */
        struct entry *part;
        uint32_t next, count;
};

struct id_check {
        const char *folder;
        uint64_t key[2];
        struct entry *entries;
        uint32_t count, run_max, run_count;
        int fd; /* -1: no run was written */
        struct run *runs;
        struct entry *parts;
        struct entry last; /* while they are merged */
        bool has_last;
        uint32_t first, second; /* the pair that was found; second 0: none */
};

struct id_check *id_check_new(const char *folder, uint32_t run_max)
{
        struct id_check *check = calloc(1, sizeof(*check));

        if (!check)
                return NULL;
        check->folder = folder;
        check->run_max = run_max ? run_max : RUN_MAX;
        check->fd = -1;
        check->entries = calloc(check->run_max, sizeof(*check->entries));
        if (!check->entries)
                return id_check_free(check);
        sys_random(check->key, sizeof(check->key));
        return check;
}

struct id_check *id_check_free(struct id_check *check)
{
        if (!check)
                return NULL;
        sys_close(check->fd);
        free(check->runs);
        free(check->parts);
        free(check->entries);
        free(check);
        return NULL;
}

static int by_hash(const void *a, const void *b)
{
        const struct entry *x = a, *y = b;

        for (unsigned i = 0; i < 2; i++)
                if (x->hash[i] != y->hash[i])
                        return x->hash[i] < y->hash[i] ? -1 : 1;
        return (x->line > y->line) - (x->line < y->line);
}

static void sort(struct id_check *check)
{
        qsort(check->entries, check->count, sizeof(*check->entries), by_hash);
}

/* All runs but the last have run_max entries. */
static int write_run(struct id_check *check)
{
        size_t bytes = check->count * sizeof(*check->entries);
        uint64_t at = (uint64_t)check->run_count * check->run_max * sizeof(*check->entries);
        int r;

        if (check->fd < 0)
                check->fd = nameless_file_make(check->folder);
        if (check->fd < 0)
                return check->fd;
        sort(check);
        r = nameless_file_write(check->fd, check->entries, bytes, at);
        if (r)
                return r;
        check->run_count++;
        check->count = 0;
        return 0;
}

int id_check_add(struct id_check *check, struct text id, uint32_t line)
{
        struct entry *entry;
        int r = check->count == check->run_max ? write_run(check) : 0;

        if (r)
                return r;
        entry = &check->entries[check->count++];
        siphash(check->key, id.at, id.bytes, entry->hash);
        entry->line = line;
        return 0;
}

/* Entries come sorted, so the same ids come one after another, in the order of their lines. */
static void look_at(struct id_check *check, const struct entry *entry)
{
        bool same = check->has_last && !memcmp(entry->hash, check->last.hash, sizeof(entry->hash));

        if (same && (!check->second || entry->line < check->second)) {
                check->first = (uint32_t)check->last.line;
                check->second = (uint32_t)entry->line;
        }
        if (!same)
                check->last = *entry;
        check->has_last = true;
}

/* ---- merging ---- */

/* 1: the run has a next entry; 0: it is used up. */
static int fill(struct id_check *check, struct run *run)
{
        uint64_t left = run->end - run->at;
        size_t bytes;
        ssize_t n;

        if (run->next < run->count)
                return 1;
        if (!left)
                return 0;
        run->count = left < PART_MAX ? (uint32_t)left : PART_MAX;
        run->next = 0;
        bytes = run->count * sizeof(*run->part);
        n = sys_pread(check->fd, run->part, bytes, run->at * sizeof(*run->part));
        if (n != (ssize_t)bytes)
                return n < 0 ? (int)n : -EIO;
        run->at += run->count;
        return 1;
}

static const struct entry *head(const struct run *run)
{
        return &run->part[run->next];
}

/* Moves a run down to its place among runs[at ..], which are sorted by their heads otherwise. */
static void sink(struct run *runs, uint32_t at, uint32_t count)
{
        struct run moved = runs[at];

        while (at + 1 < count && by_hash(head(&runs[at + 1]), head(&moved)) < 0) {
                runs[at] = runs[at + 1];
                at++;
        }
        runs[at] = moved;
}

static int open_runs(struct id_check *check)
{
        int r = 0;

        check->runs = calloc(check->run_count, sizeof(*check->runs));
        check->parts = calloc((size_t)check->run_count * PART_MAX, sizeof(*check->parts));
        if (!check->runs || !check->parts)
                return -ENOMEM;
        for (uint32_t i = check->run_count; i-- > 0 && r >= 0;) {
                struct run *run = &check->runs[i];
                uint64_t at = (uint64_t)i * check->run_max;
                uint64_t full = at + check->run_max;

                run->part = check->parts + (size_t)i * PART_MAX;
                run->at = at;
                run->end = i + 1 < check->run_count ? full : at + check->count;
                r = fill(check, run);
                if (r >= 0)
                        sink(check->runs, i, check->run_count);
        }
        return r < 0 ? r : 0;
}

static int merge(struct id_check *check)
{
        struct run *runs = NULL;
        uint32_t count, last = check->count;
        int r;

        r = write_run(check);
        check->count = last;
        if (!r)
                r = open_runs(check);
        runs = check->runs;
        count = check->run_count;
        while (!r && count) {
                look_at(check, head(runs));
                runs->next++;
                r = fill(check, runs);
                if (r > 0)
                        sink(runs, 0, count);
                else if (!r) {
                        runs++;
                        count--;
                }
                r = r < 0 ? r : 0;
        }
        return r;
}

int id_check_end(struct id_check *check, uint32_t *ret_first, uint32_t *ret_second)
{
        int r = 0;

        if (check->run_count && check->count) {
                r = merge(check);
        } else {
                sort(check);
                for (uint32_t i = 0; i < check->count; i++)
                        look_at(check, &check->entries[i]);
        }
        *ret_first = check->first;
        *ret_second = check->second;
        return r ? r : check->second > 0;
}
