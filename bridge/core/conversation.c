#include "bridge/core/conversation.h"

#include <errno.h>
#include <samovar/client.h>
#include <string.h>

#include "bridge/core/pack.h"
#include "json/reader.h"

#define ARGUMENT_NODES_MAX 16384u
#define WHY_BYTES          128u

struct turn *conversation_turn(struct conversation *conversation, enum turn_role role)
{
        struct turn *turn = arena_alloc(conversation->arena, sizeof(*turn));

        if (!turn)
                return NULL;
        turn->role = role;
        if (conversation->last_turn)
                conversation->last_turn->next = turn;
        else
                conversation->turns = turn;
        conversation->last_turn = turn;
        conversation->turn_count++;
        return turn;
}

struct turn_call *conversation_call(struct conversation *conversation, struct turn *turn)
{
        struct turn_call *call = arena_alloc(conversation->arena, sizeof(*call));

        if (!call)
                return NULL;
        call->arguments_node = JSON_NONE;
        if (turn->last_call)
                turn->last_call->next = call;
        else
                turn->calls = call;
        turn->last_call = call;
        return call;
}

struct tool *conversation_tool(struct conversation *conversation)
{
        struct tool *tool = arena_alloc(conversation->arena, sizeof(*tool));

        if (!tool)
                return NULL;
        tool->schema = JSON_NONE;
        if (conversation->last_tool)
                conversation->last_tool->next = tool;
        else
                conversation->tools = tool;
        conversation->last_tool = tool;
        conversation->tool_count++;
        return tool;
}

static struct template_var *find_var(const struct conversation *conversation, struct text key)
{
        for (struct template_var *var = conversation->vars; var; var = var->next)
                if (var->key.bytes == key.bytes && !memcmp(var->key.at, key.at, key.bytes))
                        return var;
        return NULL;
}

struct template_var *conversation_var(struct conversation *conversation, struct text key)
{
        struct template_var *var = find_var(conversation, key);

        if (var) {
                *var = (struct template_var){ .next = var->next, .key = key, .node = JSON_NONE };
                return var;
        }
        var = arena_alloc(conversation->arena, sizeof(*var));
        if (!var)
                return NULL;
        var->key = key;
        var->node = JSON_NONE;
        if (conversation->last_var)
                conversation->last_var->next = var;
        else
                conversation->vars = var;
        conversation->last_var = var;
        conversation->var_count++;
        return var;
}

void conversation_think(struct conversation *conversation, bool think)
{
        static const char *const names[] = { "enable_thinking", "thinking" };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                struct template_var *var =
                        conversation_var(conversation, (struct text){ names[i], strlen(names[i]) });

                if (var)
                        var->flag = think;
        }
}

void conversation_add_text(struct conversation *conversation, struct text *to, struct text more,
                           const char *between)
{
        size_t gap = to->at && to->bytes ? strlen(between) : 0;
        char *at;

        if (!to->at) {
                *to = more;
                return;
        }
        at = arena_alloc(conversation->arena, to->bytes + gap + more.bytes + 1);
        if (!at)
                return;
        memcpy(at, to->at, to->bytes);
        memcpy(at + to->bytes, between, gap);
        memcpy(at + to->bytes + gap, more.at, more.bytes);
        *to = (struct text){ at, to->bytes + gap + more.bytes };
}

/* ---- the order of the turns ---- */

static void remove_after(struct conversation *conversation, struct turn *before, struct turn *turn)
{
        if (before)
                before->next = turn->next;
        else
                conversation->turns = turn->next;
        if (conversation->last_turn == turn)
                conversation->last_turn = before;
        conversation->turn_count--;
}

/* The system turns at the front become one. */
static void join_front(struct conversation *conversation)
{
        struct turn *first = conversation->turns;

        while (first && first->role == TURN_SYSTEM && first->next &&
               first->next->role == TURN_SYSTEM) {
                conversation_add_text(conversation, &first->content, first->next->content, "\n\n");
                remove_after(conversation, first, first->next);
        }
}

