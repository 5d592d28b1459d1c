% Four years of weather in Seattle, day by day: dry spells, heat waves, storms, the first frost of a winter.
event day(rain: float, high: float, low: float, wind: float, weather: string).    % mm, degrees Celsius, m/s

output dry_spell, heat_wave, storm, first_frost, month.

% Two weeks or more without rain.
event dry_spell(days: int, warmest: float).
dry_spell(count(d), max(High)) <- (d: day(Rain, High, _, _, _))+
    WHERE (Rain = 0, start(d) - prev(end(d)) <= 1 day, count(d) >= 14) PER () LONGEST SKIP PAST END.

% Three days or more above 30 degrees.
event heat_wave(days: int, warmest: float).
heat_wave(count(d), max(High)) <- (d: day(_, High, _, _, _))+
    WHERE (High > 30, start(d) - prev(end(d)) <= 1 day, count(d) >= 3) PER () LONGEST SKIP PAST END.

% Much rain and much wind on one day.
storm(Rain, Wind) <- day(Rain, _, _, Wind, _) WHERE (Rain >= 20, Wind >= 6).

% Frost, for the first time in half a year.
first_frost(Low) SINCE start(d) <- d: day(_, _, Low, _, _), Low <= 0, w: extend_backward(d, 180 days), v: shorten(w, 1s),
    while v: not (day(_, _, L, _, _) WHERE L <= 0).

% Every month: rain in all, days with rain, the warmest and the coldest temperature.
event month(rain: float, wet: int, warmest: float, coldest: float).
month(sum(R), sum(Wet), max(High), min(Low)) <- w: every(month), while w: collect day(R, High, Low, _, _), Wet = if(R > 0, 1, 0).
