/*
 * The engine: the thread that takes mail, computes steps and publishes results.
 *
 * First it loads the weights.  Meanwhile it only takes mail: new requests wait in line, cancel and
 * hangup take effect at once, and STOP ends the loading.  Then it repeats this turn:
 *
 *      take mail and note it -> tell the scheduler the free bytes of the rings -> sched_next
 *      -> write the plan's ENDs into rings, post RETIRED to the loop, then make all records
 *      visible and wake readers -> model_forward -> collect the oldest plan if `depth` plans
 *      are in flight, or if this plan had no rows -> write tokens into rings (of requests that
 *      are not ENDING), note results -> again
 *
 * While there is nothing to run, it first backs the memory of the KV pool, part after part.  Then
 * it sleeps when there is nothing to run and nothing in flight.  If the plan has stalled requests,
 * or an END waits for free space, it first declares a stall.  The readers of all channels that have
 * requests are told.
 *
 * It owns the scheduler, the KV pool, the model, and the writing half of every ring.  After loading
 * it allocates nothing and takes no lock.  It blocks only while its mailbox is empty, and in the
 * model.
 *
 * An END is written when the scheduler has released the request.  RETIRED is posted directly to the
 * loop before that END is visible.  So when a client has read an END and sends its next request,
 * the loop already knows that blocks, slot, id and charges are free.  An END that does not fit in
 * its ring (publish.h says when) is written later, and RETIRED is posted with it.
 *
 * If the weights cannot be read or the backend is lost, the engine stops computing but keeps the
 * protocol.  Every request gets END(error, internal) or END(error, backend).  FAILED is posted with
 * the reason.  The engine then takes mail until STOP; a SUBMIT gets the same END.  A reader whose
 * head is impossible is treated as hung up.
 */
#ifndef DAEMON_ENGINE_ENGINE_H
#define DAEMON_ENGINE_ENGINE_H

#include "daemon/ipc/usage-snapshot.h"
#include "daemon/core/sched.h"
#include "daemon/engine/loading.h"
#include "daemon/ipc/mailbox.h"
#include "daemon/model/served.h"
#include "daemon/ipc/stats.h"

struct engine;
struct model;
struct waker;

struct engine_conf {
        struct sched_conf sched;
        struct served *served;
        struct loading_conf loading;
        uint32_t draft_pool;       /* tokens of answers that are kept for drafts, for each user */
        struct model *draft_model; /* opened by draft_model_sizes(); or NULL */
        uint32_t draft_context, draft_vocab; /* its positions and tokens */
        bool always_draft;                   /* guesses have rows even where these do not pay */
        bool leave_pool;       /* the system provides the memory of the pool when steps need it */
        struct mailbox *inbox; /* from the loop */
        /* the waker that reads the mailbox `waker`; NULL: every WAKE is posted */
        struct waker *wake_inline;
        struct mailbox *waker; /* WAKE, CHANNEL_GONE, FAILED, STOPPED */
        /* RETIRED; the loop reads it when it is called or when it has a reason to look */
        struct mailbox *loop;
        struct stats *stats;
        struct usage_snapshot *usage_snapshot; /* written by the engine */
        uint64_t (*clock_ns)(void);
};

int engine_start(const struct engine_conf *conf, struct engine **ret_engine);
/* After MAIL_STOP: waits for the thread.  Takes NULL. */
struct engine *engine_join(struct engine *engine);

#endif
