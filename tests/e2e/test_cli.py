"""The glovebox command."""

import hashlib
import json
import os
import subprocess
import time

import pytest

from gbx.platform import ROOT, program
from gbx.wait import Stopwatch, until


@pytest.fixture(scope="module")
def cli(platform):
    def run(*args, code=0, **kwargs):
        r = platform.cli(*args, **kwargs)
        if code is not None:
            assert r.returncode == code, (args, r.returncode, r.stdout[-800:], r.stderr[-800:])
        return r

    return run


def test_run_shows_the_output_and_gives_the_exit_code(cli, tmp_path):
    script = tmp_path / "job.py"
    script.write_text("import sys\nprint('out', sys.argv[1:])\nprint('err', file=sys.stderr)\nsys.exit(7)\n")
    r = cli("run", str(script), code=7)
    assert r.stdout == b"out []\n" and r.stderr.endswith(b"err\n")
    r = cli("run", "--", "sh", "-c", "echo hi; exit 3", code=3)
    assert r.stdout == b"hi\n"


@pytest.mark.parametrize("name,text,out", [
    ("a.sh", "echo sh", b"sh\n"), ("b.py", "print('py')", b"py\n"),
    ("noext", "#!/bin/sh\necho shebang\n", b"shebang\n")])
def test_run_finds_the_language(cli, tmp_path, name, text, out):
    (tmp_path / name).write_text(text)
    assert cli("run", str(tmp_path / name)).stdout == out


def test_run_leaves_no_sandbox(cli, api, tmp_path):
    before = len(api.list_all(state="running"))
    cli("run", "--", "true")
    cli("run", "--", "false", code=1)
    until(lambda: len(api.list_all(state="running")) == before)


def test_run_says_when_a_file_is_missing(cli):
    r = cli("run", "/not/there.py", code=None)
    assert r.returncode not in (0,) and b"/not/there.py" in r.stderr and r.stdout == b""


def test_hello_example_runs(cli):
    r = cli("run", str(ROOT / "examples/hello.py"))
    assert r.stdout.strip()


@pytest.fixture(scope="module")
def box_id(cli):
    r = cli("--json", "create", "--label", "from=cli", code=None)
    if r.returncode != 0:
        r = cli("create", "--json", "--label", "from=cli")
    value = json.loads(r.stdout)
    yield value["id"]
    cli("rm", value["id"])


def test_ls_info_and_json(cli, box_id):
    listed = cli("ls", "--json").stdout
    values = [json.loads(line) for line in listed.splitlines()] if listed.count(b"\n") > 1 and \
        not listed.lstrip().startswith(b"[") else json.loads(listed)
    if isinstance(values, dict):
        values = values.get("sandboxes", [values])
    assert box_id in [v["id"] for v in values]
    assert box_id.encode() in cli("ls").stdout
    assert json.loads(cli("info", "--json", box_id).stdout)["id"] == box_id
    assert b"running" in cli("info", box_id).stdout


def test_exec_passes_bytes_exit_code_and_streams(cli, box_id):
    r = cli("exec", box_id, "--", "sh", "-c", "echo o; echo e >&2; exit 9", code=9)
    assert (r.stdout, r.stderr) == (b"o\n", b"e\n")
    assert cli("exec", "-i", box_id, "--", "wc", "-c", stdin=b"\x00\x01\x02\xff").stdout.strip() == b"4"
    data = os.urandom(5_000_000)
    out = cli("exec", "-i", box_id, "--", "sha256sum", stdin=data).stdout
    assert out.split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert cli("exec", "-i", box_id, "--", "cat", stdin=data).stdout == data
    cli("exec", box_id, "--", "sh", "-c", "kill -9 $$", code=137)
    cli("exec", box_id, "--", "sh", "-c", "kill -15 $$", code=143)


def test_exec_options(cli, box_id):
    r = cli("exec", "--user", "root", "--cwd", "/tmp", "--env", "A=b c", box_id, "--", "sh", "-c",
            "id -un; pwd; echo $A")
    assert r.stdout == b"root\n/tmp\nb c\n"
    watch = Stopwatch()
    r = cli("exec", "--timeout", "1", box_id, "--", "sleep", "30", code=None)
    assert r.returncode != 0 and watch.s < 15


