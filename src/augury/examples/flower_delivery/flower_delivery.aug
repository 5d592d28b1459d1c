% Fast Flower Delivery: stores ask for a delivery, drivers bid, one of them is assigned, picks up and delivers.
event request(request: string, region: string, service: string, store: string).   % where to; express or standard
event gps(driver: string, position: term).
event bid(request: string, driver: string, minutes: int).                          % when the driver can be there
event chosen(request: string, driver: string).                                     % by the store, if it chooses itself
event picked_up(request: string).
event delivered(request: string).

static store(name: string, region: string, least_rank: int, assigns: string).
static driver(name: string, rank: int).
static linked(here: string, there: string).
static located(driver: string, region: string).

output delivery_request, bid_request, assignment, under_way, no_bids, late_pickup, late_delivery, ranking.

% A request, enriched with what the table of stores says.
event delivery_request(request: string, store: string, here: string, there: string, rank: int, assigns: string).
delivery_request(R, Store, From, To, Rank, Assigns) <- request(R, To, _, Store) WHERE store(Store, From, Rank, Assigns).

% Positions become regions, and the region where a driver is known to be.
region(coord('N', X, 'W', Y), 'Manhattan')     :- 4042 < X, X < 4049, 7358 < Y, Y < 7370, !.
region(coord('N', X, 'W', Y), 'Brooklyn')      :- 4034 < X, X < 4042, 7345 < Y, Y < 7358, !.
region(coord('N', X, 'W', Y), 'Staten Island') :- 4034 < X, X < 4040, 7368 < Y, Y < 7399, !.
region(coord('N', X, 'W', Y), 'Queens')        :- 4042 < X, X < 4049, 7345 < Y, Y < 7358, !.

gps_region(Driver, Region) <- gps(Driver, Position) WHERE region(Position, Region).
fact located(Driver, Region)   <- gps_region(Driver, Region).
fact not located(Driver, Left) <- gps_region(Driver, Region), was located(Driver, Left), Left != Region.

reachable(X, X) :- linked(X, _).
reachable(X, Y) :- linked(X, Y).
reachable(X, Z) :- linked(X, Y), reachable(Y, Z).

% All drivers are asked who are good enough for the store, and can get there from where they are.
event bid_request(request: string, driver: string, store: string).
bid_request(R, Driver, Store) <- delivery_request(R, Store, From, _, Rank, _)
    WHERE (located(Driver, Region), reachable(Region, From), driver(Driver, Has), Has >= Rank).

% Bids count for two minutes. The best driver gets the request, or the one whom the store chooses.
offer(R, Driver, Minutes, Rank) <- (bid_request(R, Driver, _) SEQ bid(R, Driver, Minutes)).2min WHERE driver(Driver, Rank).
event assignment(request: string, driver: string, minutes: int).
rule automatic: assignment(R, arg_max(Driver, Rank), arg_max(Minutes, Rank)) <-
    q: delivery_request(R, _, _, _, _, 'automatic'), w: extend(q, 2min), while w: collect offer(R, Driver, Minutes, Rank).
rule manual: assignment(R, Driver, Minutes) <-
    ((delivery_request(R, _, _, _, _, 'manual') AND offer(R, Driver, Minutes, _)) SEQ chosen(R, Driver)).10min.

% The driver is on the way: seen in a region from which the goal can be reached.
event under_way(request: string, driver: string, region: string).
under_way(R, Driver, Region) <-
    ((delivery_request(R, _, _, To, _, _) AND assignment(R, Driver, _)) SEQ[recent] gps_region(Driver, Region)).1h
    WHERE reachable(Region, To).

% What should have happened, and has not: these fire by the clock.
no_bids(R)           <- q: delivery_request(R, _, _, _, _, _), w: extend(q, 2min), while w: not offer(R, _, _, _).
late_pickup(R, D)    <- a: assignment(R, D, _), w: from_end(a, 20min), while w: not picked_up(R).
rule express: late_delivery(R, D) <- a: assignment(R, D, _), q: request(R, _, 'express', _),
    {a, q} within 10min, w: extend(q, 45min), while w: not delivered(R).
rule standard: late_delivery(R, D) <- a: assignment(R, D, _), q: request(R, _, 'standard', _),
    {a, q} within 10min, w: extend(q, 90min), while w: not delivered(R).

% Every day the drivers are ranked: a point for each delivery, two less for one that is late.
score(D, 1)  <- (assignment(R, D, _) SEQ delivered(R)).3h.
score(D, -2) <- late_delivery(_, D).
event ranking(place: int, driver: string, points: int).
ranking(Place, D, Points) <- w: every(1 day, zone = 'America/New_York'), while w: collect score(D, S), Points = sum(S)
    TOP 5 BY Points AS Place.
