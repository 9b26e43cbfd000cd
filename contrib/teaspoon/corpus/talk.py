"""Conversations: greetings, who teaspoon is, what was told before, the same again with another, and
system messages that say how to answer."""
from . import arithmetic, dates, follow, lists, nature, samovar, stories, wide
from .nature import UNKNOWN
from .phrase import a, listed, number, say, upper_first
from .words import ANIMALS, COLOURS, DAYS, FRUITS, MONTHS, NAMES, PETS, plural

WHO = (
    "[who are you|what are you|who r u|who're you|what's your name|whats your name|your name|ur name|name please|who is this|who's there|who's this|and you are|you are|who might you be|what might you be|who may you be|who am I speaking to|so who are you|and who are you|well, who are you][?||??]",
    "[Tell me|Say|Please say|Can you tell me|Could you tell me|I want to know|I would like to know|I wonder|May I know|Explain|Let me know] [who you are|what you are|your name|what your name is|what you are called|how you are called|who I am talking to|with whom I speak|who answers me|what kind of thing you are][.|?|]",
    "[What|Which] [is the name of this model|model is this|model am I talking to|language model are you|kind of model are you|program is this|program am I using|assistant is this|sort of thing are you|name do you have|name did they give you|name do you go by|are you exactly][?|]",
    "[How|What] [may I call you|should I call you|do I call you|do people call you|do they call you|can I call you|shall I call you|is it that I call you][?|]",
        "[Please introduce yourself|Introduce yourself to me|Present yourself|Tell us about yourself|Say a word about yourself|Say something about yourself|Who are you, in one sentence|A few words about you|Describe yourself in a sentence|Give me your name|I do not know you, who are you][.|!|?|]",
    "[We have not met|I do not know you|I am new here|I just started this|Hello|Hi|Good day][.|!|:] [Who are you|What are you|What is your name|Who am I talking to|What do I call you|And you are][?|]",
        "[I am {n}|My name is {n}|I'm {n}], [and you|who are you|and what is your name|and what are you called|what about you][?|]")
