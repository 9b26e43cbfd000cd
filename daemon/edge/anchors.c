#include "daemon/edge/anchors.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/core/kvpool.h"
#include "daemon/edge/admit.h"
#include "daemon/error.h"
#include "daemon/sys.h"

struct anchors {
        struct anchors_conf conf;
        struct loop_timer *timer;
        struct anchored *first; /* of the list of anchors that are given out */
        uint32_t free_count;
        uint32_t free_numbers[]; /* a stack */
};

static void lift_late(void *arg);

int anchors_new(const struct anchors_conf *conf, struct anchors **ret_anchors)
{
        struct anchors *anchors = calloc(1, sizeof(*anchors) + conf->max * sizeof(uint32_t));
        int r;

        if (!anchors)
                return error_raise(-ENOMEM);
        anchors->conf = *conf;
        anchors->free_count = conf->max;
        for (uint32_t i = 0; i < conf->max; i++)
                anchors->free_numbers[i] = conf->max - i;
        r = loop_timer_new(conf->loop, lift_late, anchors, &anchors->timer);
        if (r) {
                free(anchors);
                return error_pass(r);
        }
        *ret_anchors = anchors;
        return 0;
}

struct anchors *anchors_free(struct anchors *anchors)
{
        if (!anchors)
                return NULL;
        assert(!anchors->first && anchors->free_count == anchors->conf.max);
        loop_timer_free(anchors->timer);
        free(anchors);
        return NULL;
}

/* ---- time ---- */

/* There are few anchors, so all are searched for the one that ends first. */
static void set_timer(struct anchors *anchors)
{
        uint64_t now_ns = sys_clock_ns(), next_ns = UINT64_MAX;

        for (const struct anchored *at = anchors->first; at; at = at->next)
                if (at->until_ns < next_ns)
                        next_ns = at->until_ns;
        if (next_ns == UINT64_MAX)
                loop_timer_clear(anchors->timer);
        else
                loop_timer_set(anchors->timer, next_ns > now_ns ? next_ns - now_ns : 0);
}

static void lift_late(void *arg)
{
        struct anchors *anchors = arg;
        struct anchored *next;

        for (struct anchored *at = anchors->first; at; at = next) {
                next = at->next;
                if (at->until_ns <= sys_clock_ns())
                        anchors_lift(anchors, at);
        }
        set_timer(anchors);
}

void anchors_begin(struct anchors *anchors, struct anchored *anchored)
{
        assert(anchored->number);
        if (!anchored->ms)
                return;
        anchored->until_ns = sys_clock_ns() + anchored->ms * UINT64_C(1000000);
        set_timer(anchors);
}

/* ---- to give out and take back ---- */

static int charge(struct anchors *anchors, struct anchored *anchored, uint32_t uid, uint32_t blocks,
                  uint32_t id, struct wire_problem *ret_problem)
{
        uint32_t before = anchored->blocks;
        int r = 0;

        if (blocks > before)
                r = admit_charge(anchors->conf.quota, uid, QUOTA_HELD_BLOCKS, blocks - before, id,
                                 ret_problem);
        else
                quota_uncharge(anchors->conf.quota, uid, QUOTA_HELD_BLOCKS, before - blocks);
        if (!r)
                anchored->blocks = blocks;
        return error_pass(r);
}

int anchors_take(struct anchors *anchors, struct anchored *anchored, uint32_t uid, uint32_t tokens,
                 uint32_t ms, uint32_t id, struct wire_problem *ret_problem)
{
        int r;

        if (!anchored->number && !anchors->free_count)
                return wire_refuse(ret_problem, SMV_BUSY, id, NULL,
                                   "the daemon holds %u histories, and no more at once",
                                   anchors->conf.max);
        r = charge(anchors, anchored, uid, blocks_for(tokens), id, ret_problem);
        if (r)
                return error_pass(r);
        anchored->ms = ms;
        anchored->until_ns = UINT64_MAX; /* the time begins when the history has been read */
        if (anchored->number)
                return 0;
        anchored->uid = uid;
        anchored->number = anchors->free_numbers[--anchors->free_count];
        anchored->prev = NULL;
        anchored->next = anchors->first;
        if (anchors->first)
                anchors->first->prev = anchored;
        anchors->first = anchored;
        return 0;
}

void anchors_lift(struct anchors *anchors, struct anchored *anchored)
{
        if (!anchored->number)
                return;
        if (anchored->prev)
                anchored->prev->next = anchored->next;
        else
                anchors->first = anchored->next;
        if (anchored->next)
                anchored->next->prev = anchored->prev;
        quota_uncharge(anchors->conf.quota, anchored->uid, QUOTA_HELD_BLOCKS, anchored->blocks);
        mailbox_post(anchors->conf.to_engine,
                     &(struct mail){ .kind = MAIL_LIFT, .number = anchored->number });
        anchors->free_numbers[anchors->free_count++] = anchored->number;
        *anchored = (struct anchored){ 0 };
}
