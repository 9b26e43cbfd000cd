/*
 * How many lines are in flight: as many as the daemon runs at a time, and some that wait there, so
 * that no slot is ever idle.
 *
 * The pace asks the daemon for its status again and again.  If it says how many sequences it runs
 * at most, that is the number of slots; otherwise it is the number that run now, so the pace grows
 * until more do not run at once.  When the daemon refuses a line for lack of space, no more are in
 * flight than it took, and the limit rises again slowly.  Loop thread only.
 */
#ifndef BRIDGE_OFFLINE_PACE_H
#define BRIDGE_OFFLINE_PACE_H

#include <stdint.h>

#include "bridge/core/bridge.h"

struct pace {
        struct link *link;
        struct loop_timer *beat;
        struct loop_timer *step; /* set to now when more lines may begin */
        struct link_ask ask;
        struct link_stream stream;
        uint32_t fixed;   /* 0: none was asked for */
        uint32_t wanted;  /* slots and those that wait for them */
        uint32_t ceiling; /* what the daemon took when it had refused one */
};

/* `fixed` 0: as many as the daemon takes. */
int pace_init(struct pace *pace, struct bridge *bridge, uint32_t fixed, struct loop_timer *step);
void pace_deinit(struct pace *pace);

/* Lines that may be in flight now. */
uint32_t pace_limit(const struct pace *pace);
/* The daemon has refused a line, and has so many others. */
void pace_refused(struct pace *pace, uint32_t in_flight);
/* There is a daemon, which may take more than the one before: it is asked at once. */
void pace_connected(struct pace *pace);

#endif
