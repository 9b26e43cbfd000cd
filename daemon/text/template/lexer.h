/*
 * The lexer: from a template's text to tokens, one at a time.
 *
 * Here is all that Jinja says of blanks: `-` and `+` at tags, trim_blocks, lstrip_blocks,
 * raw, comments, one kind of newline, none at the end.
 */
#ifndef DAEMON_TEXT_TEMPLATE_LEXER_H
#define DAEMON_TEXT_TEMPLATE_LEXER_H

#include "daemon/text/template.h"

enum token_kind {
        TOKEN_END,
        TOKEN_DATA,
        TOKEN_PRINT_BEGIN,
        TOKEN_PRINT_END,
        TOKEN_BLOCK_BEGIN,
        TOKEN_BLOCK_END,
        TOKEN_NAME,
        TOKEN_STRING, /* bytes: what it means */
        TOKEN_INTEGER,
        TOKEN_FLOAT,
        /* Two characters, then one. */
        TOKEN_FLOOR,
        TOKEN_POWER,
        TOKEN_EQ,
        TOKEN_NE,
        TOKEN_GE,
        TOKEN_LE,
        TOKEN_PLUS,
        TOKEN_MINUS,
        TOKEN_DIVIDE,
        TOKEN_MULTIPLY,
        TOKEN_MODULO,
        TOKEN_TILDE,
        TOKEN_LBRACKET,
        TOKEN_RBRACKET,
        TOKEN_LPAREN,
        TOKEN_RPAREN,
        TOKEN_LBRACE,
        TOKEN_RBRACE,
        TOKEN_GT,
        TOKEN_LT,
        TOKEN_ASSIGN,
        TOKEN_DOT,
        TOKEN_COLON,
        TOKEN_PIPE,
        TOKEN_COMMA,
        TOKEN_SEMICOLON,
};

struct token {
        enum token_kind kind;
        uint32_t line;
        const char *bytes;
        uint32_t count;
        int64_t integer;
        double real;
};

struct lexer {
        struct arena *arena;
        const char *text; /* its own copy, with newlines made one kind */
        uint32_t count, at, line;
        bool in_tag, in_block, strip_next, line_starting;
        char open[TEMPLATE_DEPTH_MAX];
        unsigned open_count;
        char *why;
        size_t why_bytes;
};

int lexer_open(struct lexer *lexer, struct arena *arena, const char *text, size_t bytes, char *why,
               size_t why_bytes);
int lexer_next(struct lexer *lexer, struct token *ret_token);

/* How a token is called in a sentence. */
const char *token_name(enum token_kind kind);

#endif
