% A web shop: orders that were completed, completed in time, or that nobody has shipped.
event order(number: int, product: string, quantity: int).
event shipped(number: int, parcel: string).
event delivered(parcel: string).

static perishable(product: string).

output completed, timely, overdue, report, hourly, best_sellers.

% Ordered, shipped, delivered.
completed(Order, Product) <-
    o: order(Order, Product, _), s: shipped(Order, Parcel), d: delivered(Parcel),
    o before s, s before d, {o, s, d} within 5 days.

% Shipped within 12 hours, and delivered within 36 hours after that.
timely(Order, Product) <-
    o: order(Order, Product, _), s: shipped(Order, Parcel), d: delivered(Parcel),
    o before s, s before d, {o, s} within 12h, {s, d} within 36h.

% Not shipped in time: 6 hours for small orders, 12 for large ones, and 3 for what spoils.
rule small:  overdue(Order, 6)  <- o: order(Order, P, Quantity), w: extend(o, 6h),
    while w: not shipped(Order, _), Quantity < 10, not perishable(P).
rule large:  overdue(Order, 12) <- o: order(Order, P, Quantity), w: extend(o, 12h),
    while w: not shipped(Order, _), Quantity >= 10, not perishable(P).
rule spoils: overdue(Order, 3)  <- o: order(Order, P, _), w: extend(o, 3h), while w: not shipped(Order, _), perishable(P).

% With every overdue order: how much was shipped in the day before? Much means overload, little means trouble elsewhere.
event overdue(order: int, hours: int).
event report(order: int, shipped: int).
report(Order, count(S)) <- o: overdue(Order, _), w: from_end(o, 0s), d: extend_backward(w, 24h), while d: collect shipped(S, _).

% Every hour what was ordered, every day what sold best.
event hourly(orders: int, items: int).
hourly(count(), sum(Quantity)) <- w: every(1h), while w: collect order(_, _, Quantity).
best_sellers(Place, Product, Items) <-
    w: every(1 day, zone = 'Europe/Berlin'), while w: collect order(_, Product, Q), Items = sum(Q) TOP 3 BY Items AS Place.
