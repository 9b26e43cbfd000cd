"""The changes of a C file that leave it valid C: tokens, functions, statements.

This is not a parser: it knows this tree's plain style and no more.  Text that it wrongly takes for a
statement does not compile, and is not counted.  A change keeps the number of lines, so that
asserts keep theirs and two objects can be compared.
"""
import re
from collections import Counter, namedtuple

Token = namedtuple("Token", "kind text start end")
Function = namedtuple("Function", "name type begin end")  # tokens from { to }
Mutant = namedtuple("Mutant", "file function line what start end new")

TOKEN = re.compile(r"""
      (?P<space>\s+)
    | (?P<comment>/\*(?s:.*?)\*/|//[^\n]*)
    | (?P<directive>\#(?:\\\n|/\*(?s:.*?)\*/|[^\n])*)
    | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    | (?P<number>\.?\d(?:[eEpP][-+]|[\w.])*)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<sign>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)
    """, re.X)

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
         "+": "-", "-": "+", "+=": "-=", "-=": "+=", "++": "--", "--": "++"}
TYPES = {"static", "const", "struct", "enum", "unsigned", "int", "char", "bool", "size_t", "void"}


def tokenize(text):
    found = (Token(m.lastgroup, m.group(), m.start(), m.end()) for m in TOKEN.finditer(text))
    return [t for t in found if t.kind in ("string", "number", "name", "sign")]


class Source:
    """A file: its text, its tokens, which bracket closes which, and its functions."""

    def __init__(self, file, text):
        self.file, self.text, self.tokens = file, text, tokenize(text)
        self.mate, stack = {}, []
        for i, t in enumerate(self.tokens):
            if t.text in "([{" and t.kind == "sign":
                stack.append(i)
            elif t.text in ")]}" and t.kind == "sign":
                self.mate[stack.pop()] = i
        self.functions = list(self._functions())

    def _functions(self):
        i = since = 0
        while i < len(self.tokens):
            word = self.tokens[i].text
            if word == "{" and i and self.tokens[i - 1].text == ")":
                name = next(j for j, end in self.mate.items() if end == i - 1) - 1
                yield Function(self.tokens[name].text,
                               [t.text for t in self.tokens[since:name]], i, self.mate[i])
            if word in "([{":
                i = self.mate[i]
            if self.tokens[i].text in ";}":
                since = i + 1
            i += 1

    def span(self, begin, end):
        """The text of the tokens from `begin` up to, and without, `end`."""
        return self.tokens[begin].start, self.tokens[end - 1].end

    def checks(self):
        """Functions that check the state, with their helpers: the checks themselves are not mutated."""
        names = {f.name for f in self.functions if re.search(r"(^|_)check(_|$)", f.name)}
        while True:
            inside = [f for f in self.functions if f.name in names]
            more = {f.name for f in self.functions if "static" in f.type and f.name not in names and
                    all(any(g.begin < i < g.end for g in inside + [f]) or self.tokens[i + 1].text != "("
                        or self.tokens[i] == self.tokens[self._named_at(f)]
                        for i, t in enumerate(self.tokens) if t.text == f.name)}
            if not more:
                return names
            names |= more

    def _named_at(self, function):
        return next(j for j, end in self.mate.items() if end == function.begin - 1) - 1


def replace(text, start, end, new):
    """Keeps the number of lines, if the new text has no more lines."""
    return text[:start] + new + "\n" * (text[start:end].count("\n") - new.count("\n")) + text[end:]


