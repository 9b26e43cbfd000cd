/*
 * Vocabulary: what a tokenizer is made of, whoever wrote the file.
 *
 * Pure data.  Spellings are gone: a byte-level letter has become its byte, a
 * SentencePiece bar (U+2581) its blank, a merge the numbers of its entries.
 * Whoever makes one keeps the limits below; tokenizer_open() checks again what it
 * relies on.  Never written once it is made; any thread reads it.
 */
#ifndef DAEMON_VOCABULARY_H
#define DAEMON_VOCABULARY_H

#include <stdbool.h>
#include <stdint.h>

#define VOCABULARY_NONE            UINT32_MAX
#define VOCABULARY_ENTRIES_MAX     (1u << 22)
#define VOCABULARY_MERGES_MAX      (1u << 22)
#define VOCABULARY_ENTRY_BYTES_MAX 1024u

/* What a text is cut into before anything is merged. */
enum vocabulary_kind {
        VOCABULARY_BYTES,      /* ids 0 to 255 are bytes, the rest has no text; nothing is merged */
        VOCABULARY_BYTE_LEVEL, /* pre-tokens by the splitter, and these into bytes */
        VOCABULARY_CHARACTERS, /* characters: SentencePiece's BPE */
};

enum vocabulary_splitter {
        SPLITTER_NONE, /* a text is one pre-token */
        SPLITTER_GPT2,
        SPLITTER_LLAMA3,
        SPLITTER_QWEN2,
        SPLITTER_N,
};

enum vocabulary_normaliser { NORMALISER_NONE, NORMALISER_NFC };

/* Where a blank is put before a text, so that its first word is written as others are. */
enum vocabulary_blank {
        BLANK_NEVER,
        BLANK_FIRST, /* before the text */
        BLANK_EACH,  /* and before what follows an added token */
};

enum entry_kind {
        ENTRY_NORMAL,  /* what merges make */
        ENTRY_UNKNOWN, /* stands for what has no entry; has no text */
        ENTRY_CONTROL, /* found in a text only where that is asked for; has no text */
        ENTRY_USER,    /* found in any text, before anything else */
        ENTRY_UNUSED,  /* never made of a text */
        ENTRY_BYTE,    /* CHARACTERS: stands for one byte of a character without an entry */
        ENTRY_KIND_N,
};

/* CONTROL and USER: they take the blanks beside them with them. */
enum { ENTRY_STRIPS_LEFT = 1, ENTRY_STRIPS_RIGHT = 2 };

struct entry {
        const char
                *bytes; /* `count` of them, any bytes; of a CONTROL: as it is written in a text */
        uint32_t count;
        float score; /* CHARACTERS without merges: the highest is merged first */
        uint8_t kind;
        uint8_t strips;
};

/* Two neighbours that become one: three entries, the third's bytes are the first two's. */
struct merge {
        uint32_t left, right, result;
};

struct vocabulary {
        enum vocabulary_kind kind;
        enum vocabulary_splitter splitter;
        enum vocabulary_normaliser normaliser;
        enum vocabulary_blank blank;
        bool blank_once;  /* but not before what begins with a blank */
        bool whole_wins;  /* a pre-token that is an entry is that entry, whatever the merges say */
        bool unknown_run; /* neighbours without an entry are one unknown, not one each */
        bool squeezes;    /* CHARACTERS: a text's outer blanks go, and of others all but one */
        bool add_bos;
        uint32_t bos, eos, unknown; /* or VOCABULARY_NONE */
        uint32_t entry_count, merge_count;
        const struct entry *entries; /* by id */
        const struct merge *merges;  /* the first is done first; none: by score */
};

#endif
