#include "daemon/text/parts/dialect-rows.h"

#include "daemon/text/parts/dialect-writings.h"

#define DEEPSEEK_CALLS                                                                             \
        [MARK_CALLS] = { DEEPSEEK("tool\u2581calls\u2581begin") },                                 \
        [MARK_CALLS_END] = { DEEPSEEK("tool\u2581calls\u2581end"), .newline_before = 1 },          \
        [MARK_CALL] = { DEEPSEEK("tool\u2581call\u2581begin"), .newline_before = 1 },              \
        [MARK_CALL_END] = { DEEPSEEK("tool\u2581call\u2581end") }

#define COMMAND_CALL                                                                               \
        [MARK_CALL] = { "<|START_ACTION|>", .newline_before = 1 }, [MARK_CALL_END] = {             \
                "<|END_ACTION|>"                                                                   \
        }

static const struct dialect_tags qwen_tags = {
        .name_end = ">",
        .key = "<parameter=",
        .key_end = ">",
        .value_end = "</parameter>",
        .call_end = "</function>",
        .newlines = true,
};

static const struct dialect_tags glm_tags = {
        .key = "<arg_key>",
        .key_end = "</arg_key>",
        .value = "<arg_value>",
        .value_end = "</arg_value>",
        .call_end = "</tool_call>",
};

static const struct dialect_tags minimax_tags = {
        .name_end = "\">",
        .key = "<parameter name=\"",
        .key_end = "\">",
        .value_end = "</parameter>",
        .call_end = "</invoke>",
};

static const struct dialect_tags minicpm_tags = {
        .name_end = "\">",
        .key = "<param name=\"",
        .key_end = "\">",
        .value_end = "</param>",
        .call_end = "</function>",
};

static const struct dialect_tags dsml_tags = {
        .name_end = "\">",
        .key = "<" DSML "parameter name=\"",
        .key_end = "\" string=\"false\">",
        .raw_key_end = "\" string=\"true\">",
        .value_end = "</" DSML "parameter>",
        .call_end = "</" DSML "invoke>",
};

#define DSML_MARKS(calls)                                                                          \
        [MARK_CALLS] = { "<" DSML calls ">", .newline_before = 1 },                                \
        [MARK_CALLS_END] = { "</" DSML calls ">", .newline_before = 1 },                           \
        [MARK_CALL] = { "<" DSML "invoke name=\"", .newline_before = 1 }

