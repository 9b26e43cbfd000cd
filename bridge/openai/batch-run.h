/*
 * How a batch runs, from its first line to its files.
 *
 * It first reads all lines of the input, and fails if one is wrong.  After a restart it then reads
 * the answers that it has already.  Then each other line becomes a call like one of HTTP
 * (bridge_route()), of background class, whose answer is appended to the output, or, if it was
 * refused, to the errors.  A line that the daemon has no place for waits and is asked again.  While
 * the disk is full, or no key has the name of its owner, the batch waits.  At last its answers
 * become stored files, and its record says so; each of these steps can be repeated after a crash.
 *
 * Loop thread only; no step takes longer than reading some lines.
 */
#ifndef BRIDGE_OPENAI_BATCH_RUN_H
#define BRIDGE_OPENAI_BATCH_RUN_H

#include "bridge/core/bridge.h"
#include "bridge/openai/batch-answers.h"
#include "bridge/openai/batch-lines.h"
#include "bridge/openai/batch-record.h"

enum batch_phase { BATCH_CHECKS, BATCH_RECOVERS, BATCH_RUNS };

/* A batch, and all that it needs while it runs. */
struct batch {
        struct list_head of_store;
        struct bridge *bridge;
        struct batch_record record;
        bool hidden; /* it is being stored: no client sees it */
        void (*done)(void *arg, struct batch *batch, int result); /* of batch_begin() */
        void *arg;

        enum batch_phase phase;
        bool restored; /* from the state folder: there may be answers */
        bool saving;   /* a step of its end is under way */
        bool over;     /* nothing is left to do */
        unsigned stage;
        void *map; /* the input */
        size_t map_bytes;
        struct batch_lines lines;
        uint32_t checked;                /* lines that are right */
        struct batch_ids *ids;           /* of its lines; NULL: not needed any more */
        struct list_head running, again; /* of lines */
        uint32_t running_count;
        struct batch_answers output, errors;
        struct batch_recovery recovery; /* of one of these */
        struct loop_timer *step;
};

/* Its record is filled in, and its input lies behind the descriptor, which the caller closes. */
int batch_open(struct batch *batch, int input);
/* It goes on at the next turn of the loop. */
int batch_start(struct batch *batch);
/* Answers that are there stay; no more lines begin.  False: it has ended already. */
bool batch_cancel(struct batch *batch);
/* Ends its calls.  Its files in the state folder stay. */
void batch_close(struct batch *batch);

/* "batch_4fK2...", and this ending, at most STATE_NAME_BYTES. */
void batch_name_in_state(const struct batch_record *record, const char *ending, char *to);
#define BATCH_RECORD_NAME ".json"
#define BATCH_INPUT_NAME  ".input"
#define BATCH_OUTPUT_NAME ".output"
#define BATCH_ERRORS_NAME ".errors"

/* Sets the time of a status, too. */
void batch_enter(struct batch *batch, enum batch_status status);

#endif
