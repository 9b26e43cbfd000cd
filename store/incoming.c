#include "store/incoming.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json/reader.h"
#include "store/text-file.h"

#define STATE_BYTES_MAX 65536u
#define REFUSAL_FILE    ".refused"
#define TRIES           100u

static int make_folder(const char *path)
{
        return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/*
 * A folder of this user.  Where other users may write into `place`, one of them could have made it,
 * with links to files of ours.  On some file systems everything has the same owner.
 */
static int make_own_folder(const char *place, const char *path)
{
        struct stat folder, above;
        int r = make_folder(path);

        if (!r && (lstat(path, &folder) < 0 || stat(place, &above) < 0))
                r = -errno;
        if (r)
                return r;
        return S_ISDIR(folder.st_mode) &&
                               (folder.st_uid == geteuid() || folder.st_uid == above.st_uid)
                       ? 0
                       : -EPERM;
}

/* The folder and those above it. */
static int make_folders(const char *path)
{
        char above[STORE_PATH_BYTES];

        snprintf(above, sizeof(above), "%s", path);
        for (char *slash = strchr(above + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(above, 0755) < 0 && errno != EEXIST && access(above, X_OK) < 0)
                        return -errno;
                *slash = '/';
        }
        return make_folder(path);
}

static pid_t read_holder(int fd)
{
        char text[32] = "";

        return pread(fd, text, sizeof(text) - 1, 0) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* The lock's file is removed with the lock, so what was locked may be gone: then try again. */
static int take_lock(struct incoming *incoming, pid_t *ret_holder)
{
        struct stat ours, there;
        char text[32];

        for (;;) {
                int fd = open(incoming->lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644), n;

                if (fd < 0)
                        return -errno;
                if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                        int r = errno == EWOULDBLOCK ? -EBUSY : -errno;

                        *ret_holder = read_holder(fd);
                        close(fd);
                        return r;
                }
                if (!fstat(fd, &ours) && !stat(incoming->lock, &there) &&
                    ours.st_ino == there.st_ino) {
                        n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
                        if (!ftruncate(fd, 0) && pwrite(fd, text, (size_t)n, 0) == n)
                                incoming->lock_fd = fd;
                        else
                                close(fd);
                        return incoming->lock_fd < 0 ? -EIO : 0;
                }
                close(fd);
        }
}

int incoming_open(const struct store *store, const char *name, struct incoming *ret_incoming,
                  pid_t *ret_holder)
{
        const char *place = store->places[0];
        struct incoming *in = ret_incoming;
        char pull[STORE_PATH_BYTES];
        int r;

        *in = (struct incoming){ .lock_fd = -1 };
        *ret_holder = 0;
        if ((size_t)snprintf(pull, sizeof(pull), "%s/.pull", place) >= sizeof(pull) ||
            (size_t)snprintf(in->folder, sizeof(in->folder), "%s/%s", pull, name) >=
                    sizeof(in->folder) ||
            (size_t)snprintf(in->target, sizeof(in->target), "%s/%s", place, name) >=
                    sizeof(in->target) ||
            (size_t)snprintf(in->lock, sizeof(in->lock), "%s/%s.lock", pull, name) >=
                    sizeof(in->lock))
                return -ENAMETOOLONG;
        r = make_folders(place);
        for (unsigned i = 0; i < TRIES && !r; i++) {
                r = make_own_folder(place, pull);
                if (!r)
                        r = take_lock(in, ret_holder);
                if (r != -ENOENT)
                        break;
                r = 0; /* another pull has ended and removed the folder */
        }
        if (r)
                return r;
        if (in->lock_fd < 0)
                return -ENOENT;
        r = make_own_folder(place, in->folder);
        if (r)
                incoming_close(in);
        return r;
}

static void sync_folder(const char *path)
{
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0) {
                fsync(fd);
                close(fd);
        }
}

/* True if the entry is the file, its part or its state. */
static bool is_of(const char *entry, const char *file)
{
        size_t bytes = strlen(file);

        return !strncmp(entry, file, bytes) && (!entry[bytes] || !strcmp(entry + bytes, ".part") ||
                                                !strcmp(entry + bytes, ".state"));
}