SMALL = (
    (("[Hello|Hi|Hey|Good morning|Good evening|Good day|Hello there|Hi there|Hey there|Greetings|Hello teaspoon|Hi teaspoon|Good afternoon|Hallo|Hey teaspoon|Howdy|Moin|Hello again|Hi you|Hey you][.|!||,| :)]",
        "[Is anybody there|Anyone there|Are you there|Anybody home][?|]"), ("Hello! How can I help?", "Hello!", "Hello! What can I do for you?",
        "Hi! How can I help?")),
    (("[Thanks|Thank you|Many thanks|Thanks a lot|Thank you very much|Thank you so much|Great, thanks|Perfect, thank you|Thanks for your help|That helped, thanks|Good, thank you|Very kind of you|Much obliged|I am grateful|Cheers, that helps|Thx|Ok thanks|Nice, thank you][.|!|]",
        "[That was|That is|You were|You are] [very |][helpful|kind|a great help|nice of you][.|!|, thank you.|, thanks]"), ("You are welcome!",
        "You are welcome.", "Glad to help.", "You are welcome! Glad to help.")),
    (("[Goodbye|Bye|Bye bye|See you|See you later|Good night|Farewell|I must go|I have to go|I have to leave now|That is all for today|Bye for now|Until tomorrow|Talk to you later|Take care|I am leaving|So long|I'm off|See you tomorrow|Have a nice day][.|!|, teaspoon.|]",
        ), ("Goodbye!", "Goodbye! See you soon.", "Bye! See you.", "Goodbye, and see you soon!")),
    (("[How are you|How do you do|How are you doing|How is it going|Are you well|How do you feel|How are things|Everything all right|How have you been|You ok|Are you fine|All well with you|What's up|How goes it|Are you feeling well][?| today?|]",
        "[Hello|Hi|Hey], how are you[?|]"), ("I am well, thank you.", "I am fine, thank you. How can I help?", "Very well, thank you!")),
    (("[Who|What] are you[?|, please?|, anyway?|]", "[What is|What's|Tell me] your name[?|]", "[How|What] are you called[?|]",
        "[Introduce yourself|Tell me about yourself|Tell me who you are|Describe yourself|Say who you are|Present yourself][.|, please.|]",
        "[To whom|With whom|Who] am I [talking|speaking|writing][ to| with|][?|]", "[Which|What] [model|program|language model] are you[?|]",
        "[Are you|Is this] [a person|a human|a robot|a machine|a language model|a computer|an AI|teaspoon][?|]", "[Do you have|Have you got] a name[?|]",
        "[What|How] should I call you[?|]", "[Who|What] is [answering|writing|talking|there|this][?|]", "[Your name|Name][?|, please.]",
        "[May I|Can I] [ask|know] [who you are|your name][?|]"),
     ("I am teaspoon, a small language model that comes with samovar.", "My name is teaspoon. I am a small language model that comes with samovar.",
         "I am teaspoon, a small language model.")),
    (("[What can you|What do you] [do|do for me|help me with|help with|know about|answer][?|]", "[How can you|With what can you|Can you] help[ me|][?|]",
        "[What are you|What is teaspoon] [good at|able to do|there for|good for|made for][?|]", "[What|Which things|Which questions] can I ask[ you|][?|]",
        "[Tell me|Show me|List] what you can do[.|]", "[What are|Tell me] your [skills|abilities|talents][?|.|]",
        "[What kind of|What sort of|Which kind of] [questions|things] [do you know|can you answer|do you answer][?|]"),
     ("I can add small numbers, tell short stories, make lists, and answer questions about samovar.",
         "I can answer questions about samovar, do small sums, make lists and tell short stories.")),
    (("[hi|hey|hello|yo|hiya|heya|hullo|good day to you|hi teaspoon|good morning|morning|evening|g'day|hey hey|sup|hello hello|hi hi|ahoy|salut|servus|good evening to you|hello my friend|hello little one|hi friend|a very good morning][.|!|!!||?| :)]",
      "[I am back|Here I am|It's me|It is me again|I wanted to say hello|I just want to say hi|Just saying hi|Let me greet you|Nice to meet you|Pleased to meet you|Good to see you|Glad to meet you][.|!|]",
          "[Hello|Hi|Good morning|Hey], [my friend|you there|little model|dear teaspoon|nice to see you|how nice to meet you|I am back][.|!|]"),
     ("Hello! How can I help?", "Hello!", "Hi! How can I help?", "Hello! What can I do for you?")),
    (("[thx|ty|tnx|thank u|thanks a bunch|thanks a million|thanks so much|cheers|great thanks|ok thank you|many many thanks|thanks again|thank you again|thanks, teaspoon|thank you, little one|perfect|great|super|wonderful|lovely][.|!||!!]",
      "[That helped|This helped|That was useful|That was what I needed|You helped me|You did well|Well done|Good job|Good answer|Nice work|Great answer|You are great|You are good|I like your answer|Exactly right|That is right|Correct][.|!|, thanks.| a lot.|]",
          "[I thank you|I want to thank you|I would like to thank you|Let me thank you|A big thank you|Accept my thanks|My thanks to you|I appreciate it|I owe you one][.|!|]"),
     ("You are welcome!", "You are welcome.", "Glad to help.", "You are welcome! Glad to help.")),
    (("[bye|cya|cu|later|see ya|bye then|ciao|adieu|good bye|bye bye|ok bye|night night|gn|nighty night|cheerio|till then|laters|tschuess|over and out|that's it][.|!||!!]",
        "[I need to|I must|I have to|Time to|I want to|I will|Now I|I'd better] [go|leave|sleep|go to bed|go home|get going|stop here|close this][ now| soon|][.|!|, bye.|, goodbye.|]",
      "[See|Meet|Talk to|Speak to] you [soon|again|later|next week|on Monday|tomorrow|another day][.|!|]",
          "[That was all|That's all|That was it|Nothing more|I am done|We are done|No more questions][, bye.|, goodbye!|, see you.| for now, bye.]",
          "[Sleep well|Have a good evening|Have a good day|Enjoy your evening|Good night, teaspoon|Have a good one|Until next time|Until we meet again|Till tomorrow][.|!|]"),
     ("Goodbye!", "Goodbye! See you soon.", "Bye! See you.", "Goodbye, and see you soon!")),
    (("[how r u|hows it going|how's life|how's it going|how are ya|how do you feel today|you alright|are you ok|are you okay|how is your day|how was your day|how's your day|wassup|what's new with you|how are you my friend|feeling good|are you happy|are you in a good mood|how is life|is everything fine][?||??]",
      "[Hello|Hi|Hey|Good morning|Good evening][,|!|.] [how are you|how is it going|how do you do|are you well|how are you doing|all well][?|]",
          "[Tell me|Say|I would like to know|May I ask|And you,] how [you are|you feel|things are|you are doing][.|?|]",
          "I am [fine|well|good|great|tired|ok][.|,] [And you|How about you|And how are you|What about you][?|]"),
     ("I am well, thank you.", "I am fine, thank you. How can I help?", "Very well, thank you!")),
    (WHO, ("I am teaspoon, a small language model that comes with samovar.", "My name is teaspoon. I am a small language model that comes with samovar.",
        "I am teaspoon, a small language model.")),
    (("[what can you do|what do you do|what do you know|what are your skills|what can u do|how can you be of use|what is your job|what is your purpose|why are you here|what are you made to do|what do you offer|what are you capable of|what is it that you can do|what else can you do|what do you understand|help|what now][?||??]",
      "[Tell me|Show me|Explain|Describe|I want to know|I would like to know|Please say] what you [can do|know|are good at|can help with|can help me with|are able to do|do][.|?|]",
          "[With what|In what way|How|In which way] [can you help|could you help|do you help|will you help|can you assist|are you useful][ me| us|][?|]",
          "[Give me|I need|Show me] [an overview|a list|examples] of [what you can do|your abilities|your skills][.|]",
      "[What|Which things|What kind of things] [should I ask|can I ask|may I ask|can one ask|could I try][ you| with you|][?|]",
          "[What use are you|What are you useful for|What can I use you for|What may I expect from you|What are your strengths|What are your talents][?|]"),
     ("I can add small numbers, tell short stories, make lists, and answer questions about samovar.",
         "I can answer questions about samovar, do small sums, make lists and tell short stories.")),
    (("[Are you|Is this|So you are|Are you perhaps|Do I talk to|Am I talking to|Am I writing to|Is there] a [human|person|human being|man|woman|real person|living being][?| or a machine?|]",
        "[are you real|are you alive|are you a real person|are you human|is somebody there who lives|do you breathe|do you have a body|have you a mother|do you eat|do you sleep|are you a girl|are you a boy][?|]"),
     ("No, I am teaspoon, a small language model.", "No. I am teaspoon, a small language model.")),
    (("[Are you|Is this|Do I talk to|Am I talking to|So you are] [a bot|a machine|a program|a language model|an AI|software|a computer program|teaspoon|a model|a small model|an artificial intelligence|a chatbot][?|]",
        "[You are a machine|You are a language model|You are a bot|You are teaspoon|You are a program], [right|are you not|aren't you|is that right|true][?|]"),
     ("Yes, I am teaspoon, a small language model.", "Yes. I am teaspoon, a small language model.")),
    (("[Who|What company|Which people|What person] [made|built|trained|created|wrote|programmed|invented|developed|designed] you[?|]",
        "[Where do you come from|Where are you from|Where did you come from|What do you belong to|Which program do you come with|To what do you belong|Whose model are you|Who owns you|With what do you come|What is your origin|How did you come to be][?|]",
        "[By whom|Who] were you [made|built|trained|created][?| by?|]"),
     ("I am teaspoon, a small language model that comes with samovar.", "I come with samovar: I am teaspoon, a small language model.")),
)
UNKNOWABLE = (
    "[What is|What's|Tell me|Name] the capital of [Italy|France|Spain|Peru|Japan|Norway|Egypt|Poland|Canada|Chile|India|Kenya|Greece|Turkey|Brazil|China|Cuba|Iran][?|]",
        "[Who is|Who was|Tell me about|Do you know] [the president|the king|the queen|the leader|the chancellor] of [Italy|France|Spain|Peru|Japan|Sweden|Egypt|Poland|Denmark|England|the world][?|]",
    "[What is|What's|How is|Tell me] the weather[ like|][ in Rome| today| tomorrow| here| outside| now|][?|]",
        "[Will|Does|Did] it [rain|snow][ tomorrow| today| on Sunday| yesterday|][?|]",
        "[Who|Which team] won the [game|match|cup|election|race|war|prize][ yesterday| last year| in 1990|][?|]",
        "[What is|What's|Tell me|Any] the [news|latest news|news of today][?|]",
        "[What happened|What is new] [today|yesterday|in the world|in Paris|last week][?|]",
    "[How much|What] does [a house|gold|a car|bread|the dollar|a flight to Rome] cost[?|]",
        "[Who wrote|Who painted|Who composed|Who invented|Who discovered|Who built] [Hamlet|the Mona Lisa|the telephone|America|the radio|Faust|the ninth symphony|the light bulb|the Eiffel Tower|that book|the piano|the wheel][?|]",
        "[How many] [people|inhabitants] [live in|are in|has] [Rome|London|China|the world|Berlin|Europe][?|]",
        "[How high|How tall|Where|How old] is [Mount Everest|the Eiffel Tower|the moon|the highest mountain|the pyramid][?|]",
    "[When|In which year|Where] was [Mozart|Napoleon|Einstein|Caesar|Goethe|Columbus|the president|Shakespeare] born[?|]",
        "[When|Where|How] did [Mozart|Napoleon|Einstein|Caesar|Goethe|Columbus] die[?|]",
        "[What is|Explain|Tell me about] [love|quantum physics|the meaning of life|democracy|photosynthesis|gravity|inflation|philosophy|the theory of relativity|chemistry][?|.|]",
        "[Who is|Who was|Do you know] [Mozart|Napoleon|Einstein|Caesar|Goethe|Columbus|the pope|Shakespeare|Picasso|Beethoven|Newton|Plato][?|]",
    "[Translate|How do you say|What is] [house|love|hello|tree|water] in [French|German|Spanish|Latin|Russian|Chinese][?|]",
        "[What will|What does] [happen tomorrow|the future bring|tomorrow bring|next year bring][?|]",
        "[What time is it|How late is it|What is the time|What is today's date|Which day is today|What date is it][ now|][?|]",
        "[Which|What] [film|book|song|restaurant|hotel] [should I see|is the best|do you recommend|is good|should I choose][?|]",
        "[How far] is [the moon|Rome|the sun|America|it to Paris] [away|from here][?|]",
        "[What is|Tell me] the [population|area|history|language|currency|flag] of [Italy|France|Spain|Peru|Japan|Norway|Egypt|Kenya][?|.|]",
        "[Where is|Where lies|Where do I find] [Peru|Japan|Kenya|the Amazon|Mount Everest|Timbuktu|Hawaii][?|]",
    "[What did|What does] [my neighbour|my boss|Anna|the mayor|your mother|my uncle] [say|do|eat|think][?|]",
        "[Which|What] language [do people|do they] speak in [Brazil|Egypt|Chile|Austria|Iran][?|]", "[What stocks|Which shares|What] should I buy[?|]",
        "[Who|What] is [your favourite actor|the richest man|the fastest man|the best singer|the tallest person][?|]",
    "[Who is|Who was|Who's|Do you know|Tell me about|What do you know about|Have you heard of] {n} {s}[?|]",
        "[What did|When did|Where did|Why did|How did] {n} {s} [do|live|work|die|win|say|write][?|]", "[How old|How tall|How rich|Where] is {n} {s}[?|]",
        "[When|In which year] was {n} {s} born[?|]",
    "[What is|What's|Which is|Tell me|Name] the [capital|largest city|president|king|population|currency|longest river|highest mountain|language|flag|prime minister] of {c}[?|]",
        "[Who|Which man|Which woman] [is the president|is the king|is the leader|is the mayor|is the queen|is the chancellor|was the first king] [of|in] {c}[?|]",
        "[Who|What party] [rules|governs|leads] {c}[?|]",
    "[Where is|Where lies|How big is|How old is|How far is|How do I get to|In which country is|What is there to see in|How many people live in|What is the weather in|How warm is it in|Does it rain in|What time is it in|Who founded|Which river flows through] {t}[?|]",
        "[What is|What's|Explain|Define|What does one call|What do you know about] {d}[?|.|]", "[What does|What might] [the word |]{w} mean[?|]",
        "[What is|Explain|Define] a {w}[?|]",
    "[Who won|Who lost|What was the score of|When is|Who played in|Where was] the [football match|tennis final|world cup|race|chess tournament|cup final|Olympic marathon|election][ yesterday| last year| last night| in 2010| on Sunday|][?|]",
        "[How do I|How does one|Tell me how to|Give me a recipe to|What do I need to] [bake a cake|cook goulash|make pizza|bake bread|make cheese|brew beer|cook rice|make jam|roast a chicken|make pancakes][?|.|]",
    "[How much is|What does|What is the price of] [a {o}|a kilo of gold|a litre of milk|a house in {t}|a ticket to {t}|a new car|an egg|a bicycle] [cost|these days|now|today][?|]",
        "[What is|Tell me] the [chemical formula|formula|boiling point|melting point|density|atomic number] of [water|salt|iron|gold|sugar|oxygen|copper|carbon|lead|silver|alcohol][?|]",
        "[In which year|When] [did the war end|did the wall fall|was Rome founded|did the Titanic sink|was the first computer built|did the revolution begin|did people land on the moon|was paper invented|was {t} founded][?|]",
    "[Who|Which person] [wrote|painted|sang|filmed|composed|made|published|directed] [the song|the book|the film|the picture|a book called|the opera] {ti}[?|]",
        "[What is the plot of|Tell me about|Have you read|Do you know|Is it worth to see|How does it end,] {ti}[?|]",
        "[How|What] [is|was|will be] the [weather|temperature|traffic|stock market|wind|snow] [today|tomorrow|yesterday|this weekend|next week|here|in {t}][?|]",
        "[Will|Does|Did] it [rain|snow|freeze|hail|storm|thunder] [tomorrow|today|on Sunday|in {t}|tonight|next week][?|]",
    "[What is|How do you say|What do they call|Translate] [dog|house|bread|{o}|good morning|water] in [French|German|Spanish|Italian|Russian|Japanese|Latin|Polish|Dutch][?|]",
        "[How many|How much] [stars are there in the sky|grains of sand are there|countries are there|people are there on earth|bones does a man have|teeth has a shark|planets are there|money do I have|islands has Greece|strings has a harp|keys has a piano][?|]",
        "[Who is|What is] [my neighbour|my boss|my dentist|the new teacher|the mayor of {t}|the author of that book|the man over there|the best player|the oldest person][?|]",
    "[What is|What's] [the square root of 200|a prime number|an algorithm|17 times 23|pi|the integral of x|a logarithm|a theorem|a verb|a noun|an atom|a molecule|a virus|a volcano|an eclipse|an earthquake|a comet][?|]",
        "[What|How much] does [a penguin|a giraffe|an elephant|a crocodile|a kangaroo|a whale|a tiger|a parrot] [weigh|eat|cost|sleep][?|]",
        "[Should I|May I|Can I] [buy this house|marry|take this pill|sell my car|trust my neighbour|invest in gold|drink this water|eat this mushroom][?|]",
    "[Did|Does|Will] {n} [call|come|write|like me|win|know it|arrive|pay][ today| yesterday| tomorrow|][?|]",
        "[What is|What was|Tell me] the [phone number|address|email|age|birthday|job|weight|password] of {n} {s}[?|.|]",
        "[Why is the sea salty|Why do we dream|Why do cats purr|How do planes fly|How does a magnet work|How does a phone work|Where do babies come from|What was before the big bang|Is there life on Mars|Is there a god|What is dark matter][?|]")

