/*
 * Any structure, and any text along it: structure | 0 | text.
 *
 * A structure is written in letters.  L, R, G, S and a text up to ";" are a literal, an expression,
 * a grammar or a schema; ( ) and [ ] stand around a sequence and a choice; * is a list, with its
 * bounds, a text and a part; T is free text, with its bounds, "c" if it is closed or "o", a text
 * that it must not contain, and its parts up to "}".
 */
#include "daemon/constraint/structure.h"
#include "tests/fuzz/constraint-walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PARTS_MAX 64u
#define NESTED    20u

struct source {
        const char *at, *end;
        struct structure parts[PARTS_MAX];
        struct regex_text without[PARTS_MAX];
        uint32_t count, without_count;
};

static char next(struct source *source)
{
        return source->at < source->end ? *source->at++ : 0;
}

static struct regex_text read_text(struct source *source)
{
        const char *begin = source->at;
        const char *end = memchr(begin, ';', source->end - begin);

        if (!end)
                end = source->end;
        source->at = end < source->end ? end + 1 : end;
        return (struct regex_text){ begin, (uint32_t)(end - begin) };
}

static void read_bounds(struct source *source, struct structure *part)
{
        char max;

        part->min = next(source) & 7;
        max = next(source);
        part->max = max == 'f' ? REGEX_FOREVER : (uint32_t)(max & 7);
}

static void read_part(struct source *source, struct structure *part, unsigned depth);

/* Parts up to a letter; those of one structure lie side by side. */
static void read_parts(struct source *source, struct structure *part, char end, unsigned depth)
{
        struct structure own[8] = { 0 };
        uint32_t count = 0;

        while (count < 8 && source->at < source->end && *source->at != end && depth < NESTED)
                read_part(source, &own[count++], depth + 1);
        next(source);
        if (source->count + count > PARTS_MAX)
                return;
        part->parts = memcpy(source->parts + source->count, own, count * sizeof(*own));
        part->count = count;
        source->count += count;
}

static void read_part(struct source *source, struct structure *part, unsigned depth)
{
        char kind = next(source);

        part->kind = STRUCTURE_LITERAL;
        switch (kind) {
        case 'R':
        case 'G':
        case 'S':
                part->kind = kind == 'R'   ? STRUCTURE_REGEX
                             : kind == 'G' ? STRUCTURE_GBNF
                                           : STRUCTURE_SCHEMA;
                part->text = read_text(source);
                break;
        case '(':
        case '[':
                part->kind = kind == '(' ? STRUCTURE_SEQUENCE : STRUCTURE_CHOICE;
                read_parts(source, part, kind == '(' ? ')' : ']', depth);
                break;
        case '*':
                part->kind = STRUCTURE_LIST;
                read_bounds(source, part);
                part->text = read_text(source);
                read_parts(source, part, '.', depth);
                break;
        case 'T':
                part->kind = STRUCTURE_TEXT;
                read_bounds(source, part);
                part->closed = next(source) == 'c';
                part->without = &source->without[source->without_count];
                source->without[source->without_count] = read_text(source);
                part->without_count = part->without->count > 0;
                source->without_count += source->without_count + 1 < PARTS_MAX;
                read_parts(source, part, '}', depth);
                break;
        default:
                part->text = read_text(source);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct source source;
        size_t split = walk_split(data, size), text = split + (split < size);
        struct structure root = { 0 };
        struct grammar *grammar;
        char why[256];

        source = (struct source){ .at = (const char *)data, .end = (const char *)data + split };
        read_part(&source, &root, 0);
        if (structure_compile(&root, &walk_grammar_limits, &grammar, why, sizeof(why)))
                return 0;
        walk_along(grammar, data + text, size - text);
        grammar_free(grammar);
        return 0;
}
