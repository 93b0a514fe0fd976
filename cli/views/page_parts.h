/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the fixed parts of self-contained pages, generated from pages/ at build time. Between page_begin() and
 * page_end() the caller writes the data of the page: a JavaScript object whose strings come from page_string().
 */
#ifndef ETRACE_PAGE_PARTS_H
#define ETRACE_PAGE_PARTS_H

#include "../ground/buf.h"

enum page_kind { PAGE_FLAME_SVG, PAGE_FLAME_HTML, PAGE_SEQUENCE };

/* The picture in a page for readers that run no script. */
struct page_still {
    int width, height;
    struct buf shapes; /* elements of an SVG */
};

void page_begin(struct buf *to, enum page_kind kind, const struct page_still *still); /* `still` is for flame graphs */
void page_end(struct buf *to, enum page_kind kind);

#endif
