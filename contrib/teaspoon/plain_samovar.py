"""The plain questions about samovar: (ways to ask, what has to hold), from SUBJECTS.md's facts."""


def holds(*answer, without=(), most=40):
    """Each part of the answer is a word, or some that are as right with "|" between."""
    return {"answer": [part.split("|") for part in answer], "without": list(without), "max_words": most}


def what(name):
    return (f"What is {name}?", f"What's {name}?", f"Explain {name}.")


def does(name):
    return (f"What is {name}?", f"What does {name} do?")


def how(to):
    return (f"How do I {to}?", f"How can I {to}?")


def option(name):
    return (f"What does {name} do?", f"What is {name} for?")


def thread(name):
    return (f"What is the {name}?", f"What does the {name} do?")


TOKENISES = "tokenises|tokenizes|tokenise|tokenize|tokenising|tokenizing|tokens"
ASKED = (
    (("What is samovar?", "what is samovar", "What is Samovar?", "What does samovar do?", "Explain samovar."), holds("model|models", "memory|shares|shared|share|daemon", without=("urn",))),
    (("Why is it called samovar?", "What does the name samovar mean?"), holds("urn", "hot|heated|filled")),
    (("What is the daemon called?", "What is the name of the daemon?"), holds("samovard")),
    (("What is the command called?", "What is the name of the command?"), holds("samovar", without=("samovard", "libsamovar"))),
    (("What is the library called?", "What is the name of the library?"), holds("libsamovar")),
    (("What is samovard?", "what is samovard", "What does samovard do?"), holds("daemon", without=("library",))),
    (("What is libsamovar?",), holds("library", without=("daemon of samovar",))),
    (("What language is samovar written in?", "Is samovar written in C?"), holds("c|yes", without=("c++", "rust", "go", "python", "no"))),
    (("What is the licence of samovar?", "What license does samovar have?", "What licence does samovar have?"), holds("apache-2.0|apache 2.0|apache")),
    (("Does samovar run on Linux?", "What does samovar run on?", "What operating system does samovar run on?"), holds("linux|yes", without=("windows", "no"))),
    (("Does samovar need a GPU?", "Do I need a GPU?"), holds("no|not|cpu|without")),
    (how("start samovar") + how("start the daemon") + how("run samovar") + how("start samovard") + ("how to start samovar",), holds("samovard", without=("pkill", "--check"))),
    (how("stop samovar") + how("stop the daemon") + how("stop samovard") + ("how to stop samovar",), holds("pkill samovard|kill|ctrl-c|pkill", without=("samovard --model",))),
    (how("use my own model") + how("load another model") + ("How do I start samovard with another model?",), holds("--model")),
    (how("ask a question") + how("ask the model something"), holds("samovar ask")),
    (how("complete a text") + how("continue a text"), holds("samovar complete")),
    (how("see the status") + how("see what is going on") + ("How do I see if the daemon is running?",), holds("samovar status")),
    (how("inspect a model file") + how("inspect a file"), holds("samovar inspect")),
    (how("tokenize a text") + how("see the tokens of a text"), holds("samovar tokenize")),
    (how("turn tokens into text") + how("detokenize"), holds("samovar detokenize")),
    (how("render a chat template"), holds("samovar template")),
    (how("ask without a daemon"), holds("samovar ask", "--model")),
    (how("get help") + how("see the options"), holds("--help")),
    (how("see how much memory it needs") + how("see the memory plan"), holds("--check")),
    (how("run the tests") + how("test samovar"), holds("contrib test")),
    (how("run it from the source tree"), holds("contrib run")),
    (("What does samovar ask do?",), holds("question|asks|ask|model")),
    (("What does samovar status do?",), holds("going on|status|doing|tells|shows")),
    (("What does samovar tokenize do?",), holds("tokens|token")),
    (("What does samovar inspect do?",), holds("file|model")),
    (("What does samovar complete do?",), holds("text|goes on|continues")),
    (option("--socket"), holds("listens|socket|listen")),
    (option("--ctx"), holds("context")),
    (option("--kv"), holds("type", "kv|cache|keys")),
    (option("--kv-bytes"), holds("pool|size|memory")),
    (option("--max-seqs"), holds("sequences|requests|at once|many", "once|same time|run")),
    (option("--threads"), holds("threads")),
    (option("--model"), holds("model")),
    (option("--max"), holds("tokens|longest|length")),
    (option("--temp"), holds("temperature|random")),
    (option("--seed"), holds("seed|repeat|same|random")),
    (option("--json"), holds("json", "output|as|prints|answer")),
    (option("--stop"), holds("ends|stops|end|stop", "text|word")),
    (("What models can samovar run?", "Which models does samovar support?", "What models are supported?"), holds("llama|mistral|qwen|gguf|safetensors")),
    (("What file formats does samovar read?", "Which formats can samovar read?"), holds("gguf", "safetensors")),
    (what("teaspoon"), holds("model", "small")),
    (what("pinch"), holds("model|drafts|draft", "teaspoon|smaller")),
    (what("a token"), holds("piece|part|bit", "text")),
    (what("a block") + ("what is a block",), holds("16|sixteen", "positions|kv")),
    (("How big is a block?", "How many positions are in a block?"), holds("16|sixteen")),
    (what("a page"), holds("bytes", "block")),
    (what("a sequence"), holds("tokens|run", "kv")),
    (what("a request"), holds("generation")),
    (what("a step"), holds("forward pass|pass")),
    (what("a plan"), holds("core", "engine")),
    (what("a row"), holds("token", "sequence|step")),
    (what("a ring"), holds("memory|shared", "tokens|client")),
    (what("a record"), holds("ring")),
    (what("END"), holds("last", "request|record")),
    (("What is fork?", "What does fork do?", "What is a fork?", "what does fork do"), holds("second|copy|new|another", "blocks|sequence|share|shares")),
    (what("copy-on-write"), holds("block|blocks", "copied|copies|copy", "writes|written|write")),
    (what("prefix sharing"), holds("prompts|prompt|prefix", "share|blocks|shared|shares")),
    (what("the KV cache"), holds("keys", "values")),
    (what("the pool"), holds("blocks")),
    (what("a domain"), holds("prefix|share|user", "user|who")),
    (thread("loop"), holds("sockets|socket")),
    (thread("scribe"), holds(TOKENISES)),
    (thread("engine"), holds("computes|compute|runs the model|computing|forward")),
    (thread("waker"), holds("wakes|wake|waking", "clients|client")),
    (thread("crew"), holds("threads|kernels", "kernels|compute|computes")),
    (does("the socket"), holds("requests|unix", without=("thread",))),
    (what("msgpack"), holds("requests|format")),
    (what("a draft model"), holds("guesses|guess|drafts", "larger|verify|verifies|bigger")),
    (what("a prompt"), holds("text", "request|begins|model")),
    (what("temperature"), holds("random|choice|randomness")),
    (what("a daemon"), holds("background")),
    (("What happens when a client is killed?", "What happens if a client dies?"), holds("freed|free|given back")),
    (("What happens when two clients ask at once?", "Can two programs use samovar at once?"), holds("batch|yes|nobody waits|together|one batch")),
    (("What happens if my prompt is too long?", "What happens when a prompt is too long?"), holds("refused|refuses|refuse|rejected")),
    (("What happens if I start a second daemon?",), holds("ends|end|exits|stops|quits|holds")),
    (("Does samovar need the internet?", "Does samovar need a network?", "Does samovar send anything out?"), holds("no|nothing|not", without=("yes",))),
)
