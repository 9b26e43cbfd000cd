/*
 * tool_choice and parallel_tool_calls, as chat/completions and responses have them:
 *
 *      "none", "auto", "required"
 *      {type: "function", name}, {type: "function", function: {name}}
 *      {type: "allowed_tools", mode, tools: [...]}, or with both in an object `allowed_tools`
 *
 * Names are those of tools in one of the two forms.
 */
#ifndef BRIDGE_OPENAI_TOOL_CHOICE_H
#define BRIDGE_OPENAI_TOOL_CHOICE_H

#include <samovar/client.h>

#include "bridge/core/conversation.h"
#include "bridge/core/fields.h"

/* Before the tools are read.  False: the model is not told of any tool. */
bool openai_read_choice(struct fields *fields, struct conversation *conversation,
                        struct smv_generate *options);

#endif
