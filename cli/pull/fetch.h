/*
 * Fetches files into a folder, several at once; each continues where an earlier try stopped.
 *
 * A try asks for the bytes that are missing (Range).  A server that sends all of it again is read
 * up to that place.  Every byte goes through SHA-256 while it is written; a part of an earlier run
 * is read first.  A file with another digest than the hub's is fetched once more, as a whole.
 *
 * If the digest is not known before, only the server can say that the rest is of the same file
 * (If-Range); if it has changed, it is fetched from its beginning.  With a digest this is not
 * asked: the servers that a hub redirects to may each have another ETag for the same file.
 */
#ifndef CLI_PULL_FETCH_H
#define CLI_PULL_FETCH_H

#include "cli/pull/hub.h"
#include "cli/progress.h"
#include "cli/pull/get.h"
#include "store/incoming.h"

/* A file that is wanted, and what has become of it. */
struct fetch_file {
        const char *url;
        const char *name; /* in the folder */
        uint64_t bytes;   /* 0: not known before, but a file of the hub may be empty */
        bool size_known;
        const char *digest;             /* as in struct listed; "": not known */
        uint64_t have;                  /* bytes on the disk */
        char sha256[SHA256_HEX_BYTES];  /* when it is complete */
        char revision[VALIDATOR_BYTES]; /* of the server, if it sent one */
};

struct fetch_ask {
        struct web *web;
        const struct hub *hub;       /* whose token is sent; NULL: none is */
        const struct source *source; /* for messages of the hub */
        const struct incoming *incoming;
        struct fetch_file *files;
        size_t count;
        uint32_t retries;
        bool digest_is_given; /* by the user: another one may well be of another file */
        struct progress *progress;
};

/*
 * Sets `have` of each file to what an earlier run has left, and removes parts of other files: 0, or
 * a negative errno.
 */
int fetch_look(const struct fetch_ask *ask);

/* 0; -ECANCELED: the user wants to stop; or another negative errno and `why`. */
int fetch(const struct fetch_ask *ask, char *why, size_t why_bytes);

#endif
