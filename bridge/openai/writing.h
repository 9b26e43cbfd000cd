/* The common parts of the answers of OpenAI's chat and text completions. */
#ifndef BRIDGE_OPENAI_WRITING_H
#define BRIDGE_OPENAI_WRITING_H

#include "bridge/core/run.h"

/* "usage": {...} */
void openai_put_usage(struct json_builder *to, const struct run *run);
/* "timings": {...}, as llama-server writes them. */
void openai_put_timings(struct json_builder *to, const struct run *run);

/* The members that an answer begins with, and each chunk of it. */
struct openai_head {
        char id[48];
        const char *object;
        uint64_t created_s;
        struct text model;    /* as the request names it */
        const char *tier;     /* NULL: none */
        const char *rendered; /* in the arena, from the first chunk on; NULL before */
};

/* Opens an object with them. */
void openai_put_head(struct json_builder *to, struct call *call, struct openai_head *head);

#endif
