/*
 * A parsed template: flat code for the machine in run.c.
 *
 * The machine has a stack of values and a stack of frames.  An instruction takes its operands from
 * the stack of values and leaves its result there.  Jumps are relative to the jump.  So the parser
 * can exchange two pieces of code if the source has them in the other order: in `a if b`, b is
 * evaluated first.  Read-only after it is made.
 */
#ifndef DAEMON_TEXT_TEMPLATE_CODE_H
#define DAEMON_TEXT_TEMPLATE_CODE_H

#include "daemon/text/value.h"

enum op {
        OP_DATA,  /* prints constant arg, which is text of the template */
        OP_PRINT, /* flag: the value has to be a string */
        OP_CONST,
        OP_LOAD,     /* reads the variable whose name is constant arg */
        OP_STORE,    /* assigns to that variable in the innermost scope */
        OP_STORE_IN, /* assigns to attribute `more` of the namespace in variable arg */
        OP_UNPACK,   /* turns one value into arg values; the first of them is on top */
        OP_TUCK,     /* a b -> b a b */
        OP_NIP,      /* a b -> b */
        OP_LIST,     /* makes a list of the last arg values */
        OP_TUPLE,
        OP_DICT, /* makes a map of the last arg pairs */
        OP_ATTRIBUTE,
        OP_ITEM,
        OP_SLICE, /* value start stop step */
        OP_NEGATE,
        OP_PLUS,
        OP_NOT,
        OP_BINARY,  /* flag: enum binary */
        OP_CONCAT,  /* joins the last arg values as text */
        OP_COMPARE, /* flag: enum compare */
        OP_JUMP,
        OP_JUMP_FALSE,      /* removes the value from the stack */
        OP_JUMP_FALSE_KEEP, /* removes the value only if it does not jump */
        OP_JUMP_TRUE_KEEP,
        /*
         * Filter arg is called with `count` arguments; the last of them have the names in the list
         * that is constant `more`.  flag: SPREAD_LIST, SPREAD_MAP.
         */
        OP_FILTER,
        OP_TEST,
        OP_CALL,
        OP_SCOPE_BEGIN,
        OP_SCOPE_END,
        OP_CAPTURE_BEGIN, /* begins a scope, too */
        OP_CAPTURE_END,   /* leaves the text that was printed since OP_CAPTURE_BEGIN */
        OP_FOR_BEGIN,     /* jumps if there are no items; else leaves the first one */
        OP_FOR_NEXT,      /* leaves the next item and jumps; without one, ends the loop */
        OP_KEEP_BEGIN,    /* begins the loop of `for ... if`, which selects the items */
        OP_KEEP_NEXT,     /* leaves the next item; without one, leaves those kept and jumps */
        OP_KEEP,          /* keeps the item if the value on top of the stack is true */
        OP_BREAK,         /* jumps by arg if a turn was finished, else by `more` */
        OP_CONTINUE,
        OP_MACRO,   /* makes a value of macro `more`; jumps over its body */
        OP_DEFAULT, /* jumps by `more` if parameter arg was given */
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
#define SPREAD_LIST 1u /* `*list`: the argument before those with names holds more arguments */
#define SPREAD_MAP  2u /* `**map`: the last argument is a map of more arguments with names */
#define PENDING     INT32_MAX /* arg of a break or continue until its loop is parsed */
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

/* The signature of a macro.  Its code follows OP_MACRO and begins with the defaults. */
struct macro_code {
        const struct text *name;
        struct parameter parameters[PARAMETERS];
        uint32_t parameter_count;
        bool takes_more, takes_names, takes_caller; /* the body uses varargs, kwargs, caller */
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
