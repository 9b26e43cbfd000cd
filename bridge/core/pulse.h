/*
 * The pulse: what the bridge knows of the daemon without asking, so that /health never waits.
 *
 * It keeps link 0 connected, and asks for `status` each second until the weights are loaded.
 */
#ifndef BRIDGE_CORE_PULSE_H
#define BRIDGE_CORE_PULSE_H

#include <stdbool.h>
#include <stdint.h>

struct bridge;
struct pulse;

struct pulse_state {
        bool connected, loaded;
        double share; /* of the weights that are loaded, 0 to 1 */
};

int pulse_new(struct bridge *bridge, struct pulse **ret_pulse);
struct pulse *pulse_free(struct pulse *pulse); /* takes NULL */
struct pulse_state pulse_state(const struct pulse *pulse);

#endif
