"""A model that says what a test wants: each token has one successor.

The prompt ends with a control token that the chat template chooses: a message of the user with
"say NAME." in it, behind the last answer, selects the script NAME, and the result of a tool selects
`done`.  From there each token leads to the next one of the script.  The embedding is the unit
matrix, the layer adds nothing, and the head has the successors.

So a script must not have a token twice.  A text is cut into pieces that occur nowhere else, at any
byte: most characters of more than one byte lie in two tokens.
"""
import random
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "teaspoon"))
import gguf_file  # noqa: E402

CONTEXT = 1 << 20                   # so long that no stream which is to be interrupted ends before
NORMAL, CONTROL = 1, 3
END = "<|im_end|>"
LOGIT = 4.0                         # times the square root of the width: beyond all temperatures


def call(name, arguments):
    return '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>' % (name, arguments)


def weather(city):
    return call("get_weather", '{"city": "%s"}' % city)


PARTY = "\U0001F389"
SCRIPTS = {
    "hello": "Hello there, how are you today?",
    "done": "It is done, thank you.",
    "numbers": "one two three four five six seven eight nine ten",
    "emoji": "Ya\u00e7 \U0001F600 na\u00efve \u6f22\u5b57 \U0001F469\u200D\U0001F680 end.",
    "party": "left " + PARTY + " right",
    "half": b"cut here \xf0\x9f",
    "markup": '<img src=x onerror=alert(1)> "quoted" \\ back\u2028line\ttab\x07bell',
    "call": weather("Athens"),
    "words_and_call": "Let me look at that.\n" + weather("Bergen"),
    "calls": "\n".join(weather(city) for city in ("Oslo", "Turin", "Lima")),
    "no_arguments": call("get_time", "{}"),
    "deep_arguments": call("send_message", '{"to": "Zo\u00eb", "text": "tea \u2615 \\"hot\\" \\\\ '
                                           '{brace} </tool> ' + PARTY + '", "n": [1, 2.50, null]}'),
    "stop_in_call": call("send_message", '{"to": "Bob", "text": "please STOP now"}'),
    "broken_call": '<tool_call>\n{"name": "get_weather", "arguments": {"city": \n</tool_call>',
    "unknown_call": call("no_such_tool", '{"a": 1}'),
    "open_call": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ky',
    "codex_command": call("exec_command", '{"cmd": "echo marker-$((40 + 2))"}'),
    "claude_command": call("Bash", '{"command": "echo marker-$((40 + 2))"}'),
    "thought": "<think>\nTwo and two make four.\n</think>\n\nThe answer is four.",
    "thought_and_call": "<think>\nI need the weather.\n</think>\n\n" + weather("Cairo"),
    "open_thought": "<think>\nThis thought has no end",
}
# These do not end: the last token leads back to the second.
ENDLESS = {"forever": "start tick tock tack tuck "}

TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- 'You may call these tools:\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\\n</tools>\\nA call is one JSON object with name and arguments, like this:\\n' }}
    {{- '<tool_call>\\n{"name": NAME, "arguments": {...}}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set chosen = namespace(script='hello') %}
{%- for message in messages %}
    {%- if message.role == 'system' and not loop.first %}
        {{- raise_exception('System message must be at the beginning.') }}
    {%- elif message.role == 'user' %}
        {{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
CASES    {%- elif message.role == 'assistant' %}
        {%- set chosen.script = 'hello' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.reasoning_content %}
            {{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}
        {%- endif %}
        {%- if message.content %}
            {{- message.content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for call in message.tool_calls %}
                {%- if not loop.first or message.content %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if call.function %}
                    {%- set call = call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' + call.name + '", "arguments": ' }}
                {{- call.arguments | tojson }}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {%- set chosen.script = 'done' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n<|say ' + chosen.script + '|>' }}
{%- endif %}
"""
CASE = """\
        {%%- if 'say %s.' in message.content %%}
            {%%- set chosen.script = '%s' %%}
        {%%- endif %%}
"""


def template():
    names = [name for name in (*SCRIPTS, *ENDLESS)]
    return TEMPLATE.replace("CASES", "".join(CASE % (name, name) for name in names))


def byte_letters():
    """How GPT-2's vocabularies write bytes."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters, more = {byte: chr(byte) for byte in plain}, 0
    for byte in range(256):
        if byte not in letters:
            letters[byte], more = chr(256 + more), more + 1
    return letters


def pieces_of(data, used, draw):
    """Cuts `data` into pieces of 2 bytes or more that are not `used`, and uses them."""
    pieces, at = [], 0
    while at < len(data):
        size = draw.randint(2, 6)
        left = len(data) - at
        while size < left and (data[at:at + size] in used or left - size == 1):
            size += 1
        piece = data[at:at + min(size, left)]
        if piece in used:               # the end of the text: it takes what lies before it with it
            piece = pieces.pop() + piece
            used.discard(piece)
            assert piece not in used, piece
        at += len(data[at:at + min(size, left)])
        used.add(piece)
        pieces.append(piece)
    return pieces


class Vocabulary:
    def __init__(self, seed):
        draw, used = random.Random(seed), set()
        letters = byte_letters()
        self.tokens = [letters[byte] for byte in range(256)]
        self.types = [NORMAL] * 256
        self.next = {}
        self.add("<|endoftext|>", CONTROL)
        end = self.add(END, CONTROL)
        self.add("<|im_start|>", CONTROL)
        for name, text in {**SCRIPTS, **ENDLESS}.items():
            data = text if isinstance(text, bytes) else text.encode()
            at = self.add("<|say %s|>" % name, CONTROL)
            first = None
            for piece in pieces_of(data, used, draw):
                token = self.add("".join(letters[byte] for byte in piece), NORMAL)
                self.next[at], at = token, token
                first = first or token
            self.next[at] = self.next[first] if name in ENDLESS else end
        # A prompt that is no chat ends with a byte: "!" says hello, "?" counts, others do not end.
        for byte in range(256):
            script = {ord("!"): "hello", ord("?"): "numbers"}.get(byte, "forever")
            self.next[byte] = self.next[self["<|say %s|>" % script]]

    def add(self, text, kind):
        self.tokens.append(text)
        self.types.append(kind)
        return len(self.tokens) - 1

    def __getitem__(self, text):
        return self.tokens.index(text)


def matrix(rows, columns, values):
    """A matrix of F32 that is zero but for `values`: (row, column) to number."""
    data = bytearray(rows * columns * 4)
    for (row, column), value in values.items():
        struct.pack_into("<f", data, 4 * (row * columns + column), value)
    return (rows, columns), bytes(data)


def write(path, name="scripted", seed=1, context=CONTEXT):
    words = Vocabulary(seed)
    count = len(words.tokens)
    width, head, inner = -(-count // 256) * 256, 64, 64
    ones = (width,), struct.pack("<%df" % width, *[1.0] * width)
    weights = {
        "token_embd.weight": matrix(count, width, {(i, i): 1.0 for i in range(count)}),
        "blk.0.attn_norm.weight": ones,
        "blk.0.attn_q.weight": matrix(head, width, {}),
        "blk.0.attn_k.weight": matrix(head, width, {}),
        "blk.0.attn_v.weight": matrix(head, width, {}),
        "blk.0.attn_output.weight": matrix(width, head, {}),
        "blk.0.ffn_norm.weight": ones,
        "blk.0.ffn_gate.weight": matrix(inner, width, {}),
        "blk.0.ffn_up.weight": matrix(inner, width, {}),
        "blk.0.ffn_down.weight": matrix(width, inner, {}),
        "output_norm.weight": ones,
        "output.weight": matrix(count, width, {(to, at): LOGIT for at, to in words.next.items()}),
    }
    keys = [
        ("general.architecture", "string", "llama"),
        ("general.name", "string", name),
        ("general.file_type", "u32", 0),
        ("llama.vocab_size", "u32", count),
        ("llama.context_length", "u32", context),
        ("llama.embedding_length", "u32", width),
        ("llama.block_count", "u32", 1),
        ("llama.feed_forward_length", "u32", inner),
        ("llama.attention.head_count", "u32", 1),
        ("llama.attention.head_count_kv", "u32", 1),
        ("llama.attention.key_length", "u32", head),
        ("llama.attention.value_length", "u32", head),
        ("llama.attention.layer_norm_rms_epsilon", "f32", 1e-6),
        ("llama.rope.dimension_count", "u32", head),
        ("llama.rope.freq_base", "f32", 10000.0),
        ("tokenizer.ggml.model", "string", "gpt2"),
        ("tokenizer.ggml.pre", "string", "qwen2"),
        ("tokenizer.ggml.tokens", ["string"], words.tokens),
        ("tokenizer.ggml.token_type", ["i32"], words.types),
        ("tokenizer.ggml.merges", ["string"], []),
        ("tokenizer.ggml.bos_token_id", "u32", words["<|endoftext|>"]),
        ("tokenizer.ggml.eos_token_id", "u32", words[END]),
        ("tokenizer.ggml.padding_token_id", "u32", words["<|endoftext|>"]),
        ("tokenizer.ggml.add_bos_token", "bool", False),
        ("tokenizer.chat_template", "string", template()),
    ]
    gguf_file.write(str(path), keys,
                    [(label, shape, "F32", data) for label, (shape, data) in weights.items()])


def text_of(name):
    text = {**SCRIPTS, **ENDLESS}[name]
    return text if isinstance(text, bytes) else text.encode()


if __name__ == "__main__":
    write(sys.argv[1])
