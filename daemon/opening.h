/*
 * Opening: from settings and files to a model that is ready to serve, and its memory plan.
 *
 * It reads the files only far enough to know what they are.  It does not read the weights and
 * allocates nothing large.  So the daemon, --inspect and --template do the same checks in the same
 * order.  Like main.c, inspect.c and preview.c, this module may depend on all others.
 * opening-plan.c is its second half.
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
        struct served served; /* all but the model itself, which the caller makes */
        enum vocabulary_kind kind;
        enum vocabulary_splitter splitter;
        uint32_t entries; /* entries of the vocabulary */
        struct model_conf model_conf;
        struct model_bytes bytes;
        /* memory of the layers on the host, when the others are on another backend */
        struct model_bytes host;
        struct sched_conf sched;
        char why[512];   /* one line for people, if they can mend the cause */
        char fewer[512]; /* why not more layers are on the backend; or empty */
};

/*
 * Call these in this order; opening_path() may be left out.  Each returns 0 or a negative errno,
 * and in most cases `why`.
 */
int opening_path(struct opening *o); /* finds only the path of the model, or the expected path */
int opening_checkpoint(struct opening *o);
int opening_traits(struct opening *o);
int opening_tokenizer(struct opening *o);
/*
 * With kernels == NULL, plans for the host's memory.  Call it again with a backend that has its own
 * memory, to plan for that memory.  Layers that do not fit there, or that the settings keep away,
 * stay on the host (model_conf: host_layers).  Returns OPENING_E_NO_ROOM and `why` if not one layer
 * fits and the settings do not say how many should.
 */
enum { OPENING_E_NO_ROOM = 1 };
int opening_plan(struct opening *o, struct kernels *kernels);
void opening_close(struct opening *o);

/* Adds the name of the file to a module's message `what`.  Returns r. */
int opening_blame(struct opening *o, const char *path, const char *what, int r);

/* Prints the plan: what is served, and one line with the sums of memory that will be allocated. */
void opening_print(const struct opening *o, FILE *to);

#endif
