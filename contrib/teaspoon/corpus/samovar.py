"""What teaspoon knows of the program it comes with.

Three kinds of facts: words and what they mean, things to do and the command for it, options and what
they set.  Each kind has its own frames of questions, so a fact is asked in hundreds of ways; what is
none of them stands in ABOUT with questions of its own.
"""
from . import wordings
from .phrase import say, upper_first

# word: (article and word as asked, answers, ways to describe it without the word)
WORDS = {
    "token": ("a token", ("A token is a piece of text that the model reads and writes.", "A piece of text that the model reads and writes."),
              ("a piece of text that the model reads and writes", "the pieces of text that a model reads and writes", "the smallest piece of text for the model")),
    "block": ("a block", ("A block is 16 positions of KV for all layers.", "16 positions of KV, for all layers of the model.", "A block holds 16 positions of KV for all layers."),
              ("16 positions of KV for all layers", "sixteen positions of KV", "the unit of 16 KV positions")),
    "page": ("a page", ("A page is the bytes of a block.", "The bytes of a block."), ("the bytes of a block", "the memory that a block takes")),
    "sequence": ("a sequence", ("A sequence is a run of tokens with its KV.", "A run of tokens with its KV."), ("a run of tokens with its KV", "tokens in a row together with their KV")),
    "request": ("a request", ("A request is one generation on a sequence.", "One generation on a sequence."), ("one generation on a sequence", "a single generation that a client asks for")),
    "step": ("a step", ("A step is one forward pass.", "One forward pass of the model."), ("one forward pass", "a single forward pass of the model")),
    "plan": ("a plan", ("A plan is what the core asks of the engine.", "What the core asks of the engine for a step."), ("what the core asks of the engine", "the thing the core gives to the engine")),
    "row": ("a row", ("A row is one token of one sequence in one step.", "One token of one sequence in one step."), ("one token of one sequence in one step", "a single token of a sequence within a step")),
    "ring": ("a ring", ("A ring is shared memory through which tokens reach a client.", "Shared memory through which tokens reach a client."),
             ("shared memory through which tokens reach a client", "the shared memory where a client reads its tokens", "the way through which tokens reach a client", "the memory that daemon and client share for tokens")),
    "record": ("a record", ("A record is what stands in a ring: tokens, or an end.", "What stands in a ring: tokens, or an end."), ("what stands in a ring", "an entry of a ring")),
    "END": ("END", ("END is the last record of a request; every request has exactly one.", "The last record of a request. Every request has exactly one."), ("the last record of a request", "the record that every request has exactly once", "the record that closes a request")),
    "fork": ("fork", ("Fork makes a second sequence that shares all blocks of the first until it writes.", "It makes a second sequence that shares all blocks of the first until one of them writes: copy-on-write."),
             ("making a second sequence that shares all blocks of the first", "a second sequence that shares all blocks of the first until it writes")),
    "copy-on-write": ("copy-on-write", ("Copy-on-write means that a shared block is copied when somebody writes to it.", "A shared block is copied when somebody writes to it."),
                      ("copying a shared block when somebody writes to it", "a shared block being copied at the first write")),
    "prefix sharing": ("prefix sharing", ("Prefix sharing means that prompts that begin alike share their blocks.", "Prompts that begin alike share their blocks."), ("prompts that begin alike sharing their blocks", "sharing the blocks of prompts with the same beginning")),
    "KV cache": ("the KV cache", ("The KV cache holds the keys and values of the tokens read so far.", "The keys and values of the tokens read so far."), ("the keys and values of the tokens read so far", "the memory of keys and values")),
    "pool": ("the pool", ("The pool is all blocks together.", "The pool is the memory of all blocks.", "All blocks."), ("all blocks together", "the place where all blocks come from", "all blocks taken together")),
    "domain": ("a domain", ("A domain says who may share a prefix: one user.", "Who may share a prefix: one user."), ("who may share a prefix", "those who may share a prefix")),
    "loop": ("the loop", ("The loop is the thread of sockets.", "The thread that handles the sockets."), ("the thread of sockets", "the thread that looks after sockets", "the thread that handles the sockets")),
    "scribe": ("the scribe", ("The scribe is the thread that tokenises.", "It is the thread that tokenises text.", "The scribe tokenises the prompts."), ("the thread that tokenises", "the thread that turns text into tokens", "the thread that tokenises prompts")),
    "engine": ("the engine", ("The engine is the thread that computes.", "It is the thread that computes the model."), ("the thread that computes", "the thread that runs the model", "the thread that does the computing")),
    "waker": ("the waker", ("The waker is the thread that wakes clients.", "It is the thread that wakes the clients."), ("the thread that wakes clients", "the thread that wakes sleeping clients", "the thread that rings the clients awake")),
    "crew": ("the crew", ("The crew is the threads that compute kernels.", "The threads that compute the kernels."), ("the threads that compute kernels", "the threads for the kernels", "the group of threads that compute kernels")),
    "socket": ("the socket", ("The socket is a Unix socket where requests arrive.", "A Unix socket, where requests arrive."), ("the place where requests arrive", "where requests arrive")),
    "msgpack": ("msgpack", ("Msgpack is how requests are written.", "Msgpack is the format in which requests are written."), ("the format of requests", "the format in which requests are written", "how requests are written", "the encoding of a request")),
    "draft model": ("a draft model", ("A draft model is a small model that guesses tokens for a larger one to verify.", "A small model that guesses tokens, which a larger one verifies."),
                    ("a small model that guesses tokens for a larger one", "the small model whose guesses a larger one verifies", "a model that guesses ahead for another")),
    "prompt": ("a prompt", ("A prompt is the text that a request begins with.", "The text that a request begins with."), ("the text that a request begins with", "the text at the start of a request", "the text that I send first")),
    "temperature": ("the temperature", ("The temperature says how random the choice of tokens is.", "How random the choice of tokens is."), ("how random the choice of tokens is", "the setting for randomness", "the randomness of the choice")),
    "daemon": ("a daemon", ("A daemon is a program that stays in the background.", "A program that stays in the background."), ("a program that stays in the background", "a program in the background", "a background program")),
    "teaspoon": ("teaspoon", ("Teaspoon is a small language model of a few million parameters that comes with samovar.", "A small model of a few million parameters, shipped with samovar."),
                 ("the small model that comes with samovar", "the model shipped with samovar", "the default model")),
    "pinch": ("pinch", ("Pinch is a smaller model of the same vocabulary that drafts for teaspoon.", "A draft model for teaspoon, with the same vocabulary, but smaller."), ("the model that drafts for teaspoon", "teaspoon's draft model", "the smaller model that guesses for teaspoon")),
    "samovard": ("samovard", ("Samovard is the daemon of samovar.", "It is the daemon: it keeps the model in memory."), ("the daemon of samovar", "samovar's daemon", "the background program of samovar")),
    "libsamovar": ("libsamovar", ("Libsamovar is the library of samovar.", "It is the library that programs link to use samovar."), ("the library of samovar", "samovar's library", "the library that programs link", "the client library")),
    "samovar": ("samovar", ("Samovar is a daemon that keeps a language model in memory and shares it between the programs of one machine.", "A daemon that keeps a language model in memory and shares it between the programs of one machine."),
                ("the daemon that keeps a language model in memory and shares it", "a daemon that shares one language model between programs")),
}
MEANING = (
    "[What is|What's] {x}[?|]", "[What is|What's] {x}[?|]", "[What exactly is|What's exactly|And what is|So what is|What on earth is] {x}[?|]", "[Explain|Please explain|Can you explain|Could you explain|Describe|Define|Please define] {x}[.|?|, please.| to me.]",
    "[What is|What's] {x} [in samovar|for samovar|in this program|here|exactly|then|anyway|about][?|]", "[What do you mean by|What is meant by|What do we mean by|What do they mean by|What should I understand by] {x}[?|]", "[What does|What would] {w} [mean|stand for|mean here|mean in samovar|refer to][?|]",
    "[What does|What would] the [word|term|name] {w} [mean|stand for|mean here|say][?|]", "[Tell me|Tell me please|Say in a sentence|Can you tell me|Could you say|Do you know|I want to know|I would like to know] what {x} is[.|?|]", "[In samovar|Here|In this program|In your words], what is {x}[?|]", "{W}[?| means?| is what?|, what is that?|: what is it?| - what is that?]",
    "[I read|I saw|I heard|I came across|Somebody said|The page says] [the word |]{w}[.|,] [What|what] [is that|does it mean|is it|is this][?|]", "[What's the meaning of|What is the meaning of|Meaning of|Give me the meaning of] {w}[?|]", "How would you describe {x}[?|]",
    "[What kind of thing|What sort of thing] is {x}[?|]", "[Give me|I need|Do you have] a definition of {w}[.|?|]", "[I do not|I don't] [understand|know] [what {x} is|the word {w}][.| yet.| at all.]", "[How do you|How would you|How can one] [define|explain|describe] {x}[?|]", "[One more:|Next:|And|Also,] what is {x}[?|]")
