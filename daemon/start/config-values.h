/*
 * The values of all settings, decided at start.  config.h has their table.
 */
#ifndef DAEMON_START_CONFIG_VALUES_H
#define DAEMON_START_CONFIG_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/request.h"

/* Values of number settings that may also be one of these words. */
#define CONFIG_AUTO UINT32_MAX
#define CONFIG_ALL  (UINT32_MAX - 1)

enum config_affinity { CONFIG_AFFINITY_AUTO, CONFIG_AFFINITY_OFF };

/* When a request begins: sched.h, promises. */
enum config_admission { CONFIG_ADMISSION_LEARNED, CONFIG_ADMISSION_RESERVE };

/* Guesses at the next tokens: where they save time, always, or never. */
enum config_draft { CONFIG_DRAFT_AUTO, CONFIG_DRAFT_ALWAYS, CONFIG_DRAFT_OFF };

/* Rows of drafts in a step, at most. */
#define CONFIG_DRAFT_ROWS 32u

enum batching { BATCHING_CONTINUOUS, BATCHING_DYNAMIC, BATCHING_STATIC };

struct config {
        /* the model and the socket */
        char *model;           /* PATH or PATH=NAME; NULL: the model shipped with samovar */
        char *tokenizer;       /* PATH or PATH=SPLITTER; NULL: the model's own */
        char *tool_dialect;    /* NULL: the one of its template; "none", or a name */
        char *socket;          /* NULL: the default path */
        uint32_t socket_mode;  /* 0600, 0660 or 0666 */
        char *socket_group;    /* a name or a number; NULL: the group that the daemon runs as */
        char *gateway;         /* a user's name or number; NULL: no user may speak for principals */
        char *backend;         /* "cpu", "cuda", "auto", "ref" */
        char *backend_library; /* NULL: the library shipped with samovar */
        uint32_t gpu_layers;   /* the last layers of the model, or CONFIG_AUTO, CONFIG_ALL */
        char *isa;
        bool deterministic; /* on a GPU: a stream's bits do not depend on other requests */
        int32_t fd;         /* serve only this connected socket and exit with it; -1: listen */
        bool check_config;  /* exit as soon as the settings have been read */
        bool check;         /* load, print the memory plan, exit */
        bool inspect;       /* print what the model is and whether it can be served, exit */
        bool preview;       /* render `messages` with its chat template, exit */
        char *messages;     /* a JSON file, or "-" */
        bool json;          /* output format of inspect and preview */
        bool help, version; /* print it and exit; nothing else was checked */
        char *file;         /* the config file that was read; NULL: none */
        bool replace;       /* take the socket from the daemon that has it */

        /* the engine */
        uint32_t ctx;            /* positions of a sequence; 0: the model's own */
        uint32_t kv;             /* enum kv_type */
        uint64_t kv_bytes;       /* 0: chosen from the memory (daemon/model/kv-size.h) */
        uint64_t swap_bytes;     /* 0: no swap */
        uint32_t max_seqs;       /* sequences that run at once */
        uint32_t step_tokens;    /* rows of a step, at most */
        uint32_t threads;        /* 0: one for each core */
        uint32_t affinity;       /* enum config_affinity */
        uint32_t load;           /* enum load_way */
        uint32_t pipeline_depth; /* plans in flight */
        uint32_t draft;          /* enum config_draft */
        char *draft_model;       /* as `model`; NULL: none */
        uint32_t draft_tokens;   /* of a draft, at most */
        uint32_t draft_pool;     /* tokens of answers kept for each user; 0: none */
        uint32_t gap_ms;         /* how long prefill may delay decodes; 0: no limit */
        uint32_t max_preemptions;
        uint32_t admission[REQUEST_PRIORITY_N]; /* enum config_admission, for each class */
        uint32_t reserve_percent;               /* of the pool */
        uint32_t preempt_target;                /* percent of requests */
        uint32_t promote_ms;      /* requests that wait this long count as of the next priority */
        uint32_t batching;        /* enum batching */
        uint32_t batch_size;      /* 0: max_seqs */
        uint32_t batch_window_ms; /* 0: the default of the batching kind */
        uint32_t max_tokens;      /* for a request that sets none */

        /* limits per uid */
        uint32_t uid_connections;
        uint32_t uid_requests;     /* running and waiting */
        uint64_t uid_prompt_bytes; /* includes the tokens of handles */
        uint32_t uid_handles;
        /* percent of the pool that running requests of a user may have */
        uint32_t uid_blocks_percent;
        /* percent of the pool that a user's blocks keep in the cache when others need space */
        uint32_t uid_cached_percent;
        uint32_t uid_pinned_percent;  /* percent of the pool that a user may pin */
        uint32_t uid_resumable;       /* resumable streams */
        uint64_t uid_resumable_bytes; /* bytes of the records of these streams, at most */
        uint64_t uid_constraint_bytes;
        uint32_t constraints_kept;
        uint32_t whole_row_streams; /* streams whose clients see whole rows, at a time */
        bool publish;
        uint32_t uid_connects_burst, uid_connects_per_s;
        uint64_t uid_ring_bytes;

        /* limits per connection */
        uint64_t ring_bytes;
        uint64_t frame_bytes;
        uint64_t reply_bytes; /* replies not yet read; beyond this the peer is hung up */
        uint32_t hello_timeout_ms, frame_timeout_ms;

        /* limits of the whole daemon */
        uint32_t connections;
        uint32_t requests;
        uint32_t resumable;        /* resumable streams */
        uint32_t stall_timeout_ms; /* a stream without ring space for this long ends */
        uint32_t stall_preempt_ms; /* a stream without ring space for this long gives up its slot */
        uint32_t drain_timeout_ms; /* after SIGTERM */
        uint32_t log_level;
};

/* The rows of a step that are free for drafts. */
static inline uint32_t config_draft_rows(const struct config *config)
{
        return config->draft == CONFIG_DRAFT_OFF ? 0 : CONFIG_DRAFT_ROWS;
}

#endif
