"""Create, look at, list, extend, pause, delete."""

import datetime
import re
import threading
import time

import pytest

from gbx.api import BASE, refused
from gbx.wait import Stopwatch, until


def when(text):
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text), text
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_create_answers_a_running_sandbox_with_its_defaults(api):
    with api.create() as box:
        f = box.fields
        assert re.fullmatch(r"sb-[a-z0-9]{20}", f["id"])
        assert f["state"] == "running"
        assert f["template"] == "host"
        assert f["isolation"] == "shared-kernel" and f["runtime"] == "native"
        assert f["labels"] == {} and f["on_timeout"] == "kill" and f["idle_timeout_s"] is None
        assert f["reason"] is None and f["ended_at"] is None
        assert set(f["limits"]) == {"memory_bytes", "disk_bytes", "cpus", "pids"}
        assert abs(when(f["created_at"]) - time.time()) < 10
        assert abs(when(f["expires_at"]) - when(f["created_at"]) - 300) < 2
        assert box.info() == f


def test_create_takes_every_field(api):
    with api.create(name="my box", timeout_s=77.5, idle_timeout_s=60, on_timeout="pause",
                    isolation="shared-kernel", template="host", env={"A": "b"},
                    labels={"k": "v", "ünï": "çödé"},
                    limits={"memory_bytes": 256 << 20, "disk_bytes": 512 << 20, "cpus": 0.5,
                            "pids": 100}) as box:
        f = box.info()
        assert f["name"] == "my box" and f["on_timeout"] == "pause" and f["idle_timeout_s"] == 60
        assert f["labels"] == {"k": "v", "ünï": "çödé"}
        assert f["limits"] == {"memory_bytes": 256 << 20, "disk_bytes": 512 << 20, "cpus": 0.5,
                               "pids": 100}
        assert abs(when(f["expires_at"]) - when(f["created_at"]) - 77.5) < 2
        assert box.sh("echo $A") == "b\n"


def test_an_isolation_that_no_runtime_gives_is_refused(api):
    for rung in ("user-kernel", "vm"):
        error = refused(400, "invalid", api.create, isolation=rung)
        assert rung in error.message


def test_delete_is_idempotent_and_unknown_is_not_found(api):
    box = api.create()
    assert api.reply("DELETE", box.path()).status == 204
    assert api.reply("DELETE", box.path()).status == 204
    info = box.info()
    assert info["state"] == "stopped" and info["ended_at"]
    assert box.id not in [s["id"] for s in api.list_all(state="running")]
    refused(404, "not_found", api.call, "DELETE", f"{BASE}/sandboxes/sb-{'z' * 20}")
    refused(404, "not_found", api.call, "GET", f"{BASE}/sandboxes/sb-{'z' * 20}")


def test_a_stopped_sandbox_takes_no_commands(api):
    box = api.create()
    box.delete()
    for call in (lambda: box.exec("true"), lambda: box.get("x"), box.pause, box.resume,
                 lambda: box.extend(timeout_s=10)):
        refused(409, "conflict", call)


def test_the_same_key_and_body_give_the_same_sandbox(api):
    first = api.create(idempotency_key="key-1", labels={"a": "1"})
    again = api.create(idempotency_key="key-1", labels={"a": "1"})
    assert again.id == first.id
    refused(409, "conflict", api.create, idempotency_key="key-1", labels={"a": "2"})
    other = api.create(idempotency_key="key-2", labels={"a": "1"})
    assert other.id != first.id
    first.delete()
    other.delete()


def test_concurrent_creates_with_one_key_make_one_sandbox(api):
    ids, errors = [], []

    def one():
        try:
            ids.append(api.create(idempotency_key="race").id)
        except Exception as error:  # noqa: BLE001 - reported below
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(8)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not errors and len(ids) == 8 and len(set(ids)) == 1
    api.sandbox(ids[0]).delete()


def test_idempotency_keys_have_bounds(api):
    api.create(idempotency_key="k" * 255).delete()
    refused(400, "invalid", api.create, idempotency_key="k" * 256)
    refused(400, "invalid", api.call, "POST", f"{BASE}/sandboxes", {}, {"Idempotency-Key": ""})