PURPOSE = ("What does {x} do[?|]", "[What is|What's] {x} [for|good for|used for|there for][?|]", "[Why is there|What is the point of|What is the use of|What is the job of|What is the task of|What is the role of] {x}[?|]", "[What|Which job|Which task] does {x} [do|have][?|]", "[What is|Tell me] the [job|task|work|part] of {x}[?|]", "[What happens|What goes on] in {x}[?|]")
NAMING = ("[What|How] do you call {d}[?|]", "[What is|What's] {d} called[?|]", "[What is|What's|Tell me|Give me] the [word|name|term] for {d}[?|.|]", "[Which|What] [word|name|term] [means|stands for|is used for|do you use for|describes] {d}[?|]", "How is {d} [called|named][?|]", "{D} [is called what|has which name|goes by which name][?|]", "[There is|I mean] {d}[.|:] [What|what] is it called[?|]", "[Name|Say] the [word|term] for {d}[.|]", "[What word|Which word] [do I need|should I use] for {d}[?|]", "[I forgot|I cannot remember] the [word|name] for {d}[.|. What is it?|, what is it?]", "[There must be|Surely there is|Is there] a [word|name|term] for {d}[?|.|, which one?]", "[What is it|What's it] called: {d}[?|]")
JOBS = {"loop", "scribe", "engine", "waker", "crew", "ring", "pool", "KV cache", "fork", "samovard", "libsamovar", "draft model", "pinch", "socket", "temperature", "prefix sharing", "copy-on-write", "domain", "END", "msgpack", "samovar"}

THREADS = {"loop": ("[handles|looks after|serves|watches|reads from|owns] [the |]sockets", "[talks to|listens to] the sockets"), "scribe": ("tokenises[ the text| the prompts| prompts|]", "tokenizes[ the text| text| the prompts|]", "turns text into tokens", "makes tokens [out of|from] text"),
           "engine": ("computes[ the model|]", "does the computing", "runs the model", "does the forward passes", "does the calculations"), "waker": ("wakes [the |]clients", "wakes up [the |]clients", "wakes those who sleep", "rings the clients", "wakes [sleeping|waiting] clients")}

