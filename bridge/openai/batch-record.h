/*
 * The facts of a batch: as clients see them, and as a record of the state folder.  Pure functions.
 */
#ifndef BRIDGE_OPENAI_BATCH_RECORD_H
#define BRIDGE_OPENAI_BATCH_RECORD_H

#include "bridge/openai/file-record.h"

#define BATCH_PREFIX         "batch_"
#define BATCH_WINDOW_S       86400u
#define BATCH_LINES_MAX      50000u
#define BATCH_METADATA_BYTES 16384u

enum batch_status {
        BATCH_VALIDATING,
        BATCH_IN_PROGRESS,
        BATCH_FINALIZING,
        BATCH_CANCELLING,
        BATCH_COMPLETED, /* this and the next ones: it has ended */
        BATCH_FAILED,
        BATCH_EXPIRED,
        BATCH_CANCELLED,
        BATCH_STATUS_N,
};

struct batch_record {
        char id[48], endpoint[64];
        char owner[HTTP_NAME_MAX + 1]; /* the name of its principal; "": that has none */
        char input_id[48];
        char output_id[48], error_id[48]; /* chosen when it begins */
        bool has_output, has_errors;      /* the files are there */
        char *metadata;                   /* JSON; NULL: none */
        enum batch_status status;
        enum batch_status ending; /* FINALIZING: into which it ends */
        uint64_t created_ns;
        uint64_t times_s[BATCH_STATUS_N]; /* when it came into each; 0: never */
        uint64_t input_offset, input_bytes;
        uint32_t total, completed, failed;
        char why[256];     /* why it failed; "": it did not */
        uint32_t why_line; /* 0: no line */
};

bool batch_record_has_ended(const struct batch_record *record);
const char *batch_status_name(enum batch_status status);

/* The object of OpenAI. */
void batch_record_put(struct json_builder *to, const struct batch_record *record);

/* The record on the disk. */
void batch_record_write(struct json_builder *to, const struct batch_record *record);
/*
 * 0; -EINVAL: it is none, and *why says so; -ENOMEM.  The text may be of anybody.  On 0 the caller
 * frees the metadata.
 */
int batch_record_read(struct text text, struct batch_record *ret_record, const char **ret_why);

#endif
