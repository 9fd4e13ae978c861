"""What `/spark tps` says, and the comparison of such figures."""

import re

from .failure import Failure

NAMES = ("mean", "min", "median", "95 %", "max")

# From so many seconds on the longer row is about this phase alone.
MINUTE = 62


class Ticks:
    """The lengths of ticks in milliseconds, and processor time in percent."""

    def __init__(self, lines, seconds):
        is_long = seconds >= MINUTE
        row = "1 min" if is_long else "10 s"
        self.millis = numbers(lines, rf"\s{row}: ", "/")
        # Over 5 s, 10 s, 1 min, ..., and over 10 s, 1 min, ...; the longer ones are said when there is more than the shorter ones show.
        self.tps = numbers(lines, r"TPS over ", ",")[: 3 if is_long else 2][-1]
        self.cpu = numbers(lines, r"CPU of the server", ",")[: 2 if is_long else 1][-1]


def numbers(lines, pattern, separator):
    for line in lines:
        # The first line of an answer has the server's own words before it.
        line = line.split("[⚡]")[-1]
        if not re.search(pattern, line):
            continue
        figures = line.rsplit(": ", 1)[1].replace("%", "").split(separator)
        try:
            found = [float(figure) for figure in figures if "not yet" not in figure]
        except ValueError as error:
            raise Failure(f"cannot read '{line}'") from error
        if found:
            return found
    raise Failure("'/spark tps' has no figures like '" + pattern + "':\n" + "\n".join("  | " + line for line in lines))


def mean(values):
    return sum(values) / len(values)


def compare(name, without, with_session):
    """Lines of a table about one kind of phase: the rounds without a session, those with one, and how far the first are apart from each other."""
    yield f"{name}: {len(without)} times without a session, {len(with_session)} times with one"
    yield f"  {'milliseconds per tick':<24}{'without':>10}{'with':>10}{'more':>10}{'spread':>10}"
    for index, figure in enumerate(NAMES):
        yield row(figure, [t.millis[index] for t in without], [t.millis[index] for t in with_session])
    yield row("ticks per second", [t.tps for t in without], [t.tps for t in with_session])
    yield row("server's CPU in %", [t.cpu for t in without], [t.cpu for t in with_session])


def row(name, without, with_session):
    apart = max(without) - min(without)
    more = mean(with_session) - mean(without)
    return f"  {name:<24}{mean(without):>10.2f}{mean(with_session):>10.2f}{more:>+10.2f}{apart:>10.2f}"
