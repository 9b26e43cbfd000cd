#include "daemon/edge/op-pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sys.h"
#include "daemon/core/prefix-tree.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/principals.h"
#include "daemon/edge/wire.h"
#include "daemon/ipc/mailbox.h"

/* A request that waits for the map. */
struct pool_ask {
        struct peer *peer;
        uint32_t id, from;
};

/* What one viewer sees of the map, from the block `from` on. */
struct drawing {
        uint64_t viewer;
        bool sees_all;
        uint64_t domains[POOL_USERS_MAX]; /* the users that the reply names */
        uint32_t domain_count;
        struct run {
                uint32_t count;
                struct pool_block block;
                int user; /* index in `domains`; -1: none, or beyond those that are named */
        } runs[POOL_RUNS_MAX];
        uint32_t run_count, next; /* next: the first block behind the runs */
};

struct pool_view {
        struct edge *edge;
        struct pool_map *map;
        bool mapping;       /* the engine has it */
        uint64_t mapped_ns; /* when it was filled; 0: never */
        struct pool_ask asks[POOL_ASKS_MAX];
        uint32_t ask_count;
        struct drawing drawing; /* of the reply that is made */
};

int pool_view_new(struct edge *edge, struct pool_view **ret_view)
{
        struct pool_view *view = calloc(1, sizeof(*view));

        if (!view)
                return error_raise(-ENOMEM);
        view->edge = edge;
        view->map = pool_map_new(edge->conf.admission.sched.blocks);
        if (!view->map) {
                free(view);
                return error_raise(-ENOMEM);
        }
        *ret_view = view;
        return 0;
}

struct pool_view *pool_view_free(struct pool_view *view)
{
        if (!view)
                return NULL;
        assert(!view->ask_count);
        pool_map_free(view->map);
        free(view);
        return NULL;
}

/* ---- the reply ---- */

static struct pool_block seen(const struct drawing *drawing, struct pool_block block)
{
        if (drawing->sees_all || (block.state != POOL_FREE && block.domain == drawing->viewer))
                return block;
        return (struct pool_block){ .state = POOL_HIDDEN };
}

static int user_of(struct drawing *drawing, const struct pool_block *block)
{
        uint32_t i = 0;

        if (block->state == POOL_FREE || block->state == POOL_HIDDEN)
                return -1;
        while (i < drawing->domain_count && drawing->domains[i] != block->domain)
                i++;
        if (i == POOL_USERS_MAX)
                return -1;
        if (i == drawing->domain_count)
                drawing->domains[drawing->domain_count++] = block->domain;
        return (int)i;
}

static bool are_alike(const struct pool_block *a, const struct pool_block *b)
{
        return a->state == b->state && a->refs == b->refs && a->domain == b->domain;
}

static void draw(struct drawing *drawing, const struct pool_map *map, uint32_t from)
{
        uint32_t end = map->blocks - from > POOL_BLOCKS_MAX ? from + POOL_BLOCKS_MAX : map->blocks;

        drawing->domain_count = drawing->run_count = 0;
        for (drawing->next = from; drawing->next < end; drawing->next++) {
                struct pool_block block = seen(drawing, map->at[drawing->next]);
                struct run *last =
                        drawing->run_count ? &drawing->runs[drawing->run_count - 1] : NULL;

                if (last && are_alike(&last->block, &block)) {
                        last->count++;
                        continue;
                }
                if (drawing->run_count == POOL_RUNS_MAX)
                        break;
                drawing->runs[drawing->run_count++] = (struct run){
                        .count = 1,
                        .block = block,
                        .user = user_of(drawing, &block),
                };
        }
}

static void put_number(struct wire_writer *writer, const char *name, uint64_t value)
{
        wire_put_text(writer, name);
        wire_put_uint(writer, value);
}

/* Blocks may be cached for a user that is not known any more; it has no name then. */
static void put_user(struct wire_writer *writer, const struct edge *edge, uint64_t domain)
{
        struct user_shown user = { .principal = "" };
        const char *shared = "";

        if (domain == PREFIX_EVERYONE)
                shared = "everyone";
        else if (prefix_is_public(domain))
                shared = "group";
        if (!*shared && !principals_show(edge->principals, domain, &user))
                user = (struct user_shown){ .uid = (uint32_t)edge->uid, .principal = "?" };
        wire_put_map(writer, 3);
        put_number(writer, "uid", *shared ? (uint32_t)domain : user.uid);
        wire_put_text(writer, "principal");
        wire_put_text(writer, user.principal);
        wire_put_text(writer, "shared");
        wire_put_text(writer, shared);
}

