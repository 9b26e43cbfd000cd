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

#include <samovar/client.h>

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
void tools_read_strict(struct fields *fields, struct conversation *conversation, uint32_t object,
                       struct tool *tool);
/* Only this tool may be called, and others that are allowed so: `most` in all. */
void tools_allow(struct fields *fields, struct conversation *conversation, struct text name,
                 uint32_t most, struct smv_generate *options);
/*
 * When tools and their choice are read.  If there are no such tools, the request fails.  one_call:
 * the answer may have one call.
 */
void tools_settle(struct fields *fields, const struct conversation *conversation, bool one_call,
                  struct smv_generate *options);
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
