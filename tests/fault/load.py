"""Work that keeps a record of what was acknowledged, so that losses can be found afterwards."""

import http.client
import random
import secrets
import threading
import time

from gbx.api import ApiError

PASSING = (ConnectionError, TimeoutError, http.client.HTTPException, OSError)


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.created = {}      # id -> idempotency key; acknowledged.
        self.files = {}        # id -> {path: bytes}; acknowledged.
        self.deleting = set()  # A delete was sent.
        self.deleted = set()   # A delete was acknowledged.
        self.crashed = set()   # We killed its first process.
        self.wrong = []        # Answers that are wrong whatever happens.
        self.done = 0          # Calls that succeeded.
        self.failed = 0        # Calls that failed with a passing fault.

    def alive(self):
        """Those that must be running: created, with nothing done to end them."""
        return [i for i in self.created if i not in self.deleting and i not in self.crashed]


class Load:
    """A few threads that create, write, run and delete until stop()."""

    def __init__(self, api, workers=3, keep=12, seed=None):
        self.api, self.keep = api, keep
        self.ledger = Ledger()
        self.random = random.Random(seed)
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(workers)]
        [t.start() for t in self.threads]

    def stop(self):
        self.stopping.set()
        [t.join(60) for t in self.threads]
        assert not any(t.is_alive() for t in self.threads), "a call hangs"

    def work(self):
        while not self.stopping.is_set():
            try:
                self.step()
                self.ledger.done += 1
            except ApiError as error:
                self.ledger.failed += 1
                # 404 and 409 may meet what another thread or our own kill has ended.
                if error.status not in (404, 409, 429, 503, 504):
                    self.ledger.wrong.append(str(error))
                time.sleep(.05)
            except PASSING:
                self.ledger.failed += 1
                time.sleep(.05)

    def pick(self):
        with self.ledger.lock:
            alive = self.ledger.alive()
        return self.api.sandbox(self.random.choice(alive)) if alive else None

    def step(self):
        ledger = self.ledger
        with ledger.lock:
            count = len(ledger.alive())
        choice = self.random.random()
        if count < 3 or (choice < .25 and count < self.keep):
            key = secrets.token_hex(8)
            box = self.api.create(idempotency_key=key, timeout_s=600, create_timeout_s=30)
            with ledger.lock:
                ledger.created[box.id] = key
        elif choice < .5:
            if box := self.pick():
                path, data = f"f{self.random.randrange(3)}-{secrets.token_hex(4)}", secrets.token_bytes(2000)
                box.put(path, data, timeout_s=15)
                with ledger.lock:
                    ledger.files.setdefault(box.id, {})[path] = data
        elif choice < .85:
            if box := self.pick():
                word = secrets.token_hex(4)
                r = box.exec(["/bin/echo", word], timeout_s=15)
                if r.out != word.encode() + b"\n":
                    ledger.wrong.append(f"echo {word}: {dict(r)}")
        elif count > 3:
            with ledger.lock:
                alive = ledger.alive()
                victim = self.random.choice(alive)
                ledger.deleting.add(victim)
            self.api.call("DELETE", self.api.sandbox(victim).path(), timeout_s=15)
            ledger.deleted.add(victim)


def verify(platform, ledger):
    """Nothing acknowledged is lost; nothing exists that nobody asked for."""
    api = platform.api
    assert not ledger.wrong, ledger.wrong[:5]
    assert ledger.done > 20, "the load did something"
    lost = []
    for i in ledger.alive():
        box = api.sandbox(i)
        state = box.state
        if state != "running":
            lost.append(f"{i} is {state}: {box.info()['reason']}")
            continue
        if box.exec(["/bin/echo", "here"]).out != b"here\n":
            lost.append(f"{i} does not run commands")
        for path, data in ledger.files.get(i, {}).items():
            if box.get(path) != data:
                lost.append(f"{i}: {path}")
        again = api.create(idempotency_key=ledger.created[i], timeout_s=600)
        if again.id != i:
            lost.append(f"{i}: its key gives {again.id}")
    assert not lost, lost
    back = [i for i in ledger.deleted if api.sandbox(i).state != "stopped"]
    assert not back, f"deleted, and not stopped: {back}"
