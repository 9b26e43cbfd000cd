/*
 * Both walks keep a stack of the open containers instead of recursing.  The frame was scanned, so
 * at most SMV_NESTING_MAX containers are open.
 */
#include "daemon/edge/values.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

#include "daemon/edge/msgpack-reader.h"
#include "base/error.h"
#include "json/utf8.h"

/* The bytes of a value in an arena, without its text. */
#define VALUE_BYTES 128u
#define ARENA_SPARE (1u << 20)

static const char *check_item(const struct item *item, bool key)
{
        if (key && item->kind != ITEM_TEXT)
                return "a key that is not a text";
        if (item->kind == ITEM_BIN)
                return "binary";
        if (item->kind == ITEM_FLOAT && !isfinite(item->number))
                return "a number that is not finite";
        if (item->kind == ITEM_UINT && item->u > INT64_MAX)
                return "an integer above 9223372036854775807";
        if (item->kind == ITEM_TEXT && utf8_valid(item->bytes, item->count) < item->count)
                return "a text that is not valid UTF-8";
        return NULL;
}

const char *values_check(struct cursor *at, uint32_t *count)
{
        struct {
                uint64_t left;
                bool map; /* then an item is a key if `left` is even */
        } open[SMV_NESTING_MAX + 1] = { { .left = 1 } };
        uint32_t depth = 0;

        for (;;) {
                struct item item;
                const char *wrong;
                bool key;

                while (!open[depth].left) {
                        if (!depth)
                                return NULL;
                        depth--;
                }
                key = open[depth].map && open[depth].left % 2 == 0;
                open[depth].left--;
                wrong = item_next(at, &item);
                assert(!wrong);
                wrong = check_item(&item, key);
                if (wrong)
                        return wrong;
                ++*count;
                if (item.kind < ITEM_ARRAY)
                        continue;
                assert(depth < SMV_NESTING_MAX);
                depth++;
                open[depth].map = item.kind == ITEM_MAP;
                open[depth].left = open[depth].map ? 2 * (uint64_t)item.count : item.count;
        }
}

/* ---- making ---- */

/* A container that is being filled. */
struct level {
        struct value container, key;
        uint32_t left; /* items that are still missing */
};

struct making {
        struct arena *arena;
        struct cursor at;
        struct level levels[SMV_NESTING_MAX + 1];
        uint32_t depth;
};

static int make_text(struct making *m, const struct item *item, struct value *ret)
{
        return error_pass(value_string(m->arena, item->bytes, item->count, TEXT_GIVEN, ret));
}

static int make_scalar(struct making *m, const struct item *item, struct value *ret)
{
        switch (item->kind) {
        case ITEM_TEXT:
                return error_pass(make_text(m, item, ret));
        case ITEM_BOOL:
                *ret = value_bool(item->u);
                break;
        case ITEM_UINT:
                *ret = value_integer((int64_t)item->u);
                break;
        case ITEM_NEGATIVE:
                *ret = value_integer(item->negative);
                break;
        case ITEM_FLOAT:
                *ret = value_float(item->number);
                break;
        default:
                *ret = value_none();
        }
        return 0;
}

static int open_level(struct making *m, bool map, uint32_t count)
{
        struct level *level = &m->levels[m->depth];

        level->left = count;
        return error_pass(map ? value_map(m->arena, count, &level->container)
                              : value_list(m->arena, count, &level->container));
}

static int end_level(struct making *m)
{
        struct value *container = &m->levels[m->depth].container;

        return container->kind == VALUE_MAP ? value_map_end(m->arena, container) : 0;
}

static int add(struct level *level, struct value item)
{
        level->left--;
        return error_pass(level->container.kind == VALUE_MAP
                                  ? value_map_add(&level->container, level->key, item)
                                  : value_list_add(&level->container, item));
}

/* Makes the next item of the innermost container. */
static int make_item(struct making *m)
{
        struct level *level = &m->levels[m->depth];
        struct value made;
        struct item item;
        int r = 0;

        if (level->container.kind == VALUE_MAP) {
                item_next(&m->at, &item);
                r = make_text(m, &item, &level->key);
        }
        item_next(&m->at, &item);
        if (r)
                return error_pass(r);
        if (item.kind >= ITEM_ARRAY) {
                assert(m->depth < SMV_NESTING_MAX);
                m->depth++;
                return error_pass(open_level(m, item.kind == ITEM_MAP, item.count));
        }
        r = make_scalar(m, &item, &made);
        return r ? error_pass(r) : error_pass(add(level, made));
}

static int make(struct arena *arena, const struct wire_values *values, bool map, struct value *ret)
{
        struct making m = { .arena = arena };
        int r;

        if (!values->bytes) {
                *ret = value_none();
                return 0;
        }
        m.at = (struct cursor){ values->bytes, values->bytes + values->size };
        r = open_level(&m, map, values->count);
        while (!r) {
                struct level *level = &m.levels[m.depth];

                if (level->left) {
                        r = make_item(&m);
                        continue;
                }
                r = end_level(&m);
                if (r || !m.depth)
                        break;
                m.depth--;
                r = add(&m.levels[m.depth], level->container);
        }
        *ret = m.levels[0].container;
        return r < 0 ? error_pass(r) : r;
}

int values_list(struct arena *arena, const struct wire_values *values, struct value *ret_list)
{
        return make(arena, values, false, ret_list);
}

int values_map(struct arena *arena, const struct wire_values *values, struct value *ret_map)
{
        return make(arena, values, true, ret_map);
}

size_t values_bytes(const struct wire_chat *chat)
{
        return (size_t)chat->messages.size + chat->tools.size + chat->template_vars.size;
}

size_t values_arena_bytes(const struct wire_chat *chat)
{
        size_t count = (size_t)chat->value_count + chat->allowed_tools.count;

        return values_bytes(chat) + chat->allowed_tools.size + VALUE_BYTES * count + ARENA_SPARE;
}
