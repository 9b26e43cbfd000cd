#include "bridge/openai/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "bridge/core/context.h"
#include "bridge/core/fields.h"
#include "bridge/openai/file-store.h"
#include "bridge/openai/multipart.h"

#define PIECE_BYTES 65536u
#define LIST_MAX    10000u

/* ---- calls that wait ---- */

static void forget_call(struct call *call)
{
        struct openai_wait *wait = call->own;

        wait->call = NULL;
}

struct openai_wait *openai_await(struct call *call)
{
        struct openai_wait *wait = calloc(1, sizeof(*wait));

        if (!wait) {
                call_no_memory(call);
                return NULL;
        }
        wait->call = call;
        call->own = wait;
        call->clean = forget_call;
        return wait;
}

struct call *openai_awaited(struct openai_wait *wait)
{
        struct call *call = wait->call;

        if (call)
                call->clean = NULL;
        free(wait);
        return call;
}

uint32_t openai_list_limit(const struct call *call, uint32_t most)
{
        const char *value = call_query(call, "limit");
        unsigned long limit = value ? strtoul(value, NULL, 10) : 20;

        return !limit ? 1 : limit > most ? most : (uint32_t)limit;
}

static void fail(struct call *call, enum failure_class class, const char *param,
                 const char *message)
{
        struct failure failure = failure_make(class, param, "%s", message);

        call_fail(call, &failure);
}