class Mutator:
    """Walks the statements of each function and notes what can be changed."""

    def __init__(self, source):
        self.source, self.tokens, self.found = source, source.tokens, []
        self.seen = Counter()
        checks = source.checks()
        for self.function in source.functions:
            if self.function.name not in checks:
                self.statement(self.function.begin)
        self.found.sort(key=lambda m: (m.start, m.end))

    def add(self, begin, end, new, what, at=None):
        """Notes another text for these tokens, named by the line of the first, or of the token `at`."""
        start, stop = self.source.span(begin, end)
        first = start if at is None else self.tokens[at].start
        text = self.source.text
        line = " ".join((text[:first].rpartition("\n")[2] + text[first:].partition("\n")[0]).split())
        key = (self.function.name, line, what)
        self.seen[key] += 1
        if self.seen[key] > 1:
            what += f", number {self.seen[key]}"
        self.found.append(Mutant(self.source.file, self.function.name, line, what, start, stop, new))

    def words(self, begin, end):
        start, stop = self.source.span(begin, end)
        return self.source.text[start:stop]

    def statement(self, i):
        """Notes what can be changed in the statement at token i; returns where the next begins."""
        word, mate = self.tokens[i].text, self.source.mate
        if word == "{":
            at = i + 1
            while at < mate[i]:
                at = self.statement(at)
            return mate[i] + 1
        if word in ("if", "while", "for", "switch"):
            close = mate[i + 1]
            self.condition(word, i + 2, close)
            end = self.statement(close + 1)
            if word == "if":
                self.add(close + 1, end, ";", "what follows the condition dropped", i)
                if self.tokens[end].text == "else":
                    end = self.statement(end + 1)
            return end
        if word == "else":
            return self.statement(i + 1)
        end = i
        while self.tokens[end].text not in (":", ";") if word in ("case", "default") else \
                self.tokens[end].text != ";":
            end = mate.get(end, end) + 1
        if word not in ("assert", "case", "default"):
            self.plain(i, end)
        return end + 1

    def plain(self, i, end):
        """A declaration, an expression or a jump, without its semicolon."""
        first = self.tokens[i]
        if end == i or first.text in ("break", "continue"):
            return
        if first.text == "return":
            if end > i + 1:
                self.returns(i + 1, end)
                self.expression(i + 1, end)
            return
        second = self.tokens[i + 1]
        declares = first.text in TYPES or first.kind == "name" and (
            second.kind == "name" or second.text == "*")
        if not declares:
            self.add(i, end + 1, ";", "statement deleted")
        self.expression(i, end, declares)

    def condition(self, word, begin, end):
        """The text in the brackets of an if, a while, a for."""
        parts = [begin]
        if word == "for":
            parts += [i + 1 for i in range(begin, end) if self.tokens[i].text == ";"]
            self.expression(begin, parts[1] - 1, True)
            self.expression(parts[2], end)
            begin, end = parts[1], parts[2] - 1
        if begin == end:
            return
        text = self.words(begin, end)
        if word != "switch":
            self.add(begin, end, f"!({text})", "condition negated")
            self.add(begin, end, "0", "condition always false")
        if word == "if":
            self.add(begin, end, "1", "condition always true")
        self.expression(begin, end)

    def returns(self, begin, end):
        text, kind = self.words(begin, end), self.function.type
        if "bool" in kind and "*" not in kind:
            self.add(begin, end, f"!({text})", "returns the opposite")
        elif text not in ("0", "NULL"):
            self.add(begin, end, "0", "returns 0")
        if "bool" not in kind and "*" not in kind and not text.startswith("-E"):
            self.add(begin, end, f"({text}) + 1", "returns one more")

    def expression(self, begin, end, declares=False):
        """Operators and numbers; not the sizes of arrays."""
        for i in range(begin, end):
            token, before = self.tokens[i], self.tokens[i - 1]
            if token.kind == "number":
                if not (declares and before.text == "[" and "=" not in
                        [t.text for t in self.tokens[begin:i]]):
                    self.number(i, token.text)
            elif token.kind == "sign" and token.text in SWAPS:
                binary = before.kind == "number" or before.text in (")", "]") or \
                    before.kind == "name" and before.text != "return"
                if token.text in "+-" and not binary:
                    continue
                new = SWAPS[token.text]
                self.add(i, i + 1, new, f"`{token.text}` becomes `{new}`")

    def number(self, i, text):
        match = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", text)
        if not match:
            return
        value = int(match[1], 0)
        for other in (value + 1, value - 1) if value and value < 1 << 32 else (value + 1,):
            new = (hex(other) if match[1][:2] in ("0x", "0X") else str(other)) + match[2]
            self.add(i, i + 1, new, f"`{text}` becomes `{new}`")


def mutants(file, text):
    return Mutator(Source(file, text)).found


class Moved(Exception):
    """A seeded bug does not fit the code any more."""


Bug = namedtuple("Bug", "name why edits")
Edit = namedtuple("Edit", "file function old new")


def read_bugs(text):
    """The list of seeded bugs; its head says how it is written."""
    bugs = []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "bug":
            bugs.append(Bug(rest.strip(), [], []))
        elif word == "in":
            bugs[-1].edits.append(Edit(*rest.split(), [], []))
        elif word == "-":
            bugs[-1].edits[-1].old.append(rest)
        elif word == "+":
            bugs[-1].edits[-1].new.append(rest)
        elif line.strip() and not line.startswith("#"):
            bugs[-1].why.append(line.strip())
    return bugs


def apply_bug(bug, read):
    """The files that the bug changes, as {file: text}; `read` gives a file's text."""
    texts = {}
    for edit in bug.edits:
        source = Source(edit.file, texts.get(edit.file) or read(edit.file))
        old = [t.text for t in tokenize("\n".join(edit.old))]
        places = [i for f in source.functions if f.name == edit.function
                  for i in range(f.begin, f.end)
                  if [t.text for t in source.tokens[i:i + len(old)]] == old]
        if len(places) != 1:
            raise Moved(f"{bug.name}: {edit.file} {edit.function}() has {len(places)} of: "
                        + " ".join(" ".join(edit.old).split()))
        start, end = source.span(places[0], places[0] + len(old))
        texts[edit.file] = replace(source.text, start, end, "\n".join(edit.new))
    return texts
