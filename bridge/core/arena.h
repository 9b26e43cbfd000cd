/*
 * An arena: the memory of one call, which is freed as a whole.  Loop thread only.
 *
 * The first failure is remembered: arena_alloc() then returns NULL until the end, and `failed` is
 * set.  So a reader of a request may look once, when it is done.
 */
#ifndef BRIDGE_CORE_ARENA_H
#define BRIDGE_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of somebody else.  at NULL: none. */
struct text {
        const char *at;
        size_t bytes;
};

#define TEXT(literal) ((struct text){ (literal), sizeof(literal) - 1 })

struct arena_block;
struct arena {
        struct arena_block *last;
        bool failed;
};

/* Zeroed and aligned for any type; NULL: out of memory. */
void *arena_alloc(struct arena *arena, size_t bytes);
/* With a NUL behind it. */
struct text arena_copy(struct arena *arena, const char *text, size_t bytes);
struct text arena_format(struct arena *arena, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void arena_deinit(struct arena *arena);

#endif
