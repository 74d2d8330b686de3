# test: time=240 - view: one file on 127.0.0.1:9001, for the Perfetto UI and nobody else
# SPDX-License-Identifier: MIT
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import unittest

import helpers
from helpers import ROOT, environment, scratch

UI = "https://ui.perfetto.dev"
TRACE = '{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}]}'


class View(unittest.TestCase):
    def start(self, path):
        probe = socket.socket()
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 9001))
        except OSError:
            self.skipTest("port 9001 is in use")
        finally:
            probe.close()
        self.process = subprocess.Popen([sys.executable, str(helpers.NPUPROF_PY), "view", str(path)],
                                        cwd=scratch(), text=True, env=environment(), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.addCleanup(self.stop)
        self.link = self.process.stdout.readline().strip()

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def ask(self, method, path, host="127.0.0.1:9001", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", 9001, timeout=10)
        connection.request(method, path, headers={"Host": host, **headers})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    def test_serves_one_file_to_one_page(self):
        (scratch() / "my trace #1.json").write_text(TRACE)
        (scratch() / "other.json").write_text("secret")
        self.start("my trace #1.json")
        match = re.fullmatch(re.escape(UI) + r"/#!/\?url=http://127\.0\.0\.1:9001(/\S+)", self.link)
        self.assertTrue(match, self.link)
        path = match[1]
        for wrong in ("/", "/other.json", "/../other.json", path + "?x", path[:-1], "//etc/passwd"):
            answer, body = self.ask("GET", wrong, Origin=UI)
            self.assertEqual((answer.status, b"secret" in body), (404, False), wrong)
        for host, origin in (("evil.example:9001", UI), ("127.0.0.1:9001", "https://evil.example"),
                             ("127.0.0.1:9001", "null")):
            answer, body = self.ask("GET", path, host, Origin=origin)
            self.assertEqual((answer.status, b"traceEvents" in body), (403, False))
        self.assertEqual(self.ask("POST", path, Origin=UI)[0].status, 501)
        answer, _ = self.ask("OPTIONS", path, Origin=UI,
                             **{"Access-Control-Request-Method": "GET",
                                "Access-Control-Request-Private-Network": "true"})
        self.assertEqual((answer.status, answer.getheader("Access-Control-Allow-Private-Network")),
                         (204, "true"))
        answer, body = self.ask("HEAD", path, Origin=UI)
        self.assertEqual((answer.status, body, answer.getheader("Content-Length")),
                         (200, b"", str(len(TRACE))))
        self.assertIsNone(self.process.poll(), "it ends with the first whole answer only")
        answer, body = self.ask("GET", path, Origin=UI)
        self.assertEqual((answer.status, body.decode()), (200, TRACE))
        self.assertEqual(answer.getheader("Access-Control-Allow-Origin"), UI)
        self.assertEqual(answer.getheader("Content-Type"), "application/json")
        self.assertEqual(self.process.wait(20), 0)
        self.assertEqual(self.process.stderr.read(), "")

    @helpers.thorough
    def test_several_at_once(self):
        """Each gets the whole file, although they read it at different paces and the first to end ends the
        command."""
        text = TRACE[:-2] + "".join(',\n{"ph":"X","name":"a","pid":1,"tid":1,"ts":%d,"dur":1}' % (10 * n)
                                    for n in range(200_000)) + "]}"
        (scratch() / "large.json").write_text(text)
        self.start("large.json")
        answers = []
        for _ in range(4):
            connection = http.client.HTTPConnection("127.0.0.1", 9001, timeout=30)
            self.addCleanup(connection.close)
            connection.request("GET", "/large.json", headers={"Origin": UI})
            answers.append(connection.getresponse())
        bodies = [[] for _ in answers]
        for pace, (answer, body) in enumerate(zip(answers, bodies), 1):
            body.append(answer.read(pace * 300_001))
        for answer, body in zip(answers, bodies):
            body.append(answer.read())
        self.assertEqual([b"".join(body).decode() == text for body in bodies], [True] * 4)
        self.assertEqual(self.process.wait(20), 0)

    @helpers.thorough
    def test_in_a_browser(self):
        """Chromium lets a page of ui.perfetto.dev read it, and no other."""
        chromium = helpers.chromium()
        web = helpers.web()
        (scratch() / "t.json").write_text(TRACE)
        self.start("t.json")
        done = helpers.run(["node", ROOT / "tests" / "web" / "view.mjs", web, chromium,
                            self.link.partition("url=")[2]], code=0)
        self.assertEqual(json.loads(done.stdout),
                         {"other": "TypeError: Failed to fetch", "allowed": [200, TRACE]})
        self.assertEqual(self.process.wait(20), 0)

    def test_only_loopback(self):
        (scratch() / "t.json").write_text(TRACE)
        self.start("t.json")
        other = socket.gethostbyname(socket.gethostname())
        if other.startswith("127.0.0.1"):
            other = "127.0.0.2"
        with self.assertRaises(OSError):
            socket.create_connection((other, 9001), timeout=2)

    def test_image_and_interrupt(self):
        helpers.tool("npuprof-convert")
        helpers.run([helpers.build("golden.c", "golden"), "g.npuprof"], code=0)
        self.start("g.npuprof")
        self.assertIn("/g.json", self.link)
        answer, body = self.ask("HEAD", "/g.json", Origin=UI)
        self.assertEqual(answer.status, 200)
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(20), 130)
        self.assertEqual(self.process.stderr.read(), "")

    def test_port_in_use(self):
        (scratch() / "t.json").write_text(TRACE)
        self.start("t.json")
        self.assertRegex(helpers.refused("view", "t.json"), r"^127\.0\.0\.1:9001: in use: .*\n$")

    def test_refuses(self):
        (scratch() / "cut.json").write_text(TRACE[:-9])
        (scratch() / "t.csv").write_text("trace_id,parent_span_id,span_id,start,end,cat,name,thread.id,"
                                         "dram_base,pe_index,execution_index,instruction_index,"
                                         "operator_index,dur\n")
        for name, word in (("missing.json", "No such file"), ("cut.json", "cut off"),
                           ("t.csv", "does not read the CSV")):
            self.assertIn(word, helpers.refused("view", name))
