#include "daemon/edge/wire-checks.h"

#include "daemon/edge/fields.h"

static const struct wire_row *row_of(enum wire_field number)
{
        return &field_at(number)->row;
}

int wire_refuse_missing(struct reading *in, enum wire_field number)
{
        const char *name = row_of(number)->name;

        return wire_refuse(in->problem, SMV_MISSING, in->request->id, name, "%s is missing", name);
}

/* Exactly one of these fields must be given; `wanted` names them for the message. */
static int check_one_of(struct reading *in, const enum wire_field *fields, size_t count,
                        const char *wanted)
{
        struct wire_request *request = in->request;
        const char *first = NULL;

        for (size_t i = 0; i < count; i++) {
                const char *name = row_of(fields[i])->name;

                if (!wire_has(request, fields[i]))
                        continue;
                if (first)
                        return wire_refuse(in->problem, SMV_BAD_FIELD, request->id, name,
                                           "%s and %s are given; give only one of them", first,
                                           name);
                first = name;
        }
        if (!first)
                return wire_refuse(in->problem, SMV_MISSING, request->id, row_of(fields[0])->name,
                                   "%s is missing", wanted);
        return 0;
}

/* Refuses the field if it is given although it is `wrong`; `how` ends the message. */
static int check_alone(struct reading *in, enum wire_field number, bool wrong, const char *how)
{
        struct wire_request *request = in->request;
        const char *name = row_of(number)->name;

        if (!wrong || !wire_has(request, number))
                return 0;
        return wire_refuse(in->problem, SMV_BAD_FIELD, request->id, name, "%s is given %s", name,
                           how);
}

/* Fields that describe a ring need a transport with a ring. */
static int check_hello(struct reading *in)
{
        static const enum wire_field of_rings[] = { WIRE_F_DOORBELL, WIRE_F_RING_BYTES,
                                                    WIRE_F_ASK_SLOTS };
        const struct wire_request *request = in->request;

        for (size_t i = 0; i < sizeof(of_rings) / sizeof(*of_rings); i++) {
                const char *name = row_of(of_rings[i])->name;

                if (request->transport == WIRE_SOCKET && wire_has(request, of_rings[i]))
                        return wire_refuse(in->problem, SMV_BAD_FIELD, request->id, name,
                                           "%s needs a ring, but transport is socket", name);
        }
        return check_alone(in, WIRE_F_WHOLE_ROWS, !wire_has(request, WIRE_F_ASK_SLOTS),
                           "without ask_slots");
}

/*
 * Checks that the fields about messages come with messages.  Those about calls may also come with a
 * handle, whose history has messages.
 */
static int check_messages(struct reading *in)
{
        static const enum wire_field of_messages[] = { WIRE_F_TEMPLATE_VARS,
                                                       WIRE_F_ADD_GENERATION_PROMPT,
                                                       WIRE_F_CONTINUE_FINAL_MESSAGE };
        static const enum wire_field of_calls[] = { WIRE_F_TOOLS, WIRE_F_TOOL_CHOICE,
                                                    WIRE_F_ALLOWED_TOOLS, WIRE_F_CALLS_MAX };
        bool goes_on = in->request->op == WIRE_GENERATE && wire_has(in->request, WIRE_F_HANDLE);
        int r = 0;

        for (size_t i = 0; !r && !goes_on && i < sizeof(of_calls) / sizeof(*of_calls); i++)
                r = check_alone(in, of_calls[i], !in->request->chat.messages.bytes,
                                "without messages");
        for (size_t i = 0; !r && i < sizeof(of_messages) / sizeof(*of_messages); i++)
                r = check_alone(in, of_messages[i], !in->request->chat.messages.bytes,
                                "without messages");
        return r;
}

/* Checks that the fields about calls come with tools, and that calls may come. */
static int check_calls(struct reading *in)
{
        static const enum wire_field of_calls[] = { WIRE_F_ALLOWED_TOOLS, WIRE_F_CALLS_MAX };
        const struct wire_chat *chat = &in->request->chat;
        bool none = chat->tool_choice == WIRE_TOOLS_NONE;
        int r = 0;

        for (size_t i = 0; !r && i < sizeof(of_calls) / sizeof(*of_calls); i++) {
                r = check_alone(in, of_calls[i], !chat->tools.count, "without tools");
                if (!r)
                        r = check_alone(in, of_calls[i], none, "with the tool_choice none");
        }
        if (r || chat->tool_choice != WIRE_TOOLS_REQUIRED)
                return r;
        r = check_alone(in, WIRE_F_TOOL_CHOICE, !chat->tools.count,
                        "as required, but there are no tools");
        return r ? r
                 : check_alone(in, WIRE_F_CONSTRAINT, true,
                               "with the tool_choice required: the answer is calls only");
}