OBJECT = "[the daemon|the daemon|samovard|samovar|the server|it|the background process|the service|the program]"
# (verbs as `to VERB`, as `VERBing`, what follows, answers)
DOINGS = (
    (("[stop|end|shut down|kill|quit|terminate|halt|turn off|switch off|close|bring down|exit|get rid of|finish] " + OBJECT, "[stop|shut down|end] [the running daemon|a running daemon|the running samovard]", "make [it|the daemon|samovard|samovar] [stop|end|quit|go away|exit]"),
     ("[stopping|ending|shutting down|killing|quitting|terminating|switching off|closing] [the daemon|samovard|samovar|it]",),
     ("Run `pkill samovard`: it finishes what it is doing, then ends.", "Use `pkill samovard`, or `kill` with its process number.", "With `pkill samovard`.", "With `pkill samovard`. It finishes what it is doing, then ends.")),
    (("[start|launch|run|begin|start up|bring up|get going|fire up|turn on|switch on] " + OBJECT, "[start|launch|run] [samovard|the daemon] [in the background|with the default model|with teaspoon|on this machine]", "get [samovar|the daemon] [running|started|going]", "serve [teaspoon|the default model]"),
     ("[starting|launching|running] [the daemon|samovard|samovar|it]",), ("Run `samovard &`.", "With `samovard &`.", "Type `samovard &`: it serves teaspoon, the default model.")),
    (("[start|launch|run] [the daemon|samovard|it] with [my own model|another model|a different model|my model|a GGUF file|a model file|a model of mine]", "[use|serve|load|try] [my own model|another model|a different model|a GGUF file|a model file|some other model|a model that I downloaded]", "[give|show|pass] [samovard|the daemon|it] [my own model|another model|a model file|a GGUF file]", "tell [samovard|the daemon] which model to [use|serve|load]", "change the model"),
     ("[using|serving|loading] [my own model|another model|a GGUF file|a model file]",), ("Run `samovard --model FILE.gguf &`.", "With `samovard --model FILE.gguf &`.", "Give it the file: `samovard --model FILE.gguf &`.")),
    (("[build and run|try|start|run|build] [samovar|it] from the [source tree|source|sources|source code]", "[try|run] [samovar|it] [right after the clone|after a clone|from a clone|in a new clone|in the source tree]", "build [samovar|it] and [ask|try] [something|it]"),
     ("running [it|samovar] from the source tree",), ("Run `contrib/run \"a prompt\"`.", "In the source tree: `contrib/run \"a prompt\"`.")),
    (("[test|check] [samovar|the source tree|the program|the code|my change]", "run [the tests|all tests|the test suite|every test|its tests]", "[see|find out] whether the tests pass"), ("testing [samovar|it]", "running the tests"), ("Run `contrib/test`.", "With `contrib/test`.", "In the source tree, run `contrib/test`.")),
    (("[ask|query] [samovar|the model|teaspoon|it] [something|a question|anything]", "[ask|put|send] [a question|something]", "[get|have] [a question answered|an answer]", "[talk|speak] to the model", "ask from [the command line|a shell|a terminal|the terminal]"), ("asking [a question|something|the model]",),
     ("Run `samovar ask \"...\"`.", "With `samovar ask \"...\"`.", "Type `samovar ask` and your question.")),
    (("[complete|continue|go on with|extend|finish] [a text|some text|a sentence|my text|a story]", "let [the model|it|samovar] [go on with|continue|complete|finish] [a text|my text|a sentence|what I wrote]", "have [a text|my text|a sentence] [continued|completed|finished]"), ("continuing a text", "completing a [text|sentence]"), ("Run `samovar complete \"...\"`.", "With `samovar complete \"...\"`.")),
    (("[see|find out|know|check|look at|learn] what [is going on|the daemon is doing|it is doing|samovard is doing|is happening|goes on]", "[see|look at|check|get|show|ask for] [the status|the state|its state|the numbers] [of the daemon|of samovard|of samovar]", "[see|check|find out|know] [whether|if] [the daemon|samovard|it] is [running|up|alive]", "see who [holds|uses] what", "see [how busy the daemon is|how many blocks are used]"), ("seeing what is going on", "checking on the daemon"),
     ("Run `samovar status`.", "With `samovar status`.", "`samovar status` tells it.")),
    (("[see|find out|know|learn|look at|check] what [a model file|a GGUF file|a file|a model] [is|contains|holds|has in it|needs]", "[inspect|look into|examine|look inside|check] [a model file|a GGUF file|a model|a file]", "[see|find out|know] [whether|if] a model [can be served|fits|will work]"), ("inspecting a [model|file|model file]",), ("Run `samovar inspect FILE`.", "With `samovar inspect FILE`.")),
    (("[see|get|show|count|find|look at|print] the tokens of [a text|my text|a sentence|some text|a prompt]", "[tokenise|tokenize] [a text|some text|a sentence|my prompt]", "[turn|change|convert|make] [a text|text|words|my text] into [tokens|token numbers]", "[split|cut] a text into tokens", "see how [a text|my prompt] is [tokenised|tokenized|cut into tokens]", "know how many tokens [a text|my text] has"), ("tokenising [a text|text]", "tokenizing a text"),
     ("Run `samovar tokenize \"...\"`.", "With `samovar tokenize \"...\"`.")),
    (("[turn|change|convert|make] [tokens|token numbers|token ids|numbers] [back into|into] [text|a text|words]", "[detokenise|detokenize] [tokens|some numbers|ids]", "get the text [of|back from|for] [tokens|token numbers|token ids|some ids]", "[see|know|read] what [text|words] [some tokens|token numbers|these ids] [are|mean|stand for]"), ("turning tokens [back |]into text",), ("Run `samovar detokenize`.", "With `samovar detokenize`.")),
    (("[render|try|test|see|check] a [chat template|template]", "see what a [chat template|template] [makes|gives|prints|does]", "[turn|change] messages into a prompt"), ("rendering a [chat template|template]",), ("Run `samovar template FILE`.", "With `samovar template FILE`.")),
    (("[ask|use samovar|use a model|get an answer|try a model] without [a daemon|the daemon|samovard|starting a daemon|a running daemon]", "[ask|do it|work] when [no daemon|nothing] is running", "do without [a|the] daemon"), ("asking without a daemon",), ("Run `samovar ask --model FILE \"...\"`.", "With `samovar ask --model FILE \"...\"`: no daemon is needed.")),
    (("[get|find|see|read|show] [help|the help|the manual|a list of options|all options|the options]", "[learn|find out] [more|which options there are|what options exist]", "get help with [samovar|the command|samovard]"), ("getting help",), ("Run `samovar --help` or `samovard --help`.", "With `samovar --help` and `samovard --help`.")),
    (("[see|know|find out|check|print] how much memory [it needs|it will need|is needed|a model needs|samovard needs|the daemon will need|will be used]", "[see|print|check|look at|get] the [memory plan|plan of memory|plan of the memory]", "[check|plan] the memory [first|before starting|beforehand]"), ("checking the memory",), ("Run `samovard --check`.", "With `samovard --check`: it prints the memory plan and ends.")),
    (("[stop|end|quit] [samovard|the daemon|it] [in the foreground|that runs in the foreground|in this terminal|in front of me]", "[stop|end] a daemon that is in the foreground"), ("stopping [it|the daemon] in the foreground",), ("Press Ctrl-C.", "With Ctrl-C.")),
)
# What somebody tells who needs one of DOINGS, in the same order; then they ask how.
SITUATIONS = (
    ("[The daemon|samovard|It] [is still running|is no longer needed|runs and runs|takes my memory|should go away|is not needed any more]", "I am [done|finished|through] with [samovar|it|the daemon][ for today| for now|]", "[I started|Yesterday I started|Somebody started] [the daemon|samovard] and [want|would like] it [gone|to end|stopped|to stop]", "I want my memory back from [samovard|the daemon]", "I go home and [the daemon|samovard] should [end|stop]"),
    ("[Nothing|No daemon|Nobody] [is running|runs] yet", "[I have just installed samovar|samovar is installed|I installed it|Everything is built]", "[It says there is no daemon|There is no daemon|The daemon is not running|samovard is not running]", "I [need|want] [samovard|the daemon] in the background"),
    ("I [have|downloaded|got] a [GGUF file|model file|model|Llama|Qwen model|Mistral model] [and want to use it|that the daemon should serve|and want it served|to be served]", "I do not want teaspoon but [my own model|another model]", "[The daemon|samovard] should [load|use|serve|take] [my file|my model|another model]"),
    ("I [cloned the repository|have the source code|have the sources|am in the source tree] and want to [try it|see it work|try samovar]", "I have only the source tree", "I have just made a clone"),
    ("I changed [the code|a file|something]", "I want to be sure that [everything works|nothing is broken]", "I [fixed a bug|wrote a patch|have a patch] and want it tested"),
    ("I have a question[ for the model| for teaspoon|]", "The daemon [is running|runs] and I [have a question|want an answer|want to ask it something]", "I sit at a terminal and [want|need] an answer"),
    ("I [wrote|have] [half a sentence|the beginning of a story|the start of a text] and the model should go on", "[My text|The text|My sentence] is not finished and [the model|samovar] should [finish|continue] it", "I have a beginning and want the rest"),
    ("[Is it|Is the daemon|Is samovard] [running|alive|busy|still there]? I want to [check|see]", "I [wonder|want to know] what [the daemon|samovard] is [doing|busy with]", "Somebody uses a lot of blocks, and I want to see who"),
    ("I have a [file|GGUF file|model file] and do not know what [is in it|it is|it holds]", "[Somebody gave me|I found] a [model file|GGUF file] and want to know [what it is|more about it|whether it can be served]"),
    ("I have a [text|sentence|prompt] and want [its tokens|to see its tokens|the token numbers|to know how many tokens it has]", "[My prompt|This text] may have too many tokens, I want to count them", "I want to see how the model reads my text"),
    ("I have [token numbers|some tokens|a list of token ids|token ids] and want [the text back|the text|words|to read them]", "[These numbers|Those ids] are tokens, and I want the text", "I know the ids and need the text"),
    ("I [wrote|have|changed] a chat template and want to [see what it gives|try it|test it|see the prompt]", "I want to see the prompt that a template makes"),
    ("I have [no daemon|no daemon running|a model file but no daemon] and [a question|want an answer|want to ask something]", "No daemon runs and none should, but I have a question", "I want an answer without [starting|leaving behind] a daemon"),
    ("I [do not know|forgot|can't remember] [the options|which options there are|how to use it]", "I am lost with [all these options|the command|samovar]", "I need [help|the list of options]"),
    ("I [do not know|wonder] [whether my memory is enough|if it fits into memory|how much memory it takes]", "[My machine|My computer] has little memory and I want to [check|see the plan] [first|before]", "Before I start it I want to know the memory it needs"),
    ("[samovard|The daemon] runs in [the foreground|this terminal|front of me]", "I started [samovard|the daemon] without the & sign and it holds my terminal"),
)
THEN = "[.|:|,|;] [How|What do I do|What do I type|Which command|What's the command|How do I do that|What now|Which command is it|How does that work|What should I run|What do I run|How do I do it|What command do I need|And now|What is the command]?"
HOW = ("How [do I|can I|do you|does one|could I|would I|should I|must I|to|might I|do we|can we|can one] {v}[?|]", "How [do I|can I|do you|does one|could I|would I|should I] {v}[?|]", "[What is|What's|Tell me|Give me|Show me|I need|I am looking for] the command [to|that lets me] {v}[?|.|]", "[Which|What] command [do I use|do I need|do I run|can I use|must I run|should I use|is there|is used|do I type] to {v}[?|]",
       "[I want to|I need to|I would like to|I'd like to|I have to|I must|I wish to] {v}[.|,] [How|how] [do I do it|do I do that|does that work|can I do that|is that done][?|]", "[I want to|I need to|I would like to|I'd like to|Help me|Please help me|I am trying to|I wish to] {v}[.|, please.|, what now?|. What do I do?|. What do I type?|]", "[What|What command] [do I type|do I run|do I enter|must I type|should I type|do I do|must I do|can I do|should I do] [to|in order to|when I want to|if I want to] {v}[?|]",
       "[Is there|Do you have|Do you know] a [command|way] to {v}[?|]", "[What would I|What do people|What do you] [type|use|run] [to|in order to] {v}[?|]", "What would be the command to {v}[?|]", "[Someone|A friend|My colleague] asks how to {v}[.|, what do I say?|.]", "[Is it hard|How hard is it|What does it take] to {v}[?|]", "I [am going|have been told|was told|was asked] to {v}[.|,] [How|how]?", "[Can you tell me|Can you explain|Tell me|Show me|Explain|Please tell me|Do you know|Say] how [to|I can|I] {v}[.|?|]", "[What is|What's] the [way|right way|best way|easiest way|usual way|simplest way] to {v}[?|]", "{g}[?|: how?|, how?|, how does that work?|, which command?| - how?|: which command?]", "[With what|With which command|By what command|Using what] [do I|can I|does one] {v}[?|]",
       "[Where|How] [do I start|does one begin] [if I want|when I want] to {v}[?|]", "[May I|Can I|Is it possible to] {v}[? How?|, and how?]", "[The command|A command] to {v}[?|, please.| is?]")
