/*
 * Every field of every request, one row each.  The decoder, the tests that walk the ranges and
 * docs/reference/protocol.md follow this table.
 */
#include "daemon/edge/fields.h"
#include "daemon/edge/field-readers.h"

#include <samovar/ring.h>
#include <stdio.h>
#include <string.h>

#define U32_MAX      4294967295.0
#define FEATURES_MAX 32u
#define WORD_MAX     32u

/*
 * These will have a meaning in a later version, so a request with one of them is refused, not
 * misread.
 */
static const char *const reserved[] = {
        "adapter",
        "draft",
        "snapshot",
};

#define HELLO      (1u << WIRE_HELLO)
#define GENERATE   (1u << WIRE_GENERATE)
#define CANCEL     (1u << WIRE_CANCEL)
#define TOKENIZE   (1u << WIRE_TOKENIZE)
#define DETOKENIZE (1u << WIRE_DETOKENIZE)
#define TEMPLATE   (1u << WIRE_TEMPLATE)
#define OPEN       (1u << WIRE_OPEN)
#define APPEND     (1u << WIRE_APPEND)
#define TRUNCATE   (1u << WIRE_TRUNCATE)
#define FORK       (1u << WIRE_FORK)
#define CLOSE      (1u << WIRE_CLOSE)
#define PIN        (1u << WIRE_PIN)
#define ATTACH     (1u << WIRE_ATTACH)
#define DETACH     (1u << WIRE_DETACH)
#define DROP       (1u << WIRE_DROP)
#define PUBLISH    (1u << WIRE_PUBLISH)
#define REVOKE     (1u << WIRE_REVOKE)
#define END        (1u << WIRE_END)
#define PIECES     (1u << WIRE_PIECES)
#define POOL       (1u << WIRE_POOL)
#define ALL        ((1u << WIRE_OP_N) - 1)
#define CHAT       (GENERATE | TEMPLATE | OPEN)
#define MESSAGES   (CHAT | APPEND)
#define ON_HANDLE  (APPEND | TRUNCATE | CLOSE | PIN | PUBLISH | REVOKE)
#define SAMPLED    (GENERATE | FORK)
#define WITH_MODEL (CHAT | TOKENIZE | DETOKENIZE | PIECES)
#define AT(member) offsetof(struct wire_request, member)

