#include "bridge/openai/batch-store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "bridge/core/fields.h"
#include "bridge/core/identifier.h"
#include "bridge/core/state-folder.h"

#define NS_PER_S   UINT64_C(1000000000)
#define MS_PER_S   1000u
#define ACTIVE_MAX 8u              /* batches of an owner that run */
#define KEPT_MAX   100u            /* batches of an owner, those that have ended, too */
#define FORGET_NS  (60 * NS_PER_S) /* how often old batches are forgotten */

struct batch_store {
        struct list_head batches; /* the newest first */
        struct bridge *bridge;
        struct loop_timer *forgetting;
};

static bool is_owner(const struct batch *batch, const char *owner)
{
        return !strcmp(batch->record.owner, owner);
}

static void free_batch(struct batch *batch)
{
        batch_close(batch);
        list_remove(&batch->of_store);
        free(batch->record.metadata);
        free(batch);
}

/* ---- forgetting ---- */

static void on_forgotten(void *arg, int result)
{
        (void)arg;
        (void)result; /* the folder has logged it, and the next start forgets it again */
}

static void forget(struct batch *batch)
{
        struct state_change change = { .data_fd = -1 };

        batch_name_in_state(&batch->record, BATCH_RECORD_NAME, change.removed[0]);
        if (batch->bridge->state)
                (void)state_folder_change(batch->bridge->state, &change, on_forgotten, NULL);
        free_batch(batch);
}

static bool is_old(const struct batch *batch)
{
        uint64_t keep_s = batch->bridge->conf.files_keep_ms / MS_PER_S + 1;

        return batch->over &&
               sys_wall_clock_ns() / NS_PER_S > batch->record.created_ns / NS_PER_S + keep_s;
}

static void forget_old(void *arg)
{
        struct batch_store *store = arg;

        list_each_safe(at, &store->batches) {
                struct batch *batch = LIST_ENTRY(at, struct batch, of_store);

                if (is_old(batch))
                        forget(batch);
        }
        loop_timer_set(store->forgetting, FORGET_NS);
}

/* Forgets the oldest batch that has ended, if the owner has many.  False: too many run. */
static bool make_space(struct batch_store *store, const char *owner)
{
        struct batch *oldest = NULL;
        uint32_t count = 0, active = 0;

        list_each(at, &store->batches) {
                struct batch *batch = LIST_ENTRY(at, struct batch, of_store);

                if (!is_owner(batch, owner))
                        continue;
                count++;
                if (batch->over)
                        oldest = batch;
                else
                        active++;
        }
        if (count >= KEPT_MAX && oldest)
                forget(oldest);
        return active < ACTIVE_MAX;
}

/* ---- beginning ---- */

static void on_begun(void *arg, int result)
{
        struct batch *batch = arg;
        void (*done)(void *, struct batch *, int) = batch->done;
        void *done_arg = batch->arg;

        batch->hidden = false;
        if (!result)
                result = batch_start(batch);
        if (result)
                free_batch(batch);
        done(done_arg, result ? NULL : batch, result);
}

static int fill(struct batch *batch, const struct batch_conf *conf)
{
        struct batch_record *record = &batch->record;

        identifier_make(BATCH_PREFIX, record->id, sizeof(record->id));
        identifier_make(FILE_PREFIX, record->output_id, sizeof(record->output_id));
        identifier_make(FILE_PREFIX, record->error_id, sizeof(record->error_id));
        snprintf(record->owner, sizeof(record->owner), "%s", conf->owner);
        snprintf(record->endpoint, sizeof(record->endpoint), "%.*s", (int)conf->endpoint.bytes,
                 conf->endpoint.at);
        snprintf(record->input_id, sizeof(record->input_id), "%s", conf->input->record.id);
        record->input_offset = conf->input->record.offset;
        record->input_bytes = conf->input->record.bytes;
        record->created_ns = sys_wall_clock_ns();
        batch_enter(batch, BATCH_VALIDATING);
        if (!conf->metadata.at)
                return 0;
        record->metadata = strndup(conf->metadata.at, conf->metadata.bytes);
        return record->metadata ? 0 : -ENOMEM;
}

