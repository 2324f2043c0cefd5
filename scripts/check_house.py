#!/usr/bin/env python3
"""House rules that need no compiler. Prints one line a fault; exits 1 if there is any.

  - a file of src/ has at most 600 lines, another source file 900, a function at most 100; a line of
    Python or CMake at most 120 columns (clang-format sees to the rest)
  - a text file ends with a newline and has no spaces at a line's end
  - a TODO names its owner: TODO(name)
  - a folder of src/ with sources has a README.md of 5 to 25 lines: what it is for, its main type,
    what it must never do
  - a page of documentation links to, and names in `code`, only files that are there
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE_COLUMNS, FUNCTION_LINES = 120, 100
README_LINES = range(5, 26)

SOURCE = (".cc", ".h", ".c", ".py", ".cmake")
TEXT = (*SOURCE, ".md", ".txt", ".toml", ".json", ".yaml", ".sh")
OWNERLESS = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\()")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
# `src/os/cgroup.h`, `scripts/lint.py:12`: a path below a top folder of this checkout.
NAMED = re.compile(
    r"`((?:\.?/)?(?:src|docs|tests|bench|scripts|cmake|examples|\.ci)/[\w./-]*\w)(?::\d+)?`")


def check_lines(name, lines):
    for number, line in enumerate(lines, 1):
        if name.endswith((".py", ".cmake")) and len(line) > LINE_COLUMNS and "http" not in line:
            yield f"{name}:{number}: {len(line)} columns; at most {LINE_COLUMNS}"
        if line != line.rstrip() and not name.endswith(".md"):
            yield f"{name}:{number}: spaces at the end"
        if name.endswith(SOURCE) and name != "scripts/check_house.py" and OWNERLESS.search(line):
            yield f"{name}:{number}: a TODO needs an owner, as TODO(name)"


def check_functions(name, lines):
    """A function here starts with a line in column 0 that ends in '{' and ends with '}' in column
    0: clang-format sees to that. Methods inside a class and namespaces are not counted."""
    start = None
    for number, line in enumerate(lines, 1):
        if start is None and line.endswith("{") and re.match(r"[A-Za-z].*\)", line) and \
                not line.startswith(("namespace", "class", "struct", "extern", "enum")):
            start = number
        elif line == "}" and start is not None:
            if number - start + 1 > FUNCTION_LINES:
                yield (f"{name}:{start}: a function of {number - start + 1} lines; at most "
                       f"{FUNCTION_LINES}")
            start = None
        elif line.startswith("}"):
            start = None


def check_doc(name, text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    here = (ROOT / name).parent
    for target in LINK.findall(text):
        local = "://" not in target and not target.startswith("mailto:")
        if local and not (here / target).exists():
            yield f"{name}: links to {target}, which is not there"
    for target in NAMED.findall(text):
        clean = target.removeprefix("./")
        if not (ROOT / clean).exists() and not list(ROOT.glob(clean + ".*")):
            yield f"{name}: names {target}, which is not there"


def check_readmes(names):
    """READMEs of the folders that have sources, as LAYERS lists them."""
    folders = {}
    for line in (ROOT / "src/LAYERS").read_text().splitlines():
        if m := re.match(r"([a-z0-9_/-]+):", line):
            folders[m.group(1)] = ROOT / "src" / m.group(1)
    for folder, path in folders.items():
        if folder.startswith("bin/") or not any(n.startswith(f"src/{folder}/") for n in names):
            continue
        readme = path / "README.md"
        if not readme.exists():
            yield f"src/{folder}: has no README.md"
        elif len(readme.read_text().splitlines()) not in README_LINES:
            yield f"src/{folder}/README.md: has not 5 to 25 lines"


def check_file(name):
    data = (ROOT / name).read_bytes()
    script = data.startswith(b"#!")
    if not (name.endswith(TEXT) or script) or not data:
        return
    if not data.endswith(b"\n"):
        yield f"{name}: no newline at its end"
    text = data.decode("utf-8", "replace")
    lines = text.splitlines()
    most = 600 if name.startswith("src/") else 900
    if name.endswith(SOURCE) and len(lines) > most:
        yield f"{name}: {len(lines)} lines; split it by noun, at most {most}"
    yield from check_lines(name, lines)
    if name.endswith((".cc", ".c")):
        yield from check_functions(name, lines)
    if name.endswith(".md"):
        yield from check_doc(name, text)


def main(names):
    faults = [f for name in names for f in check_file(name)]
    faults += check_readmes(names)
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(names)} files, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
