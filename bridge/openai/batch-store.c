#include "bridge/openai/batch-store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/siphash.h"
#include "base/sys.h"
#include "bridge/core/fields.h"
#include "bridge/core/identifier.h"
#include "bridge/openai/batch-lines.h"

#define NS_PER_S   UINT64_C(1000000000)
#define WINDOW_S   86400u
#define LINES_MAX  50000u
#define READ_BYTES (UINT64_C(1) << 20) /* of lines, in one step */
#define AGAIN_NS   NS_PER_S            /* when a line that found no place is asked again */
#define ACTIVE_MAX 8u                  /* batches of a principal that run */
#define KEPT_MAX   100u                /* batches of a principal, those that have ended, too */
#define WHY_BYTES  256u
#define HASH_SIZE  (1u << 17) /* more than twice LINES_MAX */

enum batch_status {
        BATCH_VALIDATING,
        BATCH_IN_PROGRESS,
        BATCH_FINALIZING,
        BATCH_CANCELLING,
        BATCH_COMPLETED, /* this and the next ones: it has ended */
        BATCH_FAILED,
        BATCH_EXPIRED,
        BATCH_CANCELLED,
        BATCH_STATUS_N,
};

static const char *const status_names[BATCH_STATUS_N] = {
        "validating", "in_progress", "finalizing", "cancelling",
        "completed",  "failed",      "expired",    "cancelled",
};

/* A line whose call runs, or waits to be asked again. */
struct batch_line {
        struct list_head of_batch;
        struct batch *batch;
        struct call *call; /* NULL: it has ended, or waits */
        struct text text;  /* of the line */
        bool done;
        unsigned status;
        char request_id[40];
        struct bytes body, answer;
};

/* The answers of a batch, while it runs. */
struct batch_output {
        int fd; /* -1: nothing was written */
        uint64_t bytes;
        char file_id[48]; /* "": none */
};

struct batch {
        struct list_head of_store;
        struct batch_store *store;
        struct bridge *bridge;
        uint32_t principal;
        char *principal_name;
        char id[48], endpoint[64], input_id[48];
        char *metadata;
        struct stored_file *input;
        void *map;
        size_t map_bytes;
        struct batch_lines lines;
        enum batch_status status;
        uint64_t times_s[BATCH_STATUS_N]; /* when it came into each; 0: never */
        uint32_t total, completed, failed;
        uint64_t *hashes;                /* of the custom_ids, while they are checked; 0: free */
        struct list_head running, again; /* of struct batch_line */
        uint32_t running_count;
        struct batch_output output, errors;
        char why[WHY_BYTES]; /* why it failed */
        uint32_t why_line;   /* 0: no line */
        struct loop_timer *step;
};

struct batch_store {
        struct list_head batches; /* the newest first */
        uint64_t key[2];
};

static void finish(struct batch *batch, enum batch_status status);
static void fail(struct batch *batch, uint32_t line, const char *why);

static bool has_ended(const struct batch *batch)
{
        return batch->status >= BATCH_COMPLETED;
}

static void enter(struct batch *batch, enum batch_status status)
{
        batch->status = status;
        batch->times_s[status] = sys_wall_clock_ns() / NS_PER_S;
}

/* ---- the output ---- */

