/* The formats of JSON Schema that are enforced, as regular expressions. */
#include <string.h>

#include "daemon/constraint/regex-text.h"
#include "daemon/constraint/schema-shape.h"

#define DATE                                                                                       \
        "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|"        \
        "02-(0[1-9]|1\\d|2[0-8]))|"                                                                \
        "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
/* Not the year 0: RFC 3339 has it, but the dates of most languages begin with the year 1. */
#define YEAR  "\\d*[1-9]\\d*-.*"
#define CLOCK "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?"
#define TIME  CLOCK "([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define BYTE  "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define IPV4  "(" BYTE "\\.){3}" BYTE
#define HEX   "[0-9a-fA-F]{1,4}"
/* RFC 4291: all groups, or "::" in place of some; then the same before an IPv4 address. */
#define IPV6                                                                                       \
        "((" HEX ":){7}" HEX "|(" HEX ":){1,7}:|(" HEX ":){1,6}:" HEX "|"                          \
        "(" HEX ":){1,5}(:" HEX "){1,2}|(" HEX ":){1,4}(:" HEX "){1,3}|"                           \
        "(" HEX ":){1,3}(:" HEX "){1,4}|(" HEX ":){1,2}(:" HEX "){1,5}|" HEX ":(:" HEX             \
        "){1,6}|:((:" HEX "){1,7}|:)|"                                                             \
        "((" HEX ":){6}|:(:" HEX "){0,5}:|" HEX ":(:" HEX "){0,4}:|"                               \
        "(" HEX ":){1,2}(:" HEX "){0,3}:|(" HEX ":){1,3}(:" HEX "){0,2}:|"                         \
        "(" HEX ":){1,4}(:" HEX ")?:|(" HEX ":){1,5}:)" IPV4 ")"
/*
 * Not with hyphens as third and fourth character: RFC 5891 leaves these to encoded labels, of which
 * no expression can say whether they are valid.
 */
#define ALNUM "[a-zA-Z0-9]"
#define INNER "[a-zA-Z0-9-]"
#define LABEL                                                                                      \
        ALNUM "(" ALNUM "|" INNER ALNUM "|" INNER INNER ALNUM "|" INNER "(" ALNUM INNER "|-" ALNUM \
              ")" INNER "{0,58}" ALNUM ")?"
#define HOST LABEL "(\\." LABEL ")*"
#define ATOM "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+"
/* RFC 3986 */
#define ENCODED  "%[0-9a-fA-F]{2}"
#define PLAIN    "-a-zA-Z0-9._~!$&'()*+,;="
#define NAME     "([" PLAIN "]|" ENCODED ")*"
#define USER     "([" PLAIN ":]|" ENCODED ")*@"
#define LITERAL  "\\[(" IPV6 "|[vV][0-9a-fA-F]+\\.[" PLAIN ":]+)\\]"
#define PATH     "([" PLAIN ":@]|" ENCODED ")"
#define QUESTION "([" PLAIN ":@/?]|" ENCODED ")*"

/* RFC 5321 and RFC 1035 limit the lengths of names. */
#define WITHIN 2
static const struct format {
        const char *name, *expression;
        const char *within[WITHIN]; /* all texts match these, too */
} formats[] = {
        { "date", DATE, { YEAR } },
        { "time", TIME },
        { "date-time", "(" DATE ")[Tt]" TIME, { YEAR } },
        { "duration", "P((\\d+Y(\\d+M(\\d+D)?)?|\\d+M(\\d+D)?|\\d+D)"
                      "(T(\\d+H(\\d+M(\\d+S)?)?|\\d+M(\\d+S)?|\\d+S))?|"
                      "T(\\d+H(\\d+M(\\d+S)?)?|\\d+M(\\d+S)?|\\d+S)|\\d+W)" },
        { "uuid", "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}" },
        { "ipv4", IPV4 },
        { "ipv6", IPV6 },
        { "email",
          ATOM "(\\." ATOM ")*@(" HOST "|\\[(" IPV4 "|IPv6:" IPV6 ")\\])",
          { ".{1,64}@.+", ".{1,254}" } },
        { "hostname", HOST, { ".{1,253}" } },
        { "uri", "[a-zA-Z][a-zA-Z0-9+.-]*:(//(" USER ")?(" LITERAL "|" NAME ")(:\\d*)?(/" PATH
                 "*)*|/?(" PATH "+(/" PATH "*)*)?)(\\?" QUESTION ")?(#" QUESTION ")?" },
};

static bool read_expression(struct schema_compiler *compiler, const char *text,
                            enum writing writing, uint32_t *ret_term)
{
        char why[160];

        if (!regex_text_read(compiler->pool, text, strlen(text), writing, REGEX_WHOLE, ret_term,
                             why, sizeof(why)))
                return true;
        schema_fail(compiler, 0, "%s", why);
        return false;
}

bool shape_format(struct schema_compiler *compiler, const char *name, enum writing writing,
                  uint32_t *ret_term)
{
        for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
                const struct format *format = &formats[i];
                uint32_t within;

                if (strcmp(name, format->name) != 0)
                        continue;
                if (!read_expression(compiler, format->expression, writing, ret_term))
                        return true;
                for (unsigned w = 0; w < WITHIN && format->within[w]; w++)
                        if (read_expression(compiler, format->within[w], writing, &within))
                                *ret_term = regex_and2(compiler->pool, *ret_term, within);
                return true;
        }
        return false;
}
