/*
 * The living streams of a client, found by their ids.
 *
 * The streams lie in an array without gaps, in no order.  Each record that is read asks for its
 * stream, so the array has a hash table beside it: chains of streams whose ids have the same hash.
 * A pointer to a stream is valid until the next call that adds or removes one.
 */
#ifndef CLIENT_STREAM_TABLE_H
#define CLIENT_STREAM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stream that was accepted, and whose END smv_next() has not returned yet. */
struct client_stream {
        uint32_t id;
        uint32_t next;      /* in its chain: the place of a stream, + 1; 0: none */
        uint32_t sequence;  /* of its next record */
        uint32_t tokens;    /* that have been read */
        uint64_t number;    /* for smv_end(); 0: the daemon did not say */
        uint64_t resume_id; /* 0: the stream ends with the connection */
        bool detached;      /* records that have come meanwhile are skipped */
        /* Its questions to this client, and where the answers go. */
        uint32_t ask; /* enum smv_ask */
        uint32_t ask_slot, ask_ticket, ask_position;
        bool is_asking;  /* the question of ask_position has no answer yet */
        bool asks_first; /* ... and its ASK event has not been returned */
};

struct stream_table {
        struct client_stream *at;
        size_t count, size; /* size: a power of two, or 0 */
        uint32_t *chains;   /* `size` of them, each as `next` */
};

/* Makes space for `count` more: 0 or -ENOMEM. */
int stream_table_reserve(struct stream_table *table, size_t count);
/* There must be space, and no stream with this id. */
void stream_table_add(struct stream_table *table, const struct client_stream *stream);
/* NULL: no such stream is alive. */
struct client_stream *stream_table_find(const struct stream_table *table, uint32_t id);
void stream_table_remove(struct stream_table *table, struct client_stream *stream);
void stream_table_deinit(struct stream_table *table);

#endif
