/*
 * Requests and their replies.
 *
 * client_request_begin() begins a request, and the codec's puts fill it.  Then it is sent in one of
 * two ways, which share both the puts and `take`, the function that takes the reply:
 *
 *      client_request_wait()   waits for the reply, and returns it as the event that it would be
 *      client_request_ask()    returns at once; smv_next() returns the reply as an event
 */
#ifndef CLIENT_REQUEST_H
#define CLIENT_REQUEST_H

#include "client/state.h"

struct client_request {
        struct codec_writer writer;
        struct client_pending pending; /* the caller sets `take` and what that needs */
};

void client_request_begin(struct smv_client *client, struct client_request *request,
                          const char *op);

/*
 * 0: the reply is ok, and *ret_answer, which may be NULL, has what it says.
 * -EREMOTEIO: the daemon refused.  Or another error.  If no reply comes in time, the connection is
 * given up: -ETIMEDOUT.
 */
int client_request_wait(struct smv_client *client, struct client_request *request,
                        struct smv_event *ret_answer);

/* 0: the request is sent, or waits to be sent.  *ret_id: its id. */
int client_request_ask(struct smv_client *client, struct client_request *request, uint32_t *ret_id);

/* Sends the request and waits for nothing.  Unless it is awaited, its reply is skipped. */
int client_request_send(struct smv_client *client, struct client_request *request);

/*
 * Waits for the reply to a request that client_request_send() has sent.  0: *ret_frame is the
 * reply, which is ok.  After -ETIMEDOUT the caller calls client_timed_out().
 */
int client_request_await(struct smv_client *client, uint32_t id, uint64_t deadline,
                         struct codec_frame *ret_frame);

/*
 * Makes the event of a reply, and forgets the request.  An event has a code other than SMV_OK if
 * the daemon refused the request, or if its reply cannot be taken.  0, or -ENOMEM: nothing has
 * changed.
 */
int client_request_finish(struct smv_client *client, struct client_pending *pending,
                          const struct codec_frame *frame, struct smv_event *ret_event);

/* Records that an ok reply lacks a field that it must have.  `error` is the codec's error. */
int client_bad_reply(struct smv_client *client, int error, const char *field);

#endif
