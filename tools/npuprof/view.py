# SPDX-License-Identifier: MIT
"""Opens a trace in the Perfetto UI: serves this one file on 127.0.0.1:9001 and prints the link.

The page at ui.perfetto.dev runs in your browser and reads the file from this machine. Nothing is uploaded.
Chrome asks whether the page may connect to this device; say yes. The page can read from no other port than
9001.

build/npuprof-convert (`make tools`) turns an image into JSON first. The command ends when the page has the
trace, or with Ctrl-C.

Exit code 0: the page has it; 2: the trace cannot be used, or the port is taken; 130: Ctrl-C.
"""

import contextlib
import errno
import http.server
import os
import tempfile
import threading
import urllib.parse
import webbrowser

from .base.messages import Refused
from .convert.image import convert_image, is_image
from .merging.beside import add_kernel_arguments, loaded, only_trace

UI = "https://ui.perfetto.dev"
PORT = 9001
PIECE = 1 << 20
MANY = 1_000_000          # with more spans, viewers are slow


def add_arguments(parser):
    parser.add_argument("trace", metavar="TRACE", nargs="?",
                        help="a .json or .npuprof file; none is needed with --ftrace")
    parser.add_argument("--open", action="store_true", help="open the link in the browser, too")
    add_kernel_arguments(parser)


class Server(http.server.ThreadingHTTPServer):
    """Serves one open file under one name, only to the Perfetto UI and to programs on this machine."""

    daemon_threads = True

    def __init__(self, file, name, port=PORT):
        self.file, self.size = file, os.fstat(file.fileno()).st_size
        self.name = urllib.parse.quote(name)
        self.fetched, self.idle, self.active = threading.Event(), threading.Condition(), 0
        try:
            super().__init__(("127.0.0.1", port), Handler)
        except OSError as error:
            in_use = error.errno == errno.EADDRINUSE
            why = "in use: does another `view` or trace_processor run?" if in_use else error.strerror
            raise Refused(f"127.0.0.1:{port}: {why}") from None

    @contextlib.contextmanager
    def sending(self):
        """A context around each answer: it counts those that are under way."""
        with self.idle:
            self.active += 1
        try:
            yield
        finally:
            with self.idle:
                self.active -= 1
                self.idle.notify_all()

    @property
    def address(self):
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def link(self):
        return f"{UI}/#!/?url=http://{self.address}/{self.name}"


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 30

    def do_GET(self):
        with self.server.sending():
            if self.allowed() and self.send_file():
                self.server.fetched.set()

    def send_file(self):
        """False: the page was closed, and may ask again; or the file is shorter than was stated."""
        try:
            self.head()
            # Why pread: two answers at once read one open file, and read() would share their place in it.
            for offset in range(0, self.server.size, PIECE):
                data = os.pread(self.server.file.fileno(), min(PIECE, self.server.size - offset), offset)
                if len(data) < min(PIECE, self.server.size - offset):
                    self.close_connection = True
                    return False
                self.wfile.write(data)
            self.wfile.flush()
        except OSError:
            return False
        return True

    def do_HEAD(self):
        if self.allowed():
            self.head()

    def do_OPTIONS(self):
        """Answers the browser, which asks whether a page of the internet may read from this machine."""
        if self.allowed():
            self.send_response(204)
            self.send_header("Access-Control-Allow-Methods", "GET, HEAD")
            self.send_header("Access-Control-Allow-Private-Network", "true")
            self.send_header("Access-Control-Allow-Headers", "Range")
            self.end_headers()

    def allowed(self):
        """True if the request may be answered. Why Host: another site's name may resolve to this machine."""
        hosts = {self.server.address, self.server.address.replace("127.0.0.1", "localhost")}
        if self.headers.get("Host") not in hosts or self.headers.get("Origin") not in (None, UI):
            self.send_error(403)
        elif self.path != "/" + self.server.name:
            self.send_error(404)
        else:
            return True
        return False

    def head(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(self.server.size))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()

    def end_headers(self):
        self.send_header("Access-Control-Allow-Origin", UI)
        self.send_header("Vary", "Origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "cross-origin")
        super().end_headers()

    def version_string(self):
        return "npuprof"

    def log_message(self, *_):
        pass


def serve(file, name, open_it=False):
    with Server(file, name) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            print(server.link, flush=True)
            if open_it:
                webbrowser.open(server.link)
            while not server.fetched.wait(3600):
                pass
            with server.idle:         # wait for other answers that are under way
                while not server.idle.wait_for(lambda: not server.active, 3600):
                    pass
            print("fetched", flush=True)
        finally:
            server.shutdown()


def run(arguments):
    path = only_trace([] if arguments.trace is None else [arguments.trace], arguments)
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
        shown, damaged = path, 0
        if not arguments.ftrace and is_image(path):
            shown = os.path.join(folder, "trace.json")
            damaged = convert_image(path, shown)
            if damaged == 2:
                return 2
        trace = loaded(shown, arguments)
        if trace.format != "json":
            raise Refused(f"{path}: the Perfetto UI does not read the CSV; "
                          "give the .json or the .npuprof file")
        if trace._file is None:
            raise Refused(f"{path}: the Perfetto UI does not read files of {trace.tool}: "
                          "convert it to .pftrace")
        if len(trace) > MANY:
            print(f"{len(trace)} spans: the Perfetto UI needs about {len(trace) // 100_000} s and much "
                  "memory", flush=True)
        name = os.path.splitext(os.path.basename(path or arguments.ftrace))[0] + ".json"
        # Why the file that was read: functions have their names there.
        serve(trace._file, name, arguments.open)
    return damaged