int incoming_tidy(const struct incoming *incoming, const char *const *files, size_t count)
{
        DIR *dir = opendir(incoming->folder);
        struct dirent *entry;
        char path[STORE_PATH_BYTES];
        int r = 0;

        if (!dir)
                return -errno;
        while (!r && (entry = readdir(dir))) {
                bool wanted = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");

                for (size_t i = 0; i < count && !wanted; i++)
                        wanted = is_of(entry->d_name, files[i]);
                if (!wanted && incoming_path(incoming, entry->d_name, "", path))
                        r = store_remove(path);
        }
        closedir(dir);
        return r;
}

/*
 * Removes the states, which only the pull needs.  In the folder of the machine, all users may read
 * the model, whatever the umask is.
 */
static void finish_files(const struct incoming *incoming, const struct manifest *manifest)
{
        size_t system = strlen(STORE_SYSTEM);
        bool shared =
                !strncmp(incoming->target, STORE_SYSTEM, system) && incoming->target[system] == '/';
        char path[STORE_PATH_BYTES];

        for (size_t i = 0; i < manifest->file_count; i++) {
                if (incoming_path(incoming, manifest->files[i].name, ".state", path))
                        unlink(path);
                if (shared && incoming_path(incoming, manifest->files[i].name, "", path))
                        chmod(path, 0644);
        }
        if (shared && incoming_path(incoming, MANIFEST_FILE, "", path)) {
                chmod(path, 0644);
                chmod(incoming->folder, 0755);
        }
}

/* Not every file system can exchange two names; without that, there is a short gap. */
static int replace(const struct incoming *incoming)
{
        char old[STORE_PATH_BYTES + 8];

        if (!renameat2(AT_FDCWD, incoming->folder, AT_FDCWD, incoming->target, RENAME_EXCHANGE))
                return store_remove(incoming->folder);
        snprintf(old, sizeof(old), "%s.old", incoming->folder);
        store_remove(old);
        if (rename(incoming->target, old) < 0 && errno != ENOENT)
                return -errno;
        if (rename(incoming->folder, incoming->target) < 0)
                return -errno;
        store_remove(old);
        return 0;
}

int incoming_commit(struct incoming *incoming, const struct manifest *manifest)
{
        char *slash = strrchr(incoming->target, '/');
        int r = manifest_write(incoming->folder, manifest);

        if (r)
                return r;
        finish_files(incoming, manifest);
        sync_folder(incoming->folder);
        if (renameat2(AT_FDCWD, incoming->folder, AT_FDCWD, incoming->target, RENAME_NOREPLACE)) {
                if (errno != EEXIST && errno != EINVAL && errno != ENOSYS)
                        return -errno;
                r = replace(incoming);
        }
        *slash = '\0';
        sync_folder(incoming->target);
        *slash = '/';
        return r;
}

void incoming_close(struct incoming *incoming)
{
        char *slash;

        if (incoming->lock_fd < 0)
                return;
        rmdir(incoming->folder); /* only if nothing has come */
        unlink(incoming->lock);
        close(incoming->lock_fd);
        incoming->lock_fd = -1;
        slash = strrchr(incoming->lock, '/');
        *slash = '\0';
        rmdir(incoming->lock); /* only if nothing else is being pulled */
}

bool incoming_path(const struct incoming *incoming, const char *file, const char *suffix,
                   char to[STORE_PATH_BYTES])
{
        return (size_t)snprintf(to, STORE_PATH_BYTES, "%s/%s%s", incoming->folder, file, suffix) <
               STORE_PATH_BYTES;
}

void incoming_refuse(const struct incoming *incoming, const char *why)
{
        char path[STORE_PATH_BYTES];

        if (incoming_path(incoming, REFUSAL_FILE, "", path))
                text_file_write(path, why, strlen(why));
}

/* ---- what other pulls have left ---- */

bool incoming_refused(const struct store *store, const char *name, char why[STORE_REFUSAL_BYTES])
{
        struct bytes text = { 0 };
        char path[STORE_PATH_BYTES];
        bool refused;

        refused = (size_t)snprintf(path, sizeof(path), "%s/.pull/%s/%s", store->places[0], name,
                                   REFUSAL_FILE) < sizeof(path) &&
                  !text_file_read(path, STORE_REFUSAL_BYTES, &text);
        if (refused)
                snprintf(why, STORE_REFUSAL_BYTES, "%s", text.at);
        bytes_deinit(&text);
        return refused;
}

