/*
 * Anchors: histories that a client asked to keep in the KV pool for a while (pinned), or published.
 *
 * core/prefix.h says what an anchor does: an anchored history is evicted after all others, and
 * other users may find what is published; that is all.  The core knows neither handles nor time.
 * It knows anchors by numbers, of which it was made with a fixed count.  This module gives the
 * numbers out, charges the user by blocks, and takes them back: when the time is over, when the
 * handle closes, when the client asks, or when the history was to be read and was not.
 *
 * An anchor stays where it was put.  Tokens that are appended to the handle later are not pinned,
 * and tokens that are truncated still are, until the handle is pinned anew.
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
/* Takes NULL; asserts that no anchor is given out. */
struct anchors *anchors_free(struct anchors *anchors);

/*
 * Gives an anchor for `ms` milliseconds (0: until it is lifted), and charges the user for the
 * blocks of `tokens` tokens.  If there is an anchor already, it is used again. 0, WIRE_E_REFUSED or
 * -ENOMEM; then nothing is changed.
 */
int anchors_take(struct anchors *anchors, struct anchored *anchored, uint32_t uid, uint32_t tokens,
                 uint32_t ms, uint32_t id, struct wire_problem *ret_problem);
/* The history has been read: the anchor's time begins. */
void anchors_begin(struct anchors *anchors, struct anchored *anchored);
/* Takes the anchor back, if there is one. */
void anchors_lift(struct anchors *anchors, struct anchored *anchored);

#endif
