/*
 * Vocabulary: the data of a tokenizer, independent of the file format.
 *
 * Pure data, already decoded: a byte-level letter is stored as its byte, a SentencePiece bar
 * (U+2581) and the mark of a word's border as a blank, and a merge as the ids of its entries.
 * The code that makes a vocabulary keeps the limits below; tokenizer_open() checks again what it
 * relies on.  Never written after it is made; any thread may read it.
 */
#ifndef DAEMON_MODEL_VOCABULARY_H
#define DAEMON_MODEL_VOCABULARY_H

#include <stdbool.h>
#include <stdint.h>

#define VOCABULARY_NONE            UINT32_MAX
#define VOCABULARY_ENTRIES_MAX     (1u << 22)
#define VOCABULARY_MERGES_MAX      (1u << 22)
#define VOCABULARY_ENTRY_BYTES_MAX 1024u
#define VOCABULARY_ENDS_MAX        4u

/* Into which units a text is split before merging. */
enum vocabulary_kind {
        VOCABULARY_BYTES,      /* ids 0 to 255 are bytes, other ids have no text; no merging */
        VOCABULARY_BYTE_LEVEL, /* pre-tokens are split into bytes */
        VOCABULARY_CHARACTERS, /* characters: SentencePiece's BPE */
        VOCABULARY_UNIGRAM,    /* entries with the largest sum of scores; nothing is merged */
        /*
         * Not split: the longest entry from the begin of a pre-token on, then from there on.  A
         * pre-token in which this finds no entry somewhere is one unknown token.
         */
        VOCABULARY_WORDPIECE,
};

/*
 * How entries at the border of a word differ from entries inside it.  Each pre-token gets a blank
 * there, which belongs to the character beside it.  Entries of the border have that blank.
 */
enum vocabulary_border {
        BORDER_NONE,
        BORDER_FRONT,  /* VOCABULARY_WORDPIECE always has this one */
        BORDER_BEHIND, /* CHARACTERS, BYTE_LEVEL */
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
        /* BYTE_LEVEL: it sees each byte as a letter of GPT-2; so does every cut behind it */
        bool letters;
};

#define VOCABULARY_CUTS_MAX 8u

/* A step that changes a text before it is cut. */
enum normal_kind {
        NORMAL_NFC,
        NORMAL_NFD,
        NORMAL_NFKC,
        NORMAL_NFKD,
        NORMAL_LOWER,        /* characters in lower case */
        NORMAL_DROP_MARKS,   /* the categories M */
        NORMAL_DROP_ACCENTS, /* the category Mn */
        NORMAL_TRIM_LEFT,    /* blanks at the begin */
        NORMAL_TRIM_RIGHT,   /* ... and at the end */
        NORMAL_REPLACE,      /* matches of `expression` become `content` */
        NORMAL_PREPEND,      /* `content` goes before a text that is not empty */
        NORMAL_CLEAN,        /* BERT's: no control characters, and every blank is U+0020 */
        NORMAL_PART_HAN,     /* BERT's: a blank before and behind each Chinese character */
        NORMAL_NMT,          /* SentencePiece's: no control characters, fewer kinds of blanks */
        /*
         * SentencePiece's compiled rules (`content`; daemon/text/charsmap.h).  USER entries stay as
         * they are.
         */
        NORMAL_RULES,
        NORMAL_RULES_CLUSTERS, /* the same rules, as Hugging Face's `tokenizers` applies them */
        NORMAL_KIND_N,
};

struct vocabulary_normal {
        uint8_t kind;
        const char *expression;
        const char *content; /* `bytes` of them */
        uint32_t bytes;
};

#define VOCABULARY_NORMALS_MAX 16u

/* Where a blank is inserted, so that the first word is tokenized like later words. */
enum vocabulary_blank {
        BLANK_NEVER,
        BLANK_FIRST, /* before the text */
        BLANK_EACH,  /* before the text and after each added token */
        BLANK_LAST,  /* behind the text, and behind each text before an added token */
};

