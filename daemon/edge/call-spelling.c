#include "daemon/edge/call-spelling.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "daemon/constraint/grammar.h"

/* The longest mark that the text begins with, if it is a control token; MARK_N: none is. */
static unsigned token_at(const struct dialect *dialect, const char *text, size_t bytes)
{
        unsigned longest = MARK_N;

        for (unsigned i = 0; i < MARK_N; i++)
                if (dialect->marks[i].is_token && dialect->marks[i].bytes <= bytes &&
                    !memcmp(text, dialect->marks[i].spelling.text, dialect->marks[i].bytes) &&
                    (longest == MARK_N || dialect->marks[i].bytes > dialect->marks[longest].bytes))
                        longest = i;
        return longest;
}

int call_spell(const struct dialect *dialect, struct arena *arena, const char *text, size_t bytes,
               struct regex_text *ret_text)
{
        char *to = arena_take(arena, bytes * TOKEN_BYTES + 1);
        size_t count = 0;

        if (!to)
                return error_raise(-ENOMEM);
        for (size_t at = 0; at < bytes;) {
                unsigned mark = token_at(dialect, text + at, bytes - at);

                if (mark == MARK_N) {
                        to[count++] = text[at++];
                        continue;
                }
                grammar_token_bytes(dialect->marks[mark].token, (uint8_t *)to + count);
                count += TOKEN_BYTES;
                at += dialect->marks[mark].bytes;
        }
        *ret_text = (struct regex_text){ to, (uint32_t)count };
        return 0;
}
