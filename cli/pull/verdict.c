#include "cli/pull/verdict.h"

#include <stdio.h>
#include <string.h>

#include "cli/reply.h"

#define BLOCK 16u /* positions, in which the pool counts */

static uint64_t number(const struct json_document *json, uint32_t object, const char *key)
{
        uint64_t value = 0;

        json_whole(json, json_member(json, object, key), &value);
        return value;
}

static void read_verdict(const struct json_document *json, struct verdict *verdict)
{
        const char *why = json_string(json, json_member(json, 0, "why"), NULL), *behind;
        uint32_t memory = json_member(json, 0, "memory"), model = json_member(json, 0, "model");

        verdict->known = json_bool(json, json_member(json, 0, "served"), &verdict->served);
        /* The path is of a file that the user did not name. */
        behind = why && *why == '/' ? strstr(why, ": ") : NULL;
        snprintf(verdict->why, sizeof(verdict->why), "%s", behind ? behind + 2 : why ? why : "");
        verdict->parameters = number(json, model, "parameters");
        verdict->context = number(json, 0, "context");
        verdict->weights = number(json, memory, "weights");
        verdict->activations = number(json, memory, "activations");
        verdict->drafts = number(json, memory, "drafts");
        verdict->sequence = number(json, 0, "kv_of_context");
        verdict->available = number(json, 0, "available_bytes");
        verdict->measured = verdict->weights && verdict->context && verdict->sequence;
}

void verdict_ask(const char *model, struct verdict *ret_verdict)
{
        struct json_document *json;
        struct bytes text = { 0 };

        *ret_verdict = (struct verdict){ 0 };
        if (!daemon_describe(model, &text) && !reply_parse(text.at, "what samovard says", &json)) {
                read_verdict(json, ret_verdict);
                json_free(json);
        }
        bytes_deinit(&text);
}

enum fit verdict_fit(const struct verdict *verdict, uint64_t weights, uint64_t *ret_positions)
{
        uint64_t fixed = weights + verdict->activations + verdict->drafts, block, left;

        *ret_positions = verdict->context;
        if (fixed + verdict->sequence <= verdict->available)
                return FIT_WHOLE;
        block = verdict->sequence / ((verdict->context + BLOCK - 1) / BLOCK);
        left = fixed < verdict->available ? verdict->available - fixed : 0;
        *ret_positions = block ? left / block * BLOCK : 0;
        return *ret_positions ? FIT_SHORTER : FIT_NOT;
}
