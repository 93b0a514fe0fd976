/* SPDX-License-Identifier: Apache-2.0 */
#include "properties.h"

#include "../../nif/etrace_wire.h"

#define WHERE PROPERTY_WHERE
#define FIELD PROPERTY_FIELD
#define BY PROPERTY_BY
#define HEAD PROPERTY_HEAD
#define PLAIN PROPERTY_PLAIN
#define NODE PROPERTY_NODE
#define NEEDS_RETURN PROPERTY_NEEDS_RETURN
#define NEEDS_CALLER PROPERTY_NEEDS_CALLER
#define NEEDS_SENDER PROPERTY_NEEDS_SENDER
#define COLLECTED PROPERTY_COLLECTED
#define AROUND PROPERTY_AROUND

const struct property_row property_rows[PROPERTIES] = {
#define PROPERTY(name, type, uses, events, json, doc) {#name, type, uses, events, json, doc},
#include "properties.def"
};
