/*
 * Answers: the head of an answer, and what is queued behind it.  http_reply(), http_stream() and
 * their kin are here, and the answers with which the server refuses.
 */
#ifndef BRIDGE_HTTP_ANSWER_H
#define BRIDGE_HTTP_ANSWER_H

#include "bridge/http/context.h"

/*
 * Queues an answer that refuses the present request, and counts it.  If `ends`, the connection ends
 * behind it; else only if the request has a body, which is not read.  An exchange that the program
 * knows must have been taken from it before.
 */
void http_answer_refuse(struct http_connection *connection, const struct http_problem *problem,
                        bool ends);
/* Queues the answer to an OPTIONS, which the policy has let pass. */
void http_answer_options(struct http_connection *connection);
/* Queues "100 Continue". */
void http_answer_continue(struct http_connection *connection);
/* A whole refusal with 503, for a client that finds no place for a connection. */
size_t http_answer_busy(char *to, size_t bytes);

/* Makes the id of a request. */
void http_exchange_name(struct http_server *server, char id[HTTP_ID_BYTES]);

/* Frees the exchange with all that it holds; the connection has none then. */
void http_exchange_free(struct http_connection *connection);

#endif
