"""The controls of a moment: a time line of the input with a slider over its steps, the state of a query, why-not."""

from __future__ import annotations

import argparse
import re
import shlex
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...app import Moment, WhyNot
from ...app.pictures.history_picture import history_picture
from ...app.pictures.moment_picture import moment_picture
from ...app.results.moment import MomentSource
from ...charts.picture_layout import lay_out
from ...charts.scales import Scale
from ...charts.style import WIDTH
from ...charts.svg_picture import svg
from ...charts.value_texts import when
from ...errors import Misuse, SparkStreamError
from ...option_values import attribute_and_value
from ...replay.input_history import StepRows
from ..display import html, text
from ..moments_shown import changed_query, head_html, moment_html, state_html, tables_html

_NARROWEST = 320
_PAGE_INK = "currentColor"
_TIME_OF_DAY = re.compile(r"\d\d?:\d\d")


@dataclass(frozen=True)
class _Timeline:
    """The drawing of all steps of an input, for `width` px, and its scale of the clock (ms) from `start` to `end`."""

    source: MomentSource
    width: int
    drawing: str
    scale: Scale
    start: int
    end: int

    @classmethod
    def of(cls, moment: Moment, width: int) -> _Timeline:
        """The time line of a moment's input."""
        history = moment.source.history()
        picture = history_picture(moment, width)
        scale = lay_out(picture, width).panels[0].x
        ends = history.clock_at(0), history.clock_at(len(history.clock))
        return cls(moment.source, width, svg(picture, width, _PAGE_INK), scale, *ends)


@dataclass(frozen=True)
class _Search:
    """A value that is looked for, and the positions that bring it."""

    words: str
    rows: StepRows

    def describe(self, position: int) -> str:
        """`2 of 7 steps`, of the match at a position; `7 steps` elsewhere."""
        positions = self.rows.positions.tolist()
        number = f"{positions.index(position) + 1:,} of " if position in positions else ""
        return f"{number}{len(positions):,} {'step' if len(positions) == 1 else 'steps'}"


