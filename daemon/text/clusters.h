/*
 * Clusters: what a reader sees as one character, such as a letter and its accents (the extended
 * grapheme clusters of Unicode's annex 29).
 *
 * A byte that is not part of valid UTF-8 is a cluster.  Flags of countries are not paired.  The
 * marks are those of Unicode 16; `tokenizers` knows those of a newer version, too.
 */
#ifndef DAEMON_TEXT_CLUSTERS_H
#define DAEMON_TEXT_CLUSTERS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/text/unicode.h"

/* The bytes of the first cluster of a text of at least one byte. */
size_t cluster_next(const char *text, size_t bytes);

/* The generated table: the kind of a character and, above it, its role in Indic conjuncts. */
enum {
        CLUSTER_OTHER,
        CLUSTER_CONTROL,
        CLUSTER_EXTEND,
        CLUSTER_JOINER, /* U+200D */
        CLUSTER_MARK,
        CLUSTER_PREPEND,
        CLUSTER_PICTURE,
        CLUSTER_L, /* Hangul: first, middle, and last letters; syllables are arithmetic */
        CLUSTER_V,
        CLUSTER_T,
        CLUSTER_KINDS = 15,
        CONJUNCT_EXTEND = 16,
        CONJUNCT_LINKER = 32,
        CONJUNCT_CONSONANT = 64,
};
extern const struct unicode_range cluster_kinds[];
extern const uint32_t cluster_kind_count;

#endif
