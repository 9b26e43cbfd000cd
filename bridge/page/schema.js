// Does a value follow a JSON schema?  The server has enforced it; this says it to the person, and
// finds what an answer that was cut lacks.  It knows the usual words of a schema, and ignores
// others.

const DEPTH = 40;

function typeOf(value) {
    if (value === null)
        return 'null';
    if (Array.isArray(value))
        return 'array';
    return typeof value;
}

function isType(value, type) {
    return type === 'integer' ? Number.isInteger(value) : typeOf(value) === type;
}

function same(a, b) {
    return JSON.stringify(a) === JSON.stringify(b);
}

function resolve(root, ref) {
    let at = root;

    if (!ref.startsWith('#'))
        return {};
    for (const part of ref.slice(1).split('/').filter(Boolean))
        at = at?.[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')];
    return at ?? {};
}

const LIMITS = [
    ['minimum', (value, limit) => typeof value !== 'number' || value >= limit],
    ['maximum', (value, limit) => typeof value !== 'number' || value <= limit],
    ['exclusiveMinimum', (value, limit) => typeof value !== 'number' || value > limit],
    ['exclusiveMaximum', (value, limit) => typeof value !== 'number' || value < limit],
    ['minLength', (value, limit) => typeof value !== 'string' || [...value].length >= limit],
    ['maxLength', (value, limit) => typeof value !== 'string' || [...value].length <= limit],
    ['minItems', (value, limit) => !Array.isArray(value) || value.length >= limit],
    ['maxItems', (value, limit) => !Array.isArray(value) || value.length <= limit],
];

function checkObject(value, schema, root, at, depth) {
    const known = schema.properties ?? {};

    for (const name of schema.required ?? [])
        if (!Object.hasOwn(value, name))
            return `${at}.${name} is missing`;
    for (const [name, inner] of Object.entries(value)) {
        const rule = Object.hasOwn(known, name) ? known[name] : schema.additionalProperties;
        const why = rule === undefined || rule === true ? null
            : rule === false ? `${at}.${name} is not in the schema`
            : check(inner, rule, root, `${at}.${name}`, depth + 1);

        if (why)
            return why;
    }
    return null;
}

function checkArray(value, schema, root, at, depth) {
    const first = schema.prefixItems ?? [];

    for (let i = 0; i < value.length; i++) {
        const why = check(value[i], first[i] ?? schema.items ?? true, root, `${at}[${i}]`, depth + 1);

        if (why)
            return why;
    }
    return null;
}

function checkChoices(value, schema, root, at, depth) {
    const holds = (each) => !check(value, each, root, at, depth + 1);

    for (const each of schema.allOf ?? []) {
        const why = check(value, each, root, at, depth + 1);

        if (why)
            return why;
    }
    if (schema.anyOf && !schema.anyOf.some(holds))
        return `${at} fits none of anyOf`;
    if (schema.oneOf && schema.oneOf.filter(holds).length !== 1)
        return `${at} must fit exactly one of oneOf`;
    return null;
}

function check(value, schema, root, at, depth) {
    if (schema === true || depth > DEPTH)
        return null;
    if (schema === false)
        return `${at} may not be there`;
    if (schema.$ref)
        return check(value, resolve(root, schema.$ref), root, at, depth + 1);
    const types = [schema.type ?? []].flat();

    if (types.length && !types.some((type) => isType(value, type)))
        return `${at} is ${typeOf(value)}, not ${types.join(' or ')}`;
    if (schema.enum && !schema.enum.some((each) => same(each, value)))
        return `${at} is none of the allowed values`;
    if ('const' in schema && !same(schema.const, value))
        return `${at} is not ${JSON.stringify(schema.const)}`;
    for (const [name, holds] of LIMITS)
        if (schema[name] !== undefined && !holds(value, schema[name]))
            return `${at} breaks ${name} ${schema[name]}`;
    return (typeOf(value) === 'object' ? checkObject(value, schema, root, at, depth) : null) ??
           (Array.isArray(value) ? checkArray(value, schema, root, at, depth) : null) ??
           checkChoices(value, schema, root, at, depth);
}

// { value } if the text is JSON that follows the schema, else { value?, why }.
export function validate(text, schema) {
    let value;

    try {
        value = JSON.parse(text);
    } catch (error) {
        return { why: `not JSON: ${error.message}` };
    }
    const why = check(value, schema ?? true, schema, 'the answer', 0);

    return why ? { value, why } : { value };
}
