#include "bridge/ollama/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samovar/protocol.h>

#include "bridge/core/constraint.h"
#include "bridge/core/conversation.h"
#include "bridge/core/logprobs.h"
#include "bridge/core/penalties.h"
#include "bridge/core/sampling.h"
#include "bridge/core/tools.h"

#define PARAM_BYTES     48u
#define TEMPERATURE_MAX 100
#define TEXT_ONLY       "the model reads text only"

void ollama_read_model(struct fields *fields, struct text *ret_model)
{
        if (!field_text(fields, 0, "model", ret_model))
                field_text(fields, 0, "name", ret_model);
        if (!ret_model->bytes)
                fields_fail(fields, FAILURE_REQUEST, "model", "model is missing: a string");
}

/* ---- options ---- */

/* Has the option none of these values?  The second is that of Ollama's defaults. */
static void refuse_unless(struct fields *fields, uint32_t options, const char *name, double neutral,
                          double usual)
{
        double value;

        if (!field_real(fields, options, name, -1e9, 1e9, &value) || fabs(value - neutral) < 1e-6 ||
            fabs(value - usual) < 1e-6)
                return;
        fields_fail(fields, FAILURE_UNSUPPORTED, name,
                    "%s is %g, which is not supported: " NO_SAMPLER "; without it, or with %g, the "
                    "request is served",
                    name, value, neutral);
}

/* -1 and -2 are Ollama's words for no limit; so are all numbers that are not positive. */
static void read_length(struct fields *fields, uint32_t options, struct smv_generate *generate)
{
        int64_t length;

        generate->max_tokens = UINT32_MAX;
        if (field_int(fields, options, "num_predict", &length) && length > 0 && length < UINT32_MAX)
                generate->max_tokens = (uint32_t)length;
}

static void read_seed(struct fields *fields, uint32_t options, struct smv_generate *generate)
{
        int64_t seed;

        if (field_int(fields, options, "seed", &seed) && seed != -1) /* -1: by chance */
                sampling_read_seed(fields, options, generate);
}

static void read_options(struct call *call, struct fields *fields, struct smv_generate *generate)
{
        uint32_t options = field_object(fields, 0, "options");

        read_length(fields, options, generate);
        if (options == JSON_NONE)
                return;
        sampling_read(fields, options, TEMPERATURE_MAX, generate);
        sampling_read_stops(fields, &call->arena, options, "stop", generate);
        read_seed(fields, options, generate);
        penalties_read(fields, &call->arena, options, SMV_PENALTY_MAX, generate);
        refuse_unless(fields, options, "tfs_z", 1, 0);
}

/* ---- keep_alive ---- */

/* Reads one number with its unit, as Go writes durations.  NULL: it is none. */
static const char *read_part(const char *at, double *to)
{
        static const struct {
                const char *name;
                double seconds;
        } units[] = { { "ns", 1e-9 }, { "us", 1e-6 }, { "\u00b5s", 1e-6 }, { "ms", 1e-3 },
                      { "s", 1 },     { "m", 60 },    { "h", 3600 } };
        size_t digits = strspn(at, "0123456789.");
        const char *unit = at + digits;

        if (!strspn(at, "0123456789"))
                return NULL;
        for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
                size_t bytes = strlen(units[i].name);

                if (!strncmp(unit, units[i].name, bytes)) {
                        *to += atof(at) * units[i].seconds;
                        return unit + bytes;
                }
        }
        return NULL;
}

/* "5m", "-1m", "1h30m", "0" */
static bool read_duration(const char *text, double *ret_seconds)
{
        const char *at = text + strspn(text, "+-");
        double seconds = 0;

        if (at > text + 1)
                return false;
        if (!strcmp(at, "0")) {
                *ret_seconds = 0;
                return true;
        }
        do
                at = read_part(at, &seconds);
        while (at && *at);
        *ret_seconds = *text == '-' ? -seconds : seconds;
        return at != NULL;
}

/* The model is always in memory: the field decides only what an empty request is told. */
static void read_keep_alive(struct fields *fields, struct ollama_request *request)
{
        uint32_t node = field_of(fields, 0, "keep_alive");
        const char *text = json_string(fields->json, node, NULL);
        double seconds = 1;

        if (node == JSON_NONE)
                return;
        if (text ? !read_duration(text, &seconds) : !json_real(fields->json, node, &seconds))
                fields_fail(fields, FAILURE_REQUEST, "keep_alive",
                            "keep_alive must be a number of seconds, or a duration such as 5m, -1m "
                            "or 1h30m");
        request->unload = seconds == 0;
}

