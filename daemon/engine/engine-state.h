/*
 * The engine's state, shared by its parts: engine-thread.c runs the turns, engine-results.c handles
 * what the model has computed, and engine-mail.c mail from the loop.  No other file includes this.
 * Engine thread only.
 */
#ifndef DAEMON_ENGINE_ENGINE_STATE_H
#define DAEMON_ENGINE_ENGINE_STATE_H

#include <pthread.h>

#include "daemon/ipc/channel.h"
#include "daemon/engine/batch.h"
#include "daemon/engine/draft-model.h"
#include "daemon/engine/drafts.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/masks.h"
#include "daemon/engine/publish.h"
#include "daemon/engine/questions.h"
#include "daemon/engine/timings.h"

#define DEPTH_MAX 2
/* least time between two writings of the usage snapshot: each walks over all slots */
#define USAGE_SNAPSHOT_NS 10000000u

struct engine {
        struct engine_conf conf;
        struct sched *sched;
        struct publish *publish;
        struct masks *masks;
        struct questions *questions;
        struct drafts *drafts;
        struct draft_model *draft_model; /* or NULL */
        struct plan plan;
        struct batch batches[DEPTH_MAX]; /* by plan number */
        /* numbers of the last plan that was launched or collected */
        uint64_t launched, collected;
        uint64_t step_ns;          /* how long the engine waited for the last step */
        uint64_t drawn_ns;         /* when the first token since the last flush was drawn ... */
        uint32_t drawn_count;      /* ... and how many were */
        uint64_t busy_from_ns;     /* while steps are in flight: busy_ns is counted up to here */
        uint32_t *tokens;          /* picks of one plan */
        struct request **requests; /* by number; NULL: no live request */
        struct channel **active;   /* channels with live requests */
        struct channel **gone;     /* channels to be released after the next flush */
        /* ENDs decided by the scheduler and not yet written, oldest first */
        struct plan_end *ends;
        struct sched_user *users;   /* for the usage snapshot */
        uint64_t usage_snapshot_ns; /* when the usage snapshot was last written */
        uint32_t active_count, gone_count, end_count;
        struct pool_map *pool_map; /* to be filled; NULL: none */
        int failed;
        enum smv_code failed_code; /* code of every END after the failure */
        bool stopped;
        bool pool_is_backed; /* or shall not be */
        pthread_t thread;
};

static inline uint64_t engine_now(const struct engine *engine)
{
        return engine->conf.clock_ns();
}

static inline void engine_note(struct engine *engine, const struct sched_event *event)
{
        sched_note(engine->sched, event, engine_now(engine));
}

static inline void engine_post(struct engine *engine, enum mail_kind kind, void *what, int result)
{
        mailbox_post(engine->conf.waker,
                     &(struct mail){ .kind = kind, .what = what, .result = result });
}

static inline struct batch *engine_batch(struct engine *engine, uint64_t plan)
{
        return &engine->batches[plan % engine->conf.sched.depth];
}

/* A token is to be written, unless none is generated.  Its delivery ends with the next flush. */
static inline void engine_note_token(struct engine *engine, struct request *request,
                                     uint64_t now_ns)
{
        timings_token(engine->conf.stats, request, now_ns);
        if (!request->max_tokens)
                return;
        if (!engine->drawn_count++)
                engine->drawn_ns = now_ns;
}

/* Waits for the oldest plan in flight, and handles its results. */
void engine_collect(struct engine *engine);

/* Takes the masks and the answers of clients that have come. */
void engine_hear(struct engine *engine);

/*
 * Posts RETIRED to the loop.  The waker calls the loop after the next flush, so that it takes the
 * mail.
 */
void engine_post_retired(struct engine *engine, struct request *request);

/* Ends a request.  No effect if it is ending already. */
void engine_cancel(struct engine *engine, struct request *request, enum smv_reason reason,
                   enum smv_code code);

/* Ends every live request, or only those of one channel. */
void engine_cancel_all(struct engine *engine, const struct channel *channel, enum smv_reason reason,
                       enum smv_code code);

/*
 * Called when the weights cannot be read or when the backend is lost; the backend itself says why.
 * Nothing else changes: all requests end through the scheduler as always, but no later plan has
 * rows.
 */
void engine_fail(struct engine *engine, int r);

/*
 * The draw of the token at `position` waits for its masks: that of the guide, which was asked for,
 * and that of the client, which this asks.
 */
void engine_await_masks(struct engine *engine, struct request *request, uint32_t position);

/* Takes all mails; if there are none, waits for one until the deadline. */
void engine_take_mail(struct engine *engine, uint64_t deadline_ns);

#endif
