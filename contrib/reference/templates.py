#!/usr/bin/env python3
"""Makes tests/golden/templates.json: what Jinja2 makes of many small templates.

    python3 -m venv V && V/bin/pip install jinja2==3.1.6
    V/bin/python contrib/reference/templates.py >tests/golden/templates.json
    V/bin/python contrib/reference/templates.py --case E2E.json NAME >tests/golden/template-NAME.txt

The environment is the one in which transformers renders chat templates.  A case is
[template, values, what comes of it, or null: it is refused].  The second form renders
one case of a file of huggingface.js, where JavaScript prints what Python does not.
"""
import datetime
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2025, 12, 17, 0, 0, 0)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment(now=NOW):
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: now.strftime(f)
    return env


VALUES = {
    "n": 5, "z": 0, "neg": -7, "f": 2.5, "s": "Hello World", "e": "", "sp": "  a b  c \n", "t": True, "no": False, "nil": None,
    "l": [3, 1, 2], "el": [], "d": {"b": 1, "a": 2, "c": None}, "ed": {}, "u8": "Größe 日本 é", "q": "it's \"x\" \\ \n\t",
    "csv": "a,b,,c", "words": ["Banana", "apple", "cherry", "Apple"], "m": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <b>", "n": 2},
        {"role": "assistant", "content": None, "n": 10}, {"role": "user", "content": "Bye", "n": 1}],
    "tool": {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}},
    "mixed": [1, "a", None, True, 2.0, [1], {"k": 1}], "keyed": {"items": 1, "get": 2, "x": 3}, "lines": "one\ntwo\r\nthree\n\nfive",
}


def expressions():
    yield from """
        1 + 2 * 3|(1 + 2) * 3|7 // 2|-7 // 2|7 // -2|7 % 3|-7 % 3|7 % -3|2 ** 10|2 ** -1|2 ** 3 ** 2|7 / 2|6 / 3|1.5 + 1
        -n|+n|- - n|-n ** 2|1 - 2 - 3|10 % 4 * 2|1 / 0|1 // 0|1 % 0|1.0 // 0.3|-1.5 % 1|2.0 ** 0.5|1e3|1e100|1.0|0.1 + 0.2|1e16|1e15|123456789.123|1e-5|0.0001
        1_000|0x1F|0b101|0o17|00|1.5e-3|2 ** 62|5 // 2.0|t + 1|True + True|no * 3
        'a' + 'b'|'a' ~ 1 ~ none ~ true ~ 1.0|'a' 'b' "c"|'ab' * 3|'a' * (1, 2)|(1, 2) * 'a'|'a' * 'b'|'a' * 1.5|3 * 'ab'|'ab' * 0|'ab' * -1|[1] * 3|[1] + [2]|(1,) + (2,)|[1] + (2,)|'a' + 1|1 + 'a'|none + 1
        1 ~ 2 + 3|'x' ~ 2 * 3|[1, 2] ~ 'x'|1 + 2 ~ 3
        1 < 2|2 < 1|1 <= 1|1 == 1.0|1 == true|'a' < 'b'|'a' < 1|[1, 2] < [1, 3]|(1, 2) < (1, 2, 3)|1 < 2 < 3|1 < 3 < 2|3 > 2 >= 2 != 1|1 == 1 == 1|none == none|none < 1
        'b' in 'abc'|'x' in 'abc'|1 in [1, 2]|3 not in [1, 2]|'a' in d|'x' in d|1 in d|not 1 in [1]|'' in 'a'|1 in 'a'|none in [none]|(1, 2) in [(1, 2)]|'a' in none
        not true|not not 1|true and false|1 and 2|0 and 2|0 or 3|'' or 'x'|none or false|1 or 2 and 0|not 1 == 2|(not 1) == 2|1 if t else 2|1 if no else 2|1 if no|'a' if n > 3 else 'b' if n > 1 else 'c'|(1 if t else 2) + 1
        1 if t else 2 + 5|'x' if e or not l else 'y'|[1 if t else 2, 3]|{'a': 1 if no else 2}
        [1, 'a', none, true, 1.5]|(1, 2)|(1,)|()|[]|{}|{'a': 1, 'b': [1, {'c': 2}]}|{1: 2, none: 3}|{'a': 1, 'a': 2}|{1: 1, true: 2}|[[1], (2,)]|{[1]: 2}|{(1, 2): 3}
        'it\\'s'|"it's"|'a\\nb'|'\\x41\\u00e9\\U0001f600'|'\\q'|'\\\\'|'tab\\t'|'\\101'|['it\\'s', 'x"y', 'a\\'b"c', 'a\\nb', 'é', '\\x07', '\\u200b', '\\\\']|['\\u00ad', '😀', '\\x7f']
        s[0]|s[-1]|s[100]|s[1:3]|s[:-1]|s[::-1]|s[::2]|s[5:2]|s[-3:]|s[3:1:-1]|s[:]|u8[1:4]|u8[-2]|l[0]|l[-1]|l[5]|l[1:]|l[::-1]|l[-2:]|l[0:2]|l[::0]|(1, 2, 3)[1:]|d['a']|d['x']|d.a|d.x|d.x.y|d['x']['y']|nil.x|nil['x']|n.x|n[0]
        m[0].content|m[0]['role']|m[-1].role|m[1:][0].role|m.0.role|l.1|tool.function.name|tool['function']['parameters'].properties.x.type|keyed.items|keyed['items']|keyed.x|mixed
        undefinedx|undefinedx.y|undefinedx['y']|undefinedx + 1|undefinedx ~ 'a'|undefinedx == undefinedy|undefinedx == none|not undefinedx|undefinedx or 'd'|-undefinedx|undefinedx < 1|undefinedx in [1]|1 in undefinedx|undefinedx()|undefinedx[0]|[undefinedx]|n()|s.nope()|s.nope
        u8|q|mixed|d|tool|m|nil|t|f|e|el|ed|range(3)|s.upper|namespace
        '%s-%d' % ('a', 5)|'%5.2f|' % 3.14159|'%%'|'%s' % 'x'|'%s %s' % ('a',)|'%x %X %o' % (255, 255, 8)|'%-5s|%5s|' % ('a', 'b')|'%05d' % 42|'%r' % 'a'|'%s' % [1, 2]|'%(a)s' % {'a': 1}|'%d' % 'a'|'%+d' % 3|'%e' % 12345.678|'%g' % 0.0001|'%.3s|' % 'abcdef'|'%s' % none|'100%'|'100%' % ()
        9223372036854775807|s.x is defined|'a' 'b' in 'xabx'|[1, 2, 3][1]|'abc'[1]|{'a': 1}.a|{'a': 1}['a']|(1, 2)[0]|"a"|upper
        a.b.c is defined|n is number and n > 2|x if x is defined else 'none'|l|length > 2|(l|length) + 1|l|length + 1|-5|abs|-n|abs|not l|length == 3|1, 2|n,
        """.replace("\n", "|\n").replace("        ", "").split("\n")


