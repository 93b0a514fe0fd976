#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Computes from a complete recording of a program of programs.erl what the node must answer to random questions.
# usage: answers.py make SEED COUNT [snapshots]
# Makes questions, with `snapshots` also about those of the flight recorder. Prints for each a line with tabs: its
# description as JSON, and the arguments of etrace.
# usage: answers.py judge DESCRIPTION COMPLETE OUT ERR
# COMPLETE: the events of the complete recording, as JSON. OUT, ERR: what etrace printed. Prints what differs. Events that
# the answer declares as lost, and results of functions that it says are loops, may be missing.
import collections
import json
import random
import re
import sys

from conditions import holds, spell

MODULES = ["rnd_a", "rnd_b", "rnd_c"]
FUNCTIONS = ["a", "b", "c", "d", "l", "k"]
EVENTS = ("call", "return", "exception", "send", "receive")

GUARDS = {
    "": lambda p, n: True,
    " when N > 2": lambda p, n: n > 2,
    " when N < 3": lambda p, n: n < 3,
    " when N rem 2 == 0": lambda p, n: n % 2 == 0,
    " when P == 1": lambda p, n: p == 1,
    " when P > 4, N > 0": lambda p, n: p > 4 and n > 0,
}

# The tests of a result: of the text of its value, or of the class of its exception.
VALUES = {
    "ret = {ok, _}": lambda v: v.startswith("{ok,"),
    "ret = {error, _}": lambda v: v.startswith("{error,"),
    "ret == leaf": lambda v: v == "leaf",
    "is_integer(ret)": lambda v: is_integer(v),
    "is_atom(ret)": lambda v: v[0].isalpha(),
    "is_list(ret)": lambda v: v[0] in '["',
    "is_tuple(ret)": lambda v: v[0] == "{",
}
CLASSES = ["error", "exit", "throw"]


def is_integer(text):
    return re.fullmatch(r"-?\d+", text) is not None


def is_number(text):
    return re.fullmatch(r"-?\d+(\.\d+)?(e[-+]?\d+)?", text) is not None


# ---- questions ----


def make_condition(depth):
    if depth and random.random() < 0.5:
        return [random.choice(["and", "or", "or"]), make_condition(depth - 1), make_condition(depth - 1)]
    test = [random.choice(list(VALUES) + ["class == %s" % c for c in CLASSES] + ["dur >= 0ns", "dur > 1h"])]
    return ["not", test] if random.random() < 0.2 else test


def make_heads(most):
    heads = [[m, f] for m in MODULES for f in FUNCTIONS]
    return random.sample(heads, random.randint(1, most))


def spell_heads(heads, guard):
    return " | ".join("%s:%s(P, N)" % (m, f) for m, f in heads) + guard


EARLY_KEYS = ["P", "N", "tag(N)", "pid", "f", "m", "mfa", "a"]
LATE_KEYS = ["ret", "tag(ret)", "class", "element(1, ret)", "reason"]
VALUES_OF_ROWS = ["sum(N)", "min(N)", "max(N)", "avg(N)", "sum(ret)", "max(ret)", "max(dur)", "hist(N)"]


MESSAGES = {"send": "send(_, {mark, P, N})", "receive": "recv({mark, P, N})"}