static int append(struct batch *batch, struct batch_output *output, const struct bytes *line)
{
        size_t done = 0;

        if (output->fd < 0)
                output->fd =
                        sys_open(batch->bridge->conf.spool, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (output->fd < 0)
                return output->fd;
        while (done < line->count) {
                ssize_t n = sys_write(output->fd, line->at + done, line->count - done);

                if (n <= 0)
                        return n ? (int)n : -EIO;
                done += (size_t)n;
        }
        output->bytes += line->count;
        return 0;
}

static int put_answer(struct json_builder *to, const struct batch_line *line, struct text custom_id)
{
        char id[48];

        identifier_make("batch_req_", id, sizeof(id));
        json_put_object(to);
        json_put_key_word(to, "id", id);
        json_put_key_text(to, "custom_id", custom_id.at, custom_id.bytes);
        json_put_key(to, "response");
        json_put_object(to);
        json_put_key_uint(to, "status_code", line->status);
        json_put_key_word(to, "request_id", line->request_id);
        json_put_key(to, "body");
        json_put_raw(to, line->answer.count ? line->answer.at : "null");
        json_put_object_end(to);
        json_put_key_null(to, "error");
        json_put_object_end(to);
        json_write_raw(&to->out, "\n");
        return json_put_end(to);
}

/* The answer goes to one of the two files.  The line was read before, so it can be read again. */
static int write_answer(struct batch *batch, const struct batch_line *line)
{
        struct text endpoint = { batch->endpoint, strlen(batch->endpoint) };
        bool ok = line->status >= 200 && line->status < 300;
        struct batch_line_request request;
        struct bytes text = { 0 };
        struct json_builder to = json_build(&text);
        char why[WHY_BYTES];
        int r = -ENOMEM;

        if (!batch_line_read(line->text, endpoint, &request, why, sizeof(why)))
                return r;
        r = put_answer(&to, line, request.custom_id);
        if (!r)
                r = append(batch, ok ? &batch->output : &batch->errors, &text);
        json_free(request.json);
        bytes_deinit(&text);
        if (!r && ok)
                batch->completed++;
        else if (!r)
                batch->failed++;
        return r;
}

/* ---- lines ---- */

static void free_line(struct batch_line *line)
{
        if (line->call)
                call_end(line->call);
        list_remove(&line->of_batch);
        bytes_deinit(&line->body);
        bytes_deinit(&line->answer);
        free(line);
}

static void line_is_done(struct batch_line *line)
{
        line->done = true;
        line->call = NULL;
        loop_timer_set(line->batch->step, 0);
}

static void sink_reply(struct call *call, unsigned status, const char *type, const char *body,
                       size_t bytes)
{
        struct batch_line *line = call->sink_arg;

        (void)type;
        line->status = status;
        snprintf(line->request_id, sizeof(line->request_id), "%s", call->request_id);
        if (bytes_add(&line->answer, body, bytes) || bytes_add(&line->answer, "", 1))
                line->answer.count = 0; /* "null" stands for it */
        line_is_done(line);
}

/* No line asks for a stream, so these are for dialects that ignore that. */
static void sink_begin(struct call *call, const char *type)
{
        (void)call;
        (void)type;
}

static void sink_write(struct call *call, const char *bytes, size_t count)
{
        (void)call;
        (void)bytes;
        (void)count;
}

static void sink_end(struct call *call)
{
        struct batch_line *line = call->sink_arg;

        line->status = 500;
        line_is_done(line);
}

static size_t sink_queued(const struct call *call)
{
        (void)call;
        return 0;
}

static void sink_header(struct call *call, const char *name, const char *value)
{
        (void)call;
        (void)name;
        (void)value;
}

static const struct call_sink batch_sink = {
        .reply = sink_reply,
        .begin = sink_begin,
        .write = sink_write,
        .finish = sink_end,
        .cut = sink_end,
        .queued = sink_queued,
        .header = sink_header,
};

/* Begins the call of a line that lies in no list. */
static int ask(struct batch_line *line)
{
        struct batch *batch = line->batch;
        struct call *call = call_new(batch->bridge, &batch_sink, line);

        if (!call)
                return -ENOMEM;
        line->call = call;
        line->done = false;
        line->answer.count = 0;
        list_push_back(&batch->running, &line->of_batch);
        batch->running_count++;
        call->method = HTTP_POST;
        call->path = batch->endpoint;
        call->principal = batch->principal;
        call->background = true;
        call->body = (struct text){ line->body.at, line->body.count };
        identifier_make("req_", call->request_id, sizeof(call->request_id));
        call->link = links_get(batch->bridge->links, batch->principal, batch->principal_name);
        if (call->link)
                bridge_route(call);
        else
                call_no_memory(call);
        return 0;
}

/* The next line of the input.  1: it runs; 0: there is none. */
static int begin_line(struct batch *batch)
{
        struct text endpoint = { batch->endpoint, strlen(batch->endpoint) };
        struct batch_line_request request;
        struct batch_line *line;
        struct json_builder to;
        char why[WHY_BYTES];
        struct text text;
        int r;

        if (!batch_lines_next(&batch->lines, &text))
                return 0;
        if (!batch_line_read(text, endpoint, &request, why, sizeof(why)))
                return -ENOMEM;
        line = calloc(1, sizeof(*line));
        if (!line) {
                json_free(request.json);
                return -ENOMEM;
        }
        line->batch = batch;
        line->text = text;
        to = json_build(&line->body);
        json_put_node(&to, request.json, request.body);
        r = json_put_end(&to);
        json_free(request.json);
        if (!r)
                r = ask(line);
        if (r)
                free_line(line);
        return r ? r : 1;
}

/* Another one may find a place. */
static bool found_no_place(const struct batch_line *line)
{
        return line->status == 429 || line->status == 503;
}

static int take_done(struct batch *batch)
{
        int r = 0;

        list_each_safe(at, &batch->running) {
                struct batch_line *line = LIST_ENTRY(at, struct batch_line, of_batch);

                if (!line->done || r)
                        continue;
                list_remove(&line->of_batch);
                batch->running_count--;
                if (found_no_place(line) && batch->status == BATCH_IN_PROGRESS) {
                        list_push_back(&batch->again, &line->of_batch);
                        continue;
                }
                r = write_answer(batch, line);
                free_line(line);
        }
        return r;
}

/* ---- steps ---- */

/* False: the id was there. */
static bool is_new_id(struct batch *batch, struct text id)
{
        uint64_t hash = siphash_short(batch->store->key, id.at, id.bytes);
        uint32_t at = (uint32_t)hash % HASH_SIZE;

        hash += !hash;
        while (batch->hashes[at] && batch->hashes[at] != hash)
                at = (at + 1) % HASH_SIZE;
        if (batch->hashes[at])
                return false;
        batch->hashes[at] = hash;
        return true;
}

/* Reads some lines.  True: all were read, and are right. */
static bool validate(struct batch *batch)
{
        struct text endpoint = { batch->endpoint, strlen(batch->endpoint) }, text;
        size_t until = batch->lines.at + READ_BYTES;
        struct batch_line_request request;
        char why[WHY_BYTES];
        bool fresh;

        while (batch->lines.at < until) {
                if (!batch_lines_next(&batch->lines, &text))
                        return true;
                if (!batch_line_read(text, endpoint, &request, why, sizeof(why))) {
                        fail(batch, batch->lines.number, why);
                        return false;
                }
                fresh = is_new_id(batch, request.custom_id);
                json_free(request.json);
                if (!fresh || ++batch->total > LINES_MAX) {
                        fail(batch, batch->lines.number,
                             fresh ? "a batch has at most 50000 lines"
                                   : "custom_id was in a line before");
                        return false;
                }
        }
        loop_timer_set(batch->step, 0);
        return false;
}

/* Lines that have waited come first. */
static int begin_some(struct batch *batch)
{
        struct list_head *at;
        int r = 1;

        while (r > 0 && batch->running_count < batch->bridge->conf.batch_parallel) {
                at = list_pop_front(&batch->again);
                r = at ? ask(LIST_ENTRY(at, struct batch_line, of_batch)) : begin_line(batch);
                if (at && r)
                        list_push_front(&batch->again, at);
                else if (at)
                        r = 1;
        }
        return r < 0 ? r : 0;
}

static bool found_no_place_lately(const struct batch *batch)
{
        return !list_is_empty(&batch->again);
}

static void progress(struct batch *batch)
{
        uint64_t now_s = sys_wall_clock_ns() / NS_PER_S;
        int r = take_done(batch);

        if (!r && batch->status == BATCH_IN_PROGRESS &&
            now_s > batch->times_s[BATCH_VALIDATING] + WINDOW_S) {
                finish(batch, BATCH_EXPIRED);
                return;
        }
        if (!r && batch->status == BATCH_IN_PROGRESS && !found_no_place_lately(batch))
                r = begin_some(batch);
        if (r) {
                fail(batch, 0, strerror(-r));
                return;
        }
        if (found_no_place_lately(batch))
                loop_timer_set(batch->step, AGAIN_NS);
        else if (!batch->running_count)
                finish(batch,
                       batch->status == BATCH_CANCELLING ? BATCH_CANCELLED : BATCH_COMPLETED);
}

/* The wait of those that found no place is over. */
static void ask_again(struct batch *batch)
{
        struct list_head waiting;
        struct list_head *at;

        if (!found_no_place_lately(batch) || batch->status != BATCH_IN_PROGRESS)
                return;
        list_init(&waiting);
        while ((at = list_pop_front(&batch->again)))
                list_push_back(&waiting, at);
        while ((at = list_pop_front(&waiting)))
                if (ask(LIST_ENTRY(at, struct batch_line, of_batch)))
                        list_push_back(&batch->again, at);
}

static void on_step(void *arg)
{
        struct batch *batch = arg;

        if (batch->status == BATCH_VALIDATING) {
                if (!validate(batch))
                        return;
                if (!batch->total) {
                        fail(batch, 0, "the input file has no lines");
                        return;
                }
                free(batch->hashes);
                batch->hashes = NULL;
                batch->lines.at = batch->lines.number = 0;
                enter(batch, BATCH_IN_PROGRESS);
        }
        if (has_ended(batch))
                return;
        if (list_is_empty(&batch->running))
                ask_again(batch);
        progress(batch);
}

/* ---- the end ---- */

static void store_output(struct batch *batch, struct batch_output *output, const char *name)
{
        struct stored_file *file;
        int r;

        if (output->fd < 0)
                return;
        r = file_store_add(batch->bridge->files, batch->bridge, batch->principal, output->fd, 0,
                           output->bytes, &file);
        output->fd = -1;
        if (r) {
                snprintf(batch->why, sizeof(batch->why),
                         "the %s file was not stored: %s (files_max, files_bytes)", name,
                         strerror(-r));
                return;
        }
        snprintf(file->filename, sizeof(file->filename), "%s_%s.jsonl", batch->id, name);
        snprintf(file->purpose, sizeof(file->purpose), "batch_output");
        snprintf(output->file_id, sizeof(output->file_id), "%s", file->id);
}

/* Frees what only a batch that runs needs. */
static void release(struct batch *batch)
{
        list_each_safe(at, &batch->running)
                free_line(LIST_ENTRY(at, struct batch_line, of_batch));
        list_each_safe(again, &batch->again)
                free_line(LIST_ENTRY(again, struct batch_line, of_batch));
        batch->running_count = 0;
        if (batch->map)
                sys_unmap(batch->map, batch->map_bytes);
        batch->map = NULL;
        batch->input = file_unref(batch->input);
        free(batch->hashes);
        batch->hashes = NULL;
        batch->output.fd = sys_close(batch->output.fd);
        batch->errors.fd = sys_close(batch->errors.fd);
        batch->step = loop_timer_free(batch->step);
}

static void finish(struct batch *batch, enum batch_status status)
{
        enter(batch, BATCH_FINALIZING);
        store_output(batch, &batch->output, "output");
        store_output(batch, &batch->errors, "error");
        release(batch);
        enter(batch, *batch->why ? BATCH_FAILED : status);
        log_info("batch_ended id=%s status=%s completed=%u failed=%u", batch->id,
                 status_names[batch->status], batch->completed, batch->failed);
}

static void fail(struct batch *batch, uint32_t line, const char *why)
{
        snprintf(batch->why, sizeof(batch->why), "%s", why);
        batch->why_line = line;
        finish(batch, BATCH_FAILED);
}

bool batch_cancel(struct batch *batch)
{
        if (has_ended(batch) || batch->status == BATCH_CANCELLING)
                return batch->status == BATCH_CANCELLING;
        enter(batch, BATCH_CANCELLING);
        list_each_safe(at, &batch->running) {
                struct batch_line *line = LIST_ENTRY(at, struct batch_line, of_batch);

                if (line->done)
                        continue;
                free_line(line);
                batch->running_count--;
        }
        list_each_safe(again, &batch->again)
                free_line(LIST_ENTRY(again, struct batch_line, of_batch));
        loop_timer_set(batch->step, 0);
        return true;
}

/* ---- the store ---- */

static void free_batch(struct batch *batch)
{
        release(batch);
        list_remove(&batch->of_store);
        free(batch->principal_name);
        free(batch->metadata);
        free(batch);
}

/* Forgets the oldest batch that has ended, if the principal has many.  False: too many run. */
static bool make_space(struct batch_store *store, uint32_t principal)
{
        struct batch *oldest = NULL;
        uint32_t count = 0, active = 0;

        list_each(at, &store->batches) {
                struct batch *batch = LIST_ENTRY(at, struct batch, of_store);

                if (batch->principal != principal)
                        continue;
                count++;
                if (has_ended(batch))
                        oldest = batch;
                else
                        active++;
        }
        if (count >= KEPT_MAX && oldest)
                free_batch(oldest);
        return active < ACTIVE_MAX;
}

static int open_batch(struct batch *batch, const struct batch_conf *conf)
{
        struct stored_file *input = conf->input;

        batch->map_bytes = (size_t)(input->offset + input->bytes);
        batch->map = input->bytes ? sys_map_file(input->fd, batch->map_bytes, false) : NULL;
        batch->hashes = calloc(HASH_SIZE, sizeof(*batch->hashes));
        if (conf->principal_name)
                batch->principal_name = strdup(conf->principal_name);
        if (conf->metadata.at)
                batch->metadata = strndup(conf->metadata.at, conf->metadata.bytes);
        if ((input->bytes && !batch->map) || !batch->hashes ||
            (conf->principal_name && !batch->principal_name) ||
            (conf->metadata.at && !batch->metadata))
                return -ENOMEM;
        if (batch->map)
                batch->lines.text =
                        (struct text){ (char *)batch->map + input->offset, input->bytes };
        return loop_timer_new(conf->bridge->conf.loop, on_step, batch, &batch->step);
}

int batch_begin(struct batch_store *store, const struct batch_conf *conf, struct batch **ret_batch)
{
        struct batch *batch;
        int r;

        if (!make_space(store, conf->principal))
                return -EDQUOT;
        batch = calloc(1, sizeof(*batch));
        if (!batch)
                return -ENOMEM;
        batch->store = store;
        batch->bridge = conf->bridge;
        batch->principal = conf->principal;
        batch->output.fd = batch->errors.fd = -1;
        list_init(&batch->running);
        list_init(&batch->again);
        identifier_make("batch_", batch->id, sizeof(batch->id));
        snprintf(batch->endpoint, sizeof(batch->endpoint), "%.*s", (int)conf->endpoint.bytes,
                 conf->endpoint.at);
        snprintf(batch->input_id, sizeof(batch->input_id), "%s", conf->input->id);
        batch->input = file_ref(conf->input);
        r = open_batch(batch, conf);
        if (!r)
                r = loop_timer_set(batch->step, 0);
        if (r) {
                free_batch(batch);
                return r;
        }
        enter(batch, BATCH_VALIDATING);
        list_push_front(&store->batches, &batch->of_store);
        *ret_batch = batch;
        return 0;
}

struct batch *batch_find(const struct batch_store *store, uint32_t principal, struct text id)
{
        list_each(at, &store->batches) {
                struct batch *batch = LIST_ENTRY(at, struct batch, of_store);

                if (batch->principal == principal && text_is(id, batch->id))
                        return batch;
        }
        return NULL;
}

struct batch *batch_next(const struct batch_store *store, uint32_t principal,
                         const struct batch *after)
{
        const struct list_head *at = after ? &after->of_store : &store->batches;

        while ((at = at->next) != &store->batches) {
                struct batch *batch = LIST_ENTRY(at, struct batch, of_store);

                if (batch->principal == principal)
                        return batch;
        }
        return NULL;
}

const char *batch_id(const struct batch *batch)
{
        return batch->id;
}

static void put_errors(struct json_builder *to, const struct batch *batch)
{
        json_put_key(to, "errors");
        if (!*batch->why) {
                json_put_null(to);
                return;
        }
        json_put_object(to);
        json_put_key_word(to, "object", "list");
        json_put_key(to, "data");
        json_put_array(to);
        json_put_object(to);
        json_put_key_word(to, "code", batch->why_line ? "invalid_line" : "batch_failed");
        json_put_key(to, "line");
        if (batch->why_line)
                json_put_uint(to, batch->why_line);
        else
                json_put_null(to);
        json_put_key_word(to, "message", batch->why);
        json_put_key_null(to, "param");
        json_put_object_end(to);
        json_put_array_end(to);
        json_put_object_end(to);
}

static void put_time(struct json_builder *to, const struct batch *batch, const char *key,
                     enum batch_status status)
{
        json_put_key(to, key);
        if (batch->times_s[status])
                json_put_uint(to, batch->times_s[status]);
        else
                json_put_null(to);
}

void batch_put(struct json_builder *to, const struct batch *batch)
{
        json_put_object(to);
        json_put_key_word(to, "id", batch->id);
        json_put_key_word(to, "object", "batch");
        json_put_key_word(to, "endpoint", batch->endpoint);
        put_errors(to, batch);
        json_put_key_word(to, "input_file_id", batch->input_id);
        json_put_key_word(to, "completion_window", "24h");
        json_put_key_word(to, "status", status_names[batch->status]);
        json_put_key_word(to, "output_file_id",
                          *batch->output.file_id ? batch->output.file_id : NULL);
        json_put_key_word(to, "error_file_id",
                          *batch->errors.file_id ? batch->errors.file_id : NULL);
        put_time(to, batch, "created_at", BATCH_VALIDATING);
        put_time(to, batch, "in_progress_at", BATCH_IN_PROGRESS);
        json_put_key_uint(to, "expires_at", batch->times_s[BATCH_VALIDATING] + WINDOW_S);
        put_time(to, batch, "finalizing_at", BATCH_FINALIZING);
        put_time(to, batch, "completed_at", BATCH_COMPLETED);
        put_time(to, batch, "failed_at", BATCH_FAILED);
        put_time(to, batch, "expired_at", BATCH_EXPIRED);
        put_time(to, batch, "cancelling_at", BATCH_CANCELLING);
        put_time(to, batch, "cancelled_at", BATCH_CANCELLED);
        json_put_key(to, "request_counts");
        json_put_object(to);
        json_put_key_uint(to, "total", batch->total);
        json_put_key_uint(to, "completed", batch->completed);
        json_put_key_uint(to, "failed", batch->failed);
        json_put_object_end(to);
        json_put_key(to, "metadata");
        json_put_raw(to, batch->metadata ? batch->metadata : "null");
        json_put_object_end(to);
}

struct batch_store *batch_store_new(void)
{
        struct batch_store *store = calloc(1, sizeof(*store));

        if (!store)
                return NULL;
        list_init(&store->batches);
        sys_random(store->key, sizeof(store->key));
        return store;
}

struct batch_store *batch_store_free(struct batch_store *store)
{
        if (!store)
                return NULL;
        list_each_safe(at, &store->batches)
                free_batch(LIST_ENTRY(at, struct batch, of_store));
        free(store);
        return NULL;
}
