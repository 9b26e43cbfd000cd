/*
 * A request that begins `count` streams, as request.h does others.  client_streams_begin() reserves
 * memory for them, and sets `take`; their ids follow that of the request.  After an ok reply the
 * streams are alive.
 */
#ifndef CLIENT_STREAMS_H
#define CLIENT_STREAMS_H

#include "client/request.h"

int client_streams_begin(struct smv_client *client, struct client_request *request, const char *op,
                         uint32_t count);

/* client_take_fn: the streams have begun. */
int client_take_streams(struct smv_client *client, const struct client_pending *pending,
                        const struct codec_frame *frame, struct smv_event *ret_answer);
/* After it: the first of the streams outlives the connection. */
void client_stream_keep(struct smv_client *client, struct smv_event *answer, uint64_t resume_id);

#endif
