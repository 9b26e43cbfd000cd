#include "bridge/core/kept.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/core/identifier.h"

struct kept_store {
        struct list_head streams; /* the oldest first */
};

struct kept_store *kept_store_new(void)
{
        struct kept_store *store = calloc(1, sizeof(*store));

        if (store)
                list_init(&store->streams);
        return store;
}

void kept_remove(struct kept_stream *stream)
{
        list_remove(&stream->of_store);
        free(stream->path);
        free((char *)(uintptr_t)stream->body.at);
        free(stream);
}

struct kept_store *kept_store_free(struct kept_store *store)
{
        if (!store)
                return NULL;
        list_each_safe(at, &store->streams)
                kept_remove(LIST_ENTRY(at, struct kept_stream, of_store));
        free(store);
        return NULL;
}

/* The oldest of a principal; NULL: none.  And how many it has, with how many bytes of requests. */
static struct kept_stream *count(const struct kept_store *store, uint32_t principal,
                                 uint32_t *ret_count, uint64_t *ret_bytes)
{
        struct kept_stream *oldest = NULL;

        *ret_count = 0;
        *ret_bytes = 0;
        list_each(at, &store->streams) {
                struct kept_stream *stream = LIST_ENTRY(at, struct kept_stream, of_store);

                if (stream->principal != principal)
                        continue;
                ++*ret_count;
                *ret_bytes += stream->body.bytes;
                oldest = oldest ? oldest : stream;
        }
        return oldest;
}

/* Forgets the oldest ones of a principal until one more with such a request fits. */
static void make_space(struct kept_store *store, uint32_t principal, uint64_t more)
{
        struct kept_stream *oldest;
        uint32_t have;
        uint64_t bytes;

        while ((oldest = count(store, principal, &have, &bytes)) &&
               (have >= KEPT_STREAMS_MAX || bytes + more > KEPT_BYTES_MAX))
                kept_remove(oldest);
}

struct kept_stream *kept_add(struct kept_store *store, uint32_t principal, const char *path,
                             struct text body, uint64_t resume_id, const struct kept_facts *facts)
{
        struct kept_stream *stream = calloc(1, sizeof(*stream));
        char *copy = malloc(body.bytes + 1);

        if (stream)
                stream->path = strdup(path);
        if (!stream || !copy || !stream->path) {
                free(copy);
                free(stream ? stream->path : NULL);
                free(stream);
                return NULL;
        }
        make_space(store, principal, body.bytes);
        memcpy(copy, body.at, body.bytes);
        copy[body.bytes] = '\0';
        stream->body = (struct text){ copy, body.bytes };
        stream->principal = principal;
        stream->resume_id = resume_id;
        stream->facts = *facts;
        identifier_make("stream_", stream->id, sizeof(stream->id));
        list_push_back(&store->streams, &stream->of_store);
        return stream;
}

struct kept_stream *kept_find(const struct kept_store *store, uint32_t principal, struct text id)
{
        list_each(at, &store->streams) {
                struct kept_stream *stream = LIST_ENTRY(at, struct kept_stream, of_store);

                if (stream->principal == principal && strlen(stream->id) == id.bytes &&
                    !memcmp(stream->id, id.at, id.bytes))
                        return stream;
        }
        return NULL;
}

struct kept_stream *kept_find_resumable(const struct kept_store *store, uint32_t principal,
                                        uint64_t resume_id)
{
        list_each(at, &store->streams) {
                struct kept_stream *stream = LIST_ENTRY(at, struct kept_stream, of_store);

                if (stream->principal == principal && stream->resume_id == resume_id)
                        return stream;
        }
        return NULL;
}
