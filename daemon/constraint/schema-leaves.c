#include "daemon/constraint/schema-leaves.h"

#include <string.h>

#include "daemon/constraint/schema-apart.h"
#include "daemon/constraint/schema-refs.h"

#define CHOICES_DEPTH 48u /* choices within each other: each is on the C stack */

/* One way to choose.  `seen` is all that was ever added, so that circles of references end. */
struct branch {
        struct conjunction done, seen;
        uint32_t next; /* of `seen`, to be looked at */
};

struct leaf_use {
        void (*use)(struct schema_compiler *, const struct conjunction *, void *);
        void *data;
        unsigned depth;
};

static void explore(struct schema_compiler *compiler, struct branch *branch, struct leaf_use *use);

static void demand(struct schema_compiler *compiler, struct branch *branch, enum element_kind kind,
                   uint32_t node)
{
        if (node != JSON_NONE)
                conjunction_add(compiler, &branch->seen, ELEMENT(kind, node));
}

static void demand_all(struct schema_compiler *compiler, struct branch *branch,
                       enum element_kind kind, uint32_t list)
{
        for (uint32_t at = json_first(compiler->json, list); at != JSON_NONE;
             at = json_next(compiler->json, at))
                demand(compiler, branch, kind, at);
}

/*
 * The value matches this schema, too.  It is looked at before all that waits, at *at, so that the
 * members of objects come in the order in which a reader of the schema finds them.
 */
static void demand_next(struct schema_compiler *compiler, struct branch *branch, uint32_t node,
                        uint32_t *at)
{
        struct conjunction *seen = &branch->seen;
        uint32_t count = seen->count, element;

        demand(compiler, branch, MATCHES, node);
        if (seen->count == count)
                return;
        element = seen->elements[count];
        memmove(&seen->elements[*at + 1], &seen->elements[*at],
                (count - *at) * sizeof(seen->elements[0]));
        seen->elements[(*at)++] = element;
}

/* Follows one choice: a branch like this one, with one or two elements more. */
static void choose(struct schema_compiler *compiler, const struct branch *branch,
                   struct leaf_use *use, uint32_t one, uint32_t other)
{
        struct branch copy = *branch;

        if (compiler->failed)
                return;
        if (compiler->branches == 0 || use->depth == CHOICES_DEPTH) {
                schema_fail(compiler, element_node(one),
                            "alternatives (anyOf, oneOf, if, not) multiply beyond the limit");
                return;
        }
        compiler->branches--;
        use->depth++;
        conjunction_add(compiler, &copy.seen, one);
        if (element_node(other) != element_node(JSON_NONE))
                conjunction_add(compiler, &copy.seen, other);
        explore(compiler, &copy, use);
        use->depth--;
}

static void choose_any(struct schema_compiler *compiler, const struct branch *branch,
                       struct leaf_use *use, enum element_kind kind, uint32_t list)
{
        for (uint32_t at = json_first(compiler->json, list); at != JSON_NONE;
             at = json_next(compiler->json, at))
                choose(compiler, branch, use, ELEMENT(kind, at), JSON_NONE);
}

/* Branches that are not provably apart exclude each other. */
static void choose_one(struct schema_compiler *compiler, const struct branch *branch,
                       struct leaf_use *use, uint32_t list)
{
        const struct json_document *json = compiler->json;

        for (uint32_t at = json_first(json, list); at != JSON_NONE; at = json_next(json, at)) {
                struct branch copy = *branch;

                for (uint32_t other = json_first(json, list); other != JSON_NONE;
                     other = json_next(json, other))
                        if (other != at && !schemas_apart(compiler, at, other))
                                demand(compiler, &copy, DIFFERS, other);
                choose(compiler, &copy, use, ELEMENT(MATCHES, at), JSON_NONE);
        }
}

static bool is_container(const struct json_document *json, uint32_t node)
{
        return json_kind(json, node) == JSON_ARRAY || json_kind(json, node) == JSON_OBJECT;
}

/* An array or an object of the list; or another value, which the leaf itself sees to. */
static void choose_listed(struct schema_compiler *compiler, const struct branch *branch,
                          struct leaf_use *use, uint32_t list)
{
        struct branch others = *branch;

