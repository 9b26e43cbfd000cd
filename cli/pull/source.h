/* Where a model is to come from, as the user writes it. */
#ifndef CLI_PULL_SOURCE_H
#define CLI_PULL_SOURCE_H

#include <stddef.h>

enum source_kind {
        SOURCE_HUB,  /* a repository of Hugging Face */
        SOURCE_URL,  /* one file */
        SOURCE_PATH, /* a file or folder of this machine */
};

struct source {
        enum source_kind kind;
        char repository[200]; /* hub: "OWNER/NAME" */
        char want[256];       /* hub: a quantisation or a file; "": the best one */
        char revision[128];   /* hub: a branch, tag or commit; "": main */
        char place[2048];     /* the URL, or the path */
};

/*
 * Reads  hf:OWNER/NAME[:WANT][@REVISION]  (hf: may be left out), the address of a page or file of
 * the hub, any other http:// or https:// URL, or a path: with / or . at its beginning, or of a file
 * that is there.  `endpoint` is the hub's own URL.  0, or -EINVAL and `why`.
 */
int source_read(const char *text, const char *endpoint, struct source *ret_source, char *why,
                size_t why_bytes);

/*
 * Writes a URL without what may be secret or changes from day to day: user, password, query and
 * fragment.
 */
void source_public_url(const char *url, char *to, size_t bytes);

/* Writes the source so that source_read() reads the same, with a URL as source_public_url(). */
void source_write(const struct source *source, char *to, size_t bytes);

#endif
