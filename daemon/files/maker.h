/*
 * Maker: what all readers of vocabularies have in common, from spellings to entries.
 *
 * It is told how much is coming and takes memory for that once; then entries by id,
 * in any order, then merges by the spellings of their halves.  Spellings must live
 * until the end.
 */
#ifndef DAEMON_FILES_MAKER_H
#define DAEMON_FILES_MAKER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/error.h"
#include "daemon/vocabulary.h"
#include "daemon/why.h"
#include "daemon/wordmap.h"

/* How a file writes the bytes of an entry. */
enum spelling {
        SPELT_PLAIN,
        SPELT_LETTERS, /* GPT-2's: a printable character for every byte */
        SPELT_BARS,    /* SentencePiece's: U+2581 for a blank */
        SPELT_HEX,     /* <0x0A> */
};

struct maker {
        struct vocabulary v; /* the reader fills in what it says beside entries and merges */
        struct entry *entries;
        struct merge *merges;
        char *bytes;
        size_t bytes_used, bytes_room;
        uint32_t entry_room, merge_room;
        uint64_t *given;         /* a bit for every id */
        struct wordmap *by_name; /* from spelling to id */
        char *why;
        size_t why_bytes;
};

/* -EINVAL; written out at the end, so that a compiler sees that it is not 0. */
#define maker_refuse(m, ...)                                                                       \
        ((void)error_raise(why_say((m)->why, (m)->why_bytes, -EINVAL, __VA_ARGS__)), -EINVAL)

/* Spellings are not more than so many bytes together.  After any failure: maker_drop(). */
int maker_begin(struct maker *maker, uint64_t entries, uint64_t merges, size_t bytes, char *why,
                size_t why_bytes);
void maker_drop(struct maker *maker);

int maker_entry(struct maker *maker, uint64_t id, const char *name, size_t bytes,
                enum entry_kind kind, enum spelling spelling, float score);
void maker_strips(struct maker *maker, uint32_t id, unsigned strips);
bool maker_has(const struct maker *maker, uint64_t id);
uint32_t maker_find(const struct maker *maker, const char *name, size_t bytes); /* or NONE */
int maker_merge(struct maker *maker, const char *left, size_t left_bytes, const char *right,
                size_t right_bytes);
/* "left right" */
int maker_merge_line(struct maker *maker, const char *line, size_t bytes);

/* Takes everything over.  0 or -ENOMEM. */
int maker_finish(struct maker *maker, struct vocabulary **ret_vocabulary);

/* What a splitter's name sets: SPLITTER_N: there is none of that name. */
enum vocabulary_splitter splitter_named(const char *name);

#endif