def split_expressions():
    """`|` stands between expressions, but for filters: those are written apart."""
    for line in expressions():
        part = ""
        for piece in line.split("|"):
            yield piece


FILTERS = """
s|upper;s|lower;s|title;s|capitalize;u8|upper;u8|lower;u8|title;'straße'|upper;'ǆ'|title;'o\\'neil foo-bar (baz) [q] x_y'|title;'o\\'neil foo-bar'.title();'hELLO wORLD'|capitalize;'éa'|capitalize;1|upper;none|upper;[1]|upper;undefinedx|upper
sp|trim;'xxaxx'|trim('x');'xyaxy'|trim('yx');sp.strip();sp.lstrip();sp.rstrip();'xxaxx'.strip('x');'ab'.strip('');1|trim;none|trim;undefinedx|trim;'\u3000a\u00a0'|trim
s|replace('o', '0');s|replace('o', '0', 1);s|replace('', '-');'aaa'|replace('aa', 'b');s.replace('l', 'L');s.replace('l', 'L', 2);s|replace(1, 2);11|replace(1, 2);s|replace('o');e|replace('', 'x');u8|replace('', '.')
l|length;s|length;u8|length;d|length;el|count;none|length;5|length;undefinedx|length;range(5)|length;(l|map('string'))|length;d.items()|length
l|first;l|last;el|first;el|last;s|first;s|last;d|first;d|last;u8|last;(l|map('string'))|first;(l|map('string'))|last;undefinedx|first;none|first;d.items()|first;d.items()|last;el|first|default('x')
l|join;l|join(', ');words|join('-');m|join(',', attribute='role');m|map(attribute='role')|join(' ');s|join('.');d|join(',');[1, none, true]|join(',');el|join('x');l|join(1);none|join;undefinedx|join;['a', ['b']]|join(',')
l|sort;l|sort(reverse=true);words|sort;words|sort(case_sensitive=true);m|sort(attribute='role')|map(attribute='content')|list;['b', 1]|sort;[true, 0, 2.5]|sort;s|sort;d|sort;[[2], [1]]|sort;m|selectattr('n')|sort(attribute='n')|map(attribute='n')|list;m|sort(attribute='role,content')|length;m|selectattr('n')|sort(attribute='role,n')|map(attribute='n')|list;el|sort;[none, 1]|sort
l|reverse|list;s|reverse;u8|reverse;l|reverse;d|reverse|list;5|reverse;(1, 2)|reverse|list
l|unique|list;words|unique|list;words|unique(case_sensitive=true)|list;[1, 1.0, true, 2]|unique|list;m|unique(attribute='role')|map(attribute='role')|list;[[1], [1]]|unique|list;l|unique
l|sum;m|selectattr('n')|sum(attribute='n');el|sum;[1.5, 2]|sum;l|sum(start=10);words|sum;[[1], [2]]|sum(start=[])
l|min;l|max;words|min;words|max;words|min(case_sensitive=true);el|min;m|selectattr('n')|max(attribute='n');['a', 1]|max;s|max;m|selectattr('n')|list|min(attribute='n')
l|list;s|list;d|list;u8|list;none|list;5|list;undefinedx|list;range(3)|list;d.items()|list;d.keys()|list;d.values()|list;d|items|list;undefinedx|items|list;l|items|list
l|map('string')|list;l|map('upper')|list;words|map('upper')|join(',');words|map('replace', 'a', 'b')|list;m|map(attribute='n')|list;m|map(attribute='n', default=0)|list;m|map(attribute='content.x')|list;l|map('nosuch')|list;l|map|list;l|map('string');words|map('length')|list;m|map('length')|list;[[1, 2], [3]]|map('first')|list;[[1, 2]]|map(attribute=0)|list;[{'a': {'b': 1}}]|map(attribute='a.b')|list;[['x']]|map(attribute='0')|list
l|select|list;[0, 1, '', 'a']|select|list;l|select('odd')|list;l|reject('odd')|list;l|select('gt', 1)|list;l|select('divisibleby', 2)|list;mixed|select('string')|list;mixed|reject('none')|list;mixed|select('number')|list;l|select('nosuch')|list;l|select;l|select('in', [1, 2])|list
m|selectattr('role', 'equalto', 'user')|map(attribute='content')|list;m|selectattr('role', '==', 'user')|list|length;m|rejectattr('role', 'eq', 'user')|map(attribute='role')|list;m|selectattr('n')|list|length;m|selectattr('n', 'defined')|list|length;m|selectattr('n', 'undefined')|list|length;m|rejectattr('n')|list|length;m|selectattr('role', 'in', ['user', 'system'])|list|length;m|selectattr|list;m|selectattr('content', 'none')|list|length;m|selectattr('content.x', 'defined')|list
m|groupby('role')|length;m|groupby('role')|map('first')|list;words|groupby('0')|list;m|selectattr('n')|groupby('n')|map('first')|list;m|groupby('n', default=0)|map('first')|list
d|dictsort;d|dictsort(reverse=true);d|dictsort(by='value');{'a': 2, 'b': 1}|dictsort(by='value');{'B': 1, 'a': 2}|dictsort;{'B': 1, 'a': 2}|dictsort(case_sensitive=true);l|dictsort;d|dictsort(by='x')
l|batch(2)|list;l|batch(2, 'x')|list;l|slice(2)|list;l|slice(2, 'x')|list;range(7)|slice(3)|list;''|slice(2, 'x')|list;undefinedx|slice(2)|list;range(7)|batch(3)|list;l|slice(0)|list
d|tojson;tool|tojson;tool|tojson(indent=2);m|tojson(indent=4);u8|tojson;u8|tojson(ensure_ascii=true);q|tojson;s|tojson;nil|tojson;t|tojson;f|tojson;1e100|tojson;l|tojson;el|tojson;ed|tojson;ed|tojson(indent=2);el|tojson(indent=2);[[], {}]|tojson(indent=1);d|tojson(sort_keys=true);d|tojson(separators=(',', ':'));d|tojson(separators=[';', '=']);tool|tojson(indent='-');undefinedx|tojson;[undefinedx]|tojson;range(3)|tojson;d.items()|tojson;(1, 2)|tojson;{1: 2, none: 3, true: 4}|tojson;'</script>&\\''|tojson;'\\x00\\x1f\\x7f\\u2028'|tojson;'😀'|tojson(true);l|tojson(false, 2);s|tojson|tojson;{(1, 2): 1}|tojson;l|map('string')|tojson;1.0|tojson;-0.0|tojson;l|tojson(indent=0)
undefinedx|default('d');undefinedx|d('d');nil|default('d');nil|default('d', true);e|default('d', true);e|d('d');z|default(1, boolean=true);undefinedx|default;d.x|default('y');d.x.y|default('z');undefinedx.y|default('z');none|default
'12'|int;'12.7'|int;'x'|int;'x'|int(5);' 12 '|int;'1_000'|int;12.9|int;-12.9|int;true|int;none|int;[1]|int;'0x1f'|int(0, 16);'1f'|int(base=16);'ff'|int(default=1, base=10);'1e3'|int;''|int;undefinedx|int;'-5'|int;'+5'|int
'1.5'|float;'x'|float;'x'|float(2.5);1|float;none|float;' 1e3 '|float;'inf'|float;'nan'|float;true|float;undefinedx|float;'1_0.5'|float;'0x1'|float
5|string;1.0|string;none|string;[1, 'a']|string;undefinedx|string;d|string;true|string
-5|abs;-1.5|abs;'a'|abs;true|abs;none|abs
2.5|round;3.5|round;2.567|round(2);2.567|round(2, 'ceil');2.567|round(2, 'floor');2.4|round(0, 'ceil');5|round;1.005|round(2);-2.5|round;1234.5|round(-2);'a'|round;2.675|round(2);0.5|round;1.5|round(method='floor');1.5|round(1, 'x');1e300|round(2)
lines|indent;lines|indent(2);lines|indent(2, true);lines|indent(2, first=true, blank=true);lines|indent('> ');''|indent;''|indent(2, true);'a'|indent;1|indent;'a\\n'|indent;'a\\n\\nb'|indent(width=3, blank=true);'a\\rb'|indent
'a <b> & "c" \\''|e;'a<'|escape;5|e;s|safe;'a'|center(9);'ab'|center(5);'ab'|center(1);'%s=%d'|format('a', 3);'%s'|format(1, 2);'one two  three'|wordcount;''|wordcount
d|attr('a');s|attr('upper');d|attr('x')|default('n');s|nosuch;s|upper|lower|title;(s|upper)[0];s|upper[0];-1|string|length;n|string ~ 'x';l|join(',')|upper;[s|upper, e];s|trim|length + 1;'a' ~ s|upper;s | upper() | lower ();s|upper(1);s|default();l|first(1);s|trim(chars='H')
"""

