#include "daemon/edge/handles.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/edge/admission.h"
#include "daemon/edge/quota.h"
#include "base/error.h"
#include "daemon/text/parts/argument-types.h"
#include "base/sys.h"

/* Numbers are random, so they spread over the buckets by themselves. */
#define BUCKETS   1024u
#define NS_PER_MS UINT64_C(1000000)

struct handles {
        struct edge *edge;
        struct list_head kept; /* the handles that outlive their connections */
        struct handles_sum sum;
        struct handle *buckets[BUCKETS];
};

int handles_new(struct edge *edge, struct handles **ret_handles)
{
        struct handles *handles = calloc(1, sizeof(*handles));

        if (!handles)
                return error_raise(-ENOMEM);
        handles->edge = edge;
        list_init(&handles->kept);
        *ret_handles = handles;
        return 0;
}

struct handles *handles_free(struct handles *handles)
{
        if (!handles)
                return NULL;
        assert(!handles->sum.open && !handles->sum.tokens && !handles->sum.bytes);
        free(handles);
        return NULL;
}

static struct handle **bucket(struct handles *handles, uint64_t number)
{
        return &handles->buckets[number % BUCKETS];
}

static struct handle *find_any(const struct handles *handles, uint64_t number)
{
        struct handle *at = handles->buckets[number % BUCKETS];

        while (at && at->number != number)
                at = at->next;
        return at;
}

struct handle *handles_find(const struct handles *handles, uint64_t uid, uint64_t number)
{
        struct handle *handle = find_any(handles, number);

        return handle && handle->uid == uid ? handle : NULL;
}

static int choose_number(const struct handles *handles, uint64_t *ret_number)
{
        int r;

        do
                r = sys_random_number(ret_number);
        while (!r && find_any(handles, *ret_number));
        return r ? error_raise(r) : 0;
}

struct list_head *handles_kept(struct handles *handles)
{
        return &handles->kept;
}

/* ---- what is charged ---- */

static size_t bytes_of(const struct handle *handle)
{
        /* The second part is its share of `sharers`. */
        return sizeof(struct handle) + sizeof(uint32_t) +
               argument_types_bytes(handle->argument_types) + handle->count * sizeof(uint32_t);
}

static int charge_bytes(struct handles *handles, const struct handle *handle, uint64_t bytes,
                        uint32_t id, struct wire_problem *ret_problem)
{
        int r = quota_ask(handles->edge->quota, handle->uid, QUOTA_PROMPT_BYTES, bytes, id,
                          ret_problem);

        if (!r)
                handles->sum.bytes += bytes;
        return error_pass(r);
}

static void uncharge_bytes(struct handles *handles, const struct handle *handle, uint64_t bytes)
{
        quota_uncharge(handles->edge->quota, handle->uid, QUOTA_PROMPT_BYTES, bytes);
        handles->sum.bytes -= bytes;
}

static int charge(struct handles *handles, const struct handle *handle, uint32_t id,
                  struct wire_problem *ret_problem)
{
        uint64_t bytes = bytes_of(handle);
        int r;

        r = quota_ask(handles->edge->quota, handle->uid, QUOTA_HANDLES, 1, id, ret_problem);
        if (r)
                return error_pass(r);
        r = charge_bytes(handles, handle, bytes, id, ret_problem);
        if (r)
                quota_uncharge(handles->edge->quota, handle->uid, QUOTA_HANDLES, 1);
        return error_pass(r);
}

/* ---- tokens ---- */

static bool is_shared(const struct handle *handle)
{
        return handle->sharers && *handle->sharers > 1;
}

static void drop_tokens(struct handle *handle)
{
        if (is_shared(handle)) {
                --*handle->sharers;
        } else {
                free(handle->sharers);
                free(handle->tokens);
        }
        handle->sharers = NULL;
        handle->tokens = NULL;
}