/* Checks of generate and open. */
static int check_start(struct reading *in)
{
        static const enum wire_field starts[] = { WIRE_F_PROMPT, WIRE_F_TOKENS, WIRE_F_MESSAGES,
                                                  WIRE_F_HANDLE };
        struct wire_request *request = in->request;
        int r;

        if (request->op == WIRE_OPEN)
                r = check_one_of(in, starts, 3, "one of prompt, tokens, messages");
        else
                r = check_one_of(in, starts, 4, "one of prompt, tokens, messages, handle");
        if (!r)
                r = check_messages(in);
        if (!r)
                r = check_alone(in, WIRE_F_MODEL, wire_has(request, WIRE_F_HANDLE),
                                "with a handle, which has its own");
        return r;
}

/* For generate and fork: the number of each stream must fit 32 bits. */
static int check_streams(struct reading *in)
{
        struct wire_request *request = in->request;
        enum wire_field number = request->op == WIRE_FORK ? WIRE_F_COUNT : WIRE_F_N;
        const char *name = row_of(number)->name;
        uint32_t streams = wire_streams(request);

        if (streams < 2 || request->id <= UINT32_MAX - (streams - 1))
                return 0;
        return wire_refuse(in->problem, SMV_BAD_VALUE, request->id, name,
                           "%s is %u; from the id %u on there are %u numbers", name, streams,
                           request->id, UINT32_MAX - request->id + 1);
}

/* Without tokens, a generate is for the logprobs of its prompt. */
static int check_max_tokens(struct reading *in)
{
        const struct wire_request *request = in->request;
        const struct wire_row *row = row_of(WIRE_F_MAX_TOKENS);

        if (!wire_has(request, WIRE_F_MAX_TOKENS) || request->max_tokens ||
            wire_has(request, WIRE_F_PROMPT_LOGPROBS))
                return 0;
        return wire_refuse(in->problem, SMV_BAD_VALUE, request->id, row->name,
                           "%s is 0; it may be from %.0f to %.0f, or 0 with prompt_logprobs",
                           row->name, row->low, row->high);
}

/* A cut that keeps all tokens is taken beside mirostat. */
static int check_mirostat(struct reading *in)
{
        const struct wire_request *request = in->request;
        const struct {
                enum wire_field field;
                bool cuts;
        } cuts[] = {
                { WIRE_F_TOP_K, request->top_k },
                { WIRE_F_TOP_P, request->top_p < 1 },
                { WIRE_F_MIN_P, request->min_p > 0 },
                { WIRE_F_N_SIGMA, request->n_sigma > 0 },
                { WIRE_F_TYPICAL, request->typical > 0 && request->typical < 1 },
                { WIRE_F_XTC_CHANCE, request->xtc_chance > 0 },
                { WIRE_F_ORDER, request->order == WIRE_TEMPERATURE_LAST },
        };
        int r = 0;

        for (size_t i = 0; !r && i < sizeof(cuts) / sizeof(*cuts); i++)
                r = check_alone(in, cuts[i].field, cuts[i].cuts && request->mirostat_tau > 0,
                                "with mirostat_tau, which makes the only cut");
        return r ? r
                 : check_alone(in, WIRE_F_MIROSTAT_ETA, request->mirostat_tau <= 0,
                               "without mirostat_tau");
}

/* Questions to the client, and rows that it sees. */
static int check_asking(struct reading *in)
{
        const struct wire_request *request = in->request;
        bool asks = request->ask != SMV_ASK_NOTHING;
        const char *chooses = "with ask: token, by which the client draws itself";
        static const enum wire_field drawn[] = { WIRE_F_LOGPROBS, WIRE_F_MIROSTAT_TAU,
                                                 WIRE_F_REASONING_MAX };
        static const enum wire_field how[] = { WIRE_F_ASK_MS, WIRE_F_ASK_LATE };
        int r = check_alone(in, WIRE_F_N, asks && request->n > 1,
                            "with ask, which is about one stream");

        if (!r)
                r = check_alone(in, WIRE_F_KEEP_MS, asks,
                                "with ask, whose questions end with the connection");
        if (!r)
                r = check_alone(in, WIRE_F_ASK,
                                wire_has(request, WIRE_F_MAX_TOKENS) && !request->max_tokens,
                                "with max_tokens 0, which draws nothing");
        for (size_t i = 0; !r && i < sizeof(drawn) / sizeof(*drawn); i++)
                r = check_alone(in, drawn[i], request->ask == SMV_ASK_TOKEN, chooses);
        for (size_t i = 0; !r && i < sizeof(how) / sizeof(*how); i++)
                r = check_alone(in, how[i], !asks, "without ask");
        return r ? r
                 : check_alone(in, WIRE_F_WHOLE_ROW, request->whole_row && !asks,
                               "without ask: a whole row stays until the client answers");
}

