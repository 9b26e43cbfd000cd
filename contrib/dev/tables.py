"""The tables in the code, as contrib/dev/tables.c prints them: for programs that make pages,
man pages and completions of shells."""
import subprocess

FIELDS = {
    "setting": ("group", "name", "value", "values", "default", "help", "use"),
    "http_setting": ("group", "name", "value", "values", "default", "help", "use"),
    "command": ("name", "value", "help"),
    "flag": ("group", "name", "value", "words", "commands", "help"),
    "chat_command": ("name", "value", "help"),
    "status": ("section", "about", "name", "seen", "help"),
    "code": ("number", "name", "help"),
}


def read_tables(program):
    """{kind: [row, ...]}; a row is a dictionary.  A group reaches as far as the next one."""
    printed = subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE).stdout
    tables = {kind: [] for kind in FIELDS}
    for line in printed.splitlines():
        kind, *fields = line.split("\t")
        row = dict(zip(FIELDS[kind], fields, strict=True))
        if row.get("group") == "":
            row["group"] = tables[kind][-1]["group"]
        tables[kind].append(row)
    return tables
