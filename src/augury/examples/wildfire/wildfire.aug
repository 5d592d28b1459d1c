% Wildfires: which fires are getting out of hand, which are out of time, and where people suffer from the heat.
prefix wt: <http://knoesis.wright.edu/ssw/page/ont/weather.owl#>.

event wind(station: string, speed: float).            % miles per hour
event temperature(place: term, fahrenheit: float).
event humidity(place: term, percent: float).
event reported(fire: string).                         % a fire
event localised(fire: string).                        % the fire brigade has it in hand
event observed(fire: string, observation: iri).       % what a spotter has seen there; the graph says what it is

static station(name: string, latitude: float, longitude: float).
static fire(name: string, latitude: float, longitude: float).

output fire_alarm, overdue, active_fire, enhanced_fire, heat_effect.

% The wind at a station rises by more than a tenth within half an hour.
wind_increase(Station, Speed) <-
    (wind(Station, Before) SEQ wind(Station, Speed)).30min WHERE Speed > Before * 1.1.

% A fire is active from its report until it is localised.
active_fire(Fire) <- (NOT(localised(Fire)).[reported(Fire), localised(Fire)]).3 days.

% A fire was reported, and the wind rises within 15 km of it before it is localised.
near(Fire, Station) :- fire(Fire, A, B), station(Station, C, D), distance_km(A, B, C, D) < 15.
fire_alarm(Fire, Station, Speed) <-
    (NOT(localised(Fire)).[reported(Fire), wind_increase(Station, Speed)]).2h WHERE near(Fire, Station).

% Nothing needs to happen for this one: three hours have passed, and the fire is not localised.
overdue(Fire) <- r: reported(Fire), w: extend(r, 3h), while w: not localised(Fire).

% A wind was observed at an active fire, of whatever kind: the ontology knows them all.
enhanced_fire(Fire, Observation) <-
    (active_fire(Fire) AND observed(Fire, Observation)).3h WHERE rdf:type(Observation, wt:WindObservation).

% How hot it feels (the regression of the National Weather Service), and what that means for which area.
heat_index(Place, Index) <-
    (temperature(Place, T) AND humidity(Place, H)).30min
    WHERE Index = -42.379 + 2.04901523 * T + 10.14333127 * H - 0.22475541 * T * H - 0.00683783 * T * T
        - 0.05481717 * H * H + 0.00122874 * T * T * H + 0.00085282 * T * H * H - 0.00000199 * T * T * H * H.
event heat_effect(note: string, area: string, feels: float).
heat_effect(Note, Area, round(Index)) <- heat_index(Place, Index) WHERE (note(Index, Note), area(Place, Area)).

note(Index, caution)         :- 80 <= Index, Index < 90, !.
note(Index, extreme_caution) :- 90 <= Index, Index < 105, !.
note(Index, danger)          :- 105 <= Index, Index < 130, !.
note(Index, extreme_danger)  :- 130 <= Index, !.

area(loc('N', X, 'W', Y), 'Oakland Hills') :- 3778 < X, X < 3788, 12210 < Y, Y < 12225, !.
area(loc('N', X, 'W', Y), 'Santa Ynez')    :- 3448 < X, X < 3460, 11950 < Y, Y < 11990, !.
