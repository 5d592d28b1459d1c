% A brokerage: trades of suspicious size, and what becomes of them when a trade falls through.
event available(stock: string, price: float, amount: int).
event checked(client: string, stock: string, price: float, amount: int).   % a client wants to buy
event balance(client: string, before: int, after: int).                    % the shares that are left, before and after
event opens.
event closes.

output buy, big_trade, investigation, working_day.

% A client buys what was offered last, at that price.
buy(Client, Stock, Price, Amount) <-
    (available(Stock, Price, Offered) SEQ[recent] checked(Client, Stock, Price, Amount)).1h WHERE Amount <= Offered.

% The purchase takes more than 10,000 shares off the balance.
big_trade(Client, Stock, Amount) <-
    (buy(Client, Stock, _, Amount) SEQ balance(Client, Before, After)).70min
    WHERE (Before - After = Amount, Amount > 10000).

% Two big trades of one client on one working day call for an investigation.
working_day <- (NOT(closes).[opens, closes]).1 day.
event investigation(client: string, trades: int, shares: int).
investigation(Client, count(), sum(Amount)) <-
    d: working_day, while d: collect big_trade(Client, _, Amount), count() >= 2.
