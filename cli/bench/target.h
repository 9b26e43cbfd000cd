/*
 * A server that is measured.  It takes requests, many at a time, and notes in their samples what
 * comes back and when.  Only target_wait() reads.
 */
#ifndef CLI_BENCH_TARGET_H
#define CLI_BENCH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/client.h>

#include "cli/bench/options.h"
#include "cli/bench/sample.h"
#include "cli/bench/workload.h"

struct target;

/* Facts that the server tells about itself; texts are "" and numbers 0 if it does not. */
struct target_facts {
        char address[256]; /* the socket, or the URL */
        char server[96];   /* "samovard 0.1.0" */
        char model[96], quantisation[32], backend[32], digest[72];
        uint64_t parameters, context;
        uint32_t vocab;
        char note[96]; /* what readers of its figures must know */
};

struct target_kind {
        int (*send)(struct target *target, const struct prompt *prompt, struct sample *sample);
        int (*wait)(struct target *target, double seconds);
        void (*cancel)(struct target *target);
        void (*close)(struct target *target);
};

struct target {
        const struct target_kind *kind;
        struct target_facts facts;
        struct encoding encoding;
        uint32_t in_flight;
        bool gone;   /* it takes no more requests */
        double zero; /* samples count their seconds from here, on the monotonic clock */
        /* Called when a sample is complete: then `ended` and perhaps `error` are set. */
        void (*on_end)(void *arg, struct sample *sample);
        void *arg;
        /* The settings of all requests. */
        const char *model; /* NULL: the server's default */
        uint32_t set;      /* enum smv_set */
        float temperature;
        enum smv_priority priority;
        char why[256]; /* the words of the last error */
};

struct target_options {
        const struct bench_options *bench;
        const char *model, *key_file;
        uint32_t set;
        float temperature;
        enum smv_priority priority;
        const char *principal;
        bool any_uid;
        enum smv_transport transport;
        uint32_t timeout_s;
        bool made_up; /* prompts are made up */
        bool chat;    /* prompts are messages */
};

/*
 * Our daemon.  `client` is a connection to it, which stays the caller's; NULL: connects to
 * `socket`.  Both calls return 0, or a negative errno and one line in *why.
 */
int target_open_socket(const struct target_options *options, struct smv_client *client,
                       const char *socket, struct target **ret_target, char *why, size_t why_bytes);
/* A server at "http://host:port/v1". */
int target_open_http(const struct target_options *options, const char *url,
                     struct target **ret_target, char *why, size_t why_bytes);
struct target *target_close(struct target *target); /* takes NULL */

/*
 * Sends a request.  If that fails, its sample ends at once, with an error.  0 or -ENOMEM.
 */
int target_send(struct target *target, const struct prompt *prompt, struct sample *sample);
/* Reads until something has come, a signal comes, or the time is over.  0 or -ENOMEM. */
int target_wait(struct target *target, double seconds);
/* Gives up all requests in flight: their samples end with the error "cancelled". */
void target_cancel(struct target *target);

/* For the kinds of targets: the time for samples; a piece or the end of an answer. */
double target_now(const struct target *target);
void target_end(struct target *target, struct sample *sample, const char *error);

#endif
