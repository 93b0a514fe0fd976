#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Computes from a complete recording of trees.erl what a trace with `inside` shows.
# usage: insides.py RESULTS < JSON
# RESULTS: all | roots, whose results the probes report. The roots are the calls of trees:b with less than 4 levels left.
# thrown: all, but only in outermost roots that raise an exception, or else in inner ones that do. leaf: the same for
# roots that return [leaf]. A description of `make`: all, for its roots and its condition.
# Prints the events of each process in order: `PROCESS call F LEFT`, `PROCESS return F`, `PROCESS exception F`,
# `PROCESS spawn`, `PROCESS send MESSAGE` or `PROCESS receive MESSAGE`.
# With RESULTS `shown` it prints the events as they are, in the same form.
# usage: insides.py make SEED
# Makes random roots and a condition on their results. Prints them as an expression, and in a second line as a
# description: {"roots": [[F, ARGUMENT, COMPARISON, NUMBER], ...], "keep": CONDITION}, where CONDITION is null,
# [NAME], ["not", [NAME]], or [and | or, CONDITION, CONDITION].
import json
import random
import sys

from conditions import holds, spell

# The tests of a root's result: as in an expression, and of an event of the recording; None: the event has no such value.
TESTS = {
    "class == throw": lambda event: event["class"] == "throw" if "class" in event else None,
    "class == error": lambda event: event["class"] == "error" if "class" in event else None,
    "ret == leaf": lambda event: event["value"] == "leaf" if "value" in event else None,
    "ret == caught": lambda event: event["value"] == "caught" if "value" in event else None,
    "ret = [_]": lambda event: is_list(event["value"], 1) if "value" in event else None,
    "ret = [leaf]": lambda event: event["value"] == "[leaf]" if "value" in event else None,
    "ret = [_, _]": lambda event: is_list(event["value"], 2) if "value" in event else None,
    "is_atom(ret)": lambda event: event["value"] in ("leaf", "caught") if "value" in event else None,
    "is_list(ret)": lambda event: event["value"].startswith("[") if "value" in event else None,
}


def is_list(text, elements):
    depth = commas = 0
    for c in text:
        depth += (c == "[") - (c == "]")
        commas += c == "," and depth == 1
    return text.startswith("[") and commas == elements - 1


def make_condition(depth):
    if depth and random.random() < 0.6:
        return [random.choice(["and", "or", "or"]), make_condition(depth - 1), make_condition(depth - 1)]
    test = [random.choice(list(TESTS))]
    return ["not", test] if random.random() < 0.25 else test


def make(seed):
    random.seed(seed)
    comparison, number = random.choice([("<", random.randint(1, 6)), (">", random.randint(0, 4)), ("==", random.randint(1, 5))])
    roots = [[f, random.choice([0, 1, 1]), comparison, number] for f in random.sample("abc", random.randint(1, 3))]
    keep = make_condition(2) if random.random() < 0.8 else None
    heads = ["trees:%s(%s)" % (f, "_, X" if argument else "X, _") for f, argument, _, _ in roots]
    where = " where " + spell(keep) if keep else ""
    print("(%s when X %s %d%s)" % (" | ".join(heads), comparison, number, where))
    print(json.dumps({"roots": roots, "keep": keep}))


def is_root(call):
    for f, argument, comparison, number in description["roots"]:
        value = int(call["args"][argument])
        if call["f"] == f and {"<": value < number, ">": value > number, "==": value == number}[comparison]:
            return True
    return False


def is_accepted(event):
    return bool(holds(description["keep"], lambda test: TESTS[test](event)))


results = sys.argv[1]
if results == "make":
    make(int(sys.argv[2]))
    sys.exit()
named = {"thrown": ["class == throw"], "leaf": ["ret = [leaf]"]}
description = json.loads(results) if results.startswith("{") else {"roots": [["b", 1, "<", 4]], "keep": named.get(results)}
kept = {}  # of each process: [the index of the event that opened a root, its events]
stacks, lines, numbers = {}, {}, {}
for line in sys.stdin:
    event = json.loads(line)
    if event.get("type") not in ("call", "return", "exception", "send", "receive", "spawn"):
        continue
    pid = event["pid"]
    stack = stacks.setdefault(pid, [])
    root = False
    if event["type"] in ("send", "receive", "spawn"):
        if pid not in numbers:
            continue
        shown, text = bool(stack) and stack[-1][2], "%s %s" % (event["type"], event.get("msg", ""))
    elif event["type"] == "call":
        number = numbers.setdefault(pid, int(event["args"][0]))
        root = is_root(event)
        inside = root or (bool(stack) and stack[-1][2])
        stack.append((event["f"], root, inside))
        shown, text = inside, "call %s %s" % (event["f"], event["args"][1])
    else:
        text = "%s %s" % (event["type"], event["f"])
        if results != "shown":
            function, root, inside = stack.pop()
            assert function == event["f"], (function, event)
            shown = inside and (root or results != "roots")
    if description["keep"] and results != "shown" and shown:
        tree = kept.setdefault(pid, {"lines": [], "roots": [], "chosen": set()})
        if event["type"] == "call" and root:
            tree["roots"].append(len(tree["lines"]))
        tree["lines"].append(text)
        if event["type"] != "call" and root:
            first = tree["roots"].pop()
            if is_accepted(event):
                tree["chosen"].update(range(first, len(tree["lines"])))
            if not tree["roots"]:
                lines.setdefault(numbers[pid], []).extend(tree["lines"][i] for i in sorted(tree["chosen"]))
                del kept[pid]
    elif results == "shown" or shown:
        lines.setdefault(numbers[pid], []).append(text)
for number in sorted(lines):
    for text in lines[number]:
        print(number, text)
