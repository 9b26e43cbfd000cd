/*
 * The constraint of an answer: what a request says about its form, in the fields of all dialects.
 *
 * Each reader takes one field.  It writes the description for the daemon
 * (docs/reference/protocol.md, Constraints) into the options, with the keys of a schema in their
 * order.  A field that is absent, or asks for nothing, sets none.  A request has at most one
 * constraint: a second field is refused.
 *
 * Objects have only the members that a schema names, if it does not speak of others.  Other servers
 * do so, and clients send schemas that rely on it.
 *
 * call->constrained_by becomes the name of the field, so that a refusal of the daemon names it.
 */
#ifndef BRIDGE_CORE_CONSTRAINT_H
#define BRIDGE_CORE_CONSTRAINT_H

#include <samovar/client.h>

#include "bridge/core/call.h"
#include "bridge/core/fields.h"

/*
 * `type` with the schema that belongs to it, as OpenAI and Anthropic have it:
 *
 *      text            nothing
 *      json_object     an object, or what `schema` says
 *      json_schema     `json_schema.schema`, or `schema`
 *
 * `name` is a literal, as in the others.
 */
void constraint_read_format(struct call *call, struct fields *fields, uint32_t format,
                            const char *name, struct smv_generate *options);
/* Ollama's `format`: "json", or a schema. */
void constraint_read_ollama(struct call *call, struct fields *fields, struct smv_generate *options);
/* The fields of vLLM, SGLang and llama-server. */
void constraint_read_extras(struct call *call, struct fields *fields, struct smv_generate *options);

/*
 * When all of the request is read.  With tools the answer is calls, or what the constraint says.
 * If it must be calls, the request fails.
 */
void constraint_settle(const struct call *call, struct fields *fields,
                       const struct smv_generate *options);

#endif
