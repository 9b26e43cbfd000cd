/*
 * The trail is one short list of places for each thread.  Its strings are compiler constants, so a
 * frame costs three stores, and nothing is formatted until error_trail() is called.  The frames
 * nearest to the origin matter most: once the list is full, later frames are only counted.
 */
#include "base/error.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FRAMES_MAX 12u
#define TEXT_BYTES 768u

struct frame {
        const char *file, *function;
        int line;
};

static _Thread_local struct {
        struct frame frames[FRAMES_MAX];
        uint32_t count; /* frames recorded or counted; may exceed FRAMES_MAX */
        char text[TEXT_BYTES];
} trail;

int error_mark(int r, int born, const char *file, int line, const char *function)
{
        if (r >= 0)
                return r;
        if (born)
                trail.count = 0;
        if (trail.count < FRAMES_MAX)
                trail.frames[trail.count] = (struct frame){ file, function, line };
        if (trail.count < UINT32_MAX)
                trail.count++;
        return r;
}

const char *error_trail(void)
{
        size_t used = 0;

        trail.text[0] = '\0';
        for (uint32_t i = 0; i < trail.count && i < FRAMES_MAX && used < TEXT_BYTES; i++) {
                const struct frame *frame = &trail.frames[i];
                const char *slash = strrchr(frame->file, '/');

                used += (size_t)snprintf(trail.text + used, TEXT_BYTES - used, "%s%s:%d %s",
                                         i ? " < " : "", slash ? slash + 1 : frame->file,
                                         frame->line, frame->function);
        }
        if (trail.count > FRAMES_MAX && used < TEXT_BYTES)
                snprintf(trail.text + used, TEXT_BYTES - used, " < %u more",
                         trail.count - FRAMES_MAX);
        return trail.text;
}
