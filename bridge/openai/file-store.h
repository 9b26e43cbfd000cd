/*
 * Files that clients have uploaded, and those that batches have written.
 *
 * A file belongs to a principal, by its name; for every other one it is not there.  It expires
 * after the setting `files_keep_ms`.
 *
 * With a state folder, a file is its record ID.json and its bytes ID.data there, and survives a
 * restart.  Without one, its bytes lie in a file without a name, in the folder of the setting
 * `spool`, and it ends with the process.  Loop thread only.
 */
#ifndef BRIDGE_OPENAI_FILE_STORE_H
#define BRIDGE_OPENAI_FILE_STORE_H

#include "bridge/core/call.h"
#include "bridge/openai/file-record.h"

struct stored_file {
        struct list_head of_store;
        struct file_store *store;
        struct file_record record;
        int fd;      /* -1: it lies in the state folder */
        bool hidden; /* it is being stored, or removed: no client sees it */
        void (*done)(void *arg, struct stored_file *file, int result);
        void *arg;
};

struct file_store;
/* NULL: out of memory.  The bridge has its settings and its state folder. */
struct file_store *file_store_new(struct bridge *bridge);
struct file_store *file_store_free(struct file_store *store); /* takes NULL */

struct file_conf {
        const char *owner;
        struct text filename;
        const char *purpose;
        const char *id; /* NULL: a new one */
        int fd;         /* taken, also on failure */
        uint64_t offset, bytes;
};

/*
 * Adds a file.  -ENOMEM; -EDQUOT: the owner has as many files, or as many bytes of them, as it may.
 * Then done() is not called.  Otherwise it is called once, perhaps before this returns: 0, the file
 * is there; or a negative errno, and file NULL: the disk has refused it.
 */
int file_store_add(struct file_store *store, const struct file_conf *conf,
                   void (*done)(void *arg, struct stored_file *file, int result), void *arg);
/* NULL: there is none for this owner. */
struct stored_file *file_store_find(const struct file_store *store, const char *owner,
                                    struct text id);
/* Is there a file of this id, of any owner? */
bool file_store_has(const struct file_store *store, const char *id);
/*
 * No client sees the file from now on.  Calls done() (NULL: nothing) once, with file NULL, perhaps
 * before this returns.
 */
void file_store_remove(struct stored_file *file,
                       void (*done)(void *arg, struct stored_file *file, int result), void *arg);

/* A descriptor of its data, for reading; the caller closes it.  Or a negative errno. */
int file_open(const struct stored_file *file);

/* The next file of the owner behind `after` (NULL: the first), the newest first. */
struct stored_file *file_store_next(const struct file_store *store, const char *owner,
                                    const struct stored_file *after);

/* ---- a start ---- */

/* Takes the record of this name, or sets it aside.  A negative errno: memory, or descriptors. */
int file_store_restore(struct file_store *store, const char *name);
/* All were taken. */
int file_store_restored(struct file_store *store);

#endif