static void put_run(struct wire_writer *writer, const struct run *run)
{
        wire_put_array(writer, run->user < 0 ? 3 : 4);
        wire_put_uint(writer, run->count);
        wire_put_uint(writer, run->block.state);
        wire_put_uint(writer, run->block.refs);
        if (run->user >= 0)
                wire_put_uint(writer, (uint64_t)run->user);
}

static void put_drawing(struct wire_writer *writer, const struct pool_view *view, uint32_t from)
{
        const struct drawing *drawing = &view->drawing;

        wire_put_map(writer, 7);
        put_number(writer, "blocks", view->map->blocks);
        put_number(writer, "positions", BLOCK_POSITIONS);
        put_number(writer, "from", from);
        put_number(writer, "next", drawing->next);
        wire_put_text(writer, "all_users");
        wire_put_bool(writer, drawing->sees_all);
        wire_put_text(writer, "users");
        wire_put_array(writer, drawing->domain_count);
        for (uint32_t i = 0; i < drawing->domain_count; i++)
                put_user(writer, view->edge, drawing->domains[i]);
        wire_put_text(writer, "runs");
        wire_put_array(writer, drawing->run_count);
        for (uint32_t i = 0; i < drawing->run_count; i++)
                put_run(writer, &drawing->runs[i]);
}

static void reply(struct pool_view *view, struct peer *peer, uint32_t id, uint32_t from)
{
        struct wire_writer writer;

        view->drawing.viewer = peer->uid;
        view->drawing.sees_all = !peer->uid || peer->uid == view->edge->uid;
        draw(&view->drawing, view->map, from);
        if (!connection_reply(peer, &writer))
                return;
        wire_put_ok(&writer, id, 1);
        wire_put_text(&writer, "pool");
        put_drawing(&writer, view, from);
        connection_replied(peer, &writer);
}

/* ---- asking ---- */

static uint32_t count_asks(const struct pool_view *view, uint64_t uid)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < view->ask_count; i++)
                count += view->asks[i].peer->uid == uid;
        return count;
}

int op_pool(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct pool_view *view = peer->edge->pool_view;

        if (asked->from > view->map->blocks)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "from",
                                   "from is %u; the pool has %u blocks", (unsigned)asked->from,
                                   (unsigned)view->map->blocks);
        if (!view->mapping && view->mapped_ns &&
            sys_clock_ns() - view->mapped_ns < POOL_MAP_FRESH_NS) {
                reply(view, peer, asked->id, asked->from);
                return 0;
        }
        if (view->ask_count == POOL_ASKS_MAX)
                return wire_refuse(ret_problem, SMV_BUSY, asked->id, "op",
                                   "%u requests wait for the map of the pool already",
                                   (unsigned)POOL_ASKS_MAX);
        if (count_asks(view, peer->uid) == POOL_USER_ASKS_MAX)
                return wire_refuse(ret_problem, SMV_BUSY, asked->id, "op",
                                   "%u requests of this user wait for the map of the pool already",
                                   (unsigned)POOL_USER_ASKS_MAX);
        view->asks[view->ask_count++] = (struct pool_ask){ peer, asked->id, asked->from };
        if (!view->mapping) {
                view->mapping = true;
                pool_map_begin(view->map);
                mailbox_post(view->edge->conf.to_engine,
                             &(struct mail){ .kind = MAIL_POOL, .what = view->map });
        }
        return 0;
}

void pool_view_mapped(struct pool_view *view)
{
        view->mapping = false;
        view->mapped_ns = sys_clock_ns();
        for (uint32_t i = 0; i < view->ask_count; i++) {
                reply(view, view->asks[i].peer, view->asks[i].id, view->asks[i].from);
                connection_mark(view->asks[i].peer);
        }
        view->ask_count = 0;
}

void pool_view_leave(struct peer *peer)
{
        struct pool_view *view = peer->edge->pool_view;
        uint32_t left = 0;

        for (uint32_t i = 0; i < view->ask_count; i++)
                if (view->asks[i].peer != peer)
                        view->asks[left++] = view->asks[i];
        view->ask_count = left;
}
