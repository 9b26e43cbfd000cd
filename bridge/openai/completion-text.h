/*
 * Texts and logprobs of the choices of /v1/completions.  With `echo` the prompt stands in front of
 * the text of each choice, and its tokens have logprobs, too.
 */
#ifndef BRIDGE_OPENAI_COMPLETION_TEXT_H
#define BRIDGE_OPENAI_COMPLETION_TEXT_H

#include "bridge/core/run.h"

struct completion_prompt {
        struct text text; /* at NULL: tokens */
        const uint32_t *tokens;
        size_t token_count;
};

/* The state of a choice between two events of its answer. */
struct completion_choice {
        bool scores;     /* the logprobs of the prompt are wanted, and were not shown yet */
        uint64_t offset; /* the characters of its text, for text_offset */
};

/*
 * The prompt becomes the beginning of the text of each choice; a prompt of tokens gets its text.
 * False: there is no memory.
 */
bool completion_echo(struct run *run, struct completion_prompt *prompt,
                     struct completion_choice *choices);

/* Four arrays with an element for each token that was not shown yet; null if nothing is new. */
void completion_put_logprobs(struct json_builder *to, struct run *run, uint32_t index,
                             const struct completion_prompt *prompt,
                             struct completion_choice *choice);

#endif
