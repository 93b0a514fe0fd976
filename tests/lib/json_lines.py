#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""json_lines.py SCHEMA FILE... - validates every line of the files against the JSON Schema. Prints the number of
lines, or the error."""
import json
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as f:
    schema = json.load(f)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
lines = bad = 0
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as f:
        for line in f:
            lines += 1
            try:
                error = next((e.message for e in validator.iter_errors(json.loads(line))), None)
            except json.JSONDecodeError as not_json:
                error = str(not_json)
            if error:
                bad += 1
                print(f"{path}: {error}\n    {line[:300].rstrip()}")
print(f"{lines} lines, {bad} wrong")
sys.exit(bad > 0)