/* clang-format off */
static const struct field fields[WIRE_FIELD_N] = {
        /* name, number, type, low, high, above, member_max, ops, required */
        { { "op",          WIRE_F_OP,          "text",    1, WORD_MAX, 0, 0,                         ALL, ALL },               read_op,          AT(op) },
        { { "id",          WIRE_F_ID,          "uint",    1, U32_MAX, 0, 0,                          ALL, ALL },               read_uint32,      AT(id) },
        { { "versions",    WIRE_F_VERSIONS,    "uints",   2, 2, 0, 0,                                HELLO, HELLO },           read_versions,    0 },
        { { "features",    WIRE_F_FEATURES,    "texts",   0, FEATURES_MAX, 0, SMV_NAME_BYTES_MAX,    HELLO, 0 },               read_features,    0 },
        { { "transport",   WIRE_F_TRANSPORT,   "text",    1, WORD_MAX, 0, 0,                         HELLO, 0 },               read_transport,   0 },
        { { "doorbell",    WIRE_F_DOORBELL,    "text",    1, WORD_MAX, 0, 0,                         HELLO, 0 },               read_doorbell,    0 },
        { { "ring_bytes",  WIRE_F_RING_BYTES,  "uint",    SMV_RING_BYTES_MIN, SMV_RING_BYTES_MAX, 0, 0, HELLO, 0 },            read_ring_bytes,  0 },
        { { "while_stopping", WIRE_F_WHILE_STOPPING, "bool", 0, 1, 0, 0,                             HELLO, 0 },               read_bool,        AT(while_stopping) },
        { { "principal",   WIRE_F_PRINCIPAL,   "text",    1, SMV_PRINCIPAL_BYTES_MAX, 0, 0,          HELLO, 0 },               read_name,        AT(principal) },
        { { "model",       WIRE_F_MODEL,       "text",    1, SMV_NAME_BYTES_MAX, 0, 0,               WITH_MODEL, 0 },            read_text,        AT(model) },
        { { "prompt",      WIRE_F_PROMPT,      "text",    0, U32_MAX, 0, 0,                          GENERATE | OPEN, 0 },     read_text,        AT(prompt) },
        { { "tokens",      WIRE_F_TOKENS,      "ids",     1, SMV_TOKENS_MAX, 0, 0,                   GENERATE | OPEN | APPEND | DETOKENIZE | PIECES, DETOKENIZE }, read_tokens, 0 },
        { { "max_tokens",  WIRE_F_MAX_TOKENS,  "uint",    1, U32_MAX, 0, 0,                          SAMPLED, 0 },               read_max_tokens,  AT(max_tokens) },
        { { "clamp",       WIRE_F_CLAMP,       "bool",    0, 1, 0, 0,                                GENERATE, 0 },            read_bool,        AT(clamp) },
        { { "temperature", WIRE_F_TEMPERATURE, "float",   0, SMV_TEMPERATURE_MAX, 0, 0,              SAMPLED, 0 },               read_float,       AT(temperature) },
        { { "top_k",       WIRE_F_TOP_K,       "uint",    0, SMV_TOP_K_MAX, 0, 0,                    SAMPLED, 0 },               read_uint32,      AT(top_k) },
        { { "top_p",       WIRE_F_TOP_P,       "float",   0, 1, 1, 0,                                SAMPLED, 0 },               read_float,       AT(top_p) },
        { { "min_p",       WIRE_F_MIN_P,       "float",   0, 1, 0, 0,                                SAMPLED, 0 },               read_float,       AT(min_p) },
        { { "seed",        WIRE_F_SEED,        "uint",    0, U64_LIMIT, 0, 0,                        SAMPLED, 0 },               read_uint64,      AT(seed) },
        { { "n_sigma",     WIRE_F_N_SIGMA,      "float",   0, SMV_N_SIGMA_MAX, 0, 0,          GENERATE, 0 },             read_float,       AT(n_sigma) },
        { { "typical",     WIRE_F_TYPICAL,      "float",   0, 1, 0, 0,                        GENERATE, 0 },             read_float,       AT(typical) },
        { { "xtc_chance",  WIRE_F_XTC_CHANCE,   "float",   0, 1, 0, 0,                        GENERATE, 0 },             read_float,       AT(xtc_chance) },
        { { "xtc_least",   WIRE_F_XTC_LEAST,    "float",   0, 1, 0, 0,                        GENERATE, 0 },             read_float,       AT(xtc_least) },
        { { "temperature_range", WIRE_F_TEMPERATURE_RANGE, "float",   0, SMV_TEMPERATURE_MAX, 0, 0,      GENERATE, 0 },             read_float,       AT(temperature_range) },
        { { "temperature_exponent", WIRE_F_TEMPERATURE_EXPONENT, "float",   0, SMV_EXPONENT_MAX, 0, 0,         GENERATE, 0 },             read_float,       AT(temperature_exponent) },
        { { "order",       WIRE_F_ORDER,        "text",    1, WORD_MAX, 0, 0,                 GENERATE, 0 },             read_order,       0 },
        { { "logit_bias",  WIRE_F_LOGIT_BIAS,   "biases",  0, SMV_BIASES_MAX, 0, 0,           GENERATE, 0 },             read_biases,      AT(logit_bias) },
        { { "presence_penalty", WIRE_F_PRESENCE_PENALTY, "float",   -SMV_PENALTY_MAX, SMV_PENALTY_MAX, 0, 0, GENERATE, 0 },             read_float,       AT(penalties.presence) },
        { { "frequency_penalty", WIRE_F_FREQUENCY_PENALTY, "float",   -SMV_PENALTY_MAX, SMV_PENALTY_MAX, 0, 0, GENERATE, 0 },             read_float,       AT(penalties.frequency) },
        { { "repetition_penalty", WIRE_F_REPETITION_PENALTY, "float",   0, SMV_PENALTY_MAX, 1, 0,          GENERATE, 0 },             read_float,       AT(penalties.repetition) },
        { { "repeat_window", WIRE_F_REPEAT_WINDOW, "uint",    1, SMV_WINDOW_MAX, 0, 0,           GENERATE, 0 },             read_uint32,      AT(penalties.repeat_window) },
        { { "dry_multiplier", WIRE_F_DRY_MULTIPLIER, "float",   0, SMV_PENALTY_MAX, 0, 0,          GENERATE, 0 },             read_float,       AT(penalties.dry_multiplier) },
        { { "dry_base",    WIRE_F_DRY_BASE,     "float",   0, SMV_PENALTY_MAX, 1, 0,          GENERATE, 0 },             read_float,       AT(penalties.dry_base) },
        { { "dry_allowed", WIRE_F_DRY_ALLOWED,  "uint",    1, SMV_WINDOW_MAX, 0, 0,           GENERATE, 0 },             read_uint32,      AT(penalties.dry_allowed) },
        { { "dry_window",  WIRE_F_DRY_WINDOW,   "uint",    1, SMV_WINDOW_MAX, 0, 0,           GENERATE, 0 },             read_uint32,      AT(penalties.dry_window) },
        { { "dry_breakers", WIRE_F_DRY_BREAKERS, "texts",   0, SMV_BREAKERS_MAX, 0, SMV_STOP_BYTES_MAX, GENERATE, 0 },             read_texts,       AT(dry_breakers) },
        { { "no_repeat_ngram", WIRE_F_NO_REPEAT_NGRAM, "uint",    0, SMV_NGRAM_MAX, 0, 0,            GENERATE, 0 },             read_uint32,      AT(penalties.no_repeat_ngram) },
        { { "min_tokens",  WIRE_F_MIN_TOKENS,   "uint",    0, U32_MAX, 0, 0,                  GENERATE, 0 },             read_uint32,      AT(penalties.min_tokens) },
        { { "allowed_tokens", WIRE_F_ALLOWED_TOKENS, "ids",     1, SMV_TOKENS_MAX, 0, 0,           GENERATE, 0 },             read_id_list,     AT(allowed_tokens) },
        { { "banned_tokens", WIRE_F_BANNED_TOKENS, "ids",     0, SMV_TOKENS_MAX, 0, 0,           GENERATE, 0 },             read_id_list,     AT(banned_tokens) },
        { { "banned_texts", WIRE_F_BANNED_TEXTS, "texts",   0, SMV_BANNED_TEXTS_MAX, 0, SMV_STOP_BYTES_MAX, GENERATE, 0 },             read_texts,       AT(banned_texts) },
        { { "stop",        WIRE_F_STOP,        "texts",   1, SMV_STOPS_MAX, 0, SMV_STOP_BYTES_MAX,   GENERATE, 0 },            read_stop,        0 },
        { { "stop_tokens", WIRE_F_STOP_TOKENS, "ids",     0, SMV_STOPS_MAX, 0, 0,                    GENERATE, 0 },            read_stop_tokens, 0 },
        { { "ignore_eos",  WIRE_F_IGNORE_EOS,  "bool",    0, 1, 0, 0,                                GENERATE, 0 },            read_bool,        AT(ignore_eos) },
        { { "stream",      WIRE_F_STREAM,      "uint",    1, U32_MAX, 0, 0,                          CANCEL | FORK | DETACH, CANCEL | DETACH }, read_uint32, AT(stream) },
        { { "text",        WIRE_F_TEXT,        "text",    0, U32_MAX, 0, 0,                          TOKENIZE | APPEND, TOKENIZE }, read_text,   AT(text) },
        { { "messages",    WIRE_F_MESSAGES,    "maps",    1, SMV_MESSAGES_MAX, 0, 0,                 MESSAGES, TEMPLATE },         read_maps,        AT(chat.messages) },
        { { "tools",       WIRE_F_TOOLS,       "maps",    0, SMV_MESSAGES_MAX, 0, 0,                 MESSAGES, 0 },                read_maps,        AT(chat.tools) },
        { { "template_vars", WIRE_F_TEMPLATE_VARS, "map", 0, SMV_KEYS_MAX, 0, 0,                     MESSAGES, 0 },                read_vars,        AT(chat.template_vars) },
        { { "add_generation_prompt", WIRE_F_ADD_GENERATION_PROMPT, "bool", 0, 1, 0, 0,               MESSAGES, 0 },                read_bool,        AT(chat.add_generation_prompt) },
        { { "continue_final_message", WIRE_F_CONTINUE_FINAL_MESSAGE, "bool", 0, 1, 0, 0,             MESSAGES, 0 },                read_bool,        AT(chat.continue_final_message) },
        { { "tokenize",    WIRE_F_TOKENIZE,    "bool",    0, 1, 0, 0,                                TEMPLATE, 0 },            read_bool,        AT(tokenize) },
        { { "priority",    WIRE_F_PRIORITY,    "text",    1, WORD_MAX, 0, 0,                         SAMPLED | PIN | PUBLISH, 0 }, read_priority,    0 },
        { { "deadline_ms", WIRE_F_DEADLINE_MS, "uint",    1, U32_MAX, 0, 0,                          SAMPLED, 0 },               read_uint32,      AT(deadline_ms) },
        { { "handle",      WIRE_F_HANDLE,      "uint",    1, U64_LIMIT, 0, 0,                        ON_HANDLE | SAMPLED, ON_HANDLE }, read_uint64,   AT(handle) },
        { { "length",      WIRE_F_LENGTH,      "uint",    0, U32_MAX, 0, 0,                          TRUNCATE | PUBLISH | PIECES, TRUNCATE }, read_uint32,   AT(length) },
        { { "count",       WIRE_F_COUNT,       "uint",    1, SMV_FORKS_MAX, 0, 0,                    FORK, FORK },             read_uint32,      AT(count) },
        { { "logprobs",    WIRE_F_LOGPROBS,    "uint",    0, SMV_LOGPROBS_MAX, 0, 0,                 GENERATE, 0 },            read_uint32,      AT(logprobs) },
        { { "n",           WIRE_F_N,           "uint",    1, SMV_SAMPLES_MAX, 0, 0,                  GENERATE, 0 },            read_uint32,      AT(n) },
        { { "sample_index", WIRE_F_SAMPLE_INDEX, "uint",  0, U32_MAX, 0, 0,                          SAMPLED, 0 },             read_uint32,      AT(sample_index) },
        { { "pin_ms",      WIRE_F_PIN_MS,      "uint",    0, U32_MAX, 0, 0,                          PIN, PIN },               read_uint32,      AT(pin_ms) },
        { { "keep_ms",     WIRE_F_KEEP_MS,     "uint",    1, SMV_KEEP_MS_MAX, 0, 0,                  GENERATE | OPEN | FORK, 0 }, read_uint32,   AT(keep_ms) },
        { { "resume_id",   WIRE_F_RESUME_ID,   "uint",    1, U64_LIMIT, 0, 0,                        ATTACH | DROP, ATTACH | DROP }, read_uint64,      AT(resume_id) },
        { { "from",        WIRE_F_FROM,        "uint",    0, U32_MAX, 0, 0,                          ATTACH | PIECES | POOL, 0 }, read_uint32,  AT(from) },
        { { "to",          WIRE_F_TO,          "text",    1, WORD_MAX, 0, 0,                         PUBLISH, PUBLISH },       read_to,          0 },
        { { "group",       WIRE_F_GROUP,       "uint",    0, U32_MAX, 0, 0,                          PUBLISH, 0 },             read_uint32,      AT(group) },
        { { "number",      WIRE_F_NUMBER,      "uint",    1, U64_LIMIT, 0, 0,                        END, END },               read_uint64,      AT(number) },
        { { "control_text", WIRE_F_CONTROL_TEXT, "bool",  0, 1, 0, 0,                                GENERATE, 0 },            read_bool,        AT(control_text) },
        { { "progress",    WIRE_F_PROGRESS,    "bool",    0, 1, 0, 0,                                GENERATE, 0 },            read_bool,        AT(progress) },
        { { "prompt_logprobs", WIRE_F_PROMPT_LOGPROBS, "uint", 0, SMV_LOGPROBS_MAX, 0, 0,            GENERATE, 0 },            read_uint32,      AT(prompt_logprobs) },
        { { "parts",       WIRE_F_PARTS,       "bool",    0, 1, 0, 0,                                GENERATE, 0 },            read_bool,        AT(parts) },
        { { "constraint",  WIRE_F_CONSTRAINT,  "text",    1, SMV_CONSTRAINT_BYTES_MAX, 0, 0,         GENERATE, 0 },            read_text,        AT(constraint) },
        { { "reasoning_max", WIRE_F_REASONING_MAX, "uint", 0, U32_MAX, 0, 0,                         GENERATE, 0 },            read_uint32,      AT(reasoning_max) },
        { { "reasoning_end", WIRE_F_REASONING_END, "text", 1, SMV_REASONING_END_MAX, 0, 0,           GENERATE, 0 },            read_text,        AT(reasoning_end) },
        { { "prediction",  WIRE_F_PREDICTION,  "text",    1, SMV_PREDICTION_BYTES_MAX, 0, 0,         GENERATE, 0 },            read_text,        AT(prediction) },
        { { "draft_tokens", WIRE_F_DRAFT_TOKENS, "uint",  0, SMV_DRAFT_TOKENS_MAX, 0, 0,             GENERATE, 0 },            read_uint32,      AT(draft_tokens) },
        { { "tool_choice", WIRE_F_TOOL_CHOICE, "text",    1, WORD_MAX, 0, 0,                         GENERATE, 0 },            read_tool_choice, 0 },
        { { "allowed_tools", WIRE_F_ALLOWED_TOOLS, "texts", 1, SMV_ALLOWED_TOOLS_MAX, 0, SMV_TOOL_BYTES_MAX, GENERATE, 0 },         read_texts,       AT(chat.allowed_tools) },
        { { "calls_max",   WIRE_F_CALLS_MAX,   "uint",    1, SMV_CALLS_MAX, 0, 0,                    GENERATE, 0 },            read_uint32,      AT(chat.calls_max) },
        { { "mirostat_tau", WIRE_F_MIROSTAT_TAU, "float", 0, SMV_MIROSTAT_TAU_MAX, 0, 0,             GENERATE, 0 },            read_float,       AT(mirostat_tau) },
        { { "mirostat_eta", WIRE_F_MIROSTAT_ETA, "float", 0, SMV_MIROSTAT_ETA_MAX, 0, 0,             GENERATE, 0 },            read_float,       AT(mirostat_eta) },
        { { "ask_slots",   WIRE_F_ASK_SLOTS,   "uint",    1, SMV_ASK_SLOTS_MAX, 0, 0,                HELLO, 0 },               read_uint32,      AT(ask_slots) },
        { { "whole_rows",  WIRE_F_WHOLE_ROWS,  "bool",    0, 1, 0, 0,                                HELLO, 0 },               read_bool,        AT(whole_rows) },
        { { "ask",         WIRE_F_ASK,         "text",    1, WORD_MAX, 0, 0,                         GENERATE, 0 },            read_ask,         0 },
        { { "ask_ms",      WIRE_F_ASK_MS,      "uint",    1, SMV_ASK_MS_MAX, 0, 0,                   GENERATE, 0 },            read_uint32,      AT(ask_ms) },
        { { "ask_late",    WIRE_F_ASK_LATE,    "text",    1, WORD_MAX, 0, 0,                         GENERATE, 0 },            read_ask_late,    0 },
        { { "row_top",     WIRE_F_ROW_TOP,     "uint",    0, SMV_ROW_TOP_MAX, 0, 0,                  GENERATE, 0 },            read_uint32,      AT(row_top) },
        { { "whole_row",   WIRE_F_WHOLE_ROW,   "bool",    0, 1, 0, 0,                                GENERATE, 0 },            read_bool,        AT(whole_row) },
};
/* clang-format on */

const struct field *field_at(enum wire_field number)
{
        return &fields[number];
}

const struct field *field_find(const char *name, size_t bytes)
{
        for (uint32_t i = 0; i < WIRE_FIELD_N; i++)
                if (strlen(fields[i].row.name) == bytes && !memcmp(fields[i].row.name, name, bytes))
                        return &fields[i];
        return NULL;
}

bool field_reserved(const char *name, size_t bytes)
{
        for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++)
                if (strlen(reserved[i]) == bytes && !memcmp(reserved[i], name, bytes))
                        return true;
        return false;
}
