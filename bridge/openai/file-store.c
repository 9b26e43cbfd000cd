#include "bridge/openai/file-store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "bridge/core/fields.h"
#include "bridge/core/identifier.h"
#include "bridge/core/state-folder.h"

#define NS_PER_S  UINT64_C(1000000000)
#define MS_PER_S  1000u
#define EXPIRY_NS (60 * NS_PER_S) /* how often files that have expired are removed */

struct file_store {
        struct list_head files; /* the newest first */
        struct bridge *bridge;
        struct loop_timer *expiry;
};

static uint64_t now_s(void)
{
        return sys_wall_clock_ns() / NS_PER_S;
}

static bool has_expired(const struct stored_file *file)
{
        return now_s() >= file->record.expires_s;
}

static bool is_owner(const struct stored_file *file, const char *owner)
{
        return !strcmp(file->record.owner, owner);
}

static void free_file(struct stored_file *file)
{
        list_remove(&file->of_store);
        sys_close(file->fd);
        free(file);
}

static void name_in_state(const struct stored_file *file, const char *ending, char *to)
{
        snprintf(to, STATE_NAME_BYTES, "%.40s%s", file->record.id, ending);
}

/* ---- adding ---- */

/* Also those that are hidden: their bytes are there. */
static bool has_space(const struct file_store *store, const char *owner, uint64_t bytes)
{
        const struct bridge_conf *conf = &store->bridge->conf;
        uint32_t count = 0;

        list_each(at, &store->files) {
                const struct stored_file *file = LIST_ENTRY(at, struct stored_file, of_store);

                if (!is_owner(file, owner) || has_expired(file))
                        continue;
                count++;
                bytes += file->record.bytes;
        }
        return count < conf->files_max && bytes <= conf->files_bytes;
}

static void fill(struct stored_file *file, const struct file_conf *conf, uint32_t keep_ms)
{
        struct file_record *record = &file->record;

        if (conf->id)
                snprintf(record->id, sizeof(record->id), "%s", conf->id);
        else
                identifier_make(FILE_PREFIX, record->id, sizeof(record->id));
        snprintf(record->owner, sizeof(record->owner), "%s", conf->owner);
        snprintf(record->purpose, sizeof(record->purpose), "%s", conf->purpose);
        file_record_set_name(record, conf->filename);
        record->created_ns = sys_wall_clock_ns();
        record->expires_s = record->created_ns / NS_PER_S + (keep_ms + MS_PER_S - 1) / MS_PER_S;
        record->offset = conf->offset;
        record->bytes = conf->bytes;
}

static void on_added(void *arg, int result)
{
        struct stored_file *file = arg;
        void (*done)(void *, struct stored_file *, int) = file->done;
        void *done_arg = file->arg;

        if (result)
                free_file(file);
        else
                file->hidden = false;
        done(done_arg, result ? NULL : file, result);
}

/* The descriptor goes with the change. */
static int add_to_state(struct stored_file *file)
{
        struct state_change change = { .data_fd = file->fd };
        struct json_builder to = json_build(&change.text);
        int r;

        file->fd = -1;
        name_in_state(file, ".data", change.data);
        name_in_state(file, ".json", change.record);
        file_record_write(&to, &file->record);
        r = json_put_end(&to);
        if (!r)
                return state_folder_change(file->store->bridge->state, &change, on_added, file);
        sys_close(change.data_fd);
        bytes_deinit(&change.text);
        return r;
}

int file_store_add(struct file_store *store, const struct file_conf *conf,
                   void (*done)(void *arg, struct stored_file *file, int result), void *arg)
{
        bool fits = has_space(store, conf->owner, conf->bytes);
        struct stored_file *file = fits ? calloc(1, sizeof(*file)) : NULL;
        int r = 0;

        if (!file) {
                sys_close(conf->fd);
                return fits ? -ENOMEM : -EDQUOT;
        }
        file->store = store;
        file->fd = conf->fd;
        file->hidden = true;
        file->done = done;
        file->arg = arg;
        fill(file, conf, store->bridge->conf.files_keep_ms);
        list_push_front(&store->files, &file->of_store);
        if (store->bridge->state)
                r = add_to_state(file);
        else
                on_added(file, 0);
        if (r)
                free_file(file);
        return r;
}

/* ---- removing ---- */

static void on_removed(void *arg, int result)
{
        struct stored_file *file = arg;
        void (*done)(void *, struct stored_file *, int) = file->done;
        void *done_arg = file->arg;

        free_file(file);
        if (done)
                done(done_arg, NULL, result);
}

void file_store_remove(struct stored_file *file,
                       void (*done)(void *arg, struct stored_file *file, int result), void *arg)
{
        struct state_change change = { .data_fd = -1 };
        int r = 0;

        file->hidden = true;
        file->done = done;
        file->arg = arg;
        name_in_state(file, ".json", change.removed[0]);
        name_in_state(file, ".data", change.removed[1]);
        if (file->store->bridge->state)
                r = state_folder_change(file->store->bridge->state, &change, on_removed, file);
        if (r || !file->store->bridge->state)
                on_removed(file, r);
}

