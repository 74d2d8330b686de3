// SPDX-License-Identifier: MIT
// Checks an OTLP/JSON file against OpenTelemetry's own schema, as the npm package
// @opentelemetry/otlp-transformer has it.
// usage: node otlp.mjs BUILD_WEB FILE. Prints {"spans": N, "bytes": N of protobuf}; throws where the file
// breaks the schema.
import assert from "node:assert";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [, , web, file] = process.argv;
const require = createRequire(web + "/");
const { opentelemetry } = require("@opentelemetry/otlp-transformer/build/src/generated/root.js");
const Long = require("long");
const { common, resource, trace, collector } = opentelemetry.proto;

const IDS = { traceId: 16, spanId: 8, parentSpanId: 8 };
// true: signed
const LONG = { startTimeUnixNano: false, endTimeUnixNano: false, timeUnixNano: false, intValue: true };
const MESSAGES = {
    // field -> message
    resourceSpans: trace.v1.ResourceSpans,
    resource: resource.v1.Resource,
    scopeSpans: trace.v1.ScopeSpans,
    scope: common.v1.InstrumentationScope,
    spans: trace.v1.Span,
    attributes: common.v1.KeyValue,
    value: common.v1.AnyValue,
    events: trace.v1.Span.Event,
    links: trace.v1.Span.Link,
};

// OTLP/JSON -> what the schema's verify() takes: ids from hex, 64-bit integers from decimal strings. Unknown
// fields are an error there.
function typed(object, Message, path) {
    const out = {};
    for (const [key, value] of Object.entries(object)) {
        const at = `${path}.${key}`;
        assert(key in Message.prototype, `${at}: no such field`);
        if (key in IDS) {
            assert.match(value, new RegExp(`^[0-9a-f]{${2 * IDS[key]}}$`), at);
            assert.doesNotMatch(value, /^0+$/, at);
            out[key] = Buffer.from(value, "hex");
        } else if (key in LONG) {
            assert.match(value, /^-?\d+$/, at);
            out[key] = Long.fromString(value, !LONG[key]);
            assert.strictEqual(out[key].toString(), value, `${at}: out of 64 bits`);
        } else if (Array.isArray(value)) {
            out[key] = value.map((item, n) => typed(item, MESSAGES[key], `${at}[${n}]`));
        } else if (typeof value === "object") {
            out[key] = typed(value, MESSAGES[key], at);
        } else {
            out[key] = value;
        }
    }
    return out;
}

let spans = 0,
    bytes = 0;
const text = readFileSync(file, "utf8");
for (const document of file.endsWith(".jsonl") ? text.trimEnd().split("\n") : [text]) {
    const Request = collector.trace.v1.ExportTraceServiceRequest;
    const message = typed(JSON.parse(document), Request, "$");
    assert.strictEqual(Request.verify(message), null);
    const packed = Request.encode(Request.fromObject(message)).finish();
    bytes += packed.length;
    for (const r of Request.decode(packed).resourceSpans)
        for (const s of r.scopeSpans)
            for (const span of s.spans) {
                spans++;
                assert(span.traceId.length === 16 && span.spanId.length === 8, "ids");
                assert(span.startTimeUnixNano.lessThanOrEqual(span.endTimeUnixNano), span.name);
            }
}
console.log(JSON.stringify({ spans, bytes }));