/* Gives the handle its own copy of its first `count` tokens, with room for `more`. */
static int own_tokens(struct handle *handle, uint32_t count, uint32_t more)
{
        size_t room = ((size_t)count + more) * sizeof(uint32_t);
        uint32_t *tokens;

        if (!room) {
                drop_tokens(handle);
                return 0;
        }
        tokens = realloc(is_shared(handle) ? NULL : handle->tokens, room);
        if (!tokens)
                return error_raise(-ENOMEM);
        if (is_shared(handle)) {
                memcpy(tokens, handle->tokens, count * sizeof(uint32_t));
                drop_tokens(handle);
        }
        handle->tokens = tokens;
        return 0;
}

static void set_count(struct handles *handles, struct handle *handle, uint32_t count)
{
        handles->sum.tokens += count;
        handles->sum.tokens -= handle->count;
        handle->count = count;
}

int handles_append(struct handles *handles, struct handle *handle, const uint32_t *tokens,
                   uint32_t count, uint32_t id, struct wire_problem *ret_problem)
{
        uint64_t bytes = (uint64_t)count * sizeof(uint32_t);
        int r;

        assert(!handle->stream && count <= UINT32_MAX - handle->count);
        if (!count)
                return 0;
        r = charge_bytes(handles, handle, bytes, id, ret_problem);
        if (r)
                return error_pass(r);
        r = own_tokens(handle, handle->count, count);
        if (r) {
                uncharge_bytes(handles, handle, bytes);
                return error_pass(r);
        }
        memcpy(handle->tokens + handle->count, tokens, bytes);
        set_count(handles, handle, handle->count + count);
        return 0;
}

/* They are charged already. */
static void take_tokens(struct handles *handles, struct handle *handle, uint32_t *tokens,
                        uint32_t count)
{
        uint32_t *shrunk;

        assert(!handle->stream && count);
        drop_tokens(handle);
        shrunk = realloc(tokens, count * sizeof(uint32_t)); /* to the bytes that are charged */
        handle->tokens = shrunk ? shrunk : tokens;
        set_count(handles, handle, count);
}

int handles_replace(struct handles *handles, struct handle *handle, uint32_t *tokens,
                    uint32_t count, uint32_t id, struct wire_problem *ret_problem)
{
        uint64_t before = handle->count * sizeof(uint32_t);
        uint64_t after = count * sizeof(uint32_t);
        int r = 0;

        if (after > before)
                r = charge_bytes(handles, handle, after - before, id, ret_problem);
        else
                uncharge_bytes(handles, handle, before - after);
        if (r)
                return error_pass(r);
        take_tokens(handles, handle, tokens, count);
        return 0;
}

int handles_give_types(struct handles *handles, struct handle *handle, struct argument_types *types,
                       uint32_t id, struct wire_problem *ret_problem)
{
        int r = charge_bytes(handles, handle, argument_types_bytes(types), id, ret_problem);

        if (r)
                return error_pass(r);
        uncharge_bytes(handles, handle, argument_types_bytes(handle->argument_types));
        argument_types_unref(handle->argument_types);
        handle->argument_types = argument_types_ref(types);
        return 0;
}

int handles_truncate(struct handles *handles, struct handle *handle, uint32_t count)
{
        int r;

        assert(!handle_is_busy(handle) && count <= handle->count);
        if (count == handle->count)
                return 0;
        r = own_tokens(handle, count, 0);
        if (r)
                return error_pass(r);
        uncharge_bytes(handles, handle, (handle->count - count) * sizeof(uint32_t));
        set_count(handles, handle, count);
        return 0;
}

/* ---- life ---- */

static void enter(struct handles *handles, struct handle *handle, struct list_head *owner)
{
        struct handle **at = bucket(handles, handle->number);

        handle->next = *at;
        *at = handle;
        list_push_front(owner, &handle->owner_link);
        handle->model->references++;
        handles->sum.open++;
        handles->sum.tokens += handle->count;
        handles->sum.kept += handle->timer != NULL;
}

