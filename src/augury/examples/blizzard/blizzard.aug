% Blizzards: conditions that prevail at a station, the area that they spread over, and the places in it.
prefix geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>.
prefix ssw: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>.

event sensor(station: string, temperature: float, wind: float, condition: string, visibility: float).

output settling, warning, blizzard_area, affected.

% A reading with high wind (miles per hour), falling snow and low visibility (miles).
bad(Station) <- sensor(Station, _, Wind, 'snow', Visibility) WHERE (Wind >= 35, Visibility < 0.25).

% Such readings, one after the other, within six hours: how many there are so far.
event settling(station: string, readings: int).
settling(Station, 1)     <- bad(Station).
settling(Station, C + 1) <- (settling(Station, C) SEQ[recent] bad(Station)).6h.

% They prevail for three hours or longer, in at least four readings. The warning is of the time at which that is known.
event warning(station: string, readings: int).
warning(Station, C) SINCE END <- s: settling(Station, C), C >= 4, duration(s) >= 3h.

% Where a station stands is in its description.
position(Station, Lat, Long) :- ssw:ID(S, Station), geo:lat(S, Lat), geo:long(S, Long).

% A warning, and then others at stations within 300 km of the first, within nine hours: how many there are so far.
area(First, First, 0)      <- warning(First, _).
area(First, Second, N + 1) <- (area(First, _, N) SEQ[recent per (First)] warning(Second, _)).9h
    WHERE (position(First, A, B), position(Second, C, D), 0 < distance_km(A, B, C, D) < 300).

event blizzard_area(first: string, second: string, iterations: int).
blizzard_area(First, Second, N) <- area(First, Second, N) WHERE N > 0.

% Places of the gazetteer within 40 km of a station in the area.
static place(name: string, kind: string, latitude: float, longitude: float).
event affected(place: string, kind: string, station: string).
affected(Place, Kind, Station) <- blizzard_area(_, Station, _)
    WHERE (position(Station, A, B), place(Place, Kind, C, D), distance_km(C, D, A, B) < 40).
