/* test: cc=-O2 san=address,undefined - hostile streams, images and dumps of firmware, their checksums right:
   no crash, strict JSON, the same at every look
   SPDX-License-Identifier: MIT

   usage: firmware [SEED [COUNT [FILE]]]: from this seed on so many; FILE gets the last one's bytes. */
#define FUZZ
#include "image.c"

extern const char __ehdr_start[];
static uint32_t chance_state;
static uint32_t chance(uint32_t below)
{
    chance_state = chance_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(chance_state ^ chance_state >> 15) * below >> 32);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A number near an edge, or any. */
static uint32_t edge(uint32_t usual)
{
    static const uint32_t edges[] = { 0, 1, 2, 15, 16, 17, 64, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
                                      0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF };
    const uint32_t kind = chance(12);
    if (kind < 8) return usual;
    if (kind < 10) return edges[chance(sizeof edges / sizeof *edges)];
    return kind == 10 ? usual + chance(40) - 20 : chance(UINT32_MAX);
}

static uint8_t made[1 << 17];
static size_t made_bytes;
static npuprof_compact_header_ header;
static uint32_t clock_now, sent;

static void put(const void *bytes, size_t count)
{
    if (made_bytes + count > sizeof made) return;
    memcpy(made + made_bytes, bytes, count);
    made_bytes += count;
}

static void begin_header(bool is_strange)
{
    static const uint8_t pointers[] = { 2, 4, 4, 8 };
    const uint32_t ring = chance(3);
    memset(&header, 0, sizeof header);
    memcpy(header.magic, "NPUPROF\n", 8);
    header.endian = 0x01020304u;
    header.format = 1;
    header.layout = chance(4) ? NPUPROF_LAYOUT_PARTS : NPUPROF_LAYOUT_COMPACT;
    header.header_bytes = sizeof header;
    header.clock_bits = (uint8_t)(chance(2) ? 32 : 8 + chance(57));
    header.context_bits = (uint8_t)chance(9);
    header.pointer_bytes = pointers[chance(4)];
    header.build_kind = (uint8_t)((ring == 2 ? NPUPROF_STREAM : ring ? NPUPROF_KEEP_NEWEST : 0) << 4);
    header.cells = 1 + chance(300);
    header.hz_low = chance(3) ? 1000000 : 1 + chance(100);
    header.first_low = 1000;
    header.clock = chance(3);
    if (!is_strange) return;
    header.cells = edge(header.cells);
    header.lost = edge(0);
    header.lost_notes = edge(0);
    header.clock = edge(header.clock);
    header.hz_high = edge(0) & 0x3FFFF;
    header.first_low = edge(header.first_low);
    header.first_high = edge(0);
    header.address_high = edge(0);
    header.build_kind = (uint8_t)edge(header.build_kind);
    header.build = edge(0);
}

/* A part of a stream, or its header. */
static void put_streamed(uint32_t next, uint32_t count, uint32_t lead, const void *body)
{
    npuprof_stream_head_ head = { 0 };
    head.mark = NPUPROF_STREAM_MARK_;
    head.next = next;
    head.count = (uint16_t)count;
    head.lead = (uint16_t)lead;
    const uint32_t crc = npuprof_crc_add_(UINT32_MAX, &head.next, sizeof head - 8);
    head.crc = ~npuprof_crc_add_(crc, body, (size_t)count * 16);
    put(&head, sizeof head);
    put(body, (size_t)count * 16);
}

static bool is_streamed(void)
{
    return header.layout == NPUPROF_LAYOUT_PARTS && header.build_kind >> 4 == NPUPROF_STREAM && chance(100);
}

static void put_header(void)
{
    if (is_streamed()) {
        header.crc = edge(0);
        put_streamed(header.used, 5, chance(10) ? 0 : edge(0), &header);
        return;
    }
    header.crc = header.layout == NPUPROF_LAYOUT_PARTS ? ~npuprof_crc_add_(UINT32_MAX, &header, 76) : 0;
    put(&header, sizeof header);
}

/* Call sites of this program, so that references may lead somewhere. */
static void sites(void)
{
    PROF_SCOPE("a site");
    PROF_COUNTER("a counter", 1);
}

static uint32_t reference(void)
{
    const uint32_t kind = chance(3) ? chance(16) : 60 + chance(20);
    const uint32_t own = (uint32_t)((uintptr_t)(const void *)&header - (uintptr_t)__ehdr_start);
    if (!chance(20)) return edge(0);
    if (!chance(3)) return ((0x10000 + 8 * chance(8)) & ~3u) | !chance(3);
    /* Near this program's own data, where its call sites are. */
    if (!chance(5)) return ((own + chance(4096) - 2048) & ~3u) | !chance(3);
    return kind << 8 | 2 | !!chance(3) | (chance(4) ? 0 : chance(70000) << 16);
}

static npuprof_cell_ cells[64];
static uint32_t waiting, leads;        /* cells; of them so many go on with a record */

