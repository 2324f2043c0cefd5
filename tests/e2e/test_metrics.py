"""/health, /ready, /metrics."""

import re

from gbx.wait import until

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\.)*"'
                    r'(?:,[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\.)*")*\})? (\S+)\Z')


def samples(api):
    reply = api.call("GET", "/metrics")
    assert reply.headers["Content-Type"].startswith("text/plain")
    out, typed = {}, set()
    for line in reply.text.splitlines():
        if line.startswith("# TYPE "):
            name = line.split()[2]
            assert name not in typed, f"{name} has two types"
            typed.add(name)
        elif line and not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match, f"not Prometheus text: {line!r}"
            base = re.sub(r"_(bucket|sum|count|total)\Z", "", match[1])
            assert match[1] in typed or base in typed, f"{match[1]} has no TYPE"
            out[match[1] + (match[2] or "")] = float(match[3])
    return out


def test_metrics_are_prometheus_text_with_our_prefix(api):
    found = samples(api)
    assert len(found) > 10
    foreign = {n.split("{")[0] for n in found if not n.startswith(("glovebox_", "process_"))}
    assert not foreign


def total(found, name, label=""):
    return sum(v for k, v in found.items() if k.split("{")[0] == name and label in k)


def test_sandboxes_are_counted_and_the_count_returns(api):
    name = "glovebox_sandboxes"
    before = total(samples(api), name, 'state="running"')
    boxes = [api.create() for _ in range(3)]
    assert total(samples(api), name, 'state="running"') == before + 3
    boxes[0].pause()
    assert total(samples(api), name, 'state="paused"') == 1
    [b.delete() for b in boxes]
    until(lambda: total(samples(api), name, 'state="running"') == before)


def test_no_sandbox_id_and_no_key_is_in_the_metrics(api, platform):
    with api.create(labels={"secret-label": "secret-value"}, name="secret-name") as box:
        box.exec("true")
        text = api.call("GET", "/metrics").text
        for word in (box.id, platform.key, "secret-label", "secret-value", "secret-name"):
            assert word not in text


def test_ready_says_a_line_a_check(api):
    reply = api.call("GET", "/ready")
    assert reply.status == 200 and len(reply.text.strip()) > 2
    assert api.call("GET", "/health").status == 200


def test_ready_fails_and_says_why_when_the_warden_is_away(own_platform):
    p = own_platform()
    p.warden.kill()
    reply = until(lambda: (r := p.api.reply("GET", "/ready")).status == 503 and r, 15, "not ready")
    assert "warden" in reply.text.lower() or "runtime" in reply.text.lower()
    assert p.api.reply("GET", "/health").status == 200
    p.start_warden()
    until(lambda: p.api.reply("GET", "/ready").status == 200, 20, "ready again")
    with p.api.create() as box:
        assert box.sh("echo back") == "back\n"
