#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the rows of CSV on standard input are sorted.

usage: sorted_rows.py COLUMN asc|desc

Numbers come before texts, which are sorted by their characters, and numbers in them by value. Empty cells come last in
both directions. A column that is not in the header is not checked. The row (other) must be the last one.
"""
import csv
import re
import sys
from decimal import Decimal

NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def parts(text):
    """The characters and the numbers of a text; digits are in the middle of the characters."""
    found = re.findall(r"[0-9]+|[^0-9]", text, re.S)
    return [(1, int(part)) if part[0] in "0123456789" else (0 if part < "0" else 2, ord(part)) for part in found]


def value(cell):
    return (0, Decimal(cell), [], "") if NUMBER.fullmatch(cell) else (1, Decimal(0), parts(cell), cell)


rows = list(csv.reader(sys.stdin))
column, direction = sys.argv[1:]
header = rows.pop(0)
if column not in header:
    sys.exit(0)
at = header.index(column)
others = [i for i, row in enumerate(rows) if "(other)" in row]
if others and others != [len(rows) - 1]:
    sys.exit(f"{column}:{direction}: (other) is row {others}")
cells = [row[at] for row in rows if "(other)" not in row]
known = [cell for cell in cells if cell]
if cells != known + [""] * (len(cells) - len(known)):
    sys.exit(f"{column}:{direction}: a row without a value is not the last one: {cells}")
if known != sorted(known, key=value, reverse=direction == "desc"):
    sys.exit(f"{column}:{direction}: {known}")
