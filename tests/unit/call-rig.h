/*
 * A call without HTTP and without a daemon: its answer goes to memory.
 *
 * The test makes a run, and feeds it pieces and the end as the link would.
 */
#ifndef TESTS_UNIT_CALL_RIG_H
#define TESTS_UNIT_CALL_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bridge/core/bridge.h"
#include "bridge/core/fields.h"
#include "bridge/core/run.h"
#include "json/reader.h"

struct call_rig {
        struct loop *loop;
        struct bridge *bridge;
        struct call *call;
        unsigned status;    /* of a whole answer; 200 of a stream */
        char type[64];      /* of the content */
        struct bytes said;  /* the body, NUL-ended */
        char header[128];   /* the last one: "NAME: VALUE" */
        bool finished, cut; /* a stream's end */
};

/* `path` decides the dialect; `body` must live as long as the rig. */
void call_rig_start(struct call_rig *rig, const char *path, const char *body);
void call_rig_end(struct call_rig *rig);

/* The daemon has accepted the run, with a prompt of that many tokens. */
void call_rig_accept(struct run *run, uint32_t prompt_tokens);
/* The pieces of choice 0. */
void call_rig_text(struct run *run, const char *text);
void call_rig_think(struct run *run, const char *text);
void call_rig_call(struct run *run, const char *name);
void call_rig_arguments(struct run *run, const char *text);
void call_rig_call_end(struct run *run);
void call_rig_call_cut(struct run *run); /* its arguments are not whole */
/* The end of choice 0. */
void call_rig_finish(struct run *run, const struct smv_event *event);

/* The answer, parsed; the caller frees it. */
struct json_document *call_rig_json(const struct call_rig *rig);
/* "error.type" and so on; "0" is the first of an array.  Fails if there is no such node. */
uint32_t json_at(const struct json_document *json, const char *path);
/* The text there. */
const char *json_text_at(const struct json_document *json, const char *path);
uint64_t json_uint_at(const struct json_document *json, const char *path);

/* What conversation_pack() has packed, as JSON of one line: [{"role":"user","content":"hi"}]. */
void call_rig_unpack(const struct smv_packed *packed, struct bytes *to);

#endif
