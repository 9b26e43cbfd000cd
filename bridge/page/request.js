// The body of a request: a branch of the conversation, with the settings of its chat.

export const DEFAULTS = {
    model: '', system: '', answers: 1, temperature: '', top_p: '', top_k: '', min_p: '',
    max_tokens: '', seed: '', stop: '', presence_penalty: '', frequency_penalty: '',
    repeat_penalty: '', reasoning_effort: '', service_tier: '', logprobs: false, top_logprobs: 5,
    tools: '', tool_choice: '', schema: '', schema_on: false,
};

// As in index.html.  Each has a connection, and a browser opens six to a server.
export const ANSWERS = [1, 2, 3, 4];

const NUMBERS = ['temperature', 'top_p', 'top_k', 'min_p', 'max_tokens', 'seed', 'presence_penalty',
                 'frequency_penalty', 'repeat_penalty'];
const WORDS = ['model', 'reasoning_effort', 'service_tier'];
const KEEP_MS = 3600000; // of grace for a tab that is reloaded or closed by mistake

// The tools of a text: an array of functions, as OpenAI writes them or without the wrapping.
// Throws an Error with words for the person.
export function readTools(text) {
    let tools;

    if (!text.trim())
        return [];
    try {
        tools = JSON.parse(text);
    } catch (error) {
        throw new Error(`the tools are not JSON: ${error.message}`);
    }
    if (!Array.isArray(tools))
        tools = [tools];
    return tools.map((tool, at) => {
        const made = tool?.type === 'function' ? tool : { type: 'function', function: tool };

        if (typeof made.function?.name !== 'string')
            throw new Error(`tool ${at + 1} has no name`);
        return made;
    });
}

export function readSchema(text) {
    let schema;

    if (!text.trim())
        return null;
    try {
        schema = JSON.parse(text);
    } catch (error) {
        throw new Error(`the schema is not JSON: ${error.message}`);
    }
    if (schema === null || typeof schema !== 'object' || Array.isArray(schema))
        throw new Error('the schema must be an object');
    return schema;
}

// A fence that is longer than all within the text.
function fenced({ name, text }) {
    const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((match) => match[0].length));
    const fence = '`'.repeat(longest + 1);

    return `${name}:\n${fence}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}\n`;
}

function toMessage(node) {
    if (node.role === 'tool')
        return { role: 'tool', tool_call_id: node.call_id, content: node.text };
    if (node.role === 'user')
        return { role: 'user', content: [...(node.files ?? []).map(fenced), node.text].join('\n') };
    const message = { role: 'assistant', content: node.text };

    if (node.reasoning)
        message.reasoning_content = node.reasoning;
    if (node.calls?.length)
        message.tool_calls = node.calls.map((call) => ({
            id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments },
        }));
    return message;
}

// Throws an Error with words if tools or schema are no JSON.
export function buildRequest(path, settings, { order = 0 } = {}) {
    const body = { stream: true, stream_options: { include_usage: true }, timings_per_token: true,
                   stream_keep_ms: KEEP_MS, messages: path.map(toMessage) };
    const tools = readTools(settings.tools), schema = settings.schema_on && readSchema(settings.schema);
    const stop = settings.stop.split('\n').filter(Boolean);

    if (settings.system.trim())
        body.messages.unshift({ role: 'system', content: settings.system });
    for (const name of WORDS)
        if (settings[name])
            body[name] = settings[name];
    for (const name of NUMBERS)
        if (settings[name] !== '')
            body[name] = Number(settings[name]);
    if (stop.length)
        body.stop = stop;
    if (tools.length)
        body.tools = tools;
    if (tools.length && settings.tool_choice)
        body.tool_choice = settings.tool_choice;
    if (schema)
        body.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema } };
    if (settings.logprobs)
        Object.assign(body, { logprobs: true, top_logprobs: Number(settings.top_logprobs) });
    // Answers side by side have draws of their own.
    if (body.seed !== undefined)
        body.seed += order;
    return body;
}