/* A field behind a record; its cells. */
static void field(bool is_last, bool is_first, uint32_t all)
{
    static const char *const words[] = { "npuprof.anchor", "4611686018427387903 4611686018427387903 "
        "4611686018427387903 4611686018427387903 4611686018427387903", "0 0 0 0 0", "npuprof.kernel",
        "\xff\xfe\"\\", "x" };
    const char *const value_text = words[chance(6)];
    const uint32_t type = chance(10) ? 1 + chance(14) : chance(256);
    const bool is_text = (type >= NPUPROF_ARG_STR && type < NPUPROF_FIELD_VALUE_);
    const uint32_t length = is_text ? (uint32_t)strlen(value_text) : 0, more = (length + 7) / 16;
    npuprof_cell_ *const c = &cells[waiting];
    if (waiting + 1 + more > 48) return;
    memset(c, 0, (1 + more) * sizeof *c);
    c->ref = type >= NPUPROF_FIELD_NAME_ && type != NPUPROF_FIELD_RESULT_ ? 0 : 0x20000;
    c->start = type | edge(length) << 8 | (is_last ? 0 : NPUPROF_FIELD_MORE_);
    c->start |= is_first ? edge(all) << 20 : 0;
    c->end = edge(chance(300));
    c->high.word = edge(0);
    if (is_text) memcpy(&c->end, value_text, length);
    waiting += 1 + more;
}

static void record(void)
{
    npuprof_cell_ *const c = &cells[waiting];
    const uint32_t from = waiting, context = chance(1u << header.context_bits);
    if (waiting > 24) return;
    clock_now += edge(chance(50));
    c->ref = reference();
    c->start = clock_now;
    c->end = edge(clock_now + chance(100));
    c->high.half[0] = (uint16_t)edge(context);
    c->high.half[1] = (uint16_t)(edge(0) | (chance(3) ? 0 : NPUPROF_CELL_OPEN_ | chance(0x4000)));
    waiting++;
    if (!(c->ref & 1)) return;
    const uint32_t fields = 1 + chance(4);
    for (uint32_t i = 0; i < fields; i++) field(i + 1 == fields, i == 0, 1 + fields);
    if (chance(3)) c->end = waiting - from;
}

static void put_part(void)
{
    npuprof_part_head_ part;
    const uint32_t count = least(waiting, 1 + chance(16));
    if (!count) return;
    memset(&part, 0, sizeof part);
    part.mark = NPUPROF_PART_MARK_;
    part.first = sent = chance(6) ? sent : chance(2) ? sent + chance(40) - 20 : edge(sent);
    part.count = (uint16_t)count;
    part.lead = (uint16_t)least(leads, count);
    if (!chance(10)) part.lead = (uint16_t)chance(count + 1);
    part.names = chance(20) ? 0 : 1;
    if (is_streamed()) {
        put_streamed(part.first + count, count, part.lead == count ? leads : part.lead, cells);
    } else {
        const uint32_t crc = npuprof_crc_add_(UINT32_MAX, &part, 16);
        part.crc = ~npuprof_crc_add_(crc, cells, count * sizeof *cells);
        put(&part, sizeof part);
        put(cells, count * sizeof *cells);
    }
    sent += count;
    waiting -= count;
    leads -= least(leads, count);
    memmove(cells, cells + count, waiting * sizeof *cells);
}

static void make_trace(void)
{
    const uint32_t parts = chance(3) ? chance(12) : chance(200), every = 1 + chance(64);
    const bool is_stream = header.build_kind >> 4 == NPUPROF_STREAM;
    sent = is_stream && !chance(3) ? edge(0) : 0;
    clock_now = chance(4) ? 1000 : edge(1000);
    waiting = 0;
    header.used = is_stream ? sent : edge(chance(header.cells));
    if (chance(8)) put_header();
    if (header.layout == NPUPROF_LAYOUT_COMPACT) {
        for (uint32_t i = 0; i < least(header.cells, 400); i += waiting, waiting = 0) {
            record();
            put(cells, waiting * sizeof *cells);
        }
        return;
    }
    for (uint32_t i = 0; i < parts; i++) {
        leads = waiting;
        while (waiting < 16) record();
        put_part();
        if (is_stream && i % every == 0) header.used = edge(sent);
        if (is_stream ? i % every == 0 : !chance(100)) put_header();
        if (!chance(30) && made_bytes > 1000) put(made + chance(700), chance(300));
    }
    if (!is_stream && chance(5)) put_header();
}

static void make(uint32_t seed)
{
    chance_state = seed * 2654435761u;
    made_bytes = 0;
    const uint32_t traces = 1 + (chance(3) ? 0 : chance(3));
    for (uint32_t i = 0; i < traces; i++) {
        if (i == 0 || chance(2)) begin_header(chance(2));
        make_trace();
    }
    for (uint32_t i = chance(4) ? 0 : chance(5); i && made_bytes; i--)
        made[chance((uint32_t)made_bytes)] ^= (uint8_t)(1u << chance(8));
    if (!chance(5)) made_bytes = chance((uint32_t)made_bytes + 1);
}

int main(int argc, char **argv)
{
    static char what[64];
    const uint32_t seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    const uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1500;
    sites();
    for (uint32_t i = seed; i - seed < count; i++) {
        make(i);
        snprintf(what, sizeof what, "seed %u", (unsigned)i);
        of_what = what;
        of_elf = i % 3 ? NULL : "/proc/self/exe";
        if (argc > 3) {
            FILE *const file = fopen(argv[3], "wb");
            if (!file || fwrite(made, 1, made_bytes, file) != made_bytes || fclose(file)) return 2;
        }
        if (made_bytes) LLVMFuzzerTestOneInput(made, made_bytes);
    }
    printf("ok firmware\nnote %u made-up images\n", (unsigned)count);
    return 0;
}
