#include "daemon/text/parts/dialect-writings.h"

#include <stddef.h>

#define JSON_CALL(key) "{\"name\": \"" WRITTEN_NAME "\", \"" key "\": " WRITTEN_ARGUMENTS "}"
#define LIST_OF_CALLS(open, close)                                                                 \
        {                                                                                          \
                .begin = open "[", .call = JSON_CALL("arguments"), .between = ", ",                \
                .end = "]" close                                                                   \
        }

const struct dialect_writing writing_of_apriel = LIST_OF_CALLS("<tool_calls>", "</tool_calls>");
const struct dialect_writing writing_of_granite = LIST_OF_CALLS("<|tool_call|>", "");
const struct dialect_writing writing_of_phi = LIST_OF_CALLS("<|tool_call|>", "<|/tool_call|>");
const struct dialect_writing writing_of_nemotron = LIST_OF_CALLS("<TOOLCALL>", "</TOOLCALL>");
const struct dialect_writing writing_of_functools = LIST_OF_CALLS("functools", "");

const struct dialect_writing writing_of_hermes = {
        .call = "<tool_call>\n" JSON_CALL("arguments") "\n</tool_call>",
        .between = "\n",
};

const struct dialect_writing writing_of_mistral_v3 = {
        .begin = "[TOOL_CALLS][",
        .call = "{\"name\": \"" WRITTEN_NAME "\", \"arguments\": " WRITTEN_ARGUMENTS
                ", \"id\": \"" WRITTEN_ID "\"}",
        .between = ", ",
        .end = "]",
};

const struct dialect_writing writing_of_mistral_v11 = {
        .call = "[TOOL_CALLS]" WRITTEN_NAME "[CALL_ID]" WRITTEN_ID "[ARGS]" WRITTEN_ARGUMENTS,
        .between = "",
};

const struct dialect_writing writing_of_mistral_v13 = {
        .call = "[TOOL_CALLS]" WRITTEN_NAME "[ARGS]" WRITTEN_ARGUMENTS,
        .between = "",
};

const struct dialect_writing writing_of_qwen = {
        .call = "<tool_call>\n<function=" WRITTEN_NAME ">" WRITTEN_ARGUMENTS
                "\n</function>\n</tool_call>",
        .between = "\n",
        .key = "\n<parameter=",
        .key_end = ">\n",
        .value_end = "\n</parameter>",
};

const struct dialect_writing writing_of_seed = {
        .call = "<seed:tool_call>\n<function=" WRITTEN_NAME ">" WRITTEN_ARGUMENTS
                "\n</function>\n</seed:tool_call>",
        .between = "\n",
        .key = "\n<parameter=",
        .key_end = ">",
        .value_end = "</parameter>",
};

const struct dialect_writing writing_of_glm_lines = {
        .call = "<tool_call>" WRITTEN_NAME WRITTEN_ARGUMENTS "\n</tool_call>",
        .between = "\n",
        .key = "\n<arg_key>",
        .key_end = "</arg_key>\n<arg_value>",
        .value_end = "</arg_value>",
};

const struct dialect_writing writing_of_glm = {
        .call = "<tool_call>" WRITTEN_NAME WRITTEN_ARGUMENTS "</tool_call>",
        .between = "",
        .key = "<arg_key>",
        .key_end = "</arg_key><arg_value>",
        .value_end = "</arg_value>",
};

const struct dialect_writing writing_of_minimax = {
        .begin = "<minimax:tool_call>\n",
        .call = "<invoke name=\"" WRITTEN_NAME "\">" WRITTEN_ARGUMENTS "\n</invoke>",
        .between = "\n",
        .end = "\n</minimax:tool_call>",
        .key = "\n<parameter name=\"",
        .key_end = "\">",
        .value_end = "</parameter>",
};

const struct dialect_writing writing_of_minicpm = {
        .call = "<function name=\"" WRITTEN_NAME "\">" WRITTEN_ARGUMENTS "</function>",
        .between = "\n",
        .key = "<param name=\"",
        .key_end = "\">",
        .value_end = "</param>",
};

