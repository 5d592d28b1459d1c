"""The queries of Nexmark, each as rules and as SQL over the same Parquet files.

Where the benchmark asks for the state of a table that grows for ever (q15 to q19), the totals here are those of a day; q4 averages
over windows of ten seconds; q12 counts by the time of events. SQL names the columns of the answers, then start and end in microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

EVENTS = """
event person(person: int, name: string, email: string, card: string, city: string, state: string).
event auction(auction: int, item: string, description: string, initial: int, reserve: int, expires: timestamp, seller: int, category: int).
event bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string).
"""
CLOSED = """
closed(S, N, C, max(P)) SINCE END <- a: auction(auction = N, seller = S, category = C, expires = E),
    w: until(a, E, most = 10 min), while w: collect bid(auction = N, price = P).
"""
POINT = "epoch_us(time) AS start, epoch_us(time) AS stop"
CLOSED_SQL = """closed AS (SELECT a.seller, a.auction, a.category, max(b.price) AS price, epoch_us(a.expires) AS stop
    FROM auction a JOIN bid b ON a.auction = b.auction AND b.time BETWEEN a.time AND a.expires
    GROUP BY a.seller, a.auction, a.category, a.expires)"""


@dataclass(frozen=True)
class Query:
    """A query as rules and as SQL."""

    title: str
    rules: str
    sql: str
    facts: bool = False  # whether it reads the table that bids are joined with

    @property
    def text(self) -> str:
        static = "static side(key: int, value: string).\n" if self.facts else ""
        return f"{EVENTS}{static}{self.rules}"


def window(time: str, seconds: int) -> str:
    """The start of a window by the clock in SQL."""
    size = seconds * 1_000_000
    return f"epoch_us({time}) // {size} * {size}"


def ends(start: str, seconds: int) -> str:
    """The borders of a window in SQL: the last microsecond belongs to it."""
    return f"{start} AS start, {start} + {seconds * 1_000_000 - 1} AS stop"


TEN, DAY = window("time", 10), window("time", 86_400)
CLASSES = ("P < 10000", "P >= 10000 and P < 1000000", "P >= 1000000")
SQL_CLASSES = tuple(text.replace("P", "price") for text in CLASSES)
COUNTS = ", ".join(["count()", *(f"count(if({c}, 1, null))" for c in CLASSES)])
SQL_COUNTS = ", ".join(["count(*)", *(f"count(*) FILTER ({c})" for c in SQL_CLASSES)])


def distinct(variable: str) -> str:
    filtered = (f"count(distinct if({c}, {variable}, null))" for c in CLASSES)
    return ", ".join([f"count(distinct {variable})", *filtered])


def sql_distinct(column: str) -> str:
    filtered = (f"count(DISTINCT {column}) FILTER ({c})" for c in SQL_CLASSES)
    return ", ".join([f"count(DISTINCT {column})", *filtered])


QUERIES: Mapping[str, Query] = {
    "q0": Query(
        "pass through",
        "q0(A, B, P, C, U, X) <- bid(A, B, P, C, U, X).",
        f"SELECT auction, bidder, price, channel, url, extra, {POINT} FROM bid",
    ),
    "q1": Query(
        "currency",
        "q1(A, B, P * 0.908, X) <- bid(auction = A, bidder = B, price = P, extra = X).",
        f"SELECT auction, bidder, price * 0.908::DOUBLE, extra, {POINT} FROM bid",
    ),
    "q2": Query(
        "selection",
        "q2(A, P) <- bid(auction = A, price = P), A mod 123 = 0.",
        f"SELECT auction, price, {POINT} FROM bid WHERE auction % 123 = 0",
    ),
    "q3": Query(
        "local items",
        """q3(N, C, S, A) <- auction(auction = A, seller = P, category = 10),
            person(person = P, name = N, city = C, state = S), S in ('OR', 'ID', 'CA').""",
        """SELECT name, city, state, auction, epoch_us(least(a.time, p.time)), epoch_us(greatest(a.time, p.time))
        FROM auction a JOIN person p ON a.seller = p.person WHERE category = 10 AND state IN ('OR', 'ID', 'CA')""",
    ),
    "q4": Query(
        "average price",
        f"output q4. {CLOSED} q4(C, avg(P)) <- w: every(10s), while w: collect closed(_, _, C, P).",
        f"""WITH {CLOSED_SQL} SELECT category, avg(price), {ends("stop // 10000000 * 10000000", 10)}
        FROM closed GROUP BY category, stop // 10000000""",
    ),
    "q5": Query(
        "hot items",
        "q5(A, count()) <- w: every(10s, 2s), while w: collect bid(auction = A) TOP 1 BY count() WITH TIES.",
        f"""WITH counts AS (SELECT auction, count(*) AS bids, begins FROM (
            SELECT auction, {window("time", 2)} - 2000000 * unnest(range(5)) AS begins FROM bid) GROUP BY auction, begins)
        SELECT auction, bids, {ends("begins", 10)} FROM counts
        QUALIFY rank() OVER (PARTITION BY begins ORDER BY bids DESC) = 1""",
    ),
    "q6": Query(
        "average by seller",
        f"output q6. {CLOSED} q6(S, avg(P)) SINCE END <- closed(S, _, _, _), last 10: collect closed(S, _, _, P).",
        f"""WITH {CLOSED_SQL}, averages AS (SELECT seller, stop, auction,
            avg(price) OVER (PARTITION BY seller ORDER BY stop, auction ROWS 9 PRECEDING) AS price FROM closed)
        SELECT seller, last(price ORDER BY auction), stop, stop FROM averages GROUP BY seller, stop""",
    ),
    "q7": Query(
        "highest bid",
        """output q7. peak(max(P)) <- w: every(10s), while w: collect bid(price = P).
        q7(A, P, B) <- p: peak(P), b: bid(auction = A, bidder = B, price = P), b inside p.""",
        f"""SELECT auction, b.price, bidder, {ends("begins", 10)} FROM (SELECT *, {TEN} AS begins FROM bid) b
        JOIN (SELECT max(price) AS price, {TEN} AS begins FROM bid GROUP BY begins) USING (price, begins)""",
    ),
    "q8": Query(
        "new users",
        """q8(P, N) <- w: every(10s), p: person(person = P, name = N), a: auction(seller = P), p inside w, a inside w.""",
        f"""SELECT DISTINCT person, name, {ends("p.begins", 10)} FROM (SELECT *, {TEN} AS begins FROM person) p
        JOIN (SELECT seller, {TEN} AS begins FROM auction) a ON person = seller AND p.begins = a.begins""",
    ),
    "q9": Query(
        "winning bids",
        """q9(N, I, S, C, arg_max(B, P), max(P)) <- a: auction(auction = N, item = I, seller = S, category = C, expires = E),
            w: until(a, E, most = 10 min), while w: collect bid(auction = N, bidder = B, price = P).""",
        """SELECT a.auction, item, seller, category, bidder, price, epoch_us(a.time), epoch_us(expires)
        FROM auction a JOIN bid b ON a.auction = b.auction AND b.time BETWEEN a.time AND a.expires
        QUALIFY row_number() OVER (PARTITION BY a.auction ORDER BY price DESC, b.time, bidder) = 1""",
    ),
    "q10": Query(
        "log by minute",
        """q10(A, B, P, X, format_time(start(b), '%Y-%m-%d'), format_time(start(b), '%H:%M')) <-
            b: bid(auction = A, bidder = B, price = P, extra = X).""",
        f"""SELECT auction, bidder, price, extra, strftime(time, '%Y-%m-%d'), strftime(time, '%H:%M'), {POINT} FROM bid""",
    ),
    "q11": Query(
        "user sessions",
        "q11(B, count()) <- w: session(10s, bid(_, B, _, _, _, _)), while w: collect bid(bidder = B).",
        """WITH steps AS (SELECT bidder, epoch_us(time) AS t, t - lag(t) OVER w > 10000000 AS pause FROM bid
            WINDOW w AS (PARTITION BY bidder ORDER BY time)),
        sessions AS (SELECT bidder, t, count(*) FILTER (pause) OVER w AS number FROM steps
            WINDOW w AS (PARTITION BY bidder ORDER BY t))
        SELECT bidder, count(*), min(t), max(t) + 10000000 FROM sessions GROUP BY bidder, number""",
    ),
    "q12": Query(
        "bids by bidder",
        "q12(B, count()) <- w: every(10s), while w: collect bid(bidder = B).",
        f"SELECT bidder, count(*), {ends(TEN, 10)} FROM bid GROUP BY bidder, {TEN}",
    ),
    "q13": Query(
        "join with table",
        "q13(A, B, P, V) <- bid(auction = A, bidder = B, price = P), side(K, V), K = A mod 10000.",
        f"SELECT auction, bidder, price, value, {POINT} FROM bid JOIN side ON key = auction % 10000",
        facts=True,
    ),
    "q14": Query(
        "calculation",
        """q14(A, B, V, T, X, occurrences(X, 'c')) <- b: bid(auction = A, bidder = B, price = P, extra = X),
            V = P * 0.908, V > 1000000, V < 50000000, H = hour(start(b)),
            T = if(H >= 8 and H <= 18, 'day', if(H <= 6 or H >= 20, 'night', 'other')).""",
        f"""SELECT auction, bidder, price * 0.908::DOUBLE AS v, CASE WHEN hour(time) BETWEEN 8 AND 18 THEN 'day'
            WHEN hour(time) <= 6 OR hour(time) >= 20 THEN 'night' ELSE 'other' END,
        extra, length(extra) - length(replace(extra, 'c', '')), {POINT} FROM bid WHERE v > 1000000 AND v < 50000000""",
    ),
    "q15": Query(
        "totals by day",
        f"""q15({COUNTS}, {distinct("B")}, {distinct("A")}) <-
            w: every(1 day), while w: collect bid(auction = A, bidder = B, price = P).""",
        f"""SELECT {SQL_COUNTS}, {sql_distinct("bidder")}, {sql_distinct("auction")}, {ends(DAY, 86_400)}
        FROM bid GROUP BY {DAY}""",
    ),
    "q16": Query(
        "by channel",
        f"""q16(C, max(format_time(start(b), '%H:%M')), {COUNTS}, {distinct("B")}, {distinct("A")}) <-
            w: every(1 day), while w: collect b: bid(auction = A, bidder = B, price = P, channel = C).""",
        f"""SELECT channel, max(strftime(time, '%H:%M')), {SQL_COUNTS}, {sql_distinct("bidder")}, {sql_distinct("auction")},
        {ends(DAY, 86_400)} FROM bid GROUP BY channel, {DAY}""",
    ),
    "q17": Query(
        "by auction",
        f"""q17(A, {COUNTS}, min(P), max(P), avg(P), sum(P)) <-
            w: every(1 day), while w: collect bid(auction = A, price = P).""",
        f"""SELECT auction, {SQL_COUNTS}, min(price), max(price), avg(price), sum(price), {ends(DAY, 86_400)}
        FROM bid GROUP BY auction, {DAY}""",
    ),
    "q18": Query(
        "last bid",
        """q18(A, B, last(P), last(C), last(X)) <-
            w: every(1 day), while w: collect bid(auction = A, bidder = B, price = P, channel = C, extra = X).""",
        f"""SELECT auction, bidder, price, channel, extra, {ends(DAY, 86_400)} FROM bid QUALIFY
        row_number() OVER (PARTITION BY auction, bidder, {DAY} ORDER BY time DESC, price DESC, channel DESC, extra DESC) = 1""",
    ),
    "q19": Query(
        "top ten bids",
        """q19(A, B, P, X, R) <- w: every(1 day), b: bid(auction = A, bidder = B, price = P, extra = X), b inside w
            TOP 10 BY P PER (A) AS R.""",
        f"""SELECT auction, bidder, price, extra, row_number() OVER (
            PARTITION BY auction, {DAY} ORDER BY price DESC, bidder, extra) AS place, {ends(DAY, 86_400)}
        FROM bid QUALIFY place <= 10""",
    ),
    "q20": Query(
        "join with auction",
        """q20(A, B, P, U, I, S, R) <- bid(auction = A, bidder = B, price = P, url = U),
            auction(auction = A, item = I, seller = S, reserve = R, category = 10).""",
        """SELECT auction, bidder, price, url, item, seller, reserve, epoch_us(least(a.time, b.time)),
        epoch_us(greatest(a.time, b.time)) FROM bid b JOIN auction a USING (auction) WHERE category = 10""",
    ),
    "q21": Query(
        "channel id",
        """q21(A, B, P, C, I) <- bid(auction = A, bidder = B, price = P, channel = C, url = U),
            I = if(lower(C) = 'apple', '0', if(lower(C) = 'google', '1', if(lower(C) = 'facebook', '2',
                if(lower(C) = 'baidu', '3', regexp_extract(U, '(&|^)channel_id=([^&]*)', 2))))), I != ''.""",
        f"""SELECT auction, bidder, price, channel, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1'
            WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
            ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS id, {POINT} FROM bid WHERE id <> ''""",
    ),
    "q22": Query(
        "folders of URL",
        """q22(A, B, P, C, split(U, '/', 4), split(U, '/', 5), split(U, '/', 6)) <-
            bid(auction = A, bidder = B, price = P, channel = C, url = U).""",
        f"""SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5),
        split_part(url, '/', 6), {POINT} FROM bid""",
    ),
}
