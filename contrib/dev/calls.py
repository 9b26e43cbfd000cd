"""Writes the cases of llama.cpp's tests of answers as lines of JSON: `calls.py LLAMA_CPP FOLDER`.

The tests are C++: a table of tools and messages, and calls of a builder.  This makes a program of
them in FOLDER whose builder writes a case down instead of running it.  Nothing of llama.cpp is
built; what the program does not call is a stub.
"""

import json
import pathlib
import re
import subprocess
import sys

HEAD = """
#include "chat.h"
#include "common.h"
#include "json.h"
#include <functional>
#include <iostream>
#include <set>
#include <cstdio>
#define LOG_DBG(...)
#define LOG_INF(...)
#define LOG_ERR(...)
"""

WRITER = r"""
static std::string quoted(const std::string & text) {
    std::string to = "\"";
    for (unsigned char byte : text) {
        char escape[8];
        snprintf(escape, sizeof(escape), "\\u%04x", byte);
        if (byte < 32 || byte == '"' || byte == '\\') to += escape;
        else to += byte;
    }
    return to + "\"";
}
static std::string text_of(const common_chat_msg & message) {
    std::string to = message.content;
    for (auto & part : message.content_parts) to += part.text;
    return to;
}
template <class List, class Put> static std::string listed(const List & list, Put put) {
    std::string to;
    for (auto & item : list) to += (to.empty() ? "" : ",") + put(item);
    return "[" + to + "]";
}
static std::string put_tool(const common_chat_tool & tool) {
    return "{\"type\":\"function\",\"function\":{\"name\":" + quoted(tool.name) + ",\"description\":"
        + quoted(tool.description) + ",\"parameters\":" + tool.parameters + "}}";
}
static std::string put_message(const common_chat_msg & message) {
    return "{\"role\":" + quoted(message.role) + ",\"content\":" + quoted(text_of(message))
        + (message.reasoning_content.empty() ? ""
           : ",\"reasoning_content\":" + quoted(message.reasoning_content)) + "}";
}
static std::string put_call(const common_chat_tool_call & call) {
    return "{\"name\":" + quoted(call.name) + ",\"arguments\":" + quoted(call.arguments) + "}";
}
static void write_case(const std::string & path, const peg_test_case & test) {
    auto & asked = test.params;
    printf("{\"template\":%s,\"input\":%s,\"tools\":%s,\"messages\":%s,\"thinking\":%d,\"format\":%d,"
           "\"partial\":%d,\"continues\":%d,\"choice\":%d,\"content\":%s,\"reasoning\":%s,"
           "\"calls\":%s}",
           quoted(path).c_str(), quoted(test.input).c_str(), listed(asked.tools, put_tool).c_str(),
           listed(asked.messages, put_message).c_str(), asked.enable_thinking,
           (int) asked.reasoning_format, test.is_partial, (int) asked.continue_final_message,
           (int) asked.tool_choice, quoted(text_of(test.expect)).c_str(),
           quoted(test.expect.reasoning_content).c_str(),
           listed(test.expect.tool_calls, put_call).c_str());
}
"""

# The tests also check prompts, which needs all of llama.cpp.
STANDINS = """
#define throw (void)
static common_chat_params no_prompt(const common_chat_templates *, const common_chat_templates_inputs &) {
    return common_chat_params{};
}
static common_chat_templates_ptr read_templates(const std::string &) {
    return common_chat_templates_ptr(nullptr);
}
static std::string read_file(const std::string &) { return ""; }
#define common_chat_templates_apply no_prompt
#define common_chat_templates_init(...) nullptr
"""


def make_source(tests):
    """The program: the tools and messages, the builder, and the tests that use it."""
    lines = tests.split("\n")

    def find(beginning):
        return next(i for i, line in enumerate(lines) if line.startswith(beginning))

    def between(first, last):
        return "\n".join(lines[find(first) : find(last)])

    builder = between("// Fluent builder", "static void test_msgs_oaicompat")
    builder = builder.replace("tmpls_(read_templates(template_path))", "tmpls_(nullptr)")
    run = re.search(r"    void run\(\) \{\n.*?\n    \}\n", builder, re.S)
    write = "    void run() { write_case(tester_.template_path(), tc_); }\n"
    builder = builder[: run.start()] + write + builder[run.end() :]
    return (
        HEAD
        + between("static common_chat_tool ", "static void test_peg_parser(")
        + WRITER
        + builder
        + STANDINS
        + between("static void test_lfm2_parser", "static void test_template_generation_prompt")
        + "int main() { test_template_output_peg_parsers(false); }\n"
    )


def build(llama, folder):
    include = [f"-I{llama / name}" for name in ("common", "include", "ggml/include", "src", "vendor")]
    (folder / "cases.cpp").write_text(make_source((llama / "tests/test-chat.cpp").read_text()))
    subprocess.run(
        ["g++", "-std=c++17", "-w", *include, "-c", "cases.cpp", "-o", "cases.o"], cwd=folder, check=True
    )
    link = ["g++", "-Wl,--no-demangle", "cases.o", "-o", "cases"]
    said = subprocess.run(link, cwd=folder, capture_output=True, text=True).stderr
    missing = sorted(set(re.findall(r"undefined reference to `([^']*)'", said)))
    stubs = [f".globl {name}\n{name}: ud2" for name in missing]
    (folder / "stubs.s").write_text("\n".join(stubs) + '\n.section .note.GNU-stack,"",@progbits\n')
    subprocess.run([*link, "stubs.s"], cwd=folder, check=True)


def main():
    llama, folder = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    build(llama, folder)
    said = subprocess.run(["./cases"], cwd=folder, check=True, capture_output=True, text=True).stdout
    decoder, at = json.JSONDecoder(), 0
    with open(folder / "cases.jsonl", "w") as to:
        while at < len(said):
            case, at = decoder.raw_decode(said, at)
            case["template"] = str(llama / case["template"])
            case["messages"] = case["messages"] or [{"role": "user", "content": "Hey there!"}]
            to.write(json.dumps(case) + "\n")


main()
