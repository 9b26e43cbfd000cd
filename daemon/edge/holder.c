#include "daemon/edge/holder.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "daemon/edge/anchors.h"
#include "daemon/edge/shelf.h"
#include "daemon/edge/streams.h"
#include "daemon/edge/task.h"
#include "daemon/error.h"

/* ---- checks and replies ---- */

static int find(struct peer *peer, const struct wire_request *asked, struct handle **ret_handle,
                struct wire_problem *ret_problem)
{
        *ret_handle = handles_find(peer->edge->handles, peer->uid, asked->handle);
        if (*ret_handle) {
                shelf_renew((*ret_handle)->owner);
                return 0;
        }
        return wire_refuse(ret_problem, SMV_NO_HANDLE, asked->id, "handle",
                           "there is no handle %" PRIu64, asked->handle);
}

static int find_idle(struct peer *peer, const struct wire_request *asked,
                     struct handle **ret_handle, struct wire_problem *ret_problem)
{
        int r = find(peer, asked, ret_handle, ret_problem);

        if (r || !handle_is_busy(*ret_handle))
                return r;
        return wire_refuse(ret_problem, SMV_HANDLE_BUSY, asked->id, "handle",
                           "handle %" PRIu64 " %s", asked->handle,
                           (*ret_handle)->request
                                   ? "is generating; its END has not come yet, but that "
                                     "stream can be forked"
                                   : "waits for a text that is being read");
}

uint32_t holder_room(const struct peer *peer, const struct handle *handle)
{
        return admit_context(peer->edge->admit, handle->model) - handle->count;
}

static int check_room(struct peer *peer, const struct handle *handle, size_t count, uint32_t id,
                      const char *field, struct wire_problem *ret_problem)
{
        if (count <= holder_room(peer, handle))
                return 0;
        return wire_refuse(ret_problem, SMV_TOO_LONG, id, field,
                           "the handle has %u tokens and %s has %zu; together they may be %u",
                           handle->count, field, count,
                           admit_context(peer->edge->admit, handle->model));
}

static void reply_length(struct peer *peer, const struct handle *handle, uint32_t id, bool opened)
{
        struct wire_writer writer;

        if (!peer_reply(peer, &writer))
                return;
        wire_put_ok(&writer, id, opened ? 2 : 1);
        if (opened) {
                wire_put_text(&writer, "handle");
                wire_put_uint(&writer, handle->number);
        }
        wire_put_text(&writer, "length");
        wire_put_uint(&writer, handle->count);
        peer_replied(peer, &writer);
}

/* ---- tokens that come in ---- */

/* Fills a new handle with these ids; on success *ids is taken. */
static int fill_new(struct peer *peer, struct handle *handle, uint32_t **ids, size_t count,
                    uint32_t id, const char *field, struct wire_problem *ret_problem)
{
        int r;

        r = check_room(peer, handle, count, id, field, ret_problem);
        if (!r && !count)
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, id, field, "%s has no tokens", field);
        if (!r)
                r = handles_replace(peer->edge->handles, handle, *ids, (uint32_t)count, id,
                                    ret_problem);
        if (!r)
                *ids = NULL;
        return error_pass(r);
}

static int fill_more(struct peer *peer, struct handle *handle, const uint32_t *ids, size_t count,
                     uint32_t id, const char *field, struct wire_problem *ret_problem)
{
        int r;

        r = check_room(peer, handle, count, id, field, ret_problem);
        if (!r)
                r = handles_append(peer->edge->handles, handle, ids, (uint32_t)count, id,
                                   ret_problem);
        return error_pass(r);
}

/*
 * Chooses the owner of a new handle: a shelf if the client gave keep_ms, else the peer.  0 or
 * -ENOMEM.
 */
static int choose_owner(struct peer *peer, const struct wire_request *asked,
                        struct handle_owner **ret_owner)
{
        struct shelf *shelf = NULL;
        int r = 0;

        if (asked->keep_ms)
                r = shelf_new(peer->edge, asked->keep_ms, &shelf);
        *ret_owner = shelf ? &shelf->owner : &peer->handles;
        return error_pass(r);
}

/* Frees a shelf: it has only one handle. */
static void leave_owner(struct handle_owner *owner)
{
        if (owner->shelf)
                shelf_free(owner->shelf);
}

static void close_idle(struct edge *edge, struct handle *handle)
{
        struct handle_owner *owner = handle->owner;

        anchors_lift(edge->anchors, &handle->held);
        anchors_lift(edge->anchors, &handle->published);
        handles_close(edge->handles, handle);
        leave_owner(owner);
}