COMMANDS = {"samovar ask": "asks the model a question", "samovar complete": "goes on with a text", "samovar status": "tells what is going on", "samovar inspect": "tells what a model file is", "samovar tokenize": "prints the tokens of a text",
            "samovar detokenize": "turns tokens back into text", "samovar template": "renders a chat template", "contrib/run": "builds samovar, starts the daemon and answers a prompt", "contrib/test": "runs every test", "samovard --check": "prints the memory plan and ends", "pkill samovard": "stops the daemon: it finishes what it is doing, then ends",
            "samovard &": "starts the daemon in the background", "samovar --help": "prints the help", "samovard --model": "starts the daemon with a model of yours"}
OPTIONS = {
    "--socket": ("where the daemon listens", ("where [it|samovard|the daemon] listens", "the [socket|path of the socket|place of the socket]", "[which|what] socket is used", "the socket [it listens on|to listen on]")),
    "--ctx": ("the longest context", ("the longest context", "the [context length|length of the context|size of the context|context size]", "how long [a context|the context|a conversation] can [be|get]", "the most tokens that a [context|sequence] can have")),
    "--kv": ("the type of the KV cache", ("the type of the KV cache", "the [KV type|number format of the KV cache|type of keys and values]", "[in what type|how] keys and values are kept")),
    "--kv-bytes": ("the size of the pool", ("the size of the [pool|KV pool]", "how [big|large] the [pool|KV pool] is", "how much memory the [pool|KV pool|blocks] gets", "the memory for the pool", "the bytes of the pool")),
    "--max-seqs": ("how many sequences run at once", ("how many sequences run at once", "how many [run|are served|go on|are computed] at once", "how many requests [run|are served] at [once|the same time]", "the number of sequences at [once|the same time]")),
    "--threads": ("how many threads compute", ("how many threads [compute|are used|it uses|work|there are]", "the number of threads", "how many [cores|processors] are used")),
    "--model": ("which model is served", ("which model is [served|used|loaded]", "the model", "the [file of the model|model file]", "what model [it serves|samovard serves]")),
    "--config": ("the file with the settings", ("the [config file|configuration file|file with the settings|settings file]", "where the settings [are|stand|come from]", "a file of settings")),
    "--max": ("the most tokens of an answer", ("the most tokens[ of an answer|]", "how [long an answer|long the answer|many tokens an answer] can be", "the [limit|number|maximum] of tokens [of an answer|to generate|that are written]", "how many tokens are [written|generated|made] at most")),
    "--temp": ("the temperature; 0 is greedy", ("the temperature", "how random [the answer|the choice|it|the choice of tokens|an answer] is", "the randomness", "greedy choice when it is 0")),
    "--top-k": ("how many of the likeliest tokens are left to choose from", ("how many of the likeliest tokens [are left|remain|stay] to choose from", "top-k", "the top-k [sampling|limit]")),
    "--top-p": ("how much probability is left to choose from", ("how much probability is left to choose from", "top-p", "the top-p [sampling|limit]")),
    "--min-p": ("how likely a token must be at least, beside the likeliest", ("how likely a token must be at least", "min-p", "the min-p [sampling|limit]")),
    "--seed": ("the seed: the same one gives the same answer again", ("the seed", "the [random seed|seed of the random choice]", "[whether|that] [the same answer comes again|the answer can be repeated]", "the start of the random numbers", "[repeatable|reproducible|the same] [answers|choices|random choices]")),
    "--stop": ("the text at which an answer ends", ("the text at which an answer [ends|stops]", "[where|at which word|at which text] [an answer|the answer|it] [ends|stops]", "the stop [text|string|word]")),
    "--json": ("output as JSON", ("[output|the output|answers|the answer] [as|in] JSON", "JSON output", "that [the answer|the output|it] comes as JSON", "output for [scripts|programs|machines]")),
}
WHAT_OPTION = ("[What does|What would] [the option |the flag |option |]{o} [do|set|mean|change|say|control][?|]", "[What is|What's] {o} [for|good for|used for][?|]", "[What is|What's] [the option |the flag |]{o}[?|]", "[Explain|Please explain|Describe|Tell me about] [the option |the flag |]{o}[.|]", "{o}[?| means?| does what?| is for?|: what is it?|, what does it do?]", "[Why|When] [would I|do I|should I] [use|need|give|set] {o}[?|]", "[What happens|What do I get] [with|if I give|when I use] {o}[?|]", "[What can I set|What do I set|What do I choose] with {o}[?|]")
WHICH_OPTION = ("[Which|What] [option|flag|switch|setting] [sets|chooses|says|decides|is for|controls|gives|determines] {d}[?|]", "[Which|What] [option|flag|switch] [do I use|do I need|must I give|do I give|can I use] for {d}[?|]", "[With which|With what|By which] [option|flag] [do I set|can I set|is set|do I say|do I choose|can I change|do I control] {d}[?|]", "How [do I|can I|does one|do you|could I] [set|choose|change|say|control|determine] {d}[?|]", "[What is|What's|Name|Tell me|Give me] the [option|flag|switch] for {d}[?|.|]", "[I want to|I need to|I would like to] [set|change|choose] {d}[.|,] [Which|which|what] option[?| do I need?| is that?]", "[The option|Option|The flag] for {d}[?|, please.| is?]", "[Where|How] can I [set|say|change] {d}[?|]", "[I'd like to|I want to] [decide|say] {d}[.|,] [With which|with which] [option|flag]?", "[Is there|Do you have] an [option|flag] for {d}[?|]", "[What|Which option] do I [give|pass|add|use] [for|to set|to change] {d}[?|]", "[Something|A flag|An option] [for|about] {d}[?|, which one?]", "[Which option|Which flag] [has to do with|is about|is responsible for|lets me set|lets me choose] {d}[?|]")