static void remove_expired(void *arg)
{
        struct file_store *store = arg;

        list_each_safe(at, &store->files) {
                struct stored_file *file = LIST_ENTRY(at, struct stored_file, of_store);

                if (!file->hidden && has_expired(file))
                        file_store_remove(file, NULL, NULL);
        }
        loop_timer_set(store->expiry, EXPIRY_NS);
}

/* ---- finding ---- */

struct stored_file *file_store_find(const struct file_store *store, const char *owner,
                                    struct text id)
{
        struct stored_file *file = NULL;

        while ((file = file_store_next(store, owner, file)))
                if (text_is(id, file->record.id))
                        return file;
        return NULL;
}

bool file_store_has(const struct file_store *store, const char *id)
{
        list_each(at, &store->files) {
                const struct stored_file *file = LIST_ENTRY(at, struct stored_file, of_store);

                if (!strcmp(file->record.id, id))
                        return true;
        }
        return false;
}

struct stored_file *file_store_next(const struct file_store *store, const char *owner,
                                    const struct stored_file *after)
{
        const struct list_head *at = after ? &after->of_store : &store->files;

        while ((at = at->next) != &store->files) {
                struct stored_file *file = LIST_ENTRY(at, struct stored_file, of_store);

                if (is_owner(file, owner) && !file->hidden && !has_expired(file))
                        return file;
        }
        return NULL;
}

int file_open(const struct stored_file *file)
{
        char name[STATE_NAME_BYTES];

        if (file->fd >= 0)
                return sys_reopen(file->fd, O_RDONLY | O_CLOEXEC);
        name_in_state(file, ".data", name);
        return state_folder_open_file(file->store->bridge->state, name, O_RDONLY);
}

/* ---- a start ---- */

/* 0: all bytes are there of which the record speaks. */
static int check_data(const struct stored_file *file, const char **ret_why)
{
        int fd = file_open(file);
        uint64_t bytes = 0;
        int r = fd < 0 ? fd : sys_file_size(fd, &bytes);

        if (fd >= 0)
                sys_close(fd);
        if (!r && bytes >= file->record.offset + file->record.bytes)
                return 0;
        *ret_why = "its data is missing or too short";
        return r;
}

static void set_aside(const struct file_store *store, const char *name, const char *why)
{
        char data[STATE_NAME_BYTES];

        state_folder_set_aside(store->bridge->state, name, why);
        snprintf(data, sizeof(data), "%.*s.data", (int)strcspn(name, "."), name);
        state_folder_set_aside(store->bridge->state, data, NULL);
}

/* NULL: the record is right. */
static const char *take(struct stored_file *file, const char *name, int *ret_result)
{
        char expected[STATE_NAME_BYTES];
        struct bytes text = { 0 };
        const char *why = NULL;

        *ret_result = state_folder_read(file->store->bridge->state, name, &text);
        if (*ret_result)
                why = strerror(-*ret_result);
        else if (file_record_read((struct text){ text.at, text.count }, &file->record, &why)) {
                name_in_state(file, ".json", expected);
                if (strcmp(expected, name))
                        why = "its id is not its name";
                else
                        *ret_result = check_data(file, &why);
        }
        bytes_deinit(&text);
        return why;
}

int file_store_restore(struct file_store *store, const char *name)
{
        struct stored_file *file = calloc(1, sizeof(*file));
        const char *why;
        int r;

        if (!file)
                return -ENOMEM;
        file->store = store;
        file->fd = -1;
        why = take(file, name, &r);
        if (!why) {
                list_push_front(&store->files, &file->of_store);
                return 0;
        }
        free(file);
        if (state_is_shortage(r))
                return r;
        set_aside(store, name, why);
        return 0;
}

static int newer_first(const void *a, const void *b)
{
        const struct stored_file *const *left = a, *const *right = b;
        uint64_t l = (*left)->record.created_ns, r = (*right)->record.created_ns;

        return (l < r) - (l > r);
}

/* The folder lists names in no order. */
static int sort(struct file_store *store)
{
        struct stored_file **files;
        struct list_head *link;
        size_t count = 0, i = 0;

        list_each(at, &store->files)
                count++;
        files = calloc(count + 1, sizeof(*files));
        if (!files)
                return -ENOMEM;
        while ((link = list_pop_front(&store->files)))
                files[i++] = LIST_ENTRY(link, struct stored_file, of_store);
        qsort(files, count, sizeof(struct stored_file *), newer_first);
        for (i = 0; i < count; i++)
                list_push_back(&store->files, &files[i]->of_store);
        free(files);
        return 0;
}

int file_store_restored(struct file_store *store)
{
        int r = sort(store);

        if (!r)
                remove_expired(store);
        return r;
}

/* ---- the store ---- */

struct file_store *file_store_new(struct bridge *bridge)
{
        struct file_store *store = calloc(1, sizeof(*store));

        if (!store)
                return NULL;
        list_init(&store->files);
        store->bridge = bridge;
        if (!loop_timer_new(bridge->conf.loop, remove_expired, store, &store->expiry) &&
            !loop_timer_set(store->expiry, EXPIRY_NS))
                return store;
        return file_store_free(store);
}

struct file_store *file_store_free(struct file_store *store)
{
        if (!store)
                return NULL;
        list_each_safe(at, &store->files)
                free_file(LIST_ENTRY(at, struct stored_file, of_store));
        loop_timer_free(store->expiry);
        free(store);
        return NULL;
}
