/* SPDX-License-Identifier: Apache-2.0 */
#include "page_parts.h"

/* The files of pages/ as strings: page_css is page.css. */
#define PART(name) static const char name[] =
PART(page_css)
#include "page.css.inc"
PART(page_html)
#include "page.html.inc"
PART(page_js)
#include "page.js.inc"
PART(flame_css)
#include "flame.css.inc"
PART(flame_js)
#include "flame.js.inc"
PART(flame_html)
#include "flame.html.inc"
PART(flame_svg)
#include "flame.svg.inc"
PART(flame_body_svg)
#include "flame_body.svg.inc"
PART(sequence_css)
#include "sequence.css.inc"
PART(sequence_js)
#include "sequence.js.inc"
PART(sequence_html)
#include "sequence.html.inc"
PART(sequence_body_html)
#include "sequence_body.html.inc"

void page_begin(struct buf *to, enum page_kind kind, const struct page_still *still)
{
    if (kind == PAGE_SEQUENCE) {
        buf_puts(to, page_html);
        buf_puts(to, sequence_html);
        buf_puts(to, page_css);
        buf_puts(to, sequence_css);
        buf_puts(to, sequence_body_html);
    } else {
        buf_puts(to, kind == PAGE_FLAME_HTML ? page_html : "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        buf_puts(to, kind == PAGE_FLAME_HTML ? flame_html : "");
        buf_printf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"etrace\" width=\"%d\" height=\"%d\" ",
                   still->width, still->height);
        buf_printf(to, "viewBox=\"0 0 %d %d\" ", still->width, still->height);
        buf_puts(to, flame_svg);
        buf_puts(to, page_css);
        buf_puts(to, flame_css);
        buf_puts(to, "]]></style>\n");
        buf_str(to, buf_view(&still->shapes));
        buf_puts(to, flame_body_svg);
    }
    buf_puts(to, "const data = ");
}

void page_end(struct buf *to, enum page_kind kind)
{
    buf_puts(to, ";\n");
    buf_puts(to, page_js);
    if (kind == PAGE_SEQUENCE) {
        buf_puts(to, sequence_js);
        buf_puts(to, "</script>\n</body>\n</html>\n");
    } else {
        buf_puts(to, flame_js);
        buf_puts(to, "]]></script>\n</svg>\n");
        buf_puts(to, kind == PAGE_FLAME_HTML ? "</body>\n</html>\n" : "");
    }
}
