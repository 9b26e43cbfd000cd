#include "bridge/own/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/core/bridge.h"
#include "bridge/core/kept.h"

/* NULL: the call has failed. */
static struct kept_stream *find(struct call *call)
{
        struct kept_stream *stream = kept_find(call->bridge->kept, call->principal, call->tail);
        struct failure failure;

        if (stream)
                return stream;
        failure = failure_make(FAILURE_NOT_FOUND, "stream_id", "there is no stream %.*s",
                               (int)(call->tail.bytes < 60 ? call->tail.bytes : 60), call->tail.at);
        call_fail(call, &failure);
        return NULL;
}

/* The number of events that the client has; false: the call has failed. */
static bool read_from(struct call *call)
{
        const char *from = call_query(call, "from");
        struct failure failure;
        char *end = NULL;

        if (!from)
                return true;
        call->skip = strtoull(from, &end, 10);
        if (*from >= '0' && *from <= '9' && !*end)
                return true;
        failure =
                failure_make(FAILURE_REQUEST, "from",
                             "from is %.20s; it must be the number of events that you have", from);
        call_fail(call, &failure);
        return false;
}

/* The call becomes what it was that made the stream, but attaches instead of generating. */
void own_stream_resume(struct call *call)
{
        const struct kept_stream *stream = find(call);
        struct text body, path;

        if (!stream || !read_from(call))
                return;
        body = arena_copy(&call->arena, stream->body.at, stream->body.bytes);
        path = arena_copy(&call->arena, stream->path, strlen(stream->path));
        if (!body.at || !path.at) {
                call_no_memory(call);
                return;
        }
        call->facts = stream->facts;
        call->attach_id = stream->resume_id;
        call->method = HTTP_POST;
        call->body = body;
        call->path = path.at;
        call_header(call, "x-samovar-stream-id", stream->id);
        bridge_route(call);
}

static void on_dropped(struct call *call, const struct smv_event *answer)
{
        (void)answer;
        call_reply(call, 200, "application/json", "{\"deleted\":true}", 16);
}

static void drop(struct call *call)
{
        struct kept_stream *stream = find(call);
        uint32_t request = 0;
        int r;

        if (!stream)
                return;
        r = smv_ask_drop(link_client(call->link), stream->resume_id, &request);
        kept_remove(stream);
        call_ask(call, r, request, on_dropped);
}

void own_stream_drop(struct call *call)
{
        if (find(call))
                call_with_daemon(call, drop);
}
