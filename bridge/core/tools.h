/*
 * Tools and calls in the form that OpenAI's chat and Ollama share:
 *
 *      tools: [{type: "function", function: {name, description, parameters}}]
 *      tool_calls: [{id, type, function {name, arguments}}], arguments: JSON text, or an object
 *
 * The roles of the messages are alike, too.
 */
#ifndef BRIDGE_CORE_TOOLS_H
#define BRIDGE_CORE_TOOLS_H

#include "bridge/core/call.h"
#include "bridge/core/conversation.h"
#include "bridge/core/fields.h"
#include "bridge/core/run.h"
#include "json/builder.h"

/* `role` of a message, whose path is `param`. */
bool tools_read_role(struct fields *fields, uint32_t message, const char *param,
                     enum turn_role *ret_role);
/* The array `tools` of the request. */
void tools_read(struct fields *fields, struct conversation *conversation);
/* Reads `strict` of a tool's object. */
void tools_read_strict(struct fields *fields, struct conversation *conversation, uint32_t object);
/* Says in a header that the schemas of strict tools are not enforced, if there are any. */
void tools_tell_unenforced(struct call *call, const struct conversation *conversation);
/* The array `tool_calls` of a message. */
void tools_read_calls(struct fields *fields, struct conversation *conversation, struct turn *turn,
                      uint32_t message, const char *param);
/*
 * The arguments of a call that the model made, as an object.  Those of a call that was cut are no
 * whole JSON: then the object is empty.
 */
void tools_put_arguments(struct json_builder *to, const struct bytes *arguments);
/* The text that stands for a call that was cut, so that nothing of it is lost. */
struct text tools_cut_text(struct arena *arena, const struct run_call *made);

#endif