#define DSML_WRITING(calls)                                                                        \
        {                                                                                          \
                .begin = "<" DSML calls ">\n",                                                     \
                .call = "<" DSML "invoke name=\"" WRITTEN_NAME "\">" WRITTEN_ARGUMENTS "\n</" DSML \
                        "invoke>",                                                                 \
                .between = "\n", .end = "\n</" DSML calls ">",                                     \
                .key = "\n<" DSML "parameter name=\"", .key_end = "\" string=\"false\">",          \
                .raw_key_end = "\" string=\"true\">", .value_end = "</" DSML "parameter>"          \
        }

const struct dialect_writing writing_of_dsml = DSML_WRITING("function_calls");
const struct dialect_writing writing_of_dsml_v4 = DSML_WRITING("tool_calls");

#define DEEPSEEK_WRITING(open, close, gap)                                                         \
        {                                                                                          \
                .begin = DEEPSEEK("tool\u2581calls\u2581begin"),                                   \
                .call = DEEPSEEK("tool\u2581call\u2581begin")                                      \
                        open WRITTEN_ARGUMENTS close DEEPSEEK("tool\u2581call\u2581end"),          \
                .between = gap, .end = DEEPSEEK("tool\u2581calls\u2581end")                        \
        }

const struct dialect_writing writing_of_deepseek_v3 = DEEPSEEK_WRITING(
        "function" DEEPSEEK("tool\u2581sep") WRITTEN_NAME "\n```json\n", "\n```", "\n");
const struct dialect_writing writing_of_deepseek_v3_1 =
        DEEPSEEK_WRITING(WRITTEN_NAME DEEPSEEK("tool\u2581sep"), "", "");

const struct dialect_writing writing_of_kimi = {
        .begin = "<|tool_calls_section_begin|>",
        .call = "<|tool_call_begin|>functions." WRITTEN_NAME ":" WRITTEN_NUMBER
                "<|tool_call_argument_begin|>" WRITTEN_ARGUMENTS "<|tool_call_end|>",
        .between = "",
        .end = "<|tool_calls_section_end|>",
};

const struct dialect_writing writing_of_command = {
        .begin = "<|START_ACTION|>[\n    ",
        .call = "{\"tool_call_id\": \"" WRITTEN_NUMBER "\", \"tool_name\": \"" WRITTEN_NAME
                "\", \"parameters\": " WRITTEN_ARGUMENTS "}",
        .between = ",\n    ",
        .end = "\n]<|END_ACTION|>",
};

const struct dialect_writing writing_of_gigachat = {
        .call = "<|function_call|>" JSON_CALL("arguments"),
};

const struct dialect_writing writing_of_apertus = {
        .begin = "<|tools_prefix|>[",
        .call = "{\"" WRITTEN_NAME "\": " WRITTEN_ARGUMENTS "}",
        .between = ", ",
        .end = "]<|tools_suffix|>",
};

const struct dialect_writing writing_of_functionary = {
        .call = "<function=" WRITTEN_NAME ">" WRITTEN_ARGUMENTS "</function>",
        .between = "",
};

const struct dialect_writing writing_of_harmony = {
        .call = "<|channel|>commentary to=functions." WRITTEN_NAME
                " <|constrain|>json<|message|>" WRITTEN_ARGUMENTS "<|call|>",
};

const struct dialect_writing writing_of_llama3 = {
        .call = JSON_CALL("parameters"),
};

#define PYTHON_CALLS(open, close)                                                                  \
        {                                                                                          \
                .begin = open "[", .call = WRITTEN_NAME "(" WRITTEN_ARGUMENTS ")",                 \
                .between = ", ", .end = "]" close, .key = "", .key_end = "=", .value_end = "",     \
                .between_values = ", "                                                             \
        }

const struct dialect_writing writing_of_lfm2 =
        PYTHON_CALLS("<|tool_call_start|>", "<|tool_call_end|>");
const struct dialect_writing writing_of_llama4 = PYTHON_CALLS("<|python_start|>", "<|python_end|>");

const struct dialect_writing writing_of_gemma4 = {
        .call = "<|tool_call>call:" WRITTEN_NAME WRITTEN_ARGUMENTS "<tool_call|>",
        .between = "",
};
