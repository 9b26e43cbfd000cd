/*
 * Reads the answers of servers that speak the API of OpenAI: events (SSE), each with a chunk of
 * JSON.  The bytes may be hostile, and cut anywhere.
 */
#ifndef CLI_BENCH_ANSWER_READER_H
#define CLI_BENCH_ANSWER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/bytes.h"

#define EVENT_BYTES_MAX (16u << 20)

struct event_reader {
        struct bytes line, data;
};

/*
 * Calls on_data() for the data of each event that is complete.  0; -ENOMEM; -E2BIG; or what
 * on_data() returns if that is not 0.
 */
int event_reader_take(struct event_reader *reader, const char *bytes, size_t count,
                      int (*on_data)(void *arg, const char *data, size_t count), void *arg);
void event_reader_deinit(struct event_reader *reader);

struct answer_chunk {
        bool choices;  /* it is of this API */
        bool done;     /* "[DONE]" */
        bool text;     /* it has text, reasoning, or a piece of a call */
        bool finished; /* it says why the answer ends */
        bool has_usage;
        uint32_t input, output, cached; /* of the usage */
        char error[32], why[200];       /* on one line; "": none */
};

/* Reads the data of one event.  A chunk with nothing but text is not parsed: that is cheap. */
void answer_chunk_read(const char *data, size_t bytes, struct answer_chunk *ret_chunk);

/* Reads the body of a refusal: the code and the words. */
void answer_refusal_read(const char *body, size_t bytes, struct answer_chunk *ret_chunk);

#endif