const struct dialect_row dialect_rows[] = {
        { .name = "apriel",
          .signs = { { "<tool_calls>[", "</tool_calls>" } },
          .shape = SHAPE_LIST,
          .writing = &writing_of_apriel,
          .marks = { [MARK_CALL] = { "<tool_calls>", .newline_before = 1 },
                     [MARK_CALL_END] = { "</tool_calls>" } } },
        /* Hermes 2 and 3, Qwen2.5, Qwen3, Granite 4 */
        { .name = "hermes",
          .signs = { { "<tool_call>" }, { "<function=", "<arg_key>" } },
          .shape = SHAPE_OBJECT,
          .writing = &writing_of_hermes,
          .marks = { [MARK_CALL] = { "<tool_call>", .newline_before = 1 },
                     [MARK_CALL_END] = { "</tool_call>", .newline_before = 1 } } },
        /* Small 3.2 */
        { .name = "mistral-v11",
          .signs = { { "[TOOL_CALLS]", "[CALL_ID]" } },
          .shape = SHAPE_NAMED,
          .writing = &writing_of_mistral_v11,
          .marks = { [MARK_CALL] = { "[TOOL_CALLS]" },
                     [MARK_CALL_ID] = { "[CALL_ID]" },
                     [MARK_ARGUMENTS] = { "[ARGS]" } } },
        /* Magistral, Devstral, Ministral 3 */
        { .name = "mistral-v13",
          .signs = { { "[TOOL_CALLS]", "[ARGS]" } },
          .shape = SHAPE_NAMED,
          .writing = &writing_of_mistral_v13,
          .marks = { [MARK_CALL] = { "[TOOL_CALLS]" }, [MARK_ARGUMENTS] = { "[ARGS]" } } },
        /* Nemo, Small 3.0 */
        { .name = "mistral-v3",
          .signs = { { "[TOOL_CALLS]" } },
          .shape = SHAPE_LIST,
          .writing = &writing_of_mistral_v3,
          .marks = { [MARK_CALL] = { "[TOOL_CALLS]" } } },
        /* Qwen3-Coder, Qwen3.5, Nemotron 3 Nano */
        { .name = "qwen3-coder",
          .signs = { { "<tool_call>", "<function=", "<parameter=" } },
          .shape = SHAPE_TAGGED,
          .writing = &writing_of_qwen,
          .traits = DIALECT_IN_REASONING,
          .tags = &qwen_tags,
          .marks = { [MARK_CALLS] = { "<tool_call>", .newline_before = 1 },
                     [MARK_CALLS_END] = { "</tool_call>", .newline_before = 1 },
                     [MARK_CALL] = { "<function=", .newline_before = 1 } } },
        { .name = "seed-oss",
          .signs = { { "<seed:tool_call>" } },
          .shape = SHAPE_TAGGED,
          .writing = &writing_of_seed,
          .tags = &qwen_tags,
          .marks = { [MARK_CALLS] = { "<seed:tool_call>", .newline_before = 1 },
                     [MARK_CALLS_END] = { "</seed:tool_call>", .newline_before = 1 },
                     [MARK_CALL] = { "<function=", .newline_before = 1 } } },
        /* GLM 4.5 and 4.6 */
        { .name = "glm-4",
          .signs = { { "<tool_call>", "<arg_key>", "</arg_key>\n<arg_value>" } },
          .shape = SHAPE_TAGGED,
          .writing = &writing_of_glm_lines,
          .traits = DIALECT_IN_REASONING,
          .tags = &glm_tags,
          .marks = { [MARK_CALL] = { "<tool_call>", .newline_before = 1 },
                     [MARK_CALL_END] = { "</tool_call>", .newline_before = 1 } } },
        /* GLM 4.7 and 5 */
        { .name = "glm-4",
          .signs = { { "<tool_call>", "<arg_key>" } },
          .shape = SHAPE_TAGGED,
          .writing = &writing_of_glm,
          .traits = DIALECT_IN_REASONING,
          .tags = &glm_tags,
          .marks = { [MARK_CALL] = { "<tool_call>", .newline_before = 1 },
                     [MARK_CALL_END] = { "</tool_call>", .newline_before = 1 } } },
        { .name = "minimax-m2",
          .signs = { { "<minimax:tool_call>" } },
          .shape = SHAPE_TAGGED,
          .writing = &writing_of_minimax,
          .tags = &minimax_tags,
          .marks = { [MARK_CALLS] = { "<minimax:tool_call>", .newline_before = 1 },
                     [MARK_CALLS_END] = { "</minimax:tool_call>", .newline_before = 1 },
                     [MARK_CALL] = { "<invoke name=\"", .newline_before = 1 } } },
        /* DeepSeek V3.2 */
        { .name = "deepseek-v3.2",
          .signs = { { DSML, "function_calls>" } },
          .shape = SHAPE_TAGGED,
          .writing = &writing_of_dsml,
          .traits = DIALECT_IN_REASONING,
          .tags = &dsml_tags,
          .marks = { DSML_MARKS("function_calls") } },
        /* DeepSeek V4 */
        { .name = "deepseek-v3.2",
          .signs = { { DSML } },
          .shape = SHAPE_TAGGED,
          .writing = &writing_of_dsml_v4,
          .traits = DIALECT_IN_REASONING,
          .tags = &dsml_tags,
          .marks = { DSML_MARKS("tool_calls") } },
        { .name = "deepseek-v3",
          .signs = { { DEEPSEEK("tool\u2581sep"), "```json" } },
          .shape = SHAPE_NAMED,
          .writing = &writing_of_deepseek_v3,
          .traits = DIALECT_FENCED,
          .marks = { DEEPSEEK_CALLS, [MARK_NAME] = { DEEPSEEK("tool\u2581sep") },
                     [MARK_ARGUMENTS] = { "```json" } } },
        { .name = "deepseek-v3.1",
          .signs = { { DEEPSEEK("tool\u2581sep") } },
          .shape = SHAPE_NAMED,
          .writing = &writing_of_deepseek_v3_1,
          .marks = { DEEPSEEK_CALLS, [MARK_ARGUMENTS] = { DEEPSEEK("tool\u2581sep") } } },
        { .name = "kimi-k2",
          .signs = { { "<|tool_calls_section_begin|>" } },
          .shape = SHAPE_NAMED,
          .writing = &writing_of_kimi,
          .traits = DIALECT_IN_REASONING | DIALECT_NUMBERED,
          .marks = { [MARK_CALLS] = { "<|tool_calls_section_begin|>" },
                     [MARK_CALLS_END] = { "<|tool_calls_section_end|>", .newline_before = 1 },
                     [MARK_CALL] = { "<|tool_call_begin|>", .newline_before = 1 },
                     [MARK_CALL_END] = { "<|tool_call_end|>" },
                     [MARK_ARGUMENTS] = { "<|tool_call_argument_begin|>" } } },
        /* Command R7B and A */
        { .name = "command-r",
          .signs = { { "<|START_ACTION|>", "<|START_RESPONSE|>" } },
          .shape = SHAPE_LIST,
          .writing = &writing_of_command,
          .marks = { COMMAND_CALL, [MARK_ANSWER] = { "<|START_RESPONSE|>" },
                     [MARK_ANSWER_END] = { "<|END_RESPONSE|>" } } },
        /* North Code */
        { .name = "command-r",
          .signs = { { "<|START_ACTION|>" } },
          .shape = SHAPE_LIST,
          .writing = &writing_of_command,
          .marks = { COMMAND_CALL, [MARK_ANSWER] = { "<|START_TEXT|>" },
                     [MARK_ANSWER_END] = { "<|END_TEXT|>" } } },
        /* Granite 3.3, which reasons */
        { .name = "granite-3",
          .signs = { { "<|tool_call|>", "<|start_of_role|>", "<response>" } },
          .shape = SHAPE_LIST,
          .writing = &writing_of_granite,
          .marks = { [MARK_CALL] = { "<|tool_call|>" },
                     [MARK_ANSWER] = { "<response>" },
                     [MARK_ANSWER_END] = { "</response>" } } },
        { .name = "granite-3",
          .signs = { { "<|tool_call|>", "<|start_of_role|>" } },
          .shape = SHAPE_LIST,
          .writing = &writing_of_granite,
          .marks = { [MARK_CALL] = { "<|tool_call|>" } } },
        /*
         * Phi-4-mini: its template has the marks around the tools, not those of calls.  Some of its
         * models write the second mark.
         */
        { .name = "phi-4",
          .signs = { { "<|/tool|>" } },
          .shape = SHAPE_LIST,
          .writing = &writing_of_phi,
          .marks = { [MARK_CALL] = { "<|tool_call|>" },
                     [MARK_CALL_TOO] = { "functools" },
                     [MARK_CALL_END] = { "<|/tool_call|>" } } },
        /* Nemotron Nano 2 */
        { .name = "nemotron-2",
          .signs = { { "<TOOLCALL>" } },
          .shape = SHAPE_LIST,
          .writing = &writing_of_nemotron,
          .marks = { [MARK_CALL] = { "<TOOLCALL>", .newline_before = 1 },
                     [MARK_CALL_END] = { "</TOOLCALL>" } } },
        { .name = "lfm2",
          .signs = { { "<|tool_call_start|>" } },
          .shape = SHAPE_PYTHON,
          .writing = &writing_of_lfm2,
          .marks = { [MARK_CALL] = { "<|tool_call_start|>", .newline_before = 1 },
                     [MARK_CALL_END] = { "<|tool_call_end|>" } } },
        { .name = "lfm2",
          .signs = { { "<|tool_list_start|>" } },
          .shape = SHAPE_PYTHON,
          .writing = &writing_of_lfm2,
          .marks = { [MARK_CALL] = { "<|tool_call_start|>", .newline_before = 1 },
                     [MARK_CALL_END] = { "<|tool_call_end|>" } } },
        /* LFM2.5: its template has no marks of calls, which its vocabulary has */
        { .name = "lfm2",
          .signs = { { "List of tools: [", "keep_past_thinking" } },
          .shape = SHAPE_PYTHON,
          .writing = &writing_of_lfm2,
          .marks = { [MARK_CALL] = { "<|tool_call_start|>", .newline_before = 1 },
                     [MARK_CALL_END] = { "<|tool_call_end|>" } } },
        { .name = "minicpm-5",
          .signs = { { "<function name=\"", "<param name=\"" } },
          .shape = SHAPE_TAGGED,
          .writing = &writing_of_minicpm,
          .tags = &minicpm_tags,
          .marks = { [MARK_CALL] = { "<function name=\"", .newline_before = 1 } } },
        { .name = "gigachat-3.1",
          .signs = { { "<|function_call|>" } },
          .shape = SHAPE_OBJECT,
          .writing = &writing_of_gigachat,
          .marks = { [MARK_CALL] = { "<|function_call|>" } } },
        { .name = "apertus",
          .signs = { { "<|tools_prefix|>" } },
          .shape = SHAPE_LIST,
          .writing = &writing_of_apertus,
          .traits = DIALECT_NAME_IS_KEY,
          .marks = { [MARK_CALL] = { "<|tools_prefix|>" },
                     [MARK_CALL_END] = { "<|tools_suffix|>" } } },
        /* FireFunction v2 */
        { .name = "functools",
          .signs = { { "functools[" } },
          .shape = SHAPE_LIST,
          .writing = &writing_of_functools,
          .marks = { [MARK_CALL] = { "functools" } } },
        { .name = "functionary-3.1",
          .signs = { { "<function=", "has_code_interpreter" } },
          .shape = SHAPE_NAMED,
          .writing = &writing_of_functionary,
          .marks = { [MARK_CALL] = { "<function=" },
                     [MARK_ARGUMENTS] = { ">" },
                     [MARK_CALL_END] = { "</function>" } } },
        /* Llama 4, if its template does not ask for the calls of Llama 3 */
        { .name = "llama4",
          .signs = { { "<|python_start|>" }, { "\"parameters\": " } },
          .shape = SHAPE_PYTHON,
          .writing = &writing_of_llama4,
          .traits = DIALECT_BARE,
          .marks = { [MARK_CALL] = { "<|python_start|>" },
                     [MARK_CALL_END] = { "<|python_end|>" } } },
        { .name = "gemma4",
          .signs = { { "<|tool_call>call:" } },
          .shape = SHAPE_BARE,
          .writing = &writing_of_gemma4,
          .traits = DIALECT_STRAY,
          .marks = { [MARK_CALL] = { "<|tool_call>" },
                     [MARK_CALL_END] = { "<tool_call|>" },
                     [MARK_QUOTE] = { "<|\"|>" } } },
        { .name = "harmony",
          .signs = { { "<|channel|>", "<|message|>" } },
          .shape = SHAPE_CHANNELS,
          .writing = &writing_of_harmony,
          .traits = DIALECT_NUMBERED,
          .marks = { [MARK_START] = { "<|start|>" },
                     [MARK_CHANNEL] = { "<|channel|>" },
                     [MARK_FORM] = { "<|constrain|>" },
                     [MARK_MESSAGE] = { "<|message|>" },
                     [MARK_END] = { "<|end|>" },
                     [MARK_SENT] = { "<|call|>" } } },
        /* Llama 3.1 to 3.3: some templates do not write the token before calls */
        { .name = "llama3",
          .signs = { { "<|python_tag|>" }, { "<tool_call>" } },
          .shape = SHAPE_OBJECT,
          .writing = &writing_of_llama3,
          .traits = DIALECT_BARE,
          .marks = { [MARK_CALL] = { "<|python_tag|>" } } },
        { .name = "llama3",
          .signs = { { "ipython", "\"parameters\": " }, { "<tool_call>" } },
          .shape = SHAPE_OBJECT,
          .writing = &writing_of_llama3,
          .traits = DIALECT_BARE,
          .marks = { [MARK_CALL] = { "<|python_tag|>" } } },
};

const size_t dialect_row_count = sizeof(dialect_rows) / sizeof(*dialect_rows);

const struct dialect_reasoning dialect_reasonings[] = {
        { .think = { "<think>", .newline_before = 1, .newlines_after = 1 },
          .think_end = { "</think>", .newline_before = 1, .newlines_after = 2 } },
        { .think = { "<seed:think>", .newlines_after = 1 },
          .think_end = { "</seed:think>", .newline_before = 1, .newlines_after = 1 } },
        { .think = { "<|channel>", .word_after = "thought", .newlines_after = 1 },
          .think_end = { "<channel|>", .newline_before = 1 } },
        { .think = { "<mm:think>" }, .think_end = { "</mm:think>" } },
        /* Apriel 1.6 */
        { .think = { "Here are my reasoning steps:", .newlines_after = 1 },
          .think_end = { "[BEGIN FINAL RESPONSE]", .newline_before = 1, .newlines_after = 1 } },
        { .think = { "[THINK]" }, .think_end = { "[/THINK]" } },
        { .think = { "<|START_THINKING|>" },
          .think_end = { "<|END_THINKING|>", .newlines_after = 1 } },
};

const size_t dialect_reasoning_count = sizeof(dialect_reasonings) / sizeof(*dialect_reasonings);
