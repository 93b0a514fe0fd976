#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the rows of CSV on standard input are sorted.

usage: sorted_rows.py COLUMN asc|desc

Numbers come before texts, which are sorted by their characters. Empty cells come last in both directions. A column
that is not in the header is not checked. The row (other) must be the last one.
"""
import csv
import re
import sys
from decimal import Decimal

NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def value(cell):
    return (0, Decimal(cell), "") if NUMBER.fullmatch(cell) else (1, Decimal(0), cell)


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
