% Wildfires: a fire was reported, and the wind rose by 10 % there before it was localised.
event wind(station: string, speed: float).
event reported(place: string).
event localised(place: string).
output fire_alarm, overdue.

% Which weather station stands near which place.
near('creek', 's1').
near('ridge', 's2').

increase(Station, Speed) <-
    (wind(Station, Before) SEQ wind(Station, Speed)).30min WHERE Speed > Before * 1.1.

fire_alarm(Place, Speed) <-
    (NOT(localised(Place)).[reported(Place), increase(Station, Speed)]).2h WHERE near(Place, Station).

% No alarm needed: a fire that nobody localised within three hours.
overdue(Place) <- r: reported(Place), w: extend(r, 3h), while w: not localised(Place).