/* A use of the handle sets only used_ns.  The timer is set again when it runs out too early. */
static void on_timer(void *arg)
{
        struct handle *handle = arg;
        uint64_t now_ns = sys_clock_ns(), left_ns;

        if (handle_is_busy(handle))
                handle->used_ns = now_ns;
        left_ns = handle->used_ns + handle->keep_ns;
        left_ns -= left_ns < now_ns ? left_ns : now_ns;
        if (!left_ns || loop_timer_set(handle->timer, left_ns))
                handle_close(handle);
}

void handle_renew(struct handle *handle)
{
        handle->used_ns = sys_clock_ns();
}

static int start_timer(struct handle *handle, uint32_t keep_ms)
{
        int r;

        handle->keep_ns = keep_ms * NS_PER_MS;
        handle_renew(handle);
        r = loop_timer_new(handle->handles->edge->loop, on_timer, handle, &handle->timer);
        if (!r)
                r = loop_timer_set(handle->timer, handle->keep_ns);
        return error_pass(r);
}

static void release(struct handle *handle)
{
        loop_timer_free(handle->timer);
        argument_types_unref(handle->argument_types);
        free(handle);
}

/* Makes a handle that is not listed yet.  It is charged as if it had `count` tokens already. */
static int make(struct peer *peer, struct served *model, struct argument_types *types,
                uint32_t keep_ms, uint32_t count, uint32_t id, struct wire_problem *ret_problem,
                struct handle **ret_handle)
{
        struct handles *handles = peer->edge->handles;
        struct handle *handle = calloc(1, sizeof(*handle));
        int r;

        if (!handle)
                return error_raise(-ENOMEM);
        handle->handles = handles;
        handle->uid = peer->uid;
        handle->model = model;
        handle->argument_types = argument_types_ref(types);
        handle->count = count;
        handle->made_ns = sys_clock_ns();
        r = choose_number(handles, &handle->number);
        if (!r && keep_ms)
                r = start_timer(handle, keep_ms);
        if (!r)
                r = charge(handles, handle, id, ret_problem);
        if (r) {
                release(handle);
                return error_pass(r);
        }
        *ret_handle = handle;
        return 0;
}

static struct list_head *owner_of(struct peer *peer, const struct handle *handle)
{
        return handle->timer ? &handle->handles->kept : &peer->handles;
}

int handles_open(struct peer *peer, struct served *model, uint32_t keep_ms, uint32_t id,
                 struct wire_problem *ret_problem, struct handle **ret_handle)
{
        int r = make(peer, model, NULL, keep_ms, 0, id, ret_problem, ret_handle);

        if (!r)
                enter(peer->edge->handles, *ret_handle, owner_of(peer, *ret_handle));
        return error_pass(r);
}

static int share(struct handle *handle)
{
        if (!handle->sharers) {
                handle->sharers = malloc(sizeof(*handle->sharers));
                if (!handle->sharers)
                        return error_raise(-ENOMEM);
                *handle->sharers = 1;
        }
        ++*handle->sharers;
        return 0;
}

int handles_fork(struct peer *peer, struct handle *handle, uint32_t keep_ms, uint32_t id,
                 struct wire_problem *ret_problem, struct handle **ret_handle)
{
        struct handles *handles = peer->edge->handles;
        struct handle *fork = NULL;
        int r;

        assert(!handle_is_busy(handle));
        r = make(peer, handle->model, handle->argument_types, keep_ms, handle->count, id,
                 ret_problem, &fork);
        if (r)
                return error_pass(r);
        r = handle->count ? share(handle) : 0;
        if (r) {
                uncharge_bytes(handles, fork, bytes_of(fork));
                quota_uncharge(handles->edge->quota, fork->uid, QUOTA_HANDLES, 1);
                release(fork);
                return error_pass(r);
        }
        fork->tokens = handle->tokens;
        fork->has_tools = handle->has_tools;
        fork->sharers = handle->count ? handle->sharers : NULL;
        enter(handles, fork, owner_of(peer, fork));
        *ret_handle = fork;
        return 0;
}

