/*
 * Snapshots: what the daemon said when it was asked, as rows of streams and of users.  Rates come
 * from two snapshots in a row.
 *
 * The texts of rows belong to the snapshot's documents.
 */
#ifndef CLI_TOP_SNAPSHOT_H
#define CLI_TOP_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/reply.h"
#include "cli/top/options.h"
#include "json/document.h"

struct stream_row {
        uint64_t number, uid, pid, age_ms, tokens;
        uint32_t node; /* in `work`, for work_facts() */
        const char *principal, *priority, *state, *kind, *waits_for;
        char user[USER_NAME_BYTES];
        double rate; /* tokens a second */
        /* Tokens of the prompt, those that are read, and of these the cached ones. */
        bool has_prompt, has_cached; /* an older daemon does not say them */
        uint64_t prompt, prompt_done, cached;
};

struct user_row {
        uint64_t uid;
        const char *principal;
        char user[USER_NAME_BYTES];
        double requests, running, waiting, blocks, cached, pinned, handles, connections;
        double rate; /* of its streams */
};

struct snapshot {
        struct json_document *status, *work;
        uint64_t at_ms; /* when it was taken, by a clock that never goes back */
        bool sees_all;
        double tokens_out, rate; /* tokens a second of all streams that this user may see */
        bool has_rate;           /* there was a snapshot before it */
        size_t stream_count, user_count;
        struct stream_row *streams;
        struct user_row *users; /* the one with most requests first */
        uint64_t handles;
};

/*
 * Makes a snapshot of two replies.  `earlier` may be empty: then the rate of a stream is its mean.
 * 0, or a negative errno with the reason in `why`, of SNAPSHOT_WHY_BYTES.
 */
#define SNAPSHOT_WHY_BYTES 160
int snapshot_make(const char *status, const char *work, uint64_t at_ms,
                  const struct snapshot *earlier, struct snapshot *ret_snapshot, char *why);
void snapshot_deinit(struct snapshot *snapshot);

/* Sorts the streams.  Streams that are equal are in the order of their age and number. */
void snapshot_sort(struct snapshot *snapshot, enum top_sort by, bool reversed);

/* The place of the stream of that number; stream_count: there is none. */
size_t snapshot_find(const struct snapshot *snapshot, uint64_t number);

#endif
