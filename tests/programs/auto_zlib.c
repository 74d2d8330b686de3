/* Packs and unpacks the same bytes each time, with every level and strategy of zlib, and reads and writes a
   .gz file. For NPUPROF_AUTO. Usage: auto_zlib FILE.gz
   SPDX-License-Identifier: MIT */
#include <string.h>
#include <zlib.h>

static unsigned char in[100000], packed[150000], out[100000];

static void fill(unsigned seed)
{
    for (size_t i = 0; i < sizeof in; i++) {
        seed = seed * 1664525u + 1013904223u;
        in[i] = (unsigned char)(i & 512 ? seed >> 24 : "abcdefgh"[seed >> 29]);
    }
}

static int there_and_back(int level, int strategy)
{
    uLongf bytes = sizeof out;
    z_stream s;
    memset(&s, 0, sizeof s);
    if (deflateInit2(&s, level, Z_DEFLATED, 15, 8, strategy) != Z_OK) return 1;
    s.next_in = in;
    s.avail_in = sizeof in;
    s.next_out = packed;
    s.avail_out = sizeof packed;
    if (deflate(&s, Z_FINISH) != Z_STREAM_END || deflateEnd(&s) != Z_OK) return 1;
    if (uncompress(out, &bytes, packed, s.total_out) != Z_OK) return 1;
    return bytes != sizeof in || memcmp(in, out, bytes) != 0;
}

static int lines(const char *path)
{
    char line[80];
    int count = 0;
    gzFile file = gzopen(path, "wb6");
    for (int i = 0; file && i < 100; i++) gzprintf(file, "line %d\n", i);
    if (!file || gzclose(file) != Z_OK || (file = gzopen(path, "rb")) == NULL) return 0;
    while (gzgets(file, line, sizeof line)) count++;
    return gzclose(file) == Z_OK ? count : 0;
}

int main(int argc, char **argv)
{
    int bad = argc < 2;
    for (int level = 0; level < 10 && !bad; level++) {
        fill((unsigned)level);
        bad = there_and_back(level, level % 5);
    }
    return bad || lines(argv[1]) != 100;
}
