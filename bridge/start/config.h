/*
 * The settings of samovar-http, decided at start.  config.c has their table and the rules between
 * them; settings/settings.h reads flags and files by it.
 */
#ifndef BRIDGE_START_CONFIG_H
#define BRIDGE_START_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "settings/settings.h"

enum bridge_unix_peers { BRIDGE_PEERS_OWN, BRIDGE_PEERS_ALL };

struct bridge_config {
        /* Lists with commas between their items: bridge/start/text-list.h splits them. */
        char *listen;        /* addresses; "none": no address */
        char *alias;         /* NAME=MODEL; NULL: none */
        char *allow_hosts;   /* names; NULL: none but the local ones */
        char *allow_origins; /* NULL: none but local pages */

        char *listen_unix;         /* a path; NULL: none */
        uint32_t listen_unix_mode; /* 0600, 0660 or 0666 */
        char *socket;              /* of the daemon; NULL: where the library looks */
        char *keys;                /* the file of API keys; NULL: no keys */
        bool any_local_user;       /* a TCP connection from this machine needs no key */
        uint32_t unix_peers;       /* enum bridge_unix_peers */

        uint32_t connections;
        uint64_t body_bytes;   /* of one request */
        uint64_t bodies_bytes; /* of all requests that are in memory */
        uint64_t queue_bytes;  /* a client that is so far behind is cut */
        uint32_t header_timeout_ms, body_timeout_ms, idle_timeout_ms, write_timeout_ms;
        uint32_t drain_timeout_ms; /* after SIGTERM */
        uint32_t ping_ms;          /* after so much silence in a stream */
        uint32_t response_keep_ms; /* how long a stored response lives */
        uint32_t response_max;     /* stored responses of a user */
        uint64_t response_bytes;   /* bytes of these */
        uint32_t files_max;        /* files of a user */
        uint64_t files_bytes;      /* bytes of these */
        uint32_t batch_parallel;   /* lines of a batch that run at a time */
        uint32_t files_keep_ms;    /* how long a file lives */
        char *spool;               /* a folder for files of users, without a state folder */
        char *state;               /* a folder for what survives a restart; NULL: nothing does */
        uint32_t log_level;
        bool otel; /* metrics under OpenTelemetry's names too */

        /* A batch without HTTP; batch NULL: there is none. */
        char *batch, *output; /* files; "-": stdin, stdout */
        bool resume;
        uint32_t parallel; /* 0: as many as the daemon takes */
        char *batch_model; /* for names that no model has; NULL: these are refused */
        int32_t daemon_fd; /* connected to a private daemon; -1: there is none */

        char *file;         /* the config file that was read; NULL: none */
        bool check_config;  /* exit as soon as the settings have been read */
        bool help, version; /* print it and exit */
};

/* Its values are a struct bridge_config. */
extern const struct settings_table bridge_config_table;

#endif
