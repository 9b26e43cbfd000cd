/* The state of the view: how the streams are sorted, which is selected, which messages it shows. */
#ifndef CLI_TOP_VIEW_STATE_H
#define CLI_TOP_VIEW_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/top/snapshot.h"

#define VIEW_HISTORY 256u

struct view {
        const struct snapshot *snapshot; /* its status is NULL before the first answer */
        enum top_sort sort;
        bool reversed;
        bool help;
        bool paused;
        bool unicode;      /* the terminal shows characters beyond ASCII */
        uint64_t selected; /* number of a stream; 0: none */
        size_t first;      /* the row at the top */
        size_t page;       /* rows that the last frame had */
        uint64_t ending;   /* the stream that may be ended: a question is shown; 0: none */
        const char *clock; /* the time of the day; NULL: it is not shown */
        char trouble[300]; /* why there is no daemon; "": there is one */
        char message[300]; /* shown in the last line for a while */
        double history[VIEW_HISTORY]; /* rates, the newest last */
        unsigned history_count;
};

#endif
