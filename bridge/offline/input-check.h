/*
 * The check of a batch's lines, before the first is asked: each must be right, and have a custom_id
 * of its own.
 *
 * A batch that goes on compares, too: its answers must be those of the first lines of this input,
 * in the same order.  An answer without a newline at the end of the output is torn, and does not
 * count.  Loop thread only; no step takes longer than reading some lines.
 */
#ifndef BRIDGE_OFFLINE_INPUT_CHECK_H
#define BRIDGE_OFFLINE_INPUT_CHECK_H

#include "bridge/offline/id-check.h"
#include "bridge/offline/line-reader.h"

struct input_check {
        const char *name, *answers_name; /* of the files, for messages */
        struct line_reader input, answers;
        struct id_check *ids;
        bool compares; /* there may be more answers */
        /* Each wrong line; at most WRONG_MAX are told. */
        void (*tell)(void *arg, const char *why);
        void *arg;
        uint64_t wrong;
        /* Results: */
        uint64_t lines;            /* of the input */
        uint64_t answered, failed; /* lines that have an answer; of these, failures */
        uint64_t answers_bytes;    /* of these answers */
        struct line_place goes_on; /* behind the last of these lines */
};

/* answers -1: there are none.  `folder` is for what does not fit into memory.  -ENOMEM. */
int input_check_init(struct input_check *check, int input, int answers, const char *folder);
void input_check_deinit(struct input_check *check);

/*
 * 1: all is right; 0: there is more to check; -EINVAL: the input was refused, and tell() said why;
 * or another negative errno.
 */
int input_check_step(struct input_check *check);

#endif