int incoming_bytes(const struct store *store, const char *name, uint64_t *ret_bytes)
{
        char path[STORE_PATH_BYTES];
        struct dirent *entry;
        struct stat file;
        DIR *dir;

        *ret_bytes = 0;
        if ((size_t)snprintf(path, sizeof(path), "%s/.pull/%s", store->places[0], name) >=
            sizeof(path))
                return -ENOENT;
        dir = opendir(path);
        if (!dir)
                return -ENOENT;
        while ((entry = readdir(dir)))
                if (!fstatat(dirfd(dir), entry->d_name, &file, 0) && S_ISREG(file.st_mode))
                        *ret_bytes += (uint64_t)file.st_size;
        closedir(dir);
        return 0;
}

bool incoming_name(const struct store *store, size_t index, char ret_name[STORE_NAME_BYTES + 1])
{
        char path[STORE_PATH_BYTES];
        struct dirent *entry;
        struct stat file;
        bool found = false;
        DIR *dir;

        if ((size_t)snprintf(path, sizeof(path), "%s/.pull", store->places[0]) >= sizeof(path))
                return false;
        dir = opendir(path);
        while (dir && !found && (entry = readdir(dir))) {
                if (!store_may_name(entry->d_name, strlen(entry->d_name)) ||
                    fstatat(dirfd(dir), entry->d_name, &file, 0) < 0 || !S_ISDIR(file.st_mode) ||
                    index--)
                        continue;
                found = true;
                snprintf(ret_name, STORE_NAME_BYTES + 1, "%s", entry->d_name);
        }
        if (dir)
                closedir(dir);
        return found;
}

/* ---- states ---- */

static void copy_text(const struct json_document *json, const char *key, char *to, size_t bytes)
{
        const char *text = json_string(json, json_member(json, 0, key), NULL);

        snprintf(to, bytes, "%s", text ? text : "");
}

int incoming_read_state(const struct incoming *incoming, const char *file,
                        struct incoming_state *ret_state)
{
        struct json_document *json = NULL;
        struct bytes text = { 0 };
        char path[STORE_PATH_BYTES], why[128];
        int r;

        *ret_state = (struct incoming_state){ 0 };
        if (!incoming_path(incoming, file, ".state", path))
                return -ENAMETOOLONG;
        r = text_file_read(path, STATE_BYTES_MAX, &text);
        if (!r)
                r = json_parse(text.at, text.count, 64, &json, why, sizeof(why));
        if (!r) {
                copy_text(json, "url", ret_state->url, sizeof(ret_state->url));
                copy_text(json, "etag", ret_state->etag, sizeof(ret_state->etag));
                copy_text(json, "digest", ret_state->digest, sizeof(ret_state->digest));
                copy_text(json, "sha256", ret_state->sha256, sizeof(ret_state->sha256));
                json_whole(json, json_member(json, 0, "bytes"), &ret_state->bytes);
        }
        json_free(json);
        bytes_deinit(&text);
        return r ? -ENOENT : 0;
}

int incoming_write_state(const struct incoming *incoming, const char *file,
                         const struct incoming_state *state)
{
        struct bytes text = { 0 };
        struct json_builder builder = json_build(&text);
        char path[STORE_PATH_BYTES];
        int r;

        if (!incoming_path(incoming, file, ".state", path))
                return -ENAMETOOLONG;
        json_put_object(&builder);
        json_put_key_word(&builder, "url", state->url);
        json_put_key_word(&builder, "etag", state->etag);
        json_put_key_word(&builder, "digest", state->digest);
        json_put_key_uint(&builder, "bytes", state->bytes);
        json_put_key_word(&builder, "sha256", state->sha256);
        json_put_object_end(&builder);
        r = json_put_end(&builder);
        if (!r)
                r = text_file_write(path, text.at, text.count);
        bytes_deinit(&text);
        return r;
}