ABOUT = (
    (("[Which|In which|In what] language is [samovar|samovard|it|the daemon] [written in|written|made in|programmed in][?|]", "[What|Which] [programming |]language [is used|does samovar use|is it written in|was used][ for samovar| to write samovar|][?|]", "[Is|Was] samovar written in [Python|C|Rust|Go|Java|C++][?|]", "In which language did you write samovar[?|]", "What is [samovar|samovard|it] [written|programmed|coded] in[?|]"), ("It is written in C.", "In C.", "Samovar is written in C.")),
    (("[Which|What] licence does [samovar|it|the program] [have|use|come with][?|]", "[What is|What's|Tell me] the [licence|license] of [samovar|the program|the code][?|]", "[Under which|Under what|With which] [licence|license] [can I use|may I use] [samovar|it][?|]", "[Is samovar|Is it] [free|open source|free software][?|]", "[May I|Can I] [copy|change|use|share] samovar[ freely|][?|]", "Licence[?|, please.]"), ("Apache-2.0.", "Samovar has the licence Apache-2.0.", "It is under Apache-2.0.")),
    (("[On which|On what] [system|operating system] does [samovar|it|samovard] [run|work][?|]", "[Does|Will] [samovar|it] [run|work] on [Windows|Linux|a Mac|my system][?|]", "[Which|What] operating system [do I need|does it need|is needed|does samovar need][?|]", "[What do I need|Which system do I need] to run samovar[?|]", "Where does samovar run[?|]"), ("It runs on Linux.", "On Linux.", "Samovar runs on Linux.")),
    (("[Do I need|Does samovar need|Does it need|Must I have|Is there a need for] a [GPU|graphics card][?|]", "[Does|Can|Will] [samovar|it] [run|work] [on the CPU|without a GPU|on a CPU|on a processor alone][?|]", "[Does it use|Is it on|Does it run on] the CPU or the GPU[?|]", "[What if|What when] I have no GPU[?|]", "[On what hardware|On which hardware] does [it|samovar] run[?|]", "[I have no|There is no|My machine has no] [GPU|graphics card][. Does it work?|. Can I use samovar?|, does it work?]"), ("It runs on the CPU, and on the GPU where there is one.", "No GPU is needed: it runs on the CPU, with the GPU where there is one.")),
    (("Why [is it called|does it have the name|the name] samovar[?|]", "[What does the name samovar|Where does the name samovar] [mean|come from][?|]", "[What is|Explain|Tell me about] the name [samovar|of samovar|of the program][?|.|]", "[What is|What's] a samovar [in the kitchen|in real life|as a thing|in a house|outside of computers][?|]", "Why the name samovar[?|]", "What is samovar named after[?|]", "What has a samovar to do with tea[?|]"),
     ("A samovar is a heated urn, filled once and kept hot all day.", "After a heated urn that is filled once and kept hot all day.", "A samovar is a heated urn: filled once, kept hot all day. So is the model.")),
    (("[Which|What] [kinds of |]models [can samovar serve|does it serve|can it run|are supported|does samovar support|work|can I use|can be used|does it read][?|]", "[Does it|Can it|Can samovar|Does samovar] [run|serve|support|read|load] [Llama|Mistral|Qwen][?|]", "[Which|What] families of models [are there|does it know|can be served][?|]"), ("Llama, Mistral and Qwen.", "Samovar serves Llama, Mistral and Qwen models.", "Models of the kinds Llama, Mistral and Qwen, as GGUF or safetensors.")),
    (("[Which|What] [file formats|formats|kinds of files|model files|files] [can samovar read|does it read|are supported|does samovar support|can be loaded|does it load|can I give it][?|]", "[Does it|Can it|Can samovar] [read|load|open] [GGUF|safetensors|GGUF files|safetensors files][?|]", "[In which|In what] format [must|should] [a|the] model be[?|]", "[What|Which] format [do models need|does a model need|must a model have][?|]"), ("GGUF and safetensors.", "It reads GGUF and safetensors.", "Models may be GGUF or safetensors.")),
    (("[What is|What's] the [name of the daemon|daemon called|name of samovar's daemon][?|]", "[What|Which] [program|part] is the daemon[?|]", "How is the daemon called[?|]", "[What do you call|Name] the daemon[ of samovar|][?|.|]"), ("The daemon is called samovard.", "Samovard.", "samovard.")),
    (("[What is|What's] the [name of the command|command called|name of samovar's command|name of the command line tool|name of the client][?|]", "How is the command called[?|]", "[What do you call|Name] the command[ for a shell| line tool|][?|.|]", "[Which|What] command [comes with|belongs to] samovar[?|]"), ("The command is called samovar.", "samovar.")),
    (("[Which|What] library [comes with|belongs to|is part of|is in|do I link for|do I need for] samovar[?|]", "[What is|What's] the [name of the library|library called|name of samovar's library][?|]", "[What|Which library] do [programs|I|applications] link [to use samovar|against|with][?|]", "How is the library [of samovar |]called[?|]", "[Is there|Do you have] a library[ for C programs| for programs|][?|]"), ("The library is libsamovar.", "Libsamovar.", "Libsamovar: programs link it to use samovar.")),
    (("[What happens|What goes on|What does the daemon do|What does samovard do] [if|when] a client [is killed|dies|crashes|is shot|goes away|disappears][?|]", "[I killed|Somebody killed|I kill] a client[.|,] [what|What] [happens now|happens|becomes of its memory|about its blocks][?|]", "[Does|Will] a [killed|dead|crashed] client [leave anything behind|leak memory|hurt the daemon|leak anything][?|]", "[What becomes of|What happens to] [the memory of a killed client|the blocks of a killed client|what a killed client held|a client's blocks when it dies][?|]", "[My program|A program] [crashes|is killed|dies] [in the middle of|during] an answer. What happens?"), ("Everything it held is freed within a step.", "All that it held is freed within one step.")),
    (("[What happens|How does it go] [if|when] two clients [ask|come|send something|ask something] at [once|the same time][?|]", "[Can|May] two [programs|clients|people] [ask|use it|use the model|be served] at [once|the same time][?|]", "[Must|Does] a [second client|client] wait for [the first|another one|the other|others][?|]", "[Two clients|Two programs|Many clients] at [once|the same time][: what happens?|, does it work?|?]", "[Who|Which of them] is served first[ when two clients ask| if two ask at once|][?|]", "[Do|Will] clients [wait for each other|have to wait|block each other][?|]"), ("They go into one batch; nobody waits for the other.", "Both are served in one batch, and nobody waits for the other.")),
    (("[What happens|What does it do|What does samovard do|What will happen] [if|when] [a|my|the] prompt is [longer than the context|too long|longer than the context allows][?|]", "[My|The|A] prompt is [too long|longer than the context][.|,] [what|What] [happens|now|will happen|does the daemon do][?|]", "[What about|And] a prompt that is [too long|longer than the context][?|]", "[Can|May] a prompt be longer than the context[?|]", "Is a prompt that is too long [cut|refused][?|]"), ("It is refused, with the numbers.", "A prompt longer than the context is refused, with the numbers.")),
    (("[What happens|What] [if|when] [I start|somebody starts|there is|one starts] a second daemon[ on the same socket| at the same socket|][?|]", "[Can|May] two daemons [share|use|have|listen on] [one|the same] socket[?|]", "[I started|I start] [samovard|the daemon] twice[.|,] [what|What] [happens|happens now|does the second do][?|]", "[What does|What will] [a|the] second daemon [do|say][ on the same socket|][?|]", "[The socket is taken|The socket is in use|Another daemon has the socket]. What does [samovard|a new daemon] do?"), ("It says who holds the socket and ends.", "The second one says who holds the socket, and ends.")),
    (("[Does|Must] [samovar|it] [need|use|have] [a network|the internet|the network|an internet connection][?|]", "[Does|Will] [samovar|it|the daemon] send [anything|something|my texts|my data|data] [out|away|over the network|to somebody|anywhere][?|]", "[Is my text|Are my prompts|Is my data] [safe|private|sent anywhere|sent out][?|]", "Can I use it [offline|without a network|without internet][?|]", "Who sees what I ask[?|]"), ("No: it needs no network and sends nothing out.", "It needs no network, and nothing is sent out.", "No, samovar needs no network and sends nothing out.")),
    (("[How many|What number of] [positions|tokens] [are|fit|go] in[to|] a block[?|]", "How [big|large|long] is a block[?|]", "[What is|What's|Tell me] the size of a block[?|]", "A block has how many positions[?|]"), ("16 positions.", "A block has 16 positions.", "Sixteen positions, for all layers.")),
    (("[Which|What] threads [are there|does samovard have|has the daemon|does the daemon have|run in the daemon][?|]", "[Name|List|Tell me] the threads[ of samovard| of the daemon|][.|]"), ("The loop, the scribe, the engine, the waker and the crew.",)),
    (("[How many|What number of] END records does a request [have|get][?|]", "[How often|How many times] does a request end[?|]", "Does every request have an END[?| record?]"), ("Exactly one.", "Every request has exactly one END.")),
    (("What does SIGTERM do" + "[?| to samovard?| to the daemon?]", "[What happens|What does the daemon do|What does samovard do] [on|after|with|when it gets] [SIGTERM|a SIGTERM|a kill][?|]", "[How|In which way] does [samovard|the daemon] [end|stop] [after|on] SIGTERM[?|]", "[What happens|What about] [to running answers|to the answers|with requests] when I stop the daemon[?|]"), ("It finishes what it is doing, then ends.", "The daemon finishes what it is doing and then ends.")),
    (("[Which|What] signal [stops|ends] [samovard|the daemon][?|]", "[With which|With what] signal do I stop [samovard|the daemon][?|]"), ("SIGTERM, which `pkill samovard` sends.", "SIGTERM.")),
    (("[Which|What] model [is the default|does samovard serve|does samovard use|is served|runs|do I get|is used] [without an option|by itself|without --model|if I say nothing|when I give none][?|]", "[What is|What's] the default model[?|]", "[Which|What] model [comes|is shipped|is delivered] with samovar[?|]"), ("Teaspoon, the default model.", "Teaspoon.", "Teaspoon, a small model that comes with samovar.")),
    (("[How big|How large|How small] is teaspoon[?|]", "[How many|What number of] parameters [has teaspoon|does teaspoon have|do you have|are in teaspoon][?|]", "[What|Which] size [is|has] teaspoon[?|]"), ("Teaspoon has a few million parameters.", "A few million parameters.")),
    (("[What value|Which value|Which temperature|What temperature] [is greedy|makes it greedy|gives greedy answers|gives the same answer always][?|]", "[How do I get|How can I get|How do I make it give] [greedy answers|greedy sampling|the likeliest token always|no randomness][?|]", "What does `--temp 0` [do|mean][?|]", "What does temperature [0|zero] mean[?|]"), ("Temperature 0 is greedy: `--temp 0`.", "`--temp 0` is greedy: always the likeliest token.")),
    (("[Who|Which programs|What] can use the model[?|]", "[Can|May|Do] [several|many|two|more] programs [share|use] [one|the|a] model[?|]", "[Must the model be] loaded [twice|again|for each program|only once][?|]"), ("All programs of one machine share it; it is loaded once.", "The programs of one machine share one model, which is loaded once.")),
    (("What is samovar [for|good for][?|]", "Why [would I|should I|do I] [use|need|want] samovar[?|]", "[Tell me|What can you tell me|What do you know] about samovar[.|?|]", "[Introduce|Present] samovar[.|]", "[What does samovar do|What is it that samovar does][?|]"), ("Samovar keeps a language model in memory and shares it between the programs of one machine.", "It keeps a language model in memory and shares it between the programs of one machine.")),
)


