/* The values of the flags of `samovar top`. */
#ifndef CLI_TOP_OPTIONS_H
#define CLI_TOP_OPTIONS_H

#include <stdbool.h>

enum top_sort {
        TOP_BY_AGE = 0, /* the oldest first */
        TOP_BY_USER,
        TOP_BY_TOKENS, /* the most first */
        TOP_BY_RATE,   /* the fastest first */
};

struct top_options {
        double interval_s; /* between two looks at the daemon; 0: not given, one second */
        enum top_sort sort;
        bool once; /* print one frame, and end */
};

#endif