TESTS = """
n is defined;undefinedx is defined;undefinedx is not defined;undefinedx is undefined;d.x is defined;d.a is defined;d.x.y is defined;undefinedx.y is defined;nil is none;n is none;nil is not none;d.c is none
s is string;n is string;u8 is string;n is number;f is number;t is number;s is number;n is integer;t is integer;f is integer;f is float;n is float;t is boolean;z is boolean;t is true;no is false;n is true;1 is true;z is false
d is mapping;l is mapping;m[0] is mapping;l is sequence;s is sequence;d is sequence;n is sequence;range(2) is sequence;(l|map('string')) is sequence;d.items() is sequence;(1,) is sequence;undefinedx is sequence;l is iterable;s is iterable;n is iterable;none is iterable;undefinedx is iterable;(l|map('string')) is iterable;d.items() is iterable
n is odd;n is even;4 is even;-3 is odd;2.0 is even;'a' is odd;n is divisibleby 5;n is divisibleby(3);6 is divisibleby 3;6 is divisibleby 0
n is eq 5;n is equalto(5);n is ne 4;n is gt 4;n is ge 5;n is lt 6;n is le 4;n is lessthan 6;n is greaterthan 6;s is eq s;'a' is lt 'b';'a' is gt 1
1 is in [1, 2];'a' is in 'abc';3 is not in [1];'a' is in d;n is sameas 5;t is sameas true;1 is sameas true;nil is sameas none;l is sameas l;[1] is sameas [1]
namespace is callable;s.upper is callable;s is callable;undefinedx is callable;range is callable;'abc' is lower;'Abc' is lower;'ABC' is upper;'1' is lower;5 is lower;'a1' is lower;s is upper
'upper' is filter;'nosuch' is filter;'odd' is test;'nosuch' is test;s is escaped;s is nosuch;s is defined is defined;not n is odd;n is not odd;n is odd and t;n is odd or x.y;(n is odd) == t;n is divisibleby 5 and t;l[0] is odd;-1 is number;s|length is eq 11;(s|length) is eq 11;n is defined and n is odd and s is string;n is eq n + 1;n is eq(n + 1);n is eq d.x;n is in l[0:2];3 is in l[0:2]
"""

