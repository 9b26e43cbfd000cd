"""The sources to compile, read from meson.build, and whether a product is older than its sources."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def listed(name, folder):
    """The C and C++ sources of a list, or of a library, in a folder's meson.build, as paths in the tree."""
    text = (ROOT / folder / "meson.build").read_text()
    found = re.search(rf"^ *{name} = (?:\[|static_library\()$(.*?)^ *[\])]$", text, re.M | re.S)
    if not found:
        raise SystemExit(f"{folder}/meson.build has no list {name}")
    return [f"{folder}/{file}" for file in re.findall(r"'([^']*\.cc?)'", found[1])]


def default_of(option):
    """The default of a build option."""
    text = (ROOT / "meson_options.txt").read_text()
    return re.search(rf"option\('{option}',[^)]*?value: '(.*?)'", text)[1]


def made_from(product):
    """The files of this tree that a compiler, told -MMD or -MD, has noted beside its product."""
    noted = product.with_suffix(".d")
    words = noted.read_text().replace("\\\n", " ").partition(": ")[2].split() if noted.exists() else []
    paths = ((ROOT / word).resolve() for word in words)
    return [p.relative_to(ROOT) for p in paths if p.is_relative_to(ROOT)]


def is_stale(product):
    """Is the product missing, or older than its sources?"""
    parts = [ROOT / p for p in made_from(product)]
    if not product.exists() or not parts or not all(p.exists() for p in parts):
        return True
    return product.stat().st_mtime < max(p.stat().st_mtime for p in parts)
