/*
 * The folder of the setting `state`: what clients have stored, so that it survives a restart.
 *
 * A record is a small JSON file, which is always whole: it is written under a temporary name,
 * brought to the disk, and renamed.  Beside records lie files of data.  A name that ends with
 * STATE_ASIDE is that of a file which a start could not use; nothing reads or removes it.
 *
 * Changes happen on a worker's thread, one after another in the order in which they were asked for,
 * because a disk may take long.  Loop thread only.
 */
#ifndef BRIDGE_CORE_STATE_FOLDER_H
#define BRIDGE_CORE_STATE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "json/bytes.h"

#define STATE_NAME_BYTES   64u
#define STATE_RECORD_BYTES 65536u /* of a record, at most */
#define STATE_ASIDE        ".aside"
#define STATE_TEMPORARY    ".new"

struct state_folder;

/*
 * Makes the folder if it is absent.  It must belong to this user, with no access for others, and no
 * other process may use it.  On an error: a negative errno, and *why says what is wrong.
 */
int state_folder_open(const char *path, struct loop *loop, struct state_folder **ret_folder,
                      char *why, size_t why_bytes);
/* Finishes all changes, and calls their done().  Takes NULL; returns NULL. */
struct state_folder *state_folder_close(struct state_folder *folder);

/* What happens, in this order. */
struct state_change {
        /* Of something new: this file gets the name `data`; -1: none.  Taken, also on failure. */
        int data_fd;
        char data[STATE_NAME_BYTES];
        char record[STATE_NAME_BYTES];     /* "": no record is written */
        struct bytes text;                 /* of the record.  Taken, also on failure. */
        char removed[4][STATE_NAME_BYTES]; /* "": none */
};

/*
 * Calls done() later, exactly once: 0, when the change is on the disk; or a negative errno, when it
 * is not, or not for certain.
 * -ENOMEM: done() is not called.
 */
int state_folder_change(struct state_folder *folder, const struct state_change *change,
                        void (*done)(void *arg, int result), void *arg);

/* May it be possible later, with more space, memory or descriptors?  A negative errno, or 0. */
bool state_is_shortage(int r);

/* ---- at once, on the loop thread ---- */

/* A descriptor of a regular file of this folder, or a negative errno. */
int state_folder_open_file(const struct state_folder *folder, const char *name, int flags);
/* A new file for answers; it is also opened if it is there. */
int state_folder_make_file(const struct state_folder *folder, const char *name);

/* ---- for a start, before there are changes ---- */

int state_folder_list(const struct state_folder *folder, int (*each)(void *arg, const char *name),
                      void *arg);
/* Reads a record: -EFBIG: it has more than STATE_RECORD_BYTES. */
int state_folder_read(const struct state_folder *folder, const char *name, struct bytes *ret_text);
void state_folder_remove(const struct state_folder *folder, const char *name);
/* Gives the file another name, under which nothing uses it; with a warning if `why` is not NULL. */
void state_folder_set_aside(const struct state_folder *folder, const char *name, const char *why);

#endif
