/*
 * Charsmap: the compiled rules by which SentencePiece normalises a text (`precompiled_charsmap`).
 *
 *      4 bytes          the size of the table, little endian
 *      the table        units of 4 bytes: a trie of the texts that are replaced (a double array)
 *      the rest         replacements, each with a zero byte behind it
 *
 * SentencePiece replaces the longest text that begins at each place.  Hugging Face's `tokenizers`
 * replaces whole clusters (clusters.h) of less than six bytes that begin with such a text, or else
 * single characters.  Hostile bytes are refused or find nothing.  It takes time linear in the text.
 *
 * Read-only after it is opened; any thread may use it.
 */
#ifndef DAEMON_TEXT_CHARSMAP_H
#define DAEMON_TEXT_CHARSMAP_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/text/trie.h"

#define CHARSMAP_BYTES_MAX (4u << 20)
#define CHARSMAP_KEY_MAX   256u /* longer texts are not replaced */

struct charsmap;

/* Copies what it needs.  0, -EINVAL with the fault in *why, or -ENOMEM. */
int charsmap_open(const char *blob, size_t bytes, struct charsmap **ret_map, char *why,
                  size_t why_bytes);
struct charsmap *charsmap_close(struct charsmap *map); /* takes NULL */

/* A text becomes at most this many times as long. */
uint32_t charsmap_growth(const struct charsmap *map);

/*
 * Writes the text to `to`, which has room for `charsmap_growth() * bytes`.  kept: words that stay
 * as they are, or NULL.  Returns the bytes written.
 */
size_t charsmap_run(const struct charsmap *map, const struct trie *kept, const char *text,
                    size_t bytes, char *to, uint64_t *steps);
size_t charsmap_run_clusters(const struct charsmap *map, const char *text, size_t bytes, char *to,
                             uint64_t *steps);

#endif
