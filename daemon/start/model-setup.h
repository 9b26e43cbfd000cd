/*
 * Model setup: from settings and files to a model that is ready to serve, and its memory plan.
 *
 * It reads the files only far enough to know what they are.  It does not read the weights and
 * allocates nothing large.  So the daemon, --inspect and --template do the same checks in the same
 * order.
 * model-setup-plan.c has the memory plan, and model-setup-draft.c the setup of a draft model, which
 * is another model_setup beside this one.
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
        uint64_t drafts;           /* bytes of the host's memory for guesses at tokens */
        struct draft_setup *draft; /* the draft model; NULL: none */
        struct sched_conf sched;
        char why[512];   /* one line for people, if they can mend the cause */
        char fewer[512]; /* why not more layers are on the backend; or empty */
};

/*
 * The draft model.  It has the same vocabulary, which is compared token by token, and a backend of
 * its own of the served model's kind.  Its memory is in the served model's plan.
 */
struct draft_setup {
        char model[4128];         /* its path, with or without a name */
        struct config config;     /* that of the served model, with `model` as its model */
        struct model_setup setup; /* of the draft model; served.model is opened last */
        struct kernels *kernels;
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
 * Reads the files of the draft model, behind model_setup_tokenizer().  setup->draft stays NULL if
 * the settings want none.
 */
int model_setup_draft(struct model_setup *setup);
/* For the plan: measures it in the memory of `kernels`; NULL: the host's. */
int model_setup_draft_measure(struct model_setup *setup, struct kernels *kernels);
/* Bytes that it takes besides those of each block. */
uint64_t model_setup_draft_bytes(const struct model_setup *setup);
/*
 * Opens its backend, of the kind of `beside`, and the model.  `conf` is what the served model's
 * backend was opened for.
 */
int model_setup_draft_open(struct model_setup *setup, const struct kernels_conf *conf,
                           struct kernels *beside);
int model_setup_draft_load(struct model_setup *setup, const struct weights_conf *conf);
/* Before the backend beside it is closed.  There may be no draft model. */
void model_setup_draft_close(struct model_setup *setup);

/* The bytes that drafts take with these settings and a context. */
uint64_t model_setup_drafts(const struct config *config, uint32_t context);
/*
 * Makes what constraints and penalties need of the tokens' texts.  Only a daemon that serves needs
 * it.  A large vocabulary takes some 80 ms, so the tensors should have confirmed its size before.
 */
int model_setup_texts(struct model_setup *setup);
/* Closes what was made of its vocabulary; the model itself stays. */
void model_setup_close_texts(struct model_setup *setup);
void model_setup_close(struct model_setup *setup);

/* Adds the name of the file to a module's message `what`.  Returns r. */
int model_setup_fail(struct model_setup *setup, const char *path, const char *what, int r);

/* Prints the plan: what is served, and one line with the sums of memory that will be allocated. */
void model_setup_print(const struct model_setup *setup, FILE *to);

#endif
