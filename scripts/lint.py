#!/usr/bin/env python3
"""The checks behind `./dev lint`. A file that passed a check is not checked again until it, what it
includes, or the check's own settings change (remembered in build/lint/passed)."""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/lint"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def run(argv, **kwargs):
    return subprocess.run(argv, cwd=ROOT, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **kwargs)


def tracked():
    """Files of the checkout, new ones that are not yet added too, as paths from ROOT."""
    listed = run(["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others",
                  "--exclude-standard"])
    if listed.returncode != 0:
        sys.exit(listed.stdout)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@functools.lru_cache(maxsize=None)
def text_of(name):
    return (ROOT / name).read_bytes()


@functools.lru_cache(maxsize=None)
def with_includes(name):
    """A source and all headers of src/ it reaches."""
    found, todo = {name}, [name]
    while todo:
        for other in INCLUDE.findall(text_of(todo.pop()).decode(errors="replace")):
            path = f"src/{other}"
            if path not in found and (ROOT / path).is_file():
                found.add(path)
                todo.append(path)
    return sorted(found)


def digest(*parts):
    h = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        h.update(len(data).to_bytes(8, "big") + data)
    return h.hexdigest()


class Passed:
    """Remembers what passed, one empty file each."""

    def __init__(self):
        self.dir = BUILD / "passed"
        self.dir.mkdir(parents=True, exist_ok=True)

    def holds(self, key):
        path = self.dir / key
        if not path.exists():
            return False
        os.utime(path)
        return True

    def add(self, key):
        (self.dir / key).touch()

    def forget_old(self, days=30):
        for path in self.dir.iterdir():
            if time.time() - path.stat().st_mtime > days * 86400:
                path.unlink()


def is_cc(name):
    return name.endswith((".cc", ".h", ".c"))


def first_line(name):
    return text_of(name).split(b"\n", 1)[0]


def is_shell(name):
    return name.endswith(".sh") or re.match(rb"#!.*\b(ba|da)?sh\b", first_line(name))


def is_python(name):
    return name.endswith(".py") or re.match(rb"#!.*python3", first_line(name))


def check_format(names, fix):
    names = [n for n in names if is_cc(n)]
    if not names:
        return []
    done = run(["clang-format-19", "-i" if fix else "--dry-run", "-Werror", *names])
    if done.returncode == 0:
        return []
    bad = sorted(set(re.findall(r"^([^\s:]+):\d+:\d+: error: code should be", done.stdout, re.M)))
    return [f"{n}: not formatted (./dev lint --fix)" for n in bad] or [done.stdout]


def check_scripts(names):
    shell = [n for n in names if is_shell(n)]
    faults = []
    if shell:
        done = run(["shellcheck", *shell])
        if done.returncode != 0:
            faults.append(done.stdout)
    for name in filter(is_python, names):
        try:
            compile(text_of(name), name, "exec", dont_inherit=True)
        except SyntaxError as e:
            faults.append(f"{name}:{e.lineno}: {e.msg}")
    return faults


def check_by(*argv):
    done = run([sys.executable, *argv])
    return [] if done.returncode == 0 else [done.stdout.rstrip()]


def tidy_commands():
    """{source: its compile command} of a configuration that is never built: clang-tidy cannot use
    a precompiled header of another clang, nor one that is not there."""
    configured = run(["cmake", "--preset", "lint"])
    if configured.returncode != 0:
        sys.exit(configured.stdout)
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    return {os.path.relpath(e["file"], ROOT): e["command"] for e in entries}


def check_tidy(names, jobs):
    commands = tidy_commands()
    settings = (ROOT / ".clang-tidy").read_bytes()
    version = run(["clang-tidy-19", "--version"]).stdout
    passed = Passed()
    todo = []
    for name in names:
        # A header is checked with the sources that include it.
        sources = [name] if name in commands else [
            s for s in commands if is_cc(name) and name in with_includes(s)][:1]
        for source in sources:
            inputs = [text_of(f) for f in with_includes(source)]
            key = digest("tidy", version, settings, commands[source], *inputs)
            if not passed.holds(key) and (source, key) not in todo:
                todo.append((source, key))

    def one(item):
        source, key = item
        done = run(["clang-tidy-19", "--quiet", "-p", str(BUILD), source])
        if done.returncode == 0:
            passed.add(key)
            return None
        noise = re.compile(r"^\d+ warnings? (generated|treated)|^Suppressed |^Use -header-filter")
        return "\n".join(x for x in done.stdout.splitlines() if not noise.match(x))

    faults = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for n, fault in enumerate(pool.map(one, todo), 1):
            print(f"\r  clang-tidy {n}/{len(todo)}", end="\n" if n == len(todo) else "",
                  file=sys.stderr, flush=True) if sys.stderr.isatty() or n % 10 == 0 else None
            if fault:
                faults.append(fault)
    passed.forget_old()
    return faults


def main():
    parser = argparse.ArgumentParser(prog="./dev lint", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="leave clang-tidy out")
    parser.add_argument("--fix", action="store_true", help="format in place")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*", help="only these (default: all of the checkout)")
    args = parser.parse_args()

    names = tracked()
    if args.files:
        wanted = {os.path.relpath(os.path.realpath(f), ROOT) for f in args.files}
        names = [n for n in names if n in wanted or any(n.startswith(w + "/") for w in wanted)]
        if not names:
            sys.exit("no such files in this checkout")
    checks = [
        ("format", lambda: check_format(names, args.fix)),
        ("scripts", lambda: check_scripts(names)),
        ("layers", lambda: check_by("scripts/check_layers.py", "src")),
        ("coroutines", lambda: check_by("scripts/check_coroutines.py", "src")),
        ("house rules", lambda: check_by("scripts/check_house.py", *names)),
    ]
    if not args.fast:
        checks.append(("clang-tidy", lambda: check_tidy(names, args.jobs)))
    failed = []
    for title, check in checks:
        faults = check()
        print(f"{'FAIL' if faults else 'ok  '}  {title}")
        print(*faults, sep="\n", end="\n" if faults else "")
        sys.stdout.flush()
        if faults:
            failed.append(title)
    if failed:
        sys.exit("lint failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
