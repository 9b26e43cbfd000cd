/*
 * Links: one connection to the daemon for each principal, on the loop.
 *
 * A call waits for its link (link_wait()), asks the daemon with smv_ask_*() on link_client(), and
 * registers what it asked (link_add()).  The link calls back with the reply and the events.  No
 * function here waits.
 *
 * A link that is lost, or that the daemon refused, dials again: at once, then after 100 ms, up to
 * 5 s.  Until then, calls fail at once.  The library ends every request of a lost connection with
 * the code LOST, so each ask still gets its reply or its ENDs.
 */
#ifndef BRIDGE_CORE_LINK_H
#define BRIDGE_CORE_LINK_H

#include <samovar/client.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "bridge/core/failure.h"

struct links;
struct link;

struct bridge_conf;
/* The conf must live as long as the links. */
int links_new(const struct bridge_conf *conf, struct links **ret_links);
struct links *links_free(struct links *links); /* takes NULL; every ask must have been removed */

/*
 * The link of principal `number`, whose name is `principal` (NULL: none).  Made when it is first
 * asked for; it lives as long as the links.  NULL: out of memory.
 */
struct link *links_get(struct links *links, uint32_t number, const char *principal);

/* NULL: there is no connection now. */
struct smv_client *link_client(struct link *link);
/* Why there is none, for people. */
const char *link_why(const struct link *link);
/* Counts the connections so far: another daemon may have another model. */
uint64_t link_generation(const struct link *link);

/* A call that waits for a connection.  `failure` NULL: it is there. */
struct link_waiter {
        struct list_head of_link;
        void (*done)(struct link_waiter *waiter, const struct failure *failure);
};

/* Calls done() at once if there is a connection, or if the next dial is not yet due. */
void link_wait(struct link *link, struct link_waiter *waiter);
void link_forget(struct link_waiter *waiter); /* also if it is not waiting */

/* A request to the daemon, or the streams of one generate. */
struct link_ask {
        struct link *link; /* NULL: it is done, or was not added */
        struct link_stream *streams;
        uint32_t first, count, living;
        bool replied;
        bool keeps; /* link_remove() leaves its stream alive, for others to attach to */
        /*
         * The reply; problem NULL: it is ok.  An ask without streams is done before this is called,
         * and so is one whose streams were refused.
         */
        void (*on_reply)(struct link_ask *ask, const struct smv_event *reply,
                         const struct smv_problem *problem);
        /*
         * An event of stream first + index; NULL: the request has no streams.  After the END of its
         * last stream the ask is done, before this is called.
         */
        void (*on_event)(struct link_ask *ask, uint32_t index, const struct smv_event *event);
};

struct link_stream {
        struct list_head of_link;
        struct link_ask *ask;
        uint32_t id;
};

/* `streams` has space for `count`; it must live as long as the ask. */
void link_add(struct link *link, struct link_ask *ask, struct link_stream *streams, uint32_t first,
              uint32_t count);
/*
 * No more calls.  Streams that live are cancelled, or detached if the ask keeps them.  Takes an ask
 * that is done.
 */
void link_remove(struct link_ask *ask);

/* Sends what was asked in this turn of the loop; every user of smv_ask_*() calls it. */
void link_flush(struct link *link);

#endif
