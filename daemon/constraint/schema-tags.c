#include "daemon/constraint/schema-tags.h"

#include <string.h>

#include "daemon/constraint/regex-text.h"

#define BARE_KEY_MAX 127u /* the readers of such calls take no longer ones */

/* An identifier of Python, or a key without quotes. */
static void check_bare_key(struct schema_compiler *compiler, const char *key)
{
        static const char letters[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
        bool python = schema_is_python(compiler);
        size_t bytes = strspn(key, letters);

        if (python ? !bytes || key[bytes] || (*key >= '0' && *key <= '9')
                   : !*key || key[strcspn(key, " <>\"'\\{}[],:\x7f")])
                schema_fail(compiler, 0, "the key \"%.60s\" cannot stand without quotes", key);
        if (strlen(key) > BARE_KEY_MAX)
                schema_fail(compiler, 0, "the key \"%.60s\" has more than %u bytes", key,
                            BARE_KEY_MAX);
}

void tags_check_key(struct schema_compiler *compiler, const char *key)
{
        if (compiler->options.surface)
                check_bare_key(compiler, key);
        for (const char *c = key; *c; c++)
                if ((unsigned char)*c < 0x20 || strchr("<>\"", *c))
                        schema_fail(compiler, 0, "the key \"%.60s\" cannot stand in a tag", key);
}

static uint32_t expression(struct schema_compiler *compiler, const char *text)
{
        uint32_t term = REGEX_NONE;
        char why[160];

        if (regex_text_read(compiler->pool, text, strlen(text), WRITING_PLAIN, REGEX_WHOLE, &term,
                            why, sizeof(why)) < 0)
                schema_fail(compiler, 0, "%s", why);
        return term;
}

uint32_t tags_keys(struct schema_compiler *compiler)
{
        if (schema_is_python(compiler))
                return expression(compiler, "[A-Za-z_][A-Za-z0-9_]{0,126}");
        if (schema_is_bare(compiler))
                return expression(compiler, "[^<>\"'\\\\{}\\[\\],:\\x00-\\x20\\x7f]{1,31}");
        return expression(compiler, "[^<>\"\\x00-\\x1f]+");
}

static uint32_t tag(struct schema_compiler *compiler, const struct regex_text *text)
{
        return regex_literal(compiler->pool, text->bytes, text->count);
}

void tags_set_keys(struct schema_compiler *compiler, uint32_t key, struct grammar_member *member)
{
        const struct json_tags *tags = compiler->options.tags;
        uint32_t first = regex_concat(compiler->pool, tag(compiler, &tags->key), key);
        uint32_t next = regex_concat(compiler->pool, tag(compiler, &tags->between), first);

        member->first_key = grammar_lexeme(compiler->grammar, first);
        member->next_key = grammar_lexeme(compiler->grammar, next);
}

/* Texts that are read as JSON, where other values than strings are allowed. */
static uint32_t read_as_json(struct schema_compiler *compiler, unsigned types)
{
        if (types == 1u << JSON_STRING || compiler->options.tags->raw_key_end.count)
                return REGEX_NONE;
        if (types == (1u << JSON_STRING | 1u << JSON_NULL))
                return expression(compiler, "null[ \\t\\n\\r]*");
        return expression(compiler, "[ \\t\\n\\r]*((null|true|false|"
                                    "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?)[ \\t\\n\\r]*|"
                                    "[\\[{\"](.|[\\n\\r\\u2028\\u2029])*)");
}

/* Texts that end with the end of a value, and have no such end before. */
static uint32_t up_to_end(struct schema_compiler *compiler, uint32_t text)
{
        struct regex_pool *pool = compiler->pool;
        struct regex_text end = compiler->options.tags->value_end;
        uint32_t whole = tag(compiler, &end), more = regex_concat(pool, REGEX_BYTE, REGEX_ANY);

        while (end.count > 1 && (*end.bytes == '\n' || *end.bytes == ' ')) {
                end.bytes++;
                end.count--;
        }
        more = regex_concat(pool, tag(compiler, &end), more);
        return regex_and2(pool, regex_concat(pool, text, whole),
                          regex_not(pool, regex_concat(pool, REGEX_ANY, more)));
}

void tags_add_value(struct schema_compiler *compiler, uint32_t rule, unsigned types,
                    uint32_t strings, uint32_t json)
{
        const struct json_tags *tags = compiler->options.tags;
        const struct regex_text *key_end =
                tags->raw_key_end.count ? &tags->raw_key_end : &tags->key_end;
        struct grammar *grammar = compiler->grammar;
        struct regex_pool *pool = compiler->pool;
        uint32_t symbols[3] = { grammar_lexeme(grammar, tag(compiler, &tags->key_end)), json,
                                grammar_lexeme(grammar, tag(compiler, &tags->value_end)) };

        grammar_add(grammar, rule, symbols, 3);
        if (schema_is_python(compiler)) /* strings are in quotes, as in JSON */
                return;
        strings = regex_and2(pool, strings, regex_not(pool, read_as_json(compiler, types)));
        if (tags->newline)
                strings =
                        regex_and2(pool, strings,
                                   regex_not(pool, regex_concat(pool, regex_literal(pool, "\n", 1),
                                                                REGEX_ANY)));
        strings = regex_concat(pool, tag(compiler, key_end), up_to_end(compiler, strings));
        symbols[0] = grammar_lexeme(grammar, strings);
        grammar_add(grammar, rule, symbols, 1);
}
