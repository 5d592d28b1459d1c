% Rules over what the queries find: a card is blocked when both point at it within two hours.
output small_after_big, far_away, block.

event block(card: iri, holder: string, signs: int).
block(Card, Holder, count(s)) <-
    f: far_away(Card, Holder, _, _), w: extend_backward(f, 2h), while w: collect s: small_after_big(Card, Holder, _, _, _).
