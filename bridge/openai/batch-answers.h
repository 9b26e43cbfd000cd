/*
 * The answers of a batch while it runs: a file to which each answer is appended as one line.
 *
 * The file says itself which lines of the input have an answer.  After a crash its last line may be
 * torn; a restart cuts the file behind the last line that is whole, and asks the others again.
 */
#ifndef BRIDGE_OPENAI_BATCH_ANSWERS_H
#define BRIDGE_OPENAI_BATCH_ANSWERS_H

#include "bridge/openai/batch-ids.h"
#include "json/bytes.h"

struct batch_answers {
        int fd; /* -1: there are none */
        uint64_t bytes;
};

/* On an error, a negative errno, the file is as it was before. */
int batch_answers_append(struct batch_answers *answers, const struct bytes *line);

/* Reads the answers of a file that is mapped as `text`. */
struct batch_recovery {
        struct text text;
        size_t at;      /* the end of the last line that is whole */
        uint32_t count; /* of answers */
};

/*
 * Reads about `bytes` of it, and marks the answers in `ids`.  1: there may be more; 0: it was read,
 * and what lies behind `at` must be cut: a torn line, or one that is no answer to a line of this
 * batch, and all behind it.  -ENOMEM: nothing was lost; ask again.
 */
int batch_recovery_next(struct batch_recovery *recovery, struct batch_ids *ids, size_t bytes);

/* Cuts the file there. */
int batch_answers_cut(struct batch_answers *answers, uint64_t bytes);

#endif
