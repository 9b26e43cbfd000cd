#include "bridge/core/state-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/log.h"
#include "base/sys.h"
#include "bridge/core/worker.h"

struct state_folder {
        int fd;
        struct worker *worker;
};

/* A change that was asked for. */
struct job {
        struct work work;
        const struct state_folder *folder;
        struct state_change change;
        int result;
        void (*done)(void *arg, int result);
        void *arg;
};

/* ---- opening ---- */

static int check_owner(int fd, const char *path, char *why, size_t why_bytes)
{
        struct sys_owner owner;
        int r = sys_owner(fd, &owner);

        if (r)
                return errtext_set(why, why_bytes, r, "state folder %s: %s", path, strerror(-r));
        if (owner.uid != geteuid())
                return errtext_set(why, why_bytes, -EPERM,
                                   "state folder %s: it belongs to uid %u; it must belong to uid "
                                   "%u, as whom samovar-http runs",
                                   path, owner.uid, (unsigned)geteuid());
        if (owner.mode & 077)
                return errtext_set(why, why_bytes, -EPERM,
                                   "state folder %s: its mode is %04o, so that others may use it; "
                                   "use chmod 0700",
                                   path, owner.mode & 07777u);
        return 0;
}

static int open_folder(const char *path, char *why, size_t why_bytes)
{
        int fd, r = sys_mkdir(path, 0700);

        if (r && r != -EEXIST)
                return errtext_set(why, why_bytes, r, "state folder %s cannot be made: %s", path,
                                   strerror(-r));
        fd = sys_open(path, O_RDONLY | O_DIRECTORY, 0);
        if (fd < 0)
                return errtext_set(why, why_bytes, fd, "state folder %s: %s", path, strerror(-fd));
        r = check_owner(fd, path, why, why_bytes);
        if (!r) {
                r = sys_flock(fd);
                if (r)
                        errtext_set(why, why_bytes, r,
                                    "state folder %s: %s; another samovar-http may use it", path,
                                    strerror(-r));
        }
        if (!r)
                return fd;
        sys_close(fd);
        return r;
}

int state_folder_open(const char *path, struct loop *loop, struct state_folder **ret_folder,
                      char *why, size_t why_bytes)
{
        struct state_folder *folder = calloc(1, sizeof(*folder));
        int r;

        if (!folder)
                return error_raise(-ENOMEM);
        folder->fd = open_folder(path, why, why_bytes);
        r = folder->fd < 0 ? folder->fd : worker_new(loop, "state", &folder->worker);
        if (r) {
                sys_close(folder->fd);
                free(folder);
                return error_raise(r);
        }
        *ret_folder = folder;
        return 0;
}

struct state_folder *state_folder_close(struct state_folder *folder)
{
        if (!folder)
                return NULL;
        worker_free(folder->worker, true);
        sys_close(folder->fd);
        free(folder);
        return NULL;
}

/* ---- changes ---- */

/* A crash may have left the name behind, without a record. */
static int add_data(const struct job *job)
{
        const struct state_change *change = &job->change;
        int r;

        if (change->data_fd < 0)
                return 0;
        r = sys_sync(change->data_fd);
        if (!r)
                r = sys_link_at(change->data_fd, job->folder->fd, change->data);
        if (r != -EEXIST)
                return r;
        r = sys_unlink_at(job->folder->fd, change->data);
        return r ? r : sys_link_at(change->data_fd, job->folder->fd, change->data);
}

static int write_all(int fd, const struct bytes *text)
{
        size_t done = 0;

        while (done < text->count) {
                ssize_t n = sys_pwrite(fd, text->at + done, text->count - done, done);

                if (n <= 0)
                        return n ? (int)n : -EIO;
                done += (size_t)n;
        }
        return sys_sync(fd);
}