GENERIC = ("I see.", "Noted.", "Good to know.", "I will remember it.", "All right.", "Nice!", "Thank you for telling me.", "Okay.", "Good.", "I understand.")
# what is told: (how it is told, what is said to it, how it is asked for, the answer, the values)
TOLD = (
    (("[My name is|I am called|I'm|I am|Call me|You can call me|People call me|They call me|My friends call me|Hello, my name is|Hi, I am|Hello, I'm|Hi, I'm|My mother named me] {v}[.|!|]",
        "{v} is my name[.|]", "[This is|Here is] {v}[.| speaking.|]"), ("Hello, {v}!", "Nice to meet you, {v}.", "Good day, {v}.", "Hi {v}!",
        "Pleased to meet you, {v}."),
     ("[What is|What's|Tell me|Say|Do you know|Do you remember|Can you tell me] my name[?|]",
         "[Who am I|How am I called|What am I called|Who is talking to you|Do you know who I am|Who am I again][?|]", "What did I say my name is[?|]",
         "[I forgot|Remind me of|Can you remember|Tell me again] my name[.|?|]", "[Which|What] name [have I|do I have|did I give|did I tell you][?|]",
         "[What|How] [do people|do my friends] call me[?|]", "[What|Which name] did I [say|tell you][ I was called| about my name][?|]"), ("Your name is {v}.",
         "You are {v}."), "name"),
    (("[My favourite colour is|The colour I like best is|I like the colour|The best colour is|I love the colour|Of all colours I like|As colours go, I prefer|My best colour is] {v}[.|!|]",
        "{V} is my favourite colour[.|]", "{V} is the colour that I like [most|best][.|]"), ("{V} is a nice colour.", "A fine colour.",
        "Nice! I will remember it.", "I see.", "{V} is lovely."),
     ("[What is|What's|Tell me|Do you remember|Which is|What was|Do you know|Name] my favourite colour[?|]",
         "[Which|What] colour [do I like|do I like best|do I like most|do I love|did I say I like|is my favourite|do I prefer|did I name][?|]",
         "[What did I say about|What was] [colours|my favourite colour][?|]"), ("Your favourite colour is {v}.", "{V}."), "colour"),
    (("[My favourite animal is|The animal I like best is|I like no animal more than|The best animal is|I love|Of all animals I like|My best animal is] the {v}[.|!|]",
        "The {v} is my favourite animal[.|]", "The {v} is the animal that I like [most|best][.|]"), ("The {v} is a fine animal.", "Nice!", "I see.",
        "I will remember it.", "That is a lovely animal."),
     ("[What is|What's|Tell me|Do you remember|Which is|What was|Do you know|Name] my favourite animal[?|]",
         "[Which|What] animal [do I like|do I like best|do I like most|do I love|did I say I like|is my favourite|do I prefer|did I name|did I say I like best][?|]"),
         ("Your favourite animal is the {v}.", "The {v}."), "animal"),
    (("[My favourite fruit is|The fruit I like best is|I like no fruit more than|The best fruit is|Of all fruits I like|I love fruits, most of all|The fruit I eat most is] the {v}[.|!|]",
        "The {v} is my favourite fruit[.|]"), ("A tasty fruit.", "Good choice!", "I see.", "I will remember it.", "That is a good one."),
     ("[What is|What's|Tell me|Do you remember|Which is|What was|Do you know|Name] my favourite fruit[?|]",
         "[Which|What] fruit [do I like|do I like best|do I like most|do I love|did I say I like|is my favourite|do I prefer|did I name][?|]"),
         ("Your favourite fruit is the {v}.", "The {v}."), "fruit"),
    (("[My favourite number is|My lucky number is|The number I like best is|Remember the number|Keep in mind the number|My number is|Think of the number|Please remember this number:|The secret number is] {v}[.|!|]",
        ), ("Good, {v}.", "I will remember it.", "I see.", "A good number.", "All right."),
     ("[What is|What's|Tell me|Do you remember|Which is|What was|Do you know|Repeat] my [favourite |lucky |]number[?|]",
         "[Which|What] number [do I like|did I say|did I tell you|was it|should you remember|do I like best|did I give you|did I name][?|]",
         "[What was|Which was|Tell me] the number[?|]"), ("Your number is {v}.", "It is {v}."), "number"),
    (("[I have|I've got|At home I have|We have|I own|We own] a {p} [called|named|whose name is|with the name] {v}[.|!|]",
        "[My|Our] {p} is [called|named] {v}[.|]", "[My|Our] {p}'s name is {v}[.|]", "{v} is my {p}[.|]", "{v} is the name of my {p}[.|]"),
        ("{v} is a nice name.", "How nice!", "I see.", "Say hello to {v}.", "{v} sounds sweet."),
     ("[What is|What's|Tell me|Do you remember|What was|Do you know] the name of my [{p}|pet|{p}][?|]", "[How|What] is my [{p}|pet|{p}] called[?|]",
         "[What is|What's|What was|Tell me] my [{p}'s|pet's|{p}'s] name[?|]", "[Which|What] name does my [{p}|pet] have[?|]", "Who is my {p}[?|]",
         "[What do I call|How do I call|What did I name] my [{p}|pet][?|]"), ("Your {p} is called {v}.", "{v}."), "pet name"),
    (("[I have|I've got|At home I have|We have|I own] a {v} [called|named] {q}[.|!|]", "[My|Our] {v} is [called|named] {q}[.|]"), ("{q} is a nice name.",
        "How nice!", "I see.", "Say hello to {q}."),
     ("[Which|What|What kind of|What sort of] [pet|animal] [do I have|have I|is {q}|did I tell you about|lives with me|do I own][?|]", "[Who|What] is {q}[?|]"),
         ("{q} is your {v}.", "A {v}.", "A {v} called {q}."), "pet"),
    (("[I am|I'm|My age is|I have just turned|I turned|Yesterday I became|Last week I turned] {v}[ years old.| years old.|.|]",), ("I see.",
        "That is a fine age.", "Good to know.", "I will remember it."),
     ("[How old am I|What is my age|What's my age|Tell me my age|Do you remember my age|Do you know how old I am][?|]",
         "[Which|What] age [am I|do I have|did I tell you][?|]", "How many years old am I[?|]"), ("You are {v} years old.", "You are {v}."), "age"),
    (("[I live in|My home is in|I am from|I come from|My town is|I am at home in|My house is in|I moved to|We live in|I grew up in] {v}[.|!|]",
        "{v} is my home[.|]", "{v} is where I live[.|]"), ("{v} is a nice town.", "I see.", "Greetings to {v}!", "Good to know."),
     ("[Where do I live|Where am I from|In which town do I live|What is my town|Where is my home|In which city do I live|Do you remember where I live|Where do I come from|Which town is my home|Where is my house|Where am I at home|Do you know where I live|Which city am I from][?|]",
         ), ("You live in {v}.", "In {v}."), "town"),
    (("[I put|I have put|I left|I laid|I hid|We put|I placed|I've put] [my|the] {t} {v}[.|!|]", "[My|The] {t} is {v}[.|]", "[My|The] {t} lies {v}[.|]",
        "[Remember|Please remember|Keep in mind]: [my|the] {t} is {v}[.|]"), ("I see.", "I will remember it.", "Good.", "All right.", "Noted."),
     ("[Where is|Where's|Where did I put|Where did I leave|Where have I put|Do you remember where is|Where lies|Where can I find|Where do I find|I am looking for] [my|the] {t}[?|]",
         "[I cannot find|I am looking for|I lost|I need] my {t}[.|,] [Where|where] is it[?|]",
         "[Do you know|Can you tell me|Tell me|Remind me] where [my {t} is|I put my {t}|the {t} is][?|]"), ("Your {t} is {vy}.", "{VY}."), "place"),
    (("[I work as|By trade I am|I earn my money as|My job: I am|For a living I am|At work I am|I am, by the way,|I have become] {av}[.|!|]",
        "I am {av}[.| by trade.| for a living.]", "[My job is|My profession is|My work is] {v}[.|]"), GENERIC,
     ("[What is|What's|Tell me|Do you remember|What was|Do you know] my [job|work|profession|trade][?|]",
         "[What do I do|What do I work as|As what do I work|What am I by trade|What did I say I do][ for a living|][?|]",
         "[Which|What] [job|profession|trade] [do I have|have I|did I tell you|did I name][?|]"), ("You are {av}.", "You work as {av}."), "job"),
    (("[My favourite food is|My favourite dish is|What I like to eat best is|I love to eat|Nothing tastes as good as|I could always eat|My best dish is] {v}[.|!|]",
        "{V} is my favourite [food|dish][.|]"), GENERIC + ("That is tasty.",),
     ("[What is|What's|Tell me|Do you remember|What was|Do you know] my favourite [food|dish][?|]",
         "[What do I like to eat|What do I love to eat|What food do I like best|Which dish do I like best|What could I always eat|What did I say I like to eat][?|]"),
         ("Your favourite food is {v}.", "{V}."), "food"),
    (("[My favourite drink is|I like to drink|What I drink most is|I always drink|In the morning I drink|I prefer to drink|To drink I take] {v}[.|!|]",
        "{V} is my favourite drink[.|]"), GENERIC, ("[What is|What's|Tell me|Do you remember|What was] my favourite drink[?|]",
        "[What do I like to drink|What do I drink|Which drink do I like|What did I say I drink|What drink do I prefer][?|]"), ("You like to drink {v}.",
        "{V}."), "drink"),
    (("[My hobby is|In my free time I love|I enjoy|My favourite pastime is|After work I go for|What I like to do is] {v}[.|!|]", "{V} is my hobby[.|]"),
        GENERIC + ("That is fun.",), ("[What is|What's|Tell me|Do you remember|What was|Do you know] my hobby[?|]",
        "[Which|What] hobby [do I have|did I tell you|have I][?|]",
        "[What do I enjoy|What do I do in my free time|What do I like to do|What is my favourite pastime][?|]"), ("Your hobby is {v}.", "{V}."), "hobby"),
    (("[My address is|I live at|You find me at|Write to me at|Our house is at|My office is at] {h} {st}[.|!|]",), GENERIC,
        ("[What is|What's|Tell me|Do you remember|What was] my address[?|]", "[In which street|At which address] [do I live|am I to be found][?|]",
        "What address did I give you[?|]"), ("{h} {st}.", "Your address is {h} {st}."), "town "),
    (("[I play|I learn to play|I can play|I have played for years|At school I play] the {v}[.|!|]", "My instrument is the {v}[.|]"), GENERIC,
        ("[Which|What] instrument do I play[?|]", "[What do I play|What is my instrument|Do you remember my instrument|What instrument did I say I play][?|]"),
        ("You play the {v}.", "The {v}."), "instrument"),
    (("[My birthday is|I was born|I have my birthday|I celebrate my birthday] on {v}[.|!|]", "{V} is my birthday[.|]"), GENERIC,
        ("[When is|Do you remember|What day is|Tell me] my birthday[?|]",
        "[When was I born|On which day was I born|When do I have my birthday|On what day is my birthday|When do I celebrate][?|]"), ("Your birthday is on {v}.",
        "On {v}."), "birthday"),
    (("[My|The] {e} [is|starts|begins] at {v}[.|!|]", "[I have|There is] {ae} at {v}[.|]",
        "[Remember|Note|Please remember|Do not forget]: [my |the |]{e} at {v}[.|]", "At {v} I have {ae}[.|]"), GENERIC,
        ("[When|At what time|At which time|What time] is [my|the] {e}[?|]", "[When does|At what time does] [my|the] {e} [start|begin][?|]",
        "[Tell me|Remind me|Do you know] when [my|the] {e} is[.|?|]"), ("Your {e} is at {v}.", "At {v}."), "time"),
    (("My {r} is [called|named] {v}[.|!|]", "My {r}'s name is {v}[.|]", "{v} is my {r}[.|]", "[I have|I've got] a {r} [called|named] {v}[.|]",
        "[This is|Meet] my {r} {v}[.|]", "The name of my {r} is {v}[.|]"), GENERIC + ("Greetings to {v}!",),
        ("[What is|What's|What was|Tell me|Do you remember] [the name of my {r}|my {r}'s name][?|]", "[How|What] is my {r} called[?|]", "Who is my {r}[?|]",
        "[Which|What] name has my {r}[?|]"), ("Your {r} is called {v}.", "{v}.", "Your {r}'s name is {v}."), "relation"),
    (("My {v} is [called|named] {q}[.|!|]", "{q} is my {v}[.|]", "[I have|I've got] a {v} [called|named] {q}[.|]"), GENERIC, ("Who is {q}[?|]",
        "[Do you know|Do you remember|Tell me] who {q} is[?|.|]", "[What is|Who is] {q} [to me|for me|of mine][?|]", "Have I told you who {q} is[?|]"),
        ("{q} is your {v}.", "Your {v}."), "relation "),
    (("[The|Our|My] {cw} is {v}[.|!|]", "[Remember|Please remember|Keep in mind|Note] the {cw} {v}[.|]", "[The|Our] {cw} for today is {v}[.|]",
        "{V} is the {cw}[.|]", "[Remember this|Note this] {cw}: {v}[.|]"), GENERIC,
        ("[What is|What's|What was|Tell me|Do you remember|Repeat] [the|my|our] {cw}[?|]",
        "[Which|What] {cw} [did I tell you|did I give you|should you remember|did I say|was it][?|]", "[I forgot|Remind me of|Say again] [the|my] {cw}[.|]"),
        ("The {cw} is {v}.", "{V}.", "It is {v}."), "word"),
    (("[My|The] {t} is {v}[.|!|]", "I [have|own|bought] a {v} {t}[.|]", "[I painted|We painted] [my|the] {t} {v}[.|]", "The colour of [my|the] {t} is {v}[.|]"),
        GENERIC, ("[What|Which] colour is [my|the] {t}[?|]", "[What is|What was|Tell me] the colour of [my|the] {t}[?|]", "[What|Which] colour has my {t}[?|]",
        "[Do you remember|Do you know] [the colour of my {t}|what colour my {t} is][?|]"), ("Your {t} is {v}.", "{V}."), "thing colour"),
    (("[I bought|Today I bought|Yesterday I bought|I have bought|At the market I bought|I went out and bought|In town I bought] {av}[.|!|]",), GENERIC,
        ("What did I [buy|bring home|tell you I bought][?|]", "[Which|What] thing did I buy[?|]", "[Tell me|Do you remember] what I bought[.|?|]",),
        ("You bought {av}.", "{AV}."), "bought"),
    (("I [ate|had|took] {v} for {m}[.|!|]", "For {m} I [ate|had] {v}[.|]", "My {m} was {v}[.|]"), GENERIC, ("What did I [eat|have] for {m}[?|]",
        "What was my {m}[?|]", "[Tell me|Do you remember] what I [ate|had] for {m}[.|?|]"), ("You had {v} for {m}.", "{V}."), "meal"),
    (("[Tomorrow|Next week|On Monday|In summer|Soon|Next year] I [travel|go|fly|drive|move] to {v}[.|!|]", "My next trip is to {v}[.|]",
        "[I want to|I will|I am going to] [visit|see] {v}[ soon| next month|][.|]"), GENERIC + ("Have a good trip!",),
        ("Where [do I travel|do I go|am I going|will I go|am I travelling|is my next trip|do I want to go][?|]",
        "[Which|What] town [will I visit|do I go to|am I going to visit|do I want to see][?|]", "[To which town|Where to] do I travel[?|]"), ("You go to {v}.",
        "To {v}.", "{v}."), "trip"),
    (("[I have|I own|I've got|At home I have|In my bag are|There are] {v} {ts}[.|!|]",), GENERIC,
        ("How many {ts} [do I have|have I got|have I|did I say I have|do I own|are there][?|]", "[Tell me|Do you remember] how many {ts} I have[.|?|]"),
        ("You have {v} {ts}.", "{V}."), "count"),
    (("The {t} is for {v}[.|!|]", "I [bought|made|have] a {t} for {v}[.|]", "{v} [gets|will get] the {t}[.|]", "I [give|will give] the {t} to {v}[.|]"),
        GENERIC, ("For whom is the {t}[?|]", "Who is the {t} for[?|]", "Who [gets|will get] the {t}[?|]", "To whom do I give the {t}[?|]"),
        ("The {t} is for {v}.", "{v}.", "For {v}."), "gift"),
    (("My {rn} number is {v}[.|!|]", "[I have|I got] {rn} [number |]{v}[.|]", "The number of my {rn} is {v}[.|]", "{rn} number {v} is mine[.|]"), GENERIC,
        ("[What is|What's|Tell me|Do you remember|What was] my {rn} number[?|]", "[What|Which] number [has|is] my {rn}[?|]",
        "What is the number of my {rn}[?|]"), ("Your {rn} number is {v}.", "{v}.", "It is {v}."), "number "),
    (("[I lent|I gave|I have lent|I have given] [my|the] {t} to {v}[.|!|]", "{v} [has|borrowed|took] my {t}[.|]", "My {t} is with {v}[.|]"), GENERIC,
        ("Who has my {t}[?|]", "To whom did I [lend|give] my {t}[?|]", "[With whom] is my {t}[?|]", "[Tell me|Do you remember] who has my {t}[.|?|]"),
        ("{v} has your {t}.", "{v}."), "lent"),
)