/* ---- what both routes have ---- */

/* true, false, or a word for how much. */
static void read_think(struct fields *fields, struct conversation *conversation)
{
        uint32_t node = field_of(fields, 0, "think");
        struct text word = text_of(fields->json, node);
        struct template_var *var;
        bool think = true;

        if (node == JSON_NONE)
                return;
        if (word.at ? !text_is(word, "low") && !text_is(word, "medium") && !text_is(word, "high")
                    : !json_bool(fields->json, node, &think)) {
                fields_fail(fields, FAILURE_REQUEST, "think",
                            "think must be true, false, low, medium or high");
                return;
        }
        conversation_think(conversation, think);
        if (!word.at)
                return;
        var = conversation_var(conversation, TEXT("reasoning_effort"));
        if (var)
                var->word = word;
}

static void read_common(struct call *call, struct fields *fields, struct ollama_request *request)
{
        request->stream = true;
        field_bool(fields, 0, "stream", &request->stream);
        read_options(call, fields, &request->options);
        read_keep_alive(fields, request);
        logprobs_read(fields, &request->options, &request->logprobs);
        constraint_read_ollama(call, fields, &request->options);
}

/* ---- chat ---- */

static void read_message(struct fields *fields, struct conversation *conversation, uint32_t message,
                         const char *param)
{
        enum turn_role role = TURN_USER;
        struct turn *turn;

        if (!tools_read_role(fields, message, param, &role))
                return;
        turn = conversation_turn(conversation, role);
        if (!turn)
                return;
        field_text(fields, message, "content", &turn->content);
        field_refuse(fields, message, "images", TEXT_ONLY);
        if (role == TURN_TOOL) {
                field_text(fields, message, "tool_name", &turn->name);
                field_text(fields, message, "tool_call_id", &turn->call_id);
        }
        if (role != TURN_ASSISTANT)
                return;
        field_text(fields, message, "thinking", &turn->reasoning);
        tools_read_calls(fields, conversation, turn, message, param);
}

static void read_messages(struct fields *fields, struct conversation *conversation)
{
        uint32_t messages = field_array(fields, 0, "messages");
        char param[PARAM_BYTES];
        unsigned index = 0;

        for (uint32_t message = json_first(fields->json, messages);
             message != JSON_NONE && !fields->failed; message = json_next(fields->json, message)) {
                snprintf(param, sizeof(param), "messages[%u]", index++);
                read_message(fields, conversation, message, param);
        }
}

/* ---- generate ---- */

static void read_prompt(struct fields *fields, struct ollama_request *request,
                        struct conversation *conversation)
{
        struct text system = { 0 };
        struct turn *turn;

        field_text(fields, 0, "prompt", &request->prompt);
        field_text(fields, 0, "system", &system);
        field_bool(fields, 0, "raw", &request->raw);
        field_refuse(fields, 0, "images", TEXT_ONLY);
        field_refuse(fields, 0, "suffix", "the daemon does not fill in the middle of a text");
        field_refuse(fields, 0, "template", "the model has its own; raw takes a prompt as it is");
        field_refuse(fields, 0, "context", "send the turns before as messages to /api/chat");
        turn = system.bytes ? conversation_turn(conversation, TURN_SYSTEM) : NULL;
        if (turn)
                turn->content = system;
        turn = conversation_turn(conversation, TURN_USER);
        if (turn)
                turn->content = request->prompt;
}

void ollama_read(struct call *call, struct fields *fields, struct ollama_request *request)
{
        struct conversation conversation = { .arena = &call->arena, .json = call->json };

        request->options = (struct smv_generate){ SMV_SIZE(smv_generate), .clamp = 1, .parts = 1 };
        ollama_read_model(fields, &request->model);
        if (request->chat) {
                read_messages(fields, &conversation);
                tools_read(fields, &conversation);
        } else {
                read_prompt(fields, request, &conversation);
        }
        read_think(fields, &conversation);
        read_common(call, fields, request);
        constraint_settle(call, fields, &request->options);
        request->empty = request->chat ? !conversation.turns : !request->prompt.bytes;
        if (fields->failed || request->empty)
                return;
        if (conversation_pack(&conversation, &request->options))
                call->arena.failed = true;
}
