/*
 * Reads a vocabulary from the usual kinds of files.
 *
 *      MODEL.gguf                its metadata: gpt2 (byte-level BPE), llama (SentencePiece's BPE),
 *                                gemma4 (BPE of characters), t5 (unigram), bert (WordPiece), bytes
 *      tokenizer.json            Hugging Face; models BPE, Unigram, WordPiece and WordLevel
 *      tokenizer.model           SentencePiece; models BPE and unigram; or ranks as tiktoken writes
 *                                them
 *      NAME.tiktoken             ranks
 *      tekken.json               Mistral's Tekken
 *      vocab.json, encoder.json  byte-level BPE; with merges.txt or vocab.bpe beside it
 *      vocab.txt                 WordPiece, as BERT has it; with tokenizer_config.json beside it
 *      a folder                  the first of these that is in it
 *
 * Added tokens in the other files of the folder complete all but GGUF files and those that end in
 * .json, apart from vocab.json (side-tokens.h).
 *
 * All of these files are hostile.  A feature that is not implemented is refused by its name and
 * never ignored, because ids that are almost right are wrong.  For the same reason, a
 * tokenizer.json is recognised by its structure, part by part.
 */
#ifndef DAEMON_FILES_VOCABULARY_H
#define DAEMON_FILES_VOCABULARY_H

#include <stddef.h>

#include "daemon/model/vocabulary.h"

#define VOCABULARY_FILE_BYTES_MAX (256u << 20)

struct gguf;
struct side_files;

/*
 * `splitter` names the rule for pre-tokens ("gpt2", "llama3", "qwen2", "none", or a name that GGUF
 * files use).  NULL: the file must name it; a file that cannot is refused.  Returns 0, -EINVAL,
 * -ENOMEM or a read error; *why has the sentence.
 */
int vocabulary_open(const char *path, const char *splitter, struct vocabulary **ret_vocabulary,
                    char *why, size_t why_bytes);
struct vocabulary *vocabulary_close(struct vocabulary *vocabulary); /* takes NULL */

/* The same from data in memory.  side: tokens of the files beside it (side-tokens.h), or NULL. */
int vocabulary_from_gguf(const struct gguf *gguf, const char *splitter,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes);
int vocabulary_from_json(const char *text, size_t bytes, const char *splitter,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes);
int vocabulary_from_model(const char *bytes, size_t count, const struct side_files *side,
                          struct vocabulary **ret_vocabulary, char *why, size_t why_bytes);
int vocabulary_from_ranks(const char *text, size_t bytes, const char *splitter,
                          const struct side_files *side, struct vocabulary **ret_vocabulary,
                          char *why, size_t why_bytes);
int vocabulary_from_tekken(const char *text, size_t bytes, struct vocabulary **ret_vocabulary,
                           char *why, size_t why_bytes);
/* config: that of tokenizer_config.json, or NULL. */
int vocabulary_from_words(const char *text, size_t bytes, const char *config, size_t config_bytes,
                          const struct side_files *side, struct vocabulary **ret_vocabulary,
                          char *why, size_t why_bytes);
int vocabulary_from_pair(const char *vocab, size_t vocab_bytes, const char *merges,
                         size_t merges_bytes, const char *splitter, const struct side_files *side,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes);

#endif
