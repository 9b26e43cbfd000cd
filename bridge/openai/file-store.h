/*
 * Files that clients have uploaded, and those that batches have written.
 *
 * A file belongs to a principal; for every other one it is not there.  Its bytes lie in a file
 * without a name, in the folder of the setting `spool`.  So files end with the process.  Loop
 * thread only.
 */
#ifndef BRIDGE_OPENAI_FILE_STORE_H
#define BRIDGE_OPENAI_FILE_STORE_H

#include <stdint.h>

#include "bridge/core/call.h"

struct stored_file {
        struct list_head of_store; /* in no list: it was deleted, but a batch still reads it */
        uint32_t references;
        char id[48];
        uint32_t principal;
        char filename[128], purpose[32];
        uint64_t created_s;
        int fd;
        uint64_t offset, bytes; /* of its content in fd */
};

struct file_store;
struct file_store *file_store_new(void);                      /* NULL: out of memory */
struct file_store *file_store_free(struct file_store *store); /* takes NULL */

/*
 * Adds a file; the descriptor becomes the store's, also on failure.  -ENOMEM; -EDQUOT: the
 * principal has as many files, or as many bytes of them, as it may.
 */
int file_store_add(struct file_store *store, const struct bridge *bridge, uint32_t principal,
                   int fd, uint64_t offset, uint64_t bytes, struct stored_file **ret_file);
/* NULL: there is none for this principal. */
struct stored_file *file_store_find(const struct file_store *store, uint32_t principal,
                                    struct text id);
void file_store_remove(struct stored_file *file);

struct stored_file *file_ref(struct stored_file *file);
struct stored_file *file_unref(struct stored_file *file); /* takes NULL; returns NULL */

/* The next file of the principal behind `after` (NULL: the first), the newest first. */
struct stored_file *file_store_next(const struct file_store *store, uint32_t principal,
                                    const struct stored_file *after);
void file_put(struct json_builder *to, const struct stored_file *file);

#endif
