/*
 * The structs that the modules of the server share: the server, a connection, an exchange.
 *
 * A connection is in one state, and has at most one exchange.  Only connection.c changes the state
 * and only it frees a connection, at the end of a turn: modules that have news for a connection
 * mark it (http_mark()).  So a handler may use a connection until it returns.
 */
#ifndef BRIDGE_HTTP_CONTEXT_H
#define BRIDGE_HTTP_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "bridge/http/conf.h"
#include "bridge/http/http-exchange.h"
#include "bridge/http/reader.h"
#include "json/bytes.h"

#define HTTP_ID_BYTES 37u

struct http_server {
        struct http_conf conf;
        struct http_handlers handlers;
        struct loop *loop;
        struct loop_task *settle; /* posted while a connection is marked */
        struct list_head connections;
        struct list_head marked, settling; /* before and in http_connection_settle_all() */
        struct list_head idle; /* those between requests; the first one for the longest time */
        struct list_head listeners;
        struct http_policy *policy;
        struct http_counts counts;
        uint32_t places_taken;        /* of connections_max */
        uint64_t id_key[2], id_count; /* of request ids */
        uint64_t date_s;
        char date[32]; /* the header Date of that second */
        bool stopped;
        char input[16384]; /* what was just received */
};

enum http_connection_state {
        HTTP_IDLE,    /* no byte of a request has come */
        HTTP_HEAD_IN, /* the request line and the headers are coming */
        HTTP_BODY_IN,
        HTTP_RUNNING,   /* the program has the request, or its answer is being sent */
        HTTP_LINGERING, /* all is sent; what comes is dropped until the client closes */
};

struct http_connection {
        struct http_server *server;
        struct list_head link, marked, idle;
        struct loop_watch *watch;
        struct loop_timer *timer;
        int fd;
        enum http_connection_state state;
        uint64_t since_ns; /* begin of the state, or the last progress of sending */
        uint64_t due_ns;   /* when the timer fires; 0: it is not set */
        struct http_reader reader;
        struct bytes ahead; /* received behind the end of the present request */
        struct bytes out;   /* to be sent; out_sent bytes of it are */
        size_t out_sent;
        struct http_exchange *exchange;
        bool is_unix;
        bool user_known, user_admitted; /* of the policy: asked once for each connection */
        bool closes;                    /* behind what is queued */
        bool dead;                      /* the socket is of no use any more */
        bool has_place;                 /* is one of connections_max; a lingering one is not */
        bool blocked;                   /* the kernel took nothing more of `out` */
};

struct http_exchange {
        struct http_connection *connection;
        void *own;
        char id[HTTP_ID_BYTES];
        uint32_t principal;
        bool seen;      /* by on_headers() */
        bool answered;  /* the head of the answer is queued */
        bool chunked;   /* the stream is sent in chunks */
        bool silent;    /* the answer has no body, as that to HEAD */
        bool finished;  /* the program does not use it any more */
        bool undrained; /* owes on_drained() */
        bool spools;
        struct bytes headers; /* of the answer */
        struct bytes body;
        int body_fd;
        uint64_t body_fd_bytes;
};

/* This connection is looked at when the turn ends. */
static inline void http_mark(struct http_connection *connection)
{
        if (!list_is_empty(&connection->marked))
                return;
        list_push_back(&connection->server->marked, &connection->marked);
        loop_task_post(connection->server->settle);
}

static inline size_t http_queue_bytes(const struct http_connection *connection)
{
        return connection->out.count - connection->out_sent;
}

#endif
