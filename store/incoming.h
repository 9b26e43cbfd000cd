/*
 * A model that is being pulled: FOLDER/.pull/NAME, locked by FOLDER/.pull/NAME.lock.
 *
 * A file is first FILE.part, beside FILE.state, which says of which file it is a part.  When all
 * of it is there and its digest is right, it becomes FILE.  When all files are there and samovard
 * can serve them, the folder gets its manifest and is renamed to FOLDER/NAME: a model is there as
 * a whole or not at all.  A pull that was killed finds its parts again.  If samovard cannot serve
 * it, the folder stays, with the reason in the file .refused.
 */
#ifndef STORE_INCOMING_H
#define STORE_INCOMING_H

#include <sys/types.h>

#include "store/store.h"

struct incoming {
        char folder[STORE_PATH_BYTES]; /* where the files are written */
        char target[STORE_PATH_BYTES];
        char lock[STORE_PATH_BYTES];
        int lock_fd;
};

/*
 * Makes the folders and takes the lock.  0; -EBUSY: another process has it, *ret_holder (0: not
 * known); -EPERM: the folder .pull, or that of the model in it, belongs to another user or is a
 * link; or another negative errno.
 */
int incoming_open(const struct store *store, const char *name, struct incoming *ret_incoming,
                  pid_t *ret_holder);
/* Removes everything but these files, with their parts and states: 0 or a negative errno. */
int incoming_tidy(const struct incoming *incoming, const char *const *files, size_t count);
/*
 * Writes the manifest and puts the model into its place.  A model that was there is replaced in the
 * same moment, and removed.  0 or a negative errno.
 */
int incoming_commit(struct incoming *incoming, const struct manifest *manifest);
/* Gives the lock back; what has come stays, if it was not committed. */
void incoming_close(struct incoming *incoming);

#define STORE_REFUSAL_BYTES 640u
/* Notes why samovard cannot serve what has come; the next incoming_tidy() removes the note. */
void incoming_refuse(const struct incoming *incoming, const char *why);
/* That note of the pull of this name: false: there is none. */
bool incoming_refused(const struct store *store, const char *name, char why[STORE_REFUSAL_BYTES]);

/* The bytes that an unfinished pull of this name has left: 0 or -ENOENT. */
int incoming_bytes(const struct store *store, const char *name, uint64_t *ret_bytes);
/* The name of unfinished pull `index`, in no order; false: there are no more. */
bool incoming_name(const struct store *store, size_t index, char ret_name[STORE_NAME_BYTES + 1]);

/* FOLDER/FILE and its suffix: "", ".part" or ".state".  False: too long. */
bool incoming_path(const struct incoming *incoming, const char *file, const char *suffix,
                   char to[STORE_PATH_BYTES]);

/* Describes the file of a part; a part of another file is worthless. */
struct incoming_state {
        char url[2048];                /* as source_public_url() writes it */
        char etag[256];                /* of the server that sent it; or empty */
        char digest[SHA256_HEX_BYTES]; /* that it must have; or empty */
        uint64_t bytes;                /* of the whole file; 0: not known */
        char sha256[SHA256_HEX_BYTES]; /* of the whole file, when it is complete; or empty */
};
/* -ENOENT: there is none that can be read. */
int incoming_read_state(const struct incoming *incoming, const char *file,
                        struct incoming_state *ret_state);
int incoming_write_state(const struct incoming *incoming, const char *file,
                         const struct incoming_state *state);

#endif