def make_question(snapshots):
    kind = random.choice(["events", "figures", "figures", "by", "by", "by", "inside", "inside", "inside", "ring"] + ["snapshot"] * snapshots)
    q = {"kind": kind, "probes": [[make_heads(18 if random.random() < 0.5 else 4), random.choice(list(GUARDS))]], "returns": True,
         "messages": [], "where": make_condition(2) if random.random() < 0.4 else None, "roots": None}
    if random.random() < 0.3:
        rest = [[m, f] for m in MODULES for f in FUNCTIONS if [m, f] not in q["probes"][0][0]]
        q["probes"] += [[random.sample(rest, random.randint(1, len(rest))), random.choice(list(GUARDS))]] if rest else []
    args, beside, end = ["--json", "--rate", "0"], [], ""
    if kind == "inside" or (kind == "figures" and random.random() < 0.3):
        q["where"] = None
        q["roots"], q["root_guard"] = make_heads(4), random.choice(list(GUARDS))
        q["keep"] = make_condition(2) if random.random() < 0.6 else None
        q["messages"] = random.sample(list(MESSAGES), random.randint(0, 2)) if kind == "inside" else []
        end = " inside (%s%s)" % (spell_heads(q["roots"], q["root_guard"]), " where " + spell(q["keep"]) if q["keep"] else "")
        beside = [MESSAGES[m] + end for m in q["messages"]]
        q["returns"] = random.random() < 0.7
    elif kind == "by":
        if random.random() < 0.15:
            q["messages"], q["probes"], q["where"] = [random.choice(list(MESSAGES))], [], None
        early = random.sample(EARLY_KEYS[:4] if q["messages"] else EARLY_KEYS, random.randint(0, 2))
        late = [] if q["messages"] else random.sample(LATE_KEYS, random.choice([0, 1, 1, 2]))
        q["keys"] = random.sample(early + late or ["N"], len(early + late) or 1)
        q["values"] = ["count"] + random.sample([v for v in VALUES_OF_ROWS if not q["messages"] or "(N)" in v], random.randint(0, 3))
        end = " by %s: %s" % (", ".join(q["keys"]), ", ".join(q["values"]))
        beside = [MESSAGES[m] + end for m in q["messages"]]
        args[-1] = random.choice(["0", "1000000"])
    elif kind == "figures":
        q["returns"] = bool(q["where"]) or random.random() < 0.7
    if kind == "figures":
        args = ["-c", "--rate", "10"]
    elif kind == "ring" or kind == "snapshot":
        q["where"] = None
        # The smallest ring overwrites the events of a program with thousands of turns.
        args += ["--ring", "256kB" if len(q["probes"][0][0]) % 2 else "32MB"]
    if kind == "snapshot":
        q["when"] = make_condition(1)
        args += ["--snapshot-when", spell(q["when"]), "--snapshot-after", "1h"]
    middle = (" -> return" if q["returns"] and kind != "by" else "") + (" where " + spell(q["where"]) if q["where"] else "")
    print("\t".join([json.dumps(q)] + args + [spell_heads(*probe) + middle + end for probe in q["probes"]] + beside))


# ---- the complete recording ----


class Call:
    def __init__(self, head, args):
        self.head, self.end = head, None
        self.p, self.n = map(int, args)

    def is_of(self, probes):
        return any(self.head in heads and GUARDS[guard](self.p, self.n) for heads, guard in probes)