static void leave_lists(struct handles *handles, struct handle *handle)
{
        struct handle **at = bucket(handles, handle->number);

        while (*at != handle)
                at = &(*at)->next;
        *at = handle->next;
        list_remove(&handle->owner_link);
}

/* The engine does not know a stream that is not submitted yet: that is cancelled behind it. */
static void end_stream(struct edge *edge, struct stream *stream)
{
        if (stream->begun_ns)
                stream_cancel(edge, stream, SMV_END_CANCELLED, SMV_OK);
        else
                stream->unwanted = true;
}

/* The cancel stands before the mails about pins, so the stream can not set the pins again. */
static void end_work(struct edge *edge, struct handle *handle)
{
        if (handle->stream)
                end_stream(edge, handle->stream);
        if (handle->job)
                text_job_cancel(handle->job, SMV_NO_HANDLE);
        pins_remove(edge->pins, &handle->pinned);
        pins_remove(edge->pins, &handle->published);
}

void handle_close(struct handle *handle)
{
        struct handles *handles = handle->handles;

        end_work(handles->edge, handle);
        assert(handle->model->references && handles->sum.open);
        leave_lists(handles, handle);
        uncharge_bytes(handles, handle, bytes_of(handle));
        quota_uncharge(handles->edge->quota, handle->uid, QUOTA_HANDLES, 1);
        set_count(handles, handle, 0);
        drop_tokens(handle);
        handle->model->references--;
        handles->sum.open--;
        handles->sum.kept -= handle->timer != NULL;
        release(handle);
}

static void close_list(struct list_head *list)
{
        struct list_head *first;

        while ((first = list_first(list)))
                handle_close(LIST_ENTRY(first, struct handle, owner_link));
}

void handles_leave(struct peer *peer)
{
        close_list(&peer->handles);
}

void handles_close_all(struct handles *handles)
{
        close_list(&handles->kept);
}

/* ---- streams on a handle ---- */

void handle_lend(struct handle *handle, struct stream *stream)
{
        assert(!handle_is_busy(handle) && handle->model == stream->request.model);
        stream->handle = handle->number;
        handle->stream = stream;
}

/* NULL: the stream has none, or it has closed. */
static struct handle *part(struct handles *handles, struct stream *stream)
{
        struct handle *handle = NULL;

        if (stream->handle)
                handle = handles_find(handles, stream->request.uid, stream->handle);
        stream->handle = 0;
        if (handle)
                handle->stream = NULL;
        return handle;
}

/*
 * A stream that only reads leaves the history as it was.  If it failed, its pin is removed, even
 * one that the handle had before.
 */
static void take_pin_back(struct handle *handle, const struct stream *stream)
{
        struct pins *pins = handle->handles->edge->pins;

        if (stream->request.pinned)
                pins_begin(pins, handle_pin_for(handle, stream));
        else
                pins_remove(pins, handle_pin_for(handle, stream));
}

void handles_return(struct handles *handles, struct stream *stream)
{
        struct handle *handle = part(handles, stream);

        if (handle && stream->request.pin)
                take_pin_back(handle, stream);
}

/* The stream was charged for at least as many tokens, and gives its charge back here. */
void handles_take_back(struct handles *handles, struct stream *stream)
{
        struct request *request = &stream->request;
        uint32_t count = request->sequence.token_count, *tokens;
        struct handle *handle;
        uint64_t more;

        if (!request->max_tokens) {
                handles_return(handles, stream);
                return;
        }
        handle = part(handles, stream);
        if (!handle)
                return;
        assert(count >= handle->count);
        more = (uint64_t)(count - handle->count) * sizeof(uint32_t);
        tokens = admission_take_tokens(handles->edge->admission, stream);
        quota_recharge(handles->edge->quota, handle->uid, QUOTA_PROMPT_BYTES, more);
        handles->sum.bytes += more;
        take_tokens(handles, handle, tokens, count);
}

struct handles_sum handles_sum(const struct handles *handles)
{
        return handles->sum;
}
