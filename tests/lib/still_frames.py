# SPDX-License-Identifier: Apache-2.0
# still_frames.py FLAME.svg [PICTURE.png] - reads the plain shapes of a flame graph. Without a picture prints how many frames
# there are, and how many of them are not inside of a frame of the row above. With a picture of them at the top left prints how
# many frames at least 8 pixels wide it shows in their colours, and how many it does not.
import colorsys
import re
import struct
import sys
import zlib
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"


def frames(path):
    groups = next(g for g in tree.parse(path).iter(SVG + "g") if g.get("id") == "frames")
    for group in groups:
        rect = group.find(SVG + "rect")
        hue = int(re.search(r"hsl\((\d+),", rect.get("fill")).group(1))
        yield tuple(float(rect.get(name)) for name in ("x", "y", "width", "height")) + (hue,)


def pixels(path):
    """Returns the rows of an image without a palette, and the bytes of a pixel."""
    with open(path, "rb") as file:
        data = file.read()
    at, parts = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", data[at + 8:at + 18])
        elif kind == b"IDAT":
            parts += data[at + 8:at + 8 + length]
        at += length + 12
    each = {2: 3, 6: 4}[colours]
    assert depth == 8
    raw, rows, before = zlib.decompress(parts), [], bytearray(width * each)
    for y in range(height):
        begin = y * (width * each + 1)
        how, line = raw[begin], bytearray(raw[begin + 1:begin + 1 + width * each])
        for i in range(len(line)):
            left = line[i - each] if i >= each else 0
            up, corner = before[i], before[i - each] if i >= each else 0
            if how == 1:
                line[i] = (line[i] + left) & 255
            elif how == 2:
                line[i] = (line[i] + up) & 255
            elif how == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif how == 4:
                guess = left + up - corner
                nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
                line[i] = (line[i] + nearest[2]) & 255
        rows.append(line)
        before = line
    return rows, each


def shows(rows, each, frame):
    x, y, width, height, hue = frame
    at = int(x + width - 3) * each
    red, green, blue = (value / 255 for value in rows[int(y + height - 3)][at:at + 3])
    h, _, s = colorsys.rgb_to_hls(red, green, blue)
    return s > 0.1 and min(abs(h * 360 - hue), 360 - abs(h * 360 - hue)) < 6


found = list(frames(sys.argv[1]))
if len(sys.argv) < 3:
    ends = {}
    for x, y, width, _, _ in found:
        ends.setdefault(y, []).append((x, x + width))
    first = min(ends)
    step = min((y - first for y in ends if y > first), default=1)
    outside = [f for f in found if f[1] > first and not any(
        a <= f[0] + 0.02 and f[0] + f[2] <= b + 0.02 for a, b in ends.get(f[1] - step, []))]
    print(len(found), len(outside))
else:
    rows, each = pixels(sys.argv[2])
    seen = [shows(rows, each, f) for f in found if f[2] >= 8]
    print(seen.count(True), seen.count(False))
