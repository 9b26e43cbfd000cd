/* The table of routes. */
#ifndef BRIDGE_CORE_ROUTES_H
#define BRIDGE_CORE_ROUTES_H

#include "bridge/core/call.h"

enum route_flags {
        ROUTE_SPOOL = 1, /* its body goes to a file, and may be large */
};

struct route {
        enum http_method method;
        /* "/v1/models/{}": `{}` is one segment, or at the end all that follows. */
        const char *pattern;
        void (*handle)(struct call *call);
        unsigned flags;
};

#endif