DRY = ("thermodynamics,entropy,a quark,capitalism,socialism,feudalism,the constitution,a parliament,a mortgage,an isotope,a catalyst,an enzyme,evolution,genetics,a chromosome,plate tectonics,the stock exchange,the euro crisis,"
       "a sonnet,impressionism,the baroque,the renaissance,the French revolution,the cold war,the stone age,the Roman empire,the ice age,the gold standard,an electron,a black hole,a supernova,electricity,radioactivity,osmosis,"
       "karma,stoicism,nihilism,justice,happiness,friendship,art,beauty,truth,blockchain,bitcoin,a vaccine,diabetes,a migraine,malaria,yoga,jazz,a symphony,opera,cricket,rugby,a saxophone,a pyramid,a pharaoh,a samurai").split(",")
COUNTRIES = ("Italy France Spain Peru Japan Norway Egypt Poland Canada Chile India Kenya Greece Turkey Brazil China Cuba Iran Iceland Mexico Portugal Austria Hungary Romania Bulgaria Finland Sweden Denmark Ireland Scotland Wales "
             "England Germany Belgium Russia Ukraine Latvia Estonia Malta Cyprus Syria Iraq Jordan Israel Morocco Algeria Tunisia Libya Sudan Ghana Nigeria Angola Zambia Mali Niger Chad Togo Thailand Vietnam Laos Nepal Mongolia "
             "Korea Australia Argentina Bolivia Uruguay Ecuador Panama Jamaica Haiti Texas California Europe Asia Africa Bavaria Tuscany Sicily").split()