static int check_generate(struct reading *in)
{
        int r = check_start(in);

        if (!r)
                r = check_max_tokens(in);
        if (!r)
                r = check_calls(in);
        if (!r)
                r = check_alone(in, WIRE_F_N, wire_has(in->request, WIRE_F_HANDLE),
                                "with a handle, which has one history: fork it");
        if (!r)
                r = check_alone(in, WIRE_F_KEEP_MS, in->request->n > 1,
                                "with n: ask for each resumable stream by itself");
        if (!r)
                r = check_alone(in, WIRE_F_PROGRESS, wire_has(in->request, WIRE_F_KEEP_MS),
                                "with keep_ms: no progress is stored");
        if (!r)
                r = check_mirostat(in);
        if (!r)
                r = check_asking(in);
        if (!r)
                r = check_alone(in, WIRE_F_REASONING_END,
                                !wire_has(in->request, WIRE_F_REASONING_MAX),
                                "without reasoning_max");
        return r ? r : check_streams(in);
}

/* The fork of a handle is no stream, so it has no sampling fields. */
static int check_fork(struct reading *in)
{
        static const enum wire_field of[] = { WIRE_F_HANDLE, WIRE_F_STREAM };
        static const enum wire_field drawn[] = {
                WIRE_F_MAX_TOKENS,  WIRE_F_TEMPERATURE, WIRE_F_TOP_K,
                WIRE_F_TOP_P,       WIRE_F_MIN_P,       WIRE_F_SEED,
                WIRE_F_DEADLINE_MS, WIRE_F_PRIORITY,    WIRE_F_SAMPLE_INDEX,
        };
        int r = check_one_of(in, of, 2, "one of stream, handle");

        if (!r)
                r = check_max_tokens(in);
        for (size_t i = 0; !r && i < sizeof(drawn) / sizeof(*drawn); i++)
                r = check_alone(in, drawn[i], !wire_has(in->request, WIRE_F_STREAM),
                                "without a stream");
        if (!r)
                r = check_alone(in, WIRE_F_KEEP_MS, wire_has(in->request, WIRE_F_STREAM),
                                "with a stream: only a forked handle can be kept");
        return r ? r : check_streams(in);
}

static int check_append(struct reading *in)
{
        static const enum wire_field parts[] = { WIRE_F_TOKENS, WIRE_F_TEXT, WIRE_F_MESSAGES };
        int r = check_one_of(in, parts, 3, "one of tokens, text, messages");

        return r ? r : check_messages(in);
}

static int check_pieces(struct reading *in)
{
        static const enum wire_field of[] = { WIRE_F_TOKENS, WIRE_F_FROM };
        int r = check_one_of(in, of, 2, "one of tokens, from");

        return r ? r
                 : check_alone(in, WIRE_F_LENGTH, !wire_has(in->request, WIRE_F_FROM),
                               "without from");
}

int wire_check(struct reading *in)
{
        struct wire_request *request = in->request;

        for (uint32_t i = 0; i < WIRE_FIELD_N; i++)
                if (row_of(i)->required & 1u << request->op && !wire_has(request, i))
                        return wire_refuse_missing(in, i);
        switch (request->op) {
        case WIRE_HELLO:
                return check_hello(in);
        case WIRE_GENERATE:
                return check_generate(in);
        case WIRE_OPEN:
                return check_start(in);
        case WIRE_FORK:
                return check_fork(in);
        case WIRE_APPEND:
                return check_append(in);
        case WIRE_PIECES:
                return check_pieces(in);
        case WIRE_PUBLISH:
                if (request->to == WIRE_TO_GROUP && !wire_has(request, WIRE_F_GROUP))
                        return wire_refuse_missing(in, WIRE_F_GROUP);
                if (check_alone(in, WIRE_F_GROUP, request->to != WIRE_TO_GROUP,
                                "without to: group"))
                        return WIRE_E_REFUSED;
                /* fall through */
        case WIRE_PIN:
                /* No client waits for tokens of this request. */
                if (!wire_has(request, WIRE_F_PRIORITY))
                        request->priority = WIRE_BACKGROUND;
                return 0;
        default:
                return 0;
        }
}