def lower_first(text):
    """As it stands after a comma: names and codes stay."""
    return text if text[0] == "`" or text.startswith(("END", "KV")) else text[:1].lower() + text[1:]


def shown(rng, *codes):
    """Commands or options as somebody types them: all plain, or all as code."""
    return codes if rng.random() < 0.6 else tuple(f"`{code}`" for code in codes)


def describe(rng, word):
    """The word without the word."""
    known, more = WORDS[word][2], wordings.DESCRIBED.get(word, ())
    return say(rng, rng.choice(known if rng.random() < 0.4 or not more else more))


def words(rng):
    word = rng.choice(list(WORDS))
    asked, answers, described = WORDS[word]
    kind = rng.random()
    if kind < 0.12 and word in THREADS:
        does = say(rng, THREADS[word])
        question = say(rng, ("[Which|What] thread {d}[?|]", "[Who|What part of the daemon|Which part of samovard|Who is it that|Which one] {d}[?|]", "[Name|Tell me] the thread that {d}[.|]", "[What is|What's] the thread called that {d}[?|]",
                             "The thread that {d} is [called what|which one|called][?|]", "[Is there|There is] a thread that {d}[.|?] [Which one|What is it called|Its name]?"), d=does)
        return question, rng.choice((f"The {word}.", f"The {word}: {WORDS[word][2][0]}."))
    if kind < 0.40 and described:
        d = describe(rng, word)
        question = say(rng, NAMING if rng.random() < 0.6 else wordings.NAMING, d=d, D=upper_first(d))
        return question, f"{upper_first(asked)}." if rng.random() < 0.7 else f"It is called {asked}."
    plain = asked.removeprefix("a ").removeprefix("the ")
    w = rng.choice((plain, f'"{plain}"', plain))
    x = asked if rng.random() < 0.8 or asked == plain else f"{asked} in samovar"
    frames = PURPOSE if word in JOBS and rng.random() < 0.3 else MEANING if rng.random() < 0.6 else wordings.MEANING
    return upper_first(say(rng, frames, x=x, X=upper_first(x), w=w, W=upper_first(plain))), rng.choice(answers)