        for (uint32_t at = json_first(compiler->json, list); at != JSON_NONE;
             at = json_next(compiler->json, at))
                if (is_container(compiler->json, at))
                        choose(compiler, branch, use, ELEMENT(IS, at), JSON_NONE);
        if (!compiler->failed)
                explore(compiler, &others, use);
}

static void choose_if(struct schema_compiler *compiler, const struct branch *branch,
                      struct leaf_use *use, uint32_t schema)
{
        uint32_t test = schema_keyword(compiler, schema, "if");
        uint32_t then = schema_keyword(compiler, schema, "then");
        uint32_t otherwise = schema_keyword(compiler, schema, "else");

        choose(compiler, branch, use, ELEMENT(MATCHES, test),
               then == JSON_NONE ? JSON_NONE : ELEMENT(MATCHES, then));
        choose(compiler, branch, use, ELEMENT(DIFFERS, test),
               otherwise == JSON_NONE ? JSON_NONE : ELEMENT(MATCHES, otherwise));
}

static bool has_containers(const struct json_document *json, uint32_t list)
{
        for (uint32_t at = json_first(json, list); at != JSON_NONE; at = json_next(json, at))
                if (is_container(json, at))
                        return true;
        return false;
}

/* Before draft 2019-09 `dependencies` had schemas, and lists of keys: see schema-keys.c. */
static void demand_dependencies(struct schema_compiler *compiler, struct branch *branch,
                                uint32_t table)
{
        const struct json_document *json = compiler->json;

        for (uint32_t at = json_first(json, table); at != JSON_NONE; at = json_next(json, at))
                if (json_kind(json, at) != JSON_ARRAY)
                        demand(compiler, branch, CHOOSE_DEPENDENT, at);
}

/* Adds what a schema asks for besides the keywords that a leaf compiles. */
static void demand_schema(struct schema_compiler *compiler, struct branch *branch, uint32_t schema)
{
        const struct json_document *json = compiler->json;
        uint32_t node = schema_keyword(compiler, schema, "$ref");
        uint32_t all = schema_keyword(compiler, schema, "allOf"), at = branch->next;

        schema_check_keywords(compiler, schema);
        schema_check_circle(compiler, schema);
        conjunction_add(compiler, &branch->done, ELEMENT(MATCHES, schema));
        if (node != JSON_NONE)
                demand_next(compiler, branch, schema_target(compiler, node), &at);
        for (node = json_first(json, all); node != JSON_NONE; node = json_next(json, node))
                demand_next(compiler, branch, node, &at);
        demand(compiler, branch, DIFFERS, schema_keyword(compiler, schema, "not"));
        demand(compiler, branch, IS, schema_keyword(compiler, schema, "const"));
        demand_all(compiler, branch, CHOOSE_DEPENDENT,
                   schema_keyword(compiler, schema, "dependentSchemas"));
        demand_dependencies(compiler, branch, schema_keyword(compiler, schema, "dependencies"));
        if (schema_keyword(compiler, schema, "if") != JSON_NONE)
                demand(compiler, branch, CHOOSE_IF, schema);
        node = schema_keyword(compiler, schema, "enum");
        if (has_containers(json, node))
                demand(compiler, branch, CHOOSE_LISTED, node);
        demand(compiler, branch, CHOOSE_ANY, schema_keyword(compiler, schema, "anyOf"));
        demand(compiler, branch, CHOOSE_ONE, schema_keyword(compiler, schema, "oneOf"));
}

static bool is_denied(const char *keyword)
{
        static const char *const denied[] = {
                "type",
                "enum",
                "const",
                "minLength",
                "maxLength",
                "pattern",
                "minItems",
                "maxItems",
                "minimum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "maximum",
        };

        for (size_t i = 0; i < sizeof(denied) / sizeof(*denied); i++)
                if (strcmp(keyword, denied[i]) == 0)
                        return true;
        return false;
}

