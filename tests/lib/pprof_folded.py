# SPDX-License-Identifier: Apache-2.0
"""Prints a pprof profile as folded stacks with the last value of each sample: python3 pprof_folded.py <FILE

It decodes the protocol buffer itself and checks that every reference in it has a target.
"""
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field; bytes for those with a length."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size
        else:
            raise ValueError(f"wire type {key & 7}")
        yield key >> 3, value


def packed(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def main():
    strings, functions, locations, samples, types = [], {}, {}, [], []
    for number, value in fields(sys.stdin.buffer.read()):
        if number == 1:
            types.append(dict(fields(value)))
        elif number == 2:
            samples.append(dict(fields(value)))
        elif number == 4:
            location = dict(fields(value))
            locations[location[1]] = dict(fields(location[4]))[1]
        elif number == 5:
            function = dict(fields(value))
            functions[function[1]] = function[2]
        elif number == 6:
            strings.append(value.decode())
    assert strings[0] == "" and types
    for value_type in types:
        print("#", strings[value_type[1]], strings[value_type[2]])
    for sample in samples:
        values = list(packed(sample[2]))
        assert len(values) == len(types)
        names = [strings[functions[locations[i]]].replace(";", ":") for i in packed(sample[1])]
        if values[-1]:
            print(";".join(reversed(names)), values[-1])


main()