def test_lists_page_by_cursor_and_filter_by_label(api):
    boxes = [api.create(labels={"page": "yes", "n": str(n % 2)}) for n in range(5)]
    try:
        page = api.list(labels=["page=yes"], limit=2)
        assert len(page["sandboxes"]) == 2 and page["next_cursor"]
        seen = [s["id"] for s in page["sandboxes"]]
        while page["next_cursor"]:
            page = api.list(labels=["page=yes"], limit=2, cursor=page["next_cursor"])
            seen += [s["id"] for s in page["sandboxes"]]
        assert sorted(seen) == sorted(b.id for b in boxes) and len(seen) == 5
        ones = api.list(labels=["page=yes", "n=1"])["sandboxes"]
        assert sorted(s["id"] for s in ones) == sorted(b.id for b in boxes[1::2])
        assert api.list(labels=["page=no"]) == {"sandboxes": [], "next_cursor": None}
        boxes[0].pause()
        paused = api.list(labels=["page=yes"], state="paused")["sandboxes"]
        assert [s["id"] for s in paused] == [boxes[0].id]
        both = api.list(labels=["page=yes"], state="running,paused")["sandboxes"]
        assert len(both) == 5
    finally:
        [b.delete() for b in boxes]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "cursor=%00", "state=asleep",
                                   "label=novalue", "unknown=1", "cursor=AAAA"])
def test_a_bad_list_query_is_refused(api, query):
    refused(400, "invalid", api.call, "GET", f"{BASE}/sandboxes?{query}")


def test_paging_while_sandboxes_come_and_go_repeats_and_loses_none(api):
    boxes = [api.create(labels={"stable": "yes"}) for _ in range(4)]
    passing = api.create(labels={"stable": "yes"})
    first = api.list(labels=["stable=yes"], limit=2)
    passing.delete()
    late = api.create(labels={"stable": "yes"})
    seen = [s["id"] for s in first["sandboxes"]]
    cursor = first["next_cursor"]
    while cursor:
        page = api.list(labels=["stable=yes"], limit=2, cursor=cursor)
        seen += [s["id"] for s in page["sandboxes"]]
        cursor = page["next_cursor"]
    [b.delete() for b in [*boxes, late]]
    assert len(seen) == len(set(seen))
    assert {b.id for b in boxes} <= set(seen)


def test_extend_sets_the_end_from_now_and_may_shorten(fresh):
    now = time.time()
    longer = fresh.extend(timeout_s=1000)
    assert abs(when(longer["expires_at"]) - now - 1000) < 5
    shorter = fresh.extend(timeout_s=100)
    assert abs(when(shorter["expires_at"]) - now - 100) < 5
    at = datetime.datetime.fromtimestamp(now + 500, datetime.timezone.utc)
    exact = fresh.extend(expires_at=at.strftime("%Y-%m-%dT%H:%M:%S.") + "250Z")
    assert exact["expires_at"].endswith(".250Z")
    for bad in ({"timeout_s": 0}, {"timeout_s": -1}, {"timeout_s": 1e12}, {"timeout_s": "1"}, {},
                {"expires_at": "yesterday"}, {"timeout_s": 5, "expires_at": exact["expires_at"]}):
        refused(400, "invalid", fresh.extend, **bad)


def test_a_sandbox_ends_at_its_time_and_not_before(api):
    box = api.create(timeout_s=2)
    watch = Stopwatch()
    marker = box.sh("echo ready")
    assert marker == "ready\n"
    until(lambda: box.info()["state"] == "stopped", 8, "expiry", 0.05)
    assert 1.7 < watch.s < 6
    assert "expired" in box.info()["reason"].lower() or "timeout" in box.info()["reason"].lower()


def test_extend_just_before_the_end_wins_over_expiry(api):
    for margin in (0.3, 0.15):
        box = api.create(timeout_s=1)
        end = when(box.fields["expires_at"])
        time.sleep(max(0, end - margin - time.time()))
        reply = box.reply("POST", "extend", {"timeout_s": 60})
        if reply.status == 200:
            time.sleep(1.2)
            assert box.info()["state"] == "running", "an acknowledged extension holds"
            box.delete()
        else:
            assert reply.status in (404, 409), reply


