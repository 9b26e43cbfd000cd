/*
 * The lexer: turns the text of a template into tokens, one at a time.
 *
 * All of Jinja's rules about blanks are implemented here: `-` and `+` at tags, trim_blocks,
 * lstrip_blocks, raw, comments.  All newlines become \n, and one at the end is removed.
 */
#ifndef DAEMON_TEXT_TEMPLATE_LEXER_H
#define DAEMON_TEXT_TEMPLATE_LEXER_H

#include "daemon/text/template.h"
#include "json/shown.h"

enum token_kind {
        TOKEN_END,
        TOKEN_DATA,
        TOKEN_PRINT_BEGIN,
        TOKEN_PRINT_END,
        TOKEN_BLOCK_BEGIN,
        TOKEN_BLOCK_END,
        TOKEN_NAME,
        TOKEN_STRING, /* bytes: the value, with escapes replaced */
        TOKEN_INTEGER,
        TOKEN_FLOAT,
        /* Operators of two characters, then those of one. */
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
        const char *text; /* a private copy in which every newline is \n */
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

/* A kind of token as a phrase in a message: '%}', an integer, the end of the template. */
struct shown token_shown(enum token_kind kind);

#endif
