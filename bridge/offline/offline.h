/*
 * A batch without HTTP: the lines of a file, and their answers in a file, in the same order.
 *
 * Lines, calls and answers are those of the batches of HTTP (bridge/openai).  All lines are checked
 * first.  Then as many run as the daemon takes (pace.h), of background class.  A line that finds no
 * place, or whose daemon goes away, is asked again.  The output has whole answers of the first
 * lines at any time, so that a batch that ended anywhere can go on.
 *
 * Loop thread only; no step takes longer than reading some lines.
 */
#ifndef BRIDGE_OFFLINE_OFFLINE_H
#define BRIDGE_OFFLINE_OFFLINE_H

#include "bridge/core/bridge.h"

struct offline_conf {
        const char *input, *output; /* "-": stdin, stdout */
        bool resume;                /* the output may have answers */
        uint32_t parallel;          /* lines in flight; 0: as many as the daemon takes */
};

/* The exit statuses of the command `samovar`. */
enum offline_exit {
        OFFLINE_GOOD = 0,
        OFFLINE_FAILED = 1,  /* a line failed, or the batch did */
        OFFLINE_REFUSED = 2, /* the input or the output was refused, and nothing was asked */
        OFFLINE_NO_DAEMON = 3,
        OFFLINE_INTERRUPTED = 130,
};

/* Runs the loop until the batch ends; says on stderr how it went.  Returns an exit status. */
int offline_run(struct bridge *bridge, const struct offline_conf *conf);

#endif
