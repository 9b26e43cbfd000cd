/*
 * The input of a batch, as a regular file.  What can be read only once, such as stdin or a pipe, is
 * first copied into a file without a name, because its lines are read twice.  Loop thread only.
 */
#ifndef BRIDGE_OFFLINE_INPUT_H
#define BRIDGE_OFFLINE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct input {
        int fd; /* the regular file */
        uint64_t bytes;
        bool ready;               /* fd has all of it */
        int from;                 /* what is copied; -1: nothing */
        struct loop_watch *watch; /* on it; NULL: reading it never waits */
        struct loop_timer *step;  /* set to now when more can be read */
};

/*
 * path "-": stdin.  `folder` is for the copy.  On an error, a negative errno, *why says what is
 * wrong, and there is nothing to close.
 */
int input_open(struct input *input, const char *path, const char *folder, struct loop *loop,
               struct loop_timer *step, char *why, size_t why_bytes);
void input_close(struct input *input);
/* Copies some of it, if it is not ready.  0, or a negative errno. */
int input_step(struct input *input);

#endif
