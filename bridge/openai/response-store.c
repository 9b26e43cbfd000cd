#include "bridge/openai/response-store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "bridge/core/context.h"
#include "bridge/core/fields.h"
#include "bridge/core/history.h"

#define NS_PER_MS UINT64_C(1000000)

struct response_store {
        struct list_head stored; /* the oldest first */
};

struct response_store *response_store_new(void)
{
        struct response_store *store = calloc(1, sizeof(*store));

        if (store)
                list_init(&store->stored);
        return store;
}

void response_store_remove(struct stored *stored)
{
        list_remove(&stored->of_store);
        history_drop(stored->history);
        bytes_deinit(&stored->body);
        bytes_deinit(&stored->input);
        bytes_deinit(&stored->items);
        free(stored);
}

struct response_store *response_store_free(struct response_store *store)
{
        if (!store)
                return NULL;
        list_each_safe(at, &store->stored)
                response_store_remove(LIST_ENTRY(at, struct stored, of_store));
        free(store);
        return NULL;
}

static void expire(struct response_store *store)
{
        uint64_t now_ns = sys_clock_ns();
        struct list_head *at;

        while ((at = list_first(&store->stored)) &&
               LIST_ENTRY(at, struct stored, of_store)->until_ns <= now_ns)
                response_store_remove(LIST_ENTRY(at, struct stored, of_store));
}

static uint64_t bytes_of(const struct stored *stored)
{
        return stored->body.count + stored->input.count + stored->items.count;
}

/* The oldest of a principal; NULL: none.  And how many it has, of how many bytes. */
static struct stored *count(const struct response_store *store, uint32_t principal,
                            uint32_t *ret_count, uint64_t *ret_bytes)
{
        struct stored *oldest = NULL;

        *ret_count = 0;
        *ret_bytes = 0;
        list_each(at, &store->stored) {
                struct stored *stored = LIST_ENTRY(at, struct stored, of_store);

                if (stored->principal != principal)
                        continue;
                ++*ret_count;
                *ret_bytes += bytes_of(stored);
                oldest = oldest ? oldest : stored;
        }
        return oldest;
}

/* Removes the oldest ones of a principal until one more of so many bytes fits. */
static void make_space(struct response_store *store, uint32_t principal,
                       const struct bridge_conf *conf, uint64_t more)
{
        struct stored *oldest;
        uint32_t have;
        uint64_t bytes;

        while ((oldest = count(store, principal, &have, &bytes)) &&
               (have >= conf->response_max || bytes + more > conf->response_bytes))
                response_store_remove(oldest);
}

static void move(struct bytes *to, struct bytes *from)
{
        *to = *from;
        *from = (struct bytes){ 0 };
}

int response_store_add(struct response_store *store, const struct call *call, const char *id,
                       struct bytes *body, struct bytes *input, struct bytes *items,
                       struct stored **ret_stored)
{
        const struct bridge_conf *conf = &call->bridge->conf;
        uint64_t bytes = body->count + input->count + items->count;
        struct stored *stored;

        if (!conf->response_max || bytes > conf->response_bytes)
                return -EFBIG;
        stored = calloc(1, sizeof(*stored));
        if (!stored)
                return -ENOMEM;
        expire(store);
        make_space(store, call->principal, conf, bytes);
        snprintf(stored->id, sizeof(stored->id), "%s", id);
        stored->principal = call->principal;
        stored->until_ns = sys_clock_ns() + conf->response_keep_ms * NS_PER_MS;
        move(&stored->body, body);
        move(&stored->input, input);
        move(&stored->items, items);
        list_push_back(&store->stored, &stored->of_store);
        *ret_stored = stored;
        return 0;
}

struct stored *response_store_find(struct response_store *store, const struct call *call,
                                   struct text id)
{
        expire(store);
        list_each(at, &store->stored) {
                struct stored *stored = LIST_ENTRY(at, struct stored, of_store);

                if (stored->principal == call->principal && text_is(id, stored->id))
                        return stored;
        }
        return NULL;
}
