/*
 * A vocabulary, out of the files that people have.
 *
 *      MODEL.gguf                    its metadata: gpt2 (byte-level BPE), llama (SentencePiece), bytes
 *      tokenizer.json                Hugging Face; model BPE
 *      tokenizer.model               SentencePiece; model BPE
 *      vocab.json, encoder.json      byte-level BPE; merges.txt, vocab.bpe beside it
 *      a folder                      the first of these that is in it
 *
 * All of them are hostile.  What a file asks for and is not done here is refused by
 * its name, never left out: ids that are nearly right are wrong.  So a tokenizer.json
 * is recognised by its structure, part by part.
 */
#ifndef DAEMON_FILES_VOCABULARY_H
#define DAEMON_FILES_VOCABULARY_H

#include <stddef.h>

#include "daemon/vocabulary.h"

#define VOCABULARY_FILE_BYTES_MAX (256u << 20)

struct gguf;

/*
 * `splitter` names the rule for pre-tokens ("gpt2", "llama3", "qwen2", "none", and as
 * GGUF files call them); NULL: the file says it, and one that cannot is refused.
 * 0, -EINVAL, -ENOMEM or what reading met; *why has the sentence.
 */
int vocabulary_open(const char *path, const char *splitter, struct vocabulary **ret_vocabulary,
                    char *why, size_t why_bytes);
struct vocabulary *vocabulary_close(struct vocabulary *vocabulary); /* takes NULL */

/* The same from what has been read. */
int vocabulary_from_gguf(const struct gguf *gguf, const char *splitter,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes);
int vocabulary_from_json(const char *text, size_t bytes, const char *splitter,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes);
int vocabulary_from_model(const char *bytes, size_t count, struct vocabulary **ret_vocabulary,
                          char *why, size_t why_bytes);
int vocabulary_from_pair(const char *vocab, size_t vocab_bytes, const char *merges,
                         size_t merges_bytes, const char *splitter,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes);

#endif