static int open_one(struct peer *peer, struct served *served, const struct wire_request *asked,
                    struct wire_problem *ret_problem, struct handle **ret_handle)
{
        struct handle_owner *owner;
        int r;

        r = choose_owner(peer, asked, &owner);
        if (r)
                return error_pass(r);
        r = handles_open(peer->edge->handles, owner, peer->uid, served, asked->id, ret_problem,
                         ret_handle);
        if (r)
                leave_owner(owner);
        return error_pass(r);
}

int holder_open(struct peer *peer, struct served *served, struct wire_request *asked,
                struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        struct handle *handle = NULL;
        int r;

        r = admit_check(edge->admit, served, asked, ret_problem);
        if (!r)
                r = open_one(peer, served, asked, ret_problem, &handle);
        if (r)
                return error_pass(r);
        if (!asked->token_count)
                r = task_history(peer, handle, asked, ret_problem);
        else
                r = fill_new(peer, handle, &asked->memory, asked->token_count, asked->id, "tokens",
                             ret_problem);
        if (r)
                close_idle(edge, handle);
        else if (!handle->task)
                reply_length(peer, handle, asked->id, true);
        return error_pass(r);
}

int holder_append(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = find_idle(peer, asked, &handle, ret_problem);
        if (!r)
                r = admit_check(peer->edge->admit, handle->model, asked, ret_problem);
        if (r)
                return error_pass(r);
        if (!asked->token_count)
                return error_pass(task_history(peer, handle, asked, ret_problem));
        r = fill_more(peer, handle, asked->tokens, asked->token_count, asked->id, "tokens",
                      ret_problem);
        if (!r)
                reply_length(peer, handle, asked->id, false);
        return error_pass(r);
}

static void return_task(struct peer_task *task)
{
        task->handle->task = NULL;
        task->handle = NULL;
}

int holder_fill(struct peer_task *task, struct wire_problem *ret_problem)
{
        struct handle *handle = task->handle;
        struct scribe_job *job = &task->job;
        bool opens = task->op == WIRE_OPEN;
        int r;

        if (opens)
                r = fill_new(task->peer, handle, &job->ids, job->id_count, task->id,
                             task->talk.messages.bytes ? "messages" : "prompt", ret_problem);
        else
                r = fill_more(task->peer, handle, job->ids, job->id_count, task->id, "text",
                              ret_problem);
        if (r)
                return error_pass(r);
        return_task(task);
        reply_length(task->peer, handle, task->id, opens);
        return 0;
}

void holder_give_up(struct edge *edge, struct peer_task *task)
{
        struct handle *handle = task->handle;

        return_task(task);
        if (task->op == WIRE_OPEN)
                close_idle(edge, handle);
}

/* ---- truncate and fork ---- */

int holder_truncate(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = find_idle(peer, asked, &handle, ret_problem);
        if (!r && asked->length > handle->count)
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "length",
                                "length is %u; the handle has %u tokens", asked->length,
                                handle->count);
        if (!r)
                r = handles_truncate(peer->edge->handles, handle, asked->length);
        if (!r)
                reply_length(peer, handle, asked->id, false);
        return error_pass(r);
}

static void reply_forks(struct peer *peer, const struct handle *last, uint32_t count, uint32_t id)
{
        struct wire_writer writer;

        if (!peer_reply(peer, &writer))
                return;
        wire_put_ok(&writer, id, 1);
        wire_put_text(&writer, "handles");
        wire_put_array(&writer, count);
        while (count--)
                wire_put_uint(&writer, last->number - count);
        peer_replied(peer, &writer);
}

static int fork_one(struct peer *peer, struct handle *handle, const struct wire_request *asked,
                    struct wire_problem *ret_problem, struct handle **ret_fork)
{
        struct handle_owner *owner;
        int r;

        r = choose_owner(peer, asked, &owner);
        if (r)
                return error_pass(r);
        r = handles_fork(peer->edge->handles, handle, owner, asked->id, ret_problem, ret_fork);
        if (r)
                leave_owner(owner);
        return error_pass(r);
}

/* Makes all forks or none. */
int holder_fork(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct handles *handles = peer->edge->handles;
        struct handle *handle, *fork = NULL;
        uint32_t made = 0;
        int r;

        r = find_idle(peer, asked, &handle, ret_problem);
        while (!r && made < asked->count) {
                r = fork_one(peer, handle, asked, ret_problem, &fork);
                made += !r;
        }
        if (!r)
                reply_forks(peer, fork, made, asked->id);
        else
                for (uint64_t number = made ? fork->number : 0; made--; number--)
                        close_idle(peer->edge, handles_find(handles, peer->uid, number));
        return error_pass(r);
}

