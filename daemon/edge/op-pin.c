#include "daemon/edge/op-pin.h"

#include <inttypes.h>

#include "daemon/core/prefix.h"
#include "daemon/edge/admission.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/op-checks.h"
#include "daemon/edge/pins.h"
#include "daemon/edge/streams.h"
#include "base/error.h"
#include "json/plural.h"

/* The part of the handle's history to read: all of it, or its beginning. */
static int check_length(const struct handle *handle, struct wire_request *asked,
                        struct wire_problem *ret_problem)
{
        if (!wire_has(asked, WIRE_F_LENGTH))
                return 0;
        if (!asked->length || asked->length > handle->count)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "length",
                                   "length is %u; it may be from 1 to the handle's %u token%s",
                                   asked->length, handle->count, plural(handle->count));
        asked->token_count = asked->length;
        return 0;
}

/* Gives the stream the pin that it will set at its end; the handle is busy with it from now on. */
static int take_pin(struct edge *edge, struct handle *handle, struct stream *stream, uint32_t ms,
                    struct wire_problem *ret_problem)
{
        struct pin *pin = handle_pin_for(handle, stream);
        struct request *request = &stream->request;
        int r;

        if (request->publish && pin->number)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, request->stream, "handle",
                                   "handle %" PRIu64 " is published already; revoke it first",
                                   handle->number);
        r = pins_take(edge->pins, pin, handle->uid, request->prompt_count, ms, request->stream,
                      ret_problem);
        if (r)
                return error_pass(r);
        request->pin = pin->number;
        handle_lend(handle, stream);
        return 0;
}

static int make_stream(struct peer *peer, struct handle *handle, const struct wire_request *asked,
                       struct stream **ret_stream, struct wire_problem *ret_problem)
{
        struct admission *admission = peer->edge->admission;
        struct stream *stream = NULL;
        int r;

        r = admission_ask(admission, peer->uid, handle->model, asked, &stream, ret_problem);
        if (r)
                return error_pass(r);
        r = admission_finish(admission, stream, "handle", asked->tokens, asked->token_count,
                             ret_problem);
        if (r)
                admission_forget(admission, stream);
        else
                *ret_stream = stream;
        return error_pass(r);
}

/*
 * Begins a stream that only reads the handle's history.  `publish` is 0, or the public domain to
 * publish to.
 */
static int begin_reading(struct peer *peer, struct wire_request *asked, uint64_t publish,
                         struct wire_problem *ret_problem)
{
        struct served *served = NULL; /* not used: the handle has its own model */
        struct edge *edge = peer->edge;
        struct stream *stream = NULL;
        struct handle *handle = NULL;
        int r;

        r = op_check_new(peer, asked, EDGE_DRAINING, &served, ret_problem);
        if (!r)
                r = op_borrow_tokens(peer, asked, &handle, ret_problem);
        if (!r)
                r = check_length(handle, asked, ret_problem);
        if (!r)
                r = make_stream(peer, handle, asked, &stream, ret_problem);
        if (r)
                return error_pass(r);
        stream->request.publish = publish;
        r = stream_claim(peer, stream, ret_problem);
        if (!r)
                r = take_pin(edge, handle, stream, asked->pin_ms, ret_problem);
        if (!r)
                r = stream_begin(peer, stream, ret_problem);
        if (r)
                stream_drop(edge, stream);
        return error_pass(r);
}

/* ---- pin ---- */

static int unpin(struct peer *peer, const struct wire_request *asked,
                 struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = op_find_idle_handle(peer, asked, &handle, ret_problem);
        if (r)
                return error_pass(r);
        pins_remove(peer->edge->pins, &handle->pinned);
        connection_reply_ok(peer, asked->id);
        return 0;
}

int op_pin(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        if (!asked->pin_ms)
                return error_pass(unpin(peer, asked, ret_problem));
        return error_pass(begin_reading(peer, asked, 0, ret_problem));
}

/* ---- publish and revoke ---- */

/* Publishes to everyone, or to a group of the peer. */
int op_publish(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        if (!peer->edge->conf.config->publish)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "op",
                                   "publishing is off: the daemon's setting publish is no");
        if (asked->to == WIRE_TO_ALL)
                return error_pass(begin_reading(peer, asked, PREFIX_EVERYONE, ret_problem));
        for (uint32_t i = 0; i < peer->group_count; i++)
                if (peer->groups[i] == asked->group)
                        return error_pass(begin_reading(peer, asked, PREFIX_GROUP(asked->group),
                                                        ret_problem));
        return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "group",
                           "group is %u, and its members are published to by one of them only; of "
                           "this process's groups the daemon knows %u",
                           asked->group, peer->group_count);
}

/* Does not wait for other work on the handle. */
int op_revoke(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = op_find_handle(peer, asked, &handle, ret_problem);
        if (!r && handle->stream && handle->stream->request.publish)
                r = wire_refuse(ret_problem, SMV_HANDLE_BUSY, asked->id, "handle",
                                "handle %" PRIu64 " is being published; cancel that",
                                asked->handle);
        if (r)
                return error_pass(r);
        pins_remove(peer->edge->pins, &handle->published);
        connection_reply_ok(peer, asked->id);
        return 0;
}
