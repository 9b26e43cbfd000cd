/*
 * Dialect writings: how the templates of dialects write calls, for dialect-rows.c.
 */
#ifndef DAEMON_TEXT_PARTS_DIALECT_WRITINGS_H
#define DAEMON_TEXT_PARTS_DIALECT_WRITINGS_H

#include "daemon/text/parts/dialect-form.h"

/* The marks of DeepSeek have wide bars, and low blocks in place of blanks. */
#define DEEPSEEK(words) "<\uff5c" words "\uff5c>"
#define DSML            "\uff5cDSML\uff5c"

extern const struct dialect_writing writing_of_apriel, writing_of_granite, writing_of_phi,
        writing_of_nemotron, writing_of_functools, writing_of_hermes, writing_of_mistral_v3,
        writing_of_mistral_v11, writing_of_mistral_v13, writing_of_qwen, writing_of_seed,
        writing_of_glm_lines, writing_of_glm, writing_of_minimax, writing_of_minicpm,
        writing_of_dsml, writing_of_dsml_v4, writing_of_deepseek_v3, writing_of_deepseek_v3_1,
        writing_of_kimi, writing_of_command, writing_of_gigachat, writing_of_apertus,
        writing_of_functionary, writing_of_harmony, writing_of_llama3, writing_of_lfm2,
        writing_of_llama4, writing_of_gemma4;

#endif