/* ---- generations ---- */

int holder_lend(struct peer *peer, struct wire_request *asked, struct handle **ret_handle,
                struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = find_idle(peer, asked, &handle, ret_problem);
        if (r)
                return error_pass(r);
        if (!handle->count)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "handle",
                                   "handle %" PRIu64 " has no tokens to continue", asked->handle);
        asked->tokens = handle->tokens;
        asked->token_count = handle->count;
        *ret_handle = handle;
        return 0;
}

void holder_begin(struct handle *handle, struct request *request)
{
        assert(!handle_is_busy(handle) && handle->model == request->model);
        handle->request = request;
        request->handle = handle;
}

static struct anchored *anchored_by(struct handle *handle, const struct request *request)
{
        return request->publish ? &handle->published : &handle->held;
}

int holder_anchor(struct edge *edge, struct handle *handle, struct request *request, uint32_t ms,
                  struct wire_problem *ret_problem)
{
        struct anchored *anchored = anchored_by(handle, request);
        int r;

        if (request->publish && anchored->number)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, request->stream, "handle",
                                   "handle %" PRIu64 " is published already; revoke it first",
                                   handle->number);
        r = anchors_take(edge->anchors, anchored, handle->uid, request->prompt_count, ms,
                         request->stream, ret_problem);
        if (r)
                return error_pass(r);
        request->anchor = anchored->number;
        holder_begin(handle, request);
        return 0;
}

/*
 * A request that only reads leaves the history as it was.  If it failed, its anchor is lifted, even
 * one that the handle had before.
 */
static void take_anchor_back(struct edge *edge, struct handle *handle,
                             const struct request *request)
{
        if (request->anchored)
                anchors_begin(edge->anchors, anchored_by(handle, request));
        else
                anchors_lift(edge->anchors, anchored_by(handle, request));
}

static void part(struct request *request)
{
        request->handle->request = NULL;
        request->handle = NULL;
}

void holder_return(struct edge *edge, struct request *request)
{
        struct handle *handle = request->handle;

        if (!handle)
                return;
        part(request);
        if (request->anchor)
                take_anchor_back(edge, handle, request);
}

void holder_take_back(struct edge *edge, struct request *request)
{
        struct handle *handle = request->handle;
        struct wire_problem problem;
        int r;

        if (!handle)
                return;
        if (!request->max_tokens) {
                holder_return(edge, request);
                return;
        }
        part(request);
        r = handles_replace(edge->handles, handle, admit_take_tokens(edge->admit, request),
                            request->sequence.token_count, request->stream, &problem);
        assert(!r); /* the request was charged for more */
}

/* ---- the end ---- */

void holder_drop(struct edge *edge, struct handle *handle)
{
        struct request *request = handle->request;

        if (request) {
                part(request);
                stream_cancel(edge, request, SMV_END_CANCELLED, SMV_OK);
        }
        if (handle->task) {
                task_call_off(handle->task, SMV_NO_HANDLE);
                return_task(handle->task);
        }
        /* After the cancel in the mail, so the request can not set the anchors again. */
        close_idle(edge, handle);
}

int holder_let_go(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = find_idle(peer, asked, &handle, ret_problem);
        if (r)
                return error_pass(r);
        anchors_lift(peer->edge->anchors, &handle->held);
        peer_reply_ok(peer, asked->id);
        return 0;
}

/* Does not wait for other work on the handle. */
int holder_revoke(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = find(peer, asked, &handle, ret_problem);
        if (!r && handle->request && handle->request->publish)
                r = wire_refuse(ret_problem, SMV_HANDLE_BUSY, asked->id, "handle",
                                "handle %" PRIu64 " is being published; cancel that",
                                asked->handle);
        if (r)
                return error_pass(r);
        anchors_lift(peer->edge->anchors, &handle->published);
        peer_reply_ok(peer, asked->id);
        return 0;
}

int holder_close(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = find(peer, asked, &handle, ret_problem);
        if (r)
                return error_pass(r);
        holder_drop(peer->edge, handle);
        peer_reply_ok(peer, asked->id);
        return 0;
}

void holder_leave(struct peer *peer)
{
        while (peer->handles.first)
                holder_drop(peer->edge, peer->handles.first);
}

void holder_close_shelves(struct edge *edge)
{
        while (edge->shelves)
                holder_drop(edge, edge->shelves->owner.first);
}
