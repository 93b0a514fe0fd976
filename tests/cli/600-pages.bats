#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The pages in a browser: their look in light and dark, their reaction to mouse and keyboard, and their speed with a
# hundred thousand frames or messages. ETRACE_PICTURES is a directory for screenshots.

load ../lib/assert
load ../lib/browser

shop=$ETRACE_ROOT/tests/fixtures/shop.etr

setup_file() {
    local scene=$ETRACE_ROOT/build/tests/scene dir=$BATS_FILE_TMPDIR
    browser_begin || return 1
    page "$shop" --as flame -o "$dir/shop.svg" -o "$dir/shop.html"
    page "$shop" --as sequence -o "$dir/messages.html"
    "$scene" losses >"$dir/losses.etr"
    page "$dir/losses.etr" --as flame -o "$dir/losses.svg"
    page "$dir/losses.etr" --as sequence -o "$dir/losses.html"
    "$scene" hostile >"$dir/hostile.etr"
    page "$dir/hostile.etr" --as flame -o "$dir/hostile.svg" -o "$dir/hostile.html"
    page "$dir/hostile.etr" --as sequence -o "$dir/hostile-messages.html"
    "$scene" frames 100000 >"$dir/frames.etr"
    page "$dir/frames.etr" --as flame -o "$dir/frames.svg"
    "$scene" messages 100000 >"$dir/many.etr"
    page "$dir/many.etr" --as sequence -o "$dir/many.html"
}

teardown_file() { browser_end; }

page() { "$ETRACE_BIN" replay -q "$@"; }

open_page() { browser_open "$BATS_FILE_TMPDIR/$1" "${@:2}"; }

keep() { [[ -z ${ETRACE_PICTURES:-} ]] || picture "$ETRACE_PICTURES/$1.png"; }

