/* Between admit.c and family.c only: the functions that each has for the other. */
#ifndef DAEMON_EDGE_ADMIT_STATE_H
#define DAEMON_EDGE_ADMIT_STATE_H

#include "daemon/edge/admit.h"

struct admit {
        struct admit_conf conf;
        struct quota *quota;
        uint32_t alive, jobs; /* together at most requests_max: the mailboxes hold that many */
        uint32_t free_count;
        uint32_t free_numbers[]; /* numbers of requests, as a stack */
};

/* ---- admit.c ---- */

/*
 * A request without parameters.  `own` is its size with its stop strings, and `more` is charged in
 * addition.
 */
int admit_make(struct admit *admit, uint32_t uid, struct served *served, uint32_t stream,
               size_t own, size_t more, struct request **ret_request,
               struct wire_problem *ret_problem);

/* Changes the charge of the request to `bytes`, which it holds from now on. */
int admit_recharge(struct admit *admit, struct request *request, size_t bytes,
                   struct wire_problem *ret_problem);

/* The size of the request and of its stop strings, which stand behind it in the same memory. */
size_t admit_own_bytes(const struct request *request);
/* Copies a stop string to `at`; returns where the next one goes. */
char *admit_add_stop(struct request *request, char *at, const char *bytes, size_t count);
void admit_add_stop_tokens(struct request *request, const uint32_t *tokens, uint32_t count);

/* Writes to `to` why sched_fits() refused.  The text goes behind a semicolon. */
#define ADMIT_WHY_BYTES 96u
const char *admit_why(const struct sched_conf *conf, enum smv_code code, uint32_t count,
                      uint32_t most, char to[ADMIT_WHY_BYTES]);

enum request_class admit_class(const struct wire_request *asked);
uint64_t admit_deadline(const struct wire_request *asked);

/* ---- family.c ---- */

/* Makes the other requests of a generate with `n`, as siblings of `request`: all or none. */
int admit_siblings(struct admit *admit, struct request *request, const struct wire_request *asked,
                   struct wire_problem *ret_problem);

void admit_leave_family(struct request *request);

#endif
