/*
 * Where the answers go: a regular file, which can be continued, or anything else that can be
 * written, such as a pipe.
 *
 * A regular file is locked, has whole lines at any time, and grows only at its end.  Other files
 * are never waited for.  Loop thread only.
 */
#ifndef BRIDGE_OFFLINE_OUTPUT_H
#define BRIDGE_OFFLINE_OUTPUT_H

#include <stdbool.h>

#include "base/loop.h"
#include "bridge/core/arena.h"
#include "bridge/openai/batch-answers.h"

struct output {
        struct batch_answers file; /* fd: of any kind */
        bool regular;
        struct loop *loop;
        struct loop_watch *watch; /* NULL: it is regular, or can be written at any time */
        struct loop_timer *step;  /* set to now when more can be written */
        size_t sent;              /* of the line that is being written */
};

/*
 * path "-": stdout.  On an error, a negative errno, *why says what is wrong, and there is nothing
 * to close.  `resume`: the file may have answers; otherwise it must be empty or missing.
 */
int output_open(struct output *output, const char *path, bool resume, struct loop *loop,
                struct loop_timer *step, char *why, size_t why_bytes);
/* Returns 0, or a negative errno: what was written may not be on the disk. */
int output_close(struct output *output);

/* 1: the line was written; 0: try again when `step` is called, with the same line; or an errno. */
int output_write(struct output *output, struct text line);

#endif
