% A supply chain: the price of a supplier rises, and soon after that of a company that depends on it.
event price(company: string, price: float).
event link_up(supplier: string, customer: string).     % what a miner of news has found out: A supplies B …
event link_down(supplier: string, customer: string).   % … and no longer does

static linked(supplier: string, customer: string).
output trend, exposed.

% News change what is known.
fact linked(A, B)     <- link_up(A, B).
fact not linked(A, B) <- link_down(A, B).

% Who supplies whom, directly or by way of others.
supplies(A, B) :- linked(A, B).
supplies(A, C) :- linked(A, B), supplies(B, C).

% A price rises by 5 % from one quote to the next; it goes down the chain within ten minutes.
rise(Company, Price) <- (price(Company, Before) NEXT price(Company, Price)).10min WHERE Price > Before * 1.05.
trend(Supplier, Customer) <- (rise(Supplier, _) SEQ rise(Customer, _)).10min WHERE supplies(Supplier, Customer).

% How many companies stand at the end of a chain that begins with three rises within an hour.
event exposed(supplier: string, followers: int).
exposed(Supplier, count(distinct C)) <-
    r: rise(Supplier, _), w: extend(r, 1h), while w: collect trend(Supplier, C), count(distinct C) >= 3.