/* The input gets another name: the batch needs it also when the client has removed the file. */
static int save(struct batch *batch, int input)
{
        struct state_change change = { .data_fd = input };
        struct json_builder to = json_build(&change.text);
        int r;

        batch_name_in_state(&batch->record, BATCH_INPUT_NAME, change.data);
        batch_name_in_state(&batch->record, BATCH_RECORD_NAME, change.record);
        batch_record_write(&to, &batch->record);
        r = json_put_end(&to);
        if (!r)
                return state_folder_change(batch->bridge->state, &change, on_begun, batch);
        sys_close(input);
        bytes_deinit(&change.text);
        return r;
}

static int begin(struct batch *batch, const struct batch_conf *conf)
{
        int input = file_open(conf->input), r;

        if (input < 0)
                return input;
        r = fill(batch, conf);
        if (!r)
                r = batch_open(batch, input);
        if (!r && batch->bridge->state)
                return save(batch, input);
        sys_close(input);
        if (!r)
                on_begun(batch, 0);
        return r;
}

static struct batch *new_batch(const struct batch_store *store)
{
        struct batch *batch = calloc(1, sizeof(*batch));

        if (!batch)
                return NULL;
        batch->bridge = store->bridge;
        batch->output.fd = batch->errors.fd = -1;
        list_init(&batch->running);
        list_init(&batch->again);
        return batch;
}

int batch_begin(struct batch_store *store, const struct batch_conf *conf,
                void (*done)(void *arg, struct batch *batch, int result), void *arg)
{
        struct batch *batch;
        int r;

        if (!make_space(store, conf->owner))
                return -EDQUOT;
        batch = new_batch(store);
        if (!batch)
                return -ENOMEM;
        batch->hidden = true;
        batch->done = done;
        batch->arg = arg;
        list_push_front(&store->batches, &batch->of_store);
        r = begin(batch, conf);
        if (r)
                free_batch(batch);
        return r;
}

/* ---- finding ---- */

struct batch *batch_find(const struct batch_store *store, const char *owner, struct text id)
{
        struct batch *batch = NULL;

        while ((batch = batch_next(store, owner, batch)))
                if (text_is(id, batch->record.id))
                        return batch;
        return NULL;
}

struct batch *batch_next(const struct batch_store *store, const char *owner,
                         const struct batch *after)
{
        const struct list_head *at = after ? &after->of_store : &store->batches;

        while ((at = at->next) != &store->batches) {
                struct batch *batch = LIST_ENTRY(at, struct batch, of_store);

                if (is_owner(batch, owner) && !batch->hidden && !is_old(batch))
                        return batch;
        }
        return NULL;
}

/* ---- a start ---- */

static void set_aside(const struct batch_store *store, const char *name, const char *why)
{
        static const char *const endings[] = { BATCH_INPUT_NAME, BATCH_OUTPUT_NAME,
                                               BATCH_ERRORS_NAME };
        char beside[STATE_NAME_BYTES];

        state_folder_set_aside(store->bridge->state, name, why);
        for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
                snprintf(beside, sizeof(beside), "%.*s%s", (int)strcspn(name, "."), name,
                         endings[i]);
                state_folder_set_aside(store->bridge->state, beside, NULL);
        }
}

/* Opens the input of a batch that has not ended.  *ret_why: why it cannot go on. */
static int open_input(struct batch *batch, const char **ret_why)
{
        char name[STATE_NAME_BYTES];
        uint64_t bytes = 0;
        int input, r;

        batch_name_in_state(&batch->record, BATCH_INPUT_NAME, name);
        input = state_folder_open_file(batch->bridge->state, name, O_RDONLY);
        r = input < 0 ? input : sys_file_size(input, &bytes);
        if ((r && !state_is_shortage(r)) ||
            (!r && bytes < batch->record.input_offset + batch->record.input_bytes))
                *ret_why = "its input is missing or too short";
        else if (r)
                *ret_why = strerror(-r);
        else
                r = batch_open(batch, input);
        if (input >= 0)
                sys_close(input);
        return r;
}

