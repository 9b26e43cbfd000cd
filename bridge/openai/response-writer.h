/*
 * Writes a response: as events in their order, or as a whole.
 *
 * The pieces of a run become items: reasoning, message, function_call.  An item is open until a
 * piece of another kind comes.  The writer repeats each text in its `done` events, which some
 * clients need (Codex takes the text only from response.output_item.done).
 */
#ifndef BRIDGE_OPENAI_RESPONSE_WRITER_H
#define BRIDGE_OPENAI_RESPONSE_WRITER_H

#include "bridge/core/cache-miss.h"
#include "bridge/core/run.h"

enum response_item_kind { ITEM_REASONING, ITEM_MESSAGE, ITEM_CALL };

struct response_item {
        struct response_item *next;
        enum response_item_kind kind;
        char id[48];
        uint32_t index;
        bool open;
        struct bytes text;           /* REASONING, MESSAGE */
        struct bytes logprobs;       /* MESSAGE: JSON objects with commas between them */
        const struct run_call *call; /* CALL */
};

struct response_writer {
        struct call *call;
        char id[48];
        uint64_t created_s;
        struct text model;
        const char *tier;
        bool stream, store, logprobs;
        bool diagnose;          /* the client asked why no more of the prompt was cached */
        struct cache_miss miss; /* if the prompt differs from what is cached */
        uint32_t request;       /* the object of the request in call->json */
        struct text previous_id;
        uint64_t sequence;
        struct response_item *items, *last;
        const struct run *run;
        const struct failure *failure; /* it has failed */
        bool ended;
};

/* Sends response.created and response.in_progress, if it is streamed. */
void response_begin(struct response_writer *writer);
void response_piece(struct response_writer *writer, const struct run_piece *piece);
/* Closes the open item, and sends the last event, if it is streamed.  The call goes on. */
void response_end(struct response_writer *writer);
/* The same, for a response that has failed after its beginning. */
void response_fail(struct response_writer *writer, const struct failure *failure);
/* The response object as it is now. */
void response_put(const struct response_writer *writer, struct json_builder *to);
/* Its items, without brackets, for the store: true if there was one. */
void response_put_items(const struct response_writer *writer, struct json_builder *to);
void response_deinit(struct response_writer *writer);

#endif