def read_lines(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


# The events of each process, by its number: [event, its call]. A process without a call is left out.
def read_complete(path):
    stacks, found, numbers = {}, collections.defaultdict(list), {}
    for event in read_lines(path):
        if event["type"] not in EVENTS:
            continue
        pid = event["pid"]
        stack = stacks.setdefault(pid, [])
        call = None
        if event["type"] == "call":
            call = Call([event["m"], event["f"]], event["args"])
            numbers.setdefault(pid, call.p)
            stack.append(call)
        elif event["type"] in ("return", "exception"):
            # The calls above have no result: their function is a loop, or the process has left them.
            while stack and not call:
                call = stack.pop()
                if call.head != [event["m"], event["f"]]:
                    call = None
            if call:
                call.end = event
        if pid in numbers:
            found[numbers[pid]].append((event, call))
    return found


def accepts(condition, end):
    def is_true(test):
        if not end:
            return None
        if test.startswith("dur"):
            return test == "dur >= 0ns"
        if test.startswith("class"):
            return test == "class == " + end["class"] if "class" in end else None
        return VALUES[test](end["value"]) if "value" in end else None

    return holds(condition, is_true)


def text_of(event):
    if event["type"] == "call":
        return "call %s:%s(%s)" % (event["m"], event["f"], ",".join(event["args"]))
    if event["type"] == "return":
        return "return %s:%s %s" % (event["m"], event["f"], event["value"])
    if event["type"] == "exception":
        return "exception %s:%s %s:%s" % (event["m"], event["f"], event["class"], event["reason"])
    return "%s %s" % (event["type"], event["msg"])


# ---- what the node must answer ----


def selected(q, complete):
    """The events of each process that the probe shows, and the number of those that a condition on the result hides."""
    shown, hidden = {}, 0
    for number, events in complete.items():
        shown[number] = []
        for event, call in events:
            if not call or not call.is_of(q["probes"]):
                continue
            if event["type"] != "call" and not q["returns"]:
                continue
            if q["where"] and not accepts(q["where"], call.end):
                hidden += 1
            else:
                shown[number].append((event, call))
    return shown, hidden


def inside(q, complete):
    """The same for a probe with roots: a root that is open when another one is called decides about that, too."""
    shown, hidden = {}, 0
    for number, events in complete.items():
        shown[number], roots, tree, chosen = [], [], [], set()  # roots: the open ones, each with its place in the tree
        for event, call in events:
            is_call, root = event["type"] == "call", bool(call) and call.is_of([[q["roots"], q["root_guard"]]])
            if is_call:
                call.inside = root or bool(roots)
            if not call:
                asked = event["type"] in q["messages"] and roots
            else:
                asked = call.inside and (root or call.is_of(q["probes"]) and (is_call or q["returns"]))
            if not asked:
                continue
            if is_call and root:
                roots.append((call, len(tree)))
            tree.append((event, call))
            if root and not is_call:
                opened, first = roots.pop()
                while opened is not call:
                    opened, first = roots.pop()
                if not q["keep"] or accepts(q["keep"], call.end):
                    chosen.update(range(first, len(tree)))
                if not roots:
                    shown[number] += [tree[i] for i in sorted(chosen)]
                    hidden += len(tree) - len(chosen)
                    tree, chosen = [], set()
        if q["keep"]:
            hidden += len(tree)
        else:
            shown[number] += tree
    return shown, hidden


def tag_of(text):
    if text[0].isalpha():
        return text
    if text[0] == "{":
        first = element_of(text)
        return first if first[0].isalpha() else "tuple()"
    if text[0] in '["':
        return "list()"
    if text[0] == "<":
        return "binary()"
    return "integer()" if is_integer(text) else "float()"


def element_of(text):
    return re.match(r"\{([^,{}\[\]]*)", text).group(1) if text.startswith("{") else None


def key_of(key, call):
    value = call.end.get("value") if call.end else None
    if key in ("P", "N"):
        return str(call.p if key == "P" else call.n)
    if key == "pid":
        return "*"
    if key == "tag(N)":
        return "integer()"
    if key in ("m", "f", "a"):
        return {"m": call.head[0], "f": call.head[1], "a": "2"}[key]
    if key == "mfa":
        return "%s:%s/2" % tuple(call.head)
    if key in ("class", "reason"):
        return call.end.get(key)
    if value is None:
        return None
    return value if key == "ret" else tag_of(value) if key == "tag(ret)" else element_of(value)


def number_of(value, call):
    if "(N)" in value:
        return call.n
    text = call.end.get("value") if call.end else None
    return None if text is None or not is_number(text) else float(text)


def aggregate(value, calls):
    numbers = [n for n in (number_of(value, c) for c in calls) if n is not None]
    if value.startswith("hist"):
        return len(numbers)
    if not numbers:
        return None
    how = value.split("(")[0]
    return {"sum": sum(numbers), "min": min(numbers), "max": max(numbers), "avg": sum(numbers) / len(numbers)}[how]


def is_late(key):
    return key in LATE_KEYS


def rows(q, complete):
    """The rows, the calls without a result, and the calls that a condition on the result hides."""
    groups, without, hidden = collections.defaultdict(list), 0, 0
    for number, events in complete.items():
        for event, call in events:
            if event["type"] in q["messages"]:
                call = Call(["", ""], event["msg"].strip("{}").split(",")[1:])
            elif event["type"] != "call" or not call.is_of(q["probes"]):
                continue
            if q["where"] and not accepts(q["where"], call.end):
                hidden += 1
            elif any(map(is_late, q["keys"])) and not call.end:
                without += 1
            else:
                groups[(number if "pid" in q["keys"] else 0, tuple(key_of(k, call) for k in q["keys"]))].append(call)
    timed = [v for v in q["values"] if v not in ("count", "max(dur)")]
    return collections.Counter((key, len(calls), tuple(rounded(aggregate(v, calls)) for v in timed))
                               for (_, key), calls in groups.items()), without, hidden


def rounded(number):
    return number if number is None else round(number, 3)


# ---- comparing ----


class Judge:
    def __init__(self, q, complete, out, err):
        self.q, self.complete, self.out = q, complete, out
        self.said = err
        self.summary = next((line for line in out if line["type"] == "summary"), None)
        self.table = next((line for line in out if line["type"] == "table"), None)
        self.overwritten = 0
        self.loops = set(re.findall(r"^etrace: (\S+)/2 calls itself in a loop", err, re.M))
        if q["roots"] and "calls of roots in its loops are not shown" in err:
            self.loops.update("%s:%s" % (m, f) for m, f in q["roots"])
        self.wrong = []

    def differs(self, what, want, got):
        if want != got:
            self.wrong.append("%s: %s, and not %s" % (what, got, want))

    def totals(self):
        """The last message: its number of events and the other ones by their words."""
        line = re.findall(r"^etrace: (\d+) events? in [^·\n]*(.*)$", self.said, re.M)
        if not line:
            self.wrong.append("no totals: " + self.said)
            return 0, {}
        return int(line[-1][0]), {what.strip(): int(count) for count, what in re.findall(r"· (\d+) ([a-z ]+)", line[-1][1])}

    def account(self, seen, shown, hidden):
        """The totals in text and in JSON. Returns how many events are declared as lost."""
        events, parts = self.totals()
        lost = sum(count for what, count in parts.items() if what in ("lost", "missing"))
        self.overwritten = overwritten = parts.get("overwritten", 0)
        if self.summary:
            s = self.summary
            self.differs("the sum of the summary", s["seen"], s["shown"] + s["filtered"] + sum(s["lost"].values()) + s["missing"])
            self.differs("events in text", s["shown"], events)
            self.differs("filtered in text", s["filtered"], parts.get("filtered", 0))
            self.differs("lost in text", sum(s["lost"].values()) + s["missing"], lost + overwritten)
        if not lost and not self.loops:
            self.differs("events", shown, events + overwritten)
            self.differs("filtered", hidden, parts.get("filtered", 0))
            self.differs("seen", seen, events + parts.get("filtered", 0) + overwritten)
        return lost

    def is_loop(self, event):
        return "%s:%s" % (event.get("m"), event.get("f")) in self.loops

    def compare_events(self, want, lost):
        pids, got, missing = {}, collections.defaultdict(list), collections.Counter()
        for line in self.out:
            if line["type"] in EVENTS:
                if line["type"] == "call":
                    pids.setdefault(line["pid"], int(line["args"][0]))
                got[line["pid"]].append(line)
        # A process whose calls were all overwritten has no number.
        got = collections.defaultdict(list, {pids.get(pid): lines for pid, lines in got.items() if pid in pids or not self.overwritten})
        for number in sorted(set(got) | set(want), key=str):
            wanted = [event for event, _ in want.get(number, [])]
            # With a condition on the result, a call comes when it returns.
            for kinds in [["call"], ["return", "exception"]] if self.q["where"] else [EVENTS]:
                missing += self.compare_sequence(number, *([event for event in events if event["type"] in kinds] for events in (wanted, got[number])))
        # A call that is lost before the virtual machine traces it has no result.
        calls = missing["call"]
        lost -= sum(missing.values()) - min(calls, missing["return"] + missing["exception"])
        if lost < 0:
            self.wrong.append("%d events are missing that are not declared as lost: %s" % (-lost, dict(missing)))

    def compare_sequence(self, number, want, got):
        """Counts the missing events by their types. Those of a function that is a loop are declared by its name."""
        texts = [text_of(event) for event in got]
        if self.q["where"]:
            texts.sort()
            want = sorted(want, key=text_of)
        if self.overwritten: # then the last events are left
            texts, want = texts[::-1], want[::-1]
        missing, at = collections.Counter(), 0
        for event in want:
            if at == len(texts) and self.overwritten:
                break
            if at < len(texts) and texts[at] == text_of(event):
                at += 1
            else:
                missing[event["type"]] += not self.is_loop(event)
        if at < len(texts):
            self.wrong.append("process %s has %d events, and not %d; number %d should not be there: %s" % (
                number, len(texts), len(want), at, texts[at:at + 4]))
        return missing

    def events(self):
        want, hidden = (inside if self.q["roots"] else selected)(self.q, self.complete)
        shown = sum(map(len, want.values()))
        lost = self.account(shown + hidden, shown, hidden)
        if self.loops and self.q.get("keep"):
            # The decision of a root in a loop is not known any more.
            want, _ = inside(dict(self.q, keep=None), self.complete)
            lost = shown + hidden
        self.compare_events(want, lost)

    inside = ring = events

    def snapshot(self):
        want, _ = selected(self.q, self.complete)
        count = sum(map(len, want.values()))
        if any(e["type"] != "call" and accepts(self.q["when"], c.end) for events in want.values() for e, c in events):
            self.compare_events(want, self.account(count, count, 0))
        else:
            self.account(count, count, 0)
            self.differs("events", 0, self.totals()[0])

    def forgets(self):
        """The modules whose counters the node has lost. With counters alone, a reload loses the calls since the last look."""
        q = self.q
        alone = not (q["returns"] or q["where"] or q["roots"] or q["messages"] or any(guard for _, guard in q["probes"]))
        declared = any("reload" in line for line in self.text)
        return set(re.findall(r"^etrace: rearmed (\S+)", self.said, re.M)) if alone and declared else set()

    def figures(self):
        want, hidden = (inside if self.q["roots"] else selected)(self.q, self.complete)
        counts = collections.defaultdict(lambda: [0, 0])
        for event, call in (pair for events in want.values() for pair in events):
            counts["%s:%s/2" % tuple(call.head)][0] += event["type"] == "call"
            counts["%s:%s/2" % tuple(call.head)][1] += event["type"] == "exception"
        got = {}
        for line in self.text[1:]:
            if line.strip() and not line.startswith("*"):
                words = line.split()
                got[words[-1]] = [int(words[0]), int(words[1])]
        for function in counts:
            if function.split(":")[0] in self.forgets():
                counts[function][0] = min(counts[function][0], got.get(function, [0])[0])
        forgotten = sum(map(len, want.values())) - sum(map(sum, counts.values())) if self.forgets() else 0
        shown = sum(map(len, want.values())) - forgotten
        lost = self.account(shown + hidden, shown, hidden)
        for function in set(got) | set(counts):
            (calls, errors), (some, failed) = counts[function], got.get(function, [0, 0])
            lost -= calls - some
            if some > calls or failed > errors or (calls, errors) != (some, failed) and not lost + calls - some and not self.loops:
                self.wrong.append("%s has %d calls and %d errors, and not %d and %d" % (function, some, failed, calls, errors))
        if lost < 0 and not (self.loops and (self.q["where"] or self.q["roots"])):
            self.wrong.append("%d calls are missing that are not declared as lost" % -lost)

    def by(self):
        want, without, hidden = rows(self.q, self.complete)
        timed = [v for v in self.q["values"] if v not in ("count", "max(dur)")]
        got = collections.Counter()
        for line in self.out:
            if line["type"] == "row":
                key = tuple("*" if k == "pid" else str(v) if isinstance(v, dict) else v for k, v in zip(self.q["keys"], line.get("key", ["other"])))
                values = [line["values"][v] for v in timed]
                values = tuple(sum(b["count"] for b in v) if isinstance(v, list) else rounded(v) for v in values)
                got[(key, line["count"], values)] += 1
        if self.table["lost"] or self.table["missing"] or self.loops:
            count = sum(count for (_, count, _), rows_ in want.items() for _ in range(rows_)) + without
            shown = sum(count for (_, count, _), rows_ in got.items() for _ in range(rows_)) + self.table["without_result"]
            if shown > count or not self.q["where"] and shown + sum(self.table["lost"].values()) + self.table["missing"] < count:
                self.wrong.append("the table has %d calls, and not %d: %s" % (shown, count, self.table))
            return
        for row in sorted(set(want) | set(got), key=str):
            if want[row] != got[row]:
                self.wrong.append("%d and not %d rows %s" % (got[row], want[row], row))
        self.differs("without_result", without, self.table["without_result"])
        # A call and its result are two events if something asks for the result.
        results = self.q["where"] or any(map(is_late, self.q["keys"])) or any("(N)" not in v for v in self.q["values"][1:])
        found = [call for events in self.complete.values() for event, call in events
                 if event["type"] == "call" and call.is_of(self.q["probes"])]
        seen = len(found) + sum(1 for call in found if results and call.end) if not self.q["messages"] else sum(c for _, c, _ in want.elements())
        events, parts = self.totals()
        self.differs("all events", seen, events + parts.get("filtered", 0))


if sys.argv[1] == "make":
    random.seed(int(sys.argv[2]))
    for _ in range(int(sys.argv[3])):
        make_question(len(sys.argv) > 4)
else:
    q = json.loads(sys.argv[2])
    with open(sys.argv[5]) as err:
        said = err.read()
    judge = Judge(q, read_complete(sys.argv[3]), read_lines(sys.argv[4]) if q["kind"] != "figures" else [], said)
    if q["kind"] == "figures":
        with open(sys.argv[4]) as text:
            judge.text = text.read().splitlines()
    getattr(judge, q["kind"])()
    print("\n".join(judge.wrong[:12]))
