#include "daemon/edge/shelf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/edge/holder.h"
#include "daemon/error.h"
#include "daemon/sys.h"

#define NS_PER_MS UINT64_C(1000000)

/* A use of the handle sets only used_ns.  The timer is set again when it runs out too early. */
static void on_timer(void *arg)
{
        struct shelf *shelf = arg;
        struct handle *handle = shelf->owner.first;
        struct edge *edge = shelf->edge;
        uint64_t now_ns = sys_clock_ns(), left_ns;

        if (handle_is_busy(handle))
                shelf->used_ns = now_ns;
        left_ns = shelf->used_ns + shelf->keep_ns;
        left_ns -= left_ns < now_ns ? left_ns : now_ns;
        if (left_ns && !loop_timer_set(shelf->timer, left_ns))
                return;
        holder_drop(edge, handle);
        edge_go_on(edge);
}

int shelf_new(struct edge *edge, uint32_t keep_ms, struct shelf **ret_shelf)
{
        struct shelf *shelf = calloc(1, sizeof(*shelf));
        int r;

        if (!shelf)
                return error_raise(-ENOMEM);
        *shelf = (struct shelf){ .edge = edge,
                                 .keep_ns = keep_ms * NS_PER_MS,
                                 .used_ns = sys_clock_ns() };
        shelf->owner.shelf = shelf;
        r = loop_timer_new(edge->loop, on_timer, shelf, &shelf->timer);
        if (!r)
                r = loop_timer_set(shelf->timer, shelf->keep_ns);
        if (r) {
                loop_timer_free(shelf->timer);
                free(shelf);
                return error_pass(r);
        }
        shelf->next = edge->shelves;
        if (shelf->next)
                shelf->next->prev = shelf;
        edge->shelves = shelf;
        *ret_shelf = shelf;
        return 0;
}

void shelf_free(struct shelf *shelf)
{
        assert(!shelf->owner.first);
        if (shelf->prev)
                shelf->prev->next = shelf->next;
        else
                shelf->edge->shelves = shelf->next;
        if (shelf->next)
                shelf->next->prev = shelf->prev;
        loop_timer_free(shelf->timer);
        free(shelf);
}

void shelf_renew(struct handle_owner *owner)
{
        if (owner->shelf)
                owner->shelf->used_ns = sys_clock_ns();
}
