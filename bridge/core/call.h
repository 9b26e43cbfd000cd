/*
 * A call: one request of a client, from its body to the end of its answer.
 *
 * A dialect reads the body, asks the daemon, and answers with the functions here.  It does not know
 * where the answer goes: to an HTTP client, or into the file of a batch (struct call_sink).
 *
 * call_reply(), call_fail(), call_finish() and call_cut() end the call, and so does a client that
 * leaves.  Then clean() is called, once: it removes what the dialect has registered at a link, and
 * frees what is not in the arena.  The call itself and its arena are freed later, behind all
 * handlers of this turn of the loop; until then `over` is set, and the functions that answer do
 * nothing.  Loop thread only.
 */
#ifndef BRIDGE_CORE_CALL_H
#define BRIDGE_CORE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "bridge/core/arena.h"
#include "bridge/core/context.h"
#include "bridge/core/failure.h"
#include "bridge/core/fields.h"
#include "bridge/core/kept.h"
#include "bridge/core/link.h"
#include "bridge/http/server.h"

struct call;

/* Where an answer goes. */
struct call_sink {
        /* A whole answer. */
        void (*reply)(struct call *call, unsigned status, const char *type, const char *body,
                      size_t bytes);
        /* An answer in pieces. */
        void (*begin)(struct call *call, const char *type);
        void (*write)(struct call *call, const char *bytes, size_t count);
        void (*finish)(struct call *call);
        void (*cut)(struct call *call);
        size_t (*queued)(const struct call *call); /* bytes that the client has not taken */
        void (*header)(struct call *call, const char *name, const char *value);
};

struct call {
        struct list_head of_bridge;
        struct bridge *bridge;
        const struct call_sink *sink;
        void *sink_arg; /* of the sink */
        struct link *link;
        uint32_t principal;
        enum http_method method;
        enum dialect dialect;
        const char *route; /* its pattern in the table of routes, for metrics */
        const char *path;
        struct text tail; /* what stands for the last `{}` of the pattern */
        struct text body;
        int body_fd; /* the body, if its route spools it; -1 */
        uint64_t body_fd_bytes;
        struct text model; /* that the request names, for a refusal */
        /* The field that constrains the answer; NULL: none does. */
        const char *constrained_by;
        char request_id[40];
        uint64_t begun_ns;

        struct arena arena;
        struct json_document *json; /* the body, after call_read_json() */
        struct bytes out;           /* for call_event() */

        struct kept_facts facts; /* its ids and time, which a kept stream has again */
        uint64_t ids;            /* that were made of facts.identity */
        uint64_t attach_id;      /* the stream in the daemon that is read again; 0: a new one */
        uint64_t events, skip;   /* events so far, and those that the client has already */

        bool over;           /* it has ended, and will be freed */
        bool streaming;      /* call_stream() was called */
        unsigned status;     /* of the answer, for metrics */
        uint64_t written_ns; /* when the last piece was written */
        const char *ping;    /* written after a silence; NULL: nothing */

        void *own; /* of the dialect, in the arena or freed by clean() */
        void (*clean)(struct call *call);
        void (*drained)(struct call *call); /* the client has taken most of what was written */
        bool background;                    /* of a batch: its runs wait for all others */
        struct link_waiter waiter;
        void (*go)(struct call *call);   /* with a connection */
        void (*next)(struct call *call); /* behind that, for vocabulary.c */
        uint32_t asked_from;             /* the same */
        struct link_ask ask;             /* of call_ask() */
        struct link_stream ask_stream;
        void (*on_answer)(struct call *call, const struct smv_event *reply);
        void *asking; /* of the module that asks, if it is not the dialect */
        /* The request of call_ask() was refused.  NULL: that fails the call. */
        void (*on_refused)(struct call *call, const struct failure *failure);
};

/* Of the HTTP request; NULL: there is none, or the call is of a batch. */
const char *call_query(const struct call *call, const char *name);
const char *call_request_header(const struct call *call, const char *name);

/* The name of its principal; "": that has none. */
const char *call_owner(const struct call *call);

/* The next id of the call: the same for an answer that is written again. */
void call_identifier(struct call *call, const char *prefix, char *to, size_t size);

/*
 * Parses the body into call->json.  False: it was no JSON object, and the call has failed.
 */
bool call_read_json(struct call *call);

/*
 * True: the request was read.  False: memory ran out, or a field is wrong, and the call has failed.
 */
bool call_was_read(struct call *call, const struct fields *fields);

/* Calls go() with a connection, or fails the call. */
void call_with_daemon(struct call *call, void (*go)(struct call *call));

/*
 * A request without streams, which smv_ask_*() has just begun, or failed to with `r`.  Calls
 * on_answer() with the reply if it is ok.  Otherwise it calls on_refused(), or fails the call.  One
 * at a time.
 */
void call_ask(struct call *call, int r, uint32_t request,
              void (*on_answer)(struct call *call, const struct smv_event *reply));
/* There is no model of the name that the request has. */
struct failure call_no_model(const struct call *call);
/* A refusal of the daemon, which does not know how the client calls the model. */
struct failure call_problem(const struct call *call, const struct smv_problem *problem);
/* The code of an END. */
struct failure call_code_failure(const struct call *call, uint32_t code);
/* The failure of a smv_ask_*() that returned `r`. */
struct failure call_ask_failure(const struct call *call, int r);

/* Only before the answer begins. */
void call_header(struct call *call, const char *name, const char *value);
/* These end the call. */
void call_reply(struct call *call, unsigned status, const char *type, const char *body,
                size_t bytes);
void call_reply_json(struct call *call, struct json_builder *built, struct bytes *body);
void call_fail(struct call *call, const struct failure *failure);
void call_no_memory(struct call *call);
/* A disk has refused what the client wants to store: a negative errno. */
void call_not_stored(struct call *call, int r);

/* An answer in pieces: server-sent events, or lines of JSON. */
#define CALL_EVENTS "text/event-stream"
#define CALL_LINES  "application/x-ndjson"
void call_stream(struct call *call, const char *type, const char *ping);
void call_write(struct call *call, const char *bytes, size_t count);
/*
 * Begins the JSON of an event, in call->out; call_event_send() sends it.  name NULL: an event
 * without a name, or a line.  If the client reads too slowly, the call is cut: false.
 */
struct json_builder call_event(struct call *call, const char *name);
bool call_event_send(struct call *call, struct json_builder *built);
void call_finish(struct call *call);
void call_cut(struct call *call);

/* ---- for those that make calls: bridge.c, batches ---- */

struct call *call_new(struct bridge *bridge, const struct call_sink *sink, void *sink_arg);
/* Ends the call without an answer: the client is gone. */
void call_end(struct call *call);
/* Only for the bridge, once it is over. */
struct call *call_free(struct call *call);
/* The sink of HTTP, whose sink_arg is the exchange. */
extern const struct call_sink call_http_sink;
/* Writes pings into the streams that have been silent. */
void call_ping(struct call *call, uint64_t now_ns);

#endif
