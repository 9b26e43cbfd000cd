/*
 * Task: a peer's work for the scribe, and what is to be done with the result.
 *
 * It outlives its peer: the job is the scribe's until it comes back.  Loop
 * thread only, but for the job.
 */
#ifndef DAEMON_EDGE_TASK_H
#define DAEMON_EDGE_TASK_H

#include "daemon/edge/peer.h"

struct peer_task {
        struct scribe_job job;
        struct peer *peer; /* NULL once it is gone */
        struct peer_task *next, *prev;
        enum wire_op op;
        uint32_t id, uid;
        struct request *request;  /* generate: the one that waits for its prompt */
        uint64_t charged;         /* the others, for which there is no request */
        enum smv_code called_off; /* why nobody wants it any more, or OK */
};

/* 0: the request is the task's; or -ENOMEM. */
int task_generate(struct peer *peer, const struct wire_request *asked, struct request *request);

/* 0, WIRE_E_REFUSED or -ENOMEM. */
int task_tokenize(struct peer *peer, struct served *served, const struct wire_request *asked,
                  struct wire_problem *ret_problem);
int task_detokenize(struct peer *peer, struct served *served, const struct wire_request *asked,
                    struct wire_problem *ret_problem);

struct peer_task *task_find(struct peer *peer, uint32_t id);
void task_call_off(struct peer_task *task, enum smv_code code);

/* The peer goes: its tasks come back to nobody. */
void tasks_leave(struct peer *peer);

#endif