static int write_record(const struct job *job)
{
        const struct state_change *change = &job->change;
        char temporary[STATE_NAME_BYTES + sizeof(STATE_TEMPORARY)];
        int fd, r;

        if (!*change->record)
                return 0;
        snprintf(temporary, sizeof(temporary), "%s" STATE_TEMPORARY, change->record);
        fd = sys_create_at(job->folder->fd, temporary, O_WRONLY | O_TRUNC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return fd;
        r = write_all(fd, &change->text);
        sys_close(fd);
        if (!r)
                r = sys_rename_at(job->folder->fd, temporary, change->record);
        if (r)
                sys_unlink_at(job->folder->fd, temporary);
        return r;
}

static int remove_files(const struct job *job)
{
        const struct state_change *change = &job->change;
        int r = 0;

        for (size_t i = 0; i < sizeof(change->removed) / sizeof(*change->removed); i++) {
                int one = *change->removed[i] ? sys_unlink_at(job->folder->fd, change->removed[i])
                                              : 0;

                if (one && one != -ENOENT && !r)
                        r = one;
        }
        return r;
}

static struct job *job_of(struct work *work)
{
        return (struct job *)(void *)((char *)work - offsetof(struct job, work));
}

/* Data is only of something new: if that fails, nothing of it stays. */
static void take_back(const struct job *job)
{
        if (job->change.data_fd < 0)
                return;
        (void)sys_unlink_at(job->folder->fd, job->change.record);
        (void)sys_unlink_at(job->folder->fd, job->change.data);
}

/* What goes may go as soon as the record is on the disk, and only then. */
static void run(struct work *work)
{
        struct job *job = job_of(work);
        int r = add_data(job);

        if (!r)
                r = write_record(job);
        if (!r && *job->change.record)
                r = sys_sync(job->folder->fd);
        if (r)
                take_back(job);
        if (!r)
                r = remove_files(job);
        if (!r && *job->change.removed[0])
                r = sys_sync(job->folder->fd);
        job->result = r;
}

static void drop(struct state_change *change)
{
        sys_close(change->data_fd);
        bytes_deinit(&change->text);
}

static void finish(struct work *work)
{
        struct job *job = job_of(work);

        if (job->result)
                log_limited(LOG_WARN, "state_not_written file=%s error=%s",
                            *job->change.record ? job->change.record : job->change.removed[0],
                            strerror(-job->result));
        drop(&job->change);
        job->done(job->arg, job->result);
        free(job);
}

int state_folder_change(struct state_folder *folder, const struct state_change *change,
                        void (*done)(void *arg, int result), void *arg)
{
        struct job *job = calloc(1, sizeof(*job));

        if (!job) {
                struct state_change dropped = *change;

                drop(&dropped);
                return error_raise(-ENOMEM);
        }
        *job = (struct job){ .work = { .run = run, .done = finish },
                             .folder = folder,
                             .change = *change,
                             .done = done,
                             .arg = arg };
        worker_do(folder->worker, &job->work);
        return 0;
}

bool state_is_shortage(int r)
{
        return r == -ENOSPC || r == -EDQUOT || r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

/* ---- at once ---- */

static int regular(int fd)
{
        uint64_t bytes;
        int r = fd < 0 ? fd : sys_file_size(fd, &bytes);

        if (!r)
                return fd;
        if (fd >= 0)
                sys_close(fd);
        return r;
}

/* O_NONBLOCK: a pipe must not make the open wait. */
int state_folder_open_file(const struct state_folder *folder, const char *name, int flags)
{
        return regular(sys_open_at(folder->fd, name, flags | O_NOFOLLOW | O_NONBLOCK));
}

int state_folder_make_file(const struct state_folder *folder, const char *name)
{
        return regular(sys_create_at(folder->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0600));
}

/* ---- a start ---- */

int state_folder_list(const struct state_folder *folder, int (*each)(void *arg, const char *name),
                      void *arg)
{
        return sys_list(folder->fd, each, arg);
}

static int read_all(int fd, struct bytes *text)
{
        for (;;) {
                ssize_t n;
                int r = bytes_reserve(text, 4096);

                if (r)
                        return r;
                n = sys_read(fd, text->at + text->count, 4096);
                if (n <= 0)
                        return (int)n;
                text->count += (size_t)n;
                if (text->count > STATE_RECORD_BYTES)
                        return -EFBIG;
        }
}

int state_folder_read(const struct state_folder *folder, const char *name, struct bytes *ret_text)
{
        int fd = state_folder_open_file(folder, name, O_RDONLY), r;

        if (fd < 0)
                return fd;
        r = read_all(fd, ret_text);
        sys_close(fd);
        return r;
}

void state_folder_remove(const struct state_folder *folder, const char *name)
{
        (void)sys_unlink_at(folder->fd, name); /* if it stays, the next start tries again */
}

void state_folder_set_aside(const struct state_folder *folder, const char *name, const char *why)
{
        char aside[NAME_MAX + 1];
        int n = snprintf(aside, sizeof(aside), "%s" STATE_ASIDE, name);
        int r = n < (int)sizeof(aside) ? sys_rename_at(folder->fd, name, aside) : -ENAMETOOLONG;

        if (why)
                log_warn("state_not_read file=%s why=%s kept_as=%s", name, why, r ? name : aside);
}