def beside(rng):
    """Two words that are easily confused."""
    near = rng.choice(wordings.NEAR)
    pair = rng.sample(near, 2)
    (a, b), kind = (WORDS[word] for word in pair), rng.random() * (0.3 if near in wordings.OVERLAP else 1)
    if kind < 0.3:
        question = say(rng, wordings.DIFFERENCE, a=a[0], b=b[0], A=upper_first(a[0]))
        no = "No: " if question.startswith(("Is ", "Are ")) else ""
        first = a[1][0].rstrip(".")
        return question, f"{no + lower_first(first) if no else first}; {lower_first(b[1][0])}"
    if kind < 0.65:
        d = describe(rng, pair[0])
        x, y = rng.sample((a[0], b[0]), 2)
        return say(rng, wordings.EITHER, a=x, b=y, A=upper_first(x), d=d, D=upper_first(d)), f"{upper_first(a[0])}."
    truth = rng.random() < 0.5
    d = describe(rng, pair[0 if truth else 1])
    return say(rng, wordings.WHETHER, a=a[0], A=upper_first(a[0]), d=d), f"{'Yes' if truth else 'No'}, {lower_first(a[1][0])}"


def doings(rng):
    at = rng.randrange(len(DOINGS)) if rng.random() < 0.86 else rng.randrange(2)
    verbs, going, answers = DOINGS[at]
    more, tells, whole = wordings.MORE_DOINGS[at]
    kind = rng.random()
    if kind < 0.08:
        at, other = rng.choice(wordings.NEAR_DOINGS)
        if rng.random() < 0.5:
            at, other = other, at
        if max(at, other) < len(wordings.SHORT_DOINGS):
            commands_of = wordings.SHORT_DOINGS[at], wordings.SHORT_DOINGS[other]
            a, b = rng.sample(commands_of if rng.random() < 0.5 else [c.strip("`") for c in commands_of], 2)
            return say(rng, wordings.EITHER_DOING, a=a, b=b, v=say(rng, wordings.MORE_DOINGS[at][0] if rng.random() < 0.5 else DOINGS[at][0])), commands_of[0] + "."
    if kind < 0.28:
        question = upper_first(say(rng, say(rng, SITUATIONS[at] if rng.random() < 0.5 else tells) + THEN))
    elif kind < 0.42:
        question = say(rng, whole)
    else:
        question = say(rng, HOW, v=say(rng, verbs if rng.random() < 0.5 else more), g=upper_first(say(rng, going)))
    return question, rng.choice(answers)