METHODS = """
s.split();s.split(' ');csv.split(',');csv.split(',', 1);csv.split(',', maxsplit=2);csv.rsplit(',', 1);csv.rsplit(',');sp.split();sp.split(' ');sp.split(none, 1);sp.rsplit(none, 1);sp.rsplit();e.split();e.split(',');'aXXbXXc'.split('XX');s.split('');'a\u00a0b'.split();sp.split(None, 0);'aaa'.rsplit('aa');'aaa'.split('aa');s.split('o')[-1];s.split(sep='o')
lines.splitlines();lines.splitlines(true);''.splitlines();'a\\x0bb\\x1cc\\x85d\\u2028e'.splitlines();'a\\n'.splitlines();'\\n'.splitlines();'\\n\\n'.splitlines(keepends=true)
s.startswith('Hello');s.startswith('ello');s.startswith('ello', 1);s.endswith('World');s.endswith('Worl', 0, -1);s.startswith(('x', 'H'));s.endswith(('x',));s.startswith('');s.startswith('', 11);s.startswith('', 12);s.startswith(1);s.startswith(['H']);u8.startswith('ö', 2);e.startswith('');u8.endswith('é')
s.find('o');s.find('o', 5);s.find('x');s.rfind('o');s.rfind('o', 0, 5);s.index('o');s.index('x');s.rindex('o');s.count('o');s.count('');s.count('l', 0, 3);u8.find('日');u8.rfind('é');s.find('');s.find('', 20);s.find('o', -4);s.find('o', 0, -4);s.count('ll');'aaaa'.count('aa');u8.count('');s.rfind('');s.find(1);s.find('o', none)
s.upper();s.lower();s.title();s.capitalize();u8.upper();'ŉ'.upper();'İ'.lower();"they're bill's".title();'ﬁx'.title();'1a b2c'.title();s.upper().lower();s.swapcase();s.casefold()
'123'.isdigit();'12a'.isdigit();''.isdigit();'abc'.isalpha();'ab1'.isalpha();'ab1'.isalnum();'a b'.isalnum();' \\t'.isspace();''.isspace();'abc'.islower();'aBc'.islower();'ABC'.isupper();'AB1'.isupper();'é'.isascii();'a'.isascii();''.isascii();'日'.isalpha()
', '.join(['a', 'b']);''.join(words);'-'.join('abc');','.join([1]);','.join([]);','.join(d);'x'.join(none);','.join(l|map('string'))
s.removeprefix('Hello ');s.removeprefix('x');s.removesuffix('World');s.removesuffix('');'abc'.partition('b');'abc'.partition('x');'abcbd'.rpartition('b');'abc'.rpartition('x');'a'.partition('');s.center(15);s.center(16, '*');'a'.ljust(3) ~ '|';'a'.rjust(3, '.');'a'.rjust(3, 'xy');'ab'.center(5, '-');'abc'.center(6, '-');'{}'.format(1);'5'.zfill(3);s.encode();s.nosuch();s.__class__;s.strip(1)
d.items();d.items()|list;d.keys()|list;d.values()|list;d.get('a');d.get('x');d.get('x', 5);d.get('c', 5);d.get();d.get([1]);d.copy();d.update({'x': 1});d.pop('a');d.setdefault('q', 1);d.clear();d.popitem();d.items;ed.items()|list;d.items()[0];d.keys()[0];keyed.get('items');keyed.items();keyed.x;d.get('a').x;d.get(key='a')
l.append(4);l.pop();l.index(1);l.index(9);l.count(1);l.copy();l.sort();l.reverse();l.extend([1]);l.insert(0, 1);l.remove(1);l.clear();(1, 2, 1).count(1);(1, 2).index(2);l.nosuch();l.nosuch
range(3)|list;range(1, 4)|list;range(5, 0, -2)|list;range(0)|list;range(1, 10, 3)|list;range(3, 1)|list;range(1, 2, 0);range();range(1.5);range(100001);range(100000)|length;range(3)[1];range(3)[-1];range(3)[5];range(10)[2:4]|list;range('a');range(1000000000);range(-3)|list;range(3) == range(3);2 in range(3)
dict(a=1, b=2);dict({'a': 1}, b=2);dict([('a', 1)]);dict();dict(d);dict([1]);dict(d, a=9);dict(**d);dict(a=1, **{'b': 2});namespace(a=1).a;namespace(a=1).b;namespace({'a': 2}).a;namespace(**d).b;strftime_now('%Y-%m-%d');strftime_now('%d %B %Y');strftime_now('%A, %j');strftime_now('');raise_exception('no');range(*[1, 3])|list;range(*l[:1])|list;l|join(*[', ']);s|replace(*['o', '0'])
lipsum();cycler(1, 2);joiner(',');nosuch();self;super();loop;caller();varargs;kwargs;true.x;(1).x;1.5.x;'a'.b.c;[].x.y;{}.x.y
"""