# The least contrast between visible text and its background, by WCAG.
contrast='
    const light = c => { const v = c.match(/[\d.]+/g).slice(0, 3).map(x => { x /= 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
    const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
    const css = (n, p) => getComputedStyle(n)[p];'

assert_readable() { # SCRIPT: a list of pairs of colours
    local least
    least=$(js "$contrast return Math.min(...($1).map(([a, b]) => ratio(a, b)))")
    jq -en --argjson least "$least" '$least >= 4.5' >/dev/null || fail "the contrast is only $least"
}

frame() { echo "document.querySelector('#frames g[aria-label^=\"$1\"]')"; }

@test "flame: the SVG and the page are readable in light and dark" {
    for file in shop.svg shop.html; do
        for theme in light dark; do
            open_page "$file" "$theme"
            keep "flame-${file##*.}-$theme"
            assert_equal "$(js_text 'return document.getElementById("frames").getAttribute("data-zoomed")')" all
            assert_readable '[...document.querySelectorAll("#frames g")].filter(g => g.querySelector("text")).map(g => [css(g.querySelector("text"), "fill"), css(g.querySelector("rect"), "fill")])'
            assert_readable '[...document.querySelectorAll(".bar h1, .foot .keys, .bar label")].map(n => [css(n, "color"), css(n.closest(".bar, .foot"), "backgroundColor")])'
            assert_equal "$(js "$contrast"' return light(css(document.getElementById("etrace"), "backgroundColor")) > 0.5')" "$([[ $theme == light ]] && echo true || echo false)"
        done
    done
}

@test "flame: each frame lies inside its caller, and each text inside its frame" {
    open_page shop.svg
    [[ $(js 'return document.querySelectorAll("#frames g").length') -gt 8 ]]
    run js 'const at = g => g.querySelector("rect").getBBox(), level = g => Number(g.getAttribute("aria-level"));
        const all = [...document.querySelectorAll("#frames g")];
        return all.filter(g => level(g) > 1 && !all.some(p => level(p) === level(g) - 1 && at(p).x <= at(g).x + 0.1 && at(p).x + at(p).width >= at(g).x + at(g).width - 0.6)).length'
    assert_output 0
    run js 'return [...document.querySelectorAll("#frames g text")].filter(t => t.getBBox().width > t.parentNode.querySelector("rect").getBBox().width).length'
    assert_output 0
    # The page describes itself to screen readers.
    run js_text 'return [document.querySelector("title").textContent, document.getElementById("frames").getAttribute("role"), document.querySelector("#frames g").getAttribute("role")].join()'
    assert_output 'etrace: flame graph,tree,treeitem'
    run js 'return [...document.querySelectorAll("#frames g")].every(g => g.querySelector("title").textContent === g.getAttribute("aria-label"))'
    assert_output true
}

@test "flame: a click zooms in, callers stay visible, and Escape zooms out" {
    open_page shop.svg
    click '#frames g[aria-label^="shop_orders:handle_call"]'
    until_js 'document.getElementById("frames").getAttribute("data-zoomed") === "shop_orders:handle_call/3"'
    run js "return Math.round($(frame shop_orders:handle_call).querySelector('rect').getBBox().width)"
    assert_output 1200
    run js_text "return $(frame 'all ').getAttribute('class')"
    assert_output --partial above
    keys Escape
    until_js 'document.getElementById("frames").getAttribute("data-zoomed") === "all"'
    click '#frames g[aria-label^="shop_orders:take"]'
    click '#all'
    until_js 'document.getElementById("frames").getAttribute("data-zoomed") === "all"'
}

@test "flame: the keyboard alone moves, zooms and flips the graph" {
    open_page shop.html
    keys Down
    until_js 'document.activeElement.getAttribute("aria-level") === "2"'
    first=$(js_text 'return document.activeElement.getAttribute("aria-label")')
    keys Right
    until_js "document.activeElement.getAttribute('aria-label') !== '$first' && document.activeElement.getAttribute('aria-level') === '2'"
    keys Left
    until_js "document.activeElement.getAttribute('aria-label') === '$first'"
    run js_text 'return document.getElementById("status").textContent'
    assert_output "$first"
    keys Enter
    until_js "'$first'.startsWith(document.getElementById('frames').getAttribute('data-zoomed') + ' ')"
    keys Home
    until_js 'document.getElementById("frames").getAttribute("data-zoomed") === "all"'
    run js 'return document.querySelector("#frames g").querySelector("rect").getBBox().y'
    above=$output
    keys f
    until_js "document.querySelector('#frames g').querySelector('rect').getBBox().y > $above"
}

@test "flame: search finds plain text and regular expressions" {
    open_page shop.svg
    keys / r e p o
    until_js 'document.querySelectorAll("#frames .hit").length > 0'
    run js 'return [...document.querySelectorAll("#frames .hit")].every(g => g.getAttribute("aria-label").startsWith("Shop.Repo."))'
    assert_output true
    run js_text 'return document.getElementById("found").textContent'
    assert_output --regexp '^2 functions · [0-9.]+(us|ms) · [0-9.]+%$'
    keys Enter
    until_js 'document.activeElement.classList.contains("hit")'
    keys Escape
    until_js 'document.querySelectorAll("#frames .hit").length === 0'
    click '#regex'
    keys / ^ s h o p . '*' '(' t a k e '|' t o t a l ')' / 4
    until_js 'document.querySelectorAll("#frames .hit").length === 1'
    keys Escape / '('
    until_js 'document.getElementById("search").getAttribute("aria-invalid") === "true"'
    run js_text 'return document.getElementById("found").textContent'
    assert_output 'not a pattern'
}

@test "flame: own time shows each function with its callers below" {
    open_page shop.svg
    total=$(js_text "return $(frame shop_orders:take).getAttribute('aria-label')")
    js 'const m = document.getElementById("mode"); m.value = "own"; m.dispatchEvent(new Event("change"))' >/dev/null
    until_js "$(frame shop_orders:take) && $(frame shop_orders:take).getAttribute('aria-level') === '2'"
    own=$(awk '$1 ~ /take\/4$/ { printf "%.3g", $NF / 1000 }' "$ETRACE_ROOT/tests/fixtures/shop.folded")
    run js_text "return $(frame shop_orders:take).getAttribute('aria-label')"
    assert_output --partial " ${own}us "
    refute_output "$total"
    click '#frames g[aria-level="2"][aria-label^="shop_orders:take"]'
    until_js "document.querySelector('#frames g[aria-level=\"3\"][aria-label^=\"shop_orders:handle_call\"]')"
}

@test "flame: the graph lists lost events and incomplete calls" {
    for file in losses.svg losses.html; do
        open_page "$file" dark 700 400
        keep "missing-${file##*.}"
        run js_text 'const m = document.getElementById("missing"); return m.hidden ? "" : m.textContent'
        assert_output 'Missing: 4 events lost (guard), 2 calls incomplete'
        assert_readable '[[css(document.getElementById("missing"), "color"), css(document.getElementById("missing"), "backgroundColor")]]'
    done
    open_page shop.svg
    run js 'return document.getElementById("missing").hidden || getComputedStyle(document.getElementById("missing")).display === "none"'
    assert_output true
}

@test "flame: where no script runs, as in an image, the file shows the same frames and what is missing" {
    local svg=$BATS_FILE_TMPDIR/shop.svg theme
    printf '<body style="margin: 0"><img src="shop.svg"><p data-ready="yes"></p>' >"$BATS_FILE_TMPDIR/image.html"
    for theme in light dark; do
        open_page image.html "$theme"
        until_js 'document.images[0].complete && document.images[0].naturalWidth === 1200'
        picture "$BATS_TEST_TMPDIR/image.png"
        keep "flame-image-$theme"
        run python3 "$ETRACE_ROOT/tests/lib/still_frames.py" "$svg" "$BATS_TEST_TMPDIR/image.png"
        assert_success
        assert_output --regexp '^[0-9]{1,} 0$'
        [[ ${output% *} -gt 6 ]]
    done
    for file in shop losses hostile frames; do
        run python3 "$ETRACE_ROOT/tests/lib/still_frames.py" "$BATS_FILE_TMPDIR/$file.svg"
        assert_success
        assert_output --regexp '^[0-9]+ 0$'
        [[ ${output% *} -le 2000 ]]
    done
    grep -q '>Missing: 4 events lost (guard), 2 calls incomplete · ' "$BATS_FILE_TMPDIR/losses.svg"
    grep -q '>some frames are too narrow to be drawn · ' "$BATS_FILE_TMPDIR/frames.svg"
    # The script takes them away.
    open_page shop.svg
    run js 'return [document.getElementById("still"), document.documentElement.getAttribute("viewBox")]'
    assert_output '[null,null]'
}

@test "pages show data of a node as text and never as markup" {
    for file in hostile.svg hostile.html hostile-messages.html; do
        open_page "$file"
        run js 'return [typeof window.owned, document.querySelectorAll("img").length, document.querySelectorAll("script").length]'
        assert_output '["undefined",0,1]'
        run js_text 'return document.documentElement.textContent.includes("<script>window.owned=1</script>")'
        assert_output true
    done
}

@test "flame: a hundred thousand frames need few elements, and zooming finds narrow frames" {
    open_page frames.svg
    keep frames
    [[ $(js 'return data.nodes.length / 4') -eq 100000 ]]
    drawn=$(js 'return document.querySelectorAll("#etrace *").length')
    [[ $drawn -lt 20000 ]] || fail "the page has $drawn elements"
    run js_text 'return document.getElementById("narrow").textContent'
    assert_output --partial 'too narrow to be drawn'
    # Zoom to a frame that was far too narrow to be drawn.
    keys Down Down Down Down Down Down Down Enter
    until_js 'document.getElementById("frames").getAttribute("data-zoomed").startsWith("level6:")'
    run js 'return Math.round(document.querySelector("#frames .here rect").getBBox().width)'
    assert_output 1200
    keys Home / l e v e l 6 : w o r k 9
    until_js 'document.getElementById("found").textContent.startsWith("1 function")'
    # The limit is generous: it catches only delays of many seconds.
    run js 'const t = performance.now(); for (let i = 0; i < 5; i++) zoom(i % 2); return (performance.now() - t) / 5 < 10000'
    assert_output true
}

@test "sequence: lifelines, arrows and labels are readable in light and dark" {
    for theme in light dark; do
        open_page messages.html "$theme"
        keep "sequence-$theme"
        assert_readable '[...document.querySelectorAll("#view text")].map(t => [css(t, "fill"), css(document.body, "backgroundColor")])'
    done
    run js 'return document.querySelectorAll("#view .who").length > 3 && document.querySelectorAll("#view .row .arrow").length > 5'
    assert_output true
    run js_text 'return document.querySelector("#view .row:nth-of-type(n+2)").getAttribute("aria-label")'
    assert_output --regexp '^0\.[0-9]{6} (<0\.[0-9]+\.0>|elsewhere).* → <0\.[0-9]+\.0>'
    run js 'const n = document.querySelectorAll(".here"); return [n.length, document.getElementById("pane").getAttribute("aria-activedescendant") === n[0].id]'
    assert_output '[1,true]'
    # The page has as many arrows as the view for Mermaid.
    run js 'return shown.length'
    assert_output "$(grep -c -e '->>' -e '-)' "$ETRACE_ROOT/tests/fixtures/shop.mmd")"
}

@test "sequence: the keyboard, the search and a process select messages" {
    open_page messages.html
    all=$(js 'return shown.length')
    keys Down Down Up
    until_js 'document.querySelector(".here").dataset.n === "1"'
    keys End
    until_js "document.querySelector('.here').dataset.n === '$((all - 1))'"
    run js 'const h = document.querySelector(".here").getBoundingClientRect(), p = document.getElementById("pane").getBoundingClientRect(); return h.bottom <= p.bottom + 1 && h.top >= p.top'
    assert_output true
    keys Home Enter
    until_js 'columns.length === 2'
    keys Escape
    until_js "shown.length === $all"
    keys / r e s e r v e
    until_js "shown.length > 0 && shown.length < $all"
    run js 'return shown.every(i => /reserve/.test(texts[i]))'
    assert_output true
    keys Enter Escape
    until_js "shown.length === $all && document.activeElement.id === 'pane'"
    click '#view .who[aria-label*="anna"]'
    until_js 'shown.length > 0 && shown.every(i => /anna/.test(data.who[from(i)] + data.who[to(i)]))'
    click '#all'
    until_js "shown.length === $all"
    click '#regex'
    keys / '(' p l a c e '|' c h a r g e
    until_js 'document.getElementById("search").getAttribute("aria-invalid") === "true"'
    keys ')'
    until_js "shown.length > 0 && shown.length < $all"
}

@test "sequence: a hundred thousand messages need few elements, and End shows the last one" {
    open_page many.html
    run js 'return [shown.length, document.querySelectorAll("#view *").length < 2000]'
    assert_output '[100000,true]'
    keys End
    until_js 'document.querySelector(".here .msg") && document.querySelector(".here .msg").textContent === "{job,99999}"'
    keep many
    keys / 7 7 7 7 7
    until_js 'shown.length === 1 && document.querySelector(".here .msg").textContent === "{job,77777}"'
    run js 'const t = performance.now(); choose(); return performance.now() - t < 10000'
    assert_output true
    run js 'return about(shown[0]).includes("arrived after 400ns")'
    assert_output true
}

@test "sequence: m merges the messages of processes with the same name, and paper gets merged rows" {
    local all
    for file in messages.html many.html; do
        open_page "$file"
        all=$(js 'return shown.length')
        keys m
        until_js "merged && shown.length < $all"
        keep "merged-$file"
        # Each message is in one row, whose names and first word it has.
        run js 'return [...many.values()].reduce((sum, m) => sum + m.n, 0)'
        assert_output "$all"
        run js 'return new Set(shown.map(i => [kind(i), names[from(i)], names[to(i)], head(texts[i])].join())).size === shown.length'
        assert_output true
        run js_text 'return document.querySelector(".here .msg").textContent'
        [[ $file == messages.html ]] || assert_output --regexp '^×[0-9,]+ \{job$'
        # Enter shows one by one what a row stands for.
        keys Home Enter
        until_js '!merged && shown.length > 0'
        run js 'return shown.every(i => new Set([names[from(i)], names[to(i)]]).size <= 2)'
        assert_output true
        keys Escape
        until_js "shown.length === $all"
    done
    open_page many.html
    browser_do POST /print '{}' | jq -r . | base64 -d >"$BATS_TEST_TMPDIR/many.pdf"
    [[ $(head -c 5 "$BATS_TEST_TMPDIR/many.pdf") == %PDF- ]]
    # All rows are on it, and the page is as before.
    run js 'return [Number(document.getElementById("view").dataset.printed) <= 500, merged, printing, shown.length]'
    assert_output '[true,false,false,100000]'
}