def test_exec_does_not_wait_for_stdin_that_nobody_wants(platform, box_id):
    read, write = os.pipe()
    watch = Stopwatch()
    p = subprocess.run([program("glovebox"), "exec", "-i", box_id, "--", "echo", "hi"], stdin=read,
                       capture_output=True, timeout=30, check=False,
                       env={**os.environ, "GLOVEBOX_URL": f"unix://{platform.socket}"})
    os.close(write)
    os.close(read)
    assert p.stdout == b"hi\n" and p.returncode == 0 and watch.s < 10


def test_a_missing_command_is_127(cli, box_id):
    r = cli("exec", box_id, "--", "no_such_xyz", code=None)
    assert r.returncode == 127 and b"no_such_xyz" in r.stderr


def test_cp_both_ways(cli, box_id, tmp_path):
    data = os.urandom(3_000_000)
    (tmp_path / "a.bin").write_bytes(data)
    cli("cp", str(tmp_path / "a.bin"), f"{box_id}:/tmp/b.bin")
    cli("cp", f"{box_id}:/tmp/b.bin", str(tmp_path / "c.bin"))
    assert (tmp_path / "c.bin").read_bytes() == data
    r = cli("cp", f"{box_id}:/tmp/none", str(tmp_path / "d"), code=None)
    assert r.returncode != 0 and b"/tmp/none" in r.stderr and not (tmp_path / "d").exists()


def test_ps_kill_and_logs(cli, api, box_id):
    pid = api.sandbox(box_id).start("echo from-log; sleep 100")
    time.sleep(0.3)
    assert str(pid).encode() in cli("ps", box_id).stdout
    cli("kill", box_id, str(pid), code=None)
    until(lambda: api.sandbox(box_id).process(pid).get("exit_code") is not None, 5, "killed")


def test_pause_resume_extend(cli, api, box_id):
    cli("pause", box_id)
    assert api.sandbox(box_id).state == "paused"
    cli("resume", box_id)
    assert api.sandbox(box_id).state == "running"
    cli("extend", box_id, "500")


def test_errors_are_helpful(cli, platform):
    r = cli("info", "sb-" + "z" * 20, code=None)
    assert r.returncode not in (0, 2) and b"no such sandbox" in r.stderr and b"{" not in r.stderr
    r = cli("frobnicate", code=None)
    assert r.returncode != 0 and r.stderr
    r = cli("ls", url="unix:///not/there.sock", code=None)
    assert r.returncode != 0 and b"glovebox" in r.stderr.lower()


def test_lists_do_not_render_control_characters(cli, api):
    with api.create(name="evil\u202ename", labels={"a": "\x1b]0;t\x07"}) as box:
        for args in (("ls",), ("info", box.id)):
            out = cli(*args).stdout
            assert b"\x1b" not in out and b"\x07" not in out and "\u202e".encode() not in out


def test_doctor_and_completions(cli):
    r = cli("doctor", code=None)
    for word in (b"seccomp", b"cgroup", b"Landlock", b"KVM"):
        assert word.lower() in r.stdout.lower(), word
    for shell in ("bash", "zsh", "fish"):
        text = cli("completion", shell, code=None)
        if text.returncode != 0:
            text = cli("completions", shell)
        assert b"glovebox" in text.stdout and len(text.stdout) > 200


def test_config_check(cli, tmp_path):
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text('listen = "127.0.0.1:7070"\n')
    bad.write_text('listne = "x"\nlog.level = "loud"\n')
    cli("config", "check", str(good))
    r = cli("config", "check", str(bad), code=None)
    text = r.stdout + r.stderr
    assert r.returncode != 0 and b"listne" in text and b"log.level" in text and b"2" in text


def test_interrupt_ends_a_run_and_its_sandbox(platform, api):
    before = len(api.list_all(state="running"))
    p = subprocess.Popen([program("glovebox"), "run", "--", "sleep", "60"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env={**os.environ, "GLOVEBOX_URL": f"unix://{platform.socket}"})
    until(lambda: len(api.list_all(state="running")) > before)
    time.sleep(0.5)
    p.send_signal(2)
    p.communicate(timeout=20)
    assert p.returncode not in (0, None)
    until(lambda: len(api.list_all(state="running")) == before, 15, "its sandbox is gone")
