/*
 * Answer lines: --json, a line for each event of the streams of a request.
 *
 * Only generate.c includes this.
 */
#ifndef CLI_ANSWER_LINES_H
#define CLI_ANSWER_LINES_H

#include "cli/cli.h"

struct answer_lines {
        struct bytes out;            /* one line */
        uint32_t first;              /* the first stream; the ids of the others follow */
        uint32_t count;              /* of streams; of many, each line says which one it is of */
        bool sequence;               /* records have numbers, for attach */
        char chain[SMV_CHAIN_BYTES]; /* the samplers that are in effect; empty: not known */
};

/* Each returns 0, or an exit status. */
int answer_lines_tokens(struct answer_lines *lines, const struct smv_event *event);
int answer_lines_end(struct answer_lines *lines, const struct smv_event *event);
/* The answer that is shown in place of all: its number, from 0. */
int answer_lines_best(struct answer_lines *lines, uint32_t number, double score);

#endif