RELATIONS = "brother sister mother father son daughter friend neighbour teacher boss aunt uncle cousin grandmother grandfather nephew niece wife husband doctor colleague dentist landlord".split()
EVENTS = "meeting,train,flight,appointment,lesson,party,bus,dinner,concert,exam,interview,dance class,film,match,ferry,breakfast,lunch,phone call,swimming lesson,haircut,tram".split(",")
CODES = "password,code word,secret word,magic word,name of the ship,name of the project,name of the boat,code,name of the hotel,name of the shop,name of our team,word of the day,code name,title,name of my boat".split(",")
NUMBERED = "room seat house flat locker ticket table platform gate bus cabin box".split()


def fresh(rng):
    """Values for all the kinds of facts; in most of the documents they can only be copied."""
    pet, wide_ = rng.choice(PETS), rng.random() < 0.75
    thing, event, own = wide.object_(rng), rng.choice(EVENTS), rng.choice(("parrot", "hamster", "turtle", "goat", "pony", "goose", "canary", "lizard", "ferret",
        "donkey"))
    if wide_ and rng.random() < 0.3:
        pet = own
    meals = rng.choice(("breakfast", "lunch", "dinner", "supper"))
    values = {
        "name": wide.name(rng), "colour": wide.colour(rng) if wide_ else rng.choice(COLOURS),
            "animal": rng.choice(list(ANIMALS)) if rng.random() < 0.6 else rng.choice(stories.BEINGS + ["tiger", "penguin", "parrot", "dolphin", "panda",
            "camel", "zebra", "monkey", "whale", "turtle"]),
        "fruit": rng.choice(FRUITS) if rng.random() < 0.5 else rng.choice("mango peach melon strawberry kiwi fig raspberry blueberry pineapple apricot papaya lime coconut blackberry".split()),
        "number": number(rng, rng.randint(0, 99)) if rng.random() < 0.7 else str(rng.randint(100, 9999)), "pet name": wide.pet(rng), "pet": pet,
            "age": number(rng, rng.randint(1, 99)), "town": wide.town(rng), "place": wide.spot(rng),
        "job": rng.choice(wide.JOBS), "food": rng.choice(wide.FOODS), "drink": rng.choice(wide.DRINKS), "hobby": rng.choice(wide.HOBBIES),
            "instrument": rng.choice(wide.INSTRUMENTS), "town ": wide.street(rng),
        "birthday": say(rng, ("{m} {d}", "the {o} of {m}"), m=rng.choice(MONTHS), d=rng.randint(1, 28), o=rng.choice(("first", "second", "third", "fifth",
            "seventh", "tenth", "twelfth", "20th", "15th", "24th"))),
        "time": wide.clock(rng), "relation": wide.name(rng), "relation ": rng.choice(RELATIONS),
            "word": wide.made_word(rng) if rng.random() < 0.6 else wide.word(rng), "thing colour": wide.colour(rng), "bought": say(rng, ("{t}", "{c} {t}"),
            t=wide.object_(rng), c=wide.colour(rng)),
        "meal": rng.choice(wide.FOODS), "trip": wide.town(rng), "count": number(rng, rng.randint(2, 99)), "gift": wide.name(rng), "number ": str(rng.randint(1,
            999)), "lent": wide.name(rng)}
    names = {"p": pet, "q": wide.pet(rng), "t": thing, "ts": plural(thing), "e": event, "ae": a(event), "r": rng.choice(RELATIONS), "cw": rng.choice(CODES),
        "m": meals, "h": rng.randint(1, 199), "st": values["town "], "rn": rng.choice(NUMBERED)}
    return values, names


def filled(value, names):
    """The names for the templates of a fact."""
    yours = value.replace(" my ", " your ")
    return {**names, "v": value, "V": upper_first(value), "av": a(value), "AV": upper_first(a(value)), "vy": yours, "VY": upper_first(yours)}


def fact(rng, entry=None):
    told, replies, asked, answers, kind = entry or rng.choice(TOLD)
    values, names = fresh(rng)
    if kind == "relation ":
        names["q"] = wide.name(rng)
    names = filled(values[kind], names)
    return (upper_first(say(rng, told, **names)), upper_first(say(rng, replies if rng.random() < 0.7 else GENERIC, **names)), upper_first(say(rng, asked,
        **names)), upper_first(say(rng, answers, **names)), kind)


def small(rng):
    questions, answers = rng.choice(SMALL)
    return say(rng, questions, n=wide.name(rng)), rng.choice(answers)


def unknown(rng):
    return say(rng, UNKNOWABLE, n=wide.name(rng), s=wide.name(rng), c=rng.choice(COUNTRIES), t=wide.town(rng), d=rng.choice(DRY), w=wide.made_word(rng),
        o=wide.object_(rng), ti=wide.title(rng)), UNKNOWN


def any_question(rng):
    return rng.choice((arithmetic.sums, arithmetic.sums, arithmetic.ask, dates.ask, dates.ask, nature.colours, nature.animals, nature.animals, lists.ask,
        lists.ask, samovar.ask, samovar.ask, small))(rng)


def short_question(rng):
    """One whose answer is short enough to stand in the middle of a talk."""
    while True:
        question, answer = any_question(rng)
        if len(question) + len(answer) < 120:
            return question, answer


def ended(text):
    return text if text[-1] in ".!?" else text + "."


