/*
 * Reads the fields of a request.  The first wrong field is remembered as a failure, with its path
 * as param; the readers do nothing after it.  A field that is absent or null leaves what it would
 * set as it was.
 */
#ifndef BRIDGE_CORE_FIELDS_H
#define BRIDGE_CORE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "bridge/core/arena.h"
#include "bridge/core/failure.h"
#include "json/document.h"

struct fields {
        const struct json_document *json;
        struct failure failure;
        bool failed;
};

/* Remembers a failure; returns false. */
bool fields_fail(struct fields *fields, enum failure_class class, const char *param,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The member, or JSON_NONE if it is absent or null. */
uint32_t field_of(const struct fields *fields, uint32_t object, const char *name);

/* True: the member was there and is right. */
bool field_text(struct fields *fields, uint32_t object, const char *name, struct text *ret_text);
bool field_bool(struct fields *fields, uint32_t object, const char *name, bool *ret_value);
bool field_real(struct fields *fields, uint32_t object, const char *name, double low, double high,
                double *ret_value);
bool field_uint(struct fields *fields, uint32_t object, const char *name, uint64_t low,
                uint64_t high, uint64_t *ret_value);
/* Also negative; a real without a fraction is taken as well. */
bool field_int(struct fields *fields, uint32_t object, const char *name, int64_t *ret_value);
/* An array, or an object; JSON_NONE if it is absent. */
uint32_t field_array(struct fields *fields, uint32_t object, const char *name);
uint32_t field_object(struct fields *fields, uint32_t object, const char *name);

/* The same, or JSON_NONE also if it asks for nothing: false, 0, "", an empty array or object. */
uint32_t field_asked(const struct fields *fields, uint32_t object, const char *name);

/*
 * Refuses a feature that the daemon does not have, unless the field asks for nothing.
 */
void field_refuse(struct fields *fields, uint32_t object, const char *name, const char *why);

/* True if the text is this word. */
bool text_is(struct text text, const char *word);
/* The text of a node; at NULL if it is no string. */
struct text text_of(const struct json_document *json, uint32_t node);

#endif