def test_on_timeout_pause_pauses_and_keeps_the_files(api):
    box = api.create(timeout_s=1, on_timeout="pause")
    box.put("kept", b"kept")
    until(lambda: box.state == "paused", 8, "paused at its end", 0.05)
    box.resume()
    box.extend(timeout_s=60)
    assert box.get("kept") == b"kept"
    box.delete()


def test_idle_sandboxes_end_and_busy_ones_do_not(api):
    idle = api.create(idle_timeout_s=1, timeout_s=120)
    busy = api.create(idle_timeout_s=1, timeout_s=120)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        busy.exec("true")
        time.sleep(0.2)
    assert busy.state == "running"
    until(lambda: idle.state == "stopped", 8, "idle end")
    assert "idle" in idle.info()["reason"].lower()
    busy.delete()


def test_a_running_command_is_not_idle(api):
    box = api.create(idle_timeout_s=1, timeout_s=60)
    assert box.exec("sleep 2.5; echo done").out == b"done\n"
    box.delete()


def test_pause_stops_the_clock_of_a_process_and_resume_goes_on(fresh):
    pid = fresh.start("i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.05; done")
    until(lambda: fresh.exec("cat /tmp/count").out.strip().isdigit())
    assert fresh.pause()["state"] == "paused"
    refused(409, "conflict", fresh.exec, "true")
    refused(409, "conflict", fresh.get, "/tmp/count")
    assert fresh.pause()["state"] == "paused", "again: nothing happens"
    assert fresh.info()["state"] == "paused"
    time.sleep(0.6)
    assert fresh.resume()["state"] == "running"
    assert fresh.resume()["state"] == "running", "again: nothing happens"
    assert fresh.process(pid)["pid"] == pid
    before = int(fresh.sh("cat /tmp/count"))
    until(lambda: int(fresh.sh("cat /tmp/count") or 0) > before, 5, "it counts again")
    assert before < 200


def test_a_paused_sandbox_can_be_deleted(api):
    box = api.create()
    box.pause()
    box.delete()
    assert box.state == "stopped"


def test_sandbox_metrics_show_use_and_limits(api):
    with api.create(limits={"memory_bytes": 128 << 20, "disk_bytes": 256 << 20, "cpus": 0.5,
                            "pids": 64}) as box:
        box.exec("head -c 20000000 /dev/zero > ~/x; sync; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
        m = box.metrics()
        assert m["memory_limit_bytes"] == 128 << 20 and m["disk_limit_bytes"] == 256 << 20
        assert m["cpus"] == 0.5 and m["pids_limit"] == 64
        assert m["cpu_us"] > 1000 and 0 < m["memory_bytes"] <= m["memory_limit_bytes"]
        assert m["memory_peak_bytes"] >= m["memory_bytes"]
        assert 1 <= m["pids"] < 10 and m["oom_kills"] == 0
        assert m["disk_used_bytes"] >= 19_000_000


def test_a_sandbox_whose_first_process_dies_is_failed_with_a_reason(api, platform):
    box = api.create()
    platform.kill_agent(box)
    until(lambda: box.state == "failed", 5, "noticed")
    info = box.info()
    assert info["reason"] and info["ended_at"]
    error = refused(409, "conflict", box.exec, "true")
    assert "failed" in error.message
    box.delete()


def test_two_sandboxes_share_nothing(api):
    with api.create() as a, api.create() as b:
        a.put("/tmp/mine", b"a")
        a.sh("echo a > /dev/shm/mine")
        refused(404, "not_found", b.get, "/tmp/mine")
        assert b.exec("ls /dev/shm/mine").code != 0
        assert a.sh("id -u") == b.sh("id -u")
        one = {p["pid"] for p in a.processes()}
        a.start("sleep 60")
        assert "sleep" not in b.sh("cat /proc/[0-9]*/comm")
        assert one is not None
