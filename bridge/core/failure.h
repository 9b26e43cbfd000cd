/*
 * A failure of a call, and how each dialect writes it.
 *
 * The class decides the HTTP status and the words of each dialect; the table is in failure.c.
 * `param` names the field of the request that the failure is about.  Pure functions.
 */
#ifndef BRIDGE_CORE_FAILURE_H
#define BRIDGE_CORE_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#include "json/builder.h"

struct smv_problem;

enum dialect { DIALECT_OPENAI, DIALECT_ANTHROPIC, DIALECT_OLLAMA };

enum failure_class {
        FAILURE_REQUEST,     /* the request is wrong */
        FAILURE_UNSUPPORTED, /* it asks for a feature that there is not */
        FAILURE_TOO_LONG,    /* the prompt does not fit the context */
        FAILURE_KEY,         /* no key, or a wrong one */
        FAILURE_DENIED,      /* Host, Origin */
        FAILURE_NO_MODEL,
        FAILURE_NOT_FOUND, /* a route, or an object of this principal */
        FAILURE_METHOD,
        FAILURE_TOO_LARGE, /* the body or the headers */
        FAILURE_QUOTA,
        FAILURE_BUSY,
        FAILURE_UNAVAILABLE, /* the daemon is away, loads or stops */
        FAILURE_DEADLINE,
        FAILURE_INTERNAL,
        FAILURE_CLASS_N,
};

struct failure {
        enum failure_class class;
        unsigned status;   /* 0: that of the class */
        uint32_t retry_ms; /* 0: not known */
        bool no_retry;     /* trying again is pointless although the status says otherwise */
        char param[64];    /* "": none */
        char message[512];
};

struct failure failure_make(enum failure_class class, const char *param, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* A refusal of the daemon, or the code of an END. */
struct failure failure_of_problem(const struct smv_problem *problem);
struct failure failure_of_code(uint32_t code);
/* An answer with which the HTTP server itself refuses. */
struct failure failure_of_status(unsigned status, const char *message);

/* The dialect of a route, also of one that there is not. */
enum dialect failure_dialect(const char *path);

unsigned failure_status(const struct failure *failure, enum dialect dialect);
/* The whole body. */
void failure_write(const struct failure *failure, enum dialect dialect, const char *request_id,
                   struct json_builder *to);
/* Only the value of its member `error`, as it stands in a stream. */
void failure_write_error(const struct failure *failure, enum dialect dialect,
                         struct json_builder *to);

#endif
