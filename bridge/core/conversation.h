/*
 * A conversation, as all dialects read it: turns, tools, and what the template is told besides.
 *
 * A dialect adds turns in the order of its request; conversation_pack() makes the messages that
 * the daemon takes.  The rules for that are the same for all dialects:
 *
 *      - The system and developer turns at the front become one first message.
 *      - A later one goes to the front of the next user turn, else to the end of the user turn
 *        before it, else it becomes a user turn: most templates refuse a system message in the
 *        middle, and some refuse two user turns in a row.  Moving it to the front would change the
 *        beginning of the prompt, which is cached.
 *      - Arguments of calls are packed as the object that they are, because most templates print
 *        them; text that is no JSON object stays a text.
 *      - If the last turn is the assistant's, has text and no calls, the model continues that text.
 *        Otherwise a new answer begins.  A request may say itself how the prompt ends.
 *
 * Texts are not copied: they stay in the document of the request, or in its arena.
 */
#ifndef BRIDGE_CORE_CONVERSATION_H
#define BRIDGE_CORE_CONVERSATION_H

#include <stdbool.h>
#include <stdint.h>

#include "bridge/core/arena.h"
#include "bridge/core/failure.h"
#include "json/document.h"

struct smv_generate;
struct smv_packed;

enum turn_role { TURN_SYSTEM, TURN_USER, TURN_ASSISTANT, TURN_TOOL };

struct turn_call {
        struct turn_call *next;
        struct text id, name, arguments; /* arguments: JSON text */
        uint32_t arguments_node;         /* ... or a node of the document; JSON_NONE: the text */
};

struct turn {
        struct turn *next;
        enum turn_role role;
        struct text content;   /* at NULL: none */
        struct text reasoning; /* of an assistant */
        struct text name;      /* of a tool, or of a speaker */
        struct text call_id;   /* TURN_TOOL: which call this answers */
        struct turn_call *calls, *last_call;
};

struct tool {
        struct tool *next;
        struct text name, description;
        uint32_t schema; /* node of the document with the parameters; JSON_NONE: none */
        bool strict;     /* calls must obey the schema, also if the model decides to make them */
};

struct template_var {
        struct template_var *next;
        struct text key;
        uint32_t node; /* its value in the document; JSON_NONE: `flag`, or `word` if it is set */
        struct text word;
        bool flag;
};

/* Whether a request has a switch, and which way. */
enum asked { ASKED_NOTHING, ASKED_NO, ASKED_YES };

struct conversation {
        struct arena *arena;
        const struct json_document *json; /* of the request */
        struct turn *turns, *last_turn;
        struct tool *tools, *last_tool;
        struct template_var *vars, *last_var;
        uint32_t turn_count, tool_count, var_count;
        /* Does an answer begin behind the last turn, or does the last turn go on? */
        enum asked new_answer, continuation;
        bool strict; /* a tool is */
};

/* These return NULL if there is no memory (arena->failed). */
struct turn *conversation_turn(struct conversation *conversation, enum turn_role role);
struct turn_call *conversation_call(struct conversation *conversation, struct turn *turn);
struct tool *conversation_tool(struct conversation *conversation);
/* The switch of that name, as if it had not been set before. */
struct template_var *conversation_var(struct conversation *conversation, struct text key);

/*
 * Tells the template whether the model is to think, under the names that templates have for it.
 * Templates that know none of these names ignore them.
 */
void conversation_think(struct conversation *conversation, bool think);

/* Appends text to a turn, with `between` before it if the turn has text. */
void conversation_add_text(struct conversation *conversation, struct text *to, struct text more,
                           const char *between);

/*
 * Sets packed_messages, packed_tools, packed_vars, add_generation_prompt and continue_final_message
 * of the options; their memory is the arena's.  0, or -ENOMEM.
 */
int conversation_pack(struct conversation *conversation, struct smv_generate *options);

/*
 * The same for the messages alone that follow the turn `last`.  Only after conversation_pack(),
 * which has brought the turns into their order.
 */
int conversation_pack_behind(const struct conversation *conversation, const struct turn *last,
                             struct smv_packed *ret_messages);

#endif