STATEMENTS = [
    "{% if n > 3 %}a{% endif %}", "{% if n > 9 %}a{% else %}b{% endif %}", "{% if no %}a{% elif n == 5 %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif no %}b{% elif no %}c{% endif %}", "{% if undefinedx %}a{% else %}b{% endif %}", "{% if e %}a{% else %}b{% endif %}",
    "{% if 1, 0 %}a{% endif %}", "{% if %}a{% endif %}", "{% if n %}a", "{% if n %}a{% endfor %}", "{% endif %}", "{% else %}", "{% elif %}",
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in el %}{{ x }}{% else %}none{% endfor %}", "{% for x in l %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}", "{% for c in s %}{{ c }}.{% endfor %}", "{% for c in u8 %}{{ c }}.{% endfor %}", "{% for x in undefinedx %}{{ x }}{% else %}e{% endfor %}",
    "{% for x in none %}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for a, b in l %}{% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for (a, b) in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}", "{% for a, in [(1,)] %}{{ a }}{% endfor %}", "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ x }}{% endfor %}", "{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}", "{% for x in l if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}",
    "{% for k, v in d.items() if v %}{{ k }}{{ v }}{% endfor %}", "{% for x in (l if t else el) %}{{ x }}{% endfor %}", "{% for x in l|sort if x is odd %}{{ x }}{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in l %}{{ loop.nosuch }}{% endfor %}", "{% for x in l %}{{ loop.nosuch.x }}{% endfor %}",
    "{% for x in l %}{% for y in [1, 2] %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for x in l %}{% set o = loop %}{% for y in [1, 2] %}{{ o.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% break %}", "{% continue %}",
    "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}", "{% for x in l %}{% break %}{% else %}no{% endfor %}", "{% for x in l %}{% continue %}{% else %}no{% endfor %}after",
    "{% for x in l %}{% with y = x %}{% if y == 1 %}{% continue %}{% endif %}{{ y }}{% endwith %}{% endfor %}", "{% for x in l %}{% filter upper %}a{% endfilter %}{% if x == 1 %}{% break %}{% endif %}{% endfor %}z",
    "{% macro m() %}{% break %}{% endmacro %}", "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% for x in l %}{% set y = x %}{% endfor %}{{ y }}", "{% set y = 0 %}{% for x in l %}{% set y = y + x %}{{ y }}{% endfor %}{{ y }}", "{% for x in l %}{{ y }}{% set y = x %}{{ y }}{% endfor %}",
    "{% set x = 9 %}{% for x in l %}{{ x }}{% endfor %}{{ x }}", "{% for n in l %}{{ n }}{% endfor %}{{ n }}", "{% set n = n + 1 %}{{ n }}", "{% if t %}{% set y = 1 %}{% endif %}{{ y }}", "{% if no %}{% set n = 1 %}{% endif %}{{ n }}", "{{ n }}{% set n = 3 %}{{ n }}",
    "{% set ns = namespace(c=0) %}{% for x in l %}{% set ns.c = ns.c + x %}{% endfor %}{{ ns.c }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b }}", "{% set d.x = 1 %}", "{% set q.x = 1 %}", "{% set ns = namespace(a=1) %}{{ ns['a'] }}{{ ns.a is defined }}{{ ns.b is defined }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = [1] %}", "{% set a = 1, 2 %}{{ a }}", "{% set a = 1 if no %}{{ a }}|{{ a is defined }}", "{% set (a, b) = (1, 2) %}{{ a }}{{ b }}", "{% set ns = namespace(a=1, b=2) %}{% set ns.a, ns.b = 3, 4 %}{{ ns.a }}{{ ns.b }}", "{% set a %}x{{ n }}{% endset %}{{ a }}", "{% set a | upper %}x{{ n }}y{% endset %}{{ a }}", "{% set a | replace('x', 'z') | upper %}xy{% endset %}{{ a }}",
    "{% set a %}{% set b = 1 %}{{ b }}{% endset %}{{ a }}{{ b }}", "{% set true = 1 %}", "{% set 1 = 1 %}", "{% set a.b.c = 1 %}", "{% set a = %}", "{% set a = 1 %}{% set a = a + 1 %}{{ a }}", "{% set x = [1, 2] %}{{ x[0] }}{% set y = x + [3] %}{{ y }}",
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=4, a=5) }}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a) %}{{ varargs|join('-') }}{% endmacro %}{{ m(1, 2, 3) }}", "{% macro m(a) %}{{ kwargs.x }}{% endmacro %}{{ m(1, x=3) }}", "{% macro m(a, b=a ~ '!') %}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a=undefinedx) %}{{ a is defined }}{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{{ m() }}{% macro m() %}x{% endmacro %}", "{% macro m() %}{{ n }}{{ y }}{% endmacro %}{% set y = 3 %}{{ m() }}", "{% macro m() %}{{ x }}{% endmacro %}{% for x in l %}{{ m() }}{% endfor %}", "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m() %}{% set n = 7 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}",
    "{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m('x')|upper }}{{ m('y') ~ 'z' }}{{ m('q')|length }}", "{% macro m(a) %}{{ caller() }}{{ a }}{% endmacro %}{% call m(1) %}body{% endcall %}", "{% macro m() %}{{ caller(5) }}{% endmacro %}{% call(x) m() %}<{{ x }}>{% endcall %}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% call n %}{% endcall %}", "{% call undefinedx() %}{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{% for x in l %}{% call m() %}{{ x }}{{ loop.index }}{% endcall %}{% endfor %}",
    "{% macro m() %}a{% endmacro %}{{ m }}", "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m({'x': 4}) }}", "{% macro m(a, a) %}{% endmacro %}", "{% set f = namespace %}{{ f(a=1).a }}", "{% macro m(x) %}{{ x }}{% endmacro %}{% set ns = namespace(f=m) %}{{ ns.f(3) }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(1, **{'b': 2}) }}{{ m(*[1], **{'b': 3}) }}{{ m(*[1], b=4) }}",
    "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter upper | replace('A', 'b') %}a{{ s }}{% endfilter %}", "{% filter nosuch %}{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}", "{% filter trim %} x {% endfilter %}", "{% with a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% with a = 1, b = a %}{{ b }}{% endwith %}", "{% with %}{% set z = 3 %}{{ z }}{% endwith %}{{ z }}", "{% generation %}a{{ n }}{% endgeneration %}", "{% generation %}{% set n = 1 %}{% endgeneration %}{{ n }}", "{% print n, s %}", "{% print n %}",
    "{% raw %}{{ n }}{% if %}{% endraw %}", "{% raw -%}  a  {%- endraw %}", "{%- raw %} a {% endraw -%}  b", "a {%- raw -%} x {%- endraw -%} b", "{% raw %}\nx\n{% endraw %}\ny", "{% raw %}a", "{%raw%}{%endraw%}", "{# c #}a", "a{# c", "a {#- c -#} b", "a\n  {# c #}\nb", "a {#+ c +#}\nb", "{#-#}a", "{#}#}a", "{##}a", "{# {{ n }} {% if %} #}x", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% nosuch %}", "{%  %}", "{% do 1 %}",
    "a\n{% if t %}\nb\n{% endif %}\nc\n", "a\n  {% if t %}\n  b\n  {% endif %}\nc", "  {{ n }}\n  {{ n }}\n", "a {%- if t -%} b {%- endif -%} c", "a\n{%- if t %}\n b\n{%- endif %}\n c", "{% if t -%}\n\n  b\n\n{%- endif %}", "  {%+ if t %}x{% endif %}", "{% if t +%}\nx{% endif %}", "a  {{- n -}}  b", "a\n\n{{- n -}}\n\nb", "{{ n }}\n\n", "{{ n }}\n", "\n", "\n\n", "", "a\r\nb\rc\n", "{% if t %}\r\na{% endif %}", "x  {% set a = 1 %}  y", "  {% set a = 1 %}  \n  y", "\t{% set a = 1 %}\n\n\tz", "a{% set b = 1 -%}\n\n c", "{% set b = 1 %}\n  {% set c = 2 %}\n  d", "a  {{+ n }}", "{{ n -}}\n {{- n }}", "{{n}}{{n}}", "{% for x in l %}\n{{ x }}\n{% endfor %}\nend", "{% for x in l -%}\n  {{ x }}\n{%- endfor %}", "{% for x in l %} {{ x }} {% endfor %}", "\u00a0{% if t %}a{% endif %}", "{% set a = 'x\ny' %}{{ a }}", "{{ 'a\r\nb' }}", "{% set a = 1\n %}\n{{\na\n}}", "{%if t%}a{%endif%}", "{{'}}'}}", "{{ {'a': {'b': 1}} }}", "{{ {'a':{'b':1}}.a.b }}", "{{ \"%}\" }}", "{% if '%}' %}x{% endif %}", "a {{ '{{' }} b {{ '#}' }}", "{ {n} }", "{{ n }", "{{ n", "{{ }}", "{{", "{%", "{#", "}}", "%}", "{{ n }}}", "{{{n}}}", "{{ (n }}", "{{ n) }}", "{{ [1, 2 }}", "{{ 'abc }}", "{{ n $ }}", "{{ n! }}", "{{ n; }}", "{{ 1 2 }}", "{{ n n }}", "{{ n. }}", "{{ n.'a' }}", "{{ n| }}", "{{ |upper }}", "{{ n is }}", "{{ 1 + }}", "{{ * 2 }}", "{{ f(a=1, 2) }}", "{{ dict(a=1, a=2) }}", "{{ l[] }}", "{{ [1,] }}{{ (1,) }}{{ {'a': 1,} }}{{ range(2,)|list }}", "{{ [,] }}", "{{ {1} }}", "{{ not }}", "{{ n if }}", "{{ 1 if 2 else }}", "{{ a..b }}", "{{ 1..2 }}", "{{ '\\N{DASH}' }}", "{% if t: %}a{% endif %}", "{{ True }}{{ true }}{{ None }}{{ none }}{{ False }}", "{{ TRUE }}", "{% for x in l recursive %}{{ x }}{% endfor %}", "{% for in l %}{% endfor %}", "{% for x l %}{% endfor %}", "{% for x in %}{% endfor %}", "{% for x.y in l %}{% endfor %}", "{% set %}", "{% macro %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% endmacro %}", "{{ '' '' }}x", "{{ 'a'.upper() ~ 'b'.upper() }}", "{{ ('a' if t else 'b').upper() }}", "{{ [s, e][0][0] }}", "{{ d.items()|list|length }}", "{{ 1.5.real }}", "{{ 1 .x }}",
    "{% for m1 in m %}{% if loop.first and m1.role != 'system' %}X{% endif %}<|{{ m1['role'] }}|>{{ m1['content'] if m1.content is string else '' }}{{ '<|end|>' }}{% if not loop.last %}\n{% endif %}{% endfor %}", "{%- for x in m if x.role == 'user' -%}\n[{{ x.content }}]\n{%- endfor -%}", "{% set ns = namespace(found=false) %}{% for x in m|reverse %}{% if not ns.found and x.role == 'user' %}{% set ns.found = true %}{{ x.content }}{% endif %}{% endfor %}", "{% for x in m[::-1] %}{% set i = (m|length - 1) - loop.index0 %}{{ i }}{{ x.role }} {% endfor %}", "{{ m | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(' / ') }}", "{% if m[0]['role'] == 'system' %}{{ m[0]['content'] }}{% set m = m[1:] %}{% endif %}{{ m|length }}", "{% if m|selectattr('role', 'equalto', 'tool') %}always{% endif %}", "{% if m|selectattr('role', 'equalto', 'tool')|list %}yes{% else %}no{% endif %}", "{% set content = 'a</think>b' %}{{ content.split('</think>')[-1].lstrip('\\n') }}{{ content.split('</think>')[0] }}", "{{ raise_exception('stop') }}", "{% if m|length % 2 == 0 %}even{% else %}{{ raise_exception('odd') }}{% endif %}", "{{- '<|im_start|>' + m[0].role + '\\n' -}}\n", "{{ s if s else raise_exception('x') }}", "{% set x = {'a': [1, 2]} %}{{ x.a[1] }}{{ x['a'][0] }}", "{%- macro f(p) -%}\n{%- for k, v in p.items() -%}\n{{ k }}: {{ v.type }}{{ ', ' if not loop.last }}\n{%- endfor -%}\n{%- endmacro -%}\n{{ f(tool.function.parameters.properties) }}",
]

