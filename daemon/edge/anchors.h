/*
 * Anchors: histories that are asked to stay in the KV pool for a while, or are published.
 *
 * What that is good for, core/prefix.h says: an anchored history is evicted after all else, and
 * what is published others may find; that is all.  The core knows neither handles nor time.  It
 * knows anchors by numbers, of which there are as many as it was made with; here they are dealt
 * out, charged to the user by blocks, and taken back: when their time is over, when the handle
 * closes, when it is asked, or when what was to be read for it was not.
 *
 * An anchor stays where it was put: what is appended to the handle later is not held, and what is
 * truncated still is, until the handle is held anew.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_ANCHORS_H
#define DAEMON_EDGE_ANCHORS_H

#include <stdint.h>

#include "daemon/edge/handles.h"
#include "daemon/edge/loop.h"
#include "daemon/edge/quota.h"
#include "daemon/mailbox.h"

struct anchors_conf {
        struct loop *loop;
        struct quota *quota;
        struct mailbox *to_engine;
        uint32_t max;
};

struct anchors;

int anchors_new(const struct anchors_conf *conf, struct anchors **ret_anchors);
struct anchors *anchors_free(struct anchors *anchors); /* takes NULL; asserts that none is out */

/*
 * From now on this has one, for so long (0: until it is lifted), and its user is charged for the
 * blocks of so many tokens.  It may have one already: the same, then.  0, WIRE_E_REFUSED or
 * -ENOMEM, and it is as it was.
 */
int anchors_take(struct anchors *anchors, struct anchored *anchored, uint32_t uid, uint32_t tokens,
                 uint32_t ms, uint32_t id, struct wire_problem *ret_problem);
/* It is read: its time begins. */
void anchors_begin(struct anchors *anchors, struct anchored *anchored);
/* If it has one, it has none any more. */
void anchors_lift(struct anchors *anchors, struct anchored *anchored);

#endif
