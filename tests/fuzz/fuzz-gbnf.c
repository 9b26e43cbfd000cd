/* Any grammar in GBNF, and any text along it: grammar | 0 | text. */
#include "daemon/constraint/gbnf.h"
#include "tests/fuzz/constraint-walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        size_t split = walk_split(data, size);
        struct grammar *grammar;
        char why[256];

        if (gbnf_compile((const char *)data, split, &walk_grammar_limits, &grammar, why,
                         sizeof(why)))
                return 0;
        walk_along(grammar, data + split + (split < size), size - split - (split < size));
        grammar_free(grammar);
        return 0;
}