# Found by contrib/dev/jinja.
DIFFERED = [
    "{{ [1] * [2] }}", "{{ 'a' * (1,) }}", "{{ 'a' * none }}", "{{ 2.0 * 'a' }}", "{{ true * [1] }}", "{{ (-9223372036854775807 - 1) % 3 }}", "{{ (-9223372036854775807 - 1) % -1 }}",
    "{{ -0.0|abs }}", "{{ 0.0 % -1 }}", "{{ -0.0 % 1.0 }}", "{{ -0.0 // 1 }}", "{{ 3.0 % -1.5 }}", "{{ 0.0 // -2 }}", "{{ -1e-20 // 1 }}", "{{ 7.5 // -2 }}", "{{ 1e300 // 1e-5 }}",
    "{{ '% 5.5X' % true }}", "{{ '%x|%X|%o' % (-255, -255, -8) }}", "{{ '%#x|%#X|%#o|%#x' % (255, 255, 8, 0) }}", "{{ '%08.3d|%-08d|%+05d|% d' % (5, 5, 5, 5) }}", "{{ '%+x|% o|%+#010x' % (1, 8, 255) }}", "{{ '%.0d|%.5d|%8.5d|%-8.5d|' % (0, -3, -3, -3) }}", "{{ '%d|%i|%u' % (2.9, -2.9, true) }}",
    "{{ f[1:2] }}", "{{ t[:] }}", "{{ nil[1:] }}", "{{ d[:1] }}", "{{ n[::2] }}", "{{ 'a'.rjust(3, '') }}", "{{ 'abc'.center(1, '') }}",
    "{{ 'x' % l }}", "{{ 'x' % d }}", "{{ 'x' % undefinedx }}", "{{ 'x' % () }}", "{{ 'x' % 1 }}", "{{ 'x' % none }}", "{{ 'x' % (1,) }}", "{{ 'x' % 'y' }}", "{{ '%s' % l }}", "{{ 'x' % range(2) }}",
    "{{ none|select|list }}", "{{ 0|map('upper')|list }}", "{{ nil|selectattr('a')|list }}", "{{ no|rejectattr('x', 'eq', 1)|list }}", "{{ el|map('nosuchfilter'[:0])|list }}", "{{ 5|select|list }}", "{{ nil|map(attribute='x')|list }}", "{{ undefinedx|reject('odd')|list }}",
    "{% filter length %}abc{% endfilter %}", "{% filter list %}abc{% endfilter %}", "{% filter length|string %}abc{% endfilter %}", "{% set a | length %}abc{% endset %}{{ a }}",
    "{{ [(1, [2])]|unique|list }}", "{{ (1, [2]) in d }}", "{{ d.get((1, [2])) }}", "{{ {(1, {}): 2} }}", "{{ d.get((1, (2, 'x')), 4) }}",
    "{% for g in m|groupby('role') %}{{ g.grouper }}={{ g.list|length }};{% endfor %}", "{{ m|groupby('role')|map(attribute='grouper')|join(',') }}", "{{ m|groupby('role')|map(attribute='list')|map('length')|list }}", "{{ (m|groupby('role'))[0][:2].grouper }}", "{{ (m|groupby('role')|first).nosuch is defined }}",
    "{{ '~\\x7f\\x80'|tojson(true) }}", "{{ -0.0|round(1, 'ceil') }}", "{{ -0.05|round(1, 'ceil') }}", "{{ -0.01|round(1, 'ceil') }}", "{{ 'aé'.isdigit() }}", "{{ 'é1'.isdigit() }}",
]