class MomentControls:
    """The controls of a moment and their drawing, in one view or as a part of another. Thread-safe. `draw_later` is
    called when the answer to a question is there."""

    def __init__(self, moment: Moment, draw_later: Callable[[], None], query: str = "") -> None:
        """`query`: whose state is drawn first, if it has one."""
        self.moment, self._own_source = moment, moment.source
        self.before = moment.back() if moment.position else None
        has_state = query in [q.name for q in moment.queries()]
        self.query = query if has_state else changed_query(moment, self.before)
        self.answer: WhyNot | None = None
        self._draw_later = draw_later
        self._lock = threading.RLock()
        self._width = WIDTH
        self._timeline: _Timeline | None = None
        self._stream = next(iter(moment.source.history().outputs), "")
        self._search: _Search | None = None
        self._failure = self._why_not_failure = ""
        self._is_asking = False

    def forms(self) -> dict[str, str]:
        """The saved form by MIME type, without controls."""
        with self._lock:
            return {"text/plain": text(self.moment), "text/html": moment_html(self.moment, self.before, self.query)}

    def handle(self, message: Mapping[str, Any]) -> None:
        """Carries out an action in the page."""
        with self._lock:
            self._failure = ""
            try:
                self._act(message["do"], message)
            except SparkStreamError as e:
                self._failure = " ".join(str(e).split())

    def _act(self, do: str, message: Mapping[str, Any]) -> None:
        source, position = self.moment.source, self.moment.position
        match do:
            case "here":
                self._width = max(_NARROWEST, int(message["width"]))
            case "go":
                self._go(max(0, min(int(message["position"]), self.moment.steps)))
            case "time":
                start, end = self._drawn_timeline().start, self._drawn_timeline().end
                self._go(source.position_of(min(max(round(float(message["ms"])), start), end)))
            case "place":
                self._go(self._position_of(str(message["text"]).strip()))
            case "output":
                self._stream = str(message["stream"])
                self._go_along(source.history().outputs[self._stream], message, f"output of {self._stream}")
            case "find":
                self._find(str(message["text"]).strip(), message)
            case "query":
                self.query = str(message["query"])
            case "ask":
                self._ask(message)
            case "proof" if self.answer is not None and self.answer.proof is not None:
                self._show(self.answer.at())
            case "own":
                self._show(self._own_source.moment(min(position, self._own_source.history().recording.steps)))

    def _go(self, position: int) -> None:
        """Goes to a position of the same input."""
        moments = {m.position: m for m in (self.before, self.moment) if m is not None}
        source = self.moment.source
        before = moments.get(position - 1) or source.moment(position - 1) if position else None
        self.before, self.moment = before, moments.get(position) or source.moment(position)

    def _show(self, moment: Moment) -> None:
        """Shows a moment of another input."""
        self.moment, self.before = moment, moment.back() if moment.position else None
        self._search = None

    def _go_along(self, rows: StepRows, message: Mapping[str, Any], what: str) -> None:
        """Goes to the next or the previous of some positions."""
        position, is_back = self.moment.position, bool(message["back"])
        target = rows.previous(position) if is_back else rows.next(position)
        if target is None:
            raise Misuse(f"there is no {what} {'before' if is_back else 'after'} step {position:,}")
        self._go(target)

    def _find(self, words: str, message: Mapping[str, Any]) -> None:
        if not words:
            self._search = None
            return
        if self._search is None or self._search.words != words:
            self._search = _Search(words, self.moment.source.history().search(words))
        self._go_along(self._search.rows, message, f"event or output with the value {words}")

    def _position_of(self, place: str) -> int:
        """The position of an event's number, a time, or a time on the day of the moment."""
        source = self.moment.source
        history = source.history()
        if place.isdigit() and int(place) <= history.recording.events:
            return source.position_of(event=int(place))
        day = when(history.clock_at(self.moment.position))[:10]
        return source.position_of(f"{day} {place.zfill(5)}" if _TIME_OF_DAY.match(place) else place)

    # -------------------------------------------------------------------------------------------------------- why not

    def _ask(self, message: Mapping[str, Any]) -> None:
        """Asks why an output did not come, in a thread, as that may take a while."""
        if self._is_asking:
            return
        self._why_not_failure, self.answer = "", None
        try:
            values = _values_of(str(message["values"]))
        except Misuse as e:
            self._why_not_failure = str(e)
            return
        self._is_asking = True
        arguments = str(message["stream"]), values, str(message["at"]).strip() or None
        threading.Thread(target=self._answer, args=arguments, name="why-not", daemon=True).start()

    def _answer(self, stream: str, values: Mapping[str, str], at: str | None) -> None:
        answer, failure = None, ""
        try:
            answer = self._own_source.why_not(stream, values, at)
        except SparkStreamError as e:
            failure = " ".join(str(e).split())
        finally:
            with self._lock:
                self.answer, self._why_not_failure, self._is_asking = answer, failure, False
            self._draw_later()

    def _drawn_timeline(self) -> _Timeline:
        """The time line of the input, which is drawn once for a width."""
        timeline, source = self._timeline, self.moment.source
        if timeline is None or timeline.source is not source or timeline.width != self._width:
            self._timeline = timeline = _Timeline.of(self.moment, self._width)
        return timeline

    def state(self) -> dict[str, Any]:
        """The state that `moment_controls.js` draws. Its HTML and SVG have all texts escaped."""
        with self._lock:
            return self._state()

    def _state(self) -> dict[str, Any]:
        m, timeline = self.moment, self._drawn_timeline()
        history, scale = m.source.history(), timeline.scale
        picture = moment_picture(m, self.before, self.query) if self.query else None
        state = "" if picture is None else svg(picture, self._width, _PAGE_INK)
        return {
            "position": m.position,
            "steps": m.steps,
            "clock": "before the first step" if m.clock is None else when(m.clock),
            "timeline": timeline.drawing,
            "place": scale.place(history.clock_at(m.position)),
            "ends": [scale.place(timeline.start), scale.place(timeline.end), timeline.start, timeline.end],
            "streams": list(history.outputs),
            "stream": self._stream,
            "head": head_html(m),
            "queries": [q.name for q in m.queries()],
            "query": self.query,
            "state": state_html(m, self.query, state) if self.query else "",
            "tables": tables_html(m),
            "found": "" if self._search is None else self._search.describe(m.position),
            "failed": self._failure,
            "asking": self._is_asking,
            "answer": "" if self.answer is None else html(self.answer),
            "proved": self.answer is not None and self.answer.proof is not None,
            "unanswered": self._why_not_failure,
            "branch": m.source is not self._own_source,
        }


def _values_of(words: str) -> dict[str, str]:
    """The values of `card='card-07', total=3`. Raises `Misuse`."""
    lexer = shlex.shlex(words, posix=True)
    lexer.whitespace += ","
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return dict(attribute_and_value(word) for word in lexer)
    except (ValueError, argparse.ArgumentTypeError) as e:
        raise Misuse(f"values are like card='card-07', total=3: {e}") from None
