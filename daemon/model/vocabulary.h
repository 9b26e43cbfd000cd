/*
 * Vocabulary: the data of a tokenizer, independent of the file format.
 *
 * Pure data, already decoded: a byte-level letter is stored as its byte, a SentencePiece bar
 * (U+2581) as a blank, and a merge as the ids of its entries.  The code that makes a vocabulary
 * keeps the limits below; tokenizer_open() checks again what it relies on.  Never written after it
 * is made; any thread may read it.
 */
#ifndef DAEMON_MODEL_VOCABULARY_H
#define DAEMON_MODEL_VOCABULARY_H

#include <stdbool.h>
#include <stdint.h>

#define VOCABULARY_NONE            UINT32_MAX
#define VOCABULARY_ENTRIES_MAX     (1u << 22)
#define VOCABULARY_MERGES_MAX      (1u << 22)
#define VOCABULARY_ENTRY_BYTES_MAX 1024u

/* Into which units a text is split before merging. */
enum vocabulary_kind {
        VOCABULARY_BYTES,      /* ids 0 to 255 are bytes, other ids have no text; no merging */
        VOCABULARY_BYTE_LEVEL, /* pre-tokens are split into bytes */
        VOCABULARY_CHARACTERS, /* characters: SentencePiece's BPE */
};

/* What becomes of the matches of an expression; the text between two matches is a piece, too. */
enum cut_kind {
        CUT_APART,   /* each match is a piece */
        CUT_DROP,    /* a match is no part of any piece */
        CUT_TO_LAST, /* a match belongs to the text before it */
        CUT_TO_NEXT, /* a match belongs to the text behind it */
        CUT_RUNS,    /* matches without text between them are one piece */
        CUT_KIND_N,
};

/* Cuts a text into pieces by a regular expression (daemon/text/expression.h). */
struct vocabulary_cut {
        const char *expression;
        uint8_t kind;
        bool inverted; /* matches and the text between them change their roles */
};

#define VOCABULARY_CUTS_MAX 8u

enum vocabulary_normaliser { NORMALISER_NONE, NORMALISER_NFC };

/* Where a blank is inserted, so that the first word is tokenized like later words. */
enum vocabulary_blank {
        BLANK_NEVER,
        BLANK_FIRST, /* before the text */
        BLANK_EACH,  /* before the text and after each added token */
};

enum entry_kind {
        ENTRY_NORMAL,  /* produced by merges */
        ENTRY_UNKNOWN, /* stands for text that has no entry; is not text itself */
        ENTRY_CONTROL, /* matched in a text only where the caller asks for it; is not text */
        ENTRY_USER,    /* matched in any text, before anything else */
        ENTRY_UNUSED,  /* never produced from a text */
        ENTRY_BYTE,    /* CHARACTERS: one byte of a character that has no entry */
        ENTRY_KIND_N,
};

/* CONTROL and USER: the entry also matches the blanks on its left or right. */
enum { ENTRY_STRIPS_LEFT = 1, ENTRY_STRIPS_RIGHT = 2 };

struct entry {
        const char *bytes; /* `count` arbitrary bytes; for CONTROL, UNKNOWN: its spelling */
        uint32_t count;
        float score; /* CHARACTERS without merges: the highest score is merged first */
        uint8_t kind;
        uint8_t strips;
};

/* Two neighbours that are merged: the bytes of `result` are those of `left` and `right`. */
struct merge {
        uint32_t left, right, result;
};

struct vocabulary {
        enum vocabulary_kind kind;
        /*
         * Into pre-tokens: each cut divides the pieces of the one before it, and no token crosses a
         * border.  None: the whole text is one pre-token.
         */
        const struct vocabulary_cut *cuts;
        uint32_t cut_count;
        enum vocabulary_normaliser normaliser;
        enum vocabulary_blank blank;
        bool blank_once; /* no blank before a text that begins with one */
        /* a pre-token that is an entry becomes that entry, whatever the merges say */
        bool whole_wins;
        /* adjacent characters without an entry give one unknown token, not one each */
        bool unknown_run;
        /* CHARACTERS: strip outer blanks, and reduce each inner run of blanks to one */
        bool squeezes;
        bool add_bos;
        uint32_t bos, eos, unknown; /* or VOCABULARY_NONE */
        uint32_t entry_count, merge_count;
        const struct entry *entries; /* indexed by id */
        const struct merge *merges;  /* in order of priority; none: merge by score */
};

#endif
