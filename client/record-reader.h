/*
 * Converts records, as they lie in a ring or a frame, to events.  Each size is checked
 * against the bytes that are there, and no byte is read twice.
 */
#ifndef CLIENT_RECORD_READER_H
#define CLIENT_RECORD_READER_H

#include <samovar/ring.h>

#include "json/bytes.h"
#include <stdbool.h>

#include "client/public.h"

struct record {
        struct smv_record head; /* in the byte order of this machine */
        const char *payload;
        size_t payload_bytes;
        size_t step; /* bytes to the next record, or to the end */
};

/* The record at the front of `count` bytes: 0 or -EPROTO. */
int record_read(const char *bytes, size_t count, struct record *ret_record);

/* Reads the payload of a record.  `tokens` gets the ids, aligned.  0, -EPROTO or -ENOMEM. */
int record_tokens(const struct record *record, struct bytes *tokens, struct smv_event *ret_event);
/*
 * `logprobs` gets an array of struct smv_logprob: for each token its own, then those of the
 * likeliest tokens.  0, -EPROTO or -ENOMEM.
 */
int record_logprobs(const struct record *record, struct bytes *logprobs, size_t *ret_top_count);
/* The same for tokens of the prompt, as an event of its own. */
/* ROW: fills *ret_row but for its logits; `entries` get what it points at. */
int record_row(const struct record *record, struct bytes *entries, struct smv_row *ret_row,
               bool *ret_is_whole);
int record_ask(const struct record *record, struct smv_event *ret_event);
int record_prompt_logprobs(const struct record *record, struct bytes *logprobs,
                           struct bytes *tokens, struct smv_event *ret_event);
/* `parts` gets an array of struct smv_part.  0, -EPROTO or -ENOMEM. */
int record_parts(const struct record *record, struct bytes *parts);
int record_progress(const struct record *record, struct smv_event *ret_event);
int record_end(const struct record *record, struct smv_event *ret_event);

#endif
