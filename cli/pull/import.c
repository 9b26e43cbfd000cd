#include "cli/pull/import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/pull/get.h"

#define COPY_BYTES (1u << 20)

static int fail(int r, const char *path, char *why, size_t why_bytes)
{
        snprintf(why, why_bytes, "%s: %s", path, strerror(-r));
        return r;
}

static int list_folder(const char *folder, struct listing *listing)
{
        DIR *dir = opendir(folder);
        struct dirent *entry;
        struct stat file;
        int r = 0;

        if (!dir)
                return -errno;
        while (!r && (entry = readdir(dir)))
                if (*entry->d_name != '.' && !fstatat(dirfd(dir), entry->d_name, &file, 0) &&
                    S_ISREG(file.st_mode))
                        r = listing_add(listing, entry->d_name, (uint64_t)file.st_size, "");
        closedir(dir);
        return r;
}

int import_list(const char *path, char **ret_folder, char ret_want[256],
                struct listing *ret_listing, char *why, size_t why_bytes)
{
        char *whole = realpath(path, NULL), *slash;
        struct stat file;
        int r;

        *ret_folder = NULL;
        *ret_listing = (struct listing){ 0 };
        ret_want[0] = '\0';
        if (!whole || stat(whole, &file) < 0) {
                r = fail(-errno, path, why, why_bytes);
                free(whole);
                return r;
        }
        if (!S_ISDIR(file.st_mode)) {
                slash = strrchr(whole, '/');
                snprintf(ret_want, 256, "%s", slash + 1);
                slash[slash == whole] = '\0';
        }
        r = list_folder(whole, ret_listing);
        if (r) {
                listing_deinit(ret_listing);
                fail(r, whole, why, why_bytes);
                free(whole);
                return r;
        }
        *ret_folder = whole;
        return 0;
}

/* Copies all of it, if `to` is a descriptor, and makes the digest. */
static int read_all(const struct fetch_ask *ask, struct fetch_file *file, int from, int to,
                    uint64_t before)
{
        uint8_t *buffer = malloc(COPY_BYTES);
        struct sha256 hash;
        ssize_t n = 1;
        int r = buffer ? 0 : -ENOMEM;

        sha256_begin(&hash);
        file->have = 0;
        while (!r && n > 0) {
                n = read(from, buffer, COPY_BYTES);
                if (n < 0)
                        r = -errno;
                else if (stop_wanted())
                        r = -ECANCELED;
                else if (to >= 0 && write(to, buffer, (size_t)n) != n)
                        r = errno ? -errno : -EIO;
                if (r || !n)
                        break;
                sha256_add(&hash, buffer, (size_t)n);
                file->have += (uint64_t)n;
                progress_show(ask->progress, before + file->have);
        }
        sha256_end_hex(&hash, file->sha256);
        if (!r && to >= 0 && fdatasync(to) < 0)
                r = -errno;
        free(buffer);
        return r;
}

/*
 * A hard link takes no space, but the file stays as writable as it was.  So the link is made only
 * to a file that the user owns.
 */
static int import_file(const struct fetch_ask *ask, struct fetch_file *file, uint64_t before)
{
        int from = open(file->url, O_RDONLY | O_CLOEXEC), to = -1, r = 0;
        char path[STORE_PATH_BYTES];
        struct stat there;

        if (from < 0)
                return -errno;
        if (incoming_path(ask->incoming, file->name, "", path))
                unlink(path);
        else
                r = -ENAMETOOLONG;
        if (!r && (fstat(from, &there) < 0 || there.st_uid != geteuid() ||
                   linkat(AT_FDCWD, file->url, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0)) {
                to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
                r = to < 0 ? -errno : 0;
        }
        if (!r)
                r = read_all(ask, file, from, to, before);
        if (!r && file->size_known && file->have != file->bytes)
                r = -ESTALE;
        file->bytes = file->have;
        close(from);
        if (to >= 0)
                close(to);
        return r;
}

int import(const struct fetch_ask *ask, char *why, size_t why_bytes)
{
        uint64_t before = 0;
        int r = 0;

        for (size_t i = 0; i < ask->count && !r; i++) {
                struct fetch_file *file = &ask->files[i];

                errno = 0;
                r = import_file(ask, file, before);
                before += file->have;
                if (r)
                        fail(r, file->url, why, why_bytes);
                else if (*file->digest && strcasecmp(file->digest, file->sha256)) {
                        snprintf(why, why_bytes, "%s: its SHA-256 is %s, but it should be %s",
                                 file->url, file->sha256, file->digest);
                        r = -EBADMSG;
                }
        }
        progress_clear(ask->progress);
        return r;
}
