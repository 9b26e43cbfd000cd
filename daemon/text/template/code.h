/*
 * A parsed template: flat code for the machine in run.c.
 *
 * The machine has a stack of values and a stack of frames; an instruction takes what it
 * needs from the first and leaves its result there.  Jumps are relative to the jump, so
 * that the parser can exchange two pieces of code when the source has them the other way
 * round (`a if b`: b is asked first).  Read-only once it is made.
 */
#ifndef DAEMON_TEXT_TEMPLATE_CODE_H
#define DAEMON_TEXT_TEMPLATE_CODE_H

#include "daemon/text/value.h"

enum op {
        OP_DATA,  /* prints constant arg, which is the template's own text */
        OP_PRINT, /* flag: it has to be a string */
        OP_CONST,
        OP_LOAD,     /* the variable whose name is constant arg */
        OP_STORE,    /* into it, in the innermost scope */
        OP_STORE_IN, /* into variable arg's attribute more */
        OP_UNPACK,   /* into arg values; the first of them on top */
        OP_TUCK,     /* a b -> b a b */
        OP_NIP,      /* a b -> b */
        OP_LIST,     /* of the last arg values */
        OP_TUPLE,
        OP_DICT, /* of the last arg pairs */
        OP_ATTRIBUTE,
        OP_ITEM,
        OP_SLICE, /* value start stop step */
        OP_NEGATE,
        OP_PLUS,
        OP_NOT,
        OP_BINARY,  /* flag: enum binary */
        OP_CONCAT,  /* of the last arg values, as text */
        OP_COMPARE, /* flag: enum compare */
        OP_JUMP,
        OP_JUMP_FALSE,      /* takes it */
        OP_JUMP_FALSE_KEEP, /* takes it only if it does not jump */
        OP_JUMP_TRUE_KEEP,
        OP_FILTER, /* row arg, count arguments, of which the last have the names in constant more;
                    * flag: SPREAD_LIST, SPREAD_MAP */
        OP_TEST,
        OP_CALL,
        OP_SCOPE_BEGIN,
        OP_SCOPE_END,
        OP_CAPTURE_BEGIN, /* a scope too */
        OP_CAPTURE_END,   /* leaves what was printed since */
        OP_FOR_BEGIN,     /* jumps where there is nothing; else leaves the first item */
        OP_FOR_NEXT,      /* jumps with the next item; else it was the last */
        OP_KEEP_BEGIN,    /* a loop that only chooses: which items does the real one get? */
        OP_KEEP_NEXT,     /* jumps when there is none, and leaves those that were kept */
        OP_KEEP,          /* keeps the item if what is on top is true */
        OP_BREAK,
        OP_CONTINUE,
        OP_MACRO,   /* row more of macros; jumps over its body */
        OP_DEFAULT, /* jumps by more if parameter arg was given */
        OP_STORE_PARAMETER,
        OP_RETURN,
        OP_END,
};

enum binary {
        BINARY_ADD,
        BINARY_SUBTRACT,
        BINARY_MULTIPLY,
        BINARY_DIVIDE,
        BINARY_FLOOR,
        BINARY_MODULO,
        BINARY_POWER,
};

enum compare {
        COMPARE_EQ,
        COMPARE_NE,
        COMPARE_LT,
        COMPARE_LE,
        COMPARE_GT,
        COMPARE_GE,
        COMPARE_IN,
        COMPARE_NOT_IN,
};

#define NO_NAMES    UINT32_MAX
#define SPREAD_LIST 1u /* of the arguments, the one in front of the names is a list of more */
#define SPREAD_MAP  2u /* the last one is a map of more that have names */
#define PENDING     INT32_MAX /* where a break goes, until its loop is parsed */
#define PARAMETERS  32u
#define ARGUMENTS   255u

struct instruction {
        uint8_t op, flag;
        uint16_t count;
        int32_t arg;
        uint32_t more, line;
};

struct parameter {
        const struct text *name;
        bool has_default;
};

/* How a macro is called.  Its code begins behind OP_MACRO, with its defaults. */
struct macro_code {
        const struct text *name;
        struct parameter parameters[PARAMETERS];
        uint32_t parameter_count;
        bool takes_more, takes_names, takes_caller; /* its body asks for varargs, kwargs, caller */
};

struct template
{
        struct arena *arena;
        struct instruction *code;
        struct value *constants;
        struct macro_code **macros;
        uint32_t code_count, constant_count, macro_count;
};

#endif
