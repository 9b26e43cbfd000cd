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

        file_put(&to, file);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

/* ---- uploads ---- */

static void name_file(struct stored_file *file, const struct multipart_part *part)
{
        struct text name = part->filename.bytes ? part->filename : TEXT("upload.jsonl");

        snprintf(file->filename, sizeof(file->filename), "%.*s",
                 (int)(name.bytes < 120 ? name.bytes : 120), name.at);
        snprintf(file->purpose, sizeof(file->purpose), "batch");
}

static void add_file(struct call *call, const char *map, const struct multipart_part *part)
{
        struct stored_file *file;
        int fd = sys_reopen(call->body_fd, O_RDONLY | O_CLOEXEC);
        int r = fd;

        if (fd >= 0)
                r = file_store_add(call->bridge->files, call->bridge, call->principal, fd,
                                   (uint64_t)(part->content.at - map), part->content.bytes, &file);
        if (r == -EDQUOT) {
                fail(call, FAILURE_QUOTA, "file",
                     "the files of this key have reached the limit (files_max, files_bytes); "
                     "delete some");
                return;
        }
        if (r < 0) {
                call_no_memory(call);
                return;
        }
        name_file(file, part);
        reply_file(call, file);
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
                file_store_find(call->bridge->files, call->principal, call->tail);

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

void openai_file_delete(struct call *call)
{
        struct stored_file *file = find(call);
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        if (!file)
                return;
        json_put_object(&to);
        json_put_key_word(&to, "id", file->id);
        json_put_key_word(&to, "object", "file");
        json_put_key_bool(&to, "deleted", true);
        json_put_object_end(&to);
        file_store_remove(file);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

void openai_file_list(struct call *call)
{
        const char *after = call_query(call, "after"), *purpose = call_query(call, "purpose");
        const struct stored_file *at = NULL, *first = NULL, *last = NULL;
        uint32_t limit = openai_list_limit(call, LIST_MAX), count = 0;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        if (after)
                at = file_store_find(call->bridge->files, call->principal,
                                     (struct text){ after, strlen(after) });
        json_put_object(&to);
        json_put_key_word(&to, "object", "list");
        json_put_key(&to, "data");
        json_put_array(&to);
        while ((at = file_store_next(call->bridge->files, call->principal, at))) {
                if (purpose && strcmp(purpose, at->purpose))
                        continue;
                if (count++ == limit)
                        break;
                file_put(&to, at);
                first = first ? first : at;
                last = at;
        }
        json_put_array_end(&to);
        json_put_key_word(&to, "first_id", first ? first->id : NULL);
        json_put_key_word(&to, "last_id", last ? last->id : NULL);
        json_put_key_bool(&to, "has_more", at != NULL);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

/* ---- content ---- */

/* A download in pieces, so that it needs no memory of its size. */
struct download {
        struct stored_file *file;
        uint64_t done;
};

static void clean_download(struct call *call)
{
        struct download *download = call->own;

        download->file = file_unref(download->file);
}

static void send_pieces(struct call *call)
{
        struct download *download = call->own;
        const struct stored_file *file = download->file;
        char piece[PIECE_BYTES];

        while (!call->over && download->done < file->bytes &&
               call->sink->queued(call) < HTTP_QUEUE_HIGH) {
                uint64_t left = file->bytes - download->done;
                ssize_t n = sys_pread(file->fd, piece, left < sizeof(piece) ? left : sizeof(piece),
                                      file->offset + download->done);

                if (n <= 0) {
                        call_cut(call);
                        return;
                }
                call_write(call, piece, (size_t)n);
                download->done += (uint64_t)n;
        }
        if (download->done == file->bytes)
                call_finish(call);
}

void openai_file_content(struct call *call)
{
        struct stored_file *file = find(call);
        struct download *download;

        if (!file)
                return;
        call->own = download = arena_alloc(&call->arena, sizeof(*download));
        if (!download) {
                call_no_memory(call);
                return;
        }
        download->file = file_ref(file);
        call->clean = clean_download;
        call->drained = send_pieces;
        call_stream(call, "application/octet-stream", NULL);
        send_pieces(call);
}
