# SPDX-License-Identifier: Apache-2.0
"""Dumps: the same bytes each time, no addresses, everything in them."""

import json
import re
import shutil
import subprocess

import tool
from tool import ROOT, ToolTest, run

DEMO_SHAPES = json.loads((ROOT / "schemas" / "shapes" / "demo.json").read_text())


class Dump(ToolTest):
    def dump(self, *arguments):
        return self.done("dump", "--model", "tiny", "--shapes", "demo", *arguments).stdout

    def test_twice_the_same_bytes(self):
        for form in ("text", "json", "dot"):
            first = self.dump("--format", form)
            self.assertEqual(first, self.dump("--format", form))
            self.assertNotIn("0x", first)
            self.assertNotIn("unknown", first)
            path = self.folder / f"dump.{form}"
            self.dump("--format", form, "-o", path)
            self.assertEqual(path.read_text(), first)
        self.assertEqual(len(list(self.folder.iterdir())), 3)

    def test_json_follows_its_schema(self):
        dump = json.loads(self.dump("--format", "json"))
        validator = tool.validator("dump")
        if validator:
            validator.validate(dump)
        self.assertEqual(dump["model"], "tiny")
        shapes = [graph["shape"] for graph in dump["graphs"]]
        self.assertEqual(shapes, DEMO_SHAPES["shapes"])
        buffers = {buffer["name"]: buffer["bytes"] for buffer in dump["buffers"]}
        for graph in dump["graphs"]:
            self.check_graph(graph, buffers)

    def check_graph(self, graph, buffers):
        nodes = graph["nodes"]
        self.assertEqual(graph["node_count"], len(nodes))
        self.assertEqual([node["index"] for node in nodes], list(range(len(nodes))))
        # A step is a chain: ingest, metadata, layers, done.
        self.assertEqual(graph["edge_count"], len(nodes) - 1)
        self.assertEqual(graph["edges"], [[i, i + 1] for i in range(len(nodes) - 1)])
        self.assertEqual(nodes[0]["op"], "batch_ingest")
        self.assertEqual(nodes[1]["op"], "chunk_metadata")
        self.assertEqual(nodes[-1]["op"], "step_done")
        layers = [node["layer"] for node in nodes if node["layer"] is not None]
        self.assertEqual(layers, sorted(layers))
        self.assertEqual(set(layers), {0, 1})
        for node in nodes:
            self.assertTrue(node["params"])
            for value in node["params"].values():
                if isinstance(value, dict):
                    self.assertLess(value["offset_bytes"], buffers[value["buffer"]])
        self.check_phase(graph["shape"]["phase"], {node["op"] for node in nodes})

    def check_phase(self, phase, ops):
        self.assertEqual("kda_recurrent" in ops, phase != "prefill")
        self.assertEqual("kda_chunk" in ops, phase != "decode")

    def test_one_shape(self):
        everything = json.loads(self.dump("--format", "json"))
        one = json.loads(self.dump("--format", "json", "--shape", "mixed-512"))
        self.assertEqual(one["graphs"], [g for g in everything["graphs"] if g["shape"]["name"] == "mixed-512"])

    def test_text_has_every_node(self):
        text = self.dump("--shape", "mixed-512")
        graph = json.loads(self.dump("--format", "json", "--shape", "mixed-512"))["graphs"][0]
        for node in graph["nodes"]:
            self.assertRegex(text, rf"(?m)^ +{node['index']} +[-\d]+ +{node['op']} +{node['kernel']} +{node['grid']} ")
        self.assertIn("layers.1.state+0", text)

    def test_other_target(self):
        arguments = ("--model", "tiny", "--shapes", "demo", "--format", "json", "--target", "gfx942")
        if re.search(r"flavour +nvidia", run("info").stdout):
            self.refused("dump", *arguments, says=("gfx942", "kernels are for sm_90a"))
            return
        other = json.loads(self.done("dump", *arguments).stdout)
        self.assertEqual(other["target"], "gfx942")
        validator = tool.validator("dump")
        if validator:
            validator.validate(other)

        def launches(dump):
            return [
                (node["grid"], node["block"], node["shared_bytes"])
                for graph in dump["graphs"]
                for node in graph["nodes"]
            ]

        own = json.loads(self.dump("--format", "json"))
        if own["target"] != "gfx942":
            self.assertNotEqual(launches(other), launches(own))

    def test_failure_leaves_nothing(self):
        path = self.folder / "dump.json"
        path.write_text("as before")
        self.refused("dump", "--model", "tiny", "--shapes", "demo", "--shape", "none", "-o", path)
        self.assertEqual(path.read_text(), "as before")
        self.assertEqual(len(list(self.folder.iterdir())), 1)
        result = run("dump", "--model", "tiny", "--shapes", "demo", "-o", "/dev/full")
        self.assertNotEqual(result.returncode, tool.DONE)
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_graphviz_draws_it(self):
        dot = shutil.which("dot")
        if dot is None:
            self.skipTest("no Graphviz")
        path = self.folder / "dump.dot"
        self.dump("--format", "dot", "-o", path)
        drawn = subprocess.run([dot, "-Tsvg", path], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(drawn.returncode, 0, drawn.stderr)
        self.assertEqual(drawn.stderr, "")
        self.assertIn("</svg>", drawn.stdout)
        graphs = json.loads(self.dump("--format", "json"))["graphs"]
        self.assertEqual(drawn.stdout.count('class="node"'), sum(g["node_count"] for g in graphs))
        self.assertEqual(drawn.stdout.count('class="edge"'), sum(g["edge_count"] for g in graphs))


class Info(ToolTest):
    def test_names_what_there_is(self):
        text = self.done("info").stdout
        for word in ("flavour", "devices", "gfx942", "sm_90a", "tiny", "demo", "default"):
            self.assertIn(word, text)


if __name__ == "__main__":
    tool.main()