static uint32_t count_active(const struct batch_store *store, const char *owner)
{
        uint32_t count = 0;

        list_each(at, &store->batches) {
                const struct batch *batch = LIST_ENTRY(at, struct batch, of_store);

                count += is_owner(batch, owner) && !batch->over;
        }
        return count;
}

/* NULL: the record is right, and the batch is ready. */
static const char *take(struct batch_store *store, struct batch *batch, const char *name,
                        struct text text, int *ret_result)
{
        char expected[STATE_NAME_BYTES];
        const char *why = NULL;

        *ret_result = batch_record_read(text, &batch->record, &why);
        if (*ret_result)
                return why;
        batch_name_in_state(&batch->record, BATCH_RECORD_NAME, expected);
        if (strcmp(expected, name))
                return "its id is not its name";
        batch->over = batch_record_has_ended(&batch->record);
        batch->restored = true;
        if (batch->over)
                return NULL;
        if (count_active(store, batch->record.owner) >= ACTIVE_MAX)
                return "more batches of this owner run than may";
        *ret_result = open_input(batch, &why);
        return why;
}

int batch_store_restore(struct batch_store *store, const char *name)
{
        struct batch *batch = new_batch(store);
        struct bytes text = { 0 };
        const char *why;
        int r;

        if (!batch)
                return -ENOMEM;
        r = state_folder_read(store->bridge->state, name, &text);
        why = r ? strerror(-r) : take(store, batch, name, (struct text){ text.at, text.count }, &r);
        bytes_deinit(&text);
        if (!r && !why) {
                list_push_front(&store->batches, &batch->of_store);
                return 0;
        }
        free_batch(batch);
        if (state_is_shortage(r))
                return r;
        set_aside(store, name, why ? why : strerror(-r));
        return 0;
}

static int newer_first(const void *a, const void *b)
{
        const struct batch *const *left = a, *const *right = b;
        uint64_t l = (*left)->record.created_ns, r = (*right)->record.created_ns;

        return (l < r) - (l > r);
}

/* The folder lists names in no order. */
static int sort(struct batch_store *store)
{
        struct batch **batches;
        struct list_head *link;
        size_t count = 0, i = 0;

        list_each(at, &store->batches)
                count++;
        batches = calloc(count + 1, sizeof(*batches));
        if (!batches)
                return -ENOMEM;
        while ((link = list_pop_front(&store->batches)))
                batches[i++] = LIST_ENTRY(link, struct batch, of_store);
        qsort(batches, count, sizeof(struct batch *), newer_first);
        for (i = 0; i < count; i++)
                list_push_back(&store->batches, &batches[i]->of_store);
        free(batches);
        return 0;
}

int batch_store_restored(struct batch_store *store)
{
        int r = sort(store);

        list_each(at, &store->batches) {
                struct batch *batch = LIST_ENTRY(at, struct batch, of_store);

                if (!r && !batch->over)
                        r = batch_start(batch);
        }
        if (!r)
                forget_old(store);
        return r;
}

bool batch_store_needs(const struct batch_store *store, struct text id)
{
        list_each(at, &store->batches) {
                const struct batch *batch = LIST_ENTRY(at, struct batch, of_store);

                if (text_is(id, batch->record.id))
                        return !batch->over;
        }
        return false;
}

/* ---- the store ---- */

struct batch_store *batch_store_new(struct bridge *bridge)
{
        struct batch_store *store = calloc(1, sizeof(*store));

        if (!store)
                return NULL;
        list_init(&store->batches);
        store->bridge = bridge;
        if (!loop_timer_new(bridge->conf.loop, forget_old, store, &store->forgetting) &&
            !loop_timer_set(store->forgetting, FORGET_NS))
                return store;
        return batch_store_free(store);
}

struct batch_store *batch_store_free(struct batch_store *store)
{
        if (!store)
                return NULL;
        list_each_safe(at, &store->batches)
                free_batch(LIST_ENTRY(at, struct batch, of_store));
        loop_timer_free(store->forgetting);
        free(store);
        return NULL;
}
