/*
 * Vocabulary builder: makes a vocabulary.  All readers of vocabulary files share it; it turns
 * spellings into entries.
 *
 * The caller first gives the counts, and memory is allocated once.  Then it adds entries by id, in
 * any order, and then merges by the spellings of their two halves.  Spellings must stay valid until
 * the end.
 */
#ifndef DAEMON_FILES_VOCABULARY_BUILDER_H
#define DAEMON_FILES_VOCABULARY_BUILDER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/wordmap.h"
#include "daemon/files/splitters.h"
#include "daemon/model/vocabulary.h"

/* How a file writes the bytes of an entry. */
enum spelling {
        SPELT_PLAIN,
        SPELT_LETTERS, /* GPT-2's: one printable character for each byte */
        SPELT_BARS,    /* SentencePiece's: U+2581 for a blank */
        SPELT_HEX,     /* <0x0A> */
        SPELT_WORDS,   /* plain, with the mark of a word's border */
};

struct vocabulary_builder {
        struct vocabulary v; /* the caller fills in all fields but the arrays */
        /*
         * How SPELT_WORDS, and SPELT_LETTERS with BORDER_BEHIND, tell entries at a word's border.
         * BORDER_FRONT: entries inside a word begin with the mark, unless it is empty.
         * BORDER_BEHIND: entries that end a word end with it.
         */
        const char *mark;
        size_t mark_bytes;
        bool cleans; /* BERT's decoder: no blank before a point and the like, ENTRY_JOINS */
        struct vocabulary_cut cuts[VOCABULARY_CUTS_MAX];
        struct vocabulary_normal normals[VOCABULARY_NORMALS_MAX];
        struct entry *entries;
        struct merge *merges;
        char *bytes;
        size_t bytes_used, bytes_capacity;
        uint32_t entry_capacity, merge_capacity;
        uint64_t *given;         /* one bit for each id */
        struct wordmap *by_name; /* maps a spelling to its id */
        char *why;
        size_t why_bytes;
};

/* -EINVAL; written literally at the end, so that a compiler sees that it is not 0. */
#define vocabulary_builder_refuse(m, ...)                                                          \
        ((void)error_raise(errtext_set((m)->why, (m)->why_bytes, -EINVAL, __VA_ARGS__)), -EINVAL)

/*
 * `bytes` is the most that all spellings have together, one byte more for each of SPELT_WORDS.
 * After any failure call vocabulary_builder_free().
 */
int vocabulary_builder_begin(struct vocabulary_builder *builder, uint64_t entries, uint64_t merges,
                             size_t bytes, char *why, size_t why_bytes);
void vocabulary_builder_free(struct vocabulary_builder *builder);

int vocabulary_builder_add_entry(struct vocabulary_builder *builder, uint64_t id, const char *name,
                                 size_t bytes, enum entry_kind kind, enum spelling spelling,
                                 double score);
/* The entry that there is gets another kind, and is written like this. */
void vocabulary_builder_respell(struct vocabulary_builder *builder, uint32_t id, const char *name,
                                size_t bytes, enum entry_kind kind);
void vocabulary_builder_set_matching(struct vocabulary_builder *builder, uint32_t id,
                                     unsigned matching);
/* An entry gets another id.  *why says if there is an entry of that id. */
int vocabulary_builder_move_entry(struct vocabulary_builder *builder, uint32_t from, uint64_t to,
                                  const char *name, size_t bytes);
bool vocabulary_builder_has(const struct vocabulary_builder *builder, uint64_t id);
/* VOCABULARY_NONE: no such spelling */
uint32_t vocabulary_builder_find(const struct vocabulary_builder *builder, const char *name,
                                 size_t bytes);
int vocabulary_builder_add_merge(struct vocabulary_builder *builder, const char *left,
                                 size_t left_bytes, const char *right, size_t right_bytes);
/* A merge written as "left right". */
int vocabulary_builder_add_merge_line(struct vocabulary_builder *builder, const char *line,
                                      size_t bytes);

/* Copies the expression. */
int vocabulary_builder_add_cut(struct vocabulary_builder *builder, const char *expression,
                               enum cut_kind kind, bool inverted);
int vocabulary_builder_add_cuts(struct vocabulary_builder *builder,
                                const struct splitter *splitter);
void vocabulary_builder_drop_cuts(struct vocabulary_builder *builder);

/* Copies its expression and its content, which may be NULL. */
int vocabulary_builder_add_normal(struct vocabulary_builder *builder, enum normal_kind kind,
                                  const char *expression, const char *content, size_t bytes);

/* Moves everything into the vocabulary.  0 or -ENOMEM. */
int vocabulary_builder_finish(struct vocabulary_builder *builder,
                              struct vocabulary **ret_vocabulary);

#endif
