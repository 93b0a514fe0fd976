# SPDX-License-Identifier: Apache-2.0
"""Random conditions of `where`, for insides.py and answers.py: [TEST], ["not", [TEST]], or [and | or, CONDITION, CONDITION]."""


def spell(condition):
    if len(condition) == 1:
        return condition[0]
    if condition[0] == "not":
        return "not (%s)" % spell(condition[1])
    return "(%s %s %s)" % (spell(condition[1]), condition[0], spell(condition[2]))


def holds(condition, test):
    """Evaluates a condition. test(TEST) is true, false, or None if the event has no such value."""
    if len(condition) == 1:
        return test(condition[0])
    sides = [holds(side, test) for side in condition[1:]]
    if condition[0] == "not":
        return None if sides[0] is None else not sides[0]
    if condition[0] == "or":
        return True in sides
    return False not in sides and None not in sides
