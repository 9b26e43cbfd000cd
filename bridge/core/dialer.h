/*
 * The dialer connects to the daemon on a worker's thread, because smv_connect() waits: for the
 * daemon's answer, or for a daemon that is about to start.  The loop must never wait for it.
 *
 * dialer_dial() may be called while earlier dials are under way; they are done one after another.
 * `done` is called on the loop thread.  It owns the client then.
 */
#ifndef BRIDGE_CORE_DIALER_H
#define BRIDGE_CORE_DIALER_H

#include <stdbool.h>

#include "bridge/core/worker.h"

struct smv_client;
struct dialer;

struct dial {
        const char *socket;    /* NULL: where the library looks; must stay as long as the dial */
        bool use_fd;           /* instead: fd is connected to a private daemon; only once */
        int fd;                /* the dialer takes it over */
        const char *principal; /* NULL: none */
        /* client NULL: it failed, and `why` says why. */
        void (*done)(struct dial *dial, struct smv_client *client, const char *why);
        /* set by the dialer */
        struct dialer *dialer;
        struct work work;
        struct smv_client *client;
        char why[256];
};

int dialer_new(struct loop *loop, struct dialer **ret_dialer);
void dialer_dial(struct dialer *dialer, struct dial *dial);
/* Waits for the dial that is under way; `done` is not called any more. */
struct dialer *dialer_free(struct dialer *dialer); /* takes NULL */

#endif
