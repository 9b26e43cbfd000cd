/*
 * What all calls share: the daemon's links, the limits, the counters.  bridge.h makes it.  Loop
 * thread only.
 */
#ifndef BRIDGE_CORE_CONTEXT_H
#define BRIDGE_CORE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"

struct batch_store;
struct file_store;
struct histories;
struct http_server;
struct kept_store;
struct links;
struct metrics;
struct pulse;
struct response_store;
struct state_folder;
struct vocabulary;

/*
 * A name of a model that clients use, and the daemon's name for it.  name "*": all others.  model
 * "": the daemon's default.
 */
struct alias {
        const char *name, *model;
};

struct bridge_conf {
        struct loop *loop;
        const char *socket; /* of the daemon; NULL: where the library looks */
        bool use_daemon_fd; /* instead: daemon_fd is connected to a private daemon */
        int daemon_fd;
        size_t wake_bytes; /* of records for which a link wakes, besides for ends; 0: for each */
        const struct alias *aliases;
        uint32_t alias_count;
        uint64_t queue_bytes;      /* a client that is so far behind is cut */
        uint32_t ping_ms;          /* a stream that is silent for so long gets a ping */
        uint32_t response_keep_ms; /* how long a stored response lives */
        uint32_t response_max;     /* stored responses of a principal */
        uint64_t response_bytes;   /* bytes of these */
        const char *spool;         /* folder for files that batches write, without a state folder */
        uint32_t files_keep_ms;    /* how long a file lives, and the record of a batch */
        uint32_t files_max;        /* files of a principal */
        uint64_t files_bytes;      /* bytes of these */
        uint32_t batch_parallel;   /* lines of a batch that run at a time */
        bool otel;                 /* metrics under OpenTelemetry's names too */
        bool serves_strangers;     /* other users of this machine need no key */
};

struct bridge {
        struct bridge_conf conf;
        struct links *links;
        struct http_server *server; /* set by main; knows the names of the principals */
        struct metrics *metrics;
        struct vocabulary *vocabulary;
        struct histories *histories;
        struct pulse *pulse;
        struct state_folder *state; /* set by main; NULL: nothing survives a restart */
        /* Set by main: what clients have stored. */
        struct response_store *responses;
        struct file_store *files;
        struct batch_store *batches;
        struct kept_store *kept;
        struct list_head calls; /* that are not over */
        struct list_head dead;  /* that are, until the end of the turn */
        struct loop_timer *burial, *pings;
        uint32_t call_count;
        uint64_t started_s;
};

#endif
