% SYNTAX TEST "source.augury" "rules"
%! events: sample.jsonl
% <------------------ comment.line.remark.augury
event wind(station: string, speed: float).
% <----- keyword.declaration.augury
%     ^^^^ entity.name.function.augury
%                   ^^^^^^ storage.type.augury
increase(S, New) <- (wind(S, Old) SEQ wind(S, New)).30min WHERE New > Old * 1.1.
% <-------- entity.name.function.augury
%        ^ variable.other.augury
%                ^^ keyword.operator.arrow.augury
%                                 ^^^ keyword.operator.word.augury
%                                                   ^^^^^ constant.numeric.duration.augury
%                                                         ^^^^^ keyword.operator.word.augury
%                                                                           ^^^ constant.numeric.augury
overdue(N) <- o: order(N, 'x % y'), w: extend(o, 6h), while w: not shipped(N).
%             ^ variable.parameter.label.augury
%                         ^^^^^^^ string.quoted.single.augury
%                                      ^^^^^^ support.function.augury
%                                                     ^^^^^ keyword.operator.word.augury
%                                                              ^^^ keyword.operator.word.augury
next(X) <- first(X).
% <---- entity.name.function.augury
%          ^^^^^ support.function.augury