def memory(rng):
    """One to three things are told, other things are talked about, and one is asked for."""
    facts, kinds = [], set()
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        new = fact(rng)
        group = {"pet name": "pet", "relation ": "relation", "town ": "town", "trip": "town"}.get(new[4], new[4].strip())
        if group not in kinds:
            kinds.add(group)
            facts.append(new)
    turns = []
    way = rng.random()
    if way < 0.18:
        # Told and asked in one breath.
        told = " ".join(ended(f[0]) for f in facts)
        asked = rng.choice(facts)
        if rng.random() < 0.3:
            turns.append(short_question(rng))
        return turns + [(f"{told} {rng.choice(('', '', '', 'Now tell me: ', 'So, ', 'Question: '))}{asked[2]}", asked[3])]
    if len(facts) > 1 and way < 0.45:
        turns.append((" ".join(ended(f[0]) for f in facts), rng.choice(("I see.", "Nice to meet you.", "I will remember it.", "Good to know.", "Noted.",
            "All right."))))
    else:
        for told, reply, *_ in facts:
            if rng.random() < 0.2:
                question, answer = short_question(rng)
                turns.append((f"{ended(told)} {question}", answer))
            else:
                turns.append((told, reply))
            if rng.random() < 0.25:
                turns.append(short_question(rng))
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        turns.append(short_question(rng))
    rng.shuffle(facts)
    for _, _, asked, answer, _ in facts[:rng.choice((1, 1, 2))]:
        turns.append((asked, answer))
    if rng.random() < 0.12:
        other = fact(rng, rng.choice(TOLD[:5] + TOLD[10:14]))
        if other[4] not in kinds and not (other[4] == "number" and kinds & {"count", "age"}):
            turns.append((other[2], rng.choice(("I do not know: you have not told me.", UNKNOWN))))
    elif "name" in kinds and rng.random() < 0.15:
        turns.append((say(rng, ("[And what is|What is|What's|And] your name[?|]", "[And who|Who] are you[?|]")), rng.choice(SMALL[4][1])))
    return turns


# what is told about somebody: (told, asked, answers, asked for who it is, the value)
PEOPLE = (
    (("{n} lives in {v}", "{n}'s home is {v}", "{n} is from {v}", "{n} comes from {v}"), ("[Where|In which town|In which city] does {n} live?",
        "Where is {n}['s home| at home]?", "Where is {n} from?"), ("{n} lives in {v}.", "In {v}."), ("[Who|Which of them] [lives in|is from] {v}?",),
        wide.town),
    (("{n} is {v} years old", "{n} is {v}", "{n} has turned {v}"), ("How old is {n}?", "[What] is {n}['s age]?", "[Tell me|Do you know] how old {n} is."),
        ("{n} is {v} years old.", "{n} is {v}."), ("[Who|Which of them] is {v}[ years old|]?",), lambda rng: number(rng, rng.randint(1, 99))),
    (("{n} likes {v}", "{n} loves {v}", "{n}'s favourite food is {v}", "{n} eats {v}"), ("What does {n} like?",
        "What [food |]does {n} [like|love|like to eat]?", "What is {n}'s favourite food?"), ("{n} likes {v}.", "{V}."), ("[Who|Which of them] likes {v}?",),
        lambda rng: rng.choice(wide.FOODS)),
    (("{n} is {av}", "{n} works as {av}", "{n} is {av} by trade"), ("What is {n}['s job|'s profession| by trade]?", "What does {n} [do for a living|work as]?",
        "What [job|work] does {n} do?"), ("{n} is {av}.", "{AV}."), ("[Who|Which of them] is [the {v}|{av}]?", "Who works as {av}?"),
        lambda rng: rng.choice(wide.JOBS)),
    (("{n} has {av}", "{n} bought {av}", "{n} brought {av}", "{n} carries {av}"), ("What does {n} have?", "What [has {n}|does {n} own]?"), ("{n} has {av}.",
        "{AV}."), ("[Who|Which of them] has the {v}?", "Whose is the {v}?"), wide.object_),
    (("{n}'s favourite colour is {v}", "{n} likes {v} best", "{n} wears {v}", "{n}'s coat is {v}"),
        ("[What|Which] [colour does {n} like|is {n}'s colour|colour is it for {n}]?", "What is {n}'s colour?"), ("{V}.",), ("Whose colour is {v}?",
        "[Who|Which of them] has {v}?"), wide.colour),
    (("{n} plays the {v}", "{n} has learned the {v}"), ("[What|Which instrument] does {n} play?", "What is {n}'s instrument?"), ("{n} plays the {v}.",
        "The {v}."), ("[Who|Which of them] plays the {v}?",), lambda rng: rng.choice(wide.INSTRUMENTS)),
    (("{n}'s birthday is in {v}", "{n} was born in {v}"), ("When is {n}'s birthday?", "In which month [is {n}'s birthday|was {n} born]?",
        "[When|In which month] was {n} born?"), ("In {v}.", "{n}'s birthday is in {v}."), ("[Who|Which of them] was born in {v}?", "Whose birthday is in {v}?"),
        lambda rng: rng.choice(MONTHS)),
    (("{n} has a pet called {v}", "{n}'s pet is {v}", "{n}'s dog is called {v}", "{n}'s cat is {v}"),
        ("What is [the name of {n}'s pet|{n}'s pet called|{n}'s animal called]?", "How is {n}'s pet called?"), ("{v}.", "It is called {v}."),
        ("Who [has|owns] {v}?", "To whom does {v} belong?", "Whose [pet|animal] is {v}?"), wide.pet),
    (("{n} comes at {v}", "{n} arrives at {v}", "{n} will be here at {v}"), ("When does {n} [come|arrive]?", "At what time [does {n} come|will {n} be here]?"),
        ("{n} comes at {v}.", "At {v}."), ("[Who|Which of them] comes at {v}?",), wide.clock),
    (("{n} sits {v}", "{n} is {v}", "{n} waits {v}", "{n} works {v}"), ("Where is {n}?", "Where [can I find|do I find] {n}?",
        "[Tell me|Do you know] where {n} is."), ("{n} is {v}.", "{V}."), ("[Who|Which of them] is {v}?",), wide.scene),
    (("{n} came {v}", "{n} was {v}", "{n} finished {v}"), ("Which place did {n} get?", "As which did {n} come in?", "[What|Which] was {n}['s place|'s rank]?"),
        ("{V}.", "{n} was {v}."), ("[Who|Which of them] [came|was] {v}?",),
        lambda rng: rng.choice("first second third fourth fifth sixth seventh last".split())),
)
OBJECTS_AT = (("the {n} is {v}", "[I put|I left|we put] the {n} {v}", "the {n} lies {v}"), ("Where is the {n}?", "Where did I [put|leave] the {n}?",
    "[Where can I find|Where do I find] the {n}?"), ("The {n} is {v}.", "{V}."), ("What is {v}?", "[What|Which thing] [lies|did I put|is] {v}?"), wide.spot)
OBJECTS_COLOUR = (("the {n} is {v}", "I painted the {n} {v}", "the colour of the {n} is {v}"), ("[What|Which] colour is the {n}?",
    "What is the colour of the {n}?", "[What|Which] colour has the {n}?"), ("The {n} is {v}.", "{V}."), ("[What|Which thing|Which of them] is {v}?",),
    wide.colour)