def commands(rng):
    if rng.random() < 0.35:
        command, answer = rng.choice(wordings.FOLLOWS)
        return upper_first(say(rng, wordings.AFTER, c=shown(rng, command)[0])), answer
    command = rng.choice(list(COMMANDS))
    question = say(rng, ("[What does|What will] {c} do[?|]", "[What is|What's] {c} [for|good for|used for][?|]", "[Explain|Describe|Tell me about] [the command |]{c}[.|]", "[What happens|What do I get] [if I run|when I run|if I type|with|after] {c}[?|]",
                         "{c}[? What is that?| does what?|: what does it do?|, what is it for?]", "[Why|When] [would I|do I|should I] [run|use|type] {c}[?|]") if rng.random() < 0.6 else wordings.WHAT_COMMAND, c=shown(rng, command)[0])
    return question, f"It {COMMANDS[command]}."


def by_option(rng, option):
    return rng.choice((f"`{option}`.", f"With `{option}`.", f"The option `{option}`."))


def options(rng):
    option, kind = rng.choice(list(OPTIONS)), rng.random()
    sets, ways = OPTIONS[option]
    goals, wishes, more = wordings.GOALS[option]
    if kind < 0.36:
        name = rng.choice((option, option, f"`{option}`", option.lstrip("-") if option not in ("--model", "--config", "--stop", "--max", "--socket", "--threads", "--json") else option))
        question = say(rng, WHAT_OPTION if rng.random() < 0.45 else wordings.WHAT_OPTION, o=name)
        return question, rng.choice((f"It sets {sets}.", f"`{option}` sets {sets}."))
    if kind < 0.50:
        return say(rng, WHICH_OPTION, d=say(rng, ways if rng.random() < 0.4 else more)), by_option(rng, option)
    if kind < 0.72:
        goal = say(rng, goals)
        return say(rng, wordings.OPTION_GOAL, v=goal, V=upper_first(goal)), by_option(rng, option)
    if kind < 0.86:
        return say(rng, wishes) + say(rng, wordings.OPTION_THEN), by_option(rng, option)
    pair = list(rng.choice(wordings.NEAR_OPTIONS))
    rng.shuffle(pair)
    if rng.random() < 0.5:
        a, b = shown(rng, *rng.sample(pair, 2))
        return say(rng, wordings.EITHER_OPTION, a=a, b=b, v=say(rng, wordings.GOALS[pair[0]][0])), f"`{pair[0]}`."
    a, b = shown(rng, *pair)
    return say(rng, wordings.OPTION_DIFFERENCE, a=a, b=b), f"`{pair[0]}` sets {OPTIONS[pair[0]][0]}; `{pair[1]}` sets {OPTIONS[pair[1]][0]}."


def about(rng):
    questions, answers = rng.choice(ABOUT if rng.random() < 0.4 else wordings.POINTED)
    return say(rng, questions), rng.choice(answers)


def told(rng):
    """The facts as a text tells them."""
    lines = []
    for _ in range(rng.randint(2, 5)):
        kind = rng.random()
        if kind < 0.4:
            lines.append(WORDS[rng.choice(list(WORDS))][1][0])
        elif kind < 0.6:
            option = rng.choice(list(OPTIONS))
            lines.append(f"`{option}` sets {OPTIONS[option][0]}.")
        elif kind < 0.8:
            command = rng.choice(list(COMMANDS))
            lines.append(f"`{command}` {COMMANDS[command]}.")
        else:
            lines.append(rng.choice(ABOUT)[1][-1])
    return " ".join(lines)


def ask(rng):
    kind = rng.choice((words,) * 6 + (beside, beside) + (doings,) * 5 + (commands, commands) + (options,) * 5 + (about,) * 5)
    question, answer = kind(rng)
    if rng.random() < 0.05:
        question = rng.choice(wordings.BEFORE) + " " + question
    return question, answer
