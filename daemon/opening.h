/*
 * Opening: from settings and files to what will be served, and the plan of its memory.
 *
 * The files are read as far as they say what they are; the weights are not, and
 * nothing large is taken.  So the daemon, its --inspect and its --template ask the same questions
 * in the same order.  With main.c, inspect.c and preview.c it is one of those that know everyone; opening-plan.c
 * is its second half.
 */
#ifndef DAEMON_OPENING_H
#define DAEMON_OPENING_H

#include <stdio.h>

#include "daemon/config.h"
#include "daemon/core/sched.h"
#include "daemon/engine/model.h"
#include "daemon/files/checkpoint.h"
#include "daemon/served.h"
#include "daemon/vocabulary.h"

struct opening {
        const struct config *config;
        char path[4096]; /* of the model */
        struct checkpoint *checkpoint;
        struct served served; /* but for the model itself, which is the caller's */
        enum vocabulary_kind kind;
        enum vocabulary_splitter splitter;
        uint32_t entries; /* of the vocabulary */
        struct model_conf model_conf;
        struct model_bytes bytes;
        struct model_bytes host; /* of the layers that are there, while the others are elsewhere */
        struct sched_conf sched;
        char why[512];   /* one line for people, where the cause is theirs to mend */
        char fewer[512]; /* why no more layers are where they might be; or empty */
};

/* In this order, the first left out or not.  0 or a negative errno, and mostly `why`. */
int opening_path(struct opening *o); /* only where it is, or would be */
int opening_checkpoint(struct opening *o);
int opening_traits(struct opening *o);
int opening_tokenizer(struct opening *o);
/*
 * For the host's memory, with NULL.  And then, with a backend that has memory of its own, for that: layers
 * that do not fit there, or are not to be there, are left to the host (model_conf: host_layers).
 * OPENING_E_NO_ROOM, and `why`: not one fits, and the settings do not say how many should.
 */
enum { OPENING_E_NO_ROOM = 1 };
int opening_plan(struct opening *o, struct kernels *kernels);
void opening_close(struct opening *o);

/* Modules say what is wrong in a file; here is added which file that is.  Returns r. */
int opening_blame(struct opening *o, const char *path, const char *what, int r);

/* What is served unasked, and one line with the sums: what it will hold, before it takes it. */
void opening_print(const struct opening *o, FILE *to);

#endif
