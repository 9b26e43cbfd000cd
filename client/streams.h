/*
 * A request that begins `count` streams, as request.h does others.  client_streams_begin() reserves
 * memory for them; *ret_id is the first of their consecutive ids.  After an ok reply the streams
 * are alive.  client_stream_keep() makes one resumable.
 */
#ifndef CLIENT_STREAMS_H
#define CLIENT_STREAMS_H

#include "client/state.h"

int client_streams_begin(struct smv_client *client, struct codec_writer *writer, const char *op,
                         uint32_t count, uint32_t *ret_id);
int client_streams_call(struct smv_client *client, struct codec_writer *writer, uint32_t id,
                        uint32_t count, struct codec_frame *ret_frame);
void client_stream_keep(struct client_stream *stream, uint64_t resume_id);

#endif