static void reply_file(struct call *call, const struct stored_file *file)
{
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        file_put(&to, &file->record);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

/* ---- uploads ---- */

static void on_added(void *arg, struct stored_file *file, int result)
{
        struct call *call = openai_awaited(arg);

        if (call && result)
                call_not_stored(call, result);
        else if (call)
                reply_file(call, file);
}

static void add_file(struct call *call, const char *map, const struct multipart_part *part)
{
        const struct file_conf conf = {
                .owner = call_owner(call),
                .filename = part->filename.bytes ? part->filename : TEXT("upload.jsonl"),
                .purpose = "batch",
                .fd = sys_reopen(call->body_fd, O_RDONLY | O_CLOEXEC),
                .offset = (uint64_t)(part->content.at - map),
                .bytes = part->content.bytes,
        };
        struct openai_wait *wait;
        int r;

        if (conf.fd < 0) {
                call_not_stored(call, conf.fd);
                return;
        }
        wait = openai_await(call);
        if (!wait) {
                sys_close(conf.fd);
                return;
        }
        r = file_store_add(call->bridge->files, &conf, on_added, wait);
        if (r)
                openai_awaited(wait);
        if (r == -EDQUOT)
                fail(call, FAILURE_QUOTA, "file",
                     "the files of this key have reached the limit (files_max, files_bytes); "
                     "delete some");
        else if (r)
                call_no_memory(call);
}

static void read_form(struct call *call, const char *map)
{
        const struct multipart_part *file, *purpose;
        struct multipart form;
        const char *why;

        if (!multipart_read(call_request_header(call, "content-type"),
                            (struct text){ map, call->body_fd_bytes }, &form, &why)) {
                fail(call, FAILURE_REQUEST, NULL, why);
                return;
        }
        file = multipart_part(&form, "file");
        purpose = multipart_part(&form, "purpose");
        if (!file)
                fail(call, FAILURE_REQUEST, "file", "the form has no part file");
        else if (!purpose || !text_is(purpose->content, "batch"))
                fail(call, FAILURE_REQUEST, "purpose",
                     "purpose must be batch; the bridge has no other use for files");
        else
                add_file(call, map, file);
}

void openai_file_upload(struct call *call)
{
        void *map = NULL;

        if (call->body_fd < 0 || !call->body_fd_bytes) {
                fail(call, FAILURE_REQUEST, NULL, "the body is empty: send a form with a file");
                return;
        }
        map = sys_map_file(call->body_fd, call->body_fd_bytes, false);
        if (!map) {
                call_no_memory(call);
                return;
        }
        read_form(call, map);
        sys_unmap(map, call->body_fd_bytes);
}

/* ---- the other routes ---- */

/* NULL: the call has failed. */
static struct stored_file *find(struct call *call)
{
        struct stored_file *file =
                file_store_find(call->bridge->files, call_owner(call), call->tail);

        if (!file)
                fail(call, FAILURE_NOT_FOUND, "file_id", "there is no such file");
        return file;
}

void openai_file_get(struct call *call)
{
        const struct stored_file *file = find(call);

        if (file)
                reply_file(call, file);
}

/* The answer tells the name of the file by the path of the call, for the file is gone. */
static void on_removed(void *arg, struct stored_file *file, int result)
{
        struct call *call = openai_awaited(arg);
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        (void)file;
        if (!call)
                return;
        if (result) {
                call_not_stored(call, result);
                return;
        }
        json_put_object(&to);
        json_put_key_text(&to, "id", call->tail.at, call->tail.bytes);
        json_put_key_word(&to, "object", "file");
        json_put_key_bool(&to, "deleted", true);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

void openai_file_delete(struct call *call)
{
        struct stored_file *file = find(call);
        struct openai_wait *wait = file ? openai_await(call) : NULL;

        if (wait)
                file_store_remove(file, on_removed, wait);
}

void openai_file_list(struct call *call)
{
        const char *after = call_query(call, "after"), *purpose = call_query(call, "purpose");
        const struct stored_file *at = NULL, *first = NULL, *last = NULL;
        uint32_t limit = openai_list_limit(call, LIST_MAX), count = 0;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        if (after)
                at = file_store_find(call->bridge->files, call_owner(call),
                                     (struct text){ after, strlen(after) });
        json_put_object(&to);
        json_put_key_word(&to, "object", "list");
        json_put_key(&to, "data");
        json_put_array(&to);
        while ((at = file_store_next(call->bridge->files, call_owner(call), at))) {
                if (purpose && strcmp(purpose, at->record.purpose))
                        continue;
                if (count++ == limit)
                        break;
                file_put(&to, &at->record);
                first = first ? first : at;
                last = at;
        }
        json_put_array_end(&to);
        json_put_key_word(&to, "first_id", first ? first->record.id : NULL);
        json_put_key_word(&to, "last_id", last ? last->record.id : NULL);
        json_put_key_bool(&to, "has_more", at != NULL);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

/* ---- content ---- */

/* A download in pieces, so that it needs no memory of its size. */
struct download {
        int fd;
        uint64_t at, end; /* of what is left */
};

static void clean_download(struct call *call)
{
        struct download *download = call->own;

        download->fd = sys_close(download->fd);
}

static void send_pieces(struct call *call)
{
        struct download *download = call->own;
        char piece[PIECE_BYTES];

        while (!call->over && download->at < download->end &&
               call->sink->queued(call) < HTTP_QUEUE_HIGH) {
                uint64_t left = download->end - download->at;
                ssize_t n = sys_pread(download->fd, piece,
                                      left < sizeof(piece) ? left : sizeof(piece), download->at);

                if (n <= 0) {
                        call_cut(call);
                        return;
                }
                call_write(call, piece, (size_t)n);
                download->at += (uint64_t)n;
        }
        if (download->at == download->end)
                call_finish(call);
}

void openai_file_content(struct call *call)
{
        const struct stored_file *file = find(call);
        struct download *download;
        struct failure failure;

        if (!file)
                return;
        download = arena_alloc(&call->arena, sizeof(*download));
        if (!download) {
                call_no_memory(call);
                return;
        }
        download->fd = file_open(file);
        if (download->fd < 0) {
                failure = failure_make(FAILURE_UNAVAILABLE, NULL, "the file cannot be opened: %s",
                                       strerror(-download->fd));
                call_fail(call, &failure);
                return;
        }
        download->at = file->record.offset;
        download->end = file->record.offset + file->record.bytes;
        call->own = download;
        call->clean = clean_download;
        call->drained = send_pieces;
        call_stream(call, "application/octet-stream", NULL);
        send_pieces(call);
}
