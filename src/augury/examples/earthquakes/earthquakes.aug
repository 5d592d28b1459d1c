% Earthquakes: main shocks, foreshocks, aftershocks and swarms, of reports that come late and in any order.
event report(id: string, magnitude: float, latitude: float, longitude: float, depth: float, place: string, kind: string).

output main_shock, aftershock, foreshock, swarm, daily.

quake(I, M, X, Y, P) <- report(I, M, X, Y, _, P, 'earthquake').      % explosions and quarry blasts are reported, too
strong(I, M, X, Y, P) <- quake(I, M, X, Y, P) WHERE M >= 4.5.

% The strongest within 100 km in three days, so far.
event main_shock(id: string, magnitude: float, latitude: float, longitude: float, place: string).
main_shock(I, M, X, Y, P) SINCE start(q) <- q: strong(I, M, X, Y, P), w: extend_backward(q, 3 days),
    while w: not (strong(_, N, A, B, _) WHERE (N > M, distance_km(X, Y, A, B) < 100)).

% What follows a main shock nearby, and is weaker.
event aftershock(main: string, id: string, magnitude: float).
aftershock(Main, I, M) <- (main_shock(Main, Strength, X, Y, _) SEQ quake(I, M, A, B, _)).3 days
    WHERE (M <= Strength, distance_km(X, Y, A, B) < 100).

% What was a main shock until a stronger one came.
event foreshock(id: string, magnitude: float, main: string, stronger: float, place: string).
foreshock(I, M, Main, N, P) <- (main_shock(I, M, X, Y, _) SEQ main_shock(Main, N, A, B, P)).3 days
    WHERE (N > M, distance_km(X, Y, A, B) < 100).

% Fifteen or more within 10 km in six hours, after six hours of quiet there.
event swarm(first: string, quakes: int, strongest: float, place: string).
swarm(I, count(J), max(N), P) <- q: quake(I, _, X, Y, P), before: extend_backward(q, 6h), just: shorten(before, 1s),
    while just: not (quake(_, _, A, B, _) WHERE distance_km(X, Y, A, B) < 10),
    w: extend(q, 6h), while w: collect quake(J, N, C, D, _), distance_km(X, Y, C, D) < 10, count(J) >= 15.

% Every day: how many, and the strongest of all.
event daily(quakes: int, strongest: float, place: string).
daily(count(), max(M), arg_max(P, M)) <- w: every(1 day), while w: collect quake(_, M, _, _, P).
