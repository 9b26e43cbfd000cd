#include "bridge/openai/batch-request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bridge/core/identifier.h"

static int copy_line(struct batch_request *request, const struct batch_line_request *line)
{
        struct json_builder to = json_build(&request->body);

        json_put_node(&to, line->json, line->body);
        if (json_put_end(&to))
                return -ENOMEM;
        return bytes_add(&request->custom_id, line->custom_id.at, line->custom_id.bytes);
}

struct batch_request *batch_request_new(const struct batch_line_request *line,
                                        struct loop_timer *step)
{
        struct batch_request *request = calloc(1, sizeof(*request));

        if (!request)
                return NULL;
        list_init(&request->of_batch);
        request->endpoint = line->endpoint;
        request->step = step;
        if (!copy_line(request, line))
                return request;
        batch_request_free(request);
        return NULL;
}

void batch_request_free(struct batch_request *request)
{
        if (request->call)
                call_end(request->call);
        list_remove(&request->of_batch);
        bytes_deinit(&request->custom_id);
        bytes_deinit(&request->body);
        bytes_deinit(&request->answer);
        free(request);
}

/* ---- its answer ---- */

static void is_done(struct batch_request *request)
{
        request->done = true;
        request->call = NULL;
        loop_timer_set(request->step, 0);
}

static void sink_reply(struct call *call, unsigned status, const char *type, const char *body,
                       size_t bytes)
{
        struct batch_request *request = call->sink_arg;

        (void)type;
        request->status = status;
        snprintf(request->request_id, sizeof(request->request_id), "%s", call->request_id);
        if (bytes_add(&request->answer, body, bytes) || bytes_add(&request->answer, "", 1))
                request->answer.count = 0; /* "null" stands for it */
        is_done(request);
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
        struct batch_request *request = call->sink_arg;

        request->status = 500;
        is_done(request);
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

bool batch_request_found_no_place(const struct batch_request *request)
{
        return request->done && (request->status == 429 || request->status == 503);
}

bool batch_request_succeeded(const struct batch_request *request)
{
        return request->done && request->status >= 200 && request->status < 300;
}

int batch_request_put(struct json_builder *to, const struct batch_request *request)
{
        char id[48];

        identifier_make("batch_req_", id, sizeof(id));
        json_put_object(to);
        json_put_key_word(to, "id", id);
        json_put_key_text(to, "custom_id", request->custom_id.at, request->custom_id.count);
        json_put_key(to, "response");
        json_put_object(to);
        json_put_key_uint(to, "status_code", request->status);
        json_put_key_word(to, "request_id", request->request_id);
        json_put_key(to, "body");
        json_put_raw(to, request->answer.count ? request->answer.at : "null");
        json_put_object_end(to);
        json_put_key_null(to, "error");
        json_put_object_end(to);
        json_write_raw(&to->out, "\n");
        return json_put_end(to);
}

/* ---- its call ---- */

int batch_request_ask(struct batch_request *request, struct bridge *bridge, uint32_t principal)
{
        struct call *call = call_new(bridge, &batch_sink, request);

        if (!call)
                return -ENOMEM;
        request->call = call;
        request->done = false;
        request->answer.count = 0;
        call->method = HTTP_POST;
        call->path = request->endpoint;
        call->principal = principal;
        call->background = true;
        call->body = (struct text){ request->body.at, request->body.count };
        identifier_make("req_", call->request_id, sizeof(call->request_id));
        call->link = links_get(bridge->links, principal,
                               http_server_principal(bridge->server, principal));
        if (call->link)
                bridge_route(call);
        else
                call_no_memory(call);
        return 0;
}