/* Adds the text of a later system turn to the turn behind it, or before it.  False: to neither. */
static bool give_text(struct conversation *conversation, struct turn *before, struct turn *turn)
{
        struct turn *next = turn->next;
        struct text joined = turn->content;

        if (next && (next->role == TURN_USER || next->role == TURN_SYSTEM)) {
                conversation_add_text(conversation, &joined, next->content, "\n\n");
                next->content = joined;
                return true;
        }
        if (before->role != TURN_USER)
                return false;
        conversation_add_text(conversation, &before->content, turn->content, "\n\n");
        return true;
}

static void move_later(struct conversation *conversation)
{
        struct turn *before = conversation->turns, *next;

        for (struct turn *turn = before ? before->next : NULL; turn; turn = next) {
                next = turn->next;
                if (turn->role == TURN_SYSTEM && give_text(conversation, before, turn)) {
                        remove_after(conversation, before, turn);
                        continue;
                }
                if (turn->role == TURN_SYSTEM)
                        turn->role = TURN_USER;
                before = turn;
        }
}

/* ---- packing ---- */

static const char *role_name(enum turn_role role)
{
        static const char *const names[] = { "system", "user", "assistant", "tool" };

        return names[role];
}

/* Text that is the JSON of an object becomes that object. */
static void pack_arguments(struct pack *pack, const struct conversation *conversation,
                           const struct turn_call *call)
{
        struct json_document *json = NULL;
        char why[WHY_BYTES];

        if (call->arguments_node != JSON_NONE) {
                pack_node(pack, conversation->json, call->arguments_node);
                return;
        }
        if (!call->arguments.bytes) {
                pack_map(pack, 0);
                return;
        }
        if (!json_parse(call->arguments.at, call->arguments.bytes, ARGUMENT_NODES_MAX, &json, why,
                        sizeof(why)) &&
            json_kind(json, 0) == JSON_OBJECT)
                pack_node(pack, json, 0);
        else
                pack_text(pack, call->arguments.at, call->arguments.bytes);
        json_free(json);
}

static void pack_calls(struct pack *pack, const struct conversation *conversation,
                       const struct turn *turn)
{
        uint32_t count = 0;

        for (const struct turn_call *call = turn->calls; call; call = call->next)
                count++;
        pack_word(pack, "tool_calls");
        pack_array(pack, count);
        for (const struct turn_call *call = turn->calls; call; call = call->next) {
                pack_map(pack, call->id.at ? 3 : 2);
                if (call->id.at) {
                        pack_word(pack, "id");
                        pack_text(pack, call->id.at, call->id.bytes);
                }
                pack_word(pack, "type");
                pack_word(pack, "function");
                pack_word(pack, "function");
                pack_map(pack, 2);
                pack_word(pack, "name");
                pack_text(pack, call->name.at, call->name.bytes);
                pack_word(pack, "arguments");
                pack_arguments(pack, conversation, call);
        }
}

static void pack_pair(struct pack *pack, const char *key, struct text value)
{
        if (!value.at)
                return;
        pack_word(pack, key);
        pack_text(pack, value.at, value.bytes);
}

/* Every message has content, because many templates fail without it. */
static void pack_turn(struct pack *pack, const struct conversation *conversation,
                      const struct turn *turn)
{
        pack_map(pack, 2u + (turn->reasoning.at != NULL) + (turn->name.at != NULL) +
                               (turn->call_id.at != NULL) + (turn->calls != NULL));
        pack_word(pack, "role");
        pack_word(pack, role_name(turn->role));
        pack_word(pack, "content");
        pack_text(pack, turn->content.at ? turn->content.at : "", turn->content.bytes);
        pack_pair(pack, "reasoning_content", turn->reasoning);
        pack_pair(pack, "name", turn->name);
        pack_pair(pack, "tool_call_id", turn->call_id);
        if (turn->calls)
                pack_calls(pack, conversation, turn);
}

