/* The settings of the server, and its counts. */
#ifndef BRIDGE_HTTP_CONF_H
#define BRIDGE_HTTP_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "bridge/http/refusal.h"

/* Strings and arrays must live as long as the server. */
struct http_conf {
        uint32_t connections_max;
        uint64_t body_max;   /* of a request, unless http_limit_body() says otherwise */
        uint64_t bodies_max; /* of all bodies that are in memory */
        uint32_t head_ms;    /* for the request line and all headers */
        uint32_t body_ms;    /* for the body, and 1 s more for each body_rate bytes */
        uint64_t body_rate;
        uint32_t idle_ms;           /* between requests */
        uint32_t write_ms;          /* without any progress */
        uint32_t linger_ms;         /* how long a client may go on sending behind the last answer */
        const char *spool;          /* folder for bodies that go to a file */
        const char *key_file;       /* lines KEY NAME; NULL: no keys */
        const char *const *hosts;   /* more names for Host; ends with NULL; may be NULL */
        const char *const *origins; /* more origins, such as https://chat.example; "*": all */
        const uint32_t *uids;       /* users besides our own that need no key */
        uint32_t uid_count;
        bool unix_everyone;     /* all users that can open the Unix socket need no key */
        bool loopback_everyone; /* without keys, all users of this machine may connect over TCP */
};
/* For metrics. */
struct http_counts {
        uint64_t connections;  /* accepted so far */
        uint64_t requests;     /* whose headers were read */
        uint64_t clients_gone; /* on_gone() was called */
        uint64_t refusals[HTTP_REFUSALS];
        uint64_t sent_bytes;
        uint64_t queued_bytes;     /* now */
        uint64_t body_bytes;       /* of bodies in memory, now */
        uint32_t connections_open; /* now */
};

#endif
