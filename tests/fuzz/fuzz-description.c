/*
 * Any description of a constraint, and any text along it: description | 0 | text.
 *
 * A description that is refused says why.  The same description is refused or accepted again.
 */
#include "tests/description-grammar.h"
#include "tests/fuzz/constraint-walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int compile(const uint8_t *data, size_t bytes, struct grammar **ret_grammar)
{
        char why[256] = "";
        int r = description_grammar((const char *)data, bytes, &walk_grammar_limits, ret_grammar,
                                    why, sizeof(why));

        assert(!r || (why[0] && strlen(why) < sizeof(why)));
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        size_t split = walk_split(data, size), text = split + (split < size);
        struct grammar *grammar = NULL, *again = NULL;
        int r = compile(data, split, &grammar);

        assert(compile(data, split, &again) == r);
        if (r)
                return 0;
        assert(walk_along(grammar, data + text, size - text) ==
               walk_along(again, data + text, size - text));
        grammar_free(grammar);
        grammar_free(again);
        return 0;
}
