"""The page as text: one file, all figures once, and nothing from outside that is more than text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analysis.health.made import store_health
from tests.cli.support import Cli
from tests.cli.test_background import store_impact
from tests.report.html.made import BREAKOUT, HOSTILE
from tests.report.runs import Made, options, store_run

from hockney.analysis.pairs import pair_matrices
from hockney.cli.report import form_of
from hockney.model import Point
from hockney.render.html.page import json_block
from hockney.report.charts import bounds_of, matrix_json, plain
from hockney.report.documents.pairs import rank_values
from hockney.report.page.material import material_of
from hockney.report.page.views import archive_points, history_chart
from hockney.report.sheet import make_sheet
from hockney.results.runs import open_results
from hockney.units import format_bytes, format_rate
from hockney.worker.background import Background

EXTERNAL = {"src", "href", "data", "action", "poster", "srcset", "style"}


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the texts of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inlined: list[tuple[str, dict[str, str | None], str]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inlined.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] in ("script", "style") and self.cdata_elem:
            tag, attributes, text = self.inlined.pop()
            self.inlined.append((tag, attributes, text + data))
        else:
            self.texts.append(data)


def parsed(text: str) -> Elements:
    elements = Elements()
    elements.feed(text)
    return elements


def figures_of(page: str) -> dict[str, Any]:
    """The embedded data of a page."""
    (text,) = (text for _, attributes, text in parsed(page).inlined if attributes.get("id") == "data")
    data: dict[str, Any] = json.loads(text)
    return data


@pytest.fixture(scope="module")
def page(page_file: Path) -> str:
    return page_file.read_text(encoding="utf-8")


def test_nothing_is_loaded_and_nothing_has_an_inline_style_or_handler(page: str) -> None:
    for tag, attributes in parsed(page).elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form", "img"), tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in EXTERNAL:
                assert (value or "").startswith("#"), (tag, name, value)


def test_the_policy_names_the_hash_of_everything_that_runs(page: str) -> None:
    elements = parsed(page)
    (meta,) = (each for _, each in elements.elements if each.get("http-equiv") == "Content-Security-Policy")
    policy = meta["content"] or ""
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none';")
    ours = [(tag, text) for tag, attributes, text in elements.inlined if attributes.get("type") != "application/json"]
    assert len(ours) > 3
    for tag, text in ours:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        part = next(part for part in policy.split(";") if part.strip().startswith(f"{tag}-src"))
        assert f"'sha256-{digest}'" in part


def test_texts_from_outside_stay_texts(page: str) -> None:
    assert HOSTILE not in page
    assert BREAKOUT not in page
    texts = " ".join(parsed(page).texts)
    assert HOSTILE in texts  # the name of the host
    assert BREAKOUT in texts  # in a warning
    assert not [each for each in parsed(page).elements if each[0] == "img"]


def test_characters_that_control_a_screen_are_shown_by_their_codes(tmp_path: Path, cli: Cli) -> None:
    made = [Made(Point("shm", "pingpong", 2, size), 50.0, 2, 2 * size) for size in (8, 64, 512)]
    store_run(
        tmp_path / "results.db", "quick", made, facts={"hostname": "host\u202eevil\x1b[2J", "cpu": {"model": "C"}}
    )
    assert cli("report", "-o", "r.html").returncode == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "host\\u202eevil" in page


def test_json_cannot_end_its_element() -> None:
    text = json_block({"</script>": "<!-- </SCRIPT> & \u2028"})
    assert not re.search(r"[<>&\u2028]", text)
    assert json.loads(text) == {"</script>": "<!-- </SCRIPT> & \\u2028"}


def test_every_section_is_there_and_linked(page: str) -> None:
    ids = {each["id"] for _, each in parsed(page).elements if each.get("id")}
    targets = {(each["href"] or "")[1:] for _, each in parsed(page).elements if each.get("href")}
    sections = {
        "summary",
        "findings",
        "sheet",
        "load",
        "curves",
        "distribution",
        "layers",
        "cpu",
        "ranks",
        "matrix",
        "predictions",
    }
    assert sections | {"comparison", "history", "reports", "definitions", "environment"} <= targets
    assert targets <= ids


def test_the_verdict_answers_common_questions(page: str) -> None:
    text = " ".join(" ".join(parsed(page).texts).split())
    assert "A message of 8 B takes 121 ns" in text  # how fast your own library is
    assert "Strongest problem, on shm: slow rank or pair. Ranks 1, 3 take 210 ns, 3.00 times their class" in text
    assert "The typical uncertainty is ±" in text  # how sure
    assert "over 1 to 3 launches" in text
    assert "Two nodes of a Cray T3D, 1996: 1.10 us, 126 MB/s. Open MPI 4.1.4 " in text  # and then


def test_bandwidth_is_that_of_the_sheet(page: str, store: Path) -> None:
    with open_results(store) as results:
        sheet = make_sheet(results.run(1))
    (best,) = (row.values["bandwidth_bytes_per_s"] for row in sheet.rows if row.transport.startswith("mpi"))
    assert best is not None
    text = " ".join(" ".join(parsed(page).texts).split())
    messages = f"{format_bytes(best.at_bytes or 0)}, 16 in flight"
    assert f"messages of {messages}, reach {format_rate(best.value)} " in text
    assert f"Bandwidth {format_rate(best.value)} messages of {messages} on " in text


def test_problems_come_before_notes_and_are_marked(page: str) -> None:
    kinds = re.findall(r'<li class="finding( problem)?">\s*<h3><span class="kind">(\w+)</span>', page)
    assert {kind for _, kind in kinds} == {"Problem", "Note"}
    assert all(bool(mark) == (kind == "Problem") for mark, kind in kinds)
    assert kinds == sorted(kinds, reverse=True)


def test_figures_are_those_of_the_run(page: str, store: Path) -> None:
    data = figures_of(page)
    names = [transport["id"] for transport in data["transports"]]
    with open_results(store) as results:
        run = results.run(1)
        for curve in data["curves"]:
            if curve["run"] != 1 or curve["pattern"] != "pingpong":
                continue
            for size, time, low, high in zip(curve["x"], curve["y"], curve["low"], curve["high"], strict=True):
                series = run.select(transport=names[curve["t"]], pattern="pingpong", bytes=size, ranks=2, options={})
                (figure,) = series.figures()
                assert [time, low, high] == [plain(v) for v in bounds_of(figure.time)]
                if size:
                    assert figure.bytes_per_s is not None
                    assert curve["payload"] * size / time * 1e9 == pytest.approx(figure.bytes_per_s.value, rel=1e-4)


def test_a_switch_is_drawn_where_it_was_found(page: str) -> None:
    data = figures_of(page)
    mpi = next(i for i, transport in enumerate(data["transports"]) if transport["id"].startswith("mpi"))
    assert [(each["t"], each["below"], each["above"]) for each in data["switches"]] == [(mpi, 2048, 4096)]


def test_the_table_under_load_is_of_known_data(tmp_path: Path, cli: Cli) -> None:
    store_impact(tmp_path / "results.db")
    for name in ("r.html", "r.md"):
        assert cli("report", "last", "-o", name).returncode == 0
    page = parsed((tmp_path / "r.html").read_text(encoding="utf-8"))
    text = " ".join(" ".join(page.texts).split())
    assert "Background: incast by 3 ranks on n3, n4, n5. Measured: ranks on here." in text
    assert "idle p50 loaded p50 idle p99 loaded p99 idle p99.9 loaded p99.9" in text
    medians, p99, p999 = "2.25 ms 6.76 ms", "7.36 ms 22.1 ms", "7.94 ms 23.8 ms"
    assert f"pingpong on tcp, 2 ranks 8 B 3.00x (3.00 to 3.00) {medians} {p99} {p999}" in text
    assert "64 B 3.00x" not in text  # its loaded points failed
    assert ("a", {"href": "#load", "data-shows": "{}"}) in page.elements  # the evidence of the finding
    row = next(line for line in (tmp_path / "r.md").read_text(encoding="utf-8").splitlines() if "3.00x" in line)
    assert row.startswith("| pingpong on tcp, 2 ranks | 8 B | 3.00x (3.00 to 3.00) | 2.25 ms | 6.76 ms | ")


def test_columns_under_load_without_values_are_left_out(tmp_path: Path, cli: Cli) -> None:
    """Three rounds are too few for an interval: the run has no findings, but its times."""
    store_impact(tmp_path / "results.db", rounds=3, samples=3)
    assert cli("report", "last", "-o", "r.html").returncode == 0
    text = " ".join(" ".join(parsed((tmp_path / "r.html").read_text(encoding="utf-8")).texts).split())
    assert "what size impact idle p50 loaded p50 pingpong on tcp, 2 ranks 8 B 3.00x – 1.33 ms 4.00 ms The table" in text


def test_a_background_on_this_machine_has_cpus(tmp_path: Path, cli: Cli) -> None:
    store_impact(tmp_path / "results.db", where=Background("incast", 3, cpus=(2, 3, 4)))
    assert cli("report", "last", "-o", "r.md").returncode == 0
    assert "## Impact of incast by 3 ranks on CPUs 2, 3 and 4\n" in (tmp_path / "r.md").read_text(encoding="utf-8")


def test_a_missing_percentile_is_explained(page: str) -> None:
    text = " ".join(" ".join(parsed(page).texts).split())
    assert "Empty: too few samples, or several repetitions in each." in text


def test_distributions_are_quantiles_of_single_samples(page: str) -> None:
    (view,) = (v for v in figures_of(page)["charts"]["distribution"]["views"] if v["name"] == "pingpong of 1 MiB")
    for line in view["lines"]:
        times, shares = [point[0] for point in line["points"]], [point[1] for point in line["points"]]
        assert times == sorted(times)
        assert shares[0] == 0
        assert shares[-1] <= 1 - 1 / 120


def test_history_keeps_the_newest_60_runs(tmp_path: Path) -> None:
    made = [Made(Point("shm", "pingpong", 2, 8), 50.0, 2, 16, measurements=1)]
    for number in range(62):
        store_run(tmp_path / "r.db", "mine", made, label="nightly", started_unix_s=1000.0 * number)
    with open_results(tmp_path / "r.db") as results:
        chart = history_chart(material_of(results, results.run(), []))
    (line,) = chart.views[0].lines
    assert [point[0] for point in line.points] == [1000.0 * number for number in range(2, 62)]


def values_of(matrix: dict[str, Any]) -> Any:
    """The values of an embedded matrix, row by row."""
    return np.frombuffer(base64.b64decode(matrix["values"]), dtype="<f4").reshape(matrix["ranks"], matrix["ranks"])


def test_a_matrix_comes_back(store: Path) -> None:
    with open_results(store) as results:
        (matrix,) = pair_matrices(results.run(1))
        embedded = matrix_json(rank_values(matrix, str))
    values = values_of(embedded)
    assert np.isnan(values.diagonal()).all()
    for (a, b), time in matrix.times.items():
        assert values[a, b] == pytest.approx(time.value, rel=1e-6)
    assert embedded["outliers"] == ((1, 3),)


def test_the_archive_is_among_the_machines(page: str) -> None:
    points = [(point.year, round(point.latency_ns), point.rate_bytes_per_s / 1e6) for point in archive_points()]
    assert points == [
        (1997, 6600, pytest.approx(1024 / 216.9)), (1996, 1096, pytest.approx(126.0, rel=1e-3)), (1994, 615000, 12.2),
        (2000, 6300, 84.1), (2000, 3200, 133.0),
    ]  # fmt: skip
    (view,) = figures_of(page)["charts"]["machines"]["views"]
    assert {line["name"] for line in view["lines"]} >= {"Cray T3D, 1996", "Ancor Fibre Channel, 1994"}


def test_patterns_are_defined_by_the_summaries_that_the_run_holds(page: str) -> None:
    """As an import, it holds none of alltoall: that has a curve without a definition."""
    defined = figures_of(page)["definitions"]
    assert {*defined} == {"pingpong", "oneway"}
    assert defined["oneway"] == "One after the other."
    assert "One after the other." in parsed(page).texts


def test_a_run_without_figures_has_a_page(tmp_path: Path, cli: Cli) -> None:
    store_run(tmp_path / "results.db", "mine", [Made(Point("shm", "pingpong", 2, 8), failed="it <b>broke</b>")])
    assert cli("report", "last", "-o", "r.html").returncode == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "so there is no verdict" in page
    assert "it &lt;b&gt;broke&lt;/b&gt;" in page


def test_a_health_run_has_a_verdict_and_both_matrices(tmp_path: Path, cli: Cli) -> None:
    slow = {pair: 0.25 for other in (0, 2, 3) for pair in ((1, other), (other, 1))}
    store_health(tmp_path / "results.db", 4, rates=slow)
    assert cli("report", "last", "-o", "r.html").returncode == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Found among the hosts: n2 is slow." in page
    assert "so there is no verdict" not in page
    rates, latencies = figures_of(page)["matrices"]
    assert (rates["unit"], latencies["unit"]) == ("bytes/s", "ns")
    assert rates["hosts"] == latencies["hosts"] == ["n1", "n2", "n3", "n4"]
    assert np.nanmin(values_of(rates)) == pytest.approx(25e6, rel=1e-3)
    assert np.nanmin(values_of(latencies)) == pytest.approx(20e3, rel=1e-3)
    assert "All pairs of hosts" in page
    assert cli("report", "last", "-o", "r.md").returncode == 0
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "## Bandwidth, all pairs of a round at once: usually 100 MB/s\n" in text
    assert "| n1 |  | 25.0 MB/s | 100 MB/s | 100 MB/s |\n" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["last", "-o", "no/r.html"], "there is no folder no"),
        (["last", "-o", "results.db"], "would write over"),
        (["last", "last", "-o", "r.html"], "run 2 is named twice"),
        (["last", "-o", "r.pdf", "--format", "pdf"], "unknown format 'pdf'"),
        (["nine", "-o", "r.html"], "unknown run 'nine'"),
        (["last", "-o", "r.txt"], "r.txt does not show the format"),
        (["last", "-o", "report"], "report does not show the format"),
        (["last", "-o", "r.svg"], "there is no chart 'r' of this run; there are layers, "),
        (["last", "-o", "r.html", "--format", "md"], "--format md contradicts .html"),
        ([], "name the file to write: `hockney report -o report.html`"),
        (["last", "--format", "svg"], "name the file to write: `hockney report last --format svg -o pictures`"),
    ],
)
def test_bad_input_gets_one_sentence(tmp_path: Path, cli: Cli, arguments: list[str], sentence: str) -> None:
    for _ in range(2):
        store_run(tmp_path / "results.db", "quick", [Made(Point("shm", "pingpong", 2, 8), 50.0, 2, 16)])
    done = cli("report", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("name", "given", "form"),
    [("r.md", None, "md"), ("r.HTM", None, "html"), ("r.out", "md", "md"), ("r", "html", "html"), ("r.md", "md", "md")],
)
def test_the_suffix_decides_the_format(name: str, given: str | None, form: str) -> None:
    assert form_of(Path(name), given) == form


def test_options_name_a_curve(tmp_path: Path, cli: Cli) -> None:
    made = [Made(Point("shm", "oneway", 2, s, options(window=16)), 50.0 + s, 16, 16 * s) for s in (8, 64, 512)]
    store_run(tmp_path / "results.db", "mine", made)
    assert cli("report", "last", "-o", "r.html").returncode == 0
    data = figures_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert [curve["pattern"] for curve in data["curves"]] == ["oneway window=16"]


def test_a_run_of_a_classic_suite_has_the_tables_of_its_screen(tmp_path: Path, cli: Cli) -> None:
    """Its first page is open, tables of many rows are folded."""
    store_run(tmp_path / "results.db", "atlas", [Made(Point("shm", "oneway", 2, 4), 660)])
    assert cli("report", "last", "-o", "r.html").returncode == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    section = page.partition('<section id="classic"')[2].partition("</section>")[0]
    for title in ("Roger Heeley", "Does it hold here?"):
        assert f"<details open><summary>{title}" in section
    assert "<details><summary>What decided the conclusions" in section


@pytest.mark.full
def test_quick_writes_one_too(tmp_path: Path, cli: Cli) -> None:
    done = cli("quick", "--time", "1s", "--report", "r.html", "-q")
    assert done.returncode in (0, 3), done.stderr  # a second may be too short for an interval
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert figures_of(page)["format"] == "hockney-report"
    assert "hockney quick --time 1s" in page
    refused = cli("quick", "--report", "none/r.html")
    assert refused.returncode == 2
    assert "there is no folder none" in refused.stderr


def test_quick_refuses_a_report_of_unknown_format_before_it_measures(cli: Cli) -> None:
    refused = cli("quick", "--report", "r.txt")
    assert refused.returncode == 2
    assert refused.stderr == "hockney: r.txt does not show the format: end its name with .html, .md, .svg or .png\n"


def test_markdown_says_what_screens_say(store: Path, cli: Cli, tmp_path: Path) -> None:
    done = cli("report", "1", "-o", "r.md", "--format", "md", "--store", str(store))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert text.startswith("# Test CPU, 2 cores, 8 GiB · ")
    assert "A message of 8 B takes 121 ns" in text
    assert re.search(r"^- Open MPI 4\.1\.4 .*: suspected protocol switch between 2 KiB and 4 KiB\. ", text, re.M)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1  # nothing ends a cell
    assert re.search(r"^\| shm \| 50\.\d ns ±\d+% +\|", text, re.MULTILINE)
    assert "<" not in text  # of scripts and images


def test_markdown_of_several_runs_begins_with_the_comparison(store: Path, cli: Cli, tmp_path: Path) -> None:
    texts = []
    for runs in (["1"], ["2"], ["1", "2"]):
        done = cli("report", *runs, "-o", "r.md", "--format", "md", "--store", str(store))
        assert done.returncode == 0, done.stderr
        texts.append((tmp_path / "r.md").read_text(encoding="utf-8"))
    comparison, *sections = re.split(r"^(?=# )", texts[2], flags=re.MULTILINE)
    assert [section.strip() for section in sections] == [text.strip() for text in texts[:2]]
    assert comparison.startswith("## Comparison: run 1")
    for line in cli("compare", "1", "2", "--store", str(store)).stdout.splitlines()[-1:]:
        assert line.replace(">", "&gt;") in comparison