# Left out: what Python itself adds, such as how it prints objects that have no text of their
# own.
LEFT_OUT = [
    "range(3)}", "s.upper}", "namespace}", "{{ m }}{", "|reverse }", "|unique }", "|select }", "|map('string') }", "d.items() }", "d.items }", "keyed.items() }", "'{}'.format", "swapcase",
    "casefold", "zfill", "encode()", "__class__", "recursive", "cycler", "joiner", "lipsum", "N{DASH}", "undefinedx is callable", "d.keys() }", "self", "super", "1e100|int", "round(-2)", "'%s' % ['",
    "attr('upper')", "for a, in", "l[]", "%}{{ m }}",
    "1.5.real", "1 .x", "[undefinedx]}", "{% do 1", "d.items()|first }}X", "keyed.items }", "|safe", "|e }", "|escape }", "range(10)[2:4]}", "{{ upper }}", "s.upper }", "range(3) }", "namespace }",
]


def templates():
    for piece in split_expressions():
        if piece.strip():
            yield "{{ %s }}" % piece.strip()
    for block in (FILTERS, TESTS, METHODS):
        for line in block.strip("\n").split("\n"):
            for piece in line.split(";"):
                if piece.strip():
                    yield "{{ %s }}" % piece.strip()
    yield from STATEMENTS
    yield from DIFFERED


def main():
    env = environment()
    used = []
    for text in templates():
        if any(x in text for x in LEFT_OUT) or text in used or text == "{#":
            continue
        used.append(text)
    cases = []
    for text in used:
        try:
            out = env.from_string(text).render(**VALUES)
        except Exception:
            out = None
        cases.append([text, out])
    print('{"values": %s,\n "cases": [' % json.dumps(VALUES))
    print(",\n".join(json.dumps(c) for c in cases))
    print("]}")


def one_case(path, name):
    for case in json.load(open(path)):
        if case["name"] == name:
            env = environment(datetime.datetime(2025, 7, 10))
            sys.stdout.write(env.from_string(case["chat_template"]).render(**case["data"]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        one_case(*sys.argv[2:])
    else:
        main()
