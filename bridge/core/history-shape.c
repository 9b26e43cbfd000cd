#include "bridge/core/history-shape.h"

#include <errno.h>
#include <samovar/client.h>
#include <string.h>

#define QUESTION TEXT("a question")
#define SECOND   TEXT("a second question") /* templates compare messages by their texts */
#define THOUGHT  TEXT("an earlier thought")
#define ANSWER   TEXT("an earlier answer")
#define RESULT   TEXT("a result")
#define CALL_ID  TEXT("call12345") /* the only form that some templates take */
#define CALLED   TEXT("an_earlier_call")

/* ---- the shape ---- */

static bool has_reasoning(const struct conversation *conversation)
{
        for (const struct turn *turn = conversation->turns; turn; turn = turn->next)
                if (turn->reasoning.bytes)
                        return true;
        return false;
}

/* Is it a turn of the assistant, and the one before it is none? */
static bool is_one_answer(const struct conversation *conversation, const struct turn *last)
{
        const struct turn *before = NULL;

        for (const struct turn *turn = conversation->turns; turn && turn != last; turn = turn->next)
                before = turn;
        return last->role == TURN_ASSISTANT && (!before || before->role != TURN_ASSISTANT);
}

unsigned history_shape(const struct conversation *conversation, const struct turn *last)
{
        unsigned shape = 0;

        if (!is_one_answer(conversation, last))
                return 0;
        for (const struct turn *turn = last->next; turn; turn = turn->next) {
                if (turn->role == TURN_USER)
                        shape |= SHAPE_USER;
                else if (turn->role == TURN_TOOL && !(shape & SHAPE_USER))
                        shape |= SHAPE_RESULTS;
                else
                        return 0;
        }
        if (!shape || (shape & SHAPE_RESULTS && !last->calls) ||
            (shape & SHAPE_USER && has_reasoning(conversation)))
                return 0;
        return shape | (last->content.bytes ? SHAPE_CONTENT : 0) |
               (last->reasoning.bytes ? SHAPE_REASONING : 0);
}

/* ---- the sample ---- */

static void add_turn(struct conversation *sample, enum turn_role role, struct text content)
{
        struct turn *turn = conversation_turn(sample, role);

        if (!turn)
                return;
        turn->content = content;
        if (role == TURN_TOOL)
                turn->call_id = CALL_ID;
}

static void add_answer(struct conversation *sample, unsigned shape)
{
        struct turn *turn = conversation_turn(sample, TURN_ASSISTANT);
        struct turn_call *call;

        if (!turn)
                return;
        if (shape & SHAPE_CONTENT)
                turn->content = ANSWER;
        if (shape & SHAPE_REASONING)
                turn->reasoning = THOUGHT;
        call = shape & SHAPE_RESULTS ? conversation_call(sample, turn) : NULL;
        if (call) {
                call->id = CALL_ID;
                call->name = CALLED;
        }
}

int history_shape_pack(const struct conversation *conversation, unsigned shape, bool whole,
                       struct smv_packed *ret_messages)
{
        struct conversation sample = { .arena = conversation->arena };
        struct smv_generate options = { SMV_SIZE(smv_generate) };
        const struct turn *first = conversation->turns;

        if (first->role == TURN_SYSTEM)
                add_turn(&sample, TURN_SYSTEM, first->content);
        add_turn(&sample, TURN_USER, QUESTION);
        if (whole) {
                add_answer(&sample, shape);
                if (shape & SHAPE_RESULTS)
                        add_turn(&sample, TURN_TOOL, RESULT);
                if (shape & SHAPE_USER)
                        add_turn(&sample, TURN_USER, SECOND);
        }
        if (sample.arena->failed || conversation_pack(&sample, &options))
                return -ENOMEM;
        *ret_messages = options.packed_messages;
        return 0;
}

/* Where the words begin in the text; NULL: they are not in it. */
static const char *find(struct text text, struct text words)
{
        return memmem(text.at, text.bytes, words.at, words.bytes);
}

/* In front of the answer the model itself writes reasoning or nothing. */
bool history_shape_is_steady(unsigned shape, struct text question, struct text whole)
{
        struct text rest;
        const char *answer;

        if (whole.bytes < question.bytes || memcmp(whole.at, question.at, question.bytes))
                return false;
        rest = (struct text){ whole.at + question.bytes, whole.bytes - question.bytes };
        if ((shape & SHAPE_REASONING && !find(rest, THOUGHT)) ||
            (shape & SHAPE_RESULTS && !find(rest, CALLED)))
                return false;
        if (!(shape & SHAPE_CONTENT))
                return true;
        answer = find(rest, ANSWER);
        return answer && (shape & SHAPE_REASONING || answer == rest.at);
}