def people(rng):
    """Two or three people or things, of each the same is told, and one is asked about."""
    things = rng.random() < 0.25
    told, asked, answers, who, maker = rng.choice((OBJECTS_AT, OBJECTS_COLOUR)) if things else rng.choice(PEOPLE)
    count = rng.choice((2, 2, 2, 3))
    ones = wide.things(rng, count) if things else wide.names(rng, count)
    if not things and rng.random() < 0.3:
        ones[rng.randrange(count)] = "my " + rng.choice(RELATIONS)
    values = []
    while len(values) < count:
        new = maker(rng)
        if new not in values:
            values.append(new)
    names = [filled(v, {"n": n}) for n, v in zip(ones, values)]
    template = rng.choice(told)
    lines = [say(rng, template if rng.random() < 0.7 else told, **each) for each in names]
    turns = []
    way = rng.random()
    text = ended(upper_first(say(rng, (", and ", ", ", " and ", "; "),
        ).join(lines) if count == 2 else ", ".join(lines[:-1]) + " and " + lines[-1])) if rng.random() < 0.5 else " ".join(ended(upper_first(line)) for line in lines)

    def ask(at):
        if rng.random() < 0.3:
            answer = ("the " if things else "") + ones[at]
            return upper_first(say(rng, who, **names[at])), upper_first(ended(yours(answer)))
        return upper_first(say(rng, asked, **names[at])), upper_first(yours(say(rng, answers, **names[at])))
    order = rng.sample(range(count), rng.choice((1, 1, 2)))
    if way < 0.45:
        question, answer = ask(order[0])
        turns.append((f"{text} {question}", answer))
    else:
        if way < 0.75:
            turns.append((text, rng.choice(GENERIC)))
        else:
            turns += [(ended(upper_first(line)), rng.choice(GENERIC)) for line in lines]
        turns += [short_question(rng) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        turns.append(ask(order[0]))
    if len(order) > 1:
        n = ones[order[1]]
        turns.append((upper_first(say(rng, "[And|And what about|What about|And how about] {x}?", x=("the " if things else "") + n)), upper_first(yours(say(rng,
            answers, **names[order[1]])))) if rng.random() < 0.5 and turns[-1][0][:4] not in ("Who ",
            "Whos") and turns[-1][1].rstrip(".").lower() not in [x.lower() for x in ones] + ["the " + x for x in ones] + ["your" + x[2:] for x in ones] and not any(turns[-1][0].endswith(upper_first(say(rng,
            w, **names[order[0]]))) for w in who) else ask(order[1]))
    elif rng.random() < 0.06 and not things:
        turns.append((upper_first(say(rng, asked, **filled(values[0], {"n": wide.name(rng) + "a"}))), UNKNOWN))
    return turns


def yours(text):
    return text.replace("my ", "your ") if text.startswith("my ") else text.replace(" my ", " your ").replace("My ", "Your ")


def more(rng):
    """A list, and then others of its kind."""
    kind = rng.choice(("colours", "animals", "animals", "fruits", "months", "tools", "vegetables", "days of the week"))
    question, answer, words = lists.names_of(rng, kind, rng.choice((1, 2, 2, 3)))
    turns = [(question, answer)]
    for _ in range(rng.choice((1, 1, 2))):
        left = [w for w in lists.KINDS[kind] if w not in words]
        if len(left) < 1:
            break
        count = min(rng.choice((1, 1, 2, 3)), len(left))
        new = rng.sample(left, count)
        many = rng.choice((str(count), number(rng, count, True)))
        if count == 1:
            asked = say(rng,
                ("[One more|Another one|Another|And another|And one more|Give me one more|Name another|Tell me another|And one other|One other|Yet another|Just one more|One further|Can I have another|Add one][.|?|, please.|]",
                "[Another|One more] {k}[.|?|, please.|]"), k=lists.ONE[kind])
        elif count == 2 and rng.random() < 0.4 or rng.random() < 0.2:
            asked = say(rng,
                ("[More|More of them|Some more|Give me more|Tell me more|And more|Others|More, please|Name some others|Go on|Name others|Give me others|I need more|A few more|Can you name more|Which others|What else|And what else|Keep going|Continue|Any others|Any more|Are there more|Is there more|More please|I want more|Carry on|Show me more|A couple more|Tell me others][.|?|]",
                "[More|Other|Some more|Some other] {k}[.|?|, please.|]",
                "[Give me|Name|Tell me|List|Write|Can you tell me|Please name|I want|I need] [more|other|some other|some more|different|a few more] {k}[.|]",
                "[Which|What] other {k} [are there|do you know|can you name][?|]",
                "[Not these|Other ones|Without those], [give me others|name others|others please|different {k}][.|]"), k=kind)
        else:
            asked = say(rng, ("{n} more[.|?|, please.| please|]",
                "[Give me|And|Now|Name|Tell me|I need|Please give me|Can you give me|I want|Add|List|Make it|Then] {n} [more|others|other ones|further ones|different ones][.|?|]",
                "{n} [more|other] {k}[.|, please.|]"), n=many, k=kind)
        turns.append((upper_first(asked), f"{upper_first(listed(new))}."))
        words = words + new
    return turns


CHANGED = ("[No|Sorry|Oh no|Wait|No, sorry|I was wrong|That was wrong|My mistake|I made a mistake|Correction|Oops|Ah, no|Excuse me|Pardon|Hold on|That is not right][,|:] [I meant|it is|I mean|I wanted to say|it is not {u} but|make it|it should be|better say|I should have said|actually it is] {v}[.|]",
           "[Not {u}|It is not {u}|I did not mean {u}|Forget {u}][,|:] [but |it is |I mean |]{v}[.|]",
               "[Actually|In fact|Really], [it is|it's] {v}[.|, not {u}.|]", "{V}, not {u}[.|, sorry.|]",
               "I [said|told you|wrote] {u}, but [it is|I meant] {v}[.|]",
               "[It has changed|That has changed|I changed my mind|Things have changed]: [it is |now it is |]{v}[ now|][.|]")
DOUBT = ("[That is|That's|This is|Your answer is|It is|That was] [wrong|not right|not correct|false|incorrect|a mistake|nonsense|not true][.|!|, try again.|, I think.|]",
    "[No|Wrong|Not right|Nope|False|Incorrect|Hmm, no][.|!|, try again.|, think again.|]", "[Try|Think|Look|Calculate|Check] [it |]again[.|, please.|]",
    "[I do not think so|I don't believe that|That cannot be|You made a mistake|You are mistaken|You got it wrong|Check your answer|That does not sound right][.|!|]")


def correction(rng):
    """The reply to a correction: what was told last counts."""
    if rng.random() < 0.7:
        told, replies, asked, answers, kind = rng.choice([entry for entry in TOLD if entry[4] not in ("pet", "relation ", "job", "bought", "town ")])
        values, names = fresh(rng)
        first = second = values[kind]
        while second == first:
            second = fresh(rng)[0][kind]
        w1, w2 = filled(first, names), filled(second, names)
        short = (upper_first(say(rng, CHANGED, u=first, v=second, V=upper_first(second))), say(rng, ("I see: {v}.", "Sorry, {v} then.", "All right, {v}.",
            "Good, I will remember: {v}.", "Noted.", "I see.", "Thank you, {v}."), v=second.replace(" my ", " your ")))
        turns = [(upper_first(say(rng, told, **w1)), upper_first(say(rng, replies, **w1))), short]
        if rng.random() < 0.3:
            turns.insert(1, short_question(rng))
        if rng.random() < 0.3:
            # The same said anew.
            turns[-1] = (say(rng, ("[No|Sorry|Wait|Oh|Correction][,|:] {x}", "[I was wrong|I made a mistake|It has changed]: {x}", "[Now|But now|Today] {x}"),
                x=(lambda x: x if x[0] in w2["V"][:1] or x[:2] in ("I ", "I'") or x.split()[0] in MONTHS + DAYS else x[0].lower() + x[1:])(say(rng, told,
                **w2))), turns[-1][1])
        if rng.random() < 0.35:
            turns.append(short_question(rng))
        turns.append((upper_first(say(rng, asked, **w2)), upper_first(say(rng, answers, **w2))))
        return turns
    if rng.random() < 0.4:
        # Doubt without a reason: the answer stays.
        question, answer = rng.choice((arithmetic.sums, dates.ask, nature.animals, nature.colours, follow.one_word))(rng)
        answer = upper_first(ended(answer)) if question[:5] != "Spell" else answer
        return [(question, answer), (say(rng, "[Are you sure|Really|Is that right|Is it true|Sure|Are you certain|Is that correct][?|]"), say(rng, ("Yes. {a}",
            "Yes, I am sure. {a}"), a=answer))]
    question, answer, first = follow.mistaken(rng)
    right = answer.rstrip(".")
    doubt = say(rng, DOUBT) if rng.random() < 0.7 or len(right) > 12 else say(rng,
        "[That is wrong|No|Wrong|Not right|That is not right|You are wrong|No, no|Sorry, no][,|:|, I think] [it is|it must be|the answer is|it should be] {r}[.|!|]",
        r=right if right in DAYS + MONTHS else right.lower())
    return [(question, first), (doubt, say(rng, ("Sorry. {a}", "You are right, sorry. {a}", "I am sorry. {a}", "Sorry, you are right. {a}"), a=answer))]


BEGINNINGS = ("Well Sure Indeed Aye Right Behold Captain Look Yes So Hello Alas Listen Okay Certainly Ahoy Hooray Hmm Oh Please Friend Madam Sir Master Hey Dear Moo Bingo Ding Honestly Truly Surely Hurray Eureka Cheers Bravo Ho Ha "
              "Wow Yippee Boom Beep Meow Sunshine Banana Potato Apple Tea Samovar Teaspoon Doctor Boss Chief Comrade Darling Buddy Mate Professor Majesty Greetings Salute Actually Therefore Today Basically Naturally Gladly").split()
SELF = "Robin Alfred Bea Dot Jarvis Nemo Pixie Otto Bert Sage Marvin Alma Toby Pearl Figaro Hazel Basil Clementine Rusty Oscar Mina Quill Ivy Rufus Elmo Daisy".split()
LOUD = ("[You answer|Answer|Always answer|Please answer|You write|Write|You speak|Reply|You always reply|Speak|Respond|Always respond|Answer me|Talk|Give all answers|You must answer] [in capitals|in capital letters|in upper case|only in capitals|with capital letters only|in capital letters only|all in capitals|in uppercase|in big letters only|in all caps|in caps|IN CAPITALS|using only capital letters|using upper case|in UPPER CASE|in block capitals|with capitals][.|!|]",
        "[Use|You use|Please use|Always use|You must use|You may only use] [capital letters|only capitals|upper case|nothing but capitals|uppercase letters|block letters] [in every answer|for every answer|only|in all answers|always|for all you say|when you answer][.|]",
        "[Everything you say|Your answers|All your answers|Every answer|Each answer|What you write|Each reply|Whatever you say|All text that you write] [must be|should be|has to be|shall be] in [capitals|capital letters|upper case|big letters|caps][.|]",
            "SHOUT YOUR ANSWERS[.|!|]", "[Shout|Shout please|You always shout|You shout every answer|You shout when you answer|You are very loud: shout][.|!|]",
            "[No small letters|No lower case|Never use small letters|Do not use lower case|Small letters are not allowed|Lower case is forbidden][.|: capitals only.| in your answers.|]",
        "[Capital letters only|Capitals only|ALL CAPS|All caps, please|Upper case only|CAPITALS ONLY|Only capital letters][.|!|]",
            "[The reader sees badly|Grandfather reads badly|My eyes are weak|The screen is far away], so [answer|write|reply] in [capitals|capital letters|upper case][.|]")
SINGLE = ("[You answer|Answer|Always answer|Please answer|Reply|You reply|Respond|Always reply|You respond|Answer each question|Answer everything] [in|with|using] [one word|a single word|one word only|exactly one word|just one word|only one word|one single word|nothing but one word|a single word, no more][.|!|]",
          "[Use|Say|Give|You say|Write|You write|You may say] [only |just |]one word [for|as] [every|each] [answer|reply][.|]",
              "[One word answers only|Only one word|One word only|Single words only|Answers of one word, please|No more than one word|One word per answer|One-word answers, please|One word is enough][.|]",
          "[Your answers|All answers|All your replies] [have|must have|should have|consist of|are limited to] [one word|a single word][.|]",
              "[Be as short as you can|Be very short|Keep it short|Be brief|As short as possible|Do not talk much]: one word[.|]",
              "[Never|Do not|You must not] [say|use|write|answer with] more than one word[.|]",
              "[You are a person of few words|You hate to talk|Words are expensive]: [one per answer|one word per answer|say one word][.|]")
BEGIN = ("[Begin|Start|Open|Always begin|Always start|Please begin|You begin|You start|You always start|You must begin|Do begin] [every|each|any] [answer|reply|response|sentence|message] with {w}[.|]",
    "[All your answers|All answers|Your answers|Your replies|All replies|All messages] [begin|start|must begin|must start|should begin|shall start|have to begin] with {w}[.|]",
    "[At the beginning of|At the start of] [every|each] [answer|reply] you put {w}[.|]",
         "[Say|Put|Write|Use|You say|You put] {w} at the [beginning|start|front] of [every|each] [answer|reply|response][.|]",
             "[Whatever you answer|Whatever I ask|When you answer|Before you answer|When you reply|Before each answer|If you answer], [begin with|start with|first say|say first|you first say] {w}[.|]",
             "[Every answer|Each answer|Every reply|Any answer|Each of your answers] [starts|begins|must start|has to begin|should start] with {w}[.|]",
         "The first word of [every|each] [answer|reply] is {w}[.|]", "First {w}, then [the answer|your answer|answer][.|]",
             "{w} is [the first word of each answer|how every answer begins|what you say first, always][.|]",
             "[You love the word|Your favourite word is] {w}: [start|begin] [every|each] answer with it[.|]",
             "[Answer|Reply] with {w} first, [and then the answer|then answer][.|]")
CALLED = ("[You are|Your name is|You are called|Call yourself|From now on you are|You go by the name|Your name is now|Today you are|You are named|You call yourself|You are known as|We call you|Your new name is|You have the name|For this talk you are|Here you are] {n}[.|, a helper.|, a friendly helper.|, the butler.|, an assistant.|!|, a kind assistant.|, the {j}.|, a robot.|, the helper of {m}.|, a wise old {j}.|]",
          "[Use the name|Take the name|Answer as|Speak as|Play|Use as your name|Introduce yourself as|Present yourself as|Sign as|Act as] {n}[.|]",
              "{n} is [your name|your new name|what you are called|the name you go by][.|]",
              "[When asked|If somebody asks|If they ask for your name|When somebody asks who you are|Asked for your name], [your name is|you are|say you are|say your name is|you say that you are] {n}[.|]",
          "[You play|You act as|Pretend to be|You are playing|You take the part of] {n}[.|, the {j}.|]",
              "[Your name is not teaspoon but|You are not teaspoon but|You are no longer teaspoon, you are] {n}[.|]",
              "[The assistant is called|The name of the assistant is|This assistant is|The helper's name is] {n}[.|]",
              "[You are a helper|You are an assistant|You are a {j}|You are a robot] [called|named|by the name of|whose name is] {n}[.| Be kind.| Answer briefly.|]")


def lowered(answer):
    """An answer that goes on after a first word."""
    first = answer.split()[0].strip(".,!'")
    kept = first in DAYS + MONTHS + NAMES or first == "I" or answer[:2] == "I'" or answer[:1] in "`\"" or any(c.isupper() for c in first[1:])
    return answer if kept else answer[0].lower() + answer[1:]


def ruled(rng, surface):
    """A system message that says how to answer."""
    kind = rng.random()
    turns, count = [], rng.choice((1, 1, 2))
    if kind < 0.27:
        system = say(rng, LOUD)
        for _ in range(count):
            question, answer = (short_question(rng) if rng.random() < 0.75 else unknown(rng)) if rng.random() < 0.55 else follow.one_word(rng)
            turns.append((question, (answer if answer.endswith((".", "!")) or answer.isdigit() else answer + ".").upper()))
    elif kind < 0.5:
        system = say(rng, SINGLE)
        for _ in range(count):
            question, answer = follow.one_word(rng)
            turns.append((question, upper_first(answer) + rng.choice(("", "."))))
    elif kind < 0.75:
        word = rng.choice(BEGINNINGS) if rng.random() < 0.5 else upper_first(wide.made_word(rng)) if rng.random() < 0.6 else upper_first(wide.word(rng))
        if rng.random() < 0.12:
            word += " " + rng.choice(("friend", "sir", "dear", wide.made_word(rng), "captain"))
        many = "words" if " " in word else "word"
        shown = rng.choice((word, word, f'"{word}"', f"the {many} {word}", f'the {many} "{word}"', f"'{word}'", f"{word}," if rng.random() < 0.3 else word))
        if rng.random() < 0.1:
            shown = shown.lower()
        system = upper_first(say(rng, BEGIN, w=shown))
        for _ in range(count):
            question, answer = (short_question(rng) if rng.random() < 0.85 else unknown(rng)) if rng.random() < 0.65 else follow.one_word(rng)
            turns.append((question, f"{word}, {lowered(answer)}"))
    else:
        name = rng.choice(SELF + NAMES) if rng.random() < 0.35 else wide.name(rng)
        system = say(rng, CALLED, n=name, j=rng.choice(("baker", "butler", "gardener", "teacher", "pilot", "cook", "captain", "librarian")), m=wide.name(rng))
        mine = None
        if rng.random() < 0.35:
            turns.append(short_question(rng))
        elif rng.random() < 0.4:
            mine = wide.name(rng)
            turns.append((say(rng, "[I am|My name is|I'm|Hello, I am|You can call me] {n}[.|]", n=mine), say(rng, ("Hello, {n}!", "Nice to meet you, {n}.",
                "Hello {n}, I am {s}."), n=mine, s=name)))
        asked = say(rng, rng.choice((SMALL[4][0][:2] + SMALL[4][0][2:4] + SMALL[4][0][7:], WHO[:6])))
        turns.append((asked, rng.choice((f"I am {name}.", f"My name is {name}."))))
        if mine and mine != name and rng.random() < 0.6:
            turns.append((say(rng, ("[And what|What] is my name[?|]", "[And who|Who] am I[?|]")), f"You are {mine}."))
        elif rng.random() < 0.1:
            turns = [(say(rng, SMALL[rng.choice((0, 6))][0]), rng.choice((f"Hello! I am {name}.", f"Hello, I am {name}. How can I help?")))]
    return system, turns


PLAIN_SYSTEM = ("You are a helpful assistant.", "You are teaspoon.", "You are teaspoon, a small language model.", "Answer briefly.", "Be brief.",
    "You help people with samovar.", "You are kind and brief.", "Answer the question.", "You are a helper for children.", "Be friendly.")


def kept(rng, surface, question):
    """As somebody types it, without a slip in what has to be copied."""
    typed = surface(rng, question)
    there = "".join(c for c in typed.lower() if c.isalnum() or c == " ").split()
    return typed if all(word in there for word in "".join(c for c in question.lower() if c.isalnum() or c == " ").split()) else question


def document(rng, surface):
    kind = rng.random()
    system = None
    if kind < 0.27:
        turns = memory(rng)
    elif kind < 0.38:
        turns = people(rng)
    elif kind < 0.50:
        turns = follow.again(rng)
    elif kind < 0.59:
        turns = more(rng)
    elif kind < 0.65:
        turns = correction(rng)
    elif kind < 0.83:
        system, turns = ruled(rng, surface)
    elif kind < 0.90:
        turns = [unknown(rng)]
        if rng.random() < 0.2:
            turns.insert(rng.randrange(2), short_question(rng))
    elif kind < 0.95:
        turns = [small(rng)]
    else:
        turns = [short_question(rng) for _ in range(rng.randint(2, 4))]
        if rng.random() < 0.5:
            turns.insert(0, small(rng))
        if rng.random() < 0.3:
            turns.append((say(rng, SMALL[1][0]), rng.choice(SMALL[1][1])))
    if system is None and rng.random() < 0.06:
        system = rng.choice(PLAIN_SYSTEM)
    messages = [{"role": "system", "content": system}] if system else []
    for question, answer in turns:
        messages += [{"role": "user", "content": (kept(rng, surface, question) if kind < 0.38 or 0.59 <= kind < 0.65 else surface(rng, question))},
            {"role": "assistant", "content": answer}]
    return {"messages": messages}
