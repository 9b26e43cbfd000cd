#include "client/stream-table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define SIZE_MIN 8u

/*
 * Ids are counted up, and streams that outlive others may have any distance.  The factor, 2^32
 * divided by the golden ratio, spreads both over the upper bits, and these choose the chain.
 */
static uint32_t *chain_of(const struct stream_table *table, uint32_t id)
{
        uint32_t hash = id * UINT32_C(2654435769);

        return &table->chains[(uint64_t)hash * table->size >> 32];
}

/* What points at the stream at this place: a chain, or the `next` of another stream. */
static uint32_t *link_to(struct stream_table *table, size_t place)
{
        uint32_t *link = chain_of(table, table->at[place].id);

        while (*link != place + 1)
                link = &table->at[*link - 1].next;
        return link;
}

static void enter(struct stream_table *table, size_t place)
{
        uint32_t *chain = chain_of(table, table->at[place].id);

        table->at[place].next = *chain;
        *chain = (uint32_t)place + 1;
}

int stream_table_reserve(struct stream_table *table, size_t count)
{
        size_t size = table->size ? table->size : SIZE_MIN;
        struct client_stream *at;
        uint32_t *chains;

        while (size - table->count < count)
                size *= 2;
        if (size == table->size)
                return 0;
        at = reallocarray(table->at, size, sizeof(*at));
        if (!at)
                return -ENOMEM;
        table->at = at;
        chains = calloc(size, sizeof(*chains));
        if (!chains)
                return -ENOMEM;
        free(table->chains);
        table->chains = chains;
        table->size = size;
        for (size_t i = 0; i < table->count; i++)
                enter(table, i);
        return 0;
}

void stream_table_add(struct stream_table *table, const struct client_stream *stream)
{
        assert(table->count < table->size);
        assert(!stream_table_find(table, stream->id));
        table->at[table->count] = *stream;
        enter(table, table->count++);
}

struct client_stream *stream_table_find(const struct stream_table *table, uint32_t id)
{
        uint32_t place = table->size ? *chain_of(table, id) : 0;

        while (place && table->at[place - 1].id != id)
                place = table->at[place - 1].next;
        return place ? &table->at[place - 1] : NULL;
}

/* The last stream moves to the free place. */
void stream_table_remove(struct stream_table *table, struct client_stream *stream)
{
        size_t place = (size_t)(stream - table->at), last = table->count - 1;

        *link_to(table, place) = stream->next;
        if (place != last) {
                *link_to(table, last) = (uint32_t)place + 1;
                table->at[place] = table->at[last];
        }
        table->count--;
}

void stream_table_deinit(struct stream_table *table)
{
        free(table->at);
        free(table->chains);
        *table = (struct stream_table){ 0 };
}
