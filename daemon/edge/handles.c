#include "daemon/edge/handles.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/edge/admit.h"
#include "daemon/error.h"

/* Numbers are counted up, so they spread over the buckets by themselves. */
#define BUCKETS 1024u

struct handles {
        struct quota *quota;
        uint64_t last; /* number that was given out */
        struct handles_sum sum;
        struct handle *buckets[BUCKETS];
};

int handles_new(struct quota *quota, uint64_t first, struct handles **ret_handles)
{
        struct handles *handles = calloc(1, sizeof(*handles));

        if (!handles)
                return error_raise(-ENOMEM);
        handles->quota = quota;
        handles->last = first;
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

struct handle *handles_find(const struct handles *handles, uint32_t uid, uint64_t number)
{
        struct handle *at = handles->buckets[number % BUCKETS];

        while (at && at->number != number)
                at = at->next;
        return at && at->uid == uid ? at : NULL;
}

/* ---- what is charged ---- */

static size_t own_bytes(void)
{
        /* The second part is its share of `sharers`. */
        return sizeof(struct handle) + sizeof(uint32_t);
}

static int charge_bytes(struct handles *handles, const struct handle *handle, uint64_t bytes,
                        uint32_t id, struct wire_problem *ret_problem)
{
        int r = admit_charge(handles->quota, handle->uid, QUOTA_PROMPT_BYTES, bytes, id,
                             ret_problem);

        if (!r)
                handles->sum.bytes += bytes;
        return error_pass(r);
}

static void uncharge_bytes(struct handles *handles, const struct handle *handle, uint64_t bytes)
{
        quota_uncharge(handles->quota, handle->uid, QUOTA_PROMPT_BYTES, bytes);
        handles->sum.bytes -= bytes;
}

static int charge(struct handles *handles, const struct handle *handle, uint32_t id,
                  struct wire_problem *ret_problem)
{
        uint64_t bytes = own_bytes() + handle->count * sizeof(uint32_t);
        int r;

        r = admit_charge(handles->quota, handle->uid, QUOTA_HANDLES, 1, id, ret_problem);
        if (r)
                return error_pass(r);
        r = charge_bytes(handles, handle, bytes, id, ret_problem);
        if (r)
                quota_uncharge(handles->quota, handle->uid, QUOTA_HANDLES, 1);
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

        assert(!handle->request && count <= UINT32_MAX - handle->count);
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

int handles_replace(struct handles *handles, struct handle *handle, uint32_t *tokens,
                    uint32_t count, uint32_t id, struct wire_problem *ret_problem)
{
        uint64_t before = handle->count * sizeof(uint32_t);
        uint64_t after = count * sizeof(uint32_t);
        uint32_t *shrunk;
        int r = 0;

        assert(!handle->request && count);
        if (after > before)
                r = charge_bytes(handles, handle, after - before, id, ret_problem);
        else
                uncharge_bytes(handles, handle, before - after);
        if (r)
                return error_pass(r);
        drop_tokens(handle);
        shrunk = realloc(tokens, after); /* shrinks to the bytes that are charged */
        handle->tokens = shrunk ? shrunk : tokens;
        set_count(handles, handle, count);
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

static void enter(struct handles *handles, struct handle *handle)
{
        struct handle **at;

        handle->number = ++handles->last;
        at = bucket(handles, handle->number);
        handle->next = *at;
        *at = handle;
        handle->owner_next = handle->owner->first;
        if (handle->owner_next)
                handle->owner_next->owner_prev = handle;
        handle->owner->first = handle;
        handle->model->holds++;
        handles->sum.open++;
        handles->sum.tokens += handle->count;
}

/* Makes a handle that is not listed yet.  It is charged as if it had `count` tokens already. */
static int make(struct handles *handles, struct handle_owner *owner, uint32_t uid,
                struct served *model, uint32_t count, uint32_t id, struct wire_problem *ret_problem,
                struct handle **ret_handle)
{
        struct handle *handle = calloc(1, sizeof(*handle));
        int r;

        if (!handle)
                return error_raise(-ENOMEM);
        handle->uid = uid;
        handle->model = model;
        handle->owner = owner;
        handle->count = count;
        r = charge(handles, handle, id, ret_problem);
        if (r) {
                free(handle);
                return error_pass(r);
        }
        *ret_handle = handle;
        return 0;
}

int handles_open(struct handles *handles, struct handle_owner *owner, uint32_t uid,
                 struct served *model, uint32_t id, struct wire_problem *ret_problem,
                 struct handle **ret_handle)
{
        int r = make(handles, owner, uid, model, 0, id, ret_problem, ret_handle);

        if (!r)
                enter(handles, *ret_handle);
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

int handles_fork(struct handles *handles, struct handle *handle, struct handle_owner *owner,
                 uint32_t id, struct wire_problem *ret_problem, struct handle **ret_handle)
{
        struct handle *fork = NULL;
        int r;

        assert(!handle_is_busy(handle));
        r = make(handles, owner, handle->uid, handle->model, handle->count, id, ret_problem, &fork);
        if (r)
                return error_pass(r);
        r = handle->count ? share(handle) : 0;
        if (r) {
                uncharge_bytes(handles, fork, own_bytes() + fork->count * sizeof(uint32_t));
                quota_uncharge(handles->quota, fork->uid, QUOTA_HANDLES, 1);
                free(fork);
                return error_pass(r);
        }
        fork->tokens = handle->tokens;
        fork->sharers = handle->count ? handle->sharers : NULL;
        enter(handles, fork);
        *ret_handle = fork;
        return 0;
}

static void leave_lists(struct handles *handles, struct handle *handle)
{
        struct handle **at = bucket(handles, handle->number);

        while (*at != handle)
                at = &(*at)->next;
        *at = handle->next;
        if (handle->owner_prev)
                handle->owner_prev->owner_next = handle->owner_next;
        else
                handle->owner->first = handle->owner_next;
        if (handle->owner_next)
                handle->owner_next->owner_prev = handle->owner_prev;
}

void handles_close(struct handles *handles, struct handle *handle)
{
        assert(!handle_is_busy(handle) && !handle->held.number);
        assert(!handle->published.number);
        assert(handle->model->holds && handles->sum.open);
        leave_lists(handles, handle);
        uncharge_bytes(handles, handle, own_bytes() + handle->count * sizeof(uint32_t));
        quota_uncharge(handles->quota, handle->uid, QUOTA_HANDLES, 1);
        set_count(handles, handle, 0);
        drop_tokens(handle);
        handle->model->holds--;
        handles->sum.open--;
        free(handle);
}

struct handles_sum handles_sum(const struct handles *handles)
{
        return handles->sum;
}
