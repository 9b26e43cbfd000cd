/*
 * Requests and their replies.
 *
 * client_request_begin() begins a request, the codec's puts fill it, and client_request_call()
 * sends it and waits for the reply.
 */
#ifndef CLIENT_REQUEST_H
#define CLIENT_REQUEST_H

#include "client/state.h"

void client_request_begin(struct smv_client *client, struct codec_writer *writer, const char *op,
                          uint32_t *ret_id);

/*
 * 0: *ret_frame is the reply, which is ok.  -EREMOTEIO: the daemon refused.  Or another error.  If
 * no reply comes in time, the connection is given up: -ETIMEDOUT.
 */
int client_request_call(struct smv_client *client, struct codec_writer *writer, uint32_t id,
                        struct codec_frame *ret_frame);

/*
 * The second half of it, for a request that client_request_send() has sent.  After -ETIMEDOUT the
 * caller calls client_timed_out().
 */
int client_request_await(struct smv_client *client, uint32_t id, uint64_t deadline,
                         struct codec_frame *ret_frame);

/* Sends the request and waits for nothing.  Unless it is awaited, its reply is skipped. */
int client_request_send(struct smv_client *client, struct codec_writer *writer);

/* Records that an ok reply lacks a field that it must have.  `error` is the codec's error. */
int client_bad_reply(struct smv_client *client, int error, const char *field);

#endif
