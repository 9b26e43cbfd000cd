/*
 * Pins: histories that a client asked to keep in the KV pool for a while, or published.
 *
 * core/prefix.h says what a pin does: a pinned history is evicted after all others, and other users
 * may find what is published; that is all.  The core knows neither handles nor time.  It knows pins
 * by numbers, of which it was made with a fixed count.  This module gives the numbers out, charges
 * the user by blocks, and takes them back: when the time is over, when the handle closes, when the
 * client asks, or when the history was to be read and was not.
 *
 * A pin stays where it was put.  Tokens that are appended to the handle later are not pinned, and
 * tokens that are truncated still are, until the handle is pinned anew.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_PINS_H
#define DAEMON_EDGE_PINS_H

#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "daemon/edge/quota.h"
#include "daemon/ipc/mailbox.h"

/* A pin of a handle. */
struct pin {
        uint32_t number; /* 0: there is none */
        uint32_t blocks, ms;
        uint64_t uid;
        uint64_t until_ns;
        struct list_head link;
};

struct pins_conf {
        struct loop *loop;
        struct quota *quota;
        struct mailbox *to_engine;
        uint32_t max;
};

struct pins;

int pins_new(const struct pins_conf *conf, struct pins **ret_pins);
/* Takes NULL; asserts that no pin is given out. */
struct pins *pins_free(struct pins *pins);

/*
 * Gives a pin for `ms` milliseconds (0: until it is removed), and charges the user for the blocks
 * of `tokens` tokens.  If there is a pin already, it is used again.  0, WIRE_E_REFUSED or -ENOMEM;
 * then nothing is changed.
 */
int pins_take(struct pins *pins, struct pin *pin, uint64_t uid, uint32_t tokens, uint32_t ms,
              uint32_t id, struct wire_problem *ret_problem);
/* The history has been read: the pin's time begins. */
void pins_begin(struct pins *pins, struct pin *pin);
/* Takes the pin back, if there is one. */
void pins_remove(struct pins *pins, struct pin *pin);

#endif