static void pack_tool(struct pack *pack, const struct conversation *conversation,
                      const struct tool *tool)
{
        pack_map(pack, 2);
        pack_word(pack, "type");
        pack_word(pack, "function");
        pack_word(pack, "function");
        pack_map(pack, 2u + (tool->description.at != NULL) + tool->strict);
        pack_word(pack, "name");
        pack_text(pack, tool->name.at, tool->name.bytes);
        pack_pair(pack, "description", tool->description);
        if (tool->strict) {
                pack_word(pack, "strict");
                pack_bool(pack, true);
        }
        pack_word(pack, "parameters");
        if (tool->schema == JSON_NONE)
                pack_map(pack, 0);
        else
                pack_node(pack, conversation->json, tool->schema);
}

static void pack_var(struct pack *pack, const struct conversation *conversation,
                     const struct template_var *var)
{
        pack_text(pack, var->key.at, var->key.bytes);
        if (var->node != JSON_NONE)
                pack_node(pack, conversation->json, var->node);
        else if (var->word.at)
                pack_text(pack, var->word.at, var->word.bytes);
        else
                pack_bool(pack, var->flag);
}

/* How the prompt ends: see the head of conversation.h. */
static void set_end(const struct conversation *conversation, struct smv_generate *options)
{
        const struct turn *last = conversation->last_turn;
        bool begun = last && last->role == TURN_ASSISTANT && last->content.bytes && !last->calls;

        if (conversation->continuation != ASKED_NOTHING)
                begun = conversation->continuation == ASKED_YES;
        else if (conversation->new_answer == ASKED_YES)
                begun = false;
        options->continue_final_message = begun;
        options->add_generation_prompt = conversation->new_answer == ASKED_YES;
        if (conversation->new_answer == ASKED_NO)
                options->set |= SMV_SET_ADD_GENERATION_PROMPT;
}

/* Moves what was packed to the arena. */
static int keep(struct pack *pack, struct arena *arena, struct smv_packed *ret_packed)
{
        struct text copy = { 0 };

        if (!pack->result)
                copy = arena_copy(arena, pack->to.at, pack->to.count);
        bytes_deinit(&pack->to);
        *ret_packed = (struct smv_packed){ copy.at, copy.bytes };
        return copy.at ? 0 : -ENOMEM;
}

/* The messages from this turn on. */
static int pack_from(const struct conversation *conversation, const struct turn *first,
                     struct smv_packed *ret_messages)
{
        struct pack messages = { 0 };
        uint32_t count = 0;

        for (const struct turn *turn = first; turn; turn = turn->next)
                count++;
        pack_array(&messages, count);
        for (const struct turn *turn = first; turn; turn = turn->next)
                pack_turn(&messages, conversation, turn);
        return keep(&messages, conversation->arena, ret_messages);
}

int conversation_pack_behind(const struct conversation *conversation, const struct turn *last,
                             struct smv_packed *ret_messages)
{
        return pack_from(conversation, last->next, ret_messages);
}

int conversation_pack(struct conversation *conversation, struct smv_generate *options)
{
        struct pack tools = { 0 }, vars = { 0 };
        int r;

        join_front(conversation);
        move_later(conversation);
        set_end(conversation, options);
        r = pack_from(conversation, conversation->turns, &options->packed_messages);
        if (!r && conversation->tools) {
                pack_array(&tools, conversation->tool_count);
                for (const struct tool *tool = conversation->tools; tool; tool = tool->next)
                        pack_tool(&tools, conversation, tool);
                r = keep(&tools, conversation->arena, &options->packed_tools);
        }
        if (!r && conversation->vars) {
                pack_map(&vars, conversation->var_count);
                for (const struct template_var *var = conversation->vars; var; var = var->next)
                        pack_var(&vars, conversation, var);
                r = keep(&vars, conversation->arena, &options->packed_vars);
        }
        return r;
}