enum entry_kind {
        ENTRY_NORMAL,  /* produced by merges */
        ENTRY_UNKNOWN, /* stands for text that has no entry; is not text itself */
        ENTRY_CONTROL, /* matched in a text only where the caller asks for it; is not text */
        ENTRY_USER,    /* matched in any text, before anything else */
        ENTRY_UNUSED,  /* never produced from a text */
        ENTRY_BYTE,    /* CHARACTERS, UNIGRAM: one byte of a character that has no entry */
        ENTRY_KIND_N,
};

/* How CONTROL and USER entries match. */
enum {
        ENTRY_STRIPS_LEFT = 1,  /* also the blanks on the left */
        ENTRY_STRIPS_RIGHT = 2, /* also the blanks on the right */
        ENTRY_ALONE = 4,        /* not beside a letter, a mark, a digit or '_' */
        ENTRY_NORMALISED = 8,   /* USER: the normalised spelling, in the normalised text */
        /* USER of SentencePiece's own file: as `tokenizers` has it, before anything else */
        ENTRY_FIRST = 32,
};

/* With BORDER_FRONT, in the same field: the blank in front of NORMAL and USER is no text. */
enum { ENTRY_JOINS = 16 };

struct entry {
        const char *bytes; /* `count` arbitrary bytes; for CONTROL, UNKNOWN: its spelling */
        uint32_t count;
        /*
         * With by_score: the highest score is merged first.  UNIGRAM: what a NORMAL or USER entry
         * adds to the sum; -INFINITY: it is not made of text, only matched.
         */
        double score;
        uint8_t kind;
        uint8_t matching; /* of ENTRY_STRIPS_LEFT and so on */
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
        /* Each step changes what the one before it gave. */
        const struct vocabulary_normal *normals;
        uint32_t normal_count;
        enum vocabulary_blank blank;
        bool blank_once; /* no blank before a text that begins with one */
        /* blanks are part of the normalised text, in which ENTRY_NORMALISED are searched */
        bool normal_blanks;
        bool by_score; /* BYTE_LEVEL, CHARACTERS: without a list of merges, by score */
        /* a pre-token that is an entry becomes that entry, whatever the merges say */
        bool whole_wins;
        /* adjacent characters without an entry give one unknown token, not one each */
        bool unknown_run;
        /* CHARACTERS, UNIGRAM: strip outer blanks, and reduce each inner run of blanks to one */
        bool squeezes;
        /* ... and every White_Space counts as a blank; a bar (U+2581) behind one adds none */
        bool squeezes_all;
        /* UNIGRAM */
        double unknown_score; /* of a character that is no entry */
        bool single_sums;     /* sums are floats, and USER entries are found in no other way */
        bool original;        /* SentencePiece's own file: USER entries match in normalised text */
        bool spelt_bytes;     /* BYTE entries have scores, for their spelling: <0x0A> */
        bool keeps_bars;      /* CHARACTERS: U+2581 is a character like others, and is no blank */
        enum vocabulary_border border;
        /*
         * WORDPIECE: the mark of entries inside words, if the file writes one; a word that begins
         * with the mark may begin with such an entry, as the file writes it
         */
        const char *mark;
        uint32_t mark_bytes;
        uint32_t word_max; /* WORDPIECE: characters of a pre-token that is known; 0: no limit */
        bool add_bos;
        uint32_t bos, eos, unknown; /* or VOCABULARY_NONE */
        /*
         * Tokens that the original library puts behind a text, such as T5's </s>.  They end a text
         * that is read as a whole.  A prompt is continued, so generating never adds them.
         */
        uint32_t ends[VOCABULARY_ENDS_MAX];
        uint32_t end_count;
        uint32_t entry_count, merge_count;
        const struct entry *entries; /* indexed by id */
        const struct merge *merges;  /* in order of priority; none: see `by_score` */
};

#endif
