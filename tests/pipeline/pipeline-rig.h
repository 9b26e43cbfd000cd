/*
 * One run of several clients through the pipeline: the memory that the daemon, its clients and the
 * test share, and the check of the result.
 */
#ifndef TESTS_PIPELINE_PIPELINE_RIG_H
#define TESTS_PIPELINE_PIPELINE_RIG_H

#include "bench/pipeline.h"
#include "bench/checking-client.h"

#define CLIENTS 4u

struct variant {
        const char *name;
        enum smv_transport transport;
        enum smv_doorbell doorbell;
        enum checking_client_wait wait;
        size_t batch;
};

/* Zeroed, in memory that processes share. */
struct pipeline_rig {
        struct pipeline_facts pipeline;
        struct checking_client_facts clients[CLIENTS];
        char directory[64], socket[96];
};

struct pipeline_rig *pipeline_rig_new(void);
struct pipeline_rig *pipeline_rig_free(struct pipeline_rig *rig);

struct pipeline_conf pipeline_rig_conf(struct pipeline_rig *rig, const struct variant *variant);
struct checking_client_conf pipeline_rig_client_conf(const struct pipeline_rig *rig,
                                                     const struct variant *variant, uint32_t number,
                                                     uint64_t tokens);

/* SMV_PIPELINE_TOKENS, or `initial` if it is unset. */
uint64_t pipeline_rig_tokens(uint64_t initial);

/* Prints one line of counts; fails the test unless the clients read everything that was shown. */
void pipeline_rig_check(const struct pipeline_rig *rig, const struct variant *variant, uint64_t ns);

#endif
