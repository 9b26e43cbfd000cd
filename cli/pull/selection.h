/* The files that a pull wants: lists those of the source, and takes those that make a model. */
#ifndef CLI_PULL_SELECTION_H
#define CLI_PULL_SELECTION_H

#include "cli/pull/choose.h"
#include "cli/pull/fetch.h"
#include "cli/pull/hub.h"

struct selection {
        struct source source; /* set before; selection_make() makes a path absolute */
        char origin[2304];    /* the source as text, without secrets */
        char revision[256];   /* the commit of the hub; or empty */
        char *folder;         /* of a source on this machine */
        struct listing listing;
        struct choice choice;
        struct fetch_file *files; /* of the choice, in its order */
        char **urls, **names;     /* of the files */
};

struct selection_ask {
        struct web *web; /* NULL: the source is on this machine */
        const struct hub *hub;
        uint32_t retries;
        const char *sha256; /* that a single file must have; NULL: that of the listing */
};

/* 0; -ECANCELED: the user wants to stop; or another negative errno and `why`. */
int selection_make(struct selection *selection, const struct selection_ask *ask, char *why,
                   size_t why_bytes);
/* Asks for the sizes of the files of a URL: the same. */
int selection_learn_sizes(struct selection *selection, const struct selection_ask *ask, char *why,
                          size_t why_bytes);
void selection_deinit(struct selection *selection);

/* The bytes of all files; 0: some are not known. */
uint64_t selection_bytes(const struct selection *selection);
/* How many of them are on the disk. */
uint64_t selection_have(const struct selection *selection);

#endif
