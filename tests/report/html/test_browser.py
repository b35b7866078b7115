"""The page in a real browser: charts have something on them, controls work, nothing leaves the page or complains."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright
from tests.analysis.compare.nights import DAY_S, FIRST_S, step_of_tcp
from tests.report.html.made import store_made, write_large_page

from hockney.cli import execute
from hockney.report.words import figure_text
from hockney.results.store import Store
from hockney.stats.interval import Estimate
from hockney.units import format_ns

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = ViewportSize(width=1280, height=900), ViewportSize(width=390, height=844)
BLANK = """canvas => {
  const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const colors = new Set();
  for (const pixel of new Uint32Array(bytes.buffer)) if (colors.add(pixel).size >= 5) return false;
  return true;
}"""
# Of every text that ECharts has drawn: chart, words, and its box.
LABELS = """() => [...drawn.entries()].filter(([, state]) => state.chart).flatMap(([target, state]) =>
  state.chart.getZr().storage.getDisplayList(true).filter(each => each.style && each.style.text && !each.ignore
    && !each.invisible && each.style.opacity !== 0).map(each => {
    const box = each.getBoundingRect().clone();
    box.applyTransform(each.getComputedTransform());
    return [target.id || target.dataset.chart, each.style.text, box.x, box.y, box.width, box.height];
  }))"""


@dataclass
class Seen:
    """Side effects of a page: requests, messages and errors."""

    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium is here")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def looked_at(browser: Browser, page_file: Path) -> Iterator[Page]:
    """The page of tests that change nothing on it."""
    page, _ = opened(browser, page_file)
    _KEPT.append(page)
    yield page
    _KEPT.clear()


_KEPT: list[Page] = []


def opened(browser: Browser, path: Path, size: ViewportSize = DESKTOP, **more: Any) -> tuple[Page, Seen]:
    """The page, scrolled through once, so that all charts are drawn; the one before it is closed."""
    for before in browser.contexts:
        if not _KEPT or before != _KEPT[0].context:
            before.close()
    context = browser.new_context(viewport=size, **more)
    page, seen = context.new_page(), Seen()
    page.on("console", lambda message: seen.messages.append(message.text))
    page.on("pageerror", lambda error: seen.messages.append(str(error)))
    page.on("dialog", lambda dialog: seen.messages.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(path.as_uri())
    page.evaluate("for (const each of document.querySelectorAll('.nineties')) each.open = true")
    page.evaluate("for (const target of drawn.keys()) drawNow(target)")
    return page, seen


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_chart_shows_something_and_nothing_complains(
    browser: Browser, page_file: Path, size: ViewportSize, scheme: Any
) -> None:
    page, seen = opened(browser, page_file, size, color_scheme=scheme)
    canvases = page.locator(".canvas canvas, .matrix canvas")
    assert canvases.count() >= 10
    assert [number for number in range(canvases.count()) if canvases.nth(number).evaluate(BLANK)] == []
    assert seen.messages == []
    assert seen.requests == [page_file.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_no_labels_overlap(browser: Browser, page_file: Path, size: ViewportSize) -> None:
    page, _ = opened(browser, page_file, size)
    overlapping = []
    labels = [label for label in page.evaluate(LABELS) if label[2] > -500]  # those without room are put there
    assert len(labels) > 40
    for number, (chart, text, x, y, width, height) in enumerate(labels):
        for other, words, left, top, wide, high in labels[number + 1 :]:
            across = min(x + width, left + wide) - max(x, left)
            down = min(y + height, top + high) - max(y, top)
            if chart == other and across > 2 and down > 4:  # a box has room above and below its letters
                overlapping.append((chart, text, words))
    assert overlapping == []


@pytest.mark.parametrize(
    ("scheme", "rules"), [("light", {}), ("dark", {"runOnly": ["color-contrast"]})], ids=["light", "dark"]
)
def test_axe_finds_nothing(browser: Browser, page_file: Path, scheme: Any, rules: dict[str, Any]) -> None:
    """The themes differ in colours only, and the rows of a table in figures only: the first rows stand for all."""
    page, _ = opened(browser, page_file, color_scheme=scheme, bypass_csp=True)  # axe itself is a script
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    page.evaluate("for (const each of document.querySelectorAll('.figures tbody tr:nth-child(n+4)')) each.remove()")
    page.wait_for_timeout(200)
    violations = Axe().run(page, options={"resultTypes": ["violations"], **rules}).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in violations] == []


def names_drawn(page: Page, chart: str = "curve-chart") -> set[str]:
    """The curves of a chart."""
    option = f"drawn.get(document.getElementById('{chart}')).chart.getOption()"
    return set(page.evaluate(f"{option}.series.filter(each => each.name && each.data.length).map(each => each.name)"))


def test_transports_states_and_patterns_are_switched(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser, page_file)
    before = names_drawn(page)
    assert {"shm, run 1", "unix, run 1", "shm, run 2", "floor", "memcpy"} <= before
    controls = page.locator("#curve-controls")
    controls.get_by_label("unix").uncheck()
    assert names_drawn(page) == {name for name in before if not name.startswith("unix")}
    controls.get_by_label("run 2").uncheck()
    assert not [name for name in names_drawn(page) if name.endswith("run 2")]
    for box in controls.locator("fieldset").first.get_by_role("checkbox").all():
        box.uncheck()
    assert names_drawn(page) == set()


def test_changes_over_time_are_rings_that_say_what_differed(browser: Browser, tmp_path: Path) -> None:
    with Store.open(tmp_path / "r.db") as store:
        step_of_tcp(store, label="nightly")
    assert execute(["report", "last", "-o", str(tmp_path / "r.html"), "--store", str(tmp_path / "r.db")]) == 0
    page, seen = opened(browser, tmp_path / "r.html")
    chart = "drawn.get(document.querySelector('[data-chart=history]')).chart"
    number = page.evaluate(f"{chart}.getOption().series.findIndex(each => each.name === 'tcp')")
    points = page.evaluate(f"{chart}.getOption().series[{number}].data")
    assert [point["value"][0] for point in points] == [1000 * (FIRST_S + night * DAY_S) for night in range(20)]
    assert [place for place, point in enumerate(points) if point.get("text")] == [10]
    page.evaluate(f"{chart}.dispatchAction({{type: 'showTip', seriesIndex: {number}, dataIndex: 10}})")
    text = page.locator("[data-chart=history] .tip").inner_text()
    assert re.search(r"tcp: \+2\d\.\d % .*, run 10 -> run 11: kernel: Linux 6.1 -> Linux 6.6", text)
    assert seen.messages == []


def test_memcpy_is_a_reference_of_both_quantities_and_a_separate_curve(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser, page_file)
    page.get_by_role("button", name="Bandwidth").click()
    option = "drawn.get(document.getElementById('curve-chart')).chart.getOption()"
    points = page.evaluate(f"{option}.series.find(each => each.name === 'memcpy').data.map(each => each.point)")
    assert points[-1][0] == 1 << 20
    assert points[-1][1] == pytest.approx(1e9 * (1 << 20) / (2 + 0.01 * (1 << 20)), rel=0.01)
    assert "memcpy, a copy of that size within one rank" in page.locator("#curve-note").inner_text()
    page.locator("#curve-controls select").select_option("memcpy, 1 rank")
    assert "memcpy" not in names_drawn(page)


def test_a_band_has_a_gap_where_there_is_no_interval(looked_at: Page) -> None:
    count = "points => bands(TIME_CHART, { points }, 'red').length"
    known, unknown = [4, 6], [None, None]
    assert looked_at.evaluate(count, [[1, 5, *known], [2, 5, *known], [4, 5, *known]]) == 1
    gap = [[1, 5, *known], [2, 5, *known], [4, 5, *unknown], [8, 5, *known], [16, 5, *known]]
    assert looked_at.evaluate(count, gap) == 2
    assert looked_at.evaluate(count, [[1, 5, *known], [2, 5, *unknown], [4, 5, *known]]) == 0


def test_a_narrow_page_names_marks_by_number(browser: Browser, page_file: Path) -> None:
    for size, is_narrow in ((PHONE, True), (DESKTOP, False)):
        page, _ = opened(browser, page_file, size)
        names = page.locator("[data-legend=machines] span")
        assert names.first.is_visible() is is_narrow
        texts = {text for chart, text, *_ in page.evaluate(LABELS) if chart == "machines"}
        assert ({"1", "2", "3"} <= texts) is is_narrow
        assert names.nth(1).text_content() == "2 Cray T3D, 1996"


def test_the_list_of_sections_follows_the_page(looked_at: Page) -> None:
    looked_at.evaluate("document.getElementById('reports').scrollIntoView({ behavior: 'instant' })")
    looked_at.locator('nav a[href="#reports"][aria-current]').wait_for()


def test_pointing_at_a_curve_shows_figures_and_the_definition(browser: Browser, page_file: Path) -> None:
    page, seen = opened(browser, page_file)
    chart = page.locator("#curve-chart")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.5)
    tip = chart.locator(".tip")
    tip.wait_for()
    text = tip.inner_text()
    assert re.search(r"\d+(\.\d+)? [nu]s ±\d+%", text)
    assert "half the round trip" in text
    assert seen.messages == []


def test_the_keyboard_walks_along_a_curve_and_a_matrix(looked_at: Page) -> None:
    looked_at.locator("#curve-chart").focus()
    looked_at.keyboard.press("ArrowRight")
    looked_at.locator("#curve-chart .tip").wait_for()
    looked_at.locator(".matrix canvas").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        looked_at.keyboard.press(key)
    assert re.match(r"Rank 1 .* to rank|Rank 1 .* to 1", looked_at.locator(".reading").inner_text())


def test_a_prediction_names_its_run(looked_at: Page) -> None:
    chart = looked_at.locator("[data-chart=predictions-chart]")
    assert not chart.locator("canvas").first.evaluate(BLANK)
    chart.focus()
    looked_at.keyboard.press("ArrowRight")
    text = chart.locator(".tip").inner_text()
    assert re.search(r"alltoall of 1 KiB, 2 ranks: [+-]", text)
    assert "measured" in text
    assert "predicted" in text


def test_a_narrow_page_folds_its_filter(browser: Browser, page_file: Path) -> None:
    for size, is_open in ((DESKTOP, True), (PHONE, False)):
        page, _ = opened(browser, page_file, size)
        assert page.get_by_label("unix").first.is_visible() is is_open
        page.evaluate("document.querySelector('.filter').open = true")
        assert page.get_by_label("unix").first.is_visible()


def test_a_command_can_be_copied(browser: Browser, page_file: Path) -> None:
    page, seen = opened(browser, page_file, permissions=["clipboard-read", "clipboard-write"])
    button = page.locator(".fix code + .copy:visible").first
    command = button.evaluate("each => each.previousElementSibling.textContent")
    button.click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == command
    assert seen.messages == []


def test_a_comparison_begins_the_page_and_each_run_has_its_look(looked_at: Page) -> None:
    assert looked_at.locator("main section").first.get_attribute("id") == "comparison"
    looks = looked_at.evaluate(
        "shownCurves().map(curve => [curve.run, lineOf(curve, false)]).map(([run, line]) => "
        "[run, curveName(line.curve), look(line.place).color, line.dash])"
    )
    names = {run: {tuple(look) for other, _, *look in looks if other == run} for run in (1, 2)}
    assert not names[1] & names[2]


def test_the_fastest_of_each_class_are_under_the_axis(browser: Browser, tmp_path: Path) -> None:
    store_made(tmp_path / "r.db")
    assert execute(["report", "1", "-o", str(tmp_path / "r.html"), "--store", str(tmp_path / "r.db")]) == 0
    page, seen = opened(browser, tmp_path / "r.html")
    texts = {text for chart, text, *_ in page.evaluate(LABELS) if chart == "curve-chart"}
    assert {"shared memory", "threads"} <= texts
    page.get_by_role("button", name="Bandwidth").click()
    texts = {text for chart, text, *_ in page.evaluate(LABELS) if chart == "curve-chart"}
    assert "shared memory" not in texts
    assert seen.messages == []


def test_a_link_from_a_finding_sets_the_curves(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser, page_file)
    link = page.locator('a[href="#curves"][data-shows*="mpi@openmpi"]').first
    link.click()
    assert {name.partition(",")[0] for name in names_drawn(page)} - {"floor", "memcpy"} == {
        next(name for name in names_drawn(page) if name.startswith("Open MPI")).partition(",")[0]
    }
    assert page.evaluate("window.scrollY") > 200


def test_every_chart_has_its_figures_as_a_table(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser, page_file)
    tables = page.locator("details.figures")
    assert tables.count() >= 9
    for number in range(tables.count()):
        tables.nth(number).locator("summary").click()
        tables.nth(number).locator("tbody tr").nth(1).wait_for()
        assert tables.nth(number).locator("thead th").count() >= 3


def test_charts_are_drawn_again_when_the_width_changes(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser, page_file)
    page.set_viewport_size(PHONE)
    fits = "[...drawn].every(([target, state]) => state.chart.getWidth() === target.clientWidth)"
    page.wait_for_function(fits)
    assert (
        page.evaluate(
            "Math.max(...[...document.querySelectorAll('select')].map(each => each.getBoundingClientRect().right))"
        )
        <= 390
    )


def test_a_bar_has_its_sum_at_its_end(looked_at: Page) -> None:
    texts = [text for chart, text, *_ in looked_at.evaluate(LABELS) if chart == "layers"]
    assert {"48.2 ns", "121 ns"} <= set(texts)


def test_the_button_saves_every_figure_as_csv(looked_at: Page) -> None:
    with looked_at.expect_download() as download:
        looked_at.click("#csv")
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("run,transport,pattern,ranks,bytes,state,time_ns")
    count = looked_at.evaluate("data.curves.reduce((sum, curve) => sum + curve.x.length, 0)")
    assert len(lines) == count + 1
    row = next(line for line in lines if line.startswith("1,shm,pingpong,2,512,"))
    assert float(row.split(",")[6]) == pytest.approx(60.4, rel=0.02)


def test_the_theme_is_switched(browser: Browser, page_file: Path) -> None:
    page, _ = opened(browser, page_file)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("#theme")
    assert page.evaluate(paper) != light
    page.emulate_media(color_scheme="dark")
    page.click("#theme")
    assert page.evaluate(paper) == light


def test_figures_are_written_as_on_the_screen(looked_at: Page) -> None:
    for bounds in (
        (8240.0, 8400.0),
        (4160.0, 8400.0),
        (4150.0, 8400.0),
        (126.0, 2.1e6),
        (8319.0, 8321.0),
        (8320.0,) * 2,
    ):
        for is_range in (False, True):
            text = looked_at.evaluate(
                "([low, high, isRange]) => withInterval(8320, low, high, UNIT_TEXT.ns, isRange)", [*bounds, is_range]
            )
            time = Estimate(8320.0, *bounds)
            assert text == " ".join(filter(None, figure_text(time, format_ns, is_range=is_range)))


def test_it_prints(browser: Browser, page_file: Path) -> None:
    page, seen = opened(browser, page_file, color_scheme="dark")
    pdf = page.pdf(print_background=True)
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 3
    assert seen.messages == []


def test_a_hundred_curves_and_a_large_matrix_are_drawn_from_a_small_file(browser: Browser, tmp_path: Path) -> None:
    path = write_large_page(tmp_path)
    assert path.stat().st_size < 1_400_000
    page, seen = opened(browser, path)
    assert len(names_drawn(page) - {"floor"}) == 100
    page.get_by_role("button", name="Bandwidth").click()
    assert len(names_drawn(page)) == 100
    canvas = page.locator(".matrix canvas")
    assert not canvas.evaluate(BLANK)
    canvas.focus()
    for key in ("ArrowDown", *["ArrowDown"] * 3, *["ArrowRight"] * 5):  # the first key begins at (0, 0)
        page.keyboard.press(key)
    assert page.locator(".reading").inner_text() == "Rank 3 (CPU 3) to 5 (CPU 5): 4.00 us"
    assert seen.messages == []
