"""A ReFrame test: hockney measures what has limits in expect.toml; a missed limit fails the sanity check.

Each figure becomes a performance variable, so that ReFrame logs it, too.
"""

import json
import os
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn

_OUTPUT = "check.json"


@rfm.simple_test
class HockneyCheck(rfm.RunOnlyRegressionTest):
    """Limits of latency and bandwidth, measured with their confidence intervals."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    sourcesdir = str(Path(__file__).resolve().parent)
    #: The command that starts hockney.
    hockney = variable(str, value=os.environ.get("HOCKNEY", "hockney"))
    #: The file of limits, in the folder of this test.
    limits = variable(str, value="expect.toml")
    #: How long to measure.
    duration = variable(str, value="20s")

    @run_before("run")
    def set_command(self):
        self.executable = self.hockney
        self.executable_opts = [
            "check",
            "--expect",
            self.limits,
            "--time",
            self.duration,
            "--store",
            "results.db",
            "--json",
            f"> {_OUTPUT}",
        ]

    @sanity_function
    def all_limits_are_met(self):
        document = self._document()
        wrong = [limit["sentence"] for limit in document.get("limits", ()) if limit["outcome"] != "met"]
        return sn.assert_false([document["error"]] if "error" in document else wrong)

    @run_before("performance")
    def set_figures(self):
        self.perf_variables = {
            self._name(limit): sn.make_performance_function(sn.defer(self._value(limit)), self._unit(limit))
            for limit in self._document().get("limits", ())
            if limit["figure"] is not None
        }

    def _document(self):
        return json.loads(Path(self.stagedir, _OUTPUT).read_text())

    @staticmethod
    def _name(limit):
        point = limit["point"]
        options = "".join(f"_{name}_{value}" for name, value in point["options"].items())
        return f"{point['pattern']}{options}_{point['transport']}_{point['bytes']}B_{limit['what']}"

    @staticmethod
    def _value(limit):
        figure = limit["figure"]
        return figure["value_ns"] / 1e3 if limit["what"] == "latency" else figure["rate_bytes_per_s"] / 1e6

    @staticmethod
    def _unit(limit):
        return "us" if limit["what"] == "latency" else "MB/s"
