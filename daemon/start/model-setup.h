/*
 * Model setup: from settings and files to a model that is ready to serve, and its memory plan.
 *
 * It reads the files only far enough to know what they are.  It does not read the weights and
 * allocates nothing large.  So the daemon, --inspect and --template do the same checks in the same
 * order.
 * model-setup-plan.c is its second half.
 */
#ifndef DAEMON_START_MODEL_SETUP_H
#define DAEMON_START_MODEL_SETUP_H

#include <stdio.h>

#include "daemon/core/sched.h"
#include "daemon/engine/model.h"
#include "daemon/files/checkpoint.h"
#include "daemon/model/served.h"
#include "daemon/model/vocabulary.h"
#include "daemon/start/config.h"
#include "daemon/text/parts/dialect.h"

struct model_setup {
        const struct config *config;
        char path[4096]; /* of the model */
        struct checkpoint *checkpoint;
        struct served served; /* all but the model itself, which the caller makes */
        struct dialect dialect;
        struct token_trie *trie;
        enum vocabulary_kind kind;
        char split[64];   /* the name of the splitter, or its expression; or empty */
        uint32_t entries; /* entries of the vocabulary */
        struct model_conf model_conf;
        struct model_bytes bytes;
        /* memory of the layers on the host, when the others are on another backend; and the swap */
        struct model_bytes host;
        struct sched_conf sched;
        char why[512];   /* one line for people, if they can mend the cause */
        char fewer[512]; /* why not more layers are on the backend; or empty */
};

/*
 * Call these in this order; model_setup_path() may be left out.  Each returns 0 or a negative
 * errno, and in most cases `why`.
 */
/* Finds only the path of the model, or the expected path. */
int model_setup_path(struct model_setup *setup);
int model_setup_checkpoint(struct model_setup *setup);
int model_setup_traits(struct model_setup *setup);
int model_setup_tokenizer(struct model_setup *setup);
/*
 * With kernels == NULL, plans for the host's memory.  Call it again with a backend that has its own
 * memory, to plan for that memory.  Layers that do not fit there, or that the settings keep away,
 * stay on the host (model_conf: host_layers).  Returns MODEL_SETUP_E_TOO_SMALL and `why` if not one
 * layer fits and the settings do not say how many should.
 */
enum { MODEL_SETUP_E_TOO_SMALL = 1 };
int model_setup_plan(struct model_setup *setup, struct kernels *kernels);
/*
 * Makes what constraints and penalties need of the tokens' texts.  Only a daemon that serves needs
 * it.  A large vocabulary takes some 80 ms, so the tensors should have confirmed its size before.
 */
int model_setup_texts(struct model_setup *setup);
void model_setup_close(struct model_setup *setup);

/* Adds the name of the file to a module's message `what`.  Returns r. */
int model_setup_fail(struct model_setup *setup, const char *path, const char *what, int r);

/* Prints the plan: what is served, and one line with the sums of memory that will be allocated. */
void model_setup_print(const struct model_setup *setup, FILE *to);

#endif
