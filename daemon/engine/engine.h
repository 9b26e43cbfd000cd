/*
 * The engine: the thread that takes, steps, runs and publishes.
 *
 * First it has the weights read, and only takes mail meanwhile: who asks waits in line, who cancels
 * or hangs up is gone at once, and STOP ends the reading.  Then:
 *
 *      take mail and note it -> tell the rooms -> sched_next -> its ENDs into
 *      rings, RETIRED to the loop, then make all visible and wake -> model_forward ->
 *      collect the oldest plan if `depth` are in flight, or if this one had no
 *      rows -> tokens into rings (of requests that are not ENDING), results
 *      noted -> again.  It sleeps when nothing is to run and nothing in flight,
 *      after declaring a stall to the readers of all channels that have
 *      requests, if the plan says that some are stalled.
 *
 * It owns the scheduler, the pool, the model and the writing half of every
 * ring.  It allocates nothing after the weights are there, takes no lock and waits for
 * nobody but an empty mailbox.
 *
 * An END is said when the scheduler has let its request go, and RETIRED is posted,
 * to the loop itself, before that END can be seen.  So a client that has read an
 * END, and asks for something, is answered by a loop that knows: blocks, slot, id
 * and charges are free.  An END that finds no room in its ring (publish.h says when)
 * is said later, and RETIRED with it.
 *
 * Weights that cannot be read, or a backend that is lost, end the engine, not the order: every request gets its
 * END(error, internal), or END(error, backend), FAILED goes up and says why, and it goes on taking mail (a SUBMIT
 * gets the same END) until STOP.  A reader whose head is impossible is treated
 * as hung up.
 */
#ifndef DAEMON_ENGINE_ENGINE_H
#define DAEMON_ENGINE_ENGINE_H

#include "daemon/board.h"
#include "daemon/core/sched.h"
#include "daemon/engine/loading.h"
#include "daemon/mailbox.h"
#include "daemon/served.h"
#include "daemon/stats.h"

struct engine;
struct waker;

struct engine_conf {
        struct sched_conf sched;
        struct served *served;
        struct loading_conf loading;
        struct mailbox *inbox;  /* from the loop */
        struct waker *stand_in; /* of whom the mailbox is; NULL: every WAKE is posted */
        struct mailbox *waker;  /* WAKE, CHANNEL_GONE, FAILED, STOPPED */
        struct mailbox *loop;   /* RETIRED; the loop looks there when it is called, or asked */
        struct stats *stats;
        struct board *board; /* the engine writes it */
        uint64_t (*clock_ns)(void);
};

int engine_start(const struct engine_conf *conf, struct engine **ret_engine);
/* After MAIL_STOP: waits for the thread.  Takes NULL. */
struct engine *engine_join(struct engine *engine);

#endif
