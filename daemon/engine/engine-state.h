/*
 * What the engine keeps, for its parts: engine.c turns, engine-mail.c takes what comes from the
 * loop.  Nobody else includes this.  Engine thread only.
 */
#ifndef DAEMON_ENGINE_ENGINE_STATE_H
#define DAEMON_ENGINE_ENGINE_STATE_H

#include <pthread.h>

#include "daemon/channel.h"
#include "daemon/engine/batch.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/publish.h"

#define DEPTH_MAX 2
#define BOARD_NS  10000000u /* between two writings, at least: each is a walk over all slots */

struct engine {
        struct engine_conf conf;
        struct sched *sched;
        struct publish *publish;
        struct plan plan;
        struct batch batches[DEPTH_MAX]; /* by plan number */
        uint64_t launched, collected;    /* numbers of the last plans that were */
        uint32_t *tokens;                /* picks of one plan */
        struct request **requests;       /* by number; NULL: none alive */
        struct channel **active;         /* channels with requests alive */
        struct channel **gone;           /* to be let go after the next flush */
        struct plan_end *ends;           /* decided and not said, oldest first */
        struct sched_user *users;        /* for the board */
        uint64_t board_ns;               /* when that was written last */
        uint32_t active_count, gone_count, end_count;
        int failed;
        enum smv_code failed_code; /* of every END from then on */
        bool stopped;
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

/* RETIRED, to the loop, who is called at the next flush, so that it comes to look. */
void engine_post_retired(struct engine *engine, struct request *request);

/* Ends every request that is alive, or those of one channel. */
void engine_cancel_all(struct engine *engine, const struct channel *channel, enum smv_reason reason,
                       enum smv_code code);

/*
 * The weights cannot be read, or the backend is lost, which says why itself.  The order is kept:
 * everything ends through the scheduler as it always does, but no plan will have rows any more.
 */
void engine_fail(struct engine *engine, int r);

/* All that is there; where there is nothing, it waits until then. */
void engine_take_mail(struct engine *engine, uint64_t deadline_ns);

#endif
