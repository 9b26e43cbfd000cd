/*
 * Every limit of the daemon, decided at start.
 *
 * One table (config.c) gives each setting its name, kind, range, default and
 * one line of help.  A flag `--name value`, a line `name = value` of the config
 * file and a row of `samovard --help` are the same row of that table, so they
 * cannot disagree.  Flags win over the file.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Instead of a number, where a setting may be one of these words as well. */
#define CONFIG_AUTO UINT32_MAX
#define CONFIG_ALL  (UINT32_MAX - 1)

enum config_pin { CONFIG_PIN_AUTO, CONFIG_PIN_OFF };

enum batching { BATCHING_CONTINUOUS, BATCHING_DYNAMIC, BATCHING_STATIC };

struct config {
        /* what is served, and where */
        char *model;           /* PATH or PATH=NAME; NULL: the one that comes with samovar */
        char *tokenizer;       /* PATH or PATH=SPLITTER; NULL: the model's own */
        char *socket;          /* NULL: the usual place */
        uint32_t socket_mode;  /* 0600, 0660 or 0666 */
        char *socket_group;    /* a name or a number; NULL: that of whom the daemon runs as */
        char *backend;         /* "cpu", "cuda", "auto", "ref" */
        char *backend_library; /* NULL: the one that comes with samovar */
        uint32_t gpu_layers;   /* the last ones, or CONFIG_AUTO, CONFIG_ALL */
        char *isa;
        bool deterministic; /* of a GPU: a stream's bits do not depend on who else is served */
        int32_t fd;         /* serve this connected socket alone, end with it; -1: listen */
        bool check;         /* load, print the plan of memory, exit */
        bool inspect;       /* say what the model is and whether it can be served, exit */
        bool preview;       /* render `messages` by its chat template, exit */
        char *messages;     /* a file of JSON, or "-" */
        bool json;          /* preview's output */
        bool help, version; /* print it, exit; nothing else was checked */
        char *file;         /* --config */

        /* the engine */
        uint32_t ctx;         /* positions of a sequence; 0: the model's own */
        uint32_t kv;          /* enum kv_type */
        uint64_t kv_bytes;    /* 0: max_seqs / 4 full sequences, at most a quarter of the memory */
        uint32_t max_seqs;    /* running at once */
        uint32_t step_tokens; /* rows of a step */
        uint32_t threads;     /* 0: as many as cores */
        uint32_t pin;         /* enum config_pin */
        uint32_t load;        /* enum load_way */
        uint32_t depth;       /* plans in flight */
        uint32_t gap_ms;      /* prompts may hold decodes up; 0: as long as they like */
        uint32_t max_parks;
        uint32_t batching;        /* enum batching */
        uint32_t batch_size;      /* 0: max_seqs */
        uint32_t batch_window_ms; /* 0: as it suits the kind */
        uint32_t max_tokens;      /* of a request that does not say */

        /* per uid */
        uint32_t uid_connections;
        uint32_t uid_requests;     /* running and waiting */
        uint64_t uid_prompt_bytes; /* handles' tokens included */
        uint32_t uid_handles;
        uint32_t uid_blocks_percent; /* of the pool: what his running requests may have */
        uint32_t uid_cached_percent; /* ... what he may keep there when others need room */
        uint32_t uid_held_percent;   /* ... what he may ask to be held */
        uint32_t uid_kept;           /* streams */
        uint64_t uid_kept_bytes;     /* ... their records, at most */
        bool publish;
        uint32_t uid_connects_burst, uid_connects_per_s;
        uint64_t uid_ring_bytes;

        /* per connection */
        uint64_t ring_bytes;
        uint64_t frame_bytes;
        uint64_t reply_bytes; /* waiting to be read, then the peer is hung up */
        uint32_t hello_ms, frame_ms;

        /* the whole daemon */
        uint32_t connections;
        uint32_t requests;
        uint32_t kept;     /* streams */
        uint32_t stall_ms; /* without room this long, a stream ends */
        uint32_t grace_ms; /* ... and this long, gives its slot up */
        uint32_t drain_ms; /* after SIGTERM */
        uint32_t log_level;
};

/*
 * Defaults, then the file of --config, then flags, then what must hold between
 * them.  0, or -EINVAL, -ENOMEM or why the file could not be read: then *why has
 * one line, and there is nothing to deinit.
 */
int config_read(struct config *config, int argc, char **argv, char *why, size_t why_bytes);
void config_deinit(struct config *config);

/* The words of --help, made from the table. */
void config_help(FILE *to);

/* The defaults: 0 or -ENOMEM, and nothing to deinit. */
int config_init(struct config *config);

/* One file's text, on top of what config has; the same results as config_read(). */
int config_parse(struct config *config, const char *text, size_t bytes, char *why,
                 size_t why_bytes);

#endif