/* Follows all ways not to meet one keyword. */
static void choose_against(struct schema_compiler *compiler, const struct branch *branch,
                           struct leaf_use *use, const char *keyword, uint32_t value)
{
        if (is_denied(keyword)) {
                choose(compiler, branch, use, ELEMENT(DENIES, value), JSON_NONE);
        } else if (strcmp(keyword, "$ref") == 0) {
                uint32_t target = schema_target(compiler, value);

                if (target != JSON_NONE)
                        choose(compiler, branch, use, ELEMENT(DIFFERS, target), JSON_NONE);
        } else if (strcmp(keyword, "allOf") == 0) {
                choose_any(compiler, branch, use, DIFFERS, value);
        } else if (strcmp(keyword, "anyOf") == 0) {
                struct branch copy = *branch;

                demand_all(compiler, &copy, DIFFERS, value);
                explore(compiler, &copy, use);
        } else if (strcmp(keyword, "not") == 0) {
                choose(compiler, branch, use, ELEMENT(MATCHES, value), JSON_NONE);
        } else if (strcmp(keyword, "properties") == 0) {
                choose_any(compiler, branch, use, HAS_DIFFERENT, value);
        } else if (strcmp(keyword, "required") == 0) {
                choose_any(compiler, branch, use, MISSES, value);
        } else if (!schema_describes(keyword)) {
                schema_fail(compiler, value, "%.60s is not supported within not, oneOf or if",
                            keyword);
        }
}

static void choose_different(struct schema_compiler *compiler, const struct branch *branch,
                             struct leaf_use *use, uint32_t schema)
{
        const struct json_document *json = compiler->json;

        for (uint32_t at = json_first(json, schema); at != JSON_NONE; at = json_next(json, at))
                choose_against(compiler, branch, use, json_key(json, at, NULL), at);
}

/* Looks at one element.  False: the branch ends here, dead, or with its choices followed. */
static bool look(struct schema_compiler *compiler, struct branch *branch, struct leaf_use *use,
                 uint32_t element)
{
        uint32_t node = element_node(element);
        enum element_kind kind = element_kind(element);
        bool truth;

        switch (kind) {
        case MATCHES:
        case DIFFERS:
                if (json_bool(compiler->json, node, &truth))
                        return truth == (kind == MATCHES);
                if (json_kind(compiler->json, node) != JSON_OBJECT) {
                        schema_fail(compiler, node, "a schema is an object, true or false");
                        return false;
                }
                if (kind == MATCHES)
                        demand_schema(compiler, branch, node);
                else
                        choose_different(compiler, branch, use, node);
                return kind == MATCHES;
        case DENIES:
        case IS:
        case LACKS:
        case HAS:
        case MISSES:
        case HAS_DIFFERENT:
                conjunction_add(compiler, &branch->done, element);
                return true;
        case CHOOSE_ANY:
                choose_any(compiler, branch, use, MATCHES, node);
                return false;
        case CHOOSE_ONE:
                choose_one(compiler, branch, use, node);
                return false;
        case CHOOSE_IF:
                choose_if(compiler, branch, use, node);
                return false;
        case CHOOSE_LISTED:
                choose_listed(compiler, branch, use, node);
                return false;
        case CHOOSE_DEPENDENT:
                choose(compiler, branch, use, ELEMENT(LACKS, node), JSON_NONE);
                choose(compiler, branch, use, ELEMENT(HAS, node), ELEMENT(MATCHES, node));
        }
        return false;
}

static void explore(struct schema_compiler *compiler, struct branch *branch, struct leaf_use *use)
{
        if (!regex_burn(compiler->pool, 1))
                return;
        while (branch->next < branch->seen.count && !compiler->failed)
                if (!look(compiler, branch, use, branch->seen.elements[branch->next++]))
                        return;
        if (!compiler->failed)
                use->use(compiler, &branch->done, use->data);
}

void schema_leaves(struct schema_compiler *compiler, const uint32_t *elements, uint32_t count,
                   void (*each)(struct schema_compiler *compiler, const struct conjunction *leaf,
                                void *data),
                   void *data)
{
        struct leaf_use use = { each, data, 0 };
        struct branch branch = { 0 };

        for (uint32_t i = 0; i < count; i++)
                conjunction_add(compiler, &branch.seen, elements[i]);
        explore(compiler, &branch, &use);
}
