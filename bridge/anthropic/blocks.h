/*
 * The content of an answer as blocks, one behind the other: thinking, text, tool_use.
 *
 * A block begins with the first piece of its kind, and ends when a piece of another kind comes.
 * White space alone makes no block: Anthropic refuses such blocks when a client sends them back.
 * So white space at the front of a block waits for other text, and is dropped if none comes.
 *
 * While the answer is streamed, each change is an event; otherwise the blocks are collected.
 */
#ifndef BRIDGE_ANTHROPIC_BLOCKS_H
#define BRIDGE_ANTHROPIC_BLOCKS_H

#include "bridge/core/run.h"

enum block_kind { BLOCK_TEXT, BLOCK_THINKING, BLOCK_TOOL_USE };

struct block {
        struct block *next;
        enum block_kind kind;
        struct bytes text;           /* TEXT, THINKING */
        const struct run_call *call; /* TOOL_USE */
};

struct blocks {
        struct call *call;
        bool streamed;
        struct block *first, *last; /* if it is not streamed */
        bool open;                  /* a block of this kind has begun */
        enum block_kind kind;
        uint32_t count;     /* of those that have begun */
        struct bytes blank; /* white space that waits, for a block of this kind: */
        enum block_kind blank_kind;
};

void blocks_init(struct blocks *blocks, struct call *call, bool streamed);
void blocks_deinit(struct blocks *blocks);
/* These return false if the call is over. */
bool blocks_add(struct blocks *blocks, const struct run_piece *piece);
/* Ends the last block.  An answer has at least one: clients read the text of the first. */
bool blocks_end(struct blocks *blocks);
/*
 * The array of the blocks, which were collected.  by_length: a length has ended the answer, and its
 * stop_reason says that the last call is not whole.  Otherwise a call that was cut becomes text,
 * because its input would look whole.
 */
void blocks_put(const struct blocks *blocks, bool by_length, struct json_builder *to);

#endif
