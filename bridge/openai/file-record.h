/*
 * The facts of a stored file: as clients see them, and as a record of the state folder.  Pure
 * functions.
 */
#ifndef BRIDGE_OPENAI_FILE_RECORD_H
#define BRIDGE_OPENAI_FILE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "bridge/core/arena.h"
#include "bridge/http/keys.h"
#include "json/builder.h"

#define FILE_PREFIX "file-"

struct file_record {
        char id[48];
        char owner[HTTP_NAME_MAX + 1]; /* the name of its principal; "": that has none */
        char filename[128], purpose[32];
        uint64_t created_ns, expires_s; /* wall clock */
        uint64_t offset, bytes;         /* of its content in its data */
};

/* Cuts a name that is too long. */
void file_record_set_name(struct file_record *record, struct text name);

/* The object of OpenAI. */
void file_put(struct json_builder *to, const struct file_record *record);

/* The record on the disk. */
void file_record_write(struct json_builder *to, const struct file_record *record);
/* False, and why: it is none.  The text may be of anybody. */
bool file_record_read(struct text text, struct file_record *ret_record, const char **ret_why);

/* Is it an id with this prefix, as identifier_make() makes them?  So it is safe as a name. */
bool record_id_is(struct text id, const char *prefix);
/* Is it the name of a principal, or ""? */
bool record_owner_is(struct text owner);

#endif
